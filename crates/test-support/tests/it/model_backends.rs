//! The fake backends over a real socket: scripts, transport faults, counts.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use switchboard_test_support::model_backends::{Backend, FakeBackends, Quirk, Script, Step, Usage};
use switchboard_test_support::wait_until;

const PATIENCE: Duration = Duration::from_secs(10);

fn path_of(backend: Backend) -> &'static str {
    match backend {
        Backend::OpenAi | Backend::ChatGpt => "/responses",
        Backend::Chat => "/chat/completions",
        Backend::Anthropic => "/v1/messages",
        Backend::Gemini => "/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse",
        Backend::CodeAssist => ":streamGenerateContent?alt=sse",
    }
}

/// The smallest request that a backend accepts, with one tool.
fn body_of(backend: Backend, text: &str) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    let contents = json!([{"role": "user", "parts": [{"text": text}]}]);
    let declared =
        json!([{"functionDeclarations": [{"name": "look", "parametersJsonSchema": schema}]}]);
    match backend {
        Backend::OpenAi | Backend::ChatGpt => json!({
            "model": "gpt-5.5", "stream": true, "store": false, "instructions": "be brief",
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}],
            "tools": [{"type": "function", "name": "look", "parameters": schema, "strict": false}],
        }),
        Backend::Chat => json!({
            "model": "m", "stream": true, "messages": [{"role": "user", "content": text}],
            "tools": [{"type": "function", "function": {"name": "look", "parameters": schema}}],
        }),
        Backend::Anthropic => json!({
            "model": "claude-opus-5-5", "stream": true, "max_tokens": 9,
            "messages": [{"role": "user", "content": text}],
            "tools": [{"name": "look", "input_schema": schema}],
        }),
        Backend::Gemini => json!({"contents": contents, "tools": declared}),
        Backend::CodeAssist => json!({
            "model": "gemini-2.5-pro", "project": "p", "user_prompt_id": "u",
            "request": {"contents": contents, "tools": declared},
        }),
    }
}

fn request(fakes: &FakeBackends, backend: Backend, body: &Value) -> reqwest::RequestBuilder {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http.post(format!("{}{}", fakes.base_url(backend), path_of(backend))).json(body);
    match backend {
        Backend::OpenAi | Backend::Chat | Backend::CodeAssist => request.bearer_auth("key"),
        Backend::ChatGpt => request.bearer_auth("token").header("chatgpt-account-id", "a"),
        Backend::Anthropic => {
            request.header("x-api-key", "key").header("anthropic-version", "2023-06-01")
        }
        Backend::Gemini => request.header("x-goog-api-key", "key"),
    }
}

async fn answer(fakes: &FakeBackends, backend: Backend, text: &str) -> String {
    let response = request(fakes, backend, &body_of(backend, text)).send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{backend:?}: {text}");
    text
}

