//! Unusual schemas and names, from a server through the whole program to every provider format.

use std::collections::BTreeSet;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use switchboard_test_support::Tool;

use crate::chat::{Api, Chat, PROVIDERS};
use crate::peer::{BOTH, Peer};
use crate::support::{Home, dynamic, server, yaml};

/// Names that every provider takes.
fn is_legal(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len())
        && name.chars().all(is_plain)
        && !name.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(
        json!({"type": "string"}),
        |inner, _| json!({"type": "object", "properties": {"in": inner}}),
    )
}

fn horrors() -> Vec<Tool> {
    let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}});
    let schemas = [
        (
            "any_of",
            json!({"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object"}]}),
        ),
        ("one_of", json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})),
        (
            "cycle",
            json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}),
        ),
        ("cycle_of_the_root", json!({"type": "object", "properties": {"again": {"$ref": "#"}}})),
        (
            "remote",
            json!({"type": "object", "properties": {"far": {"$ref": "http://127.0.0.1:9/s.json"}, "file": {"$ref": "file:///etc/passwd"}}}),
        ),
        ("lost", json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/lost"}}})),
        ("deep", nested(55)),
        (
            "missing",
            json!({"type": "object", "properties": {"a": {}}, "required": ["a", "b", "a"]}),
        ),
        ("empty", json!({})),
        ("boolean_parts", json!({"type": "object", "properties": {"any": true, "none": false}})),
        ("wide", json!({"type": "object", "properties": wide()})),
        (
            "malformed",
            json!({"type": "object", "required": true, "properties": {"a": {"type": 7, "enum": []}, "b": "string"}}),
        ),
        (
            "hidden",
            json!({"type": "object", "properties": {"a": {"type": "string", "description": "left\u{202E}right\u{0}"}}}),
        ),
    ];
    schemas.map(|(name, schema)| Tool::echo(name).schema(schema)).into()
}

fn wide() -> Map<String, Value> {
    (0..200)
        .map(|n| (format!("key {n}"), json!({"type": "string", "description": "x".repeat(100)})))
        .collect()
}

/// Unusual tool names.
fn named() -> Vec<Tool> {
    let long = "n".repeat(300);
    let names = [
        "a.b",
        "a_b",
        "a b",
        "a/b",
        "3d",
        "-",
        "bidi\u{202E}name",
        "bell\u{7}",
        "emoji \u{1F642}",
        "enable_toolset",
        &long,
    ];
    names.map(Tool::echo).into()
}

async fn world(tools: Vec<Tool>) -> (switchboard_test_support::ScriptedServer, Home) {
    let server = server(tools).await;
    let home = Home::new(yaml(&[], &[dynamic("odd", &server.url())]));
    (server, home)
}

