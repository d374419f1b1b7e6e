//! Tests of authentication with tokens.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_auth::{
    AuthError, Gatekeeper, GatekeeperOptions, JwtOptions, KeyDraft, KeySetSource, NewKey,
    Principal, Refusal, Role,
};
use switchboard_model::{
    Access, AccessRule, ClaimGrant, ClaimRule, Identity, JwtGrants, LiveAccess,
};
use switchboard_store::Store;

use crate::issuer::{AUDIENCE, Answer, Endpoint, ISSUER, Key, claims, claims_with, now, options};
use crate::{bearer, headers, told};

async fn gatekeeper(jwt: JwtOptions) -> Arc<Gatekeeper> {
    let store = Store::in_memory().await.unwrap();
    Gatekeeper::new(store, GatekeeperOptions { jwt: Some(jwt) }).await.unwrap()
}

async fn admit(gatekeeper: &Gatekeeper, token: &str) -> Result<Principal, Refusal> {
    gatekeeper.admit(&bearer(token)).await
}

const UNUSABLE: &str =
    "a claim of the token is missing or of the wrong type; `iss` and `exp` must be there";
const UNAVAILABLE: (u16, &str) =
    (503, "the keys of the token's issuer cannot be fetched now; try again later");
const UNKNOWN_KEY: (u16, &str) =
    (401, "the token is signed with a key that its issuer does not have");

#[tokio::test]
async fn every_accepted_algorithm_opens_the_door() {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    for algorithm in [RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA] {
        let key = Key::new("k1", algorithm);
        let endpoint = Endpoint::of(&[&key]).await;
        let gatekeeper = gatekeeper(endpoint.options()).await;
        let admitted = admit(&gatekeeper, &key.sign(&claims())).await;
        let wanted = Principal {
            id: format!("jwt:{ISSUER}|cursor|ana").into(),
            role: Role::Client,
            name: None,
            identity: Arc::new(Identity {
                subject: Some("ana".into()),
                scopes: Some("mcp:use".into()),
                ..Identity::of(format!("jwt:{ISSUER}|ana").into())
            }),
            access: LiveAccess::default(),
        };
        assert_eq!(admitted, Ok(wanted), "{algorithm:?}");
        assert_eq!(endpoint.asked(), 1);
    }
}

#[tokio::test]
async fn what_a_token_says_decides() {
    let key = Key::new("k1", Algorithm::ES256);
    let endpoint = Endpoint::of(&[&key]).await;
    let gatekeeper = gatekeeper(endpoint.options()).await;
    let refused = [
        (json!({"exp": now() - 60}), "the token has expired"),
        (json!({"exp": null}), UNUSABLE),
        (json!({"exp": "soon"}), UNUSABLE),
        (json!({"nbf": now() + 60}), "the token is not valid yet"),
        (json!({"aud": "https://other.example"}), "the token is meant for another audience"),
        (json!({"aud": ["a", "b"]}), "the token is meant for another audience"),
        (json!({"aud": null}), "the token has no usable `aud`"),
        (json!({"iss": "https://issuer.example/realm/"}), "the token is from another issuer"),
        (json!({"iss": [ISSUER, "https://evil.example"]}), UNUSABLE),
        (json!({"iss": null}), UNUSABLE),
        (json!({"sub": null, "client_id": null}), "the token has no subject (`sub`)"),
    ];
    for (changes, reason) in refused {
        let refusal = admit(&gatekeeper, &key.sign(&claims_with(&changes))).await.unwrap_err();
        assert_eq!(told(&refusal), (401, reason), "{changes}");
    }
    let accepted = [
        json!({"aud": ["https://other.example", AUDIENCE]}),
        json!({"exp": now() - 2}),
        json!({"nbf": null}),
        json!({"nbf": now() + 3}),
    ];
    for changes in accepted {
        let admitted = admit(&gatekeeper, &key.sign(&claims_with(&changes))).await;
        assert!(admitted.is_ok(), "{changes}: {admitted:?}");
    }
}

