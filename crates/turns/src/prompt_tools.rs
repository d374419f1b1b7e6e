//! Answers prompt tools: chooses the model and the tools that the configuration permits it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use switchboard_chat::{Message, Turn, TurnLimits};
use switchboard_model::{LiveAccess, Plan, ToolResult, ToolStrategy};
use switchboard_providers::Providers;
use switchboard_runtime::{Board, PromptCall, PromptRunner, Snapshot};
use switchboard_view::Entry;
use uuid::Uuid;
use wildmatch::WildMatch;

use crate::new_turn::{ChosenStrategy, default_name};
use crate::prompt_turn::{PromptTurn, declared};
use crate::react_prompt::ReactPrompts;
use crate::tool_epoch::form_of;

/// Answers the prompt tools of a board.
#[derive(Debug)]
pub struct PromptTools {
    /// Weak: the board owns this value.
    board: Weak<Board>,
    providers: Providers,
    prompts: Arc<ReactPrompts>,
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
            providers: Providers::with_sign_ins(
                &plan.providers,
                environment,
                board.sign_ins().cloned(),
            ),
            prompts: Arc::default(),
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
            endpoint.source(call.plan.model.as_deref(), None).map_err(|fault| fault.to_string())?;
        let mut settings = endpoint.plan().settings.clone();
        if call.plan.instructions.is_some() {
            settings.instructions.clone_from(&call.plan.instructions);
        }
        let tools = permitted(&snapshot, &call.plan.tools, &call.caller.access);
        let messages = vec![Message::user(call.prompt.clone())];
        let id = Uuid::now_v7().simple().to_string();
        let chosen = ChosenStrategy::of_provider(&endpoint, &source.model);
        let mut turn = PromptTurn {
            board,
            prompts: self.prompts.clone(),
            shown: declared(form_of(&endpoint, source.kind), &tools),
            endpoint,
            source,
            settings,
            tools,
            listed: None,
            may_list: !chosen.is_explicit,
            reader: None,
            queue: VecDeque::new(),
            caller: Arc::new(call.caller.inside_prompt_tool(call.plan.max_depth)),
            turn: Turn::new(id.clone(), messages, TurnLimits::default()),
            id,
        };
        if chosen.strategy == ToolStrategy::React && !turn.tools.is_empty() {
            turn.list_tools().map_err(|fault| fault.to_string())?;
        }
        Ok(turn)
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

/// The tools that match one of the patterns, that policy permits and that the caller of the prompt tool may use itself.
fn permitted(snapshot: &Snapshot, patterns: &[String], access: &LiveAccess) -> Vec<Entry> {
    let patterns: Vec<_> = patterns.iter().map(|pattern| WildMatch::new(pattern)).collect();
    let (index, rules) = (snapshot.index(), access.tools());
    let is_permitted = |(at, entry): &(usize, &Entry)| {
        let tool = &entry.tool.name;
        index.is_reachable(*at)
            && rules.as_ref().is_none_or(|rules| index.grants(rules, &entry.tool))
            && patterns.iter().any(|it| it.matches(tool.as_str()) || it.matches(tool.tool()))
    };
    let entries = index.entries().iter().enumerate().filter(is_permitted);
    entries.map(|(_, entry)| entry.clone()).collect()
}
