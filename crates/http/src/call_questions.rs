//! What servers ask the callers of streamed calls, and the answers of these callers.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_api::{CallQuestion, FieldError, QuestionAction, QuestionAnswer};
use switchboard_auth::Principal;
use switchboard_model::JsonText;
use switchboard_runtime::RpcError;
use switchboard_schema::ArgumentChecker;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::answers::{Guarded, TakesBody, UnknownQuestion, WrongAnswer};
use crate::extract::{FromBody, FromPath};
use crate::problem::ProblemResponse;
use crate::server_state::Shared;

const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
/// How long a question waits for its answer. A call whose server waits holds its slots.
const PATIENCE: Duration = Duration::from_mins(10);

type Reply = oneshot::Sender<Result<JsonText, RpcError>>;

/// The questions of all streamed calls that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<(String, String), WaitingQuestion>>);

#[derive(Debug)]
struct WaitingQuestion {
    /// The principal that made the call, who alone may answer.
    asked: Arc<str>,
    /// What an accepted answer must fit.
    schema: Value,
    reply: Reply,
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
    pub(crate) fn ask(&mut self, params: Option<&JsonText>, reply: Reply) -> Option<CallQuestion> {
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

/// Names a question of a running call.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct QuestionPath {
    /// The id of the call, as its event `started` has it.
    #[param(min_length = 1, example = "0190f3c2")]
    id: String,
    /// The id of the question, as its event `question` has it.
    #[param(min_length = 1, example = "1")]
    question: String,
}

/// Answer a question of a running call
///
/// A server may ask the caller of a tool for input while the call runs (elicitation in MCP). A caller that streams the call and
/// sets `answers_questions` gets such questions as the event `question`. Only the caller itself may answer, and once. An accepted
/// answer is checked by the schema of the question first.
#[utoipa::path(
    post,
    path = "/api/v1/calls/{id}/answers/{question}",
    operation_id = "answerQuestion",
    tag = "calls",
    params(QuestionPath),
    request_body(
        content = QuestionAnswer,
        description = "The answer.",
        example = json!({"action": "accept", "content": {"name": "Ada"}})
    ),
    responses(
        (status = 204, description = "The server has the answer."),
        Guarded,
        TakesBody,
        UnknownQuestion,
        WrongAnswer,
    )
)]
pub(crate) async fn answer(
    State(shared): State<Shared>,
    Extension(principal): Extension<Principal>,
    FromPath(QuestionPath { id, question }): FromPath<QuestionPath>,
    FromBody(body): FromBody<QuestionAnswer>,
) -> Result<StatusCode, ProblemResponse> {
    let key = (id, question);
    let schema = {
        let open = shared.questions.0.lock();
        let waiting = open.get(&key).filter(|waiting| waiting.asked == principal.id);
        waiting.map(|waiting| waiting.schema.clone()).ok_or_else(unknown_question)?
    };
    let answer = match body.action {
        QuestionAction::Accept => {
            let content = body.content.unwrap_or_else(|| json!({}));
            json!({"action": "accept", "content": fitting(&schema, content)?})
        }
        QuestionAction::Decline => json!({"action": "decline"}),
        QuestionAction::Cancel => json!({"action": "cancel"}),
    };
    let waiting = shared.questions.0.lock().remove(&key).ok_or_else(unknown_question)?;
    waiting.reply.send(Ok(JsonText::from(&answer))).map_err(|_withdrawn| unknown_question())?;
    Ok(StatusCode::NO_CONTENT)
}

/// The content of an answer, with strings converted where the schema asks for numbers and booleans.
fn fitting(schema: &Value, content: Value) -> Result<Value, ProblemResponse> {
    // A schema that cannot be checked here is checked by the server that wrote it.
    let Ok(checker) = ArgumentChecker::compile(schema) else { return Ok(content) };
    match checker.check(&content) {
        Ok(converted) => Ok(converted.unwrap_or(content)),
        Err(complaints) => {
            let errors: Vec<_> = complaints
                .iter()
                .map(|complaint| FieldError {
                    path: complaint.path().to_owned(),
                    message: complaint.to_string(),
                })
                .collect();
            let detail = errors.first().map_or_else(String::new, |error| error.message.clone());
            let detail = format!("the answer does not fit the question: {detail}");
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            let mut problem = ProblemResponse::new("invalid_answer", status, detail);
            problem.0.errors = errors;
            Err(problem)
        }
    }
}

fn unknown_question() -> ProblemResponse {
    let detail = "the call does not wait for an answer to this question";
    ProblemResponse::new("unknown_question", StatusCode::NOT_FOUND, detail)
}
