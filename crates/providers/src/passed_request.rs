//! Requests that are already in the format of the provider: an app's requests, with the board's credential.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::{ProviderKind, ProviderPlan};
use switchboard_wire::{Answer, fault};

use crate::answer::{MOST_READ, beginning, excerpt, header};
use crate::asked_by::AskedBy;
use crate::credential::Presented;
use crate::http_answer::ProviderResponse;
use crate::passed_headers::headers_for_app;
use crate::stream::{Alarm, Clock};
use crate::{ProviderEndpoint, credential, request_headers};

const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const DEFAULT_ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// A request in the format of the provider.
#[derive(Debug, Clone)]
pub struct PassedRequest<'a> {
    pub method: Method,
    /// The path below the address of the provider, with its query: `/responses`, `/v1/messages?beta=true`.
    pub path: &'a str,
    /// Headers beside the credentials, as [`crate::headers_for_provider`] selects them.
    pub headers: &'a HeaderMap,
    pub body: Bytes,
    /// Stands for `${session}` in configured headers.
    pub session: &'a str,
    /// The name of the board's credential; `None` is the default one.
    pub credential: Option<&'a str>,
    /// The app's own credential, sent in the place of the board's.
    pub app_credential: Option<(HeaderName, HeaderValue)>,
    /// Whether the response arrives piece by piece. Otherwise a silent provider is waited for until the end of
    /// `total_timeout`.
    pub is_streamed: bool,
}

/// A successful response, piece by piece. Dropping it cancels the request.
#[derive(Debug)]
pub struct PassedResponse {
    pub status: StatusCode,
    /// The headers that the app may get.
    pub headers: HeaderMap,
    answer: ProviderResponse,
    clock: Clock,
    alarm: Alarm,
    plan: Arc<ProviderPlan>,
}

/// A request without a successful response.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{fault}")]
pub struct PassedFault {
    /// What is wrong, without secrets.
    pub fault: ModelFault,
    /// The provider's own words, if it answered with JSON. Without secrets.
    pub body: Option<String>,
    /// The headers of its response that the app may get.
    pub headers: HeaderMap,
}

impl From<ModelFault> for PassedFault {
    fn from(fault: ModelFault) -> Self {
        Self { fault, body: None, headers: HeaderMap::new() }
    }
}

impl ProviderEndpoint {
    /// Sends a request in the format of the provider, once, and waits for the head of a successful response. Dropping the
    /// future or the response cancels the request.
    pub async fn pass(&self, request: PassedRequest<'_>) -> Result<PassedResponse, PassedFault> {
        let plan = self.plan();
        if plan.kind == ProviderKind::Demo {
            let text = "the demo model is asked in turns of the board only";
            return Err(ModelFault::new(FaultKind::NotFound, text).into());
        }
        let mut clock =
            if request.is_streamed { Clock::start(plan) } else { Clock::of_whole(plan) };
        let (answer, used) = self.send_passed(&request, &clock).await?;
        clock.hear();
        let plan = used.as_ref().map_or_else(|| self.shared_plan(), |used| used.plan.clone());
        if !answer.status.is_success() {
            let failed = refused(answer, &plan, &clock).await;
            let fault = match &used {
                Some(presented) => presented.explained(failed.fault),
                None => failed.fault,
            };
            return Err(PassedFault { fault, ..failed });
        }
        let (status, headers) = (answer.status, headers_for_app(&answer.headers));
        let alarm = Alarm::new(&clock);
        Ok(PassedResponse { status, headers, answer, clock, alarm, plan })
    }

