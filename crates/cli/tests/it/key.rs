//! `key`: keys are shown once, listed without their secrets, and revoked.

use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::support::{Home, assert_says};

/// The key that `add` printed; nothing else may be there.
fn added(home: &Home, line: &str) -> String {
    let outcome = home.line(line).expect(0);
    let key = outcome.stdout.strip_suffix('\n').unwrap().to_owned();
    assert!(key.starts_with("sbk_") && key.len() == 47, "{key}");
    assert!(outcome.stderr.contains("not shown again"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains(&key), "{}", outcome.stderr);
    key
}

fn states(home: &Home) -> Vec<String> {
    let list = home.line("key list --json").expect(0).json();
    let word = |key: &Value, name: &str| key[name].as_str().unwrap().to_owned();
    let each = list["keys"].as_array().unwrap().iter();
    each.map(|key| format!("{} {} {}", word(key, "name"), word(key, "role"), word(key, "state")))
        .collect()
}

#[test]
fn a_key_is_printed_once_and_listed_without_itself() {
    let home = Home::empty();
    let nothing = home.line("key list").expect(0);
    assert_eq!((nothing.stdout.as_str(), nothing.stderr.contains("no keys")), ("", true));
    assert_eq!(states(&home), Vec::<String>::new());

    let one = added(&home, "key add laptop");
    let two = added(&home, "key add build --role operator --expires 90d -vvv");
    assert_ne!(one, two);
    let made = home.line("key add boss --role admin --json").expect(0).json();
    assert_eq!((made["name"].as_str(), made["role"].as_str()), (Some("boss"), Some("admin")));
    let three = made["key"].as_str().unwrap();
    assert!(three.starts_with("sbk_") && made["id"].is_string());

    assert_eq!(
        states(&home),
        ["laptop client active", "build operator active", "boss admin active"]
    );
    let list = home.line("key list --json").expect(0).json();
    let expires = |n: usize| list["keys"][n]["expires_at"].as_str();
    assert_eq!((expires(0), expires(1).is_some()), (None, true));
    let shown = [home.line("key list"), home.line("key list --json")];
    for outcome in shown {
        for key in [&one, &two, three] {
            assert!(!outcome.stdout.contains(key) && !outcome.stderr.contains(key));
        }
    }
    for file in std::fs::read_dir(home.path().join("data")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(one.len()).any(|some| some == one.as_bytes()));
    }
}

