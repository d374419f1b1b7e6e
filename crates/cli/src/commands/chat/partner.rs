//! The session of a chat, and its provider.

use std::collections::BTreeMap;

use serde_json::json;
use switchboard_api::{NewSession, ProviderView, SessionChange};
use switchboard_chat::History;

use super::typed::Answerer;
use crate::args::ChatArguments;
use crate::failure::Failure;
use crate::output::{Output, harmless};
use crate::session_backend::{ChangeTiming, SessionBackend, Wait};

/// Number of words of the first message that become the title.
const TITLE_WORDS: usize = 8;
const TITLE_LETTERS: usize = 60;

/// The session and provider of a chat. A new session is created with the first message, so that an empty chat leaves
/// none behind.
pub(super) struct Partner<'a> {
    pub(super) backend: &'a SessionBackend,
    output: Output,
    providers: Vec<ProviderView>,
    session: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    /// The credential that the user chose, if any.
    credential: Option<String>,
    /// The strategy that the user chose, if any.
    strategy: Option<String>,
    /// Whether this chat created the session.
    is_new: bool,
    has_title: bool,
    /// Whether a message was sent.
    pub(super) has_spoken: bool,
}

impl<'a> Partner<'a> {
    pub(super) async fn new(
        backend: &'a SessionBackend,
        wanted: &ChatArguments,
        output: Output,
    ) -> Result<Self, Failure> {
        let providers = backend.providers().await?.providers;
        let mut partner = Self {
            backend,
            output,
            providers,
            session: None,
            provider: wanted.provider.clone(),
            model: wanted.model.clone(),
            credential: wanted.credential.clone(),
            strategy: wanted.strategy.clone(),
            is_new: false,
            has_title: true,
            has_spoken: false,
        };
        if let Some(name) = &wanted.provider {
            partner.known(name)?;
        }
        if let Some(id) = &wanted.session {
            let session = backend.show(id).await?;
            partner.session = Some(id.clone());
            let is_switched = wanted.provider.is_some() || wanted.model.is_some();
            if wanted.provider.is_none() {
                partner.provider = session.provider;
                partner.model = wanted.model.clone().or(session.model);
            }
            if is_switched {
                partner.keep_provider().await?;
            }
            partner.keep_choices().await?;
        }
        Ok(partner)
    }

    /// The name of the provider.
    pub(super) fn provider(&self) -> &str {
        let configured = self.providers.iter().find(|known| known.source == "configuration");
        let default = configured.map_or("demo", |provider| &provider.name);
        self.provider.as_deref().unwrap_or(default)
    }

    pub(super) fn answerer(&self) -> Answerer {
        let name = self.provider();
        match self.providers.iter().find(|known| known.name == name) {
            Some(provider) if provider.kind == "demo" => Answerer::Demo,
            _ => Answerer::Other,
        }
    }

    fn known(&self, name: &str) -> Result<(), Failure> {
        if self.providers.iter().any(|known| known.name == name) {
            return Ok(());
        }
        let known: Vec<_> = self.providers.iter().map(|known| known.name.as_str()).collect();
        Err(Failure::usage(format!("there is no provider '{name}'"))
            .with_hint(Some(format!("known are {}", known.join(", ")))))
    }

    /// The id of the session; creates one if there is none, with a title from this message.
    pub(super) async fn session_for(&mut self, text: &str) -> Result<String, Failure> {
        let title = title(text);
        let id = self.session_with(Some(title.clone())).await?;
        if !self.has_title {
            let change = SessionChange { title: Some(Some(title)), ..SessionChange::default() };
            self.backend.change(&id, change, ChangeTiming::NextTurn, Wait::No).await?;
            self.has_title = true;
        }
        Ok(id)
    }

    async fn session_with(&mut self, title: Option<String>) -> Result<String, Failure> {
        if let Some(id) = &self.session {
            return Ok(id.clone());
        }
        self.has_title = title.is_some();
        let wanted = NewSession {
            title,
            provider: self.provider.clone(),
            model: self.model.clone(),
            credential: self.credential.clone(),
            strategy: self.strategy.clone(),
            ..NewSession::default()
        };
        let id = self.backend.create(wanted).await?.id;
        self.is_new = true;
        self.session = Some(id.clone());
        if self.output.is_json() {
            self.output.data(&json!({"type": "session", "id": id}).to_string());
        }
        Ok(id)
    }

