//! Whose account a call uses at a server: valid values, and what is refused.

use switchboard_model::{AccountScope, ListingAccount, OAuthGrant, Sharing};

use crate::support::{load_text, problems, with_server};

fn server(auth: &str, more: &str) -> String {
    with_server(&format!("- name: a\n  url: https://h/mcp\n  mode: strict\n  auth: {auth}{more}"))
}

#[test]
fn a_server_says_whose_account_a_call_uses() {
    let first = ListingAccount::First;
    for (auth, more, per, listing, is_stored) in [
        ("{oauth: {}}", "", AccountScope::Board, first, false),
        ("{oauth: {per: board}}", "", AccountScope::Board, first, false),
        ("{oauth: {per: user}}", "", AccountScope::Person, first, false),
        (
            "{oauth: {per: user}}",
            "\n  listing: board",
            AccountScope::Person,
            ListingAccount::Board,
            false,
        ),
        ("{oauth: {per: session}}", "", AccountScope::Session, first, false),
        ("{bearer: {per: user}}", "", AccountScope::Person, first, true),
    ] {
        let plan = load_text(&server(auth, more)).unwrap_or_else(|error| panic!("{error}")).plan;
        let spec = &plan.servers[0].spec;
        let (_, settings) = spec.endpoint.oauth().unwrap();
        assert_eq!((settings.per, settings.listing), (per, listing), "{auth}");
        assert_eq!(settings.grant == OAuthGrant::StoredToken, is_stored, "{auth}");
        let has_owners = matches!(spec.sharing, Sharing::PerOwner { most: 256, .. });
        assert_eq!(has_owners, per != AccountScope::Board, "{auth}");
    }
    let bounded = server("{oauth: {per: user}}", "\n  max_connections: 3");
    let plan = load_text(&bounded).unwrap().plan;
    assert!(matches!(plan.servers[0].spec.sharing, Sharing::PerOwner { most: 3, .. }));
}

#[test]
fn what_has_no_effect_or_would_be_unsafe_is_refused() {
    let own = "{oauth: {per: user, grant: client_credentials, client_id: a, client_secret: b}}";
    let stdio = "- name: a\n  command: npx\n  mode: strict\n  auth: {oauth: {per: user}}";
    let public = format!(
        "{}  gateway: {{public_url: 'https://tools.example.com'}}\n",
        server("{oauth: {per: user}}", "")
    );
    for (text, said) in [
        (server(own, ""), "gives the program an account of its own"),
        (server("{oauth: {}}", "\n  listing: board"), "has no effect"),
        (server("{oauth: {per: users}}", ""), "user"),
        (server("{bearer: {per: board}}", ""), "user"),
        (server("{bearer: {}}", ""), "per"),
        (with_server(stdio), "does not belong to a `stdio` server"),
        (public.clone(), "they must be encrypted"),
    ] {
        let problems = problems(&text, &[]);
        assert!(problems.contains(said), "{said}: {problems}");
    }
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8=";
    let encrypted = format!("{public}  security: {{store_key: '{key}'}}\n");
    load_text(&encrypted).unwrap_or_else(|error| panic!("{error}"));
    let near = public.replace("https://tools.example.com", "http://127.0.0.1:8420");
    load_text(&near).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn whose_account_is_used_is_shown_and_secrets_are_not() {
    let text = server("{oauth: {per: user, client_id: us, client_secret: s3cret}}", "");
    let shown = load_text(&text).unwrap().to_yaml();
    assert!(shown.contains("per: user") && !shown.contains("s3cret"), "{shown}");
    let shown = load_text(&server("{bearer: {per: user}}", "")).unwrap().to_yaml();
    assert!(shown.contains("per: user"), "{shown}");
}
