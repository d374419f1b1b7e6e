//! What a conversation with an account must do, for each of the three backends, through a sign-in and through a token
//! file: calls and their results, tools that come and go in mid-session, and changes that apply at once.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::TurnStatus;
use switchboard_test_support::model_backends::{Account, Backend, ModelRequest, Step};
use switchboard_test_support::{Reply, Tool};

use crate::account_lab::{ALL, ANTHROPIC, AccountLab, CHATGPT, GEMINI, WAYS, named};
use crate::lab::{count, ended, shop_tools_and, toolset, until, until_event};

async fn said(lab: &AccountLab, account: Account, way: &str, text: &str) -> String {
    let talk = lab.talk(account, way).await;
    let turn = talk.begin(text).await;
    let end = ended(&turn).await;
    assert_eq!(end.status, TurnStatus::Completed, "{} {way}: {end:#?}", account.name);
    talk.history().await;
    end.text()
}

#[tokio::test]
async fn gemini_a_function_call_is_followed_by_its_function_response() {
    let lab = AccountLab::open().await;
    for way in WAYS {
        let before = lab.answers(GEMINI).len();
        let text = said(&lab, GEMINI, way, "call shop__find {\"n\": 7}").await;
        assert!(text.contains("results: ") && text.contains('7'), "{text}");
        let requests = lab.answers(GEMINI).split_off(before);
        let [first, follow_up] = requests.as_slice() else { panic!("{requests:#?}") };
        let contents = AccountLab::contents(follow_up);
        let [.., call, response] = contents.as_slice() else { panic!("{contents:#?}") };
        assert_eq!((&call["role"], &response["role"]), (&json!("model"), &json!("user")));
        let parts = response["parts"].as_array().unwrap();
        assert_eq!(parts.len(), 1, "nothing stands between the call and its response");
        let (call, response) = (&call["parts"][0]["functionCall"], &parts[0]["functionResponse"]);
        assert_eq!((&call["name"], &call["id"]), (&response["name"], &response["id"]));
        assert!(response["response"].is_object(), "{response}");
        assert_eq!(first.body["user_prompt_id"], follow_up.body["user_prompt_id"]);
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn anthropic_all_tool_results_are_in_one_user_message() {
    let lab = AccountLab::open().await;
    for way in WAYS {
        let text = "call shop__find {\"n\": 1}\ncall shop__price {\"n\": 2}";
        said(&lab, ANTHROPIC, way, text).await;
        let follow_up = lab.answers(ANTHROPIC).pop().unwrap();
        let messages = follow_up.body["messages"].as_array().unwrap();
        let [.., call, results] = messages.as_slice() else { panic!("{messages:#?}") };
        let ids = |message: &Value, kind: &str, key: &str| -> Vec<String> {
            let blocks = message["content"].as_array().unwrap().iter();
            let blocks = blocks.filter(|block| block["type"] == kind);
            blocks.map(|block| block[key].as_str().unwrap().to_owned()).collect()
        };
        let used = ids(call, "tool_use", "id");
        assert_eq!((used.len(), &results["role"]), (2, &json!("user")));
        assert_eq!(ids(results, "tool_result", "tool_use_id"), used);
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn chatgpt_a_function_call_is_followed_by_its_output_and_follow_ups_are_serialised() {
    let lab = AccountLab::open().await;
    for way in WAYS {
        let before = lab.answers(CHATGPT).len();
        said(&lab, CHATGPT, way, "call shop__find {\"n\": 7}").await;
        let requests = lab.answers(CHATGPT).split_off(before);
        let [first, follow_up] = requests.as_slice() else { panic!("{requests:#?}") };
        assert_eq!(
            (&first.body["parallel_tool_calls"], &follow_up.body["parallel_tool_calls"]),
            (&json!(true), &json!(false))
        );
        let items = follow_up.body["input"].as_array().unwrap();
        let of = |kind: &str| items.iter().find(|item| item["type"] == kind).unwrap();
        let (call, output) = (of("function_call"), of("function_call_output"));
        assert_eq!(call["call_id"], output["call_id"]);
        assert!(output["output"].as_str().unwrap().contains('7'), "{output}");
        assert_eq!(follow_up.body["store"], false);
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn a_tool_added_in_mid_session_is_in_the_very_next_request_and_callable() {
    let lab = AccountLab::open().await;
    for account in ALL {
        for way in WAYS {
            let talk = lab.lab.talk_to(&named(account, way), toolset("buy", false)).await;
            let before = lab.answers(account).len();
            ended(&*talk.begin("hello").await).await;
            talk.change(toolset("buy", true)).await;
            let turn = talk.begin("call shop__order {\"n\": 5}").await;
            let end = ended(&turn).await;
            // A backend that sees an undeclared call refuses it: UNEXPECTED_TOOL_CALL at Gemini.
            assert_eq!(end.status, TurnStatus::Completed, "{} {way}: {end:#?}", account.name);
            assert_eq!(talk.results().await.iter().filter(|(_, is_error)| *is_error).count(), 0);
            let declared = lab.lab.declares(account, before, "shop__order");
            assert_eq!(declared, [false, true, true], "{} {way}", account.name);
            talk.change(toolset("buy", false)).await;
            ended(&*talk.begin("hello again").await).await;
            let declared = lab.lab.declares(account, before, "shop__order");
            assert_eq!(declared.last(), Some(&false), "{} {way}: it is gone", account.name);
        }
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn a_change_that_applies_at_once_restarts_the_turn_with_the_new_tool() {
    let lab = AccountLab::open().await;
    for account in ALL {
        for way in WAYS {
            let talk = lab.lab.talk_to(&named(account, way), toolset("buy", false)).await;
            let (before, closed) = (lab.answers(account).len(), lab.lab.fake.closed_by_client());
            lab.lab.fake.script(
                account.backend,
                [
                    Step::text("Now I will").hang(),
                    Step::new().call("shop__order", json!({"n": 2})),
                    Step::text("done"),
                ],
            );
            let turn = talk.begin("buy it").await;
            until_event(&turn, "content").await;
            talk.apply_now(toolset("buy", true)).await;
            let end = ended(&turn).await;
            let outcome = (end.status, end.text(), count(&turn, "restarted"));
            let expected = (TurnStatus::Completed, "done".to_owned(), 1);
            assert_eq!(outcome, expected, "{} {way}", account.name);
            until(|| lab.lab.fake.closed_by_client() == closed + 1).await;
            let declared = lab.lab.declares(account, before, "shop__order");
            assert_eq!(declared, [false, true, true], "{} {way}", account.name);
        }
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}

/// The results in a request, each as the text of its item, in the order of the calls.
fn results(account: Account, request: &ModelRequest) -> Vec<String> {
    let items = |list: &Value| list.as_array().unwrap().clone();
    let of_kind = |list: &Value, kind: &str| -> Vec<Value> {
        items(list).into_iter().filter(|item| item["type"] == kind).collect()
    };
    let found = match account.backend {
        Backend::CodeAssist => {
            let parts = items(&AccountLab::contents(request).last().unwrap()["parts"]);
            parts.iter().map(|part| part["functionResponse"]["response"].clone()).collect()
        }
        Backend::Anthropic => {
            let messages = items(&request.body["messages"]);
            of_kind(&messages.last().unwrap()["content"], "tool_result")
        }
        _ => of_kind(&request.body["input"], "function_call_output"),
    };
    found.iter().map(Value::to_string).collect()
}

#[tokio::test]
async fn results_and_errors_of_tools_reach_the_model_of_every_account() {
    let lab = AccountLab::open().await;
    let failing = Tool::new("fails").replies(Reply::ToolError("out of tea".into()));
    lab.lab.shop.set_tools_and_notify(shop_tools_and([failing])).await;
    until(|| lab.lab.board.snapshot().index().permits("shop.fails")).await;
    for account in ALL {
        for way in WAYS {
            let talk = lab.talk(account, way).await;
            let both =
                Step::new().call("shop__fails", json!({})).call("shop__find", json!({"n": 3}));
            let mut steps = vec![both];
            // Google's backend refuses calls of undeclared tools itself.
            if !account.is_google() {
                steps.push(Step::new().call("shop__nowhere", json!({})));
            }
            lab.lab.fake.script(account.backend, steps.into_iter().chain([Step::text("done")]));
            let before = lab.answers(account).len();
            let end = ended(&*talk.begin("go").await).await;
            assert_eq!(end.status, TurnStatus::Completed, "{} {way}: {end:#?}", account.name);
            let requests = lab.answers(account).split_off(before);
            let told = results(account, &requests[1]);
            let [failed, found] = told.as_slice() else { panic!("{told:?}") };
            assert!(failed.contains("out of tea") && !found.contains("out of tea"), "{told:?}");
            assert!(found.replace(['\\', ' '], "").contains("\"n\":3"), "{told:?}");
            match account.backend {
                Backend::CodeAssist => assert!(failed.starts_with("{\"error\":"), "{failed}"),
                Backend::Anthropic => {
                    assert!(failed.contains("\"is_error\":true"), "{failed}");
                    assert!(!found.contains("\"is_error\":true"), "{found}");
                }
                _ => {}
            }
            if !account.is_google() {
                let told = results(account, requests.last().unwrap());
                assert!(told.last().unwrap().contains("no tool"), "{told:?}");
            }
        }
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}

/// What a conversation with an account must do, line by line, and the tests that show it.
const LINES: [(&str, &[&str]); 15] = [
    (
        "Gemini: a call of one tool is followed by its function response",
        &["gemini_a_function_call_is_followed_by_its_function_response"],
    ),
    (
        "Gemini: a tool that is added in mid-session is in the very next request, and its call is not unexpected",
        &["a_tool_added_in_mid_session_is_in_the_very_next_request_and_callable"],
    ),
    (
        "Gemini: after cancelling and starting again the tool is callable",
        &["a_change_that_applies_at_once_restarts_the_turn_with_the_new_tool"],
    ),
    (
        "Anthropic: results answer their calls, several of them in one message",
        &["anthropic_all_tool_results_are_in_one_user_message"],
    ),
    (
        "Anthropic: tools that come and go in mid-session are right in the next turn",
        &["a_tool_added_in_mid_session_is_in_the_very_next_request_and_callable"],
    ),
    (
        "Anthropic: the turn can be restarted with them",
        &["a_change_that_applies_at_once_restarts_the_turn_with_the_new_tool"],
    ),
    (
        "ChatGPT: a call is followed by its output",
        &["chatgpt_a_function_call_is_followed_by_its_output_and_follow_ups_are_serialised"],
    ),
    (
        "ChatGPT: follow-ups make no parallel calls",
        &["chatgpt_a_function_call_is_followed_by_its_output_and_follow_ups_are_serialised"],
    ),
    (
        "ChatGPT: the headers are there, today's and the older ones",
        &[
            "chatgpt_gets_the_account_of_the_token_and_the_ids_of_the_conversation",
            "older_headers_of_chatgpt_can_be_configured",
        ],
    ),
    (
        "ChatGPT: tools that come and go in mid-session",
        &[
            "a_tool_added_in_mid_session_is_in_the_very_next_request_and_callable",
            "a_change_that_applies_at_once_restarts_the_turn_with_the_new_tool",
        ],
    ),
    (
        "Done: adding and removing a tool changes the list of the next request, or at once with a restart",
        &[
            "a_tool_added_in_mid_session_is_in_the_very_next_request_and_callable",
            "a_change_that_applies_at_once_restarts_the_turn_with_the_new_tool",
        ],
    ),
    (
        "Done: every account calls a tool end to end, and the requests have the vendors' shapes",
        &[
            "code_assist_gets_an_envelope_with_a_project_and_a_prompt",
            "anthropic_gets_a_bearer_token_the_beta_the_blocks_and_the_session",
            "requests_to_code_assist_differ_from_those_of_the_vendors_program_only_in_these_ways",
            "requests_to_anthropic_differ_from_those_of_the_vendors_program_only_in_these_ways",
            "requests_to_chatgpt_differ_from_those_of_the_vendors_program_only_in_these_ways",
        ],
    ),
    (
        "Done: Gemini sees no unexpected call of a declared tool",
        &["a_tool_added_in_mid_session_is_in_the_very_next_request_and_callable"],
    ),
    (
        "Done: results and errors reach the model as the items of its provider",
        &["results_and_errors_of_tools_reach_the_model_of_every_account"],
    ),
    (
        "Done: each step can be followed and verified: without a sign-in, with an expired, a refused and a revoked token",
        &[
            "without_a_sign_in_a_turn_says_how_to_sign_in",
            "an_expired_token_is_renewed_before_the_request",
            "a_refused_token_is_renewed_once_and_the_model_is_asked_again",
            "a_token_that_cannot_be_renewed_ends_the_turn_until_somebody_signs_in",
        ],
    ),
];

#[test]
fn every_line_names_tests_that_exist() {
    let sources = [
        include_str!("account_matrix.rs"),
        include_str!("account_shapes.rs"),
        include_str!("account_tokens.rs"),
    ];
    for (line, tests) in LINES {
        assert!(!tests.is_empty(), "{line}");
        for test in tests {
            let declared = format!("#[tokio::test]\nasync fn {test}() {{");
            assert!(sources.iter().any(|source| source.contains(&declared)), "{line}: {test}");
        }
    }
}
