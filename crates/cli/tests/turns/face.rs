//! Turns over HTTP: following, reconnecting, cancelling, and starting the same turn twice.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::model_backends::{Backend, Step};
use switchboard_test_support::{Reply, Tool};

use crate::chat::Api;
use crate::lab::{ACCOUNTS, Lab, OPENAI, Plan, shop_tools};
use crate::talk::{heard_out, until, until_event};

fn slow_tools() -> Vec<Tool> {
    let hangs = Tool::echo("hangs").replies(Reply::Hang);
    shop_tools().into_iter().chain([Tool::echo("slow").sleeps(300), hangs]).collect()
}

#[tokio::test]
async fn json_and_events_tell_the_same() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({})).await;
        let body = json!({"id": "one", "provider": account.name, "message": "think\ncall shop__find {\"n\": 1}"});
        let turn = talk.turn(body).await;
        let heard = heard_out(talk.follow("one", None).await).await;
        assert_eq!(turn["text"], heard.text());
        assert_eq!(turn["status"], heard.status());
        assert_eq!(turn["events"], heard.0.len());
        let done = &heard.0.last().unwrap().data;
        assert_eq!(turn["usage"], done["usage"]);
        assert_eq!(turn["messages"].as_array().unwrap().len(), 4);
        assert_eq!(done["messages"], 4);
        assert_eq!(turn["messages"], talk.chat.get("/history").await["messages"]);
        assert_eq!(talk.chat.get("/turns/one").await, turn);
        assert_eq!(talk.chat.get("/turns").await["turns"], json!([turn]));
        assert_eq!(heard.count("usage"), 2, "{}: each request has its cost", account.name);
        lab.is_clean();
    }
}

#[tokio::test]
async fn who_drops_the_stream_comes_back_and_misses_nothing() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        let call = Step::text("one two three four five").call("shop__find", json!({"n": 1}));
        let pace = std::time::Duration::from_millis(10);
        let last = Step::text("six seven eight nine ten eleven twelve");
        lab.fake.script(account.backend, [call.pace(pace), last.pace(pace)]);
        let events = talk.begin(json!({"id": "t", "message": "go"})).await;
        until(async || events.heard().len() >= 3).await;
        let mut all = events.heard();
        drop(events);
        // Away and back, several times.
        loop {
            let at = all.last().unwrap().id.clone();
            let again = talk.follow("t", Some(&at)).await;
            until(async || !again.heard().is_empty()).await;
            all.extend(again.heard());
            if all.last().unwrap().name == "done" {
                break;
            }
        }
        let whole = heard_out(talk.follow("t", None).await).await;
        assert_eq!(all, whole.0, "{}", account.name);
        assert_eq!(whole.text(), "six seven eight nine ten eleven twelve");
        for unknown in ["0", "999999", "nonsense", "-1"] {
            let again = heard_out(talk.follow("t", Some(unknown)).await).await;
            assert_eq!(again.0.len(), whole.0.len(), "after {unknown}");
        }
        let mut end = talk.follow("t", Some(&whole.0.len().to_string())).await;
        end.ended().await;
        assert_eq!(end.heard(), []);
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_cancelled_turn_closes_the_stream_and_keeps_what_was_said() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        let closed = lab.fake.closed_by_client();
        lab.fake.script(account.backend, [Step::text("I have just begun to").hang()]);
        let events = talk.begin(json!({"id": "t", "message": "go"})).await;
        let is_said = async || {
            let said = events.heard().into_iter().filter(|event| event.name == "content");
            said.map(|event| event.data["delta"].as_str().unwrap().to_owned()).collect::<String>()
                == "I have just begun to"
        };
        until(is_said).await;
        let turn = talk.cancel("t").await;
        assert_eq!(
            (&turn["status"], &turn["text"]),
            (&json!("cancelled"), &json!("I have just begun to"))
        );
        let heard = heard_out(events).await;
        assert_eq!((heard.status(), heard.count("error")), ("cancelled", 0));
        until(async || lab.fake.closed_by_client() == closed + 1).await;
        assert_eq!(talk.cancel("t").await["status"], "cancelled", "again is the same");
        let said = talk.say(account.other().name, "and now?").await;
        assert_eq!(said, "echo: and now?");
        assert_eq!(talk.history().await.len(), 4);
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_cancelled_turn_cancels_its_calls_upstream_and_answers_them() {
    let lab = Lab::with(Plan { tools: slow_tools(), ..Plan::default() }).await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        let message = "call shop__hangs {}\ncall shop__find {\"n\": 1}";
        let events = talk.begin(json!({"id": "t", "message": message})).await;
        until_event(&events, "tool_result").await;
        let running = || lab.shop.stats().running_calls;
        until(async || running() == 1).await;
        talk.cancel("t").await;
        until(async || running() == 0).await;
        let heard = heard_out(events).await;
        assert_eq!((heard.status(), heard.count("tool_result")), ("cancelled", 2));
        let results = talk.results().await;
        assert_eq!(
            results.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(),
            [true, false]
        );
        assert!(results[0].0.contains("cancelled"), "{results:?}");
        talk.say(account.name, "and now?").await;
        talk.say(account.other().name, "and now?").await;
        lab.is_clean();
    }
}

