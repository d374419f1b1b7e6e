//! Backends that answer badly: the turn recovers, or ends with one error and `done`, and the conversation continues
//! with another provider.

use std::time::Duration;

use futures::future::join_all;
use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::model_backends::{Backend, FakeBackends, Quirk, Step};

use crate::lab::{
    ACCOUNTS, ANTHROPIC, Account, CHAT, CHATGPT, CODE_ASSIST, GEMINI, Lab, OPENAI, Plan, SECRET,
    assert_clean,
};

/// One of each backend.
const BACKENDS: [Account; 6] = [OPENAI, CHATGPT, CHAT, ANTHROPIC, GEMINI, CODE_ASSIST];

/// Something that a backend does wrong.
struct Fault {
    name: &'static str,
    step: fn(Account) -> Step,
    /// Whether another try is worth it.
    may_pass: bool,
    /// What it is called in the end.
    kinds: &'static [&'static str],
}

/// Makes a stream odd.
type Made = fn(Step) -> Step;

const fn fault(
    name: &'static str,
    may_pass: bool,
    kinds: &'static [&'static str],
    step: fn(Account) -> Step,
) -> Fault {
    Fault { name, step, may_pass, kinds }
}

const LONG: &str =
    "This is a long answer that will not come to its end, whatever happens to the connection.";

fn long_call() -> Step {
    Step::text("I order").call("shop__order", json!({"text": LONG.repeat(20)}))
}

fn error_event(account: Account) -> Step {
    let kind = match account.backend {
        Backend::OpenAi | Backend::ChatGpt | Backend::Chat => "server_error",
        Backend::Anthropic => "overloaded_error",
        Backend::Gemini | Backend::CodeAssist => "UNAVAILABLE",
    };
    Step::text("hm").error_event(kind, format!("try later, you with the key {}", account.key))
}

const BROKEN_STREAMS: &[Fault] = &[
    fault("cut-at-once", true, &["interrupted"], |_| Step::text(LONG).cut_after(0)),
    fault("cut-in-text", true, &["interrupted"], |_| Step::text(LONG).cut_after(700)),
    fault("cut-in-call", true, &["interrupted"], |_| long_call().cut_after(1200)),
    fault("ends-in-text", true, &["interrupted"], |_| Step::text(LONG).end_after(700)),
    fault("no-end", true, &["interrupted"], |_| long_call().quirk(Quirk::NoEnd)),
    fault("empty", true, &["interrupted", "unreadable"], |_| Step::new().raw("")),
    fault("nothing-said", true, &["interrupted"], |_| Step::new()),
    fault("hangs", true, &["timeout"], |_| Step::text(LONG).hang()),
    fault("silent", true, &["timeout"], |_| Step::new().silent()),
    fault("error-event", true, &["overloaded", "provider_error"], error_event),
];

const NO_STREAMS: &[Fault] = &[
    fault("no-json", true, &["unreadable", "interrupted"], |_| {
        Step::new().raw("data: {nonsense\n\n")
    }),
    fault("no-text", true, &["unreadable", "interrupted"], |_| {
        Step::new().raw(&b"data: \xff\xfe\n\nevent: \xff\ndata: {\"\xff\": 1}\n\n"[..])
    }),
    fault("page", true, &["unreadable"], |_| Step::new().html(200, "<html>Log in, please</html>")),
    fault("page-502", true, &["provider_error", "overloaded"], |_| {
        Step::new().html(502, "<html>Bad gateway</html>")
    }),
    fault("failed", true, &["provider_error"], |_| Step::new().status(500, &[], "{}")),
    fault("overloaded", true, &["overloaded", "provider_error"], |_| {
        Step::new().status(529, &[], json!({"error": {"message": "busy"}}).to_string())
    }),
    fault("limited", true, &["rate_limited"], |_| {
        Step::new().status(429, &[("retry-after", "1")], json!({"error": {}}).to_string())
    }),
    fault("wrong-key", false, &["credentials"], |account| {
        let said = format!("Incorrect API key: {}", account.key);
        let body = json!({"error": {"message": said, "code": account.key}});
        Step::new().status(401, &[], body.to_string())
    }),
    fault("forbidden", false, &["forbidden", "credentials"], |_| {
        Step::new().status(403, &[], json!({"error": {"message": "no"}}).to_string())
    }),
    fault("bad-request", false, &["bad_request"], |_| {
        Step::new().status(400, &[], json!({"error": {"message": "no"}}).to_string())
    }),
    fault("not-found", false, &["not_found"], |_| Step::new().status(404, &[], "nothing")),
];

/// A board with several broken providers, each with another fault, and working ones.
struct Ward {
    lab: Lab,
    bad: Vec<FakeBackends>,
}

