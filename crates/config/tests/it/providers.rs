//! The `providers` section: valid values, error messages, and secrets that are never shown.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{
    DeclarationKeys, Effort, ProviderAuth, ProviderKind, ProviderPlan, ToolStrategy,
};

use crate::support::{BEARER, load_with, problems};

macro_rules! check {
    ($name:literal, $entries:expr) => {
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!($name, problems(&with_providers($entries), &[]));
        });
    };
}

fn with_providers(entries: &str) -> String {
    let lines: Vec<_> = entries.lines().map(|line| format!("    {line}")).collect();
    format!("switchboard:\n  providers:\n{}\n", lines.join("\n"))
}

const FULL: &str = "\
- name: claude
  kind: anthropic
  base_url: https://claude.example.com
  api_key: ${KEY}
  model: claude-sonnet-5-5
  headers: {X-Team: '${TEAM}'}
  instructions: Be brief
  max_output_tokens: 4096
  temperature: 0.5
  top_p: 1
  effort: high
  show_thinking: true
  idle_timeout: 30s
  total_timeout: 5m
- {name: plan, kind: chatgpt, bearer: 'file:token.txt', account: acc_1}
- {name: google, kind: code-assist, bearer: '${KEY}', project: my-project}
- {name: local, kind: openai-chat, base_url: 'http://127.0.0.1:11434/v1', native_tools: false, react_template: 'Use {{ tool_names }}'}
- {name: gpt, kind: openai}
- {name: flash, kind: gemini}
- {name: script, kind: demo, strategy: react, models: {'big*': {strategy: native}}}";

const ENV: [(&str, &str); 2] = [("KEY", "key-0123-s3cret"), ("TEAM", "blue-s3cret")];

#[test]
fn everything_is_carried_over() {
    let loaded = load_with(Some(&with_providers(FULL)), &ENV).unwrap();
    let providers = &loaded.plan.providers;
    let claude = &providers[0];
    assert_eq!((claude.name.as_str(), claude.kind), ("claude", ProviderKind::Anthropic));
    assert_eq!(claude.base_url.as_ref().unwrap().as_str(), "https://claude.example.com/");
    assert!(matches!(&claude.auth, ProviderAuth::ApiKey(key) if key.expose() == ENV[0].1));
    assert_eq!(claude.headers["X-Team"].expose(), ENV[1].1);
    assert_eq!(claude.model.as_deref(), Some("claude-sonnet-5-5"));
    let settings = &claude.settings;
    assert_eq!(settings.instructions.as_deref(), Some("Be brief"));
    assert_eq!((settings.max_output_tokens, settings.effort), (Some(4096), Some(Effort::High)));
    assert_eq!((settings.temperature, settings.top_p), (Some(0.5), Some(1.0)));
    assert!(settings.show_thinking);
    assert_eq!(claude.idle_timeout, Duration::from_secs(30));
    assert_eq!(claude.total_timeout, Duration::from_mins(5));
    assert!(matches!(&providers[1].auth, ProviderAuth::Bearer(token) if token.expose() == BEARER));
    assert_eq!(providers[1].account.as_deref(), Some("acc_1"));
    assert_eq!(providers[2].project.as_deref(), Some("my-project"));
    let local = &providers[3];
    assert_eq!(
        (local.has_native_tools, local.default_strategy(None)),
        (false, ToolStrategy::React)
    );
    assert_eq!(local.react_template.as_deref(), Some("Use {{ tool_names }}"));
    let script = &providers[6];
    assert_eq!(script.named_strategy(Some("small")), Some(ToolStrategy::React));
    assert_eq!(script.named_strategy(Some("big-1")), Some(ToolStrategy::Native));
    assert_eq!(providers[4], ProviderPlan::new("gpt", ProviderKind::OpenAi), "the rest is default");
    let kinds: Vec<_> = providers[3..].iter().map(|provider| provider.kind.as_str()).collect();
    assert_eq!(kinds, ["openai-chat", "openai", "gemini", "demo"]);
}

