//! Prompt tools: tools that a model answers.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::sync::Arc;
use switchboard_model::{CallErrorKind, Caller, Face, ToolResult};
use switchboard_runtime::{CallReport, CallRequest};
use switchboard_test_support::model_backends::{Account, Step};

use crate::lab::{Lab, shop_tools};

async fn lab(entries: &str) -> Lab {
    Lab::with_entries("", shop_tools(), entries).await
}

async fn call(lab: &Lab, tool: &str, arguments: Value) -> CallReport {
    let request = CallRequest {
        tool: tool.to_owned().into(),
        arguments,
        caller: Arc::new(Caller::local(Face::Http)),
        requested: None,
        progress: None,
        check: None,
    };
    lab.board.call(request).await
}

async fn answer(lab: &Lab, tool: &str, arguments: Value) -> ToolResult {
    call(lab, tool, arguments).await.result.unwrap()
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
async fn a_model_without_native_tool_calls_uses_the_tools_by_text() {
    let mut account = Account::CHAT;
    account.name = "text-only";
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
        let refusal =
            format!("{depth} prompt tools run around it already, and its max_depth is {depth}");
        assert!(told.contains(&refusal), "{told}");
        lab.is_clean();
        lab.end().await;
    }
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

    let unknown = "[{name: ask, type: prompt, provider: nobody, template: x}]";
    let lab = Lab::with_entries("", shop_tools(), unknown).await;
    let result = answer(&lab, "local.ask", json!({})).await;
    assert!(text(&result).contains("there is no provider `nobody`"), "{result:?}");
    lab.end().await;
}
