//! No printable output contains a secret.

use std::path::Path;

use switchboard_config::{ConfigInput, Loaded, Problems, SourceFile, load};
use switchboard_model::{
    ClientProof, Endpoint, OAuthGrant, OwnClient, Secret, SigningAlgorithm, UpstreamAuth,
};

use crate::support::{API_KEY, BEARER, EVERYTHING, EVERYTHING_ENV, load_with, with_server};

const SECRET: &str = "hunter2-s3cret";

/// Everything that the outcome of a load can print.
fn printed(outcome: &Result<Loaded, Problems>) -> String {
    match outcome {
        Ok(loaded) => {
            let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
            format!(
                "{loaded:?}\n{loaded:#?}\n{}\n{}\n{}",
                loaded.to_yaml(),
                loaded.to_json(),
                warnings.join("\n")
            )
        }
        Err(problems) => format!("{problems}\n{problems:?}\n{}", problems.to_json()),
    }
}

fn check(entry: &str, env: &[(&str, &str)]) {
    let text = with_server(entry);
    let outcome = load_with(Some(&text), env);
    let printed = printed(&outcome);
    assert!(!printed.contains(SECRET), "{entry}\n{printed}");
    // The second word of a malformed value is not quoted either.
    assert!(!printed.contains("s3cret"), "{entry}\n{printed}");
}

#[test]
fn a_valid_file_shows_none() {
    let loaded = load_with(Some(EVERYTHING), &EVERYTHING_ENV);
    let Endpoint::StreamableHttp {
        headers,
        auth: UpstreamAuth::BearerFile { path, token: bearer },
        ..
    } = &loaded.as_ref().unwrap().plan.servers[0].spec.endpoint
    else {
        panic!("http")
    };
    assert_eq!(path, Path::new("/etc/switchboard/token.txt"), "so that it can be read again");
    assert_eq!(headers["X-Api-Key"].expose(), API_KEY);
    assert_eq!(bearer.expose(), BEARER);
    let printed = printed(&loaded);
    for secret in [API_KEY, BEARER, "w0rk", "blue", "debug"] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
}

#[test]
fn literal_secrets_in_every_place_and_in_every_kind_of_mistake() {
    let rows = [
        "- name: a\n  url: http://h\n  mode: strict\n  auth: {bearer: hunter2-s3cret}",
        "- name: a\n  url: http://h.example\n  mode: strict\n  auth:\n    bearer: hunter2-s3cret",
        "- name: a\n  url: http://h\n  mode: strict\n  auth: hunter2-s3cret",
        "- name: a\n  url: http://h\n  mode: strict\n  auth: [hunter2-s3cret]",
        "- name: a\n  url: http://h\n  mode: strict\n  auth:\n    bearr: hunter2-s3cret",
        "- name: a\n  url: http://h\n  mode: strict\n  auth: {token: hunter2-s3cret}",
        "- name: a\n  url: http://h\n  mode: strict\n  authh: {bearer: hunter2-s3cret}",
        "- name: a\n  url: http://h\n  mode: strict\n  bearer: hunter2-s3cret",
        "- name: a\n  url: http://h\n  mode: strict\n  headers: {X: hunter2-s3cret}",
        "- name: a\n  url: http://h\n  mode: strict\n  headers: {'X Y': hunter2-s3cret}",
        "- name: a\n  url: http://h\n  mode: strict\n  headers: hunter2-s3cret",
        "- name: a\n  url: http://h\n  mode: strict\n  headers:\n    X: [hunter2-s3cret]",
        "- name: a\n  url: http://h\n  mode: strict\n  headers:\n    X: \"hunter2-s3cret\\n\"",
        "- name: a\n  url: http://h\n  mode: strict\n  headers:\n    X: |\n      hunter2-s3cret\n      hunter2-s3cret",
        "- name: a\n  url: http://h\n  mode: strict\n  headers:\n    X: hunter2-s3cret\n    X: hunter2-s3cret",
        "- name: a\n  url: http://h\n  mode: strict\n  headers:\n    X: \"hunter2-s3cret",
        "- name: a\n  url: http://h\n  mode: strict\n  env: {X: hunter2-s3cret}",
        "- name: a\n  command: x\n  mode: strict\n  env: {X: hunter2-s3cret, 'a=b': hunter2-s3cret}",
        "- name: a\n  command: x\n  mode: strict\n  envs:\n    X: hunter2-s3cret",
        "- name: a\n  url: http://u:hunter2-s3cret@h/\n  mode: strict",
        "- name: a\n  url: ftp://u:hunter2-s3cret@h/\n  mode: strict",
        "- name: a\n  url: http://h/?key=hunter2-s3cret\n  mode: strict\n  command: x",
        "- {name: a, url: 'http://h', mode: strict, auth: {bearer: hunter2-s3cret}, foo: 1}",
        "- {name: a, command: x, mode: strict, \"\\x65nv\": {X: hunter2-s3cret}, foo: 1}",
        "- name: a\n  url: http://h\n  mode: strict\n  auth: {bearer: 'hunter2-s3cret${NONE}'}",
        "- name: a\n  url: http://h\n  mode: strict\n  auth:\n    bearer: ${NONE:-hunter2-s3cret\u{1}}",
    ];
    for entry in rows {
        check(entry, &[]);
    }
}

