//! Error responses in the formats of different servers.

use pretty_assertions::assert_eq;

use switchboard_model::ProviderKind;

use super::*;
use crate::retry_after::MAX_RETRY_AFTER;

fn of(status: u16, headers: &[(&str, &str)], body: &str) -> ModelFault {
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    crate::fault(ProviderKind::OpenAi, &Answer { status, header: &header, body: body.as_bytes() })
}

#[track_caller]
fn check(status: u16, body: &str, kind: FaultKind, message: &str) {
    let fault = of(status, &[], body);
    assert_eq!((fault.kind, fault.message.as_str()), (kind, message), "{status} {body}");
    assert_eq!(fault.status, Some(status));
}

#[test]
fn the_status_says_what_it_is_and_a_code_knows_better() {
    let coded = |code: &str| format!(r#"{{"error":{{"message":"m","type":"t","code":"{code}"}}}}"#);
    let cases = [
        (400, "", FaultKind::BadRequest),
        (401, "", FaultKind::Credentials),
        (401, "server_error", FaultKind::Credentials),
        (402, "", FaultKind::Quota),
        (403, "", FaultKind::Forbidden),
        (403, "cyber_policy", FaultKind::Refused),
        (404, "", FaultKind::NotFound),
        (404, "model_not_found", FaultKind::NotFound),
        (408, "", FaultKind::Timeout),
        (409, "", FaultKind::Provider),
        (413, "", FaultKind::TooLong),
        (422, "", FaultKind::BadRequest),
        (400, "context_length_exceeded", FaultKind::TooLong),
        (400, "invalid_prompt", FaultKind::Refused),
        (400, "invalid_function_parameters", FaultKind::BadRequest),
        (429, "", FaultKind::RateLimited),
        (429, "rate_limit_exceeded", FaultKind::RateLimited),
        (429, "insufficient_quota", FaultKind::Quota),
        (500, "", FaultKind::Provider),
        (502, "", FaultKind::Provider),
        (503, "", FaultKind::Overloaded),
        (504, "", FaultKind::Timeout),
        (500, "slow_down", FaultKind::Overloaded),
        (529, "", FaultKind::Overloaded),
        (200, "", FaultKind::Unreadable),
        (302, "", FaultKind::NotFound),
    ];
    for (status, code, kind) in cases {
        check(status, &coded(code), kind, "m");
    }
}

#[test]
fn errors_are_read_in_every_shape_that_servers_have() {
    let bad = FaultKind::BadRequest;
    check(
        400,
        r#"{"detail":"Unsupported parameter: max_output_tokens"}"#,
        bad,
        "Unsupported parameter: max_output_tokens",
    );
    check(400, r#"{"detail":{"message":"no","code":"x"}}"#, bad, "no");
    check(422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, bad, "field required");
    check(404, r#"{"error":"model 'm' not found"}"#, FaultKind::NotFound, "model 'm' not found");
    check(
        400,
        r#"{"object":"error","message":"no","type":"BadRequestError","code":400}"#,
        bad,
        "no",
    );
    check(400, r#"[{"error":{"message":"no","code":400}}]"#, bad, "no");
    let usage = r#"{"error":{"type":"usage_limit_reached","message":"The limit is reached","plan_type":"plus","resets_in_seconds":90}}"#;
    check(429, usage, FaultKind::Quota, "The limit is reached");
    let fault = of(429, &[], usage);
    assert_eq!(fault.code.as_deref(), Some("usage_limit_reached"));
    assert_eq!(fault.retry_after, Some(Duration::from_secs(90)));
    let usage = r#"{"error":{"type":"usage_limit_reached","message":"The limit is reached","resets_at":1794909630}}"#;
    let wait = |date: &'static str| of(429, &[("date", date)], usage).retry_after;
    assert_eq!(wait("Tue, 17 Nov 2026 10:00:00 GMT"), Some(Duration::from_secs(30)));
    assert_eq!(wait("Tue, 17 Nov 2026 10:00:31 GMT"), None, "it is over");
    assert_eq!(wait("yesterday"), None);
    assert_eq!(of(429, &[], usage).retry_after, None);
    let long =
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":400}}"#;
    check(400, long, FaultKind::TooLong, "This model's maximum context length is 8192 tokens.");
}

#[test]
fn what_has_no_message_is_told_in_short() {
    let provider = FaultKind::Provider;
    check(502, "", provider, "the provider answered 502 with an empty body");
    let start = "the provider answered 502";
    let page =
        "<!DOCTYPE html><html><head><title> Bad\ngateway </title></head><body>x</body></html>";
    check(502, page, provider, &format!("{start}: Bad gateway"));
    check(
        502,
        "<html><body><h1>No</h1> luck</body></html>",
        provider,
        &format!("{start}: No luck"),
    );
    check(502, "\u{1b}[31mred", provider, &format!("{start}: [31mred"));
    check(
        502,
        r#"{"error":{"message":""}}"#,
        provider,
        &format!("{start}: {}", r#"{"error":{"message":""}}"#),
    );
    let noise = of(500, &[], &"word ".repeat(100_000)).message;
    assert!(noise.chars().count() < 300, "{noise}");
    let words = json_message(&"w".repeat(5000));
    assert!(of(400, &[], &words).message.chars().count() <= 2003);
    let bytes = fault(&Answer { status: 500, header: &|_| None, body: &[0xff, 0xfe, 0] });
    assert_eq!(bytes.kind, provider);
}

fn json_message(text: &str) -> String {
    serde_json::json!({"error": {"message": text}}).to_string()
}

#[test]
fn headers_say_when_to_come_back_and_how_to_find_the_request() {
    let wait = |headers: &[(&str, &str)]| of(429, headers, "{}").retry_after;
    assert_eq!(wait(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
    let both = [("retry-after", "2"), ("retry-after-ms", "1500")];
    assert_eq!(wait(&both), Some(Duration::from_millis(1500)));
    assert_eq!(wait(&[("retry-after", "-1")]), None);
    assert_eq!(wait(&[("retry-after", "1e300")]), None);
    assert_eq!(wait(&[("retry-after", "99999999")]), Some(MAX_RETRY_AFTER));
    assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")]), None);
    assert_eq!(of(400, &[("retry-after", "2")], "{}").retry_after, None);
    let told = of(429, &[], &json_message("Please try again in 20s."));
    assert_eq!(told.retry_after, Some(Duration::from_secs(20)));
    let fault = of(500, &[("x-request-id", "req_1")], "{}");
    assert_eq!(fault.request_id.as_deref(), Some("req_1"));
    let kind = |status, should: &str| of(status, &[("x-should-retry", should)], "{}").kind;
    assert_eq!(kind(400, "true"), FaultKind::Provider);
    assert_eq!(kind(429, "false"), FaultKind::Quota);
    assert_eq!(kind(429, "true"), FaultKind::RateLimited);
}

#[test]
fn a_key_that_is_repeated_is_not_passed_on() {
    let body = json_message("Incorrect API key provided: sk-proj-abcdefgh1234. Find it elsewhere.");
    let message = of(401, &[], &body).message;
    assert_eq!(message, "Incorrect API key provided: ***. Find it elsewhere.");
    let message = of(502, &[], "<html><title>Bearer abcdef123456</title></html>").message;
    assert!(!message.contains("abcdef"), "{message}");
}
