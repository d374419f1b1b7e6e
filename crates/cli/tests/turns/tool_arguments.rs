//! Declared arguments of an MCP tool, from the configuration file to every face: one test for each thing that they
//! promise. The example is a server that says nothing about its arguments, and an entry that does.

use std::path::Path;

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Map, Value, json};
use switchboard_config::{ConfigInput, SourceFile, load};
use switchboard_model::{ArgumentType, ToolEntry};
use switchboard_test_support::model_backends::{FakeBackends, ModelRequest, Step};
use switchboard_test_support::{ScriptedServer, Tool, wait_until};

use crate::apps;
use crate::chat::Api;
use crate::lab::{ACCOUNTS, ANTHROPIC, Account, CHAT, GEMINI, OPENAI, assert_clean};
use crate::peer::{BOTH, Peer};
use crate::support::{Home, PATIENCE, Serve, dynamic, server};
use crate::talk::Talk;

/// The entry as another program writes it, in JSON.
const EXAMPLE: &str = r#"{
  "type": "mcp-tool",
  "name": "get_bank_balance",
  "description": "Get bank account balance",
  "mcp-tool": "get_bank_balance",
  "arguments": [
    {
      "name": "account_id",
      "type": "string",
      "description": "Bank account identifier"
    },
    {
      "name": "date",
      "type": "string",
      "description": "Date for balance query (optional, format: YYYY-MM-DD)"
    }
  ]
}"#;

const ACCOUNT_ID: &str = "Bank account identifier";
const DATE: &str = "Date for balance query (optional, format: YYYY-MM-DD)";
/// The tool and its arguments in the prompt of a model without native tool calls.
const IN_PROMPT: &str = "- get_bank_balance: Get bank account balance\n  - account_id (string, optional): Bank account \
                         identifier\n  - date (string, optional): Date for balance query (optional, format: YYYY-MM-DD)\n";
/// A provider whose models have no native tool calls.
const TEXT_ONLY: &str = "text-only";

/// The configuration file with these entries of `toolbox.tools`.
fn file(entries: &[&str], providers: &[String], bank: &str) -> String {
    // A JSON value is YAML, too.
    let list = |items: Vec<String>| match items.join("\n      - ") {
        items if items.is_empty() => " []\n".to_owned(),
        items => format!("\n      - {items}\n"),
    };
    let tools = list(entries.iter().map(|entry| entry.replace('\n', "\n        ")).collect());
    let providers = list(providers.to_vec());
    format!(
        "switchboard:\n  providers:{providers}  toolbox:\n    tools:{tools}    mcps:\n      - {bank}\n"
    )
}

fn loaded(entries: &[&str]) -> Vec<ToolEntry> {
    let text = file(entries, &[], &dynamic("bank", "http://127.0.0.1:9/mcp"));
    let file = SourceFile { name: "switchboard.yaml", directory: Path::new("."), text: &text };
    let read_secret = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let loaded = load(&ConfigInput {
        file: Some(file),
        env: &[],
        read_secret: &read_secret,
        read_keyring: None,
    });
    loaded.unwrap_or_else(|problems| panic!("{problems}\n{text}")).plan.tools
}

/// A running board with a bank and every model backend.
struct Bank {
    fake: FakeBackends,
    server: ScriptedServer,
    providers: Vec<String>,
    home: Home,
    serve: Serve,
}

impl Bank {
    /// The server says nothing about the arguments of its tool.
    async fn open(entries: &[&str]) -> Self {
        Self::with_schema(entries, json!({"type": "object"})).await
    }

    async fn with_schema(entries: &[&str], schema: Value) -> Self {
        let fake = FakeBackends::start().await;
        let server = server([Tool::echo("get_bank_balance").schema(schema)]).await;
        let mut providers = ACCOUNTS.map(|account| account.entry(account.name, &fake, "")).to_vec();
        providers.push(CHAT.entry(TEXT_ONLY, &fake, "native_tools: false"));
        let bank = dynamic("bank", &server.url());
        let home = Home::new(file(entries, &providers, &bank));
        let serve = home.serve().await;
        Self { fake, server, providers, home, serve }
    }

