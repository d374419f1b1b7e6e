use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Option<Node>, String> {
    let source = SourceText::new("x.yaml", text);
    parse(&source, text).map(|document| document.root).map_err(|problem| problem.to_string())
}

fn json(text: &str) -> serde_json::Value {
    read(text).unwrap().unwrap().to_json()
}

fn refused(text: &str) -> String {
    let text = read(text).unwrap_err();
    text.lines().take(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_key_and_value_knows_its_place() {
    let root = read("a:\n  - b: 'x'\n    c: 5\n").unwrap().unwrap();
    let item = &root.get("a").unwrap().items()[0];
    let place = |origin: &ValueOrigin| match origin {
        ValueOrigin::File(at) => (at.line, at.column, at.width),
        ValueOrigin::Environment(_) | ValueOrigin::Nowhere => panic!("not from the file"),
    };
    assert_eq!(place(&root.entry("a").unwrap().origin), (1, 1, 1));
    assert_eq!(place(&item.origin), (2, 5, 1));
    assert_eq!(place(&item.entry("c").unwrap().origin), (3, 5, 1));
    assert_eq!(place(&item.get("c").unwrap().origin), (3, 8, 1));
}

#[test]
fn scalars_have_the_types_of_yaml() {
    assert_eq!(
        json("[1, 2.5, true, x, '1', 1e2, 0x10, !!str 5, 00:00:30, ~]"),
        serde_json::json!([1, 2.5, true, "x", "1", 100, 16, "5", "00:00:30", null])
    );
    assert_eq!(read("# nothing\n"), Ok(None));
    assert!(refused("a: !!int x").contains("tag"));
}

#[test]
fn aliases_are_copies() {
    assert_eq!(
        json("a: &x {b: [1]}\nc: *x"),
        serde_json::json!({"a": {"b": [1]}, "c": {"b": [1]}})
    );
    assert!(refused("a: &x [*x]").contains("inside of its own"));
    assert!(refused("a: *x").contains("unknown anchor"));
    assert!(refused("a: &x b\n*x : c").contains("not an alias"));
}

#[test]
fn what_is_too_much_is_refused() {
    let bomb: Vec<_> = (0..20)
        .map(|n| format!("l{}: &a{} [*a{n}, *a{n}, *a{n}, *a{n}]\n", n + 1, n + 1))
        .collect();
    let bomb = bomb.concat();
    assert!(refused(&format!("l0: &a0 [x]\n{bomb}")).contains("more than 100000 values"));
    let wide = format!("a: &a [{}]\nb: [{}]", "x, ".repeat(1000), "*a, ".repeat(1000));
    assert!(refused(&wide).contains("more than 100000 values"));
    assert!(refused(&"[".repeat(100)).contains("nested deeper than 64 levels"));
    assert!(
        refused(&format!(
            "a: &x {}{}\nb: {}*x{}",
            "[".repeat(40),
            "]".repeat(40),
            "[".repeat(40),
            "]".repeat(40)
        ))
        .contains("nested deeper")
    );
    assert!(refused(&format!("a: {}", "x".repeat(5 << 20))).contains("larger than 4 MiB"));
    assert!(refused("a: 1\n---\nb: 1\n").contains("second document"));
    assert!(refused("? [a]\n: b").contains("a key must be text"));
}

#[test]
fn the_first_of_two_equal_keys_counts() {
    let text = "a: 1\nb: 2\na: 3\n";
    let source = SourceText::new("x.yaml", text);
    let document = parse(&source, text).unwrap();
    let problems = document.problems(&source);
    assert_eq!(document.root.unwrap().to_json(), serde_json::json!({"a": 1, "b": 2}));
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].notes, ["it was first written at x.yaml:1:1"]);
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _outcome = read(&text);
    }
}
