//! A board with a real MCP server and every fake model backend.

use switchboard_test_support::model_backends::{Backend, FakeBackends, ModelRequest};
use switchboard_test_support::{ScriptedServer, Tool};

use crate::chat::Api;
use crate::support::{Home, Serve, dynamic, server};
use crate::talk::Talk;

/// A part of every key: it must be in nothing that the program says.
pub(crate) const SECRET: &str = "hunter2-s3cret";

/// A way to a backend: how it is configured, and with which credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: &'static str,
    pub(crate) backend: Backend,
    /// All of its key, as the backend gets it.
    pub(crate) key: &'static str,
    settings: &'static str,
}

pub(crate) const OPENAI: Account = Account {
    name: "openai",
    backend: Backend::OpenAi,
    key: "sk-hunter2-s3cret",
    settings: "kind: openai, api_key: sk-hunter2-s3cret, model: gpt-5.5",
};
pub(crate) const CHATGPT: Account = Account {
    name: "chatgpt",
    backend: Backend::ChatGpt,
    key: "token-hunter2-s3cret",
    settings: "kind: chatgpt, bearer: token-hunter2-s3cret, account: acct-1, model: gpt-5.5",
};
pub(crate) const CHAT: Account = Account {
    name: "chat",
    backend: Backend::Chat,
    key: "local-hunter2-s3cret",
    settings: "kind: openai-chat, api_key: local-hunter2-s3cret, model: llama",
};
pub(crate) const ANTHROPIC: Account = Account {
    name: "anthropic",
    backend: Backend::Anthropic,
    key: "sk-ant-api-hunter2-s3cret",
    settings: "kind: anthropic, api_key: sk-ant-api-hunter2-s3cret, model: claude-opus-5-5",
};
pub(crate) const CLAUDE_BEARER: Account = Account {
    name: "claude-bearer",
    backend: Backend::Anthropic,
    key: "oat-hunter2-s3cret",
    settings: "kind: anthropic, bearer: oat-hunter2-s3cret, model: claude-opus-5-5",
};
pub(crate) const GEMINI: Account = Account {
    name: "gemini",
    backend: Backend::Gemini,
    key: "AIza-hunter2-s3cret",
    settings: "kind: gemini, api_key: AIza-hunter2-s3cret, model: gemini-3.1-pro-preview",
};
/// Without a project: Google is asked for it.
pub(crate) const CODE_ASSIST: Account = Account {
    name: "code-assist",
    backend: Backend::CodeAssist,
    key: "ya29-hunter2-s3cret",
    settings: "kind: code-assist, bearer: ya29-hunter2-s3cret, model: gemini-3.1-pro-preview",
};

pub(crate) const ACCOUNTS: [Account; 7] =
    [OPENAI, CHATGPT, CHAT, ANTHROPIC, CLAUDE_BEARER, GEMINI, CODE_ASSIST];

impl Account {
    /// Its entry in `providers`, at these fakes.
    pub(crate) fn entry(self, name: &str, fake: &FakeBackends, more: &str) -> String {
        let url = match self.backend {
            Backend::OpenAi | Backend::ChatGpt | Backend::Chat => fake.base_url(self.backend),
            // Their paths begin with the version.
            Backend::Anthropic | Backend::Gemini | Backend::CodeAssist => fake.root_url(),
        };
        let more = if more.is_empty() { String::new() } else { format!(", {more}") };
        format!("{{name: {name}, base_url: \"{url}\", {}{more}}}", self.settings)
    }

    /// The next account with another backend.
    pub(crate) fn other(self) -> Self {
        let place = ACCOUNTS.iter().position(|account| *account == self).unwrap();
        let mut others = ACCOUNTS.iter().cycle().skip(place + 1);
        *others.find(|other| other.backend != self.backend).unwrap()
    }
}

/// A running board. `shop` has tools that echo.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) fake: FakeBackends,
    pub(crate) shop: ScriptedServer,
    pub(crate) home: Home,
    pub(crate) serve: Serve,
    pub(crate) api: Api,
}

/// What a lab is made of, where that is not the usual.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Members of the `gateway` section.
    pub(crate) gateway: &'static str,
    /// Members that every provider has.
    pub(crate) provider: &'static str,
    /// Entries of `providers` beside the usual ones.
    pub(crate) more: Vec<String>,
    pub(crate) tools: Vec<Tool>,
}

pub(crate) fn shop_tools() -> Vec<Tool> {
    vec![Tool::echo("find"), Tool::echo("price"), Tool::echo("order")]
}

impl Lab {
    pub(crate) async fn open() -> Self {
        Self::with(Plan::default()).await
    }

    pub(crate) async fn with(plan: Plan) -> Self {
        let fake = FakeBackends::start().await;
        let tools = if plan.tools.is_empty() { shop_tools() } else { plan.tools };
        let shop = server(tools).await;
        let usual = ACCOUNTS.map(|account| account.entry(account.name, &fake, plan.provider));
        let providers: Vec<_> = usual.into_iter().chain(plan.more).collect();
        let yaml = format!(
            "switchboard:\n  gateway: {{{}}}\n  providers:\n    - {}\n  toolsets:\n    \
             - {{name: look, description: Looks, tools: [find, price]}}\n    \
             - {{name: buy, description: Buys, tools: [order]}}\n  toolbox:\n    mcps:\n      - {}\n  \
             security: {{egress: {{allow: [\"127.0.0.0/8\"]}}}}\n",
            plan.gateway,
            providers.join("\n    - "),
            dynamic("shop", &shop.url())
        );
        let home = Home::new(yaml).with_variable("RUST_LOG", "switchboard=debug,warn");
        let serve = home.serve().await;
        let api = Api::of(&serve);
        Self { fake, shop, home, serve, api }
    }

    pub(crate) async fn talk(&self, wanted: serde_json::Value) -> Talk {
        Talk { chat: self.api.new_chat(wanted).await }
    }

    /// How often tools were really called.
    pub(crate) fn calls(&self) -> usize {
        self.shop.stats().total_calls()
    }

    /// The tools that the model was shown in each request, oldest first.
    pub(crate) fn shown(&self, account: Account) -> Vec<Vec<String>> {
        self.bodies(account).into_iter().map(|request| request.tools).collect()
    }

    /// The requests for answers, oldest first.
    pub(crate) fn bodies(&self, account: Account) -> Vec<ModelRequest> {
        answers(&self.fake, account)
    }

    /// Nothing that was sent breaks a rule of its backend, and no key is in what was logged.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        assert_clean(&self.fake, &self.serve);
    }
}

/// The requests for answers, oldest first: Code Assist is asked for other things, too.
pub(crate) fn answers(fake: &FakeBackends, account: Account) -> Vec<ModelRequest> {
    let is_answer =
        |path: &str| !path.contains("/v1internal") || path.contains(":streamGenerateContent");
    let requests = fake.requests().into_iter();
    requests
        .filter(|request| request.backend == account.backend && is_answer(&request.path))
        .collect()
}

#[track_caller]
pub(crate) fn assert_clean(fake: &FakeBackends, serve: &Serve) {
    let violations = fake.violations();
    assert!(violations.is_empty(), "{violations:#?}\n{:#?}", fake.requests().last());
    let said = format!("{}{}", serve.stdout(), serve.stderr());
    assert!(!said.contains(SECRET), "a key is in the log: {said}");
}