    async fn talk(&self) -> Talk {
        Talk { chat: Api::of(&self.serve).new_chat(json!({})).await }
    }

    /// The arguments of each call that reached the server.
    fn received(&self) -> Vec<Value> {
        let calls = self.server.stats().calls;
        calls.iter().map(|call| call.params["arguments"].clone()).collect()
    }

    /// The prompt of each request of the text-only model.
    fn prompts(&self) -> Vec<String> {
        let prompt = |request: ModelRequest| {
            request.body["messages"][0]["content"].as_str().unwrap_or_default().to_owned()
        };
        self.fake.answers(CHAT).into_iter().map(prompt).collect()
    }

    /// A turn of the text-only model with these replies; returns the text of its end.
    async fn react(&self, replies: &[&str]) -> String {
        self.fake.script(CHAT.backend, replies.iter().map(|reply| Step::text(*reply)));
        self.talk().await.say(TEXT_ONLY, "What is my balance?").await
    }

    async fn schema(&self) -> Value {
        self.serve.get("/api/v1/tools/bank.get_bank_balance").await["input_schema"].clone()
    }

    #[track_caller]
    fn is_clean(&self) {
        assert_clean(&self.fake, &self.serve);
    }
}

/// The `properties` of the first schema in a request.
fn properties(value: &Value) -> Option<&Map<String, Value>> {
    let own = value.get("properties").and_then(Value::as_object);
    own.filter(|own| own.contains_key("account_id")).or_else(|| match value {
        Value::Object(members) => members.values().find_map(properties),
        Value::Array(items) => items.iter().find_map(properties),
        _ => None,
    })
}

#[track_caller]
fn assert_declares_both(declaration: &Value) {
    let found = properties(declaration).unwrap_or_else(|| panic!("{declaration:#}"));
    for (name, description) in [("account_id", ACCOUNT_ID), ("date", DATE)] {
        assert_eq!(found[name]["description"], description, "{declaration:#}");
        let kind = found[name]["type"].to_string().to_lowercase();
        assert!(kind.contains("string"), "{declaration:#}");
    }
    assert!(declaration.to_string().contains("Get bank account balance"), "{declaration:#}");
}

/// A model of this backend is shown the arguments, calls the tool with them and answers.
async fn is_used_by(account: Account) {
    let bank = Bank::open(&[EXAMPLE]).await;
    let arguments = json!({"account_id": "A-1", "date": "2025-08-21"});
    let call = Step::new().call("get_bank_balance", arguments.clone());
    bank.fake.script(account.backend, [call, Step::text("It is 7.")]);
    let answer = bank.talk().await.say(account.name, "What is my balance?").await;
    assert_eq!(answer, "It is 7.");
    assert_declares_both(&bank.fake.answers(account)[0].body);
    assert_eq!(bank.received(), [arguments]);
    bank.is_clean();
}

// What an entry may say.

#[test]
fn an_entry_may_declare_arguments_with_name_type_and_description() {
    let [entry] = &loaded(&[EXAMPLE])[..] else { panic!() };
    assert_eq!(
        (entry.name.as_str(), entry.expose_as.as_deref()),
        ("get_bank_balance", Some("get_bank_balance"))
    );
    let arguments = entry.arguments.as_deref().unwrap();
    let shown: Vec<_> = arguments
        .iter()
        .map(|it| (it.name.as_str(), it.kind, it.description.as_deref(), it.required))
        .collect();
    let string = Some(ArgumentType::String);
    assert_eq!(
        shown,
        [("account_id", string, Some(ACCOUNT_ID), None), ("date", string, Some(DATE), None)]
    );
}

