//! Handles a request: routing, credentials, rules, response.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future;
use serde_json::{Value, json};

use super::backend::Backend;
use super::code_assist;
use super::findings::Findings;
use super::heard::EventReceiver;
use super::script::Script;
use super::state::{ModelRequest, Shared};
use super::step::{Ending, Instead, Step};
use super::stream::{body, encoded};
use super::{
    anthropic_check, anthropic_events, chat_check, chat_events, gemini_check, gemini_events,
    responses_check, responses_events,
};

pub(crate) const BODY_LIMIT: usize = 256 * 1024 * 1024;
const OAUTH_BETA: &str = "oauth-2025-04-20";
const ANTHROPIC_KEY: &str = "sk-ant-api";
/// The versions that Claude Code and the official library send.
const ANTHROPIC_VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

/// The purpose of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// A model response. Gemini names the model and the streaming mode in the path.
    Answer(Backend, Manner),
    CountTokens(Backend),
    Models(Backend),
    /// Code Assist, with the path after `/v1internal`.
    CodeAssist(String),
    /// Control of the fakes by programs in other languages.
    Script,
    Seen,
    Clear,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Manner {
    AsTheBodySays,
    Streamed { model: String },
    Whole { model: String },
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let Some(route) = route_of(&parts) else {
        return reply_json(
            StatusCode::NOT_FOUND,
            &json!({"error": {"message": format!("no backend serves {} {}", parts.method, parts.uri)}}),
        );
    };
    match route {
        Route::Answer(backend, manner) => answer(&shared, backend, &manner, &parts, &bytes).await,
        Route::CountTokens(backend) => {
            let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let mut findings = Findings::default();
            check_credential(&shared, backend, &parts, &mut findings);
            let counted = counted(backend, bytes.len());
            recorded(&shared, backend, &parts, (body, &bytes), &findings, &counted)
        }
        Route::Models(backend) => reply_json(StatusCode::OK, &models_of(backend)),
        Route::CodeAssist(method) => {
            let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let mut findings = Findings::default();
            check_credential(&shared, Backend::CodeAssist, &parts, &mut findings);
            let answer = code_assist::answer(&shared, &method, &body, &mut findings);
            let answer = answer.unwrap_or_else(|| {
                findings.add_with(404, "method", format!("Method not found: {method}"));
                Value::Null
            });
            recorded(&shared, Backend::CodeAssist, &parts, (body, &bytes), &findings, &answer)
        }
        Route::Script => match Script::parse(&String::from_utf8_lossy(&bytes)) {
            Ok(script) => {
                shared.script(script);
                reply_json(StatusCode::OK, &json!({}))
            }
            Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
        },
        Route::Seen => reply_json(StatusCode::OK, &seen(&shared)),
        Route::Clear => {
            shared.clear();
            reply_json(StatusCode::OK, &json!({}))
        }
    }
}

