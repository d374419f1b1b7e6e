use super::*;

fn name(written: &str, taken: &[&str]) -> String {
    unique_name(written, &taken.iter().copied().collect())
}

#[test]
fn names_become_valid_and_unique() {
    assert_eq!(name("files", &[]), "files");
    assert_eq!(name("a--b_", &[]), "a--b_");
    assert_eq!(name("My Server (v2)", &[]), "My-Server-v2");
    assert_eq!(name("@scope/server.x", &[]), "scope-server-x");
    assert_eq!(name("_a", &[]), "a");
    assert_eq!(name("日本", &[]), "server");
    assert_eq!(name("local", &[]), "local-server");
    assert_eq!(name("a", &["a", "a-2"]), "a-3");
    let long = "x".repeat(64);
    assert_eq!(name(&long, &[&long]), format!("{}-2", "x".repeat(58)));
}

proptest::proptest! {
    #[test]
    fn every_name_is_valid(written in proptest::prelude::any::<String>()) {
        let name = name(&written, &["a", "server"]);
        proptest::prop_assert!(ServerName::is_valid(&name) && name != LOCAL_SERVER, "{}", name);
    }
}
