//! The rules of Anthropic, including the binding of thinking to its prefix.

use serde_json::{Value, json};

use super::{EventReceiver, Findings, anthropic_check, check_rows, long, object, with, without};

const MODEL: &str = "claude-opus-5-5";
const BETAS: &str = "mid-conversation-tool-changes-2026-07-01, inline-tools-2026-09-15";

fn request() -> Value {
    json!({
        "model": MODEL, "max_tokens": 100, "stream": true, "system": "be brief",
        "tools": [
            {"name": "search", "input_schema": object()},
            {"name": "later", "input_schema": object(), "defer_loading": true},
        ],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "text", "text": "let me see"},
                {"type": "tool_use", "id": "a", "name": "search", "input": {}},
                {"type": "tool_use", "id": "b", "name": "search", "input": {"q": "b"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "two"},
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}], "is_error": true},
                {"type": "text", "text": "and now?"},
            ]},
        ],
    })
}

fn check(body: &Value, findings: &mut Findings) -> EventReceiver {
    anthropic_check::check(body, BETAS, findings)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn anthropic_finds_what_is_wrong() {
    let good = request;
    let tool = |name: &str| json!({"name": name, "input_schema": object()});
    let schema =
        |schema: Value| with(request(), "/tools/2", json!({"name": "s", "input_schema": schema}));
    let deferred = json!([{"name": "a", "input_schema": object(), "defer_loading": true}]);
    let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    let results = good()["messages"][2].clone();
    let rows = [
        (
            with(
                with(good(), "/messages/2", json!({"role": "user", "content": "wait"})),
                "/messages/3",
                results,
            ),
            "result_without_call",
            "in the previous message",
        ),
        (without(good(), "/max_tokens"), "max_tokens", "max_tokens: Field required"),
        (without(good(), "/model"), "model", "model"),
        (with(good(), "/temperature", json!(0)), "sampling", "temperature"),
        (with(good(), "/top_p", json!(1)), "sampling", "top_p"),
        (
            with(good(), "/thinking", json!({"type": "enabled", "budget_tokens": 10})),
            "thinking_budget",
            "adaptive",
        ),
        (
            with(good(), "/thinking", json!({"type": "adaptive", "block_binding": {}})),
            "beta",
            "block_binding",
        ),
        (with(good(), "/tools/2", tool("a.b")), "tool_name", "^[a-zA-Z0-9_-]{1,128}$"),
        (with(good(), "/tools/2", tool(&long(129))), "tool_name", "128"),
        (with(good(), "/tools/2", tool("search")), "duplicate_tool", "unique"),
        (with(good(), "/tools", deferred), "all_deferred", "defer_loading"),
        (schema(json!({})), "input_schema", "type: Field required"),
        (schema(json!({"type": "object", "anyOf": []})), "input_schema", "top level"),
        (schema(json!({"type": "object", "properties": {"a b": {}}})), "property_key", "pattern"),
        (
            with(good(), "/tool_choice", json!({"type": "tool", "name": "nope"})),
            "tool_choice",
            "nope",
        ),
        (without(good(), "/messages/0"), "first_role", "\"user\" role"),
        (with(good(), "/messages/0/role", json!("tool")), "role", "tool"),
        (with(good(), "/messages/0/content", json!("")), "empty_text", "non-empty"),
        (with(good(), "/messages/0/content", json!(" ")), "empty_text", "non-whitespace"),
        (with(good(), "/messages/0/content", json!([])), "empty_content", "non-empty content"),
        (
            with(good(), "/messages/2/content/1/content/0/text", json!("")),
            "empty_text",
            "non-empty",
        ),
        (
            without(good(), "/messages/2/content/0"),
            "call_without_result",
            "without `tool_result` blocks immediately after: b",
        ),
        (without(good(), "/messages/2"), "call_without_result", "a, b"),
        (
            with(
                good(),
                "/messages/2",
                json!({"role": "user", "content": [
            {"type": "text", "text": "first"},
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {"type": "tool_result", "tool_use_id": "b", "content": "x"}]}),
            ),
            "call_without_result",
            "immediately after",
        ),
        (
            with(
                good(),
                "/messages/2/content/3",
                json!({"type": "tool_result", "tool_use_id": "c", "content": "x"}),
            ),
            "result_without_call",
            "unexpected `tool_use_id`",
        ),
        (
            with(
                good(),
                "/messages/2/content/3",
                json!({"type": "tool_result", "tool_use_id": "a", "content": "x"}),
            ),
            "duplicate_result",
            "single result",
        ),
        (with(good(), "/messages/1/content/2/id", json!("a")), "duplicate_call", "must be unique"),
        (with(good(), "/messages/1/content/2/id", json!("b.c")), "call_id", "pattern"),
        (with(good(), "/messages/1/content/2/input", json!("{}")), "call_input", "dictionary"),
        (with(good(), "/messages/1/content/2/name", json!("a.b")), "tool_name", "pattern"),
        (
            with(
                good(),
                "/messages/1/content/0",
                json!({"type": "thinking", "thinking": "x", "signature": "U0lH"}),
            ),
            "signature",
            "Invalid `signature`",
        ),
        (
            with(good(), "/messages/0/content", json!([{"type": "input_text", "text": "x"}])),
            "block_type",
            "input_text",
        ),
        (
            with(good(), "/messages/2/content/1/content", json!({"a": 1})),
            "result_content",
            "valid list",
        ),
        (
            with(
                good(),
                "/messages/2/content/1/content",
                json!([{"type": "tool_reference", "tool_name": "nope"}]),
            ),
            "unknown_tool",
            "nope",
        ),
        (
            with(good(), "/system", json!([marked, marked, marked, marked, marked])),
            "cache_control",
            "maximum of 4",
        ),
    ];
    check_rows(check, &good(), &rows);
}

#[test]
fn system_messages_have_their_place() {
    let system = |blocks: Value| json!({"role": "system", "content": blocks});
    let text = || system(json!([{"type": "text", "text": "new rules"}]));
    let good = || with(request(), "/messages/3", text());
    let removal = |name: &str| {
        system(json!([{"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}]))
    };
    let rows = [
        (with(good(), "/messages/0", text()), "first_role", "user"),
        (with(good(), "/messages/4", text()), "system_place", "must follow a user message"),
        (
            with(good(), "/messages/4", json!({"role": "user", "content": "x"})),
            "system_place",
            "followed by an assistant",
        ),
        (with(good(), "/model", json!("claude-sonnet-5")), "system_role", "not supported"),
        (with(good(), "/messages/3", removal("nope")), "unknown_tool", "nope"),
        (with(good(), "/messages/3", removal("later")), "tool_change", "later"),
    ];
    check_rows(check, &good(), &rows);
    let mut findings = Findings::default();
    anthropic_check::check(&with(good(), "/messages/3", removal("search")), "", &mut findings);
    assert_eq!(findings.rules(), ["beta"]);
}

#[test]
fn the_tools_that_are_offered_follow_the_conversation() {
    let change = |kind: &str, tool: Value| {
        let blocks = json!([{"type": kind, "tool": tool}]);
        with(request(), "/messages/3", json!({"role": "system", "content": blocks}))
    };
    let reference = |name: &str| json!({"type": "tool_reference", "name": name});
    let definition = json!({"type": "tool_definition", "definition": {"name": "fresh", "input_schema": object()}});
    for (body, expected) in [
        (request(), &["search"][..]),
        (change("tool_addition", reference("later")), &["later", "search"]),
        (change("tool_removal", reference("search")), &[]),
        (change("tool_addition", definition), &["fresh", "search"]),
    ] {
        let mut findings = Findings::default();
        let heard = check(&body, &mut findings);
        assert!(findings.first().is_none(), "{findings:?}");
        assert_eq!(heard.tools, expected);
    }
}

/// A request whose last answer, with thinking, was issued by the fake itself.
fn with_thinking(model: &str) -> Value {
    let first =
        with(without(without(request(), "/messages/2"), "/messages/1"), "/model", json!(model));
    let prefix = check(&first, &mut Findings::default()).prefix;
    let signature = anthropic_check::seal_thinking(model, "hm", &prefix);
    let redacted = anthropic_check::seal_redacted(model, &prefix);
    let answer = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": signature},
        {"type": "redacted_thinking", "data": redacted},
        {"type": "text", "text": "hello"},
    ]});
    let next = with(first, "/messages/1", answer);
    with(next, "/messages/2", json!({"role": "user", "content": "more"}))
}

#[test]
fn thinking_is_bound_to_what_came_before_it() {
    let good = || with_thinking(MODEL);
    let said = "bound to a different conversation";
    let rows = [
        (with(good(), "/system", json!("be long")), "binding", said),
        (with(good(), "/messages/0/content", json!("ho")), "binding", said),
        (
            with(good(), "/tools/2", json!({"name": "new", "input_schema": object()})),
            "binding",
            said,
        ),
        (with(good(), "/tools/0/description", json!("changed")), "binding", said),
        (with(good(), "/model", json!("claude-sonnet-5-5")), "signature", "Invalid `signature`"),
        (
            with(good(), "/messages/1/content/0/thinking", json!("ha")),
            "signature",
            "Invalid `signature`",
        ),
        (
            with(good(), "/messages/1/content/1/data", json!("AAAA")),
            "signature",
            "Invalid `signature`",
        ),
    ];
    check_rows(check, &good(), &rows);
}

#[test]
fn what_is_no_change_does_not_unbind_thinking() {
    let good = || with_thinking(MODEL);
    let cached = json!([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]);
    let deferred = json!({"name": "new", "input_schema": object(), "defer_loading": true});
    for body in [
        with(good(), "/messages/0/content", cached),
        with(good(), "/system", json!([{"type": "text", "text": "be brief"}])),
        with(good(), "/tools/2", deferred),
        with(good(), "/messages/3", json!({"role": "assistant", "content": "and so on"})),
        // Models before 5.5 check the block alone.
        with(with_thinking("claude-opus-4-8"), "/system", json!("be long")),
    ] {
        check_rows(check, &body, &[]);
    }
}

#[test]
fn blocks_that_do_not_fit_are_dropped_on_request() {
    let binding =
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    let body = with(with(with_thinking(MODEL), "/system", json!("be long")), "/thinking", binding);
    let mut findings = Findings::default();
    let heard =
        anthropic_check::check(&body, "thinking-binding-controls-2026-08-01", &mut findings);
    assert!(findings.first().is_none(), "{findings:?}");
    assert_eq!(heard.dropped_blocks, ["messages.1.content.0", "messages.1.content.1"]);
}