pub(crate) fn route_of(parts: &Parts) -> Option<Route> {
    let path = parts.uri.path();
    let is_post = parts.method == Method::POST;
    let as_said = |backend| Some(Route::Answer(backend, Manner::AsTheBodySays));
    match (is_post, path) {
        (true, "/v1/responses") => return as_said(Backend::OpenAi),
        (true, "/backend-api/codex/responses") => return as_said(Backend::ChatGpt),
        (true, "/v1/chat/completions") => return as_said(Backend::Chat),
        (true, "/v1/messages") => return as_said(Backend::Anthropic),
        (true, "/v1/messages/count_tokens") => return Some(Route::CountTokens(Backend::Anthropic)),
        (true, "/v1/responses/input_tokens") => return Some(Route::CountTokens(Backend::OpenAi)),
        (false, "/v1/models") if header_of(parts, "anthropic-version").is_some() => {
            return Some(Route::Models(Backend::Anthropic));
        }
        (false, "/v1/models") if header_of(parts, "x-goog-api-key").is_none() => {
            return Some(Route::Models(Backend::OpenAi));
        }
        (false, "/backend-api/codex/models") => return Some(Route::Models(Backend::ChatGpt)),
        (false, "/v1beta/models" | "/v1/models") => return Some(Route::Models(Backend::Gemini)),
        (true, "/_fake/script") => return Some(Route::Script),
        (true, "/_fake/clear") => return Some(Route::Clear),
        (false, "/_fake/seen") => return Some(Route::Seen),
        (true | false, _) => {}
    }
    if let Some(method) = path.strip_prefix("/v1internal") {
        let model = String::new();
        return Some(match method {
            ":streamGenerateContent" => {
                Route::Answer(Backend::CodeAssist, Manner::Streamed { model })
            }
            ":generateContent" => Route::Answer(Backend::CodeAssist, Manner::Whole { model }),
            other => Route::CodeAssist(other.to_owned()),
        });
    }
    let named =
        path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"))?;
    let (model, method) = named.rsplit_once(':')?;
    let model = model.to_owned();
    match method {
        "streamGenerateContent" => Some(Route::Answer(Backend::Gemini, Manner::Streamed { model })),
        "generateContent" => Some(Route::Answer(Backend::Gemini, Manner::Whole { model })),
        "countTokens" => Some(Route::CountTokens(Backend::Gemini)),
        _ => None,
    }
}

async fn answer(
    shared: &Arc<Shared>,
    backend: Backend,
    manner: &Manner,
    parts: &Parts,
    bytes: &Bytes,
) -> Response {
    let mut findings = Findings::default();
    let account = check_credential(shared, backend, parts, &mut findings);
    let body: Value = serde_json::from_slice(bytes).unwrap_or_else(|_| {
        findings.add("not_json", "We could not parse the JSON body of your request.");
        Value::Null
    });
    if matches!(manner, Manner::Streamed { .. })
        && parts.uri.query().is_none_or(|query| !query.contains("alt=sse"))
    {
        findings.add("alt", "The fake streams as events only: add ?alt=sse");
    }
    let heard = heard(backend, manner, &body, parts, &account, &mut findings);
    let tools = heard.tools.clone();
    let request = seen_request(backend, parts, (body.clone(), bytes), tools, &findings);
    shared.record(request, &findings);
    if let Some(refusal) = findings.first() {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
        return reply_json(status, &backend.error_body(refusal));
    }
    let step = shared.next_step(backend, &body, &heard);
    play(shared, backend, &step, &heard).await
}

fn heard(
    backend: Backend,
    manner: &Manner,
    body: &Value,
    parts: &Parts,
    account: &str,
    findings: &mut Findings,
) -> EventReceiver {
    let mut heard = match backend {
        Backend::OpenAi | Backend::ChatGpt => {
            responses_check::check(backend, body, account, findings)
        }
        Backend::Chat => chat_check::check(body, findings),
        Backend::Anthropic => {
            let betas = header_of(parts, "anthropic-beta").unwrap_or_default();
            anthropic_check::check(body, betas, findings)
        }
        Backend::Gemini => {
            let model = match manner {
                Manner::Streamed { model } | Manner::Whole { model } => model.as_str(),
                Manner::AsTheBodySays => "",
            };
            gemini_check::check(model, body, findings)
        }
        Backend::CodeAssist => {
            let (model, request) = code_assist::open_envelope(body, findings);
            gemini_check::check(model, request, findings)
        }
    };
    match manner {
        Manner::AsTheBodySays => {}
        Manner::Streamed { .. } => heard.streams = true,
        Manner::Whole { .. } => heard.streams = false,
    }
    heard
}

