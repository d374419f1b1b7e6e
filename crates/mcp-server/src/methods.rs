//! Dispatches MCP methods, independent of era and transport.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::{Value, json};
use switchboard_model::ServerName;
use switchboard_protocol::{
    ErrorBody, Members, Meta, Need, SUPPORTED_VERSIONS, TASKS_EXTENSION, code, params_text, quoted,
    with_members,
};
use switchboard_runtime::ListKind;
use switchboard_sessions::{Reached, Session, is_listed};
use switchboard_view::{Entry, Found, ListEra, View, not_enabled, unknown_tool};

use crate::gateway::Gateway;
use crate::instructions::instructions;
use crate::listener::ListenRequest;
use crate::log_level::LogLevel;
use crate::outcome::{COMPLETE, Outcome, missing_capability};
use crate::request_context::{ForwardedParams, RequestContext, UpstreamOperation};
use crate::stored_client::snapshot_of;
use crate::upstream_exchange::{ExchangeStep, UpstreamExchange};

/// A request whose parts are still JSON text.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Members<'a>,
    pub(crate) meta: Meta<'a>,
    /// The HTTP headers; `None` over stdio.
    pub(crate) headers: Option<&'a HeaderMap>,
}

/// How a request is responded to.
pub(crate) enum Dispatch {
    /// At once, after these notifications.
    Now(Vec<String>, Outcome),
    /// When a server has responded.
    ResponseWriter(Box<UpstreamExchange>),
    /// With `input_required`: a server waits for the client's input.
    PendingInputs(Outcome),
    /// With a stream that is open as long as the client listens.
    Listen(ListenRequest),
}

impl Dispatch {
    fn now(outcome: Outcome) -> Self {
        Self::Now(Vec::new(), outcome)
    }

    fn error(code: i64, message: impl Into<String>) -> Self {
        Self::now(Outcome::error(code, message))
    }
}

/// Members of `params` of `tools/call` that are not forwarded. `task` requested a task in 2025-11-25; now servers decide.
const CALL_MEMBERS: [&str; 4] = ["name", "arguments", "_meta", "task"];

const FOREIGN_STATE: &str =
    "the requestState is unknown, has expired, or belongs to another request";

impl Gateway {
    /// Dispatches a request of an admitted client.
    pub(crate) async fn respond(
        self: &Arc<Self>,
        context: RequestContext,
        request: Incoming<'_>,
    ) -> Dispatch {
        let era = context.era();
        if let Some(session) = &context.session
            && let Err(ended) = self.bring_up(session, request.method).await
        {
            return ended;
        }
        match (request.method, era) {
            ("tools/list", _) => {
                let view = &self.service.view_of(&context.scope, context.session.as_ref()).view;
                if let Some(client) = &context.client {
                    client.note_list();
                    client.relists.note_listed();
                } else if let Some(session) = &context.session {
                    self.listeners.note_listed(&context.caller.principal, session);
                }
                Dispatch::now(Outcome::Result(view.list(era).clone()))
            }
            ("tools/call", _) => self.tools_call(context, &request).await,
            ("prompts/list", _) => self.list(&context, ListKind::Prompts),
            ("resources/list", _) => self.list(&context, ListKind::Resources),
            ("resources/templates/list", _) => self.list(&context, ListKind::Templates),
            // Boxed: the future of every request would otherwise have the size of its largest branch.
            ("prompts/get", _) => Box::pin(self.prompts_get(context, &request)).await,
            ("resources/read", _) => Box::pin(self.resources_read(context, &request)).await,
            ("completion/complete", _) => Box::pin(self.complete(context, &request)).await,
            ("tasks/get", ListEra::Stateless) => {
                Box::pin(self.task_request(context, &request, "tasks/get")).await
            }
            ("tasks/update", ListEra::Stateless) => {
                Box::pin(self.task_request(context, &request, "tasks/update")).await
            }
            ("tasks/cancel", ListEra::Stateless) => {
                Box::pin(self.task_request(context, &request, "tasks/cancel")).await
            }
            ("server/discover", ListEra::Stateless) => {
                Dispatch::now(Outcome::text(self.discover(&context)))
            }
            ("subscriptions/listen", ListEra::Stateless) => self.listen_for(&context, &request),
            ("ping", ListEra::Session) => Dispatch::now(Outcome::text("{}")),
            ("logging/setLevel", ListEra::Session) => {
                Box::pin(self.set_level(&context, &request)).await
            }
            ("resources/subscribe", ListEra::Session) => {
                Box::pin(self.subscribe(&context, &request, true)).await
            }
            ("resources/unsubscribe", ListEra::Session) => {
                Box::pin(self.subscribe(&context, &request, false)).await
            }
            (method, _) => {
                let shown: String = method.chars().take(64).collect();
                let error =
                    ErrorBody::new(code::METHOD_NOT_FOUND, format!("there is no method '{shown}'"));
                Dispatch::now(Outcome::Error { status: 404, error })
            }
        }
    }