#[test]
fn expanded_values_in_every_field() {
    let env = [("S", SECRET)];
    let fields = [
        "mode",
        "transport",
        "url",
        "command",
        "cwd",
        "toolset",
        "era",
        "connect_timeout",
        "required",
        "default_tool_config",
        "args",
        "prompts",
        "poll_interval",
        "headers",
        "auth",
        "env",
        "nonsense",
    ];
    for field in fields {
        check(&format!("- name: a\n  {field}: ${{S}}"), &env);
        check(&format!("- name: a\n  {field}: x${{S}}y"), &env);
        check(&format!("- name: a\n  {field}: [\"${{S}}\"]"), &env);
    }
    check(
        "- name: a\n  command: ${S}\n  args: ['${S}']\n  cwd: ${S}\n  mode: strict\n  toolset: ${S}",
        &env,
    );
    check("- name: a\n  url: http://${S}/${S}?x=${S}\n  mode: strict", &env);
    // Also if a name comes from a variable that holds a secret.
    let named = "- name: ${S}\n  url: http://h.example\n  mode: dynamic\n  auth: {bearer: '${S}'}";
    check(named, &env);
    check(&format!("{named}\n{named}"), &env);
    check(
        "- name: ${S}\n  url: http://h.example\n  mode: strict\n  default_tool_config: {}\n  auth: {bearer: '${S}'}",
        &env,
    );
}

#[test]
fn values_of_overriding_variables() {
    let base = "- name: a\n  url: http://h\n  mode: strict";
    for path in ["AUTH__BEARER", "AUTH", "HEADERS__X", "HEADERS", "HEADERS__A B", "ENV__X", "ENV"] {
        let name = format!("SWITCHBOARD__TOOLBOX__MCPS__0__{path}");
        check(base, &[(&name, SECRET)]);
        check(base, &[(&name, &format!("{{\"x\": \"{SECRET}\""))]);
        check(base, &[(&name, &format!("[\"{SECRET}\"]"))]);
    }
}

#[test]
fn an_expanded_value_is_not_expanded_again() {
    let text = with_server("- name: a\n  url: http://h\n  mode: strict\n  auth: {bearer: '${T}'}");
    for value in ["file:/etc/switchboard/token.txt", "${API_KEY}"] {
        let loaded = load_with(Some(&text), &[("T", value), ("API_KEY", "x")]).unwrap();
        let Endpoint::StreamableHttp { auth: UpstreamAuth::Bearer(bearer), .. } =
            &loaded.plan.servers[0].spec.endpoint
        else {
            panic!("http")
        };
        assert_eq!(bearer.expose(), value);
    }
}

