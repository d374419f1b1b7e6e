//! A call that may ask its client for input, in the way of either era: a stateless-era server returns the requests and
//! is called again, a session-era server sends requests and waits.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use rmcp::model::{
    ClientCapabilities, CustomNotification, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, JsonObject, ProtocolVersion, ServerNotification, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

use crate::listing::typed;
use crate::tool::{Round, Step, step};

/// Maximum number of rounds of one call.
const MAX_ROUNDS: usize = 4;
/// Key for the state of a request, which only this process reads.
const SEAL: &str = "switchboard conformance fixture: state of a request";

#[derive(Debug)]
pub(crate) enum Outcome {
    Done(Value),
    UpstreamRequest(InputRequiredResult),
}

/// `None` when there is no such tool or prompt.
pub(crate) async fn hold(
    name: &str,
    arguments: Option<JsonObject>,
    answers: Option<InputResponses>,
    state: Option<String>,
    context: &RequestContext<RoleServer>,
) -> Result<Option<Outcome>, ErrorData> {
    let capabilities = context.client_capabilities().unwrap_or_default();
    let mut answers: BTreeMap<String, Value> = answers.unwrap_or_default();
    let mut state = state.as_deref().map(unsealed).transpose()?;
    let arguments: Map<String, Value> = arguments.unwrap_or_default();
    if name == "test_withdrawn_question" && !is_modern(context) {
        withdraw(context).await?;
    }
    if name == "test_impatient_question" && !is_modern(context) {
        let question = ServerRequest::ElicitRequest(typed(crate::tool::page("in-vain"))?);
        let options = PeerRequestOptions::no_options();
        let lost = |error: ServiceError| ErrorData::internal_error(error.to_string(), None);
        let _unheard =
            context.peer.send_cancellable_request(question, options).await.map_err(lost)?;
        // The message must be sent before the response.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    for _ in 0..MAX_ROUNDS {
        let round = Round {
            name,
            arguments: &arguments,
            answers: &answers,
            state: state.take(),
            capabilities: &capabilities,
        };
        let (requests, next) = match step(&round) {
            Step::Unknown => return Ok(None),
            Step::Done(result) => return Ok(Some(Outcome::Done(result))),
            Step::UpstreamRequest { requests, state } => (typed::<InputRequests>(requests)?, state),
        };
        for request in requests.values() {
            require(request, &capabilities)?;
        }
        if is_modern(context) {
            let state = next.as_ref().map(sealed);
            return Ok(Some(Outcome::UpstreamRequest(InputRequiredResult::new(
                Some(requests),
                state,
            ))));
        }
        let asked = requests.into_iter().map(|(key, request)| ask(key, request, context));
        answers.extend(try_join_all(asked).await?);
        state = next;
    }
    Err(ErrorData::internal_error(format!("{name} asks without end"), None))
}

pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

async fn ask(
    key: String,
    request: InputRequest,
    context: &RequestContext<RoleServer>,
) -> Result<(String, Value), ErrorData> {
    let request = match request {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        other => {
            return Err(ErrorData::internal_error(format!("nobody can ask {other:?}"), None));
        }
    };
    let answer = context.peer.send_request(request).await.map_err(|error| match error {
        ServiceError::McpError(error) => error,
        error => ErrorData::internal_error(format!("{key} was not answered: {error}"), None),
    })?;
    let answer = serde_json::to_value(answer);
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok((key, answer))
}

/// Sends a request, and cancels it after another one was answered. Cancellation and requests take different paths:
/// without an answer in between, the cancellation could arrive first.
async fn withdraw(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let lost = |error: ServiceError| ErrorData::internal_error(error.to_string(), None);
    let question =
        |id| Ok::<_, ErrorData>(ServerRequest::ElicitRequest(typed(crate::tool::page(id))?));
    let options = PeerRequestOptions::no_options();
    let asked = context
        .peer
        .send_cancellable_request(question("withdrawn")?, options)
        .await
        .map_err(lost)?;
    context.peer.send_request(question("e-1")?).await.map_err(lost)?;
    asked.cancel(Some("never mind".into())).await.map_err(lost)?;
    let params = json!({"elicitationId": "e-1"});
    let complete = CustomNotification::new("notifications/elicitation/complete", Some(params));
    let complete = ServerNotification::CustomNotification(complete);
    context.peer.send_notification(complete).await.map_err(lost)
}

fn require(request: &InputRequest, capabilities: &ClientCapabilities) -> Result<(), ErrorData> {
    let (is_there, name) = match request {
        InputRequest::CreateMessage(_) => (capabilities.sampling.is_some(), "sampling"),
        InputRequest::Elicitation(_) => (capabilities.elicitation.is_some(), "elicitation"),
        InputRequest::ListRoots(_) => (capabilities.roots.is_some(), "roots"),
        _ => return Ok(()),
    };
    if is_there {
        return Ok(());
    }
    let required: ClientCapabilities = typed(json!({ name: {} }))?;
    Err(ErrorData::missing_required_client_capability(required))
}

fn sealed(state: &Value) -> String {
    let text = state.to_string();
    format!("{}.{text}", seal_of(&text))
}

fn unsealed(state: &str) -> Result<Value, ErrorData> {
    let parts = state.split_once('.').filter(|(seal, text)| seal_of(text) == *seal);
    parts
        .and_then(|(_, text)| serde_json::from_str(text).ok())
        .ok_or_else(|| ErrorData::invalid_params("requestState is not what was given out", None))
}

fn seal_of(text: &str) -> String {
    let key = blake3::derive_key(SEAL, &[]);
    blake3::keyed_hash(&key, text.as_bytes()).to_hex().to_string()
}
