//! The requests of accounts, compared with those of the vendors' own programs. The shapes are compared where captures of
//! these programs are there; each difference is listed with its reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::TurnStatus;
use switchboard_test_support::model_backends::{Account, ModelRequest};

use crate::account_lab::{ANTHROPIC, AccountLab, CHATGPT, GEMINI, WAYS, token};
use crate::lab::ended;

/// A request with a call, and the one that follows it.
async fn requests(lab: &AccountLab, account: Account, way: &str) -> [ModelRequest; 2] {
    let before = lab.answers(account).len();
    let talk = lab.talk(account, way).await;
    let end = ended(&*talk.begin("call shop__find {\"n\": 7}").await).await;
    assert_eq!(end.status, TurnStatus::Completed, "{end:#?}");
    lab.answers(account).split_off(before).try_into().unwrap()
}

/// The headers that name this conversation, this account or this program.
fn own_headers(request: &ModelRequest) -> Vec<(&str, &str)> {
    let framing = ["host", "content-length", "content-type", "accept", "authorization"];
    let all = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    all.filter(|(name, _)| !framing.contains(name)).collect()
}

#[tokio::test]
async fn code_assist_gets_an_envelope_with_a_project_and_a_prompt() {
    let lab = AccountLab::open().await;
    for way in WAYS {
        let [first, second] = requests(&lab, GEMINI, way).await;
        assert_eq!(first.path, "/v1internal:streamGenerateContent?alt=sse");
        assert_eq!(first.body["model"], "gemini-2.5-pro", "where no model is named");
        assert_eq!(first.body["project"], "fake-project-123");
        assert_eq!(first.body["request"].get("generationConfig"), None, "nothing is configured");
        assert_eq!(first.body["user_prompt_id"], second.body["user_prompt_id"]);
        assert_eq!(first.body["request"]["session_id"], second.body["request"]["session_id"]);
        let [third, _] = requests(&lab, GEMINI, way).await;
        assert_ne!(first.body["user_prompt_id"], third.body["user_prompt_id"], "another prompt");
        let tools = first.body["request"]["tools"].as_array().unwrap();
        assert_eq!(tools[0].as_object().unwrap().len(), 1, "one spelling");
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn anthropic_gets_a_bearer_token_the_beta_the_blocks_and_the_session() {
    let lab = AccountLab::open().await;
    for way in WAYS {
        let [first, second] = requests(&lab, ANTHROPIC, way).await;
        for request in [&first, &second] {
            assert_eq!(request.path, "/v1/messages?beta=true");
            assert_eq!(request.headers.get("x-api-key"), None);
            assert_eq!(request.headers["anthropic-beta"], "oauth-2025-04-20");
            assert_eq!(request.headers["anthropic-version"], "2023-06-01");
            let user = request.body["metadata"]["user_id"].as_str().unwrap();
            assert!(!user.is_empty());
            assert_eq!(request.body["metadata"], first.body["metadata"], "that of the session");
            let blocks = request.body["system"].as_array().unwrap();
            let texts: Vec<_> = blocks.iter().map(|block| &block["text"]).collect();
            assert_eq!(texts, ["First block", "Second block"]);
        }
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn chatgpt_gets_the_account_of_the_token_and_the_ids_of_the_conversation() {
    let lab = AccountLab::open().await;
    for (way, account) in [("sign-in", "acct-1"), ("file", "acct-of-token")] {
        let [first, second] = requests(&lab, CHATGPT, way).await;
        let session = first.headers["session-id"].clone();
        let version = first.headers["user-agent"].clone();
        let expected = [
            ("chatgpt-account-id", account),
            ("originator", "switchboard"),
            ("session-id", session.as_str()),
            ("thread-id", session.as_str()),
            ("user-agent", version.as_str()),
        ];
        assert_eq!(own_headers(&first), expected);
        assert_eq!(own_headers(&second), expected);
        assert!(version.starts_with("switchboard/"), "{version}");
        assert_eq!((&first.body["store"], &first.body["stream"]), (&json!(false), &json!(true)));
        assert!(!first.body["instructions"].as_str().unwrap().is_empty());
        assert_eq!(first.body.get("max_output_tokens"), None);
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn older_headers_of_chatgpt_can_be_configured() {
    let headers = ", headers: {openai-beta: responses=experimental, session_id: '${session}', originator: mine}";
    let lab = AccountLab::signed_out(headers).await;
    let [first, _] = requests(&lab, CHATGPT, "file").await;
    assert_eq!(first.headers["openai-beta"], "responses=experimental");
    assert_eq!(first.headers["session_id"], first.headers["session-id"]);
    assert_eq!(first.headers["originator"], "mine");
    assert_eq!(first.headers["authorization"], format!("Bearer {}", token("first")));
    lab.lab.end().await;
}

/// A captured request, if captures are there.
fn captured(file: &str) -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places = ["../shared", "../../shared"].map(|at| root.join(at).join("captures").join(file));
    let text = places.iter().find_map(|place| fs::read_to_string(place).ok())?;
    Some(serde_json::from_str(&text).unwrap())
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Compares the members of a request with those of a captured one. `added` are ours alone, `left_out` are theirs alone.
#[track_caller]
fn check(
    what: &str,
    ours: &BTreeSet<&str>,
    theirs: &BTreeSet<&str>,
    added: &[&str],
    left_out: &[&str],
) {
    let only_ours: Vec<_> = ours.difference(theirs).copied().collect();
    let only_theirs: Vec<_> = theirs.difference(ours).copied().collect();
    assert_eq!((only_ours, only_theirs), (added.to_vec(), left_out.to_vec()), "{what}");
}

fn header_names(request: &ModelRequest) -> BTreeSet<&str> {
    let framing = ["host", "content-length"];
    request.headers.keys().map(String::as_str).filter(|name| !framing.contains(name)).collect()
}

#[tokio::test]
async fn requests_to_code_assist_differ_from_those_of_the_vendors_program_only_in_these_ways() {
    let (Some(gemini), Some(gemini_follow_up)) = (
        captured("gemini/10_codeassist_initial.json"),
        captured("gemini/11_codeassist_followup.json"),
    ) else {
        return;
    };
    let lab = AccountLab::open().await;
    let [first, second] = requests(&lab, GEMINI, "file").await;
    assert_eq!(first.path, gemini["path"].as_str().unwrap());
    for (ours, theirs) in [(&first, &gemini), (&second, &gemini_follow_up)] {
        check("envelope", &keys(&ours.body), &keys(&theirs["body"]), &[], &[]);
        // Sampling and thinking are sent where they are configured, instructions where there are any.
        check(
            "request of Gemini",
            &keys(&ours.body["request"]),
            &keys(&theirs["body"]["request"]),
            &[],
            &["generationConfig", "systemInstruction"],
        );
        // Its library names itself; this program is no client of that library.
        check(
            "headers",
            &header_names(ours),
            &keys(&theirs["headers"]),
            &[],
            &["x-goog-api-client"],
        );
    }
    // Of their tools, those of MCP servers are captured whole.
    let declaration = |tools: &Value| {
        let all = tools[0]["functionDeclarations"].as_array().unwrap().iter();
        let of_servers = |tool: &&Value| {
            let name = tool["name"].as_str().unwrap();
            name.starts_with("mcp_") || name.starts_with("shop__")
        };
        { all }.find(of_servers).unwrap().clone()
    };
    let (ours, theirs) = (
        declaration(&first.body["request"]["tools"]),
        declaration(&gemini["body"]["request"]["tools"]),
    );
    check("declaration", &keys(&ours), &keys(&theirs), &[], &[]);
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn requests_to_anthropic_differ_from_those_of_the_vendors_program_only_in_these_ways() {
    let Some(claude) = captured("claude/09_oauth_initial.json") else {
        return;
    };
    let lab = AccountLab::open().await;
    let [first, _] = requests(&lab, ANTHROPIC, "file").await;
    assert_eq!(first.path, claude["path"].as_str().unwrap());
    check(
        "Anthropic",
        &keys(&first.body),
        &keys(&claude["body"]),
        &[],
        // Effort and thinking are sent where they are configured; the context is managed by the session itself.
        &["context_management", "output_config", "thinking"],
    );
    // No header claims to be that program or its library.
    let theirs = keys(&claude["headers"]);
    let is_theirs =
        |name: &&str| name.starts_with("x-stainless-") || name.starts_with("x-claude-code");
    let theirs: BTreeSet<_> = theirs.into_iter().filter(|name| !is_theirs(name)).collect();
    let left_out = ["anthropic-dangerous-direct-browser-access", "x-app"];
    check("headers of Anthropic", &header_names(&first), &theirs, &[], &left_out);
    let betas = claude["headers"]["anthropic-beta"].as_str().unwrap();
    assert!(betas.split(',').any(|beta| beta == first.headers["anthropic-beta"]), "{betas}");
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn requests_to_chatgpt_differ_from_those_of_the_vendors_program_only_in_these_ways() {
    let Some(codex) = captured("codex/07_chatgpt_oauth_initial_tool_search.json") else {
        return;
    };
    let lab = AccountLab::open().await;
    let [first, _] = requests(&lab, CHATGPT, "file").await;
    assert_eq!(first.path, codex["path"].as_str().unwrap());
    check(
        "ChatGPT",
        &keys(&first.body),
        &keys(&codex["body"]),
        &[],
        // Metadata of that program; effort and verbosity are sent where they are configured.
        &["client_metadata", "reasoning", "text"],
    );
    check(
        "headers of ChatGPT",
        &header_names(&first),
        &keys(&codex["headers"]),
        &[],
        // The body is not compressed, and nothing claims to be that program.
        &[
            "content-encoding",
            "version",
            "x-client-request-id",
            "x-codex-beta-features",
            "x-codex-routing-hint",
            "x-codex-turn-metadata",
            "x-codex-window-id",
        ],
    );
    for key in ["store", "stream", "tool_choice", "include", "parallel_tool_calls"] {
        assert_eq!(first.body[key], codex["body"][key], "{key}");
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}