impl Ward {
    async fn open(faults: &[Fault]) -> Self {
        let mut bad = Vec::new();
        let mut more = Vec::new();
        for fault in faults {
            let fake = FakeBackends::start().await;
            // Only silence is waited for; all else may take its time on a busy machine.
            let is_silent = fault.kinds.contains(&"timeout");
            let idle = if is_silent { "idle_timeout: 400ms" } else { "idle_timeout: 20s" };
            more.extend(BACKENDS.map(|account| {
                let name = format!("{}-{}", account.name, fault.name);
                account.entry(&name, &fake, idle)
            }));
            bad.push(fake);
        }
        Self { lab: Lab::with(Plan { more, ..Plan::default() }).await, bad }
    }

    async fn check(&self, fault: &Fault, fake: &FakeBackends, account: Account) {
        let bad = format!("{}-{}", account.name, fault.name);
        let message = "call shop__find {\"n\": 1}";
        let talk = self.lab.talk(json!({})).await;
        if fault.may_pass {
            fake.script(account.backend, [(fault.step)(account)]);
            let heard = talk.hear(json!({"provider": bad, "message": message})).await;
            assert_eq!(heard.status(), "completed", "{bad}: {:#?}", heard.0);
            assert_eq!((heard.count("retrying"), heard.count("error")), (1, 0), "{bad}");
            assert!(heard.text().starts_with("results: "), "{bad}: {}", heard.text());
        }
        fake.always(account.backend, (fault.step)(account));
        let before = fake.answers(account).len();
        let heard = talk.hear(json!({"provider": bad, "message": message})).await;
        assert_eq!((heard.status(), heard.count("error")), ("failed", 1), "{bad}: {:#?}", heard.0);
        assert!(fault.kinds.contains(&heard.error()), "{bad}: {:#?}", heard.0.iter().rev().nth(1));
        let tries = fake.answers(account).len() - before;
        assert_eq!(tries, if fault.may_pass { 4 } else { 1 }, "{bad}");
        assert_eq!(heard.count("tool_call"), 0, "{bad}: what is not whole is not run");
        let calls = talk.call_ids().await;
        assert_eq!(calls.len(), usize::from(fault.may_pass), "{bad}");
        assert_clean(fake, &self.lab.serve);
        // The message was stored, and another provider can answer it.
        let text = talk.say(account.other().name, "call shop__price {\"n\": 2}").await;
        assert!(text.contains("results: "), "{bad}: {text}");
    }

    async fn check_all(&self, faults: &[Fault]) {
        let all = faults
            .iter()
            .zip(&self.bad)
            .flat_map(|(fault, fake)| BACKENDS.map(|account| self.check(fault, fake, account)));
        join_all(all).await;
        self.lab.is_clean();
        assert_eq!(self.lab.shop.stats().peak_of("order"), 0, "a call that is cut never runs");
    }
}

#[tokio::test]
async fn streams_that_break_are_tried_again_and_end_in_one_error() {
    Ward::open(BROKEN_STREAMS).await.check_all(BROKEN_STREAMS).await;
}

#[tokio::test]
async fn answers_that_are_no_streams_end_in_one_error() {
    Ward::open(NO_STREAMS).await.check_all(NO_STREAMS).await;
}

#[tokio::test]
async fn odd_streams_are_read_all_the_same() {
    let lab = Lab::open().await;
    let words = "Gr\u{fc}\u{df}e \u{1F642}\u{200D}\u{1F4BB} \u{65e5}\u{672c}\u{8a9e} end";
    let odd: [(&str, Made); 8] = [
        ("by bytes", |step| step.split(1)),
        ("in threes", |step| step.split(3)),
        ("CRLF", Step::crlf),
        ("CRLF by bytes", |step| step.crlf().split(1)),
        ("comments", Step::comments),
        ("unknown events", Step::unknown_events),
        ("no usage", Step::without_usage),
        ("all of it", |step| step.crlf().comments().unknown_events().without_usage().split(5)),
    ];
    for account in ACCOUNTS {
        let talk = lab.talk(json!({})).await;
        for (name, make) in odd {
            let call = Step::text(words).call("shop__find", json!({"text": words}));
            lab.fake.script(account.backend, [make(call), make(Step::text(words))]);
            let heard = talk.hear(json!({"provider": account.name, "message": name})).await;
            assert_eq!(heard.status(), "completed", "{} {name}: {:#?}", account.name, heard.0);
            assert_eq!(heard.text(), words, "{} {name}", account.name);
            let sent = lab.shop.stats().calls.pop().unwrap().params["arguments"].clone();
            assert_eq!(sent, json!({ "text": words }), "{} {name}", account.name);
            assert_eq!(heard.count("retrying"), 0, "{} {name}", account.name);
            lab.is_clean();
        }
    }
}