#[tokio::test]
async fn the_same_turn_twice_runs_once_and_another_one_waits_for_its_turn() {
    let lab = Lab::with(Plan { tools: slow_tools(), ..Plan::default() }).await;
    let talk = lab.talk(json!({"provider": "openai"})).await;
    let body = json!({"id": "mine", "message": "call shop__slow {\"n\": 1}"});
    let (first, second) = tokio::join!(talk.turn(body.clone()), talk.turn(body.clone()));
    assert_eq!(first, second);
    assert_eq!(talk.turn(body.clone()).await, first, "also when it has ended");
    assert_eq!((lab.calls(), lab.fake.request_count(Backend::OpenAi)), (1, 2));
    assert_eq!(talk.history().await.len(), 4);

    let events = talk.begin(json!({"id": "next", "message": "call shop__slow {\"n\": 2}"})).await;
    until_event(&events, "started").await;
    let said = talk.try_turn(json!({"message": "me too"})).await.refused(409, "turn_running");
    assert!(said.contains("next"), "{said}");
    let history = json!({"version": 1, "messages": []});
    talk.chat.try_put("/history", history.clone()).await.refused(409, "turn_running");
    assert_eq!(heard_out(events).await.status(), "completed");
    // Who has heard of the end may begin at once.
    for number in 0..25 {
        let events = talk.begin(json!({"message": format!("hello {number}")})).await;
        assert_eq!(heard_out(events).await.status(), "completed");
    }
    for (wrong, word) in [
        (json!({"id": "no spaces", "message": "x"}), "no spaces"),
        (json!({"message": "x", "max_rounds": 0}), "max_rounds"),
        (json!({"message": "x", "provider": "nobody"}), "nobody"),
        (json!({}), ""),
    ] {
        let said = talk.try_turn(wrong).await.refused(422, "bad_request");
        assert!(said.contains(word), "{said}");
    }
    talk.chat.put("/history", history).await;
    assert_eq!(talk.history().await, []);
    lab.is_clean();
}

#[tokio::test]
async fn a_session_that_ends_takes_its_turn_with_it() {
    let lab = Lab::with(Plan { tools: slow_tools(), ..Plan::default() }).await;
    for (number, message) in ["go", "call shop__hangs {}"].into_iter().enumerate() {
        let id = format!("brief-{number}");
        let talk = lab.talk(json!({"id": id, "provider": "openai"})).await;
        if number == 0 {
            lab.fake.script(OPENAI.backend, [Step::text("I have just").hang()]);
        }
        let events = talk.begin(json!({"id": "t", "message": message})).await;
        until_event(&events, if number == 0 { "content" } else { "tool_call" }).await;
        assert_eq!(talk.chat.delete("").await.status, 204);
        let heard = heard_out(events).await;
        assert_eq!((heard.status(), heard.count("error")), ("cancelled", 0), "{:#?}", heard.0);
        until(async || lab.fake.open_streams() == 0 && lab.shop.stats().running_calls == 0).await;
        talk.chat.api.get(&talk.chat.path("/turns/t")).await.refused(404, "unknown_session");
        // A new one of the same name has nothing of it.
        let new = lab.talk(json!({"id": id})).await;
        assert_eq!(new.chat.get("/turns").await, json!({"turns": []}));
        assert_eq!(new.history().await, []);
        new.say("openai", "hello").await;
    }
    lab.is_clean();
}

