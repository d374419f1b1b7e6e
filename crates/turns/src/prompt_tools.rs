//! Answers prompt tools: asks the model, and runs the tool calls that the configuration permits it.
//!
//! The state machine of `switchboard-chat` decides here, too, so that retries, limits and malformed calls are handled as
//! in the turn of a session. Nothing is stored: the record of the call is all that remains.

use std::sync::{Arc, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use switchboard_chat::{
    Action, FaultKind, Message, ModelEvent, ModelFault, Source, ToolCall, ToolReturn, Turn,
    TurnEvent, TurnInput, TurnLimits,
};
use switchboard_model::{CallErrorKind, Caller, ModelSettings, Plan, ToolResult, ToolStrategy};
use switchboard_providers::{ModelStream, ProviderEndpoint, Providers};
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_runtime::{
    Board, CallRequest, CheckSubject, PromptCall, PromptRunner, Snapshot, ToolChoice,
};
use switchboard_view::Entry;
use switchboard_wire::{ModelRequest, ReactReader, Tools, react_messages};
use tokio::task::JoinSet;
use uuid::Uuid;
use wildmatch::WildMatch;

use crate::calling::restore_arguments;
use crate::checked_history;
use crate::model_check::ModelCheck;
use crate::new_turn::default_name;
use crate::react_prompt::{ReactPrompts, after_instructions};
use crate::tool_epoch::form_of;

/// Answers the prompt tools of a board.
#[derive(Debug)]
pub struct PromptTools {
    /// Weak: the board owns this value.
    board: Weak<Board>,
    providers: Providers,
    prompts: ReactPrompts,
    /// The plan whose providers are in use.
    plan: Mutex<Arc<Plan>>,
}

impl PromptTools {
    /// Makes the board answer its prompt tools. `environment` looks up variables by name, such as the API keys of
    /// providers.
    pub fn install(board: &Arc<Board>, environment: &dyn Fn(&str) -> Option<String>) {
        let plan = board.plan();
        board.set_prompt_runner(Arc::new(Self {
            board: Arc::downgrade(board),
            providers: Providers::new(&plan.providers, environment),
            prompts: ReactPrompts::default(),
            plan: Mutex::new(plan),
        }));
    }

    fn prepare(&self, call: &PromptCall) -> Result<PromptTurn, String> {
        let board = self.board.upgrade().ok_or("the board is shutting down")?;
        let snapshot = board.snapshot();
        {
            let mut plan = self.plan.lock();
            if !Arc::ptr_eq(&plan, snapshot.plan()) {
                self.providers.set(&snapshot.plan().providers);
                *plan = snapshot.plan().clone();
            }
        }
        let name = call.plan.provider.clone().unwrap_or_else(|| default_name(&self.providers));
        let endpoint = self.providers.find(&name).map_err(|error| error.to_string())?;
        let source =
            endpoint.source(call.plan.model.as_deref()).map_err(|fault| fault.to_string())?;
        let mut settings = endpoint.plan().settings.clone();
        if call.plan.instructions.is_some() {
            settings.instructions.clone_from(&call.plan.instructions);
        }
        let tools = permitted(&snapshot, &call.plan.tools);
        let named = tools.iter().filter_map(|entry| {
            Some(NamedTool { name: entry.name.as_deref()?, descriptor: &entry.tool.descriptor })
        });
        let form = form_of(&endpoint, source.kind);
        let is_react = endpoint.plan().default_strategy() == ToolStrategy::React;
        let listed = (is_react && !tools.is_empty())
            .then(|| Arc::new(Rendering::new(Provider::React, named.clone())));
        let rendering = if let Some(listed) = &listed {
            let prompt = self.prompts.prompt(endpoint.plan(), listed);
            let prompt = prompt.map_err(|fault| fault.to_string())?;
            settings.instructions = Some(after_instructions(settings.instructions, &prompt));
            Rendering::new(form, std::iter::empty())
        } else {
            Rendering::new(form, named)
        };
        let messages = vec![Message::user(call.prompt.clone())];
        let id = Uuid::now_v7().simple().to_string();
        Ok(PromptTurn {
            board,
            endpoint,
            source,
            settings,
            tools,
            shown: Tools::only(Arc::new(rendering)),
            listed,
            reader: None,
            caller: Arc::new(call.caller.inside_prompt_tool(call.plan.max_depth)),
            turn: Turn::new(id.clone(), messages, TurnLimits::default()),
            id,
        })
    }
}

impl PromptRunner for PromptTools {
    fn answer(&self, call: PromptCall) -> BoxFuture<'static, ToolResult> {
        let prepared = self.prepare(&call);
        async move {
            let answer = match prepared {
                Ok(turn) => turn.run().await,
                Err(reason) => Err(reason),
            };
            match answer {
                Ok(text) => ToolResult::text(text),
                Err(reason) => ToolResult::error(format!(
                    "the model behind tool '{}' gave no answer: {reason}",
                    call.tool.tool()
                )),
            }
        }
        .boxed()
    }
}

