//! What a conversation with an account must do, for each of the three backends, through a sign-in and through a token
//! file: calls and their results, tools that come and go in mid-session, and changes that apply at once.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::TurnStatus;
use switchboard_test_support::model_backends::{Account, Step};

use crate::account_lab::{ALL, ANTHROPIC, AccountLab, CHATGPT, GEMINI, WAYS, named};
use crate::lab::{count, ended, toolset, until, until_event};

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

#[tokio::test]
async fn results_and_errors_of_tools_reach_the_model_of_every_account() {
    let lab = AccountLab::open().await;
    for account in ALL {
        for way in WAYS {
            let talk = lab.talk(account, way).await;
            let step =
                Step::new().call("shop__nowhere", json!({})).call("shop__find", json!({"n": 3}));
            // Google's backend itself refuses calls of undeclared tools.
            let step = if account.is_google() {
                Step::new().call("shop__find", json!({"n": 3}))
            } else {
                step
            };
            lab.lab.fake.script(account.backend, [step, Step::text("done")]);
            let end = ended(&*talk.begin("go").await).await;
            assert_eq!(end.status, TurnStatus::Completed, "{} {way}: {end:#?}", account.name);
            let sent = lab.answers(account).pop().unwrap().body.to_string().replace('\\', "");
            assert!(sent.contains("\"n\":3") || sent.contains("\"n\": 3"), "{sent}");
            if !account.is_google() {
                assert!(
                    sent.contains("no tool `shop__nowhere`") || sent.contains("shop__nowhere"),
                    "{sent}"
                );
            }
        }
    }
    lab.lab.is_clean();
    lab.lab.end().await;
}
