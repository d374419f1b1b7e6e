//! Answers that an app asks for, or deletes, by their ids.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use switchboard_splice::{Api, RecordKey, Refusal, RefusalKind};

use crate::{AnswerBody, AppAnswer, AppCall, Failure, Injection};

impl Injection {
    /// An answer that was stored.
    pub(crate) async fn stored_answer(
        &self,
        call: &AppCall,
        id: &str,
    ) -> Result<AppAnswer, Failure> {
        let key = RecordKey::of_answer(Api::Responses, id);
        let found = self.records(call).find(&[key]).await;
        let answer = found.get(&key).and_then(|record| record.answer());
        Ok(json(answer.ok_or_else(|| unknown(id))?.to_owned()))
    }

    /// Deletes an answer that was stored.
    pub(crate) async fn delete_stored_answer(
        &self,
        call: &AppCall,
        id: &str,
    ) -> Result<AppAnswer, Failure> {
        let key = RecordKey::of_answer(Api::Responses, id);
        if !self.records(call).delete(&key).await? {
            return Err(unknown(id).into());
        }
        let deleted = serde_json::json!({"id": id, "object": "response", "deleted": true});
        Ok(json(deleted.to_string()))
    }
}

fn json(body: String) -> AppAnswer {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    AppAnswer { headers, body: AnswerBody::Whole(Bytes::from(body)) }
}

fn unknown(id: &str) -> Refusal {
    let shown: String = id.chars().take(64).collect();
    Refusal::new(RefusalKind::NotFound, format!("no response with the id '{shown}' is stored"))
}
