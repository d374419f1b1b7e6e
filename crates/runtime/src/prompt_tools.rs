//! Prompt tools: renders the prompt of a call and passes it to the runner, which asks the model.

use std::fmt::Debug;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use serde_json::{Map, Value};
use switchboard_model::{
    CallError, CallErrorKind, Caller, CanonicalName, PromptToolPlan, ToolResult,
};
use switchboard_registry::CatalogTool;
use switchboard_template::Template;

use crate::board::Board;
use crate::call_errors::{described, unavailable};

/// Asks models for prompt tools. The board knows no model providers, so the program gives it one
/// ([`Board::set_prompt_runner`]).
pub trait PromptRunner: Send + Sync + Debug {
    /// The model's answer to the prompt, or an error result that says why there is none. Dropping the future cancels
    /// the request.
    fn answer(&self, prompt: PromptCall) -> BoxFuture<'static, ToolResult>;
}

/// One call of a prompt tool.
#[derive(Debug)]
pub struct PromptCall {
    pub tool: CanonicalName,
    pub plan: Arc<PromptToolPlan>,
    /// The rendered template.
    pub prompt: String,
    /// Who called the tool.
    pub caller: Arc<Caller>,
}

impl Board {
    /// Sets what answers prompt tools. The first one stays.
    pub fn set_prompt_runner(&self, runner: Arc<dyn PromptRunner>) {
        // A second one would be of the same program.
        let _is_set = self.prompt_runner.set(runner);
    }

    /// The prompt call that a call of `tool` makes, checked and rendered.
    pub(crate) fn prepare_prompt(
        &self,
        tool: &CatalogTool,
        plan: &Arc<PromptToolPlan>,
        mut arguments: Map<String, Value>,
        caller: Arc<Caller>,
    ) -> Result<BoxFuture<'static, ToolResult>, CallError> {
        let Some(runner) = self.prompt_runner.get() else {
            return Err(unavailable(tool, "this program asks no models"));
        };
        if caller.prompt_tools_left == Some(0) {
            let message = format!(
                "{} was not run: `max_depth` of the prompt tool that calls it permits no further prompt tool",
                described(tool)
            );
            return Ok(ready(ToolResult::error(message)).boxed());
        }
        for argument in tool.arguments.iter().flatten() {
            // An argument that was not given reads as empty.
            arguments.entry(&argument.name).or_insert_with(|| "".into());
        }
        let rendered = Template::compile(&plan.template)
            .and_then(|template| template.render(&arguments))
            .map_err(|fault| {
                let message =
                    format!("the template of {} cannot be rendered: {fault}", described(tool));
                CallError::new(CallErrorKind::InvalidArguments, message)
            })?;
        let (plan, name) = (plan.clone(), tool.name.clone());
        Ok(runner.answer(PromptCall { tool: name, plan, prompt: rendered, caller }))
    }
}
