//! The three account backends, each used through a sign-in and through the token file of another program.

use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use switchboard_model::GrantId;
use switchboard_oauth::SignIn;
use switchboard_sessions::Change;
use switchboard_test_support::FakeAuthServer;
use switchboard_test_support::model_backends::{
    Account, Backend, FakeBackends, ModelRequest, SECRET,
};
use tempfile::TempDir;

use crate::lab::{Lab, Talk};

/// The backends of accounts.
pub(crate) const GEMINI: Account = Account::CODE_ASSIST;
pub(crate) const ANTHROPIC: Account = Account::CLAUDE_BEARER;
pub(crate) const CHATGPT: Account = Account::CHATGPT;
pub(crate) const ALL: [Account; 3] = [GEMINI, ANTHROPIC, CHATGPT];

/// The two ways to a token. Providers are named after their account and the way.
pub(crate) const WAYS: [&str; 2] = ["sign-in", "file"];

/// A lab, the authorization server of all sign-ins, and the token files.
pub(crate) struct AccountLab {
    pub(crate) lab: Lab,
    pub(crate) office: FakeAuthServer,
    files: TempDir,
}

/// The name of the provider for an account and a way.
pub(crate) fn named(account: Account, way: &str) -> String {
    format!("{}-by-{way}", account.name)
}

/// A token with the claim from which the ChatGPT account is taken.
pub(crate) fn token(name: &str) -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acct-of-token"}});
    let claims = BASE64_URL_SAFE_NO_PAD.encode(claims.to_string());
    format!("{name}-{SECRET}.{claims}.x")
}

fn kind(account: Account) -> (&'static str, &'static str) {
    match account.backend {
        Backend::CodeAssist => ("code-assist", ""),
        Backend::Anthropic => {
            ("anthropic", ", model: claude-opus-5-5, system_blocks: [First block, Second block]")
        }
        Backend::ChatGpt => ("chatgpt", ", model: gpt-5.5"),
        Backend::OpenAi | Backend::Chat | Backend::Gemini => panic!("it has no accounts"),
    }
}

impl AccountLab {
    /// Everybody is signed in, and every file has a token.
    pub(crate) async fn open() -> Self {
        let this = Self::signed_out("").await;
        for account in ALL {
            this.sign_in(&named(account, "sign-in"), "default").await;
        }
        this
    }

    /// The files are there, and nobody is signed in. `more` are members of every provider.
    pub(crate) async fn signed_out(more: &str) -> Self {
        let (fake, office) = (FakeBackends::start().await, FakeAuthServer::open().await);
        let files = tempfile::tempdir().unwrap();
        let issuer = office.issuer();
        let mut entries = Vec::new();
        for account in ALL {
            let (kind, own) = kind(account);
            let base = match account.backend {
                Backend::ChatGpt => fake.base_url(account.backend),
                _ => fake.root_url(),
            };
            let path = files.path().join(format!("{}.json", account.name));
            let sign_in = format!(
                "{{kind: oauth, authorize_url: \"{issuer}/authorize\", token_url: \"{issuer}/token\", \
                 revoke_url: \"{issuer}/revoke\", client_id: my-client, scopes: [chat]}}"
            );
            let file = format!(
                "{{kind: token_file, path: \"{}\", access_token: /tokens/access, expires_at: /tokens/expires_at}}",
                path.display()
            );
            // The tokens of the authorization server of these tests name no account.
            let account_id =
                if account.backend == Backend::ChatGpt { ", account: acct-1" } else { "" };
            for (way, auth, account_id) in [("sign-in", sign_in, account_id), ("file", file, "")] {
                let name = named(account, way);
                entries.push(format!(
                    "{{name: {name}, kind: {kind}, base_url: \"{base}\", auth: {auth}{own}{account_id}{more}}}"
                ));
            }
        }
        let lab = Lab::with_providers(fake, entries).await;
        let this = Self { lab, office, files };
        for account in ALL {
            this.write_token(account, &token("first"), None);
        }
        this
    }

    /// What `auth login` does, with a browser that agrees.
    pub(crate) async fn sign_in(&self, provider: &str, credential: &str) {
        let endpoint = self.lab.turns.providers().find(provider).unwrap();
        let (url, issuer) = endpoint.described_issuer(credential).unwrap();
        let tokens = self.lab.board.sign_ins().unwrap().tokens().clone();
        let id = GrantId::of_provider(provider, credential);
        let sign_in = SignIn::described(id, url, issuer, tokens).await.unwrap();
        let browser = reqwest::get(sign_in.url().to_owned());
        let (signed_in, page) = tokio::join!(sign_in.finish(), browser);
        assert!(page.unwrap().status().is_success());
        signed_in.unwrap();
    }

    pub(crate) fn file(&self, account: Account) -> PathBuf {
        self.files.path().join(format!("{}.json", account.name))
    }

    /// What the other program does with its file.
    pub(crate) fn write_token(&self, account: Account, token: &str, expires_at: Option<i64>) {
        let content = json!({"tokens": {"access": token, "expires_at": expires_at}});
        fs::write(self.file(account), content.to_string()).unwrap();
    }

    pub(crate) async fn talk(&self, account: Account, way: &str) -> Talk<'_> {
        self.lab.talk_to(&named(account, way), Change::default()).await
    }

    /// The requests for answers to an account's backend, oldest first.
    pub(crate) fn answers(&self, account: Account) -> Vec<ModelRequest> {
        self.lab.fake.answers(account)
    }

    /// The conversation in a request to Gemini.
    pub(crate) fn contents(request: &ModelRequest) -> Vec<Value> {
        request.body["request"]["contents"].as_array().unwrap().clone()
    }
}