#[test]
fn what_is_shown_has_no_secret_and_loads_again() {
    let loaded = load_with(Some(&with_providers(FULL)), &ENV).unwrap();
    let shown = loaded.to_yaml();
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("shown", shown);
    });
    let printed = format!("{shown}\n{loaded:?}\n{:?}\n{}", loaded.plan, loaded.to_json());
    for secret in ["s3cret", BEARER] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
    let again = load_with(Some(&shown), &ENV).unwrap();
    assert_eq!(again.plan.providers.len(), loaded.plan.providers.len());
    assert_eq!(again.plan.providers[0].settings, loaded.plan.providers[0].settings);
}

#[test]
fn variables_override_it() {
    let env = [
        ENV.as_slice(),
        &[
            ("SWITCHBOARD__PROVIDERS__0__MODEL", "claude-opus-5-5"),
            ("SWITCHBOARD__PROVIDERS__0__API_KEY", "key-of-the-environment"),
            ("SWITCHBOARD__PROVIDERS__0__TEMPERATURE", "0.25"),
            ("APP_MYAI__PROVIDERS__0__MAX_OUTPUT_TOKENS", "7"),
            ("SWITCHBOARD__PROVIDERS__0__STRATEGY", "react"),
        ],
    ]
    .concat();
    let loaded = load_with(Some(&with_providers(FULL)), &env).unwrap();
    let claude = &loaded.plan.providers[0];
    assert_eq!(claude.model.as_deref(), Some("claude-opus-5-5"));
    assert!(matches!(&claude.auth, ProviderAuth::ApiKey(key) if key.expose().ends_with("ment")));
    assert_eq!(claude.settings.temperature, Some(0.25));
    assert_eq!(claude.settings.max_output_tokens, Some(7));
    assert_eq!(claude.strategy, Some(ToolStrategy::React));
    assert!(!loaded.to_yaml().contains("key-of-the-environment"));
    let whole = [("SWITCHBOARD__PROVIDERS", r#"[{"name": "d", "kind": "demo"}]"#)];
    let loaded = load_with(None, &whole).unwrap();
    assert_eq!(loaded.plan.providers, [ProviderPlan::new("d", ProviderKind::Demo)]);
}

#[test]
fn bad_providers() {
    check!("unknown_kind", "- {name: a, kind: claude}\n- {name: b, kind: openaichat}");
    check!("missing_keys", "- {name: a}\n- {kind: demo}\n- {}");
    check!("unknown_key", "- name: a\n  kind: openai\n  api_kye: hunter2-s3cret\n  modell: m");
    check!("two_of_one_name", "- {name: a, kind: demo}\n- {name: a, kind: openai}");
    check!(
        "two_credentials",
        "- name: a\n  kind: anthropic\n  api_key: hunter2-s3cret\n  bearer: hunter2-s3cret"
    );
    check!(
        "credentials_in_headers_too",
        "- name: a\n  kind: anthropic\n  api_key: hunter2-s3cret\n  headers: {X-API-Key: hunter2-s3cret}"
    );
    check!(
        "what_kinds_need",
        "\
- {name: a, kind: chatgpt}
- {name: b, kind: code-assist}
- {name: c, kind: openai-chat}"
    );
    check!(
        "what_kinds_do_not_take",
        "\
- {name: a, kind: openai, account: acc, project: p}
- {name: b, kind: chatgpt, bearer: '${NONE:-x}', project: p}
- {name: c, kind: demo, base_url: 'http://h', bearer: hunter2-s3cret}"
    );
    check!(
        "bad_values",
        "\
- name: a b
  kind: openai
  base_url: ftp://h
  api_key: ' '
  model: ''
  max_output_tokens: 0
  temperature: 3
  top_p: -1
  effort: huge
  show_thinking: often
  idle_timeout: 0
  total_timeout: soon"
    );
    check!(
        "bad_addresses",
        "\
- name: a
  kind: openai
  base_url: https://me:hunter2-s3cret@h.example
- name: b
  kind: openai
  base_url: https://h.example/v1?key=hunter2-s3cret
- name: c
  kind: openai
  base_url: nowhere"
    );
    check!("providers_is_a_map", "a: {kind: demo}");
}

#[test]
fn bad_strategies_and_templates() {
    check!(
        "bad_strategies",
        "\
- name: a
  kind: demo
  strategy: reactive
- name: b
  kind: demo
  strategy: native
  native_tools: false"
    );
    check!(
        "bad_react_templates",
        "\
- name: a
  kind: demo
  react_template: |
    Tools:
    {{ tols }}
- name: b
  kind: demo
  react_template: '{% for tool in tools %}'
- name: c
  kind: demo
  react_template: '{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}'"
    );
}

#[test]
fn a_key_that_travels_in_the_open_is_worth_a_warning() {
    let warnings = |entry: &str| {
        let loaded = load_with(Some(&with_providers(entry)), &[]).unwrap();
        loaded.warnings.iter().map(ToString::to_string).collect::<String>()
    };
    let text = "- {name: a, kind: openai-chat, base_url: 'http://gpu.example/v1', api_key: hunter2-s3cret}";
    insta::assert_snapshot!(warnings(text), @r"
    warning: switchboard.providers[0].base_url: the credentials travel unencrypted to gpu.example
      --> switchboard.yaml:3:46
       |
     3 | (not shown: this line may hold a secret)
       |
       = help: use https where the provider offers it
    ");
    assert_eq!(warnings("- {name: a, kind: openai-chat, base_url: 'http://gpu.example/v1'}"), "");
    let near = "- {name: a, kind: openai-chat, base_url: 'http://127.0.0.1:1/v1', api_key: k}";
    assert_eq!(warnings(near), "");
}

#[test]
fn no_mistake_shows_a_secret() {
    let rows = [
        "- name: a\n  kind: openai\n  api_key: [hunter2-s3cret]",
        "- name: a\n  kind: openai\n  api_key: {x: hunter2-s3cret}",
        "- name: a\n  kind: openai\n  apikey: hunter2-s3cret",
        "- name: a\n  kind: openai\n  token: hunter2-s3cret",
        "- name: a\n  kind: openai\n  headers: hunter2-s3cret",
        "- name: a\n  kind: openai\n  headers: {'X Y': hunter2-s3cret}",
        "- name: a\n  kind: openai\n  api_key: \"hunter2-s3cret\\n\"",
        "- name: a\n  kind: openai\n  api_key: 'hunter2-s3cret${NONE}'",
        "- name: a\n  kind: openai\n  api_key: file:hunter2\n  bearer: hunter2-s3cret",
        "- {name: a, kind: openai, api_key: hunter2-s3cret, foo: 1}",
        "- name: a\n  kind: openai\n  api_key: hunter2-s3cret\n  api_key: hunter2-s3cret",
        "- name: a\n  kind: openai\n  api_key: \"hunter2-s3cret",
    ];
    for entry in rows {
        let printed = problems(&with_providers(entry), &[]);
        assert!(!printed.contains("s3cret") && printed.contains("error"), "{entry}\n{printed}");
    }
    for key in ["API_KEY", "BEARER", "HEADERS", "HEADERS__A B", "KIND", "BASE_URL", "EFFORT"] {
        let name = format!("SWITCHBOARD__PROVIDERS__0__{key}");
        let text = with_providers("- {name: a, kind: openai}");
        let is_secret = ["API_KEY", "BEARER", "HEADERS", "HEADERS__A B"].contains(&key);
        let printed = problems(&text, &[(&name, "[\"hunter2-s3cret\"]")]);
        assert!(!is_secret || !printed.contains("s3cret"), "{key}\n{printed}");
        let text = with_providers(&format!("- {{name: a, {}: '${{S}}'}}", key.to_lowercase()));
        let printed = problems(&text, &[("S", "hunter2-s3cret")]);
        assert!(!printed.contains("s3cret"), "{key}\n{printed}");
    }
}

const ACCOUNTS: &str = "\
- name: google
  kind: code-assist
  auth:
    kind: oauth
    issuer: https://login.example.com
    authorize_url: https://login.example.com/authorize
    token_url: https://login.example.com/token
    device_url: https://login.example.com/device
    revoke_url: https://login.example.com/revoke
    client_id: my-client
    client_secret: ${KEY}
    scopes: [openid, offline_access]
    redirect_port: 1455
    redirect_host: localhost
    redirect_path: /auth/callback
    extra_params: {access_type: offline}
    token_auth: json
  declaration_keys: both
- name: plan
  kind: chatgpt
  auth: {kind: token_file, path: ~/.x/auth.json, access_token: /tokens/access_token, account_id: /tokens/account_id}
  headers: {session_id: '${session}', X-Team: '${TEAM}-${session}'}
  credentials:
    work: {kind: token_file, path: work.json, access_token: /t, expires_at: /e}
    old: {kind: bearer, value: '${KEY}'}
- name: claude
  kind: anthropic
  system_blocks: [One, Two]
  credentials:
    work: {kind: api_key, value: 'file:token.txt'}";

#[test]
fn accounts_are_carried_over() {
    let loaded = load_with(Some(&with_providers(ACCOUNTS)), &ENV).unwrap();
    let [google, plan, claude] = loaded.plan.providers.as_slice() else { panic!() };
    let ProviderAuth::OAuth(issuer) = &google.auth else { panic!("{:?}", google.auth) };
    let shown = format!("{issuer:#?}");
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("described_issuer", shown);
    });
    assert_eq!(issuer.client_secret.as_ref().unwrap().expose(), ENV[0].1);
    assert_eq!(google.settings.declaration_keys, DeclarationKeys::Both);
    assert_eq!(google.credential(Some("home")), Some(&google.auth), "a further sign-in");
    let ProviderAuth::TokenFile(file) = &plan.auth else { panic!("{:?}", plan.auth) };
    assert_eq!(file.path, std::path::Path::new("~/.x/auth.json"));
    assert_eq!(file.access_token, "/tokens/access_token");
    assert_eq!(file.account_id.as_deref(), Some("/tokens/account_id"));
    assert_eq!(plan.headers["session_id"].expose(), "${session}");
    assert_eq!(plan.headers["X-Team"].expose(), "blue-s3cret-${session}");
    let Some(ProviderAuth::TokenFile(work)) = plan.credential(Some("work")) else { panic!() };
    assert!(work.path.is_absolute() || work.path.parent().is_some(), "below the configuration");
    assert_eq!(work.expires_at.as_deref(), Some("/e"));
    assert!(
        matches!(plan.credential(Some("old")), Some(ProviderAuth::Bearer(t)) if t.expose() == ENV[0].1)
    );
    assert_eq!(plan.credential(Some("home")), None);
    assert_eq!(claude.settings.system_blocks, ["One", "Two"]);
    assert!(
        matches!(claude.credential(Some("work")), Some(ProviderAuth::ApiKey(k)) if k.expose() == BEARER)
    );
}

#[test]
fn accounts_are_shown_without_secrets_and_load_again() {
    let loaded = load_with(Some(&with_providers(ACCOUNTS)), &ENV).unwrap();
    let shown = loaded.to_yaml();
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("shown_accounts", shown);
    });
    let printed = format!("{shown}\n{loaded:?}\n{:?}\n{}", loaded.plan, loaded.to_json());
    for secret in ["s3cret", BEARER] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
    let again = load_with(Some(&shown), &ENV).unwrap();
    let ProviderAuth::OAuth(issuer) = &again.plan.providers[0].auth else { panic!() };
    assert_eq!(issuer.token_url.as_ref().unwrap().as_str(), "https://login.example.com/token");
}

