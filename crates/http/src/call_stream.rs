//! A call as a stream of events, and the cancellation of calls.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Extension;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use switchboard_api::{CallEvent, CallLog, CallProblem, CallProgress, CallStarted};
use switchboard_auth::Principal;
use switchboard_model::{CallError, CallId, JsonText};
use switchboard_runtime::{Board, CallReport, CallRequest, EventReceiver, RpcError, UpstreamEvent};
use tokio::time::Instant;

use crate::answers::{Guarded, UnknownRunningCall};
use crate::call_records::RecordPath;
use crate::event_feed::log_text;
use crate::extract::FromPath;
use crate::open_questions::{OpenQuestions, QuestionsOfCall};
use crate::present;
use crate::problem::ProblemResponse;
use crate::ready::Ready;

/// How many events of a call wait for its reader; a reader that falls behind misses some of them.
const WAITING_EVENTS: usize = 64;
const EVENT_STREAM: &str = "text/event-stream";

/// Whether the client asks for a stream of events.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with(EVENT_STREAM))
}

type Calling = Pin<Box<dyn Future<Output = CallReport> + Send>>;

/// A call whose events are being read. Dropping it cancels the call.
struct StreamedCall {
    calling: Option<Calling>,
    heard: EventReceiver,
    first: Option<CallEvent>,
    /// `None`: the caller does not answer what servers ask.
    questions: Option<QuestionsOfCall>,
    problem: ProblemOfCall,
    principal: Principal,
}

/// Makes the problem of a failed call, as far as the caller may know it.
type ProblemOfCall = fn(&CallError, &CallId, &Principal) -> ProblemResponse;

/// Runs a call and sends its events as they happen. A call that is refused before it begins is answered with the problem.
pub(crate) async fn stream_call(
    board: Arc<Board>,
    request: CallRequest,
    principal: Principal,
    questions: Option<Arc<OpenQuestions>>,
    problem: ProblemOfCall,
) -> Result<Response, ProblemResponse> {
    let (events, heard) = switchboard_runtime::event_channel(WAITING_EVENTS);
    let caller = request.caller.clone();
    let running = board.clone();
    let fills_in_forms = questions.is_some();
    let mut calling: Calling =
        Box::pin(async move { running.call_with_events(request, events, fills_in_forms).await });
    // The call is known by its id once it has been polled for the first time.
    let report = futures::future::poll_immediate(calling.as_mut()).await;
    let asked = principal.id.clone();
    let (calling, first) = (Some(calling), None);
    let mut call = StreamedCall { calling, heard, first, questions: None, problem, principal };
    call.first = match report {
        None => board.running_call_of(&caller).map(|running| {
            let (id, revision) = (running.id.to_string(), board.catalog().revision());
            let of_call = |open| QuestionsOfCall::new(open, id.clone(), asked);
            call.questions = questions.map(of_call);
            CallEvent::Started(CallStarted { id, revision })
        }),
        Some(report) => {
            if let Err(error) = &report.result {
                return Err(problem(error, &report.id, &call.principal));
            }
            Some(call.last(&report))
        }
    };
    let events = stream::unfold(call, |mut call| async move {
        let event = call.next().await?;
        let data = serde_json::to_string(&event).unwrap_or_default();
        Some((Ok::<_, Infallible>(Event::default().event(event.name()).data(data)), call))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new()).into_response())
}

impl StreamedCall {
    /// The next event; `None` after the last one.
    async fn next(&mut self) -> Option<CallEvent> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let calling = self.calling.as_mut()?;
            tokio::select! {
                biased;
                Some(event) = self.heard.next() => {
                    if let Some(event) = shown(event, self.questions.as_mut()) {
                        return Some(event);
                    }
                }
                report = calling => return Some(self.last(&report)),
                () = until(self.questions.as_ref().and_then(QuestionsOfCall::due)) => {
                    if let Some(questions) = &mut self.questions {
                        questions.refuse_oldest();
                    }
                }
            }
        }
    }

    fn last(&mut self, report: &CallReport) -> CallEvent {
        self.calling = None;
        match present::call(report) {
            Ok(view) => CallEvent::Done(view),
            Err(error) => {
                let problem = *(self.problem)(error, &report.id, &self.principal).0;
                CallEvent::Error(CallProblem { problem })
            }
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// An event of the server as the caller gets it. What the caller does not answer is refused with the reason that a call
/// without events gives.
fn shown(event: UpstreamEvent, questions: Option<&mut QuestionsOfCall>) -> Option<CallEvent> {
    match event {
        UpstreamEvent::Progress(params) => {
            let params = params.parse();
            Some(CallEvent::Progress(CallProgress {
                progress: params.get("progress")?.as_f64()?,
                total: params.get("total").and_then(serde_json::Value::as_f64),
                message: params.get("message").and_then(|it| it.as_str()).map(str::to_owned),
            }))
        }
        UpstreamEvent::Log(params) => {
            let (level, text) = log_text(&params);
            Some(CallEvent::Log(CallLog { level, text }))
        }
        UpstreamEvent::Question { method, params, reply } => {
            if let (Some(questions), "elicitation/create") = (questions, &*method) {
                return questions.ask(params.as_ref(), reply).map(CallEvent::Question);
            }
            let answer = if method == "roots/list" {
                Ok(JsonText::from(&serde_json::json!({"roots": []})))
            } else {
                let message = "the client does not answer requests of servers".to_owned();
                Err(RpcError { code: -32603, message, data: None })
            };
            // A server that withdrew its question does not wait for the answer.
            let _withdrawn = reply.send(answer);
            None
        }
        UpstreamEvent::ElicitationComplete(_) => None,
    }
}

/// Cancel a call
///
/// A call that waits or runs ends with the error `cancelled`, and its server is told. With the role `client` only a call of the
/// caller itself or in one of its sessions.
#[utoipa::path(
    post,
    path = "/api/v1/calls/{id}/cancel",
    operation_id = "cancelCall",
    tag = "calls",
    params(RecordPath),
    responses((status = 202, description = "The call is being cancelled."), Guarded, UnknownRunningCall)
)]
pub(crate) async fn cancel(
    Ready(board): Ready,
    Extension(principal): Extension<Principal>,
    FromPath(RecordPath { id }): FromPath<RecordPath>,
) -> Result<StatusCode, ProblemResponse> {
    let id = CallId(id);
    let call = board.running_call(&id).filter(|call| {
        let is_own = call.caller.principal == principal.id || call.caller.owner == principal.id;
        principal.oversees() || is_own
    });
    if call.is_some_and(|call| board.cancel_call(&call.id)) {
        return Ok(StatusCode::ACCEPTED);
    }
    let shown: String = id.0.chars().take(64).collect();
    let detail = format!("no call '{shown}' waits or runs");
    Err(ProblemResponse::new("unknown_call", StatusCode::NOT_FOUND, detail))
}
