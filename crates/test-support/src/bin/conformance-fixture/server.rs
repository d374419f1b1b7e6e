//! The fixture as the library's server handler.
#![expect(deprecated, reason = "the suite tests what only the older protocol has")]

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, DiscoverRequestMethod, DiscoverResult, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::dialogue::{Outcome, hold, is_modern};
use crate::era::Era;
use crate::listing::{self, WATCHED, complete, typed};
use crate::tasks::{Job, Tasks};

/// Pause between two messages of a tool that sends several.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of changes that a subscription may lag behind.
const CHANGES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Tools,
    Prompts,
    Watched,
}

/// State that all sessions and requests share.
#[derive(Debug)]
pub(crate) struct World {
    era: Era,
    dynamic_tool: AtomicBool,
    dynamic_prompt: AtomicBool,
    changes: broadcast::Sender<Change>,
    sessions: Mutex<Vec<Session>>,
    tasks: Tasks,
}

/// A session-era client that gets change notifications.
#[derive(Debug, Clone)]
struct Session {
    peer: Peer<RoleServer>,
    memory: Arc<Memory>,
}

/// The state of one session: log level and subscriptions.
#[derive(Debug)]
struct Memory {
    subscriptions: Mutex<BTreeSet<String>>,
    level: Mutex<LoggingLevel>,
}

/// One session of the session era, or one request of the stateless era.
#[derive(Debug)]
pub(crate) struct Fixture {
    world: Arc<World>,
    memory: Arc<Memory>,
}

impl World {
    pub(crate) fn new(era: Era) -> Self {
        Self {
            era,
            dynamic_tool: AtomicBool::new(false),
            dynamic_prompt: AtomicBool::new(false),
            changes: broadcast::Sender::new(CHANGES),
            sessions: Mutex::default(),
            tasks: Tasks::default(),
        }
    }

    async fn change(&self, change: Change) {
        match change {
            Change::Tools => self.dynamic_tool.fetch_xor(true, Ordering::Relaxed),
            Change::Prompts => self.dynamic_prompt.fetch_xor(true, Ordering::Relaxed),
            Change::Watched => false,
        };
        // Fails if there is no subscription, as with session-era clients only.
        let _subscriptions = self.changes.send(change);
        for session in self.open_sessions() {
            session.tell(change).await;
        }
    }

    fn open_sessions(&self) -> Vec<Session> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| !session.peer.is_transport_closed());
        sessions.clone()
    }
}

impl Session {
    async fn tell(&self, change: Change) {
        let is_subscribed = || {
            let subscriptions = self.memory.subscriptions.lock();
            subscriptions.unwrap_or_else(PoisonError::into_inner).contains(WATCHED)
        };
        // A disconnected client is removed at the next change.
        let _gone = match change {
            Change::Tools => self.peer.notify_tool_list_changed().await,
            Change::Prompts => self.peer.notify_prompt_list_changed().await,
            Change::Watched if is_subscribed() => {
                let updated = ResourceUpdatedNotificationParam::new(WATCHED);
                self.peer.notify_resource_updated(updated).await
            }
            Change::Watched => Ok(()),
        };
    }
}

impl Fixture {
    pub(crate) fn new(world: Arc<World>) -> Self {
        let memory =
            Memory { subscriptions: Mutex::default(), level: Mutex::new(LoggingLevel::Debug) };
        Self { world, memory: Arc::new(memory) }
    }

    fn tools(&self) -> Vec<Value> {
        listing::tools(self.world.dynamic_tool.load(Ordering::Relaxed))
    }

    fn prompts(&self) -> Vec<Value> {
        listing::prompts(self.world.dynamic_prompt.load(Ordering::Relaxed))
    }

    /// The side effects of some tools before their result.
    async fn act(&self, tool: &str, context: &RequestContext<RoleServer>) {
        match tool {
            "test_tool_with_logging" | "test_logging_tool" => self.log(context).await,
            "test_tool_with_progress" => progress(context).await,
            "test_reconnection" => tokio::time::sleep(2 * PAUSE).await,
            "test_trigger_tool_change" => self.world.change(Change::Tools).await,
            "test_trigger_prompt_change" => self.world.change(Change::Prompts).await,
            "test_trigger_resource_update" => self.world.change(Change::Watched).await,
            _ => {}
        }
    }