/// The JSON of every event.
fn data_of(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

#[tokio::test]
async fn every_backend_does_what_the_conversation_asks_for() {
    let fakes = FakeBackends::start().await;
    for backend in Backend::ALL {
        let said = answer(&fakes, backend, "think hm\ncall look {\"a\":1}\ncall look").await;
        let names = said.matches("\"name\":\"look\"").count();
        assert!(names >= 2, "{backend:?}: {said}");
        assert!(said.contains("hm"), "{backend:?}: {said}");
        assert_eq!(fakes.request_count(backend), 1);
        assert_eq!(fakes.last_request(backend).unwrap().tools, ["look"]);
    }
    assert_eq!(fakes.violations(), []);
    wait_until(PATIENCE, async || (fakes.open_streams() == 0).then_some(())).await;
    assert_eq!(fakes.closed_by_client(), 0);
}

#[tokio::test]
async fn the_wire_is_as_the_script_says_and_its_content_stays_the_same() {
    let fakes = FakeBackends::start().await;
    for backend in Backend::ALL {
        let step = || Step::text("grüße, 世界").call("look", json!({"a": 1}));
        fakes.script(backend, [step(), step().split(1).comments().crlf().unknown_events()]);
        let plain = answer(&fakes, backend, "hi").await;
        let noisy = answer(&fakes, backend, "hi").await;
        assert!(noisy.contains(": still here\r\n\r\n"), "{noisy}");
        assert!(noisy.contains("future"), "{noisy}");
        let kept = data_of(&noisy).into_iter().filter(|data| !data.to_string().contains("future"));
        assert_eq!(kept.count(), data_of(&plain).len(), "{backend:?}");
        let is_google = matches!(backend, Backend::Gemini | Backend::CodeAssist);
        assert_eq!(plain.contains("\r\n"), is_google, "{backend:?}");
    }
}

#[tokio::test]
async fn an_answer_ends_where_the_script_says() {
    let fakes = FakeBackends::start().await;
    for backend in Backend::ALL {
        fakes.script(
            backend,
            [Step::text("hello").cut_after(40), Step::text("hello").end_after(40)],
        );
        let cut = request(&fakes, backend, &body_of(backend, "hi")).send().await.unwrap();
        let mut stream = cut.bytes_stream();
        let mut received = 0;
        let broken = loop {
            match stream.next().await {
                Some(Ok(chunk)) => received += chunk.len(),
                Some(Err(_)) => break true,
                None => break false,
            }
        };
        assert!(broken && received == 40, "{backend:?}: {broken}, {received}");
        assert_eq!(answer(&fakes, backend, "hi").await.len(), 40, "{backend:?}");
    }
}

#[tokio::test]
async fn a_client_that_goes_away_is_seen() {
    let fakes = FakeBackends::start().await;
    for (count, step) in [(1, Step::text("hello").hang()), (2, Step::new().silent())] {
        fakes.script(Backend::Anthropic, [step]);
        let request = request(&fakes, Backend::Anthropic, &body_of(Backend::Anthropic, "hi"));
        let read = async {
            let response = request.send().await.unwrap();
            response.bytes_stream().collect::<Vec<_>>().await
        };
        let impatient = tokio::time::timeout(Duration::from_millis(300), read).await;
        assert!(impatient.is_err(), "the answer must not end");
        wait_until(PATIENCE, async || (fakes.closed_by_client() == count).then_some(())).await;
        assert_eq!(fakes.open_streams(), 0);
    }
}

#[tokio::test]
async fn a_violation_is_answered_in_the_shape_of_the_provider() {
    let fakes = FakeBackends::start().await;
    for (backend, change, value, shape) in [
        (Backend::OpenAi, "/tools/0/name", json!("a.b"), "/error/code"),
        (Backend::ChatGpt, "/store", json!(true), "/detail"),
        (Backend::Chat, "/messages/0/content", json!(7), "/error/param"),
        (Backend::Anthropic, "/max_tokens", Value::Null, "/error/type"),
        (Backend::Gemini, "/contents/0/role", json!("system"), "/error/status"),
        (Backend::CodeAssist, "/request/contents/0/role", json!("system"), "/0/error/status"),
    ] {
        let mut body = body_of(backend, "hi");
        *body.pointer_mut(change).unwrap() = value;
        fakes.script(backend, [Step::text("not this")]);
        let response = request(&fakes, backend, &body).send().await.unwrap();
        assert_eq!(response.status(), 400, "{backend:?}");
        let said: Value = response.json().await.unwrap();
        assert!(said.pointer(shape).is_some_and(Value::is_string), "{backend:?}: {said}");
        assert_eq!(fakes.steps_left(backend), 1, "a refused request takes no step");
        assert_eq!(fakes.violations().last().unwrap().backend, backend);
        assert!(fakes.last_request(backend).unwrap().refusal.is_some());
    }
}

#[tokio::test]
async fn credentials_are_checked() {
    let fakes = FakeBackends::start().await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for backend in Backend::ALL.into_iter().filter(|backend| *backend != Backend::Chat) {
        let url = format!("{}{}", fakes.base_url(backend), path_of(backend));
        let bare = http.post(url).header("anthropic-version", "2023-06-01");
        let response = bare.json(&body_of(backend, "hi")).send().await.unwrap();
        assert_eq!(response.status(), 401, "{backend:?}");
    }
    let claude = |name: &'static str, value: &'static str| {
        request(&fakes, Backend::Anthropic, &body_of(Backend::Anthropic, "hi")).header(name, value)
    };
    assert_eq!(claude("authorization", "Bearer x").send().await.unwrap().status(), 401);
    fakes.refuse_credential("key");
    assert_eq!(claude("x-other", "y").send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn statuses_pages_and_raw_bytes_come_as_written() {
    let fakes = FakeBackends::start().await;
    let backend = Backend::OpenAi;
    fakes.script(
        backend,
        [
            Step::new().status(529, &[("retry-after", "3")], "{}"),
            Step::new().html(502, "<html>"),
            Step::new().raw("data: \u{fffd}").split(2),
        ],
    );
    let send = async || request(&fakes, backend, &body_of(backend, "hi")).send().await.unwrap();
    let busy = send().await;
    assert_eq!(
        (busy.status().as_u16(), busy.headers()["retry-after"].to_str().unwrap()),
        (529, "3")
    );
    let page = send().await;
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    assert_eq!(page.text().await.unwrap(), "<html>");
    assert_eq!(send().await.text().await.unwrap(), "data: \u{fffd}");
}

#[tokio::test]
async fn local_servers_have_their_quirks() {
    let fakes = FakeBackends::start().await;
    let step = || Step::new().call("look", json!({"a": "a longer text"}));
    let fragments = async |quirk| {
        fakes.script(Backend::Chat, [step().quirk(quirk)]);
        let chunks = data_of(&answer(&fakes, Backend::Chat, "hi").await);
        let finish = chunks.last().unwrap()["choices"][0]["finish_reason"].clone();
        let calls = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0]);
        (calls.filter(|call| !call.is_null()).cloned().collect::<Vec<Value>>(), finish)
    };
    let (plain, finish) = fragments(Quirk::NoType).await;
    assert!(plain.len() > 2 && plain[0].get("type").is_none() && finish == "tool_calls");
    assert_eq!(fragments(Quirk::StopWithCalls).await.1, "stop");
    assert!(fragments(Quirk::NoIndex).await.0.iter().all(|call| call.get("index").is_none()));
    assert!(fragments(Quirk::NoId).await.0.iter().all(|call| call.get("id").is_none()));
    assert_eq!(fragments(Quirk::NullId).await.0[0]["id"], Value::Null);
    assert!(
        fragments(Quirk::RepeatedName)
            .await
            .0
            .iter()
            .all(|call| call["function"]["name"] == "look")
    );
    assert_eq!(fragments(Quirk::WholeArguments).await.0.len(), 1);
}

#[tokio::test]
async fn a_cut_call_is_no_json_and_says_why_it_stopped() {
    let fakes = FakeBackends::start().await;
    for (backend, words) in [
        (Backend::OpenAi, "max_output_tokens"),
        (Backend::ChatGpt, "response.incomplete"),
        (Backend::Chat, "\"finish_reason\":\"length\""),
        (Backend::Anthropic, "\"stop_reason\":\"max_tokens\""),
        (Backend::Gemini, "MAX_TOKENS"),
        (Backend::CodeAssist, "MAX_TOKENS"),
    ] {
        fakes.script(backend, [Step::new().call("look", json!({"a": "b"})).truncated()]);
        let said = answer(&fakes, backend, "hi").await;
        assert!(said.contains(words) && !said.contains("\\\"b\\\"}"), "{backend:?}: {said}");
    }
}

#[tokio::test]
async fn gemini_refuses_a_call_of_a_tool_that_is_not_declared() {
    let fakes = FakeBackends::start().await;
    for backend in [Backend::Gemini, Backend::CodeAssist] {
        fakes.script(backend, [Step::new().call("nobody", json!({}))]);
        let said = answer(&fakes, backend, "hi").await;
        assert!(said.contains("UNEXPECTED_TOOL_CALL") && !said.contains("functionCall"), "{said}");
    }
}

#[tokio::test]
async fn fifty_megabytes_are_made_while_they_are_sent() {
    let fakes = FakeBackends::start().await;
    let piece = "x".repeat(1024);
    fakes.script(Backend::Anthropic, [Step::new().repeat_delta(50 * 1024, &piece)]);
    let body = body_of(Backend::Anthropic, "hi");
    let response = request(&fakes, Backend::Anthropic, &body).send().await.unwrap();
    let mut stream = response.bytes_stream();
    let mut received = 0;
    while let Some(chunk) = stream.next().await {
        received += chunk.unwrap().len();
    }
    assert!(received > 50 * 1024 * 1024, "{received}");
}

#[tokio::test]
async fn code_assist_finds_the_project_of_a_user() {
    let fakes = FakeBackends::start().await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let base = fakes.base_url(Backend::CodeAssist);
    let post = async |method: &str, body: Value| -> Value {
        let request = http.post(format!("{base}{method}")).bearer_auth("t").json(&body);
        request.send().await.unwrap().json().await.unwrap()
    };
    let metadata = || json!({"metadata": {"pluginType": "GEMINI"}});
    assert!(post(":loadCodeAssist", metadata()).await["currentTier"].is_object());
    fakes.require_onboarding();
    assert!(post(":loadCodeAssist", metadata()).await.get("currentTier").is_none());
    let free = json!({"tierId": "free-tier", "cloudaicompanionProject": "mine"});
    assert_eq!(post(":onboardUser", free).await[0]["error"]["code"], 400);
    let operation = post(":onboardUser", json!({"tierId": "free-tier"})).await;
    assert_eq!(operation["done"], false);
    let poll = http.get(format!("{base}/{}", operation["name"].as_str().unwrap())).bearer_auth("t");
    let done: Value = poll.send().await.unwrap().json().await.unwrap();
    assert!(done["response"]["cloudaicompanionProject"]["id"].is_string(), "{done}");
    assert!(post(":loadCodeAssist", metadata()).await["currentTier"].is_object());
}

#[tokio::test]
async fn scripts_are_read_from_json() {
    let fakes = FakeBackends::start().await;
    let script = r#"{"anthropic": [{"thinking": "hm", "text": "a", "calls": [{"name": "look"}], "usage": {"input": 7, "output": 3}}]}"#;
    fakes.run_script(Script::parse(script).unwrap());
    let said = answer(&fakes, Backend::Anthropic, "hi").await;
    assert!(said.contains("\"input_tokens\":7") && said.contains("\"name\":\"look\""), "{said}");
    for (wrong, words) in [
        ("[]", "no script"),
        (r#"{"x": []}"#, "there are openai"),
        (r#"{"gemini": [{"txt": "a"}]}"#, "txt"),
    ] {
        assert!(Script::parse(wrong).unwrap_err().to_string().contains(words), "{wrong}");
    }
}

#[tokio::test]
async fn a_default_answers_when_the_script_is_at_its_end() {
    let fakes = FakeBackends::start().await;
    fakes.always(Backend::Chat, Step::text("always").usage(Usage { input: 5, ..Usage::default() }));
    fakes.script(Backend::Chat, [Step::text("first")]);
    for expected in ["first", "always", "always"] {
        assert!(answer(&fakes, Backend::Chat, "hi").await.contains(expected), "{expected}");
    }
    fakes.improvise(Backend::Chat);
    assert!(answer(&fakes, Backend::Chat, "hi").await.contains("echo: "));
}

#[tokio::test]
async fn a_thousand_answers_are_under_way_at_one_time() {
    const COUNT: usize = 1000;
    let fakes = FakeBackends::start().await;
    fakes.always(Backend::Chat, Step::text("hello").hang());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/chat/completions", fakes.base_url(Backend::Chat));
    let body = body_of(Backend::Chat, "hi");
    let sent = (0..COUNT).map(|_| http.post(&url).json(&body).send());
    let responses = futures::future::try_join_all(sent).await.unwrap();
    assert_eq!(fakes.open_streams(), COUNT);
    drop(responses);
    wait_until(PATIENCE, async || (fakes.closed_by_client() == COUNT).then_some(())).await;
    assert_eq!((fakes.open_streams(), fakes.peak_streams()), (0, COUNT));
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
    let fakes = FakeBackends::start().await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let gemini = fakes.base_url(Backend::Gemini);
    let plain = format!("{gemini}/models/m:streamGenerateContent");
    let not_json = request(&fakes, Backend::OpenAi, &json!({})).body("{").send().await.unwrap();
    assert_eq!(not_json.status(), 400);
    let no_events =
        http.post(plain).header("x-goog-api-key", "k").json(&body_of(Backend::Gemini, "hi"));
    assert_eq!(no_events.send().await.unwrap().status(), 400);
    let nowhere = http.post(format!("{}/v9/nothing", fakes.root_url())).send().await.unwrap();
    assert_eq!(nowhere.status(), 404);
    let rules: Vec<&str> = fakes.violations().iter().map(|violation| violation.rule).collect();
    assert!(rules.contains(&"not_json") && rules.contains(&"alt"), "{rules:?}");
}
