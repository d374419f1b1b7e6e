use pretty_assertions::assert_eq;

use super::*;

fn tool(server: &str, name: &str) -> Arc<CatalogTool> {
    let canonical = CanonicalName::new(&ServerName::new(server), name);
    Arc::new(CatalogTool::new(canonical, ToolDescriptor::named(name)))
}

fn owned(owner: &str, alias: &str, name: &str) -> Arc<CatalogTool> {
    let server = format!("@{owner}-{alias}");
    let tool = Arc::unwrap_or_clone(tool(&server, name));
    Arc::new(CatalogTool { owner: Some(owner.into()), alias: Some(ServerName::new(alias)), ..tool })
}

fn names(names: &[CanonicalName]) -> Vec<&str> {
    names.iter().map(CanonicalName::as_str).collect()
}

#[test]
fn a_name_is_looked_up_whole_first_and_bare_then() {
    let catalog =
        Catalog::new(7, vec![tool("a", "search"), tool("b", "search"), tool("c", "a.search")]);
    let resolved = |name: &str| catalog.resolve(name).map(|tool| tool.name.to_string()).unwrap();
    assert_eq!(resolved("a.search"), "a.search");
    assert_eq!(resolved("search"), "b.search");
    assert_eq!(resolved("c.a.search"), "c.a.search");
    assert_eq!((catalog.revision(), catalog.tools().len()), (7, 3));
    assert_eq!(catalog.tools_of(&ServerName::new("b")).count(), 1);
}

#[test]
fn a_name_that_the_configuration_exposes_is_looked_up_last() {
    let exposed = |server: &str, name: &str, shown: &str| {
        let tool = Arc::unwrap_or_clone(tool(server, name));
        Arc::new(CatalogTool { expose_as: Some(shown.into()), ..tool })
    };
    let catalog = Catalog::new(
        1,
        vec![
            tool("a", "search"),
            exposed("a", "find", "lookup"),
            exposed("b", "find", "search"),
            exposed("a", "sign", "signature"),
            exposed("b", "sign", "signature"),
        ],
    );
    let resolved = |name: &str| catalog.resolve(name).map(|tool| tool.name.to_string());
    assert_eq!(resolved("lookup").unwrap(), "a.find");
    assert_eq!(resolved("search").unwrap(), "a.search");
    assert!(resolved("signature").is_err(), "lists show both tools by other names");
}

#[test]
fn what_belongs_to_an_owner_is_found_by_that_owner_alone() {
    let tools = vec![
        tool("crm", "search"),
        owned("s1", "crm", "search"),
        owned("s1", "mine", "look"),
        owned("s2", "mine", "look"),
    ];
    let catalog = Catalog::new(1, tools);
    let shown = |tools: &[Arc<CatalogTool>]| {
        tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(shown(catalog.tools()), ["crm.search"]);
    assert_eq!(shown(catalog.owned_by("s1")), ["@s1-crm.search", "@s1-mine.look"]);
    assert_eq!(shown(catalog.owned_by("s3")), Vec::<String>::new());
    assert_eq!(catalog.of_all_owners().len(), 4);
    for name in ["look", "@s1-mine.look", "mine.look", "@s1-crm.search"] {
        let unresolved = catalog.resolve(name).unwrap_err();
        assert!(!format!("{unresolved:?}").contains('@'), "{name}");
        assert!(catalog.resolve_for("s3", name).is_err(), "{name}");
    }
    let resolved = |owner: &str, name: &str| {
        catalog.resolve_for(owner, name).map(|tool| tool.name.to_string()).unwrap_or_default()
    };
    let rows = [
        ("s1", "look", "@s1-mine.look"),
        ("s1", "mine.look", "@s1-mine.look"),
        ("s1", "@s1-mine.look", "@s1-mine.look"),
        ("s1", "@s2-mine.look", ""),
        ("s2", "mine.look", "@s2-mine.look"),
        // A canonical name keeps meaning the shared tool; a bare name means the owner's tool.
        ("s1", "crm.search", "crm.search"),
        ("s1", "search", "@s1-crm.search"),
        ("s2", "search", "crm.search"),
    ];
    for (owner, name, expected) in rows {
        assert_eq!(resolved(owner, name), expected, "{owner} {name}");
    }
    let name = CanonicalName::new(&ServerName::new("@s1-mine"), "look");
    assert!(catalog.exactly(&name).is_err());
    assert!(catalog.exactly_for(Some("s2"), &name).is_err());
    assert_eq!(catalog.exactly_for(Some("s1"), &name).unwrap().shown_server().as_str(), "mine");
}

#[test]
fn who_sees_no_change_keeps_its_key() {
    let first = Catalog::new(1, vec![tool("a", "t"), owned("s1", "x", "u")]);
    let more = vec![tool("a", "t"), owned("s1", "x", "u"), owned("s2", "x", "u")];
    let second = Catalog::new(2, more).after(&first);
    assert_eq!((first.revision(), second.revision()), (1, 2));
    for (owner, is_same) in [(None, true), (Some("s1"), true), (Some("s2"), false)] {
        assert_eq!(first.key_for(owner) == second.key_for(owner), is_same, "{owner:?}");
    }
    let third = Catalog::new(3, vec![tool("a", "t"), tool("a", "v")]).after(&second);
    for owner in [None, Some("s1"), Some("s2"), Some("s3")] {
        assert_ne!(second.key_for(owner), third.key_for(owner), "{owner:?}");
    }
    let fourth = Catalog::new(4, vec![tool("a", "t"), tool("a", "v"), owned("s1", "x", "u")]);
    assert_ne!(fourth.after(&third).key_for(Some("s1")), third.key_for(Some("s1")));
}

#[test]
fn an_unknown_name_comes_back_with_its_neighbours() {
    let catalog = Catalog::new(1, vec![tool("crm", "get_customer"), tool("crm", "zebra")]);
    let unresolved = catalog.resolve("get_custommer").unwrap_err();
    assert_eq!(names(&unresolved.nearest), ["crm.get_customer"]);
    assert_eq!(catalog.resolve("qqqqqq").unwrap_err().nearest, []);
    assert_eq!(catalog.resolve("Zebra").unwrap_err().nearest.len(), 1, "names are case-sensitive");
}

#[test]
fn the_words_of_a_configuration_source() {
    let words =
        [Configured::Explicit, Configured::Merged, Configured::Default].map(Configured::as_str);
    assert_eq!(words, ["explicit", "merged", "default"]);
}
