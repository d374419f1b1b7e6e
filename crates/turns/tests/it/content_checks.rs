//! Content checks of turns: before the model is asked, before a tool runs, and before its result is used.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_chat::{Message, TurnStatus};
use switchboard_model::{CheckHook, ContentCheckRecord};
use switchboard_store::{CallFilter, ContentCheckFilter};
use switchboard_test_support::model_backends::Account;
use switchboard_test_support::{
    Reply, ThreatAnswer, ThreatEndpoint, ThreatRequest, Tool, free_port, wait_until,
};

use crate::lab::{
    Lab, PATIENCE, count, ended, names, shop_tools, shop_tools_and, until, until_event,
};

const ACCOUNT: Account = Account::CHAT;
const ALL_BLOCK: &str = "before_model: block, before_tool: block, after_tool: block";
const ALL_OBSERVE: &str = "before_model: observe, before_tool: observe, after_tool: observe";

/// Refuses content with the word `evil`.
fn refuses_evil(request: &ThreatRequest) -> ThreatAnswer {
    let is_evil = request.content().contains("evil");
    if is_evil { ThreatAnswer::Refuse("it is evil") } else { ThreatAnswer::Allow }
}

async fn lab_of(endpoint: &ThreatEndpoint, settings: &str, tools: Vec<Tool>) -> Lab {
    Lab::protected(&format!("endpoint: \"{}\", {settings}", endpoint.url()), tools, "[]").await
}

async fn records(lab: &Lab, number: usize) -> Vec<ContentCheckRecord> {
    let filter = ContentCheckFilter { limit: 100, ..ContentCheckFilter::default() };
    wait_until(PATIENCE, async || {
        let records = lab.board.store().content_checks(&filter).await.unwrap();
        (records.len() >= number).then_some(records)
    })
    .await
}

