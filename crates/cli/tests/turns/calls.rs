//! Single, parallel and failing calls, with the same results for every backend.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::model_backends::{Backend, Step};
use switchboard_test_support::{Reply, Tool};

use crate::lab::{ACCOUNTS, Account, Lab, Plan, shop_tools};

/// The results in the last request, as texts, in their order. Backends disagree about where they are.
fn results_sent(lab: &Lab, account: Account) -> Vec<String> {
    let body = lab.bodies(account).pop().unwrap().body;
    let found = match account.backend {
        Backend::OpenAi | Backend::ChatGpt => {
            let items = body["input"].as_array().unwrap().iter();
            let outputs = items.filter(|item| item["type"] == "function_call_output");
            outputs.map(|item| item["output"].to_string()).collect()
        }
        Backend::Chat => {
            let messages = body["messages"].as_array().unwrap().iter();
            let results = messages.filter(|message| message["role"] == "tool");
            results.map(|message| message["content"].to_string()).collect()
        }
        Backend::Anthropic => {
            let last = body["messages"].as_array().unwrap().last().unwrap();
            assert_eq!(last["role"], "user");
            let blocks = last["content"].as_array().unwrap().iter();
            blocks.map(|block| format!("{} {}", block["is_error"], block["content"])).collect()
        }
        Backend::Gemini | Backend::CodeAssist => {
            let body = if body["request"].is_object() { &body["request"] } else { &body };
            let last = body["contents"].as_array().unwrap().last().unwrap();
            assert_eq!(last["role"], "user");
            let parts = last["parts"].as_array().unwrap().iter();
            parts.map(|part| part["functionResponse"]["response"].to_string()).collect()
        }
    };
    let found: Vec<String> = found;
    found
}

#[tokio::test]
async fn one_call_is_answered_in_the_shape_of_each_backend() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        let heard = talk.hear(json!({"message": "call shop__find {\"n\": 7}"})).await;
        assert_eq!(heard.status(), "completed", "{}: {:#?}", account.name, heard.0);
        assert_eq!((heard.count("tool_call"), heard.count("tool_result")), (1, 1));
        assert!(heard.text().contains("results: ") && heard.text().contains('7'), "{heard:#?}");
        let sent = results_sent(&lab, account);
        assert!(sent.len() == 1 && sent[0].contains('7'), "{}: {sent:?}", account.name);
        assert_eq!(talk.history().await.len(), 4);
        lab.is_clean();
    }
    assert_eq!(lab.calls(), ACCOUNTS.len());
    let project = lab.fake.requests().into_iter().filter(|it| it.path.contains("loadCodeAssist"));
    assert_eq!(project.count(), 1, "the project is looked up once");
}

#[tokio::test]
async fn parallel_calls_run_at_the_same_time_and_are_answered_in_their_order() {
    let tools = vec![Tool::echo("slow").sleeps(250), Tool::echo("quick")];
    let lab = Lab::with(Plan { tools, ..Plan::default() }).await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        let text = "call shop__slow {\"n\": 1, \"sleep_ms\": 300}\ncall shop__quick {\"n\": 2}\n\
                    call shop__slow {\"n\": 3, \"sleep_ms\": 200}\ncall shop__quick {\"n\": 4}";
        let heard = talk.hear(json!({ "message": text })).await;
        assert_eq!(heard.status(), "completed", "{}: {:#?}", account.name, heard.0);
        let order = |name: &str| -> Vec<String> {
            heard.all(name).map(|data| data["id"].as_str().unwrap().to_owned()).collect()
        };
        let (called, returned) = (order("tool_call"), order("tool_result"));
        assert_eq!(called, talk.call_ids().await);
        assert_eq!(returned.last(), called.first(), "the slowest comes last: {returned:?}");
        let sent = results_sent(&lab, account);
        let numbers: Vec<_> = (1..=4).map(|n| format!("\"n\":{n}")).collect();
        let plain = |text: &str| text.replace(['\\', ' '], "");
        for (sent, number) in sent.iter().zip(&numbers) {
            assert!(plain(sent).contains(number), "{}: {sent:?}", account.name);
        }
        assert_eq!(sent.len(), 4);
        lab.is_clean();
    }
    assert_eq!(lab.shop.stats().peak_of("slow"), 2, "both ran at the same time");
}

#[tokio::test]
async fn calls_that_go_wrong_are_answered_and_the_turn_goes_on() {
    let failing = [
        Tool::echo("fails").replies(Reply::ToolError("out of stock".into())),
        Tool::echo("breaks").replies(Reply::RpcError { code: -32000, message: "boom".into() }),
        Tool::echo("typed").schema(
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
        ),
    ];
    let tools = shop_tools().into_iter().chain(failing).collect();
    let lab = Lab::with(Plan { tools, ..Plan::default() }).await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        let text = "call shop__fails {}\ncall shop__breaks {}\ncall shop__typed {\"n\": \"x\"}\n\
                    call shop__find {\"n\": 1}";
        talk.say(account.name, text).await;
        let results = talk.results().await;
        let errors: Vec<_> = results.iter().map(|(_, is_error)| *is_error).collect();
        assert_eq!(errors, [true, true, true, false], "{}: {results:?}", account.name);
        assert!(results[0].0.contains("out of stock") && results[1].0.contains("boom"));
        let sent = results_sent(&lab, account);
        assert!(sent[0].contains("out of stock"), "{sent:?}");
        if account.backend == Backend::Anthropic {
            assert!(sent[0].starts_with("true"), "{sent:?}");
        }
        lab.is_clean();
    }
    assert_eq!(lab.shop.stats().peak_of("typed"), 0, "what does not fit is not sent");
}