#[test]
fn the_first_key_says_what_it_changes() {
    let home = Home::empty();
    assert_says!(home.line("key add laptop").expect(0).stderr, @r#"
    this is the key "laptop" (client); keep it safe, it is not shown again
    it is the first one: from now on every request needs a key
    "#);
    assert_says!(home.line("key add build").expect(0).stderr, @r#"this is the key "build" (client); keep it safe, it is not shown again"#);
}

#[test]
fn a_revoked_key_stays_in_the_list_and_gives_up_its_name() {
    let home = Home::empty();
    added(&home, "key add laptop");
    let id = home.line("key add build --json").expect(0).json()["id"].as_str().unwrap().to_owned();
    let revoked = home.line("key revoke laptop").expect(0);
    assert_eq!((revoked.stdout.as_str(), revoked.stderr.as_str()), ("laptop: revoked\n", ""));
    added(&home, "key add laptop --role admin");
    home.line(&format!("key revoke {id} --json")).expect(0).json();
    let last = home.line("key revoke laptop").expect(0);
    assert!(last.stderr.contains("every request is refused"), "{}", last.stderr);
    assert_eq!(
        states(&home),
        ["laptop client revoked", "build client revoked", "laptop admin revoked"]
    );
}

#[test]
fn what_cannot_be_done_is_said_with_the_way_out() {
    let home = Home::empty();
    let key = added(&home, "key add laptop");
    let check = |line: &str, code: i32, words: &[&str]| {
        let outcome = home.line(line).expect(code);
        for word in words {
            assert!(outcome.stderr.contains(word), "{line}: {}", outcome.stderr);
        }
        assert_eq!(outcome.stdout, "", "{line}");
        assert!(!outcome.stderr.contains(&key), "{line}: {}", outcome.stderr);
    };
    check("key add laptop", 1, &["already a key", "\"laptop\"", "revoke that key first"]);
    check("key revoke labtop", 1, &["no key \"labtop\"", "did you mean \"laptop\"?"]);
    check("key revoke xyz", 1, &["no key \"xyz\"", "key list"]);
    check(&format!("key revoke {key}"), 2, &["this is a key"]);
    check(&format!("key add {key}"), 2, &["does not look like a key"]);
    check("key add a/b", 2, &["letters, digits"]);
    check("key add x --expires 90", 2, &["--expires", "90d"]);
    check("key add x --expires soon", 2, &["is not a duration"]);
    check("key add x --expires 0d", 2, &["is not above zero"]);
    check("key add x --expires=-1d", 2, &["is not above zero"]);
    check("key add x --role root", 2, &["client, operator, admin"]);
    check("key add x --rate 0/min", 2, &["permits no call", "60/min"]);
    check("key add x --rate=-1/min", 2, &["not from 1 to 1000000"]);
    check("key add x --rate 5/fortnight", 2, &["unknown period"]);
    check("key add x --max-instances 0", 2, &["--max-instances"]);
    check("key add x --user a/b", 2, &["the user of a key"]);
    check("key edit labtop --readonly", 1, &["no key \"labtop\"", "did you mean \"laptop\"?"]);
    check("key edit laptop --clear colour", 2, &["max-instances"]);
    check(&format!("key edit {key} --readonly"), 2, &["this is a key"]);
    let refused = home.line("key revoke labtop --json").expect(1).json();
    assert_eq!(refused["error"]["kind"], "unknown_key");
    home.line("key revoke laptop").expect(0);
    check("key revoke laptop", 1, &["was revoked before"]);
}

const TWO_SETS: &str = "switchboard:
  toolsets: [{name: sums, description: Adds, tools: [sum_numbers]}, {name: times, description: Tells, tools: [current_time]}]
  toolbox: {tools: [{name: sum_numbers}, {name: current_time}]}
";

#[tokio::test]
async fn a_key_is_narrowed_here_and_through_a_running_instance() {
    let home = Home::new(TWO_SETS);
    let boss = added(&home, "key add boss --role admin");
    let refused = home.line("key add bot --toolsets sum").expect(2);
    assert!(refused.stderr.contains("there is no toolset 'sum'"), "{}", refused.stderr);
    assert!(refused.stderr.contains("there are: sums, times, local"), "{}", refused.stderr);
    let bot = added(&home, "key add bot --toolsets sums --rate 60/min --user anna");
    let line = home.line("key edit bot --deny x --readonly --max-instances 2").expect(0).stdout;
    assert_eq!(line.trim(), "bot: client, toolsets sums; not x; read-only; 60/min; 2 at a time");
    home.line("key edit bot --clear deny,readonly,max-instances,rate").expect(0);
    let list = home.line("key list").expect(0).stdout;
    assert!(list.contains("anna") && list.contains("toolsets sums"), "{list}");

    let serve = home.serve().await;
    let admin = Home::empty().with_variable("SWITCHBOARD_API_KEY", boss);
    let narrow = Home::empty().with_variable("SWITCHBOARD_API_KEY", bot);
    let at = |line: &str| format!("{line} --url {}", serve.url);
    let tools = || {
        let list = narrow.line(&at("tool list --json")).expect(0).json();
        list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(tools(), ["local.sum_numbers"]);
    let changed = admin.line(&at("key edit bot --toolsets times --json")).expect(0).json();
    assert_eq!(changed["access"]["toolsets"], serde_json::json!(["times"]));
    assert_eq!(tools(), ["local.current_time"], "in force when the command returned");
    let refused = admin.line(&at("key edit bot --toolsets none")).expect(2);
    assert!(refused.stderr.contains("there is no toolset 'none'"), "{}", refused.stderr);
    let made = admin.line(&at("key add other --tools sum_* --json")).expect(0).json();
    assert!(made["key"].as_str().unwrap().starts_with("sbk_"));
    let list = admin.line(&at("key list --json")).expect(0).json();
    assert_eq!(list["keys"].as_array().unwrap().len(), 3);
    admin.line(&at("key revoke other")).expect(0);
    narrow.line(&at("key list")).expect(4);
}

#[tokio::test]
async fn who_is_not_let_in_hears_of_the_variable_for_the_key() {
    let home = Home::new("switchboard:\n");
    let key = added(&home, "key add laptop --role operator");
    let serve = home.serve().await;
    let line = format!("tool list --url {}/mcp", serve.url);
    let refused = home.line(&line).expect(4).stderr;
    assert!(refused.contains("set SWITCHBOARD_API_KEY to an API key"), "{refused}");
    let wrong = Home::empty().with_variable("SWITCHBOARD_API_KEY", "sbk_wrong");
    let refused = wrong.line(&line).expect(4).stderr;
    assert!(refused.contains("the key in SWITCHBOARD_API_KEY is not valid there"), "{refused}");
    Home::empty().with_variable("SWITCHBOARD_API_KEY", key).line(&line).expect(0);
}