    async fn log(&self, context: &RequestContext<RoleServer>) {
        let wanted = if is_modern(context) {
            context.meta.log_level()
        } else {
            Some(*self.memory.level.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let is_wanted = matches!(wanted, Some(LoggingLevel::Debug | LoggingLevel::Info));
        let messages =
            ["Tool execution started", "Tool processing data", "Tool execution completed"];
        for message in messages {
            if is_wanted {
                let message =
                    LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
                // Fails if the caller is gone, which cancels the call.
                let _gone = context.peer.notify_logging_message(message).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn progress(context: &RequestContext<RoleServer>) {
    let token = context.meta.get_progress_token();
    for percent in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let report = ProgressNotificationParam::new(token.clone(), percent).with_total(100.0);
            // Fails if the caller is gone, which cancels the call.
            let _gone = context.peer.notify_progress(report).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging();
        let capabilities = match self.world.era {
            Era::Legacy => capabilities.build(),
            Era::Modern | Era::Dual => capabilities.enable_tasks().build(),
        };
        let us = Implementation::new("switchboard-conformance-fixture", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(us)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.world.era.versions()
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        if self.world.era == Era::Legacy {
            return Err(ErrorData::method_not_found::<DiscoverRequestMethod>());
        }
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let session = Session { peer: context.peer, memory: Arc::clone(&self.memory) };
        self.world.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        complete(json!({"tools": self.tools()}))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tool = self.tools().into_iter().find(|tool| tool["name"] == name)?;
        typed(tool).ok()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.get_tool(&request.name).is_none() {
            return Err(ErrorData::invalid_params(format!("Unknown tool: {}", request.name), None));
        }
        self.act(&request.name, &context).await;
        let takes_tasks = context.client_capabilities().is_some_and(|it| it.supports_tasks());
        if let Some(job) = Job::of(&request.name, &request.arguments.clone().unwrap_or_default()) {
            if is_modern(&context) && takes_tasks {
                return Ok(CallToolResponse::Task(self.world.tasks.begin(job)));
            }
            return Ok(CallToolResponse::Complete(complete(job.wait(&request.name).await?)?));
        }
        let (answers, state) = (request.input_responses, request.request_state);
        match hold(&request.name, request.arguments, answers, state, &context).await? {
            Some(Outcome::Done(result)) if request.name == "test_tool_with_task" => {
                Ok(CallToolResponse::Task(self.world.tasks.begin(Job::ending_with(result))))
            }
            Some(Outcome::Done(result)) => Ok(CallToolResponse::Complete(complete(result)?)),
            Some(Outcome::UpstreamRequest(questions)) => {
                Ok(CallToolResponse::InputRequired(questions))
            }
            None => Err(ErrorData::invalid_params("Unknown tool", None)),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.world.tasks.get(&request.task_id)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.world.tasks.update(&request.task_id, &request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.world.tasks.cancel(&request.task_id)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        complete(json!({"prompts": self.prompts()}))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let unknown =
            || ErrorData::invalid_params(format!("Unknown prompt: {}", request.name), None);
        if !self.prompts().iter().any(|prompt| prompt["name"] == request.name.as_str()) {
            return Err(unknown());
        }
        let arguments = json!(request.arguments);
        if let Some(messages) = listing::messages(&request.name, &arguments) {
            return Ok(GetPromptResponse::Complete(complete(messages)?));
        }
        let (answers, state) = (request.input_responses, request.request_state);
        match hold(&request.name, request.arguments, answers, state, &context).await? {
            Some(Outcome::Done(result)) => {
                let content = &result["content"][0];
                let messages = json!({"messages": [{"role": "user", "content": content}]});
                Ok(GetPromptResponse::Complete(complete(messages)?))
            }
            Some(Outcome::UpstreamRequest(questions)) => {
                Ok(GetPromptResponse::InputRequired(questions))
            }
            None => Err(unknown()),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        complete(json!({"resources": listing::resources()}))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        complete(json!({"resourceTemplates": listing::templates()}))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = listing::contents(&request.uri).ok_or_else(|| {
            let data = json!({"uri": request.uri});
            ErrorData::resource_not_found("Resource not found", Some(data))
        })?;
        Ok(ReadResourceResponse::Complete(complete(contents)?))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let words = ["test-one", "test-two", "paris", "park", "party"];
        let values: Vec<&str> =
            words.into_iter().filter(|word| word.starts_with(&request.argument.value)).collect();
        complete(json!({"completion": {"values": values, "total": values.len(), "hasMore": false}}))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.memory.level.lock().unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let subscriptions = self.memory.subscriptions.lock();
        subscriptions.unwrap_or_else(PoisonError::into_inner).insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let subscriptions = self.memory.subscriptions.lock();
        subscriptions.unwrap_or_else(PoisonError::into_inner).remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.world.changes.subscribe();
        let accepted = context.accepted().clone();
        let watches = accepted.resource_subscriptions.unwrap_or_default();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let sink = context.sink();
            let sent = match change {
                Ok(Change::Tools) if accepted.tools_list_changed == Some(true) => {
                    sink.notify_tool_list_changed().await
                }
                Ok(Change::Prompts) if accepted.prompts_list_changed == Some(true) => {
                    sink.notify_prompt_list_changed().await
                }
                Ok(Change::Watched) if watches.iter().any(|uri| uri == WATCHED) => {
                    sink.notify_resource_updated(WATCHED).await
                }
                Ok(_) => Ok(()),
                Err(_) => return Ok(()),
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }
}
