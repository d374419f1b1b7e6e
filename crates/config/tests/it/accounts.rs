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

/// A board that accepts tokens.
fn with_tokens(text: &str) -> String {
    format!(
        "{text}  security:\n    jwt:\n      issuer: https://login.example.com\n      audience: https://board.example.com\n      \
         jwks_url: https://login.example.com/jwks\n"
    )
}

#[test]
fn tokens_of_callers_are_exchanged_at_the_issuer_of_the_board_or_at_a_named_one() {
    for (more, issuer, audience) in [
        ("", "https://login.example.com", None),
        (
            ", issuer: 'https://other.example.com', audience: tracker",
            "https://other.example.com",
            Some("tracker"),
        ),
    ] {
        let oauth = format!(
            "{{oauth: {{grant: token_exchange, client_id: us, client_secret: s3cret{more}}}}}"
        );
        let loaded = load_text(&with_tokens(&server(&oauth, "")));
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
        let spec = &loaded.plan.servers[0].spec;
        let (_, settings) = spec.endpoint.oauth().unwrap();
        let OAuthGrant::TokenExchange(client) = &settings.grant else { panic!("{settings:?}") };
        assert_eq!((client.issuer.as_str(), client.audience.as_deref()), (issuer, audience));
        assert_eq!(settings.per, AccountScope::Person, "each person has an account");
        assert!(matches!(spec.sharing, Sharing::PerOwner { .. }));
        assert!(!loaded.to_yaml().contains("s3cret"), "{}", loaded.to_yaml());
        assert_eq!(settings.grant.secret().unwrap().expose(), "s3cret");
    }
    // Exchanged tokens are not stored, so they need no key.
    let public = with_tokens(&server("{oauth: {grant: token_exchange, client_id: us}}", ""));
    let public = format!("{public}  gateway: {{public_url: 'https://tools.example.com'}}\n");
    load_text(&public).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn an_exchange_without_tokens_or_with_settings_of_another_grant_is_refused() {
    let exchange = |more: &str| server(&format!("{{oauth: {{grant: token_exchange{more}}}}}"), "");
    let listed = "{oauth: {grant: token_exchange, client_id: us}}";
    for (text, said) in [
        (exchange(", client_id: us"), "there is no `security.jwt`"),
        (with_tokens(&exchange("")), "no `client_id`"),
        (with_tokens(&exchange(", client_id: us, per: board")), "one of the same person"),
        (with_tokens(&exchange(", client_id: us, per: session")), "one of the same person"),
        (with_tokens(&exchange(", client_id: us, redirect_port: 1")), "has no effect with"),
        (with_tokens(&exchange(", client_id: us, private_key: k")), "has no effect with"),
        (with_tokens(&server(listed, "\n  listing: board")), "an account of the board"),
        (server("{oauth: {audience: x}}", ""), "it belongs to `grant: token_exchange`"),
    ] {
        let problems = problems(&text, &[]);
        assert!(problems.contains(said), "{said}: {problems}");
    }
}
