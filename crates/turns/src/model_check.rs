//! The content check before a model is asked.

use std::sync::Arc;

use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::{CheckMode, Plan};
use switchboard_runtime::{Board, CheckInput, CheckSubject};

/// A check that a model request must pass before it is sent.
#[derive(Debug)]
pub(crate) struct ModelCheck {
    plan: Arc<Plan>,
    input: CheckInput,
}

impl ModelCheck {
    /// The check that the configuration asks for. `input` is made only if there is one.
    pub(crate) fn of(plan: Arc<Plan>, input: impl FnOnce() -> CheckInput) -> Option<Self> {
        let is_wanted = plan.threat_protection.before_model != CheckMode::Off;
        is_wanted.then(|| Self { input: input(), plan })
    }

    /// Waits for the verdict if the hook blocks. The error ends the turn.
    pub(crate) async fn pass(
        &self,
        board: &Board,
        subject: CheckSubject,
    ) -> Result<(), ModelFault> {
        let mode = self.plan.threat_protection.before_model;
        let checked = board.check_content(&self.plan, mode, subject, self.input.clone()).await;
        checked.map_err(|blocked| {
            let text = format!("nothing was sent to the model: {blocked}");
            ModelFault::new(FaultKind::Blocked, text)
        })
    }
}
