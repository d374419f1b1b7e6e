//! The request that a person signs in, so that a call can be made.

use std::sync::Arc;

use switchboard_model::SignInPage;

use crate::connect_flow::ConnectFlow;

/// Asks a person to sign in.
#[derive(Debug, Clone)]
pub struct SignInPrompt {
    pub page: SignInPage,
    /// Ends when the person has signed in.
    pub flow: Arc<ConnectFlow>,
}

impl SignInPrompt {
    /// The request in words, for the person.
    pub fn message(&self) -> String {
        let server = &self.page.server;
        match &self.page.code {
            Some(code) => format!(
                "Switchboard: sign in to use your own account at \"{server}\". The page asks for the code {code}."
            ),
            None => format!("Switchboard: sign in to use your own account at \"{server}\"."),
        }
    }
}
