//! Configured accounts at the fake backends: one for each kind of provider and credential.

use super::backend::Backend;
use super::server::FakeBackends;

/// A part of every key. It must not appear in logs, responses or stored conversations.
pub const SECRET: &str = "hunter2-s3cret";

/// A provider entry for a fake backend, with its credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    pub name: &'static str,
    pub backend: Backend,
    /// The whole key, as the backend receives it.
    pub key: &'static str,
    settings: &'static str,
}

impl Account {
    pub const OPENAI: Self = Self {
        name: "openai",
        backend: Backend::OpenAi,
        key: "sk-hunter2-s3cret",
        settings: "kind: openai, api_key: sk-hunter2-s3cret, model: gpt-5.5",
    };
    pub const CHATGPT: Self = Self {
        name: "chatgpt",
        backend: Backend::ChatGpt,
        key: "token-hunter2-s3cret",
        settings: "kind: chatgpt, bearer: token-hunter2-s3cret, account: acct-1, model: gpt-5.5",
    };
    pub const CHAT: Self = Self {
        name: "chat",
        backend: Backend::Chat,
        key: "local-hunter2-s3cret",
        settings: "kind: openai-chat, api_key: local-hunter2-s3cret, model: llama",
    };
    pub const ANTHROPIC: Self = Self {
        name: "anthropic",
        backend: Backend::Anthropic,
        key: "sk-ant-api-hunter2-s3cret",
        settings: "kind: anthropic, api_key: sk-ant-api-hunter2-s3cret, model: claude-opus-5-5",
    };
    pub const CLAUDE_BEARER: Self = Self {
        name: "claude-bearer",
        backend: Backend::Anthropic,
        key: "oat-hunter2-s3cret",
        settings: "kind: anthropic, bearer: oat-hunter2-s3cret, model: claude-opus-5-5",
    };
    pub const GEMINI: Self = Self {
        name: "gemini",
        backend: Backend::Gemini,
        key: "AIza-hunter2-s3cret",
        settings: "kind: gemini, api_key: AIza-hunter2-s3cret, model: gemini-3.1-pro-preview",
    };
    /// It has no project: Google is asked for it.
    pub const CODE_ASSIST: Self = Self {
        name: "code-assist",
        backend: Backend::CodeAssist,
        key: "ya29-hunter2-s3cret",
        settings: "kind: code-assist, bearer: ya29-hunter2-s3cret, model: gemini-3.1-pro-preview",
    };

    pub const ALL: [Self; 7] = [
        Self::OPENAI,
        Self::CHATGPT,
        Self::CHAT,
        Self::ANTHROPIC,
        Self::CLAUDE_BEARER,
        Self::GEMINI,
        Self::CODE_ASSIST,
    ];

    /// Its entry in `providers` under this name, with `more` as further members.
    pub fn entry(self, name: &str, fake: &FakeBackends, more: &str) -> String {
        let url = match self.backend {
            Backend::OpenAi | Backend::ChatGpt | Backend::Chat => fake.base_url(self.backend),
            // Their paths begin with the version.
            Backend::Anthropic | Backend::Gemini | Backend::CodeAssist => fake.root_url(),
        };
        let more = if more.is_empty() { String::new() } else { format!(", {more}") };
        format!("{{name: {name}, base_url: \"{url}\", {}{more}}}", self.settings)
    }

    /// The next account with another backend.
    #[must_use]
    pub fn other(self) -> Self {
        let place = Self::ALL.iter().position(|account| *account == self).unwrap();
        let mut others = Self::ALL.iter().cycle().skip(place + 1);
        *others.find(|other| other.backend != self.backend).unwrap()
    }

    /// Whether the backend is Google's, which itself refuses calls of undeclared tools.
    pub fn is_google(self) -> bool {
        matches!(self.backend, Backend::Gemini | Backend::CodeAssist)
    }
}

impl FakeBackends {
    /// The requests to an account's backend that ask for an answer, oldest first. Code Assist also gets other requests.
    pub fn answers(&self, account: Account) -> Vec<super::state::ModelRequest> {
        let is_answer =
            |path: &str| !path.contains("/v1internal") || path.contains(":streamGenerateContent");
        let requests = self.requests().into_iter();
        requests
            .filter(|request| request.backend == account.backend && is_answer(&request.path))
            .collect()
    }
}