#[test]
fn arguments_are_optional_in_an_entry() {
    let bare =
        r#"{"type": "mcp-tool", "name": "get_bank_balance", "mcp-tool": "get_bank_balance"}"#;
    let empty = r#"{"type": "mcp-tool", "name": "b", "mcp-tool": "b", "arguments": []}"#;
    let declared: Vec<_> =
        loaded(&[bare, empty]).into_iter().map(|entry| entry.arguments).collect();
    assert_eq!(declared, [None, Some(Vec::new())]);
}

// What becomes of it.

#[tokio::test]
async fn the_declared_arguments_are_the_arguments_of_the_tool() {
    let bank = Bank::open(&[EXAMPLE]).await;
    let tool = bank.serve.get("/api/v1/tools/get_bank_balance").await;
    assert_declares_both(&tool);
    assert_eq!(tool["input_schema"].get("required"), None, "nobody says that one is required");
}

#[tokio::test]
async fn the_prompt_lists_the_declared_arguments() {
    let bank = Bank::open(&[EXAMPLE]).await;
    assert_eq!(bank.react(&["Final Answer: none"]).await, "none");
    let prompts = bank.prompts();
    assert!(prompts[0].contains(IN_PROMPT), "{}", prompts[0]);
}

#[tokio::test]
async fn entries_without_arguments_work_as_before() {
    let schema =
        json!({"type": "object", "properties": {"iban": {"type": "string"}}, "required": ["iban"]});
    let bare = r#"{"type": "mcp-tool", "name": "get_bank_balance", "description": "Get bank account balance", "mcp-tool": "get_bank_balance"}"#;
    let empty = r#"{"name": "bank.get_bank_balance", "arguments": []}"#;
    for entries in [&[][..], &[bare], &[empty]] {
        let bank = Bank::with_schema(entries, schema.clone()).await;
        assert_eq!(bank.schema().await, schema, "{entries:?}");
        let answer = bank.serve.answer("bank.get_bank_balance", json!({"iban": "DE1"})).await;
        assert_eq!(answer["outcome"], "ok", "{answer:#}");
        assert_eq!(bank.received(), [json!({"iban": "DE1"})]);
    }
    let bank = Bank::open(&[bare]).await;
    bank.react(&["Final Answer: none"]).await;
    let listed = "- get_bank_balance: Get bank account balance\n  - no arguments\n";
    assert!(bank.prompts()[0].contains(listed), "{}", bank.prompts()[0]);
}

#[tokio::test]
async fn an_mcp_tool_and_a_prompt_tool_show_their_arguments_alike() {
    let example: Value = serde_json::from_str(EXAMPLE).unwrap();
    let prompt = json!({
        "type": "prompt", "name": "ask_bank", "description": "Get bank account balance",
        "template": "{{ account_id }} {{ date }}", "arguments": example["arguments"],
    });
    let bank = Bank::open(&[EXAMPLE, &prompt.to_string()]).await;
    bank.react(&["Final Answer: none"]).await;
    let prompts = bank.prompts();
    let alike = IN_PROMPT.replace("- get_bank_balance:", "- local__ask_bank:");
    assert!(prompts[0].contains(IN_PROMPT) && prompts[0].contains(&alike), "{}", prompts[0]);
    for tool in ["get_bank_balance", "local.ask_bank"] {
        let check = json!({"arguments": {"account_id": 7, "branch": "x"}});
        let path = format!("/tools/{tool}/check");
        let checked = Api::of(&bank.serve).send(Method::POST, &path, Some(check)).await.good();
        let paths: Vec<_> =
            checked["errors"].as_array().unwrap().iter().map(|it| it["path"].clone()).collect();
        assert!(paths.contains(&json!("/account_id")), "{tool}: {checked:#}");
        assert!(paths.contains(&json!("/branch")), "{tool}: {checked:#}");
    }
}

#[tokio::test]
async fn the_prompt_of_unchanged_tools_is_the_same_byte_for_byte() {
    let bank = Bank::open(&[EXAMPLE]).await;
    for _ in 0..3 {
        bank.react(&["Final Answer: none"]).await;
    }
    let prompts = bank.prompts();
    assert_eq!(prompts.len(), 3);
    assert!(prompts.iter().all(|prompt| *prompt == prompts[0]));
}