/// A call that the backend itself lets through, and that must not run.
async fn never_runs(lab: &Lab, account: Account, step: Step, expected: &str) {
    let before = lab.calls();
    lab.fake.script(account.backend, [step]);
    let talk = lab.talk(json!({"provider": account.name})).await;
    let heard = talk.hear(json!({"message": "do it"})).await;
    assert_eq!(heard.status(), "completed", "{}: {:#?}", account.name, heard.0);
    let results = talk.results().await;
    match expected {
        "" => assert_eq!(results, [], "{}", account.name),
        text => {
            assert!(results.len() == 1 && results[0].1, "{}: {results:?}", account.name);
            assert!(results[0].0.contains(text), "{}: {results:?}", account.name);
        }
    }
    assert_eq!(lab.calls(), before, "{}: nothing was called", account.name);
    lab.is_clean();
    // Another provider can go on with it.
    talk.say(account.other().name, "call shop__find {}").await;
    lab.is_clean();
    assert_eq!(lab.calls(), before + 1);
}

#[tokio::test]
async fn unknown_unreadable_and_truncated_calls_are_never_run() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let is_google = matches!(account.backend, Backend::Gemini | Backend::CodeAssist);
        // Gemini itself refuses what is unknown or unreadable: that is another test.
        if !is_google {
            let unknown = Step::new().call("shop__nothing", json!({"n": 1}));
            never_runs(&lab, account, unknown, "shop__nothing").await;
            let unreadable = Step::new().call_raw("shop__find", "{\"n\": ");
            never_runs(&lab, account, unreadable, "not a JSON object").await;
            let no_object = Step::new().call_raw("shop__find", "[1]");
            never_runs(&lab, account, no_object, "not a JSON object").await;
        }
        let truncated = Step::text("I will").call("shop__find", json!({"n": 1})).truncated();
        never_runs(&lab, account, truncated, "").await;
    }
}

#[tokio::test]
async fn gemini_is_corrected_when_it_calls_what_is_not_there() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        if !matches!(account.backend, Backend::Gemini | Backend::CodeAssist) {
            continue;
        }
        for (step, kind, words) in [
            (Step::new().call("shop__nothing", json!({})), "unexpected_call", "not declared"),
            (Step::new().call_raw("shop__find", "{nonsense"), "malformed_call", "not well-formed"),
        ] {
            lab.fake.script(account.backend, [step]);
            let talk = lab.talk(json!({"provider": account.name})).await;
            let heard = talk.hear(json!({"message": "call shop__find {\"n\": 1}"})).await;
            assert_eq!(heard.status(), "completed", "{:#?}", heard.0);
            let retried: Vec<_> = heard.all("retrying").map(|it| &it["error"]["kind"]).collect();
            assert_eq!(retried, [kind]);
            let bodies = lab.bodies(account);
            // The correction is the last thing that it hears, and it is kept nowhere.
            let corrected: Vec<_> =
                bodies.iter().filter(|it| it.body.to_string().contains(words)).collect();
            assert_eq!(corrected.len(), 1, "{kind}");
            let history = talk.chat.get("/history").await.to_string();
            assert!(!history.contains(words), "{history}");
            lab.is_clean();
            lab.fake.clear();
        }
    }
}

#[tokio::test]
async fn calls_without_arguments_and_under_renamed_keys_reach_their_tool() {
    let schema = json!({"type": "object", "properties": {"a b": {"type": "string"}, "$c": {"type": "integer"}}});
    let tools = vec![Tool::echo("odd").schema(schema), Tool::echo("bare")];
    let lab = Lab::with(Plan { tools, ..Plan::default() }).await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        lab.fake.script(account.backend, [Step::new().call("shop__bare", json!({}))]);
        talk.say(account.name, "go").await;
        let rendered: Value =
            serde_json::from_str(&talk.chat.bare(rendering(account)).await).unwrap();
        let text = rendered.to_string();
        // The model writes the keys that it was shown.
        let key = if text.contains("\"a b\"") { "a b" } else { "a_b" };
        talk.say(account.name, &format!("call shop__odd {{\"{key}\": \"x\"}}")).await;
        let call = lab.shop.stats().calls.pop().unwrap();
        assert_eq!(call.params["arguments"], json!({"a b": "x"}), "{}", account.name);
        lab.is_clean();
    }
}

fn rendering(account: Account) -> &'static str {
    match account.backend {
        Backend::OpenAi | Backend::ChatGpt => "openai",
        Backend::Chat => "openai-chat",
        Backend::Anthropic => "anthropic",
        Backend::Gemini | Backend::CodeAssist => "gemini",
    }
}