/// Sees that a rendering is one that a provider would take, and that nothing was lost without a word.
async fn assert_sound(chat: &Chat, provider: &str, tools: &[String]) {
    let bare: Value = serde_json::from_str(&chat.bare(provider).await).unwrap();
    let rendering = chat.render(provider, "&explain=true").await;
    assert_eq!(rendering["tools"], bare, "{provider}");
    let names = |key: &str| -> Vec<String> {
        let list = rendering[key].as_array().unwrap();
        list.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let declared = names("explained");
    assert_eq!(rendering["count"], declared.len());
    let distinct: BTreeSet<_> = declared.iter().collect();
    assert_eq!(distinct.len(), declared.len(), "{provider}: a name twice in {declared:?}");
    assert!(declared.iter().all(|name| is_legal(name)), "{provider}: {declared:?}");
    let text = bare.to_string();
    let hidden = ["\u{202E}", "\\u202e", "\\u0000", "\\u0007"].map(|sign| text.contains(sign));
    // An MCP client gets what the server said, and knows what it deals with.
    let is_clean = provider == "mcp" || hidden == [false; 4];
    assert!(is_clean, "{provider} shows hidden characters: {hidden:?}");
    assert!(!text.contains("etc/passwd") || provider == "mcp", "{provider} refers to a file");
    for one in rendering["quarantined"].as_array().unwrap() {
        let reason = one["reason"].as_str().unwrap();
        assert!(reason.len() > 10 && reason.contains(' '), "{provider}: {one}");
    }
    let told: BTreeSet<String> =
        [declared, names("quarantined"), names("left_out")].concat().into_iter().collect();
    assert_eq!(told, tools.iter().cloned().collect(), "{provider} lost a tool without a word");
}

#[tokio::test]
async fn no_horror_of_a_server_spoils_a_rendering() {
    let fine = Tool::echo("fine")
        .schema(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    let tools = [horrors(), named(), vec![fine]].concat();
    let (server, home) = world(tools).await;
    let serve = home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let names = chat.names().await;
    assert!(names.len() >= 20 && names.contains(&"odd__fine".to_owned()), "{names:?}");
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    for provider in PROVIDERS {
        let began = tokio::time::Instant::now();
        assert_sound(&chat, provider, &names).await;
        assert!(began.elapsed().as_secs() < 5, "{provider} is slow");
        assert!(chat.rendered(provider).await.contains(&"odd__fine".to_owned()), "{provider}");
    }
    // Every one can be called by the name that is shown, and reaches the tool that it stands for.
    let listed = chat.get("/tools").await;
    for tool in listed["tools"].as_array().unwrap() {
        let (name, own) = (tool["name"].as_str().unwrap(), tool["tool"].as_str().unwrap());
        assert!(is_legal(name), "{name}");
        let answer = chat.try_call(name, json!({"arguments": {"a": "x", "b": "y"}})).await;
        assert!(answer.status.is_success() || answer.status == 422, "{name}: {}", answer.body);
        if answer.status.is_success() {
            assert_eq!(server.stats().calls.last().unwrap().tool, own, "{name}");
        }
    }
    for era in BOTH {
        let client = Peer::open(era, &serve, &format!("/mcp/sessions/{}", chat.id)).await;
        assert_eq!(client.list().await, names);
    }
}

/// Five megabytes in one tool: it is shown or quarantined, and takes nothing from the others.
#[tokio::test]
async fn a_schema_of_five_megabytes_harms_nobody() {
    let text = "x".repeat(5_000);
    let keys =
        (0..1_000).map(|n| (format!("key_{n}"), json!({"type": "string", "description": text})));
    let schema = json!({"type": "object", "properties": keys.collect::<Map<_, _>>()});
    let (_server, home) = world(vec![Tool::echo("huge").schema(schema), Tool::echo("fine")]).await;
    let serve = home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    for provider in PROVIDERS {
        let began = tokio::time::Instant::now();
        let shown = chat.rendered(provider).await;
        assert!(shown.contains(&"odd__fine".to_owned()), "{provider}: {shown:?}");
        assert!(began.elapsed().as_secs() < 5, "{provider} is slow: {:?}", began.elapsed());
    }
    chat.call("odd__fine", json!({})).await;
}

/// What cannot be declared at all is said to be so, by name and with a reason, and the others are there.
#[tokio::test]
async fn offenders_are_quarantined_with_a_reason() {
    let tools = vec![
        Tool::echo("never").schema(json!(false)),
        Tool::echo("text").schema(json!({"type": "string"})),
        Tool::echo("list").schema(json!([1, 2])),
        Tool::echo(""),
        Tool::echo("twin"),
        Tool::echo("twin"),
        Tool::echo("fine"),
    ];
    let (_server, home) = world(tools).await;
    let serve = home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let names = chat.names().await;
    for provider in PROVIDERS {
        let rendering = chat.render(provider, "&explain=true").await;
        let shown = chat.rendered(provider).await;
        assert!(shown.contains(&"odd__fine".to_owned()), "{provider}: {rendering:#}");
        let quarantined = rendering["quarantined"].as_array().unwrap();
        for name in names.iter().filter(|name| !shown.contains(name)) {
            let why = quarantined.iter().find(|one| one["name"] == name.as_str());
            let why = why.unwrap_or_else(|| panic!("{provider} hides {name}: {rendering:#}"));
            assert!(why["reason"].as_str().unwrap().contains("schema"), "{why}");
        }
        for name in ["odd__never", "odd__text", "odd__list"] {
            assert!(!shown.contains(&name.to_owned()), "{provider} declares {name}");
        }
    }
    let said = home.line(&format!(
        "render --session {} --provider openai --explain --url {}",
        chat.id, serve.url
    ));
    let said = said.expect(0).stdout;
    for name in names.iter().filter(|name| !name.ends_with("fine") && !name.ends_with("twin")) {
        assert!(said.contains(&format!("{name} quarantined: ")), "{name} is not in:\n{said}");
    }
}

/// The properties of the only tool of a rendering.
fn properties(tools: &Value, provider: &str) -> Map<String, Value> {
    let one = &tools[0];
    let schema = match provider {
        "openai-chat" => &one["function"]["parameters"],
        "openai" => &one["parameters"],
        "anthropic" => &one["input_schema"],
        "gemini" => &one["functionDeclarations"][0]["parametersJsonSchema"],
        "gemini-parameters" => &one["functionDeclarations"][0]["parameters"],
        _ => &one["args_schema"],
    };
    let properties = schema["properties"].as_object();
    properties.unwrap_or_else(|| panic!("{provider}: {tools:#}")).clone()
}

#[tokio::test]
async fn renamed_keys_reach_the_server_under_their_own_names() {
    let originals = ["first name", "\u{1F642}", "2nd", "a.b", "$filter", "plain", &"k".repeat(300)];
    let described: Map<String, Value> = originals
        .iter()
        .map(|key| ((*key).to_owned(), json!({"type": "string", "description": key})))
        .collect();
    let schema = json!({"type": "object", "properties": described, "required": ["first name"]});
    let (server, home) = world(vec![Tool::echo("keys").schema(schema)]).await;
    let serve = home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let expected: Map<String, Value> =
        originals.iter().map(|key| ((*key).to_owned(), json!(key))).collect();
    for provider in
        ["openai", "openai-chat", "anthropic", "gemini", "gemini-parameters", "langchain"]
    {
        let tools: Value = serde_json::from_str(&chat.bare(provider).await).unwrap();
        let shown = properties(&tools, provider);
        assert_eq!(shown.len(), originals.len(), "{provider}: {tools:#}");
        assert!(shown.contains_key("plain"), "{provider}: what is fine stays");
        // The model answers with what it was shown; each property is described by its own name.
        let arguments: Map<String, Value> = shown
            .iter()
            .map(|(key, property)| (key.clone(), property["description"].clone()))
            .collect();
        let body = json!({"arguments": arguments, "provider": provider});
        chat.try_call("odd__keys", body).await.good();
        let reached = server.stats().calls.pop().unwrap();
        let expected = Value::Object(expected.clone());
        assert_eq!(reached.params["arguments"], expected, "{provider}");
    }
    let refused = chat.try_call("odd__keys", json!({"arguments": {}, "provider": "acme"})).await;
    assert!(refused.refused(422, "bad_request").contains("acme"));
}
