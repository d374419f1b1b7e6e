use pretty_assertions::assert_eq;
use switchboard_model::BUILT_IN_LIMITS;

use super::*;

fn tool(server: &str, name: &str) -> Arc<CatalogTool> {
    Arc::new(CatalogTool {
        name: CanonicalName::new(&ServerName::new(server), name),
        descriptor: ToolDescriptor::named(name),
        limits: BUILT_IN_LIMITS,
        configured: Configured::Default,
        mode: AdmissionMode::Dynamic,
        toolset: server.into(),
        expose_as: None,
        arguments: None,
    })
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