    /// Sends the request with the app's own credential, if it has one, else with the board's.
    async fn send_passed(
        &self,
        request: &PassedRequest<'_>,
        clock: &Clock,
    ) -> Result<(ProviderResponse, Option<Presented>), ModelFault> {
        let plan = self.plan();
        let (method, body) = (request.method.clone(), request.body.clone());
        if let Some((name, value)) = &request.app_credential {
            let mut headers = headers_of(plan, request)?;
            request_headers::configure(&mut headers, plan, request.session)?;
            let mut value = value.clone();
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
            let answer = self.send(method, request.path, headers, body, clock).await?;
            return Ok((answer, None));
        }
        self.refuse_unready(credential::find(plan, request.credential)?)?;
        let headers = |plan: &ProviderPlan| {
            let mut headers = headers_of(plan, request)?;
            request_headers::authorize(&mut headers, plan)?;
            request_headers::configure(&mut headers, plan, request.session)?;
            Ok(headers)
        };
        let context = AskedBy { credential: request.credential, session: request.session };
        let sent = self.send_with_credential(context, method, request.path, &headers, body, clock);
        let (answer, presented) = sent.await?;
        Ok((answer, Some(presented)))
    }
}

/// The headers of a request without its credentials.
fn headers_of(plan: &ProviderPlan, request: &PassedRequest<'_>) -> Result<HeaderMap, ModelFault> {
    let mut headers = request.headers.clone();
    if request.method == Method::POST {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let accept = if request.is_streamed { "text/event-stream" } else { "application/json" };
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    if plan.kind == ProviderKind::Anthropic {
        headers.entry(ANTHROPIC_VERSION).or_insert(DEFAULT_ANTHROPIC_VERSION);
        request_headers::join_betas(&mut headers)?;
    }
    Ok(headers)
}

async fn refused(answer: ProviderResponse, plan: &ProviderPlan, clock: &Clock) -> PassedFault {
    let status = answer.status.as_u16();
    let (raw, headers) = (answer.headers.clone(), headers_for_app(&answer.headers));
    let is_redirect = answer.status.is_redirection();
    let body = beginning(answer, MOST_READ, clock).await;
    let fault = if is_redirect {
        let text = format!(
            "the provider `{}` answered with a redirect ({status}), which is not followed: set `base_url` to the final address",
            plan.name
        );
        ModelFault { status: Some(status), ..ModelFault::new(FaultKind::NotFound, text) }
    } else {
        let header = |name: &str| header(&raw, name);
        fault(plan.kind, &Answer { status, header: &header, body: &body })
    };
    let is_json = !is_redirect && serde_json::from_slice::<serde_json::Value>(&body).is_ok();
    let text = is_json.then(|| String::from_utf8_lossy(&body).into_owned());
    PassedFault {
        fault: request_headers::scrubbed(plan, fault),
        body: text.map(|text| request_headers::scrub(plan, &text)),
        headers,
    }
}

impl PassedResponse {
    /// The next piece of the body; `None` at its end. Cancel-safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ModelFault> {
        match self.alarm.unless_late(&self.clock, self.answer.chunk()).await {
            Some(Ok(piece)) => {
                self.clock.hear();
                Ok(piece)
            }
            Some(Err(cause)) => {
                let name = &self.plan.name;
                tracing::debug!(provider = name, cause, "the answer of a model broke off");
                let text = format!("the provider `{name}` closed the connection in its answer");
                Err(ModelFault::new(FaultKind::Interrupted, text))
            }
            None => Err(self.clock.fault(&format!("the provider `{}`", self.plan.name))),
        }
    }

    /// The whole body, if it has at most `most` bytes.
    pub async fn whole(mut self, most: usize) -> Result<Bytes, ModelFault> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.chunk().await? {
            if body.len() + piece.len() > most {
                let name = &self.plan.name;
                let text = format!("the answer of the provider `{name}` exceeds {most} bytes");
                return Err(ModelFault::new(FaultKind::TooLarge, text));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }

    /// The fault for an answer that cannot be read.
    pub fn unreadable(&self, body: &[u8]) -> ModelFault {
        let text = format!("the provider `{}` answered with {}", self.plan.name, excerpt(body));
        ModelFault::new(FaultKind::Unreadable, request_headers::scrub(&self.plan, &text))
    }

    /// A text of the provider without the secrets that it was sent.
    pub fn scrubbed(&self, text: &str) -> String {
        request_headers::scrub(&self.plan, text)
    }
}