    /// Brings a session to a state that is new enough for a request: for a call a second may have passed, and everything
    /// else that lists or refuses something needs the newest. The error is the response if the session has ended.
    async fn bring_up(&self, session: &Arc<Session>, method: &str) -> Result<(), Dispatch> {
        let brought = match method {
            "ping" | "logging/setLevel" => return Ok(()),
            "tools/call" => self.service.recent(session).await,
            _ => self.service.newest(session).await,
        };
        brought.map_err(|_ended| {
            let message = "the session has ended";
            let error = ErrorBody::new(code::LEGACY_SERVER_ERROR, message);
            Dispatch::now(Outcome::Error { status: 404, error })
        })
    }

    async fn tools_call(
        self: &Arc<Self>,
        context: RequestContext,
        request: &Incoming<'_>,
    ) -> Dispatch {
        let Some(name) = request.params.string("name") else {
            return Dispatch::error(code::INVALID_PARAMS, "`name` must say which tool to call");
        };
        let is_known = |view: &View| is_listed(view, &name);
        let (scope, session) = (&context.scope, context.session.as_ref());
        let (snapshot, cached) =
            self.service.snapshot_and_view_with(scope, session, &name, is_known).await;
        let view = &cached.view;
        let arguments = request.params.get("arguments").filter(|text| *text != "null");
        let found = view.find(&name);
        let headers = request.headers.filter(|_| context.era() == ListEra::Stateless);
        if let (Found::Tool(entry), Some(headers)) = (&found, headers)
            && let Err(reason) =
                snapshot.check_mirrors(&entry.tool, headers, arguments.unwrap_or("{}"))
        {
            let error = ErrorBody::new(code::HEADER_MISMATCH, reason);
            return Dispatch::now(Outcome::Error { status: 400, error });
        }
        // A call may outlive the snapshot.
        drop(snapshot);
        match found {
            Found::Tool(entry) => {
                let arguments = arguments.map(str::to_owned);
                self.call(context, entry, &name, Reached::Listed, arguments, request).await
            }
            Found::Meta(meta) => Box::pin(self.call_meta(context, meta, &cached, request)).await,
            Found::Disabled { entry, sets } => {
                let text = not_enabled(view, entry, &sets, context.session.is_some());
                self.refuse_call(&context, &name, Some(entry), arguments, text).await
            }
            Found::Unknown { nearest } => {
                let text = unknown_tool(&name, &nearest);
                self.refuse_call(&context, &name, None, arguments, text).await
            }
        }
    }

    /// Calls a tool of the catalog. `requested` is the name that the client used.
    pub(crate) async fn call(
        self: &Arc<Self>,
        context: RequestContext,
        entry: &Entry,
        requested: &str,
        reached: Reached,
        arguments: Option<String>,
        request: &Incoming<'_>,
    ) -> Dispatch {
        let (tool, requested) = (entry.tool.name.clone(), requested.into());
        let operation = UpstreamOperation::Call { tool, requested, arguments, reached };
        self.converse(context, operation, request, &CALL_MEMBERS).await
    }

