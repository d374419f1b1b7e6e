//! The answers of callers to what servers ask them.

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_api::{FieldError, QuestionAction, QuestionAnswer};
use switchboard_auth::Principal;
use switchboard_schema::ArgumentChecker;

use crate::answers::{Guarded, TakesBody, UnknownQuestion, WrongAnswer};
use crate::extract::{FromBody, FromPath};
use crate::problem::ProblemResponse;
use crate::server_state::Shared;

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
    let schema = shared.questions.schema(&id, &question, &principal.id);
    let schema = schema.ok_or_else(unknown_question)?;
    let answer = match body.action {
        QuestionAction::Accept => {
            let content = body.content.unwrap_or_else(|| json!({}));
            json!({"action": "accept", "content": fitting(&schema, content)?})
        }
        QuestionAction::Decline => json!({"action": "decline"}),
        QuestionAction::Cancel => json!({"action": "cancel"}),
    };
    shared.questions.answer(id, question, &answer).ok_or_else(unknown_question)?;
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
