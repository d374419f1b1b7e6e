//! The content checks of a tool call: before the tool runs, and before its result is used.

use std::sync::Arc;

use switchboard_model::{
    CallError, CallErrorKind, Caller, CheckHook, CheckMode, Face, FailurePolicy, Plan,
};
use switchboard_protocol::ResultKind;
use switchboard_registry::CatalogTool;

use crate::board::Board;
use crate::call_errors::described;
use crate::call_result::RawCallResult;
use crate::content_check::{CheckInput, CheckedConversation, CheckedMessage, CheckedRole};
use crate::content_checks::{CheckSubject, ContentBlocked};
use crate::readable_json::readable_text;

/// The checks of one call. It does not exist for a call without any.
pub(crate) struct CallChecks {
    plan: Arc<Plan>,
    before: CheckMode,
    after: CheckMode,
    caller: Arc<Caller>,
    conversation: Option<Arc<CheckedConversation>>,
    /// The call.
    id: String,
    /// The arguments as the caller wrote them, without the fixed values of the configuration; as readable text.
    arguments: String,
}

/// The parts of a call that its checks need.
pub(crate) struct CheckedCall<'a> {
    pub(crate) plan: &'a Arc<Plan>,
    pub(crate) tool: &'a CatalogTool,
    pub(crate) caller: &'a Arc<Caller>,
    pub(crate) conversation: Option<Arc<CheckedConversation>>,
    pub(crate) id: &'a str,
    pub(crate) arguments: &'a str,
}

impl CallChecks {
    /// The checks of the tool, and of the turn if a model makes the call: for each hook the stricter one.
    pub(crate) fn of(call: CheckedCall<'_>) -> Option<Self> {
        let of_tool = call.tool.content_check;
        let of_turn = &call.plan.threat_protection;
        let (mut before, mut after) = (of_tool.before_call, of_tool.after_call);
        if call.caller.face == Face::Turn {
            before = before.max(of_turn.before_tool);
            after = after.max(of_turn.after_tool);
        }
        if before.max(after) == CheckMode::Off {
            return None;
        }
        Some(Self {
            plan: call.plan.clone(),
            before,
            after,
            caller: call.caller.clone(),
            conversation: call.conversation,
            id: call.id.to_owned(),
            arguments: readable_text(call.arguments),
        })
    }

    /// Checks the call before the tool runs.
    pub(crate) async fn before(&self, board: &Board, tool: &CatalogTool) -> Result<(), CallError> {
        if self.before == CheckMode::Off {
            return Ok(());
        }
        let input = self.input(CheckHook::BeforeTool, self.called(tool), Vec::new());
        let subject = CheckSubject::of(&self.caller, Some(&tool.name));
        let checked = board.check_content(&self.plan, self.before, subject, input).await;
        checked.map_err(|blocked| not_called(tool, &blocked))
    }

    /// Checks the result before it is used.
    pub(crate) async fn after(
        &self,
        board: &Board,
        tool: &CatalogTool,
        result: &RawCallResult,
    ) -> Result<(), CallError> {
        if self.after == CheckMode::Off {
            return Ok(());
        }
        if result.head.kind == ResultKind::Task && self.after == CheckMode::Block {
            return self.refuse_task(tool);
        }
        let text = format!("Result of the tool {}: {}", tool.name, readable_text(result.as_str()));
        let input = self.input(CheckHook::AfterTool, text, vec![self.called(tool)]);
        let subject = CheckSubject::of(&self.caller, Some(&tool.name));
        let checked = board.check_content(&self.plan, self.after, subject, input).await;
        checked.map_err(|blocked| withheld(tool, &blocked))
    }

    /// The result of a task reaches the client later and without a call, where it cannot be checked.
    fn refuse_task(&self, tool: &CatalogTool) -> Result<(), CallError> {
        match self.plan.threat_protection.on_failure {
            FailurePolicy::Open => Ok(()),
            FailurePolicy::Closed => {
                let reason = "the tool answered with a task, whose result cannot be checked";
                Err(withheld(tool, &ContentBlocked::NoVerdict { reason: reason.into() }))
            }
        }
    }

    fn called(&self, tool: &CatalogTool) -> String {
        format!("Call of the tool {} with the arguments {}", tool.name, self.arguments)
    }

    fn input(&self, hook: CheckHook, content: String, steps: Vec<String>) -> CheckInput {
        let as_assistant = |text| CheckedMessage::new(CheckedRole::Assistant, text);
        let (message, user_message, mut context) = match self.conversation.as_deref() {
            Some(it) => (it.message.clone(), it.user_message.clone(), it.messages.clone()),
            None => (self.id.clone(), content.clone(), Vec::new()),
        };
        context.extend(steps.into_iter().map(as_assistant));
        let conversation = self.caller.session.as_deref().unwrap_or(self.id.as_str());
        CheckInput {
            hook,
            conversation: conversation.to_owned(),
            message,
            user_message,
            context,
            content: vec![as_assistant(content)],
        }
    }
}

fn not_called(tool: &CatalogTool, blocked: &ContentBlocked) -> CallError {
    let message = format!("{} was not called: {blocked}", described(tool));
    CallError::new(CallErrorKind::Blocked, message)
}

fn withheld(tool: &CatalogTool, blocked: &ContentBlocked) -> CallError {
    let message = format!("{} has run, but its result is withheld: {blocked}", described(tool));
    CallError::new(CallErrorKind::Blocked, message)
        .with_hint("do not repeat a call that changes something")
}