/// Answers with a step.
pub(crate) async fn play(
    shared: &Arc<Shared>,
    backend: Backend,
    step: &Step,
    heard: &EventReceiver,
) -> Response {
    let mut open = shared.open_stream();
    if !step.wire.delay.is_zero() {
        tokio::time::sleep(step.wire.delay).await;
    }
    if step.wire.ending == Ending::Silent {
        future::pending::<()>().await;
    }
    let events = match &step.instead {
        Some(Instead::Status { code, headers, body }) => {
            open.finish();
            return reply_status(*code, headers, body.clone());
        }
        Some(Instead::Raw(bytes)) => Box::new(std::iter::once(bytes.clone())),
        None if heard.streams => encoded(backend, events(backend, step, heard, shared), &step.wire),
        None => {
            open.finish();
            return reply_json(StatusCode::OK, &document(backend, step, heard, shared));
        }
    };
    let mut response = Response::new(body(events, &step.wire, open));
    let content_type = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response.headers_mut().insert("request-id", HeaderValue::from_static("req_fake"));
    response
}

pub(crate) fn events(
    backend: Backend,
    step: &Step,
    heard: &EventReceiver,
    shared: &Shared,
) -> Vec<super::stream::Event> {
    match backend {
        Backend::OpenAi | Backend::ChatGpt => responses_events::events(step, heard, &shared.ids),
        Backend::Chat => chat_events::events(step, heard, &shared.ids),
        Backend::Anthropic => anthropic_events::events(step, heard, &shared.ids),
        Backend::Gemini | Backend::CodeAssist => {
            gemini_events::events(backend, step, heard, &shared.ids)
        }
    }
}

fn document(backend: Backend, step: &Step, heard: &EventReceiver, shared: &Shared) -> Value {
    match backend {
        Backend::OpenAi | Backend::ChatGpt => responses_events::document(step, heard, &shared.ids),
        Backend::Chat => chat_events::document(step, heard, &shared.ids),
        Backend::Anthropic => anthropic_events::document(step, heard, &shared.ids),
        Backend::Gemini | Backend::CodeAssist => {
            gemini_events::document(backend, step, heard, &shared.ids)
        }
    }
}

/// Checks the credential, and returns the account that reasoning belongs to.
fn check_credential(
    shared: &Shared,
    backend: Backend,
    parts: &Parts,
    findings: &mut Findings,
) -> String {
    let bearer = header_of(parts, "authorization")
        .and_then(|value| value.strip_prefix("Bearer "))
        .filter(|token| !token.is_empty());
    let mut refuse = |words: &str| findings.add_with(401, "credential", words);
    let (credential, account) = match backend {
        Backend::OpenAi => {
            if bearer.is_none() {
                refuse(
                    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
                );
            }
            (bearer, bearer)
        }
        Backend::ChatGpt => {
            let account = header_of(parts, "chatgpt-account-id").filter(|id| !id.is_empty());
            if bearer.is_none() || account.is_none() {
                refuse("Unauthorized");
            }
            (bearer, account)
        }
        Backend::Chat => (bearer, None),
        Backend::Anthropic => (check_anthropic_head(parts, bearer, &mut refuse), None),
        Backend::Gemini => {
            let key = header_of(parts, "x-goog-api-key");
            if key.is_none() {
                refuse(
                    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
                );
            }
            (key, None)
        }
        Backend::CodeAssist => {
            if bearer.is_none() {
                refuse(
                    "Request is missing required authentication credential. Expected OAuth 2 access token.",
                );
            }
            (bearer, None)
        }
    };
    if credential.is_some_and(|credential| shared.is_refused(credential)) {
        refuse("The credential is not valid, or not valid any more.");
    }
    account.unwrap_or_default().to_owned()
}