// The way of an argument.

#[tokio::test]
async fn arguments_go_from_the_file_to_the_prompt_and_from_the_model_unchanged_to_the_server() {
    let bank = Bank::open(&[EXAMPLE]).await;
    let arguments = json!({"account_id": " Ä-1 \"x\"\n", "date": "2025-08-21"});
    let action = format!("Thought: I ask the bank.\nAction: get_bank_balance\nArgs: {arguments}");
    assert_eq!(bank.react(&[&action, "Final Answer: 7"]).await, "7");
    assert!(bank.prompts().iter().all(|prompt| prompt.contains(IN_PROMPT)));
    assert_eq!(bank.received(), [arguments]);
    bank.is_clean();
}

#[tokio::test]
async fn invalid_arguments_never_reach_the_server_and_the_model_succeeds_in_the_next_round() {
    let bank = Bank::open(&[EXAMPLE]).await;
    let replies = [
        "Action: get_bank_balance\nArgs: {\"account\": \"A-1\"}",
        "Action: get_bank_balance\nArgs: {\"account_id\": {\"id\": \"A-1\"}}",
        "Action: get_bank_balance\nArgs: {\"account_id\": \"A-1\"}",
        "Final Answer: 7",
    ];
    assert_eq!(bank.react(&replies).await, "7");
    assert_eq!(bank.received(), [json!({"account_id": "A-1"})]);
    let asked = bank.fake.answers(CHAT);
    let told =
        |at: usize| asked[at].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(told(1).contains("unknown argument `account`"), "{}", told(1));
    let usage = "The arguments of get_bank_balance are: account_id (string, optional), date (string, optional)";
    assert!(told(1).contains(usage) && told(2).contains(usage), "{}", told(2));
    bank.is_clean();
}

#[tokio::test]
async fn a_changed_declaration_is_loaded_and_shown_in_the_next_turn() {
    let bank = Bank::open(&[EXAMPLE]).await;
    bank.react(&["Final Answer: none"]).await;
    let entry = EXAMPLE.replace(ACCOUNT_ID, "Number of the account");
    let text = file(&[&entry], &bank.providers, &dynamic("bank", &bank.server.url()));
    bank.home.rewrite(text);
    wait_until(PATIENCE, async || {
        bank.schema().await.to_string().contains("Number of the account").then_some(())
    })
    .await;
    bank.react(&["Final Answer: none"]).await;
    let prompts = bank.prompts();
    let changed = IN_PROMPT.replace(ACCOUNT_ID, "Number of the account");
    assert!(prompts[0].contains(IN_PROMPT) && prompts[1].contains(&changed), "{}", prompts[1]);
}

// Every face.

#[tokio::test]
async fn a_model_without_native_tool_calls_uses_the_arguments() {
    let bank = Bank::open(&[EXAMPLE]).await;
    let action = r#"Thought: I should look. Action: get_bank_balance Args: {"account_id": "A-1"}"#;
    assert_eq!(bank.react(&[action, "Final Answer: It is 7."]).await, "It is 7.");
    assert_eq!(bank.received(), [json!({"account_id": "A-1"})]);
    bank.is_clean();
}

#[tokio::test]
async fn a_model_of_openai_uses_the_arguments() {
    is_used_by(OPENAI).await;
}

#[tokio::test]
async fn a_model_of_chat_completions_uses_the_arguments() {
    is_used_by(CHAT).await;
}

#[tokio::test]
async fn a_model_of_anthropic_uses_the_arguments() {
    is_used_by(ANTHROPIC).await;
}

#[tokio::test]
async fn a_model_of_gemini_uses_the_arguments() {
    is_used_by(GEMINI).await;
}

