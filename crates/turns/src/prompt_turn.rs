//! One call of a prompt tool: asks the model, and runs the tool calls that it may make.
//!
//! The state machine of `switchboard-chat` decides here, too, so that retries, limits and malformed calls are handled as
//! in the turn of a session. Nothing is stored: the record of the call is all that remains.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use switchboard_chat::{
    Action, FaultKind, Message, ModelEvent, ModelFault, Source, ToolCall, ToolReturn, Turn,
    TurnEvent, TurnInput,
};
use switchboard_model::{CallErrorKind, Caller, ModelSettings};
use switchboard_providers::{ModelStream, ProviderEndpoint};
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_runtime::{Board, CallRequest, CheckSubject, ToolChoice};
use switchboard_view::Entry;
use switchboard_wire::{
    ModelRequest, ReactReader, Tools, react_messages, refuses_json_schema, refuses_tools,
    restore_arguments,
};
use tokio::task::JoinSet;

use crate::calling::Called;
use crate::checked_history;
use crate::model_check::ModelCheck;
use crate::observation;
use crate::react_prompt::{ReactPrompts, after_instructions};
use crate::stop_sequence;
use crate::tool_epoch::form_of;

/// One call of a prompt tool. Dropping it cancels its request and its calls.
pub(crate) struct PromptTurn {
    pub(crate) board: Arc<Board>,
    pub(crate) prompts: Arc<ReactPrompts>,
    pub(crate) endpoint: Arc<ProviderEndpoint>,
    pub(crate) source: Source,
    pub(crate) settings: ModelSettings,
    pub(crate) tools: Vec<Entry>,
    /// The tools that are declared; none if they are listed in the prompt.
    pub(crate) shown: Tools,
    /// The tools in the prompt, for a model without native tool calls.
    pub(crate) listed: Option<Arc<Rendering>>,
    /// Whether the tools are listed in the prompt if the backend refuses declared ones.
    pub(crate) may_list: bool,
    pub(crate) reader: Option<ReactReader>,
    /// Calls of a ReACT reply, which run one after the other.
    pub(crate) queue: VecDeque<ToolCall>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) turn: Turn,
    pub(crate) id: String,
}

/// The tools as they are declared to a backend.
pub(crate) fn declared(form: Provider, tools: &[Entry]) -> Tools {
    Tools::only(Arc::new(Rendering::new(form, named(tools))))
}

fn named(tools: &[Entry]) -> impl Iterator<Item = NamedTool<'_>> + Clone {
    tools.iter().filter_map(|entry| {
        Some(NamedTool { name: entry.name.as_deref()?, descriptor: &entry.tool.descriptor })
    })
}

impl PromptTurn {
    /// Lists the tools in the prompt instead of declaring them.
    pub(crate) fn list_tools(&mut self) -> Result<(), Box<ModelFault>> {
        let listed = Arc::new(Rendering::new(Provider::React, named(&self.tools)));
        let prompt = self.prompts.prompt(self.endpoint.plan(), &listed)?;
        let own = self.settings.instructions.take();
        self.settings.instructions = Some(after_instructions(own, &prompt));
        self.shown = declared(form_of(&self.endpoint, self.source.kind), &[]);
        self.listed = Some(listed);
        Ok(())
    }

    /// Runs until the model has answered. The error says why it has not.
    pub(crate) async fn run(mut self) -> Result<String, String> {
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
                        self.queue.push_back(call);
                        self.start_calls(&mut calls);
                    }
                    Action::StopCalls => {
                        self.queue.clear();
                        calls.abort_all();
                    }
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
                let Ok(mut called) = returned else {
                    return Err("a call ended by an internal error".into());
                };
                if let Some(listed) = &self.listed {
                    observation::add_way_out(&mut called, listed);
                }
                self.turn.on(match called.refusal {
                    Some(CallErrorKind::Blocked) => TurnInput::Blocked(called.result),
                    _ => TurnInput::Returned(called.result),
                });
                self.start_calls(&mut calls);
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

    /// Starts the queued calls: all at once, or those of a ReACT reply one after the other, because their order may
    /// matter.
    fn start_calls(&mut self, calls: &mut JoinSet<Called>) {
        while self.listed.is_none() || calls.is_empty() {
            let Some(call) = self.queue.pop_front() else { return };
            calls.spawn(self.call(call));
        }
    }

    /// Asks the model. A backend that refuses the tools in their form is asked once more, with an older form or with the
    /// tools in the prompt.
    async fn ask(&mut self) -> Result<ModelStream, ModelFault> {
        let mut asked = self.send().await;
        if let Err(fault) = &asked
            && self.shown.newest.provider == Provider::Gemini
            && refuses_json_schema(&self.source, fault)
            && self.endpoint.try_parameters()
        {
            self.shown = declared(Provider::GeminiParameters, &self.tools);
            asked = self.send().await;
        }
        if let Err(fault) = &asked
            && self.may_list
            && !self.shown.base.tools.is_empty()
            && refuses_tools(fault)
        {
            self.endpoint.note_no_tools(&self.source.model);
            self.list_tools().map_err(|fault| *fault)?;
            asked = self.send().await;
        }
        asked
    }

    async fn send(&mut self) -> Result<ModelStream, ModelFault> {
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
            stop: self
                .listed
                .as_ref()
                .and_then(|_| stop_sequence::stop_of(&self.endpoint, &self.source.model)),
            session: &self.id,
            turn: &self.id,
            project: None,
            is_bearer: false,
        };
        stop_sequence::ask(&self.endpoint, request).await
    }

    /// Runs one call of the model. A tool that it was not shown is not called.
    fn call(&self, call: ToolCall) -> BoxFuture<'static, Called> {
        let called = |result: ToolReturn, refusal| Called {
            result,
            has_switched: false,
            state: None,
            refusal,
        };
        let is_meant = |entry: &&Entry| entry.name.as_deref() == Some(call.name.as_str());
        let Some(entry) = self.tools.iter().find(is_meant) else {
            let known: Vec<_> =
                self.tools.iter().filter_map(|entry| entry.name.as_deref()).collect();
            let way_out = match known.as_slice() {
                [] => "answer without tools, there are none here".to_owned(),
                known => format!("there are: {}", known.join(", ")),
            };
            let text = format!("there is no tool `{}`; {way_out}", call.name);
            return futures::future::ready(called(ToolReturn::failed(&call, text), None)).boxed();
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
                Ok(result) => called(ToolReturn::of(&call, result, None), None),
                Err(error) => {
                    called(ToolReturn::failed(&call, error.to_string()), Some(error.kind))
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