    /// Begins an exchange with a server, or resumes the one whose `requestState` the client sends.
    async fn converse(
        self: &Arc<Self>,
        context: RequestContext,
        operation: UpstreamOperation,
        request: &Incoming<'_>,
        read: &[&str],
    ) -> Dispatch {
        let is_ours = |key: &str| matches!(key, "inputResponses" | "requestState");
        let mut extra: Vec<(&str, &str)> =
            request.params.iter().filter(|(key, _)| !read.contains(key) && !is_ours(key)).collect();
        let mut wishes = ForwardedParams {
            progress_token: request.meta.progress_token.map(str::to_owned),
            meta: request.meta.foreign(),
            extra: String::new(),
        };
        let state = request.params.string("requestState");
        if let Some(state) = state.as_ref().filter(|state| self.is_own_state(state)) {
            let taken = self.parked.take(state, &context.caller.principal, |parked| {
                is_same(&parked.operation, &operation)
            });
            let Some(mut exchange) = taken else {
                return Dispatch::error(code::INVALID_PARAMS, FOREIGN_STATE);
            };
            let responses = request.params.object("inputResponses").unwrap_or_default();
            exchange.context = context;
            wishes.extra = params_text(&extra);
            return match exchange.resume(wishes, &responses) {
                Some(ExchangeStep::Park { state, outcome }) => {
                    self.parked.put(state, exchange);
                    Dispatch::PendingInputs(outcome)
                }
                _ => Dispatch::ResponseWriter(exchange),
            };
        }
        let unsealed;
        // In the session era, the elicitation bridge adds these members itself.
        if context.era() == ListEra::Stateless {
            let seal = self.seal().await;
            extra.extend(request.params.get("inputResponses").map(|it| ("inputResponses", it)));
            if request.params.get("requestState").is_some() {
                let now = jiff::Timestamp::now();
                let opened = state
                    .as_deref()
                    .and_then(|s| seal.open(&context.caller.principal, &operation, s, now));
                let Some(opened) = opened else {
                    return Dispatch::error(code::INVALID_PARAMS, FOREIGN_STATE);
                };
                unsealed = quoted(opened);
                extra.push(("requestState", &unsealed));
            }
        }
        wishes.extra = params_text(&extra);
        if let Some(level) = context.log_level {
            self.lower_log_level(level, Some(operation.server())).await;
        }
        Dispatch::ResponseWriter(Box::new(UpstreamExchange::new(
            self.clone(),
            context,
            operation,
            wishes,
        )))
    }

    fn list(&self, context: &RequestContext, kind: ListKind) -> Dispatch {
        if let Some(client) = &context.client {
            client.note_list();
        }
        let (scope, session) = (&context.scope, context.session.as_ref());
        let list = self.with_visible(scope, session, |snapshot, serves| {
            snapshot.prompts_resources().list(kind, context.era(), serves)
        });
        Dispatch::now(Outcome::text(list))
    }

    async fn prompts_get(
        self: &Arc<Self>,
        context: RequestContext,
        request: &Incoming<'_>,
    ) -> Dispatch {
        let Some(name) = request.params.string("name") else {
            return Dispatch::error(code::INVALID_PARAMS, "`name` must say which prompt to get");
        };
        let found =
            self.with_visible(&context.scope, context.session.as_ref(), |snapshot, serves| {
                snapshot
                    .prompts_resources()
                    .prompt(&name, serves)
                    .map(|prompt| (prompt.server.clone(), prompt.key.clone()))
            });
        let Some((server, key)) = found else {
            let shown: String = name.chars().take(128).collect();
            return Dispatch::error(
                code::INVALID_PARAMS,
                format!("there is no prompt '{shown}' here"),
            );
        };
        let quoted_key = quoted(&key);
        let mut params = vec![("name", quoted_key.as_str())];
        params.extend(request.params.get("arguments").map(|arguments| ("arguments", arguments)));
        let params = params_text(&params);
        let operation =
            UpstreamOperation::Pass { server, method: "prompts/get", name: Some(key), params };
        self.converse(context, operation, request, &CALL_MEMBERS).await
    }

    async fn resources_read(
        self: &Arc<Self>,
        context: RequestContext,
        request: &Incoming<'_>,
    ) -> Dispatch {
        let Some(uri) = request.params.string("uri") else {
            return Dispatch::error(code::INVALID_PARAMS, "`uri` must say which resource to read");
        };
        let Some(server) = self.server_of(&context, &uri) else {
            return Dispatch::now(not_found(context.era(), &uri));
        };
        let params = params_text(&[("uri", &quoted(&uri))]);
        let operation = UpstreamOperation::Pass {
            server,
            method: "resources/read",
            name: Some(uri.into_owned()),
            params,
        };
        self.converse(context, operation, request, &["uri", "_meta"]).await
    }