fn check_anthropic_head<'a>(
    parts: &'a Parts,
    bearer: Option<&'a str>,
    refuse: &mut impl FnMut(&str),
) -> Option<&'a str> {
    let key = header_of(parts, "x-api-key").filter(|key| !key.is_empty());
    let betas = header_of(parts, "anthropic-beta").unwrap_or_default();
    match (key, bearer) {
        (None, None) => refuse("x-api-key header is required"),
        (Some(_), Some(_)) => refuse("x-api-key and authorization must not both be set"),
        // The official library of 2026 sends API keys as bearer too: only tokens need the beta.
        (None, Some(token))
            if !token.starts_with(ANTHROPIC_KEY)
                && !betas.split(',').any(|beta| beta.trim() == OAUTH_BETA) =>
        {
            refuse("OAuth authentication is currently not supported.");
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    match header_of(parts, "anthropic-version") {
        Some(version) if ANTHROPIC_VERSIONS.contains(&version) => {}
        Some(version) => {
            refuse(&format!("anthropic-version: \"{version}\" is not a valid version"));
        }
        None => refuse("anthropic-version: header is required"),
    }
    key.or(bearer)
}

/// The number of tokens of a body of this size, as a backend tells it.
pub(crate) fn counted(backend: Backend, bytes: usize) -> Value {
    let tokens = bytes / 4;
    match backend {
        Backend::Gemini | Backend::CodeAssist => json!({"totalTokens": tokens}),
        Backend::Anthropic => json!({"input_tokens": tokens}),
        Backend::OpenAi | Backend::ChatGpt | Backend::Chat => {
            json!({"object": "response.input_tokens", "input_tokens": tokens})
        }
    }
}

pub(crate) fn models_of(backend: Backend) -> Value {
    match backend {
        Backend::OpenAi | Backend::Chat => json!({"object": "list", "data": [
            {"id": "gpt-5.5", "object": "model", "created": 1_790_000_000, "owned_by": "openai"},
        ]}),
        Backend::ChatGpt => json!({"models": [], "data": []}),
        Backend::Anthropic => json!({
            "data": [{"id": "claude-opus-5-5", "type": "model", "display_name": "Claude Opus 5.5", "created_at": "2026-09-01T00:00:00Z"}],
            "has_more": false, "first_id": "claude-opus-5-5", "last_id": "claude-opus-5-5",
        }),
        Backend::Gemini | Backend::CodeAssist => json!({"models": [
            {"name": "models/gemini-3.1-pro-preview", "supportedGenerationMethods": ["generateContent"]},
        ]}),
    }
}

/// All recorded requests, for programs in other languages.
fn seen(shared: &Shared) -> Value {
    let (open, peak, closed) = shared.stream_counts();
    let requests: Vec<Value> = shared
        .requests()
        .into_iter()
        .map(|request| {
            json!({
                "backend": request.backend.word(), "method": request.method, "path": request.path,
                "headers": request.headers, "body": request.body, "tools": request.tools,
                "refusal": request.refusal,
            })
        })
        .collect();
    let violations = shared.violations().into_iter().map(|violation| {
        json!({"backend": violation.backend.word(), "rule": violation.rule, "message": violation.message})
    });
    let violations: Vec<Value> = violations.collect();
    json!({"requests": requests, "violations": violations, "open_streams": open, "peak_streams": peak, "closed_by_client": closed})
}

/// Records a request that needs no model, and answers it.
fn recorded(
    shared: &Shared,
    backend: Backend,
    parts: &Parts,
    body: (Value, &Bytes),
    findings: &Findings,
    answer: &Value,
) -> Response {
    shared.record(seen_request(backend, parts, body, Vec::new(), findings), findings);
    match findings.first() {
        Some(refusal) => {
            let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
            reply_json(status, &backend.error_body(refusal))
        }
        None => reply_json(StatusCode::OK, answer),
    }
}

fn seen_request(
    backend: Backend,
    parts: &Parts,
    (body, bytes): (Value, &Bytes),
    tools: Vec<String>,
    findings: &Findings,
) -> ModelRequest {
    let headers = parts.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    ModelRequest {
        backend,
        method: parts.method.to_string(),
        path: parts.uri.to_string(),
        headers: headers.collect(),
        body,
        text: String::from_utf8_lossy(bytes).into_owned(),
        tools,
        refusal: findings.first().map(|refusal| refusal.message.clone()),
    }
}

fn reply_status(code: u16, headers: &[(String, String)], body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(code).expect("a status of three digits");
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    for (name, value) in headers {
        let name: HeaderName = name.parse().expect("the name of a header");
        response.headers_mut().insert(name, value.parse().expect("the value of a header"));
    }
    response
}

pub(crate) fn reply_json(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn header_of<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok()
}