#[tokio::test]
async fn scopes_decide_what_somebody_may_do() {
    let key = Key::new("k1", Algorithm::ES256);
    let endpoint = Endpoint::of(&[&key]).await;
    let two = ["mcp:use".to_owned(), "mcp:more".to_owned()];
    let options = JwtOptions { required_scopes: two.to_vec(), ..endpoint.options() };
    let gatekeeper = gatekeeper(options).await;
    let enough = [
        (json!({"scope": "mcp:more mcp:use"}), Role::Client),
        (json!({"scope": null, "scp": ["mcp:use", "mcp:more"]}), Role::Client),
        (json!({"scope": null, "scp": "mcp:use mcp:more"}), Role::Client),
        (json!({"scope": "mcp:use mcp:more switchboard:operator"}), Role::Operator),
        (json!({"scope": "mcp:use mcp:more switchboard:operator switchboard:admin"}), Role::Admin),
        (json!({"scope": "mcp:use mcp:more", "role": "admin", "roles": ["admin"]}), Role::Client),
        (json!({"scope": "mcp:use mcp:more xswitchboard:admin"}), Role::Client),
    ];
    for (changes, role) in enough {
        let admitted = admit(&gatekeeper, &key.sign(&claims_with(&changes))).await.unwrap();
        assert_eq!(admitted.role, role, "{changes}");
    }
    for scope in [
        json!("mcp:use"),
        json!(""),
        json!(null),
        json!("switchboard:admin"),
        json!("mcp:usemcp:more"),
    ] {
        let token = key.sign(&claims_with(&json!({ "scope": scope })));
        let refusal = admit(&gatekeeper, &token).await.unwrap_err();
        assert_eq!(refusal, Refusal::InsufficientScope { needed: two.to_vec() }, "{scope}");
        assert_eq!(refusal.status(), 403);
        assert!(refusal.www_authenticate(None, &[]).contains(r#"scope="mcp:use mcp:more""#));
    }
}

#[tokio::test]
async fn a_person_is_the_same_in_all_programs() {
    let key = Key::new("k1", Algorithm::ES256);
    let endpoint = Endpoint::of(&[&key]).await;
    let gatekeeper = gatekeeper(endpoint.options()).await;
    let rows = [
        (json!({}), "ana", Some("ana"), None, None),
        (json!({"client_id": "vscode"}), "ana", Some("ana"), None, None),
        (json!({"sub": "b|c"}), "b%7Cc", Some("b|c"), None, None),
        (json!({"sub": "a\nb"}), "a%0Ab", None, None, None),
        (json!({"sub": null}), "|cursor", Some("cursor"), None, None),
        (json!({"sub": "|cursor"}), "%7Ccursor", Some("|cursor"), None, None),
        (
            json!({"email": "a@b.c", "name": "Ana B"}),
            "ana",
            Some("ana"),
            Some("a@b.c"),
            Some("Ana B"),
        ),
        (
            json!({"email": "a@b.c", "email_verified": true}),
            "ana",
            Some("ana"),
            Some("a@b.c"),
            None,
        ),
        (json!({"email": "a@b.c", "email_verified": false}), "ana", Some("ana"), None, None),
        (json!({"email": "a@b.c", "email_verified": "false"}), "ana", Some("ana"), None, None),
        (json!({"email": ["a@b.c"]}), "ana", Some("ana"), None, None),
        (json!({"email": "a@b.c\r\nX: y"}), "ana", Some("ana"), None, None),
        (json!({"preferred_username": "ab", "name": "Ana"}), "ana", Some("ana"), None, Some("ab")),
    ];
    for (changes, person, subject, email, name) in rows {
        let admitted = admit(&gatekeeper, &key.sign(&claims_with(&changes))).await.unwrap();
        let wanted = Identity {
            person: format!("jwt:{ISSUER}|{person}").into(),
            subject: subject.map(Into::into),
            email: email.map(Into::into),
            name: name.map(Into::into),
            key: None,
            scopes: Some("mcp:use".into()),
        };
        assert_eq!(*admitted.identity, wanted, "{changes}");
    }
}

#[tokio::test]
async fn new_rules_are_in_force_for_tokens_in_use() {
    let key = Key::new("k1", Algorithm::ES256);
    let endpoint = Endpoint::of(&[&key]).await;
    let rule = |claim: &str, set: &str, role: Option<Role>| ClaimRule {
        claim: claim.into(),
        values: vec!["sales".into()],
        grant: ClaimGrant {
            role,
            rule: AccessRule { toolsets: Some(vec![set.into()]), ..AccessRule::ALL },
            ..ClaimGrant::default()
        },
    };
    let grants = |rules| JwtGrants { rules, otherwise: None };
    let options = JwtOptions {
        grants: grants(Some(vec![rule("groups", "crm", None)])),
        ..endpoint.options()
    };
    let gatekeeper = gatekeeper(options).await;
    let mut versions = gatekeeper.access_versions();
    let token = key.sign(&claims_with(&json!({"groups": ["sales"]})));
    let other = key.sign(&claims_with(&json!({"sub": "ben", "groups": {"sales": 1}})));
    let admitted = admit(&gatekeeper, &token).await.unwrap();
    let stranger = admit(&gatekeeper, &other).await.unwrap();
    let crm = admitted.access.load();
    assert!(!crm.has_all_tools());
    assert_eq!(*stranger.access.load(), Access::none(), "its claim is no list");
    assert_eq!(admitted.role, Role::Client);

    gatekeeper.set_grants(&grants(Some(vec![rule("groups", "mail", Some(Role::Operator))])));
    assert!(versions.has_changed().unwrap());
    assert_ne!(*admitted.access.load(), *crm, "also where the token is in use");
    assert_eq!(admit(&gatekeeper, &token).await.unwrap().role, Role::Operator);
    versions.mark_unchanged();
    gatekeeper.set_grants(&grants(Some(vec![rule("groups", "mail", Some(Role::Operator))])));
    assert!(!versions.has_changed().unwrap(), "the same rules change nothing");
    gatekeeper.set_grants(&grants(None));
    assert!(admitted.access.load().has_all_tools() && stranger.access.load().has_all_tools());
}

#[tokio::test]
async fn two_subjects_never_have_one_id() {
    let key = Key::new("k1", Algorithm::ES256);
    let endpoint = Endpoint::of(&[&key]).await;
    let gatekeeper = gatekeeper(endpoint.options()).await;
    let rows = [
        (json!({}), "cursor|ana"),
        (json!({"client_id": "a|b", "sub": "c"}), "a%7Cb|c"),
        (json!({"client_id": "a", "sub": "b|c"}), "a|b%7Cc"),
        (json!({"client_id": "a", "sub": "b%7Cc"}), "a|b%257Cc"),
        (json!({"client_id": null, "azp": "vscode"}), "vscode|ana"),
        (json!({"client_id": null}), "|ana"),
        (json!({"sub": "a\nb"}), "cursor|a%0Ab"),
    ];
    for (changes, wanted) in rows {
        let admitted = admit(&gatekeeper, &key.sign(&claims_with(&changes))).await.unwrap();
        assert_eq!(&*admitted.id, format!("jwt:{ISSUER}|{wanted}"));
    }
    let renewed =
        key.sign(&claims_with(&json!({"exp": now() + 900, "jti": "2", "name": "Ana\u{7}"})));
    let admitted = admit(&gatekeeper, &renewed).await.unwrap();
    assert_eq!(
        (&*admitted.id, admitted.name.as_deref()),
        (&*format!("jwt:{ISSUER}|cursor|ana"), Some("Ana"))
    );
}

/// A token with this header and an arbitrary signature.
fn unsigned(header: &Value, signature: &str) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{signature}", part(header), part(&claims()))
}

#[tokio::test]
async fn no_token_chooses_its_own_algorithm() {
    let key = Key::new("k1", Algorithm::RS256);
    let (other, foreign) = (Key::new("k2", Algorithm::ES256), Key::new("k1", Algorithm::RS256));
    let pss = Key::new("k1", Algorithm::PS256);
    let mut only_rs256 = key.public();
    only_rs256["alg"] = json!("RS256");
    let shared =
        json!({"kty": "oct", "kid": "shared", "k": URL_SAFE_NO_PAD.encode("hush"), "alg": "HS256"});
    let keys = vec![only_rs256.clone(), other.public(), shared];
    let endpoint = Endpoint::new(Answer::Keys(keys)).await;
    let gatekeeper = gatekeeper(endpoint.options()).await;

    let with = |algorithm, id: &str| Header { kid: Some(id.into()), ..Header::new(algorithm) };
    let hs = |secret: &[u8], id: &str| {
        encode(&with(Algorithm::HS256, id), &claims(), &EncodingKey::from_secret(secret)).unwrap()
    };
    let modulus = only_rs256["n"].as_str().unwrap();
    let crit = Header { crit: Some(vec!["exp".into()]), ..with(Algorithm::RS256, "k1") };
    // The token contains its own signing key.
    let own_key = Header {
        jwk: serde_json::from_value(foreign.public()).unwrap(),
        jku: Some("http://127.0.0.1:1/jwks".into()),
        ..with(Algorithm::RS256, "k1")
    };
    let mut tampered = key.sign(&claims()).split('.').map(str::to_owned).collect::<Vec<_>>();
    tampered[1] = URL_SAFE_NO_PAD.encode(claims_with(&json!({"sub": "root"})).to_string());
    let tokens = [
        ("none", unsigned(&json!({"alg": "none", "kid": "k1"}), "")),
        ("None", unsigned(&json!({"alg": "None", "kid": "k1"}), "AAAA")),
        ("no algorithm", unsigned(&json!({"kid": "k1"}), "AAAA")),
        ("an empty signature", unsigned(&json!({"alg": "RS256", "kid": "k1"}), "")),
        ("HS256 with the public key", hs(only_rs256.to_string().as_bytes(), "k1")),
        ("HS256 with the modulus", hs(&URL_SAFE_NO_PAD.decode(modulus).unwrap(), "k1")),
        ("HS256 with a published secret", hs(b"hush", "shared")),
        ("a key for another algorithm", unsigned(&json!({"alg": "RS256", "kid": "k2"}), "AAAA")),
        ("PS256 where the key says RS256", pss.sign(&claims())),
        ("a foreign key with a known id", foreign.sign(&claims())),
        ("a key in the token", foreign.sign_with(&own_key, &claims())),
        ("crit", key.sign_with(&crit, &claims())),
        ("other claims under the signature", tampered.join(".")),
        ("four parts", format!("{}.AAAA", key.sign(&claims()))),
        ("two parts", "a.b".to_owned()),
        ("no parts", "....".to_owned()),
    ];
    for (what, token) in tokens {
        let refusal = admit(&gatekeeper, &token).await.expect_err(what);
        assert!(matches!(refusal, Refusal::BadCredentials(_)), "{what}: {refusal:?}");
    }
    assert!(admit(&gatekeeper, &key.sign(&claims())).await.is_ok(), "the real one is let in");
    assert_eq!(endpoint.asked(), 1, "none of them made us ask the issuer");
}

#[tokio::test]
async fn a_token_without_a_key_id_needs_a_single_fitting_key() {
    let (one, two) = (Key::new("k1", Algorithm::ES256), Key::new("k2", Algorithm::RS256));
    let endpoint = Endpoint::of(&[&one, &two]).await;
    let header = Header::new(Algorithm::ES256);
    let token = one.sign_with(&header, &claims());
    let before = gatekeeper(endpoint.options()).await;
    assert!(admit(&before, &token).await.is_ok());

    let three = Key::new("k3", Algorithm::ES256);
    endpoint.answer(Endpoint::keys(&[&one, &two, &three]));
    let after = gatekeeper(endpoint.options()).await;
    let refusal = admit(&after, &token).await.unwrap_err();
    assert!(refusal.message().contains("`kid`"), "{refusal:?}");
}

#[tokio::test]
async fn a_new_key_is_looked_for_once_however_many_ask() {
    let (old, new) = (Key::new("k1", Algorithm::ES256), Key::new("k2", Algorithm::ES256));
    let endpoint = Endpoint::of(&[&old]).await;
    let gatekeeper = gatekeeper(endpoint.options()).await;
    let (with_old, with_new) = (key_token(&old), key_token(&new));
    assert!(admit(&gatekeeper, &with_old).await.is_ok());
    endpoint.answer(Endpoint::keys(&[&new]));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (gatekeeper, token) = (Arc::clone(&gatekeeper), with_new.clone());
        asking.spawn(async move { admit(&gatekeeper, &token).await.is_ok() });
    }
    assert!(asking.join_all().await.into_iter().all(|admitted| admitted));
    assert_eq!(endpoint.asked(), 2, "one at the start, one for all of them");

    // The old key is gone, and the cached token that it had verified is refused too.
    assert_eq!(told(&admit(&gatekeeper, &with_old).await.unwrap_err()), UNKNOWN_KEY);
    for n in 0..20 {
        let made_up = Key::new(&format!("made-up-{n}"), Algorithm::ES256);
        let refusal = admit(&gatekeeper, &key_token(&made_up)).await.unwrap_err();
        assert_eq!(told(&refusal), UNKNOWN_KEY);
    }
    assert_eq!(endpoint.asked(), 2, "made-up keys are not asked about again and again");
}

