//! What servers ask the callers of streamed calls, until it is answered.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use switchboard_api::CallQuestion;
use switchboard_model::JsonText;
use switchboard_runtime::RpcError;
use tokio::sync::oneshot;
use tokio::time::Instant;

const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
/// How long a question waits for its answer. A call whose server waits holds its slots.
const PATIENCE: Duration = Duration::from_mins(10);

type QuestionReply = oneshot::Sender<Result<JsonText, RpcError>>;

/// The questions of all streamed calls that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<(String, String), WaitingQuestion>>);

#[derive(Debug)]
struct WaitingQuestion {
    /// The principal that made the call, who alone may answer.
    asked: Arc<str>,
    /// What an accepted answer must fit.
    schema: Value,
    reply: QuestionReply,
}

impl OpenQuestions {
    /// The schema of a question that waits for this principal.
    pub(crate) fn schema(&self, call: &str, question: &str, principal: &str) -> Option<Value> {
        let open = self.0.lock();
        let waiting = open.get(&(call.to_owned(), question.to_owned()))?;
        (*waiting.asked == *principal).then(|| waiting.schema.clone())
    }

    /// Sends an answer to the server; `None` if it does not wait for it any more.
    pub(crate) fn answer(&self, call: String, question: String, answer: &Value) -> Option<()> {
        let waiting = self.0.lock().remove(&(call, question))?;
        waiting.reply.send(Ok(JsonText::from(answer))).ok()
    }
}

/// The questions of one call. Dropping it refuses those that wait.
#[derive(Debug)]
pub(crate) struct QuestionsOfCall {
    open: Arc<OpenQuestions>,
    call: String,
    asked: Arc<str>,
    count: u64,
    /// When each question was asked, oldest first.
    times: VecDeque<(Instant, String)>,
}

impl Drop for QuestionsOfCall {
    fn drop(&mut self) {
        self.open.0.lock().retain(|(call, _), _| *call != self.call);
    }
}

impl QuestionsOfCall {
    pub(crate) fn new(open: Arc<OpenQuestions>, call: String, asked: Arc<str>) -> Self {
        Self { open, call, asked, count: 0, times: VecDeque::new() }
    }

    /// When the oldest question has waited too long.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.times.front().map(|(at, _)| *at + PATIENCE)
    }

    /// Refuses the oldest question, if it still waits.
    pub(crate) fn refuse_oldest(&mut self) {
        let Some((_, id)) = self.times.pop_front() else { return };
        if let Some(late) = self.open.0.lock().remove(&(self.call.clone(), id)) {
            let message = "the client did not answer in time".to_owned();
            let refusal = Err(RpcError { code: INTERNAL_ERROR, message, data: None });
            let _withdrawn = late.reply.send(refusal);
        }
    }

    /// Registers what a server asks and returns the event for the caller; `None` for what a caller of the API cannot
    /// answer, which is refused.
    pub(crate) fn ask(
        &mut self,
        params: Option<&JsonText>,
        reply: QuestionReply,
    ) -> Option<CallQuestion> {
        let params = params.map_or(Value::Null, JsonText::parse);
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        let mode = params.get("mode").and_then(Value::as_str).unwrap_or("form");
        let (true, Some(schema)) = (mode == "form", params.get("requestedSchema")) else {
            let message = "the client answers forms only".to_owned();
            let _withdrawn =
                reply.send(Err(RpcError { code: INVALID_PARAMS, message, data: None }));
            return None;
        };
        self.count += 1;
        let id = self.count.to_string();
        let (asked, schema) = (self.asked.clone(), schema.clone());
        let question =
            CallQuestion { id: id.clone(), message: message.to_owned(), schema: schema.clone() };
        self.times.push_back((Instant::now(), id.clone()));
        let waiting = WaitingQuestion { asked, schema, reply };
        let mut open = self.open.0.lock();
        // What a server has withdrawn meanwhile waits no longer.
        open.retain(|_, question| !question.reply.is_closed());
        open.insert((self.call.clone(), id), waiting);
        Some(question)
    }
}