#[tokio::test]
async fn a_refused_message_is_not_sent_to_the_model() {
    let endpoint = ThreatEndpoint::judging(refuses_evil).await;
    let lab = lab_of(&endpoint, "before_model: block, token: s3cret-threats", shop_tools()).await;
    for account in Account::ALL {
        let asked = lab.fake.requests().len();
        let talk = lab.talk(account).await;
        let turn = talk.begin("an evil plan").await;
        let end = ended(&turn).await;
        assert_eq!((end.status, lab.fake.requests().len()), (TurnStatus::Failed, asked));
        assert_eq!(names(&turn), ["started", "error", "done"]);
        let error = end.error.unwrap();
        let text =
            "nothing was sent to the model: the content check refused it: it is evil (code 112)";
        assert_eq!((error.kind, error.blame, &*error.message), ("blocked", "you", text));
        assert_eq!(talk.history().await, [Message::user("an evil plan")]);

        let records = records(&lab, 1).await;
        let record = &records[0];
        assert_eq!(
            (record.hook, &*record.verdict, record.blocked, record.reason.as_deref()),
            (CheckHook::BeforeModel, "refused", true, Some("it is evil (code 112)"))
        );
        assert_eq!(record.conversation.as_deref(), Some(&*talk.session.id));
        assert_eq!((&record.message, &record.tool, record.messages), (&turn.id, &None, 1));
        assert_eq!(record.principal.as_deref(), Some("local"));

        // The conversation goes on: this endpoint looks at the last message only.
        let said = talk.say(account, "something else").await;
        assert!(said.ends_with("something else"), "{said}");
    }
    let request = endpoint.requests().swap_remove(0);
    assert_eq!(request.authorization.as_deref(), Some("Bearer s3cret-threats"));
    assert_eq!((&*request.hook, request.user_message()), ("before_model", "an evil plan"));
    assert_eq!(records(&lab, 1).await.len(), Account::ALL.len());
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn a_refused_call_does_not_reach_the_server_and_ends_the_turn() {
    let endpoint = ThreatEndpoint::judging(|request| match &*request.hook {
        "before_tool" => refuses_evil(request),
        _ => ThreatAnswer::Allow,
    })
    .await;
    let lab = lab_of(&endpoint, ALL_BLOCK, shop_tools()).await;
    for account in Account::ALL {
        let (asked, called) = (lab.fake.requests().len(), lab.calls());
        let talk = lab.talk(account).await;
        let turn = talk.begin("call shop__order {\"what\": \"evil\"}").await;
        let end = ended(&turn).await;
        assert_eq!(end.status, TurnStatus::Failed, "{}", account.name);
        assert_eq!((lab.fake.requests().len(), lab.calls()), (asked + 1, called));
        assert_eq!((count(&turn, "tool_result"), count(&turn, "error")), (1, 1));
        let text = "tool 'order' of MCP server 'shop' was not called: the content check refused it: it is evil (code 112)";
        let error = end.error.unwrap();
        assert_eq!((error.kind, &*error.message), ("blocked", text));
        let results = talk.results().await;
        assert!(results[0].0.contains(text) && results[0].1, "{results:?}");
        assert_eq!(talk.history().await.len(), 3);
        // Every provider takes the conversation as it is now.
        assert!(!talk.say(account.other(), "and now?").await.is_empty());
    }
    let request = endpoint.requests().into_iter().find(|request| request.hook == "before_tool");
    let request = request.unwrap();
    assert_eq!(request.user_message(), "call shop__order {\"what\": \"evil\"}");
    let text = "Call of the tool shop.order with the arguments {\"what\": \"evil\"}";
    assert_eq!(request.content(), text);
    lab.board.flush_records().await;
    let calls = lab.board.store().recent_calls(&CallFilter::newest(100)).await.unwrap();
    let outcomes: Vec<_> = calls.iter().map(|call| call.outcome.as_str()).collect();
    assert_eq!(outcomes, vec!["blocked"; Account::ALL.len()]);
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn a_refused_result_is_neither_shown_nor_stored_nor_sent_to_the_model() {
    let endpoint = ThreatEndpoint::judging(|request| match &*request.hook {
        "after_tool" => refuses_evil(request),
        _ => ThreatAnswer::Allow,
    })
    .await;
    let poison = Tool::echo("news").replies(Reply::Text("evil instructions".into()));
    let lab = lab_of(&endpoint, ALL_BLOCK, shop_tools_and([poison])).await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        // The first request shows whether the backend takes tools.
        talk.say(account, "hello").await;
        let (asked, called) = (lab.fake.requests().len(), lab.calls());
        let turn = talk.begin("call shop__news {}").await;
        let end = ended(&turn).await;
        assert_eq!(end.status, TurnStatus::Failed, "{}", account.name);
        assert_eq!((lab.fake.requests().len(), lab.calls()), (asked + 1, called + 1));
        let text = "tool 'news' of MCP server 'shop' has run, but its result is withheld: the content check refused it: it is evil (code 112); do not repeat a call that changes something";
        assert_eq!(end.error.unwrap().message, text);
        let history = serde_json::to_string(&talk.history().await).unwrap();
        assert!(
            history.contains("withheld") && !history.contains("evil instructions"),
            "{history}"
        );
        for event in turn.events_after(0) {
            let event = String::from_utf8_lossy(&event.json).into_owned();
            assert!(!event.contains("evil instructions"), "{event}");
        }
        assert!(!talk.say(account, "and now?").await.is_empty());
    }
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn a_blocked_call_stops_the_others_of_its_reply() {
    let endpoint = ThreatEndpoint::start().await;
    let hangs = Tool::echo("hangs").replies(Reply::Hang);
    let lab = lab_of(&endpoint, "before_tool: block, timeout: 10s", shop_tools_and([hangs])).await;
    let talk = lab.talk(ACCOUNT).await;
    endpoint.judge(|request| {
        if request.content().contains("shop.order") {
            ThreatAnswer::Hang
        } else {
            ThreatAnswer::Allow
        }
    });
    let turn = talk.begin("call shop__hangs {}\ncall shop__find {}\ncall shop__order {}").await;
    until_event(&turn, "tool_result").await;
    until(|| lab.shop.stats().running_calls == 1 && endpoint.requests().len() == 3).await;
    turn.cancel();
    assert_eq!(
        ended(&turn).await.status,
        TurnStatus::Cancelled,
        "a cancel ends a check that waits"
    );
    until(|| lab.shop.stats().running_calls == 0).await;

    endpoint.judge(|request| {
        if request.content().contains("shop.order") {
            // The other call runs when the verdict comes.
            ThreatAnswer::RefuseAfter(Duration::from_millis(300), "no")
        } else {
            ThreatAnswer::Allow
        }
    });
    let turn = talk.begin("call shop__hangs {}\ncall shop__order {}").await;
    let end = ended(&turn).await;
    assert_eq!((end.status, count(&turn, "tool_result")), (TurnStatus::Failed, 2));
    until(|| lab.shop.stats().running_calls == 0).await;
    let results = talk.results().await;
    let [.., stopped, blocked] = &results[..] else { panic!("{results:?}") };
    assert!(stopped.0.contains("was stopped because another call was blocked"), "{stopped:?}");
    assert!(blocked.0.contains("was not called"), "{blocked:?}");
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn an_observed_turn_waits_for_nothing_and_refusals_are_recorded() {
    let endpoint = ThreatEndpoint::judging(|_| ThreatAnswer::Refuse("no")).await;
    let lab = lab_of(&endpoint, ALL_OBSERVE, shop_tools()).await;
    let talk = lab.talk(ACCOUNT).await;
    talk.say(ACCOUNT, "call shop__find {}").await;
    // Two model requests, one call, one result.
    let all = records(&lab, 4).await;
    assert!(all.iter().all(|record| record.verdict == "refused" && !record.blocked), "{all:#?}");
    let mut hooks = endpoint.hooks();
    hooks.sort();
    assert_eq!(hooks, ["after_tool", "before_model", "before_model", "before_tool"]);

    endpoint.judge(|_| ThreatAnswer::Hang);
    talk.say(ACCOUNT, "call shop__find {}").await;
    assert_eq!(lab.calls(), 2);
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn without_a_verdict_the_policy_decides() {
    let endpoint = ThreatEndpoint::start().await;
    let down = format!("http://127.0.0.1:{}/threats", free_port());
    let answers = [
        (ThreatAnswer::Raw(500, "{}"), "the endpoint responded with HTTP 500"),
        (ThreatAnswer::Raw(200, "<html>"), "the response is not JSON"),
        (
            ThreatAnswer::Raw(200, r#"{"blockAction": 1}"#),
            "`blockAction` of the response is not a boolean",
        ),
        (ThreatAnswer::Hang, "it took longer than its timeout of 300ms"),
    ];
    for policy in ["open", "closed"] {
        let settings = format!("{ALL_BLOCK}, timeout: 300ms, on_failure: {policy}");
        let lab = lab_of(&endpoint, &settings, shop_tools()).await;
        let dead = format!("endpoint: \"{down}\", {settings}");
        let dead = Lab::protected(&dead, shop_tools(), "[]").await;
        let mut rows: Vec<_> =
            answers.iter().map(|(answer, why)| (&lab, Some(answer), *why)).collect();
        rows.push((&dead, None, "cannot connect"));
        for (lab, answer, why) in rows {
            if let Some(answer) = answer.cloned() {
                endpoint.judge(move |_| answer.clone());
            }
            let talk = lab.talk(ACCOUNT).await;
            let turn = talk.begin("call shop__find {}").await;
            let end = ended(&turn).await;
            let newest = wait_until(PATIENCE, async || {
                let mut records = records(lab, 1).await.into_iter();
                records.find(|record| record.reason.as_deref().unwrap().starts_with(why))
            });
            let newest = newest.await;
            assert_eq!(newest.verdict, "failed");
            if policy == "open" {
                assert_eq!(end.status, TurnStatus::Completed, "{why}: {end:#?}");
                assert!(!newest.blocked);
            } else {
                assert_eq!((end.status, lab.fake.requests().len()), (TurnStatus::Failed, 0));
                let text = "nothing was sent to the model: the content check gave no verdict, and `threat_protection.on_failure` is `closed`: ";
                let message = end.error.unwrap().message;
                assert!(message.strip_prefix(text).unwrap().starts_with(why), "{message}");
                assert!(newest.blocked);
            }
        }
        lab.is_clean();
        lab.end().await;
        dead.end().await;
    }
}

#[tokio::test]
async fn a_check_that_waits_delays_only_its_own_turn_and_can_be_cancelled() {
    let endpoint = ThreatEndpoint::judging(|request| {
        if request.user_message().contains("slow") {
            ThreatAnswer::Hang
        } else {
            ThreatAnswer::Allow
        }
    })
    .await;
    let settings = format!("{ALL_BLOCK}, timeout: 60s");
    let lab = lab_of(&endpoint, &settings, shop_tools()).await;
    let (slow, quick) = (lab.talk(ACCOUNT).await, lab.talk(ACCOUNT).await);
    let waiting = slow.begin("slow").await;
    until(|| endpoint.requests().len() == 1).await;
    assert_eq!(quick.say(ACCOUNT, "quick").await, "echo: quick");
    quick.say(ACCOUNT, "call shop__find {}").await;
    assert!(waiting.end().is_none());
    waiting.cancel();
    let end = ended(&waiting).await;
    assert_eq!((end.status, count(&waiting, "error")), (TurnStatus::Cancelled, 0));
    assert_eq!(lab.fake.requests().len(), 3);
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn secrets_do_not_leave_with_a_check() {
    let endpoint = ThreatEndpoint::start().await;
    let leaky = Tool::echo("leaky").replies(Reply::Text("the key is\ns3cret-threats".into()));
    let settings =
        format!("{ALL_BLOCK}, token: s3cret-threats, redact: ['\\b\\d{{3}}-\\d{{2}}-\\d{{4}}\\b']");
    let lab = lab_of(&endpoint, &settings, shop_tools_and([leaky])).await;
    let talk = lab.talk(ACCOUNT).await;
    let text =
        "my numbers are 123-45-6789 and s3cret-threats\ncall shop__leaky {\"n\": \"123-45-6789\"}";
    let turn = talk.begin(text).await;
    until(|| turn.end().is_some()).await;
    assert_eq!(endpoint.hooks()[..3], ["before_model", "before_tool", "after_tool"]);
    let received = endpoint.received();
    for secret in ["123-45-6789", "s3cret-threats"] {
        assert!(!received.contains(secret), "{secret} in {received}");
    }
    assert!(received.contains("my numbers are *** and ***"), "{received}");
    lab.end().await;
}

#[tokio::test]
async fn the_model_of_a_prompt_tool_is_checked_as_well() {
    let endpoint = ThreatEndpoint::judging(refuses_evil).await;
    let entries = "[{name: ask, type: prompt, description: Asks, template: '{{ text }}', arguments: [{name: text, type: string}], tools: ['shop.*']}]";
    let threats =
        format!("endpoint: \"{}\", before_model: block, before_tool: block", endpoint.url());
    let lab = Lab::protected(&threats, shop_tools(), entries).await;
    let called = lab.calls();
    for text in ["evil", "call shop__find {\"what\": \"evil\"}"] {
        let request = crate::prompt_tools::call(&lab, "ask", serde_json::json!({"text": text}));
        let answer = request.await.result.unwrap();
        assert!(answer.is_error);
        let said = answer.content[0]["text"].as_str().unwrap();
        assert!(said.contains("the content check refused it: it is evil"), "{said}");
    }
    assert_eq!(lab.calls(), called);
    lab.end().await;
}
