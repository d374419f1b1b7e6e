//! Decides what clients see at first under a configuration.

use std::fmt;
use std::sync::Arc;

use switchboard_model::{Exposure, Plan};

type Decide = dyn Fn(&Plan) -> Result<Exposure, String> + Send + Sync;

/// The exposure of a plan: the command line and the environment stand above the file, so the program brings the rule.
/// Each new configuration is judged by the same one.
#[derive(Clone)]
pub struct ExposureRule(Arc<Decide>);

impl ExposureRule {
    /// The error is the reason why a plan cannot be exposed as wanted.
    pub fn new(decide: impl Fn(&Plan) -> Result<Exposure, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    pub(crate) fn decide(&self, plan: &Plan) -> Result<Exposure, String> {
        (self.0)(plan)
    }
}

impl Default for ExposureRule {
    /// All tools, whatever the plan says: for a board that no client connects to.
    fn default() -> Self {
        Self::new(|_| Ok(Exposure::default()))
    }
}

impl fmt::Debug for ExposureRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExposureRule")
    }
}