    /// Changes the provider or model for further messages.
    pub(super) async fn switch(
        &mut self,
        name: String,
        model: Option<String>,
    ) -> Result<(), Failure> {
        if let Err(failure) = self.known(&name) {
            // A typing error does not end the chat.
            self.output.note(&failure.text());
            return Ok(());
        }
        (self.provider, self.model, self.credential) = (Some(name), model, None);
        self.keep_provider().await?;
        let model = self.model.as_deref().map(|model| format!(" with {model}")).unwrap_or_default();
        self.output.note(&format!("{} answers from now on{model}", self.provider()));
        Ok(())
    }

    async fn keep_provider(&self) -> Result<(), Failure> {
        let Some(id) = &self.session else { return Ok(()) };
        let change = SessionChange {
            provider: Some(self.provider.clone()),
            model: Some(self.model.clone()),
            ..SessionChange::default()
        };
        self.backend.change(id, change, ChangeTiming::NextTurn, Wait::No).await.map(drop)
    }

    /// Stores the strategy and the credential that the user chose in an existing session.
    async fn keep_choices(&self) -> Result<(), Failure> {
        let Some(id) = &self.session else { return Ok(()) };
        if self.strategy.is_none() && self.credential.is_none() {
            return Ok(());
        }
        let change = SessionChange {
            strategy: self.strategy.clone().map(Some),
            credential: self.credential.clone().map(Some),
            ..SessionChange::default()
        };
        self.backend.change(id, change, ChangeTiming::NextTurn, Wait::No).await.map(drop)
    }

    pub(super) async fn switch_toolset(
        &mut self,
        name: String,
        is_on: bool,
        is_now: bool,
    ) -> Result<(), Failure> {
        let id = self.session_with(None).await?;
        let known = self.backend.toolsets(&id).await?.toolsets;
        if known.iter().all(|set| set.name != name) {
            let known: Vec<_> = known.iter().map(|set| set.name.as_str()).collect();
            self.output
                .note(&format!("there is no toolset '{name}'; known are {}", known.join(", ")));
            return Ok(());
        }
        let toolsets = BTreeMap::from([(name.clone(), is_on)]);
        let change = SessionChange { toolsets, ..SessionChange::default() };
        let apply = if is_now { ChangeTiming::Now } else { ChangeTiming::NextTurn };
        let session = self.backend.change(&id, change, apply, Wait::No).await?;
        let switch = if is_on { "on" } else { "off" };
        let revision = session.tools_revision;
        self.output
            .note(&format!("toolset {name} is {switch}, the tools are at revision {revision}"));
        Ok(())
    }

    pub(super) async fn show_tools(&mut self) -> Result<(), Failure> {
        let id = self.session_with(None).await?;
        let tools = self.backend.tools(&id).await?;
        let toolsets = self.backend.toolsets(&id).await?.toolsets;
        if self.output.is_json() {
            let told = json!({"type": "tools", "tools": tools.tools, "toolsets": toolsets});
            self.output.data(&told.to_string());
            return Ok(());
        }
        for tool in &tools.tools {
            let away = if tool.available { "" } else { " (unavailable)" };
            self.output.data(&harmless(&format!("{}{away}", tool.name)));
        }
        let sets = toolsets.iter().map(|set| {
            let mark = if set.enabled { '+' } else { '-' };
            format!("{mark}{} ({})", set.name, set.tools)
        });
        let sets = sets.collect::<Vec<_>>().join(" ");
        let (count, revision) = (tools.tools.len(), tools.tools_revision);
        self.output.note(&format!("{count} tools at revision {revision}; toolsets: {sets}"));
        Ok(())
    }

    /// The conversation, if there is one.
    pub(super) async fn history(&self) -> Result<Option<History>, Failure> {
        let Some(id) = &self.session else { return Ok(None) };
        let history = self.backend.history(id).await?;
        Ok(Some(history).filter(|history| !history.messages.is_empty()))
    }

    /// Shows how to continue the session. Deletes a session without messages.
    pub(super) async fn part(&self) {
        let Some(id) = &self.session else { return };
        if self.is_new && !self.has_spoken {
            if let Err(failure) = self.backend.delete(id).await {
                self.output.note(&failure.text());
            }
            return;
        }
        if !self.output.is_json() {
            self.output
                .note(&format!("[session {id}: `switchboard chat --session {id}` continues it]"));
        }
    }
}

/// The first words of a message.
fn title(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().take(TITLE_WORDS).collect();
    words.join(" ").chars().take(TITLE_LETTERS).collect()
}