/// The tools that match one of the patterns and that policy permits.
fn permitted(snapshot: &Snapshot, patterns: &[String]) -> Vec<Entry> {
    let patterns: Vec<_> = patterns.iter().map(|pattern| WildMatch::new(pattern)).collect();
    let index = snapshot.index();
    let is_permitted = |(at, entry): &(usize, &Entry)| {
        let tool = &entry.tool.name;
        index.is_reachable(*at)
            && patterns.iter().any(|it| it.matches(tool.as_str()) || it.matches(tool.tool()))
    };
    let entries = index.entries().iter().enumerate().filter(is_permitted);
    entries.map(|(_, entry)| entry.clone()).collect()
}

/// One call of a prompt tool. Dropping it cancels its request and its calls.
struct PromptTurn {
    board: Arc<Board>,
    endpoint: Arc<ProviderEndpoint>,
    source: Source,
    settings: ModelSettings,
    tools: Vec<Entry>,
    shown: Tools,
    /// The tools in the prompt, if the provider's models have no native tool calls.
    listed: Option<Arc<Rendering>>,
    reader: Option<ReactReader>,
    caller: Arc<Caller>,
    turn: Turn,
    id: String,
}

impl PromptTurn {
    /// Runs until the model has answered. The error says why it has not.
    async fn run(mut self) -> Result<String, String> {
        let mut stream: Option<ModelStream> = None;
        let mut calls = JoinSet::new();
        let mut error = None;
        loop {
            let mut waits = None;
            while let Some(action) = self.turn.next_action() {
                match action {
                    Action::Ask => match self.ask().await {
                        Ok(opened) => stream = Some(opened),
                        Err(fault) => {
                            self.turn.on(TurnInput::Model(ModelEvent::Failed(Box::new(fault))));
                        }
                    },
                    Action::Drop => stream = None,
                    Action::Wait(time) => waits = Some(time),
                    Action::Call(call) => {
                        calls.spawn(self.call(call));
                    }
                    Action::StopCalls => calls.abort_all(),
                    Action::Emit(TurnEvent::Error { error: problem }) => error = Some(problem),
                    Action::Keep | Action::KeepResult(_) | Action::Emit(_) => {}
                    Action::End => {
                        return match error {
                            Some(problem) => Err(problem.message),
                            None => Ok(self.last_words()),
                        };
                    }
                }
            }
            if let Some(time) = waits {
                tokio::time::sleep(time).await;
                self.turn.on(TurnInput::Waited);
            } else if let Some(returned) = calls.join_next().await {
                match returned {
                    Ok(input) => self.turn.on(input),
                    Err(_panicked) => return Err("a call ended by an internal error".into()),
                }
            } else if let Some(open) = &mut stream {
                let events = open.next().await.unwrap_or_else(|| {
                    let text = "the provider's stream was truncated";
                    let fault = ModelFault::new(FaultKind::Interrupted, text);
                    vec![ModelEvent::Failed(Box::new(fault))]
                });
                for mut event in self.read(events) {
                    if let ModelEvent::Finished(reply) = &mut event {
                        let shown = self.listed.as_ref().unwrap_or(&self.shown.newest);
                        restore_arguments(reply, shown);
                        reply.source = Some(self.source.clone());
                    }
                    self.turn.on(TurnInput::Model(event));
                }
            } else {
                return Err("the turn has stopped".into());
            }
        }
    }