#[tokio::test]
async fn chat_servers_with_habits_are_understood() {
    let lab = Lab::open().await;
    let talk = lab.talk(json!({"provider": "chat"})).await;
    for quirks in [
        vec![Quirk::NoIndex],
        vec![Quirk::RepeatedName],
        vec![Quirk::NoId],
        vec![Quirk::NullId],
        vec![Quirk::NoType],
        vec![Quirk::StopWithCalls],
        vec![Quirk::WholeArguments],
        vec![Quirk::NoIndex, Quirk::NoId, Quirk::WholeArguments, Quirk::StopWithCalls],
    ] {
        let two =
            Step::new().call("shop__find", json!({"n": 1})).call("shop__find", json!({"n": 2}));
        let step = quirks.iter().fold(two, |step, quirk| step.quirk(*quirk));
        let before = lab.calls();
        lab.fake.script(Backend::Chat, [step]);
        talk.say("chat", "go").await;
        assert_eq!(lab.calls(), before + 2, "{quirks:?}");
        lab.is_clean();
    }
    talk.say("anthropic", "call shop__find {}").await;
    talk.say("gemini", "call shop__find {}").await;
    lab.is_clean();
}

/// Answers that are too large, in each format, and then a conversation that goes on.
async fn is_too_large(step: fn() -> Step) {
    let lab = Lab::open().await;
    let all = [OPENAI, CHAT, ANTHROPIC, GEMINI].map(async |account| {
        let talk = lab.talk(json!({})).await;
        lab.fake.script(account.backend, [step()]);
        let turn = talk.turn(json!({"provider": account.name, "message": "go"})).await;
        assert_eq!(turn["status"], "failed", "{}: {}", account.name, turn["error"]);
        assert_eq!(turn["error"]["kind"], "too_large", "{}: {}", account.name, turn["error"]);
        talk
    });
    let talks = join_all(all).await;
    assert_eq!(lab.calls(), 0);
    for (talk, account) in talks.into_iter().zip([CHAT, ANTHROPIC, GEMINI, OPENAI]) {
        talk.say(account.name, "call shop__find {}").await;
    }
    lab.is_clean();
}

#[tokio::test]
async fn fifty_megabytes_are_given_up_without_another_try() {
    is_too_large(|| {
        let piece = "x".repeat(256 << 10);
        Step::new().repeat_delta((50 << 20) / piece.len(), piece)
    })
    .await;
}

#[tokio::test]
async fn ten_thousand_calls_in_one_answer_are_given_up_without_another_try() {
    is_too_large(|| {
        let numbers = 0..10_000;
        numbers.fold(Step::new(), |step, number| step.call("shop__find", json!({ "n": number })))
    })
    .await;
}

#[tokio::test]
async fn what_a_provider_says_of_waiting_is_believed() {
    let lab = Lab::open().await;
    let told = |account: Account, seconds: &str| match account.backend {
        Backend::Gemini | Backend::CodeAssist => {
            let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")});
            let error = json!({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": [retry]}});
            Step::new().status(429, &[], error.to_string())
        }
        Backend::OpenAi | Backend::ChatGpt | Backend::Chat | Backend::Anthropic => {
            Step::new().status(429, &[("retry-after", seconds)], "{}")
        }
    };
    let all = BACKENDS.map(async |account| {
        let talk = lab.talk(json!({})).await;
        lab.fake.script(account.backend, [told(account, "2")]);
        let begun = tokio::time::Instant::now();
        let heard = talk.hear(json!({"provider": account.name, "message": "hello"})).await;
        assert_eq!(heard.status(), "completed", "{}: {:#?}", account.name, heard.0);
        let after: Vec<_> = heard.all("retrying").map(|it| it["after_ms"].clone()).collect();
        assert_eq!(after, [2000], "{}", account.name);
        assert!(begun.elapsed() >= Duration::from_secs(2));
        // Nobody waits for an hour.
        lab.fake.script(account.backend, [told(account, "3600")]);
        let heard = talk.hear(json!({"provider": account.name, "message": "hello"})).await;
        assert_eq!(heard.status(), "failed", "{}", account.name);
        assert_eq!(heard.count("retrying"), 0, "{}", account.name);
    });
    join_all(all).await;
    lab.is_clean();
}

#[tokio::test]
async fn a_key_that_is_refused_is_shown_nowhere() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        lab.fake.refuse_credential(account.key);
        let talk = lab.talk(json!({})).await;
        let heard = talk.hear(json!({"provider": account.name, "message": "hello"})).await;
        assert_eq!((heard.status(), heard.error()), ("failed", "credentials"), "{}", account.name);
        assert_eq!(heard.count("retrying"), 0);
    }
    let said = format!("{}{}", lab.serve.stdout(), lab.serve.stderr());
    assert!(!said.contains(SECRET), "{said}");
    let shown = lab.api.text("/providers").await;
    assert!(!shown.contains(SECRET), "{shown}");
}