    async fn complete(
        self: &Arc<Self>,
        context: RequestContext,
        request: &Incoming<'_>,
    ) -> Dispatch {
        let reference = request.params.object("ref").unwrap_or_default();
        let found = match reference.string("type").as_deref() {
            Some("ref/prompt") => reference.string("name").and_then(|name| {
                self.with_visible(&context.scope, context.session.as_ref(), |snapshot, serves| {
                    let prompt = snapshot.prompts_resources().prompt(&name, serves)?;
                    let reference = json!({"type": "ref/prompt", "name": prompt.key});
                    Some((prompt.server.clone(), reference.to_string()))
                })
            }),
            Some("ref/resource") => reference.string("uri").and_then(|uri| {
                let reference = json!({"type": "ref/resource", "uri": uri}).to_string();
                Some((self.server_of(&context, &uri)?, reference))
            }),
            _ => None,
        };
        let Some((server, reference)) = found else {
            let message = "`ref` must name a prompt or a resource template that is listed here";
            return Dispatch::error(code::INVALID_PARAMS, message);
        };
        if !self.board.snapshot().prompts_resources().completes(&server) {
            let nothing = r#"{"completion":{"values":[],"total":0,"hasMore":false}}"#;
            let nothing = match context.era() {
                ListEra::Session => nothing.to_owned(),
                ListEra::Stateless => with_members(nothing, &[COMPLETE]),
            };
            return Dispatch::now(Outcome::text(nothing));
        }
        let params = params_text(&[("ref", &reference)]);
        let operation =
            UpstreamOperation::Pass { server, method: "completion/complete", name: None, params };
        self.converse(context, operation, request, &["ref", "_meta"]).await
    }

    /// Forwards a `tasks/...` request to the server that has the task.
    async fn task_request(
        self: &Arc<Self>,
        context: RequestContext,
        request: &Incoming<'_>,
        method: &'static str,
    ) -> Dispatch {
        if !context.capabilities.meet(Need::Tasks) {
            return Dispatch::now(missing_capability(Need::Tasks));
        }
        let seal = self.seal().await;
        let view = &self.service.view_of(&context.scope, context.session.as_ref()).view;
        let id = request.params.string("taskId");
        let task = id.and_then(|id| seal.open_task(&context.caller.principal, &id));
        // A task of a tool that policy hides by now is reported as unknown.
        let Some(task) = task.filter(|task| view.reaches_tool(&task.tool)) else {
            let message = "`taskId` is not the id of a task of yours";
            return Dispatch::error(code::INVALID_PARAMS, message);
        };
        self.converse(
            context,
            UpstreamOperation::Task { method, task },
            request,
            &["taskId", "_meta"],
        )
        .await
    }

    fn server_of(&self, context: &RequestContext, uri: &str) -> Option<ServerName> {
        self.owner_of(&context.scope, context.session.as_ref(), uri)
    }

    async fn set_level(&self, context: &RequestContext, request: &Incoming<'_>) -> Dispatch {
        let level = request.params.string("level").and_then(|word| LogLevel::read(&word));
        let (Some(level), Some(client)) = (level, &context.client) else {
            let message = format!("`level` must be one of {}", LogLevel::words());
            return Dispatch::error(code::INVALID_PARAMS, message);
        };
        self.follow_client(client).await;
        let before = client.log_level();
        client.set_log_level(level);
        if let Err(failure) = self.sessions().writes.put_client(snapshot_of(client)).await {
            client.restore_log_level(before);
            return Dispatch::error(code::INTERNAL_ERROR, failure.to_string());
        }
        self.lower_log_level(level, None).await;
        Dispatch::now(Outcome::text("{}"))
    }

    async fn subscribe(
        &self,
        context: &RequestContext,
        request: &Incoming<'_>,
        is_wanted: bool,
    ) -> Dispatch {
        let (Some(uri), Some(client)) = (request.params.string("uri"), &context.client) else {
            return Dispatch::error(code::INVALID_PARAMS, "`uri` must name the resource");
        };
        let server = self.server_of(context, &uri);
        if is_wanted && server.is_none() {
            return Dispatch::now(not_found(context.era(), &uri));
        }
        self.follow_client(client).await;
        let has_changed = client.is_subscribed(&uri) != is_wanted;
        if !client.subscribe(&uri, is_wanted) {
            return Dispatch::error(code::INVALID_PARAMS, "the client has too many subscriptions");
        }
        if let Err(failure) = self.sessions().writes.put_client(snapshot_of(client)).await {
            if has_changed {
                client.subscribe(&uri, !is_wanted);
            }
            return Dispatch::error(code::INTERNAL_ERROR, failure.to_string());
        }
        self.watch_resources_of(&server.into_iter().collect()).await;
        Dispatch::now(Outcome::text("{}"))
    }

