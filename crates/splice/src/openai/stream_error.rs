//! Errors inside a stream of the provider.

use serde_json::Value;

use crate::{Refusal, RefusalKind};

/// The refusal for an error event: an object with the error in `error`, in `response.error`, or in its own members.
pub(crate) fn stream_error(data: &str) -> Refusal {
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    let holder = event.get("response").unwrap_or(&event);
    let error = holder.get("error").filter(|error| !error.is_null()).unwrap_or(&event);
    let word = |name: &str| error.get(name).and_then(Value::as_str);
    let message = error.as_str().or_else(|| word("message"));
    let message = message.unwrap_or("the provider aborted the answer without a reason");
    let code = word("code").or_else(|| word("type").filter(|kind| *kind != "error"));
    let mut refusal = Refusal::new(kind_of(code.unwrap_or_default()), message);
    // The provider's words are passed on whole, in the shape of an error response.
    let mut passed = match error {
        Value::Object(members) => Value::Object(members.clone()),
        other => serde_json::json!({"message": other}),
    };
    if let Some(members) = passed.as_object_mut() {
        if error.get("type").is_some_and(|kind| kind == "error") {
            members.shift_remove("type");
            members.shift_remove("sequence_number");
        }
        members.entry("message").or_insert_with(|| message.into());
        members.entry("type").or_insert_with(|| refusal.openai_type().into());
        members.entry("param").or_insert(Value::Null);
        members.entry("code").or_insert_with(|| refusal.openai_code().into());
    }
    refusal.body = Some(serde_json::json!({"error": passed}).to_string().into());
    refusal
}

fn kind_of(word: &str) -> RefusalKind {
    match word {
        "rate_limit_exceeded" | "rate_limit_error" | "insufficient_quota" => {
            RefusalKind::RateLimited
        }
        "server_is_overloaded" | "slow_down" | "overloaded_error" | "unavailable_error" => {
            RefusalKind::Overloaded
        }
        "context_length_exceeded" | "invalid_prompt" => RefusalKind::Invalid,
        word if word.starts_with("invalid_") || word.starts_with("unsupported_") => {
            RefusalKind::Invalid
        }
        _ => RefusalKind::Upstream,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_provider_s_words_are_kept() {
        let error = stream_error(
            r#"{"error":{"message":"slow","type":"x","code":"rate_limit_exceeded","more":1}}"#,
        );
        assert_eq!((error.kind, &*error.message), (RefusalKind::RateLimited, "slow"));
        insta::assert_snapshot!(error.body.unwrap(), @r#"{"error":{"message":"slow","type":"x","code":"rate_limit_exceeded","more":1,"param":null}}"#);
        let error = stream_error(
            r#"{"type":"error","sequence_number":3,"code":null,"message":"no","param":null}"#,
        );
        insta::assert_snapshot!(error.body.unwrap(), @r#"{"error":{"code":null,"message":"no","param":null,"type":"server_error"}}"#);
        let error = stream_error(
            r#"{"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"m"}}}"#,
        );
        insta::assert_snapshot!(error.body.unwrap(), @r#"{"error":{"code":"server_error","message":"m","type":"server_error","param":null}}"#);
        let error = stream_error(r#"{"error":"all wrong"}"#);
        insta::assert_snapshot!(error.body.unwrap(), @r#"{"error":{"message":"all wrong","type":"server_error","param":null,"code":"server_error"}}"#);
    }
}
