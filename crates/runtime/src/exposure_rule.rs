//! The rule that decides the exposure of a configuration.

use std::fmt;
use std::sync::Arc;

use switchboard_model::{Exposure, Plan};

type Decide = dyn Fn(&Plan) -> Result<Exposure, String> + Send + Sync;

/// Computes the exposure of a plan. The program supplies the rule, because the command line and the environment
/// override the file. Every new configuration is evaluated with the same rule.
#[derive(Clone)]
pub struct ExposureRule(Arc<Decide>);

impl ExposureRule {
    /// The error of `decide` is the reason why the plan cannot have the requested exposure.
    pub fn new(decide: impl Fn(&Plan) -> Result<Exposure, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    pub(crate) fn decide(&self, plan: &Plan) -> Result<Exposure, String> {
        (self.0)(plan)
    }
}

impl Default for ExposureRule {
    /// Exposes all tools under every plan: for a board without clients.
    fn default() -> Self {
        Self::new(|_| Ok(Exposure::default()))
    }
}

impl fmt::Debug for ExposureRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExposureRule")
    }
}