    /// Subscribes to the requested resources at their servers.
    pub(crate) async fn watch_for(&self, context: &RequestContext, wanted: &ListenRequest) {
        if !wanted.uris.is_empty() {
            let servers = wanted.uris.iter().filter_map(|uri| self.server_of(context, uri));
            Box::pin(self.watch_resources_of(&servers.collect())).await;
        }
    }

    fn listen_for(&self, context: &RequestContext, request: &Incoming<'_>) -> Dispatch {
        const MAX_URIS: usize = 256;
        let Some(filter) = request.params.object("notifications") else {
            return Dispatch::error(
                code::INVALID_PARAMS,
                "`notifications` must say what to listen for",
            );
        };
        let wants = |key: &str| filter.get(key) == Some("true");
        let uris = filter.get("resourceSubscriptions").unwrap_or("[]");
        let Ok(uris) = serde_json::from_str::<Vec<String>>(uris) else {
            let message = "`resourceSubscriptions` must be a list of URIs";
            return Dispatch::error(code::INVALID_PARAMS, message);
        };
        if uris.len() > MAX_URIS {
            let message = format!("more than {MAX_URIS} resources cannot be watched on one stream");
            return Dispatch::error(code::INVALID_PARAMS, message);
        }
        // A hidden resource is treated as missing: it is not acknowledged.
        let is_seen = |uri: &String| self.server_of(context, uri).is_some();
        Dispatch::Listen(ListenRequest {
            changes: crate::list_changed::ListChanges {
                tools: wants("toolsListChanged"),
                prompts: wants("promptsListChanged"),
                resources: wants("resourcesListChanged"),
            },
            uris: uris.into_iter().filter(is_seen).collect(),
        })
    }

    fn discover(&self, context: &RequestContext) -> String {
        let (snapshot, cached) =
            self.service.snapshot_and_view(&context.scope, context.session.as_ref());
        json!({
            "resultType": "complete",
            "supportedVersions": SUPPORTED_VERSIONS,
            "capabilities": stateless_capabilities(),
            "instructions": instructions(&snapshot, &cached.view, &context.scope),
            "ttlMs": 60_000,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
        })
        .to_string()
    }
}

/// The declared server capabilities. They do not depend on the connected servers, which come and go.
pub(crate) fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "completions": {},
        "logging": {},
    })
}

/// As [`capabilities`], with those of the stateless era. The servers decide which calls become tasks.
fn stateless_capabilities() -> Value {
    let mut capabilities = capabilities();
    capabilities["extensions"] = json!({ TASKS_EXTENSION: {} });
    capabilities
}

pub(crate) fn server_info() -> Value {
    json!({"name": "switchboard", "title": "Switchboard", "version": env!("CARGO_PKG_VERSION")})
}

fn not_found(era: ListEra, uri: &str) -> Outcome {
    let code = match era {
        ListEra::Session => code::LEGACY_RESOURCE_NOT_FOUND,
        ListEra::Stateless => code::INVALID_PARAMS,
    };
    let shown: String = uri.chars().take(256).collect();
    let error = ErrorBody::new(code, format!("there is no resource '{shown}' here"))
        .with_data(json!({ "uri": uri }).to_string());
    Outcome::Error { status: 200, error }
}

/// Whether both are the same request. White space between the tokens of arguments does not count.
fn is_same(parked: &UpstreamOperation, operation: &UpstreamOperation) -> bool {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    match (parked, operation) {
        (
            UpstreamOperation::Call { tool, arguments, .. },
            UpstreamOperation::Call { tool: other, arguments: others, .. },
        ) => {
            let value = |text: &Option<String>| parse(text.as_deref().unwrap_or("{}"));
            tool == other && value(arguments) == value(others)
        }
        (
            UpstreamOperation::Pass { server, method, params, .. },
            UpstreamOperation::Pass { server: other, method: way, params: others, .. },
        ) => {
            let value = |members: &str| parse(&format!("{{{members}}}"));
            server == other && method == way && value(params) == value(others)
        }
        (
            UpstreamOperation::Task { method, task },
            UpstreamOperation::Task { method: way, task: other },
        ) => method == way && task == other,
        (
            UpstreamOperation::Call { .. }
            | UpstreamOperation::Pass { .. }
            | UpstreamOperation::Task { .. },
            _,
        ) => false,
    }
}
