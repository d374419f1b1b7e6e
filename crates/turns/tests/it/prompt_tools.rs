//! Prompt tools: tools that a model answers.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::{CallErrorKind, Caller, Face, ToolResult};
use switchboard_runtime::{CallReport, CallRequest};
use switchboard_test_support::Tool;
use switchboard_test_support::model_backends::{Account, Step};

use crate::lab::{Lab, shop_tools};

async fn lab(entries: &str) -> Lab {
    Lab::with_entries("", shop_tools(), entries).await
}

pub(crate) async fn call(lab: &Lab, tool: &str, arguments: Value) -> CallReport {
    let request = CallRequest {
        tool: tool.to_owned().into(),
        arguments,
        caller: Arc::new(Caller::local(Face::Http)),
        requested: None,
        progress: None,
        check: None,
        conversation: None,
    };
    lab.board.call(request).await
}

async fn answer(lab: &Lab, tool: &str, arguments: Value) -> ToolResult {
    call(lab, tool, arguments).await.result.unwrap()
}

/// The Chat Completions backend under the name of another provider.
fn chat_as(name: &'static str) -> Account {
    let mut account = Account::CHAT;
    account.name = name;
    account
}

fn text(result: &ToolResult) -> String {
    result.to_value()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// An entry of a prompt tool that this account answers.
fn entry(account: Account, more: &str) -> String {
    let name = account.name;
    format!(
        "[{{name: ask, type: prompt, provider: {name}, template: 'Say {{{{ what }}}}{{% if loud %}} loudly{{% endif %}}', \
         arguments: [{{name: what, required: true}}, {{name: loud, type: boolean}}], timeout: 20s{more}}}]"
    )
}

#[tokio::test]
async fn the_answer_of_the_model_is_the_result_for_every_provider() {
    for account in Account::ALL {
        let lab = lab(&entry(account, "")).await;
        lab.fake.script(account.backend, [Step::text("as you wish")]);
        let result = answer(&lab, "local.ask", json!({"what": "hello", "loud": true})).await;
        assert_eq!((text(&result).as_str(), result.is_error), ("as you wish", false));
        let asked = lab.fake.answers(account);
        let [request] = asked.as_slice() else { panic!("{asked:#?}") };
        assert_eq!(request.tools, [""; 0], "a model is shown no tools unless the entry names them");
        assert!(format!("{request:?}").contains("Say hello loudly"), "{request:#?}");
        lab.is_clean();
        lab.end().await;
    }
}

#[tokio::test]
async fn a_fixed_value_and_a_hidden_default_are_variables_that_callers_cannot_give() {
    let account = Account::CHAT;
    let entry = "[{name: ask, type: prompt, provider: chat, template: '{{ what }} {{ who }}', \
                 arguments: [{name: what, value: Greet}, {name: who, hidden: true, default: Ada}]}]"
        .replace("provider: chat", &format!("provider: {}", account.name));
    let lab = lab(&entry).await;
    lab.fake.script(account.backend, [Step::text("Hello")]);
    assert_eq!(text(&answer(&lab, "local.ask", json!({})).await), "Hello");
    let asked = format!("{:?}", lab.fake.answers(account)[0].body);
    assert!(asked.contains("Greet Ada"), "{asked}");
    let report = call(&lab, "local.ask", json!({"what": "Insult"})).await;
    assert_eq!(report.result.unwrap_err().kind, CallErrorKind::InvalidArguments);
    lab.end().await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_and_no_model_is_asked() {
    let account = Account::ALL[0];
    let lab = lab(&entry(account, "")).await;
    let report = call(&lab, "local.ask", json!({"loud": "very"})).await;
    assert_eq!(report.result.unwrap_err().kind, CallErrorKind::InvalidArguments);
    assert_eq!(lab.fake.answers(account).len(), 0);
    lab.end().await;
}

#[tokio::test]
async fn a_model_calls_the_tools_that_the_entry_names_and_no_others() {
    for account in Account::ALL {
        let lab = lab(&entry(account, ", tools: ['shop.fi*']")).await;
        lab.fake.script(
            account.backend,
            [
                Step::new().call("shop__find", json!({"n": 1})),
                Step::new().call("shop__order", json!({})),
                Step::text("found"),
            ],
        );
        let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
        assert_eq!(text(&result), "found", "{}", account.name);
        assert_eq!(lab.fake.answers(account)[0].tools, ["shop__find"]);
        assert_eq!(lab.calls(), 1, "the tool that was not shown is not called");
        lab.is_clean();
        lab.end().await;
    }
}

#[tokio::test]
async fn a_model_that_has_no_tools_and_calls_one_is_told_so() {
    let account = Account::ALL[0];
    let lab = lab(&entry(account, "")).await;
    let steps = [Step::new().call("shop__find", json!({})), Step::text("sorry")];
    lab.fake.script(account.backend, steps);
    assert_eq!(text(&answer(&lab, "local.ask", json!({"what": "x"})).await), "sorry");
    let told = lab.fake.answers(account)[1].body.to_string();
    let expected = "there is no tool `shop__find`; answer without tools, there are none here";
    assert!(told.contains(expected), "{told}");
    assert_eq!(lab.calls(), 0);
    lab.end().await;
}

#[tokio::test]
async fn a_model_without_native_tool_calls_uses_the_tools_by_text() {
    let account = chat_as("text-only");
    let lab = lab(&entry(account, ", tools: ['shop.fi*']")).await;
    lab.fake.script(
        account.backend,
        [
            Step::text("Thought: I look.\nAction: shop__find\nArgs: {\"n\": 1}"),
            Step::text("Final Answer: found"),
        ],
    );
    let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
    assert_eq!((text(&result).as_str(), lab.calls()), ("found", 1));
    let asked = lab.fake.answers(account);
    assert!(asked.iter().all(|request| request.tools.is_empty()), "{asked:#?}");
    assert!(format!("{:?}", asked[0].body).contains("- shop__find"), "{asked:#?}");
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn a_backend_that_refuses_a_stop_sequence_is_asked_without_it_and_remembered() {
    let refusal = json!({"error": {"message": "Unsupported parameter: 'stop' is not supported with this model."}});
    let account = chat_as("text-only");
    let lab = lab(&entry(account, ", tools: ['shop.fi*']")).await;
    let refused = Step::new().status(400, &[], refusal.to_string());
    lab.fake.script(
        account.backend,
        [
            refused,
            Step::text("Action: shop__find\nArgs: {\"n\": 1}\n"),
            Step::text("Final Answer: found"),
        ],
    );
    let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
    assert_eq!((text(&result).as_str(), lab.calls()), ("found", 1));
    let stops: Vec<_> =
        lab.fake.requests().iter().map(|request| request.body["stop"].clone()).collect();
    assert_eq!(stops, [json!(["\nObservation:"]), Value::Null, Value::Null]);
    lab.end().await;
}

#[tokio::test]
async fn a_model_whose_backend_refuses_tools_goes_on_by_text_and_is_remembered() {
    let refusal =
        json!({"error": {"message": "library/llama does not support tools", "type": "api_error"}});
    let refused = || Step::new().status(400, &[], refusal.to_string());
    let account = Account::CHAT;
    let lab = lab(&entry(account, ", tools: ['shop.fi*']")).await;
    lab.fake.script(
        account.backend,
        [
            refused(),
            Step::text("Thought: I look. Action: shop__find Args: {\"n\": 1}"),
            Step::text("Final Answer: found"),
        ],
    );
    let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
    assert_eq!((text(&result).as_str(), result.is_error, lab.calls()), ("found", false, 1));
    let shown: Vec<_> = lab.fake.requests().iter().map(|request| request.tools.len()).collect();
    assert_eq!(shown, [1, 0, 0], "the tools are declared once, then listed in the prompt");

    lab.fake.script(account.backend, [Step::text("Final Answer: again")]);
    let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
    assert_eq!(text(&result), "again");
    assert_eq!(lab.fake.requests().len(), 4, "tools are not tried again");
    lab.end().await;

    // A provider that insists on native tool calls gets the refusal.
    let lab = self::lab(&entry(chat_as("native-only"), ", tools: ['shop.fi*']")).await;
    lab.fake.script(account.backend, [refused()]);
    let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
    assert!(result.is_error && text(&result).contains("does not support tools"), "{result:?}");
    assert_eq!(lab.fake.requests().len(), 1);
    lab.end().await;
}

#[tokio::test]
async fn a_backend_that_knows_only_the_older_declaration_gets_it() {
    let account = Account::GEMINI;
    let unknown = "Invalid JSON payload received. Unknown name \"parametersJsonSchema\" at \
                   'tools[0].function_declarations[0]': Cannot find field.";
    let body = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": unknown}});
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tools = vec![Tool::echo("find").schema(schema)];
    let lab = Lab::with_entries("", tools, &entry(account, ", tools: ['shop.fi*']")).await;
    let steps = [Step::new().status(400, &[], body.to_string()), Step::text("found")];
    lab.fake.script(account.backend, steps);
    let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
    assert_eq!(text(&result), "found");
    let asked = lab.fake.requests();
    let declaration = &asked[1].body["tools"][0]["functionDeclarations"][0];
    assert!(declaration.get("parameters").is_some(), "{declaration:#}");
    lab.end().await;
}

#[tokio::test]
async fn the_actions_of_one_reply_run_one_after_the_other_and_a_wrong_one_has_a_way_out() {
    let account = chat_as("text-only");
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let tools = vec![Tool::echo("find").schema(schema).sleeps(50)];
    let lab = Lab::with_entries("", tools, &entry(account, ", tools: ['shop.fi*']")).await;
    let action = |n: &str| format!("Action: shop__find\nArgs: {{\"n\": {n}}}\n");
    lab.fake.script(
        account.backend,
        [
            Step::text(action("1") + &action("2") + &action("\"x\"")),
            Step::text("Final Answer: done"),
        ],
    );
    let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
    assert_eq!((text(&result).as_str(), lab.calls()), ("done", 2));
    assert_eq!(lab.shop.stats().peak_calls, 1, "no two at the same time");
    let told = format!("{:?}", lab.fake.requests().last());
    assert!(told.contains("The arguments of shop__find are: n (integer, required)"), "{told}");
    lab.end().await;
}

#[tokio::test]
async fn prompt_tools_inside_prompt_tools_end_at_their_depth() {
    let account = Account::ALL[0];
    for (depth, expected) in [(1, 1), (3, 3)] {
        let lab = lab(&entry(account, &format!(", tools: ['local.*'], max_depth: {depth}"))).await;
        let deeper = Step::new().call("local__ask", json!({"what": "again"}));
        lab.fake.script(account.backend, vec![deeper; depth]);
        lab.fake.always(account.backend, Step::text("enough"));
        let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
        assert_eq!(text(&result), "enough");
        // Each level asks its model once for the call and once with the result.
        assert_eq!(lab.fake.answers(account).len(), 2 * expected);
        let told = format!("{:?}", lab.fake.requests());
        let refusal = "of the prompt tool that calls it permits no further prompt tool";
        assert!(told.contains(refusal), "{told}");
        lab.is_clean();
        lab.end().await;
    }
}

#[tokio::test]
async fn the_calls_of_a_prompt_tool_do_not_wait_for_its_own_slot() {
    let account = Account::ALL[0];
    let entries = format!("{}\n    max_concurrent: 1", entry(account, ", tools: ['shop.fi*']"));
    let lab = lab(&entries).await;
    lab.fake.script(
        account.backend,
        [Step::new().call("shop__find", json!({"n": 1})), Step::text("found")],
    );
    let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
    assert_eq!((text(&result).as_str(), lab.calls()), ("found", 1));
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn the_depth_of_the_calling_tool_decides_which_prompt_tools_its_model_may_call() {
    let account = Account::ALL[0];
    let provider = account.name;
    for (outer, inner, expected) in [(1, 5, 0), (2, 1, 1), (2, 5, 1)] {
        let entries = format!(
            "[{{name: outer, type: prompt, provider: {provider}, template: outer, tools: [inner], max_depth: {outer}}}, \
             {{name: inner, type: prompt, provider: {provider}, template: inner text, max_depth: {inner}}}]"
        );
        let lab = lab(&entries).await;
        lab.fake.script(account.backend, [Step::new().call("local__inner", json!({}))]);
        lab.fake.always(account.backend, Step::text("done"));
        let result = answer(&lab, "local.outer", json!({})).await;
        assert_eq!(text(&result), "done");
        let asked = lab.fake.answers(account);
        let of_inner = asked.iter().filter(|it| format!("{:?}", it.body).contains("inner text"));
        assert_eq!(of_inner.count(), expected, "max_depth {outer} around {inner}: {asked:#?}");
        lab.is_clean();
        lab.end().await;
    }
}

#[tokio::test]
async fn fixed_and_hidden_arguments_of_a_prompt_tool_reach_its_template() {
    let account = Account::ALL[0];
    let lab = lab(&format!(
        "[{{name: ask, type: prompt, provider: {}, template: 'Say {{{{ what }}}} to {{{{ team }}}} in {{{{ words }}}} words', \
         arguments: [{{name: what}}, {{name: team, value: red}}, {{name: words, type: integer, hidden: true, default: 7}}]}}]",
        account.name
    ))
    .await;
    lab.fake.always(account.backend, Step::text("done"));
    let result = answer(&lab, "local.ask", json!({"what": "hello"})).await;
    assert_eq!(text(&result), "done");
    let asked = format!("{:?}", lab.fake.answers(account));
    assert!(asked.contains("Say hello to red in 7 words"), "{asked}");
    let report = call(&lab, "local.ask", json!({"what": "hello", "team": "blue"})).await;
    assert_eq!(report.result.unwrap_err().kind, CallErrorKind::InvalidArguments);
    lab.end().await;
}

#[tokio::test]
async fn a_model_that_fails_is_an_error_result_with_its_reason() {
    let account = Account::ALL[0];
    let lab = lab(&entry(account, "")).await;
    lab.fake.always(account.backend, Step::new().status(401, &[], "no"));
    let result = answer(&lab, "local.ask", json!({"what": "x"})).await;
    assert!(result.is_error);
    assert!(
        text(&result).starts_with("the model behind tool 'ask' gave no answer: "),
        "{result:?}"
    );
    lab.end().await;
}
