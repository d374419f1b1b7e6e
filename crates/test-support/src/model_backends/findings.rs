//! Violations in a request: the first one is returned as an error, all of them are recorded.

use super::backend::Backend;

/// A rule of a backend that a request violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub backend: Backend,
    /// A short name of the rule, for tests; for `OpenAI` the `code` of the error.
    pub rule: &'static str,
    /// The error message of the backend.
    pub message: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) rule: &'static str,
    /// The member of the body, for providers that name it separately.
    pub(crate) place: Option<String>,
    pub(crate) message: String,
}

#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Refusal>);

impl Findings {
    pub(crate) fn add(&mut self, rule: &'static str, message: impl Into<String>) {
        self.add_with(400, rule, message);
    }

    pub(crate) fn add_with(&mut self, status: u16, rule: &'static str, message: impl Into<String>) {
        self.0.push(Refusal { status, rule, place: None, message: message.into() });
    }

    /// Adds a violation for providers that name the member separately.
    pub(crate) fn add_at(
        &mut self,
        place: impl Into<String>,
        rule: &'static str,
        message: impl Into<String>,
    ) {
        let place = Some(place.into());
        self.0.push(Refusal { status: 400, rule, place, message: message.into() });
    }

    pub(crate) fn first(&self) -> Option<&Refusal> {
        self.0.first()
    }

    pub(crate) fn violations(&self, backend: Backend) -> impl Iterator<Item = Violation> + '_ {
        self.0.iter().map(move |refusal| Violation {
            backend,
            rule: refusal.rule,
            message: refusal.message.clone(),
        })
    }

    #[cfg(test)]
    pub(crate) fn rules(&self) -> Vec<&'static str> {
        self.0.iter().map(|refusal| refusal.rule).collect()
    }
}