fn key_token(key: &Key) -> String {
    key.sign(&claims())
}

#[tokio::test]
async fn the_last_known_keys_go_on_while_the_issuer_is_down() {
    let (known, newer) = (Key::new("k1", Algorithm::ES256), Key::new("k2", Algorithm::ES256));
    let answers = [
        Answer::Status(StatusCode::INTERNAL_SERVER_ERROR),
        Answer::Text("<html>sign in</html>".into()),
        Answer::Text(json!({"keys": []}).to_string()),
        Answer::Text(format!("{{\"keys\": [], \"x\": \"{}\"}}", "x".repeat(300 * 1024))),
    ];
    for answer in answers {
        let endpoint = Endpoint::of(&[&known]).await;
        let gatekeeper = gatekeeper(endpoint.options()).await;
        endpoint.answer(answer);
        let refusal = admit(&gatekeeper, &key_token(&newer)).await.unwrap_err();
        assert_eq!(told(&refusal), UNAVAILABLE);
        assert_eq!(endpoint.asked(), 2);
        assert!(admit(&gatekeeper, &key_token(&known)).await.is_ok());
    }
}

#[tokio::test]
async fn an_issuer_that_is_down_at_the_start_is_asked_when_a_token_comes() {
    let key = Key::new("k1", Algorithm::ES256);
    let endpoint = Endpoint::new(Answer::Status(StatusCode::BAD_GATEWAY)).await;
    let gatekeeper = gatekeeper(endpoint.options()).await;
    assert!(!gatekeeper.is_open(), "an issuer that is down opens no door");
    assert_eq!(gatekeeper.admit(&headers(&[])).await, Err(Refusal::Missing));
    endpoint.answer(Endpoint::keys(&[&key]));
    assert!(admit(&gatekeeper, &key_token(&key)).await.is_ok());
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_is_not_waited_for_forever() {
    let endpoint = Endpoint::new(Answer::Silence(Duration::from_mins(1))).await;
    let begun = tokio::time::Instant::now();
    let gatekeeper = gatekeeper(endpoint.options()).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(!gatekeeper.is_open());
}

#[tokio::test]
async fn keys_are_not_taken_from_another_origin() {
    let key = Key::new("k1", Algorithm::ES256);
    let elsewhere = Endpoint::of(&[&key]).await;
    let endpoint = Endpoint::new(Answer::Redirect(elsewhere.url.to_string())).await;
    let gatekeeper = gatekeeper(endpoint.options()).await;
    let refusal = admit(&gatekeeper, &key_token(&key)).await.unwrap_err();
    assert_eq!(told(&refusal), UNAVAILABLE);
    assert_eq!(elsewhere.asked(), 0);
}

#[tokio::test]
async fn keys_may_come_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("jwks.json");
    let start = || async {
        let jwt = Some(options(KeySetSource::File(file.clone())));
        Gatekeeper::new(Store::in_memory().await.unwrap(), GatekeeperOptions { jwt }).await
    };
    let error = start().await.unwrap_err();
    assert!(matches!(error, AuthError::JwksFile { .. }), "{error:?}");
    assert!(error.to_string().contains("jwks.json"), "{error}");

    let (one, two) = (Key::new("k1", Algorithm::EdDSA), Key::new("k2", Algorithm::EdDSA));
    std::fs::write(&file, json!({"keys": [one.public()]}).to_string()).unwrap();
    let gatekeeper = start().await.unwrap();
    assert!(admit(&gatekeeper, &key_token(&one)).await.is_ok());
    std::fs::write(&file, json!({"keys": [two.public()]}).to_string()).unwrap();
    assert!(admit(&gatekeeper, &key_token(&two)).await.is_ok());
}