    /// Finds the calls in the text of a model without native tool calls.
    fn read(&mut self, events: Vec<ModelEvent>) -> Vec<ModelEvent> {
        let Some(reader) = &mut self.reader else { return events };
        let mut read = Vec::with_capacity(events.len());
        for event in events {
            reader.read(event, &mut read);
        }
        read
    }

    async fn ask(&mut self) -> Result<ModelStream, ModelFault> {
        let mut messages = self.turn.messages().to_vec();
        messages.extend(self.turn.correction());
        let check = ModelCheck::of(self.board.plan(), || {
            let conversation = self.caller.session.as_deref().unwrap_or(&self.id);
            let instructions = self.settings.instructions.as_deref();
            checked_history::model_request(conversation, &self.id, instructions, &messages)
        });
        if let Some(check) = check {
            check.pass(&self.board, CheckSubject::of(&self.caller, None)).await?;
        }
        if let Some(listed) = &self.listed {
            messages = react_messages(&messages, listed);
            self.reader = Some(ReactReader::default());
        }
        let request = ModelRequest {
            source: &self.source,
            messages: &messages,
            replay: 0..messages.len(),
            tools: &self.shown,
            settings: &self.settings,
            session: &self.id,
            turn: &self.id,
            project: None,
        };
        self.endpoint.ask(&request).await
    }

    /// Runs one call of the model. A tool that it was not shown is not called.
    fn call(&self, call: ToolCall) -> BoxFuture<'static, TurnInput> {
        let is_meant = |entry: &&Entry| entry.name.as_deref() == Some(call.name.as_str());
        let Some(entry) = self.tools.iter().find(is_meant) else {
            let known: Vec<_> =
                self.tools.iter().filter_map(|entry| entry.name.as_deref()).collect();
            let text = format!("there is no tool `{}`; there are: {}", call.name, known.join(", "));
            let failed = ToolReturn::failed(&call, text);
            return futures::future::ready(TurnInput::Returned(failed)).boxed();
        };
        let is_checked = self.board.plan().threat_protection.endpoint.is_some();
        let request = CallRequest {
            tool: ToolChoice::from(&*entry.tool),
            arguments: call.arguments.clone(),
            caller: self.caller.clone(),
            requested: Some(call.name.as_str().into()),
            progress: None,
            check: None,
            conversation: is_checked
                .then(|| checked_history::conversation(&self.id, self.turn.messages())),
        };
        let board = self.board.clone();
        async move {
            let report = board.call(request).await;
            match report.result {
                Ok(result) => TurnInput::Returned(ToolReturn::of(&call, result, None)),
                Err(error) => {
                    let failed = ToolReturn::failed(&call, error.to_string());
                    match error.kind {
                        CallErrorKind::Blocked => TurnInput::Blocked(failed),
                        _ => TurnInput::Returned(failed),
                    }
                }
            }
        }
        .boxed()
    }

    /// The text of the last reply.
    fn last_words(&self) -> String {
        let replies = self.turn.messages().iter().rev().filter_map(|message| match message {
            Message::Assistant(reply) => Some(reply.text()),
            Message::System(_) | Message::User(_) | Message::Tool(_) => None,
        });
        replies.into_iter().next().unwrap_or_default()
    }
}
