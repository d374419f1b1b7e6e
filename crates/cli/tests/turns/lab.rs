//! A board with a real MCP server and every fake model backend.

pub(crate) use switchboard_test_support::model_backends::{Account, SECRET};
use switchboard_test_support::model_backends::{FakeBackends, ModelRequest};
use switchboard_test_support::{ScriptedServer, Tool};

use crate::chat::Api;
use crate::support::{Home, Serve, dynamic, server};
use crate::talk::Talk;

pub(crate) const OPENAI: Account = Account::OPENAI;
pub(crate) const CHATGPT: Account = Account::CHATGPT;
pub(crate) const CHAT: Account = Account::CHAT;
pub(crate) const ANTHROPIC: Account = Account::ANTHROPIC;
pub(crate) const CLAUDE_BEARER: Account = Account::CLAUDE_BEARER;
pub(crate) const GEMINI: Account = Account::GEMINI;
pub(crate) const CODE_ASSIST: Account = Account::CODE_ASSIST;
pub(crate) const ACCOUNTS: [Account; 7] = Account::ALL;

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
    /// Entries of servers beside `shop`.
    pub(crate) servers: Vec<String>,
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
        let servers: Vec<_> =
            [dynamic("shop", &shop.url())].into_iter().chain(plan.servers).collect();
        let yaml = format!(
            "switchboard:\n  gateway: {{{}}}\n  providers:\n    - {}\n  toolsets:\n    \
             - {{name: look, description: Looks, tools: [find, price]}}\n    \
             - {{name: buy, description: Buys, tools: [order]}}\n  toolbox:\n    mcps:\n      - {}\n  \
             security: {{egress: {{allow: [\"127.0.0.0/8\"]}}}}\n",
            plan.gateway,
            providers.join("\n    - "),
            servers.join("\n      - ")
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
        self.fake.answers(account)
    }

    /// Nothing that was sent breaks a rule of its backend, and no key is in what was logged.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        assert_clean(&self.fake, &self.serve);
    }
}

#[track_caller]
pub(crate) fn assert_clean(fake: &FakeBackends, serve: &Serve) {
    let violations = fake.violations();
    assert!(violations.is_empty(), "{violations:#?}\n{:#?}", fake.requests().last());
    let said = format!("{}{}", serve.stdout(), serve.stderr());
    assert!(!said.contains(SECRET), "a key is in the log: {said}");
}