#[tokio::test]
async fn a_remembered_token_ends_when_it_expires() {
    let key = Key::new("k1", Algorithm::ES256);
    let endpoint = Endpoint::of(&[&key]).await;
    let no_leeway = JwtOptions { leeway: Duration::ZERO, ..endpoint.options() };
    let gatekeeper = gatekeeper(no_leeway).await;
    let token = key.sign(&claims_with(&json!({"exp": now() + 2})));
    assert!(admit(&gatekeeper, &token).await.is_ok());
    // Tokens expire by the wall clock, which cannot be simulated here.
    tokio::time::sleep(Duration::from_millis(3100)).await;
    let refusal = admit(&gatekeeper, &token).await.unwrap_err();
    assert_eq!(told(&refusal), (401, "the token has expired"));
}

#[tokio::test]
async fn keys_and_tokens_live_side_by_side() {
    let issuer_key = Key::new("k1", Algorithm::ES256);
    let endpoint = Endpoint::of(&[&issuer_key]).await;
    let store = Store::in_memory().await.unwrap();
    let made = NewKey::add(&store, KeyDraft::new("laptop", Role::Admin)).await.unwrap();
    let options = GatekeeperOptions { jwt: Some(endpoint.options()) };
    let gatekeeper = Gatekeeper::new(store, options).await.unwrap();
    assert_eq!(admit(&gatekeeper, made.key.expose()).await.unwrap().role, Role::Admin);
    let token = key_token(&issuer_key);
    assert_eq!(admit(&gatekeeper, &token).await.unwrap().role, Role::Client);
    let refusal = gatekeeper.admit(&headers(&[("x-api-key", &token)])).await.unwrap_err();
    assert!(refusal.message().contains("not known"), "a token is no key: {refusal:?}");
}

#[tokio::test]
async fn the_metadata_names_the_resource_and_its_issuer() {
    let endpoint = Endpoint::of(&[&Key::new("k1", Algorithm::ES256)]).await;
    let gatekeeper = gatekeeper(endpoint.options()).await;
    let wanted = json!({
        "resource": AUDIENCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["mcp:use"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Switchboard",
    });
    assert_eq!(gatekeeper.resource_metadata(), Some(wanted));
}