/// With the tool added to their requests, and with its rendering as their own tool: six conversations of the first kind
/// and four of the second, each with one wrong call and one good one.
#[tokio::test]
async fn apps_with_the_libraries_of_openai_anthropic_and_google_use_the_arguments() {
    let bank = Bank::open(&[EXAMPLE]).await;
    apps::passes("arguments_app.py", &bank.home, &bank.serve, &bank.fake).await;
    let good = json!({"account_id": "A-1", "date": "2025-08-21"});
    assert_eq!(bank.received(), vec![good; 10], "no wrong call reached the server");
}

#[tokio::test]
async fn an_mcp_client_uses_the_arguments() {
    let bank = Bank::open(&[EXAMPLE]).await;
    for era in BOTH {
        let client = Peer::open(era, &bank.serve, "/mcp").await;
        let list = client.ask("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == "get_bank_balance");
        assert_declares_both(tool.unwrap_or_else(|| panic!("{list:#}")));
        client.done("get_bank_balance", json!({"account_id": "A-1"})).await;
        let refused = client.refused("get_bank_balance", json!({"account": "A-1"})).await;
        assert!(refused.contains("unknown argument `account`"), "{refused}");
    }
    assert_eq!(bank.received(), vec![json!({"account_id": "A-1"}); 2]);
}

#[tokio::test]
async fn the_command_line_shows_and_uses_the_arguments() {
    let bank = Bank::open(&[EXAMPLE]).await;
    for more in [&[][..], &["--url", &*bank.serve.url]] {
        let run = |line: &[&str]| bank.home.run(&[line, more].concat());
        let shown = run(&["tool", "show", "get_bank_balance"]).expect(0).stdout;
        for line in [format!("string  no        {ACCOUNT_ID}"), format!("string  no        {DATE}")]
        {
            assert!(shown.contains(&line), "{shown}");
        }
        let invoke = ["tool", "invoke", "get_bank_balance", "-P", r#"{"account_id": "A-1"}"#];
        assert_eq!(run(&invoke).expect(0).stdout, "{\"account_id\":\"A-1\"}\n");
        let wrong =
            run(&["tool", "invoke", "get_bank_balance", "-P", r#"{"account": 1}"#]).expect(2);
        assert!(wrong.stderr.contains("unknown argument `account`"), "{}", wrong.all());
    }
    assert_eq!(bank.received(), vec![json!({"account_id": "A-1"}); 2]);
}

#[tokio::test]
async fn the_command_line_declares_the_arguments() {
    let bank = Bank::open(&[]).await;
    let (account, date) =
        (format!("account_id:string:{ACCOUNT_ID}"), format!("date:string:{DATE}"));
    for more in [&["--url", &*bank.serve.url][..], &[]] {
        let run = |line: &[&str]| bank.home.run(&[line, more].concat());
        let set = [
            "tool",
            "set",
            "bank.get_bank_balance",
            "--description",
            "Get bank account balance",
            "--argument",
            &account,
            "--argument",
            &date,
        ];
        run(&set).expect(0);
        assert_declares_both(
            &run(&["tool", "show", "bank.get_bank_balance", "--json"]).expect(0).json(),
        );
        run(&["tool", "delete", "bank.get_bank_balance"]).expect(0);
    }
}

#[tokio::test]
async fn a_page_declares_the_arguments_over_the_api() {
    let bank = Bank::open(&[]).await;
    let api = Api::of(&bank.serve);
    let example: Value = serde_json::from_str(EXAMPLE).unwrap();
    let body = json!({
        "type": example["type"], "mcp-tool": example["mcp-tool"],
        "description": example["description"], "arguments": example["arguments"],
    });
    let path = "/tools/get_bank_balance/declaration";
    let preview = format!("{path}/preview");
    let seen = api.send(Method::POST, &preview, Some(body.clone())).await.good();
    assert_eq!(seen["warnings"], json!([]), "{seen:#}");
    let put = api.send(Method::PUT, path, Some(body.clone())).await.good();
    assert_eq!(put["declared"], body);
    assert_declares_both(&put["merged"]);
    bank.react(&["Final Answer: none"]).await;
    assert!(bank.prompts()[0].contains(IN_PROMPT), "{}", bank.prompts()[0]);
}