#[test]
fn bad_accounts() {
    check!(
        "oauth_without_the_rest",
        "- {name: a, kind: code-assist, auth: {kind: oauth}}\n\
         - {name: b, kind: code-assist, auth: {kind: oauth, token_url: 'https://h/t', client_id: c}}\n\
         - {name: c, kind: code-assist, auth: {}}"
    );
    check!(
        "addresses_of_issuers",
        "\
- name: a
  kind: anthropic
  auth:
    kind: oauth
    authorize_url: javascript:alert(1)
    token_url: http://login.example.com/token
    device_url: https://me:pw@h/d
    revoke_url: https://h/r#x
    client_id: c
    extra_params: {state: x}
    scopes: ['a b']"
    );
    check!(
        "keys_of_another_kind",
        "\
- {name: a, kind: anthropic, auth: {kind: token_file, path: f, access_token: t, client_id: c, value: hunter2-s3cret}}
- {name: b, kind: anthropic, api_key: hunter2-s3cret, auth: {kind: bearer, value: hunter2-s3cret}}
- {name: c, kind: demo, auth: {kind: bearer, value: hunter2-s3cret}}
- {name: d, kind: chatgpt, credentials: {default: {kind: api_key, value: hunter2-s3cret}, 'a/b': {kind: bearer}}}
- {name: e, kind: openai, system_blocks: [x], declaration_keys: both}"
    );
    check!("a_misplaced_token", "- {name: a, kind: anthropic, auth: hunter2-s3cret}");
}