#[tokio::test]
async fn the_turns_of_others_are_not_there() {
    let mut lab = Lab::open().await;
    let key = |name: &str| {
        let made = lab.home.line(&format!("key add {name} --role client --json")).expect(0).json();
        made["key"].as_str().unwrap().to_owned()
    };
    let (mine, theirs) = (key("mine"), key("theirs"));
    lab.serve.signal("TERM");
    lab.serve.ended().await;
    lab.serve = lab.home.serve().await;
    let api = Api::of(&lab.serve);
    let talk = crate::talk::Talk { chat: api.with_key(&mine).new_chat(json!({})).await };
    let turn = talk.turn(json!({"id": "t", "provider": "openai", "message": "hello"})).await;
    assert_eq!(turn["status"], "completed");
    let other = talk.chat.as_seen_with(&theirs);
    let history = json!({"version": 1, "messages": []});
    let asked: [(Method, &str, Option<Value>); 7] = [
        (Method::GET, "/history", None),
        (Method::PUT, "/history", Some(history)),
        (Method::GET, "/turns", None),
        (Method::GET, "/turns/t", None),
        (Method::GET, "/turns/t/events", None),
        (Method::POST, "/turns/t/cancel", None),
        (Method::POST, "/turns", Some(json!({"message": "x", "provider": "openai"}))),
    ];
    for (method, tail, body) in asked {
        other.api.send(method, &other.path(tail), body).await.refused(404, "unknown_session");
    }
    assert_eq!(talk.history().await.len(), 2);
    talk.chat.api.get(&talk.chat.path("/turns/nothing")).await.refused(404, "unknown_turn");
}

#[tokio::test]
async fn a_turn_that_is_cancelled_as_it_begins_ends_at_once() {
    let lab = Lab::open().await;
    let talk = lab.talk(json!({"provider": "openai"})).await;
    lab.fake.always(OPENAI.backend, Step::text("I have").hang());
    for number in 0..30 {
        let id = format!("t{number}");
        let body = json!({"id": id, "message": "go"});
        let cancelled = async {
            let path = talk.chat.path(&format!("/turns/{id}/cancel"));
            loop {
                let answer = talk.chat.api.send(Method::POST, &path, None).await;
                if answer.status.is_success() {
                    return answer.body["status"].clone();
                }
            }
        };
        let (turn, status) = tokio::join!(talk.turn(body), cancelled);
        assert_eq!((&turn["status"], status), (&json!("cancelled"), json!("cancelled")));
    }
    until(async || lab.fake.open_streams() == 0).await;
    lab.is_clean();
}

#[tokio::test]
async fn who_goes_away_while_a_turn_begins_blocks_nobody() {
    let lab = Lab::open().await;
    let mut talks = Vec::new();
    for number in 0..80 {
        // A session that is new is not stored yet, so there is something to wait for.
        let talk = lab.talk(json!({"provider": "openai"})).await;
        let patience = std::time::Duration::from_micros(80 * number);
        let _gone =
            tokio::time::timeout(patience, talk.try_turn(json!({"message": "hello"}))).await;
        talks.push(talk);
    }
    for talk in talks {
        until(async || {
            let turn = talk.try_turn(json!({"message": "last"})).await;
            turn.status.is_success() && turn.body["status"] == "completed"
        })
        .await;
        talk.history().await;
    }
    lab.is_clean();
}

#[tokio::test]
async fn a_turn_that_waits_for_its_provider_can_be_cancelled_and_sees_changes() {
    let lab = Lab::open().await;
    let limited = |seconds| Step::new().status(429, &[("retry-after", seconds)], "{}");
    for account in ACCOUNTS {
        if matches!(account.backend, Backend::Gemini | Backend::CodeAssist) {
            continue;
        }
        let talk = lab.talk(json!({"provider": account.name, "toolsets": {"buy": false}})).await;
        lab.fake.script(account.backend, [limited("30")]);
        let events = talk.begin(json!({"id": "t", "message": "go"})).await;
        until_event(&events, "retrying").await;
        talk.cancel("t").await;
        assert_eq!(heard_out(events).await.status(), "cancelled");
        let before = lab.calls();
        lab.fake.script(account.backend, [limited("1")]);
        let events = talk.begin(json!({"message": "call shop__order {}"})).await;
        until_event(&events, "retrying").await;
        talk.apply_now(Method::PUT, "/toolsets/buy", json!({"enabled": true})).await;
        let heard = heard_out(events).await;
        assert_eq!((heard.status(), heard.count("restarted")), ("completed", 0));
        assert_eq!(lab.calls(), before + 1, "{}", account.name);
        lab.is_clean();
    }
}