/// An address is shown as written, without the values of variables.
#[test]
fn a_place_shows_no_expanded_value() {
    let yaml = "
switchboard:
  toolbox:
    mcps:
      - {name: web, url: 'http://me:pw@h/${TOKEN}/mcp?k=v', mode: strict}
      - {name: plain, url: 'http://me:pw@h/mcp?k=v', mode: strict}
      - {name: child, command: run, args: [--token, '${TOKEN}', plain], mode: strict}
";
    let env = [("TOKEN".to_owned(), "hunter2".to_owned())];
    let file = SourceFile { name: "c.yaml", directory: Path::new("."), text: yaml };
    let nothing = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let loaded = load(&ConfigInput {
        file: Some(file),
        env: &env,
        read_secret: &nothing,
        read_keyring: None,
    })
    .unwrap();
    let places: Vec<_> = loaded.plan.servers.iter().map(|server| &*server.spec.place).collect();
    assert_eq!(
        places,
        ["http://***@h/${TOKEN}/mcp?***", "http://***@h/mcp?k=***", "run --token ${TOKEN} plain"]
    );
    let referenced: Vec<_> =
        loaded.plan.servers.iter().map(|server| server.spec.referenced.clone()).collect();
    let token = || vec![Secret::new("hunter2")];
    assert_eq!(referenced, [token(), vec![], token()]);
    assert!(!loaded.to_yaml().contains("hunter2") && !loaded.to_yaml().contains("pw@"));
    assert!(loaded.to_yaml().contains("${TOKEN}"), "what was written may be shown");
}

#[test]
fn the_settings_of_a_sign_in_are_read_and_not_shown() {
    let text = with_server(
        "- name: a\n  url: https://h\n  mode: strict\n  auth:\n    oauth: {client_id: us, client_secret: \
         'hunter2-s3cret', client_metadata_url: 'https://example.com/us.json', scopes: [a, b], redirect_port: 8765}",
    );
    let outcome = load_with(Some(&text), &[]);
    let plan = &outcome.as_ref().unwrap().plan;
    let (_, settings) = plan.servers[0].spec.endpoint.oauth().unwrap();
    let OAuthGrant::SignIn(client) = &settings.grant else { panic!("{settings:?}") };
    assert_eq!(client.id.as_deref(), Some("us"));
    assert_eq!(client.secret.as_ref().unwrap().expose(), SECRET);
    assert_eq!(client.metadata_url.as_ref().unwrap().path(), "/us.json");
    assert_eq!((settings.scopes.join(" ").as_str(), client.redirect.port), ("a b", Some(8765)));
    assert!(!printed(&outcome).contains(SECRET));
    let bare = with_server("- name: a\n  url: https://h\n  mode: strict\n  auth: {oauth: {}}");
    let bare = load_with(Some(&bare), &[]).unwrap();
    assert!(bare.plan.servers[0].spec.endpoint.oauth().is_some());
}

#[test]
fn the_proof_of_an_own_client_is_read_and_not_shown() {
    let with = |proof: &str| {
        with_server(&format!(
            "- name: a\n  url: https://h\n  mode: strict\n  auth:\n    oauth: {{grant: client_credentials, \
             client_id: us, {proof}}}",
        ))
    };
    let key = |algorithm| ClientProof::Key { pem: Secret::new(SECRET), algorithm };
    for (written, proof) in [
        ("client_secret: '${S}'", ClientProof::Secret(Secret::new(SECRET))),
        ("private_key: '${S}'", key(SigningAlgorithm::Es256)),
        ("private_key: '${S}', signing_algorithm: RS512", key(SigningAlgorithm::Rs512)),
    ] {
        let outcome = load_with(Some(&with(written)), &[("S", SECRET)]);
        let plan = &outcome.as_ref().unwrap().plan;
        let (_, settings) = plan.servers[0].spec.endpoint.oauth().unwrap();
        let expected =
            OAuthGrant::ClientCredentials(OwnClient { id: "us".into(), proof, issuer: None });
        assert_eq!(settings.grant, expected, "{written}");
        assert!(!printed(&outcome).contains(SECRET), "{written}");
    }
}
