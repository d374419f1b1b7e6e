//! The pages on which a person connects an account, and the API behind them: who may use them, and what they show.

use pretty_assertions::assert_eq;
use reqwest::{Client, Method, redirect};
use serde_json::{Value, json};
use switchboard_auth::{KeyDraft, NewKey, Role};
use switchboard_test_support::{AccountEra, AccountServer, wait_until};

use crate::api_server::{Api, ApiServer, PATIENCE};

const CALL: &str = "/api/v1/tools/tracker.whoami/call";
const SIGN_INS: &str = "/api/v1/accounts/tracker/sign-ins";

/// A board with a server at which each user has an account.
struct Accounts {
    server: ApiServer,
    tracker: AccountServer,
}

impl Accounts {
    async fn start() -> Self {
        let tracker = AccountServer::open(AccountEra::Stateless).await;
        let server = ApiServer::start(&config(&tracker, "oauth: {per: user}")).await;
        Self { server, tracker }
    }

    /// The API with a key of this person.
    async fn of(&self, person: &str) -> Api {
        let draft = KeyDraft { user: Some(person.into()), ..KeyDraft::new(person, Role::Client) };
        let made = NewKey::add(&self.server.store, draft).await.unwrap();
        self.server.gatekeeper.refresh().await.unwrap();
        self.server.api().with_key(made.key.expose())
    }

    /// The page of a new sign-in. There is one as soon as the board has started, and it asks for a proof as soon as there
    /// is a key.
    async fn page(&self, api: &Api) -> Value {
        let begun = api.send(Method::POST, SIGN_INS, None).await;
        assert_eq!(begun.status, 201, "{}", begun.body);
        assert!(begun.body["code"].is_string(), "{}", begun.body);
        begun.body
    }

    async fn sign_in(&self, api: &Api, person: &str) {
        let page = self.page(api).await;
        let browser = Browser::new();
        let consent = browser.prove(&page, page["code"].as_str().unwrap()).await;
        let done = browser.go_on(self, &consent, person).await;
        assert_eq!(done.status, 200, "{}", done.html);
        assert!(done.html.contains("Signed in"), "{}", done.html);
    }
}

fn config(tracker: &AccountServer, auth: &str) -> String {
    format!(
        "switchboard:\n  toolbox:\n    mcps:\n      - {{name: tracker, url: \"{}\", mode: dynamic, \
         default_tool_config: {{max_instances: 10, timeout: 30s}}, auth: {{{auth}}}}}\n",
        tracker.url()
    )
}

/// A server whose account all callers share.
fn shared(tracker: &AccountServer) -> String {
    config(tracker, "oauth: {}").replace("mode: dynamic", "mode: dynamic, required: false")
}

/// A browser: it keeps the cookie and follows links only when it is told to.
struct Browser {
    http: Client,
    cookie: parking_lot::Mutex<Option<String>>,
    /// The last `Set-Cookie`.
    set_cookie: parking_lot::Mutex<String>,
    /// The `Referrer-Policy` of the page that is shown.
    referrer_policy: parking_lot::Mutex<String>,
}

struct Page {
    status: u16,
    html: String,
    policy: String,
}

impl Browser {
    fn new() -> Self {
        let http = Client::builder().redirect(redirect::Policy::none()).no_proxy().build().unwrap();
        Self {
            http,
            cookie: parking_lot::Mutex::default(),
            set_cookie: parking_lot::Mutex::default(),
            referrer_policy: parking_lot::Mutex::default(),
        }
    }

    async fn open(&self, url: &str) -> Page {
        self.load(self.http.get(url)).await
    }

    async fn submit(&self, url: &str, name: &str, value: &str) -> Page {
        let form: String =
            url::form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish();
        let kind = "application/x-www-form-urlencoded";
        // Browsers hide the origin of a page that does not want to be named.
        let origin = match self.referrer_policy.lock().as_str() {
            "no-referrer" => "null".to_owned(),
            _ => url::Url::parse(url).unwrap().origin().ascii_serialization(),
        };
        let request = self.http.post(url).header("origin", origin);
        let request = request.header("sec-fetch-site", "same-origin");
        self.load(request.header("content-type", kind).body(form)).await
    }

    async fn load(&self, request: reqwest::RequestBuilder) -> Page {
        let cookie = self.cookie.lock().clone();
        // A person comes from a page of another site.
        let request = request.header("sec-fetch-mode", "navigate");
        let request = match cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        };
        let response = request.send().await.unwrap();
        let header = |name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        if let Some(set) = header("set-cookie") {
            assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax"), "{set}");
            *self.cookie.lock() = set.split(';').next().map(str::to_owned);
            *self.set_cookie.lock() = set;
        }
        let policy = header("content-security-policy").unwrap_or_default();
        *self.referrer_policy.lock() = header("referrer-policy").unwrap_or_default();
        let status = response.status().as_u16();
        Page { status, html: response.text().await.unwrap(), policy }
    }

    /// Enters the code or the key; returns the page behind it.
    async fn prove(&self, page: &Value, proof: &str) -> Page {
        let url = page["url"].as_str().unwrap();
        assert_eq!(self.open(url).await.status, 200);
        let accepted = self.submit(url, "proof", proof).await;
        assert_eq!(accepted.status, 303, "{}", accepted.html);
        self.open(url).await
    }

    /// Follows the link of the page to the authorization server and comes back.
    async fn go_on(&self, accounts: &Accounts, consent: &Page, person: &str) -> Page {
        let back = accounts.tracker.visit(&link(consent), person).await;
        self.open(&back).await
    }
}

/// The link of a page to the authorization server.
fn link(page: &Page) -> String {
    let (_, rest) = page.html.split_once("href=\"").unwrap_or_else(|| panic!("{}", page.html));
    rest.split_once('"').unwrap().0.replace("&amp;", "&")
}

#[tokio::test]
async fn a_person_connects_an_account_and_the_call_uses_it() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    accounts.sign_in(&alice, "alice").await;
    let called = wait_until(PATIENCE, async || {
        let called = alice.post(CALL, json!({})).await;
        (called.status == 200).then_some(called.body)
    })
    .await;
    assert_eq!(called["result"]["content"][0]["text"], "alice");
    let mine = alice.get("/api/v1/accounts").await.good();
    let account = &mine["accounts"][0];
    assert_eq!((&account["owner"], &account["state"]), (&json!("user:alice"), &json!("active")));

    let bob = accounts.of("bob").await;
    let refused = bob.post(CALL, json!({})).await;
    let page = refused.body["sign_in"].clone();
    refused.problem(403, "needs_sign_in");
    assert!(page["url"].as_str().unwrap().contains("/connect/"), "{page}");
    assert_eq!(bob.get("/api/v1/accounts").await.good()["accounts"][0]["state"], "needs_sign_in");

    let of_bob = bob.get("/api/v1/accounts").await.good();
    assert_eq!(of_bob["accounts"].as_array().unwrap().len(), 1, "only his own: {of_bob}");
    let tokens = accounts.tracker.tokens();
    let out = alice.send(Method::DELETE, "/api/v1/accounts/tracker", None).await.good();
    assert_eq!(out["signed_out"], true);
    let revoked = accounts.tracker.revocations();
    assert!(!revoked.is_empty() && revoked.iter().all(|it| tokens.contains(it)), "{revoked:?}");
    assert!(
        accounts.tracker.tokens().iter().all(|it| it.contains("access")),
        "no refresh token is left"
    );
    let out = alice.send(Method::DELETE, "/api/v1/accounts/tracker", None).await.good();
    assert_eq!(out["signed_out"], false, "there is none any more");
    assert_eq!(accounts.tracker.revocations(), revoked);
    alice.post(CALL, json!({})).await.problem(403, "needs_sign_in");
    assert_eq!(accounts.tracker.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_link_of_alice_that_bob_opens_stores_nothing_for_alice() {
    let accounts = Accounts::start().await;
    let (alice, bob) = (accounts.of("alice").await, accounts.of("bob").await);
    let page = accounts.page(&alice).await;
    let url = page["url"].as_str().unwrap();
    let browser = Browser::new();
    let shown = browser.open(url).await;
    assert_eq!(shown.status, 200);
    for secret in ["tracker", "alice", &accounts.tracker.issuer()] {
        assert!(!shown.html.contains(secret), "{secret} is shown before the check: {}", shown.html);
    }
    assert!(shown.policy.contains("default-src 'none'"), "{}", shown.policy);
    // His own key is a key of this board, and still not hers.
    for wrong in [bob.key().unwrap(), "AAAA-AAAA", "", "sbk_nonsense"] {
        let refused = browser.submit(url, "proof", wrong).await;
        assert_eq!(refused.status, 403, "{wrong}: {}", refused.html);
    }
    // The fifth wrong proof ends the page, also for her.
    assert_eq!(browser.submit(url, "proof", "BBBB-BBBB").await.status, 404);
    assert_eq!(browser.submit(url, "proof", page["code"].as_str().unwrap()).await.status, 404);
    assert_eq!(accounts.tracker.pages_opened(), 0);
    let mine = alice.get("/api/v1/accounts").await.good();
    assert_eq!(mine["accounts"][0]["state"], "needs_sign_in");
}

#[tokio::test]
async fn the_callback_counts_only_in_the_browser_that_began_and_only_once() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    let page = accounts.page(&alice).await;
    let browser = Browser::new();
    // An own key of the person is a proof too.
    let consent = browser.prove(&page, alice.key().unwrap()).await;
    for shown in ["tracker", "user:alice", "basic"] {
        assert!(consent.html.contains(shown), "{shown}: {}", consent.html);
    }
    assert_eq!(accounts.tracker.pages_opened(), 0, "nothing happens before the person goes on");
    let back = accounts.tracker.visit(&link(&consent), "alice").await;
    let forged = back.replace("state=", "state=x");
    assert_eq!(browser.open(&forged).await.status, 400);
    let other = Browser::new().open(&back).await;
    assert_eq!(other.status, 403, "{}", other.html);
    assert_eq!(browser.open(&back).await.status, 200);
    assert_eq!(browser.open(&back).await.status, 400, "a second time");
    assert_eq!(browser.open(page["url"].as_str().unwrap()).await.status, 404, "the page was used");
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_refused_and_its_text_is_not_shown() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    for has_code in [true, false] {
        let page = accounts.page(&alice).await;
        let browser = Browser::new();
        let consent = browser.prove(&page, page["code"].as_str().unwrap()).await;
        accounts.tracker.return_issuer("https://evil.example");
        let back = accounts.tracker.visit(&link(&consent), "alice").await;
        let back = if has_code {
            back
        } else {
            let code = back.split(['?', '&']).find(|part| part.starts_with("code=")).unwrap();
            back.replace(code, "error=access_denied&error_description=call+0800-evil")
        };
        let refused = browser.open(&back).await;
        assert!(matches!(refused.status, 403 | 502), "{}", refused.html);
        for text in ["evil", "s3cret-code", page["code"].as_str().unwrap()] {
            assert!(!refused.html.contains(text), "{text}: {}", refused.html);
        }
    }
    let mine = alice.get("/api/v1/accounts").await.good();
    assert_eq!(mine["accounts"][0]["state"], "needs_sign_in");
}

#[tokio::test]
async fn an_error_of_the_right_issuer_is_shown_escaped() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    let page = accounts.page(&alice).await;
    let browser = Browser::new();
    let consent = browser.prove(&page, page["code"].as_str().unwrap()).await;
    let back = accounts.tracker.visit(&link(&consent), "alice").await;
    let code = back.split(['?', '&']).find(|part| part.starts_with("code=")).unwrap();
    let back =
        back.replace(code, "error=access_denied&error_description=%3Cscript%3Eno%3C/script%3E");
    let refused = browser.open(&back).await;
    assert_eq!(refused.status, 403);
    assert!(refused.html.contains("&lt;script&gt;no"), "{}", refused.html);
    assert!(!refused.html.contains("<script>"), "{}", refused.html);
}

#[tokio::test]
async fn a_revoked_key_ends_the_use_of_its_account_within_seconds() {
    let accounts = Accounts::start().await;
    let (alice, operator) =
        (accounts.of("alice").await, accounts.server.api_of("operator", Role::Operator).await);
    accounts.sign_in(&alice, "alice").await;
    wait_until(PATIENCE, async || (alice.post(CALL, json!({})).await.status == 200).then_some(()))
        .await;
    accounts.tracker.set_pause(PATIENCE);
    let running = async { alice.post(CALL, json!({})).await };
    let revoking = async {
        wait_until(PATIENCE, async || (accounts.tracker.running() == 1).then_some(())).await;
        let keys = accounts.server.store.keys().await.unwrap();
        let key = keys.iter().find(|key| key.name == "alice").unwrap();
        accounts.server.store.revoke_key(&key.id, 1).await.unwrap();
    };
    let (called, ()) = tokio::join!(running, revoking);
    called.problem(503, "unavailable");
    let all = operator.get("/api/v1/accounts?all=true").await.good();
    let account = all["accounts"].as_array().unwrap().iter().find(|it| it["owner"] == "user:alice");
    let account = account.unwrap_or_else(|| panic!("{all}"));
    assert_eq!((&account["state"], &account["reason"]), (&json!("orphaned"), &json!("owner_gone")));
}

#[tokio::test]
async fn people_come_from_other_sites_but_forms_do_not() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    let page = accounts.page(&alice).await;
    let url = page["url"].as_str().unwrap();
    let browser = Browser::new();
    let from = |request: reqwest::RequestBuilder| request.header("sec-fetch-site", "cross-site");
    assert_eq!(browser.load(from(browser.http.get(url))).await.status, 200);
    assert_eq!(browser.load(from(browser.http.post(url))).await.status, 403);
}

#[tokio::test]
async fn the_tokens_of_accounts_are_shown_nowhere() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    accounts.sign_in(&alice, "alice").await;
    let operator = accounts.server.api_of("operator", Role::Operator).await;
    let tokens = accounts.tracker.tokens();
    assert!(!tokens.is_empty());
    for path in [
        "/api/v1/accounts?all=true",
        "/api/v1/servers",
        "/api/v1/calls",
        "/metrics",
        "/api/v1/config",
    ] {
        let shown = operator.get(path).await;
        assert_eq!(shown.status, 200, "{path}");
        let shown = shown.body.to_string();
        assert!(!tokens.iter().any(|token| shown.contains(token.as_str())), "{path}: {shown}");
    }
    let all = operator.get("/api/v1/accounts?all=true").await.good();
    assert!(all.to_string().contains("user:alice"), "{all}");
    alice.get("/api/v1/accounts?all=true").await.problem(403, "forbidden");
}

#[tokio::test]
async fn a_user_stores_a_token_of_their_own() {
    let tracker = AccountServer::open(AccountEra::Stateless).await;
    let server = ApiServer::start(&config(&tracker, "bearer: {per: user}")).await;
    let alice = server.api_of("alice", Role::Client).await;
    let token = |token: &str| json!({ "token": token });
    let path = "/api/v1/accounts/tracker/token";
    alice.put(path, token("two\nlines")).await.problem(409, "no_account");
    alice.put("/api/v1/accounts/nowhere/token", token("x")).await.problem(404, "unknown_server");
    assert_eq!(alice.put(path, token("s3cret-own")).await.status, 204);
    let mine = alice.get("/api/v1/accounts").await.good();
    assert_eq!(mine["accounts"][0]["state"], "active", "{mine}");
    assert!(!mine.to_string().contains("s3cret-own"));
}

#[tokio::test]
async fn the_board_names_itself_to_authorization_servers_where_its_address_is_https() {
    let accounts = Accounts::start().await;
    let document = "/.well-known/oauth-client/tracker.json";
    accounts.server.api().get(document).await.problem(404, "not_found");
    let open = accounts.server.api().send(Method::POST, SIGN_INS, None).await;
    assert_eq!(open.status, 201, "{}", open.body);
    assert_eq!(open.body["code"], Value::Null, "there are no keys");
    let yaml = config(&accounts.tracker, "oauth: {per: user}");
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8=";
    accounts
        .server
        .reload(&format!(
            "{yaml}  gateway: {{public_url: \"https://tools.example.com/board\"}}\n  security: {{store_key: \"{key}\"}}\n"
        ))
        .await;
    let shown = accounts.server.api().get(document).await.good();
    let base = "https://tools.example.com/board";
    assert_eq!(shown["client_id"], format!("{base}{document}"));
    assert_eq!(shown["redirect_uris"], json!([format!("{base}/oauth/callback")]));
    assert_eq!(shown["application_type"], "web");
}

/// Advances the clock of this process; requests still take real time.
async fn later(time: std::time::Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn attack_2_a_page_works_for_ten_minutes() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    let page = accounts.page(&alice).await;
    let (url, code) = (page["url"].as_str().unwrap(), page["code"].as_str().unwrap());
    let browser = Browser::new();
    let consent = browser.prove(&page, code).await;
    later(std::time::Duration::from_mins(9)).await;
    assert_eq!(browser.open(url).await.status, 200, "it is not over yet");
    let back = accounts.tracker.visit(&link(&consent), "alice").await;
    later(std::time::Duration::from_secs(61)).await;
    let late = browser.open(&back).await;
    assert_eq!(late.status, 400, "{}", late.html);
    assert!(late.html.contains("expired"), "{}", late.html);
    assert_eq!(browser.open(url).await.status, 404);
    assert_eq!(browser.submit(url, "proof", code).await.status, 404);
    let mine = alice.get("/api/v1/accounts").await.good();
    assert_eq!(mine["accounts"][0]["state"], "needs_sign_in");
    let next = accounts.page(&alice).await;
    assert_ne!((&next["url"], &next["code"]), (&page["url"], &page["code"]));
}

#[tokio::test]
async fn a_narrowed_key_knows_no_account_at_servers_that_it_may_not_use() {
    let accounts = Accounts::start().await;
    let admin = accounts.server.api_of("admin", Role::Admin).await;
    let key = async |name: &str, more: Value| {
        let mut wanted = json!({"name": name, "user": "alice"});
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = admin.post("/api/v1/keys", wanted).await;
        admin.clone().with_key(made.good()["key"].as_str().unwrap())
    };
    let whole = key("whole", json!({})).await;
    accounts.sign_in(&whole, "alice").await;
    let nothing = key("nothing", json!({"access": {"toolsets": []}})).await;
    assert_eq!(nothing.get("/api/v1/accounts").await.good()["accounts"], json!([]));
    let token = Some(json!({"token": "x"}));
    for (method, path, body) in [
        (Method::POST, "/api/v1/accounts/tracker/sign-ins", None),
        (Method::PUT, "/api/v1/accounts/tracker/token", token),
        (Method::DELETE, "/api/v1/accounts/tracker", None),
    ] {
        let hidden = nothing.send(method.clone(), path, body.clone()).await;
        let unknown = path.replace("tracker", "nowhere");
        let unknown = nothing.send(method.clone(), &unknown, body).await;
        assert_eq!(hidden.status, 404, "{method} {path}: {}", hidden.body);
        assert_eq!(hidden.body.to_string().replace("tracker", "nowhere"), unknown.body.to_string());
    }
    // A key that is granted a single tool may sign in, also before anybody has.
    let fresh = Accounts::start().await;
    let admin = fresh.server.api_of("admin", Role::Admin).await;
    for (name, access, status) in [
        ("one", json!({"tools": ["tracker.whoami"]}), 201),
        ("reads", json!({"tools": ["tracker.*"], "readonly": true}), 201),
        ("denied", json!({"tools": ["tracker.whoami"], "deny": ["tracker.*"]}), 404),
        ("other", json!({"tools": ["other.whoami"]}), 404),
    ] {
        let made = admin.post("/api/v1/keys", json!({"name": name, "access": access})).await;
        let api = admin.clone().with_key(made.good()["key"].as_str().unwrap());
        let begun = api.send(Method::POST, SIGN_INS, None).await;
        assert_eq!(begun.status, status, "{name}: {}", begun.body);
    }
    // An operator with narrowed access counts as a client.
    let narrowed = json!({"role": "operator", "access": {"toolsets": []}});
    let operator = key("operator", narrowed).await;
    operator.get("/api/v1/accounts?all=true").await.problem(403, "forbidden");
    let kept = whole.get("/api/v1/accounts").await.good();
    assert_eq!(kept["accounts"][0]["state"], "active", "nobody signed out");
}

#[tokio::test]
async fn attack_12_a_fixed_client_of_the_board_needs_consent_for_each_sign_in() {
    let tracker = AccountServer::open(AccountEra::Stateless).await;
    let auth = "oauth: {per: user, client_id: board, client_secret: s3cret}";
    let server = ApiServer::start(&config(&tracker, auth)).await;
    let accounts = Accounts { server, tracker };
    // The authorization server knows the client and asks nobody: it redirects at once.
    for person in ["alice", "bob"] {
        let api = accounts.of(person).await;
        for round in 0..2 {
            let before = accounts.tracker.pages_opened();
            let (page, browser) = (accounts.page(&api).await, Browser::new());
            let consent = browser.prove(&page, page["code"].as_str().unwrap()).await;
            assert!(consent.html.contains(&format!("user:{person}")), "{}", consent.html);
            assert!(link(&consent).contains("client_id=board"), "{}", consent.html);
            assert_eq!(
                accounts.tracker.pages_opened(),
                before,
                "{person} {round}: not without a click"
            );
            let done = browser.go_on(&accounts, &consent, person).await;
            assert_eq!(done.status, 200, "{}", done.html);
        }
    }
    assert_eq!(accounts.tracker.registrations(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_sign_in_is_followed_by_the_person_who_began_it() {
    let accounts = Accounts::start().await;
    let (alice, bob) = (accounts.of("alice").await, accounts.of("bob").await);
    let page = accounts.page(&alice).await;
    let of_bob = accounts.page(&bob).await;
    for member in ["id", "url", "code"] {
        assert_ne!(page[member], of_bob[member], "each person has a page of their own");
        assert_eq!(page[member], accounts.page(&alice).await[member], "while it is open");
    }
    let path = format!("{SIGN_INS}/{}", page["id"].as_str().unwrap());
    assert_eq!(alice.get(&path).await.good()["state"], "open");
    let hidden = bob.get(&path).await.problem(404, "unknown_sign_in");
    assert_eq!(hidden, bob.get(&format!("{SIGN_INS}/0f1e")).await.problem(404, "unknown_sign_in"));
    // The id names its server, too.
    alice.get(&path.replace("tracker", "another")).await.problem(404, "unknown_sign_in");
    let browser = Browser::new();
    let consent = browser.prove(&page, page["code"].as_str().unwrap()).await;
    assert_eq!(browser.go_on(&accounts, &consent, "alice").await.status, 200);
    assert_eq!(alice.get(&path).await.good()["state"], "signed_in");
}

#[tokio::test]
async fn a_cookie_that_somebody_planted_does_not_take_part() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    let page = accounts.page(&alice).await;
    let planted = "switchboard-connect=00000000000000000000000000000000";
    let (browser, attacker) = (Browser::new(), Browser::new());
    for each in [&browser, &attacker] {
        *each.cookie.lock() = Some(planted.into());
    }
    let consent = browser.prove(&page, page["code"].as_str().unwrap()).await;
    assert!(consent.html.contains("user:alice"), "{}", consent.html);
    assert_ne!(browser.cookie.lock().as_deref(), Some(planted));
    let shown = attacker.open(page["url"].as_str().unwrap()).await;
    assert!(!shown.html.contains("user:alice"), "{}", shown.html);
}

#[tokio::test]
async fn the_cookie_of_an_https_board_is_for_this_host_and_encrypted_connections_alone() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    let yaml = config(&accounts.tracker, "oauth: {per: user}");
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8=";
    let gateway = "gateway: {public_url: \"https://tools.example.com\"}";
    let security = format!("security: {{store_key: \"{key}\"}}");
    accounts.server.reload(&format!("{yaml}  {gateway}\n  {security}\n")).await;
    let page = wait_until(PATIENCE, async || {
        let page = accounts.page(&alice).await;
        page["url"].as_str().unwrap().starts_with("https://tools.example.com/").then_some(page)
    })
    .await;
    let url = page["url"].as_str().unwrap();
    let local =
        url.replace("https://tools.example.com", &format!("http://{}", accounts.server.address));
    let browser = Browser::new();
    let code = page["code"].as_str().unwrap();
    assert_eq!(browser.submit(&local, "proof", code).await.status, 303);
    let cookie = browser.set_cookie.lock().clone();
    assert!(cookie.starts_with("__Host-switchboard-connect="), "{cookie}");
    for part in ["; Secure", "; HttpOnly", "; SameSite=Lax", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
    // A cookie without the prefix, which another host of the domain could set, counts for nothing.
    let plain = cookie.trim_start_matches("__Host-").split(';').next().unwrap().to_owned();
    *browser.cookie.lock() = Some(plain);
    assert!(!browser.open(&local).await.html.contains("user:alice"));
}

#[tokio::test]
async fn an_administrator_signs_in_for_all_callers_of_a_server_that_they_share() {
    let tracker = AccountServer::open(AccountEra::Stateless).await;
    let server = ApiServer::start(&shared(&tracker)).await;
    let accounts = Accounts { server, tracker };
    let (client, admin) =
        (accounts.of("alice").await, accounts.server.api_of("admin", Role::Admin).await);
    let refused = client.send(Method::POST, SIGN_INS, None).await;
    assert!(refused.body["hint"].as_str().unwrap().contains("role admin"), "{}", refused.body);
    refused.problem(409, "no_account");
    let as_board = format!("{SIGN_INS}?owner=board");
    client.send(Method::POST, &as_board, None).await.problem(403, "forbidden");
    client.get("/api/v1/accounts?all=true").await.problem(403, "forbidden");

    let states = admin.get("/api/v1/accounts?all=true").await.good();
    let account = &states["accounts"][0];
    assert_eq!((&account["owner"], &account["state"]), (&json!("board"), &json!("needs_sign_in")));
    accounts.sign_in(&admin, "robot").await;
    let called = wait_until(PATIENCE, async || {
        let called = client.post(CALL, json!({})).await;
        (called.status == 200).then_some(called.body)
    })
    .await;
    assert_eq!(called["result"]["content"][0]["text"], "robot");

    let path = "/api/v1/accounts/tracker";
    client.send(Method::DELETE, path, None).await.problem(409, "no_account");
    let out = admin.send(Method::DELETE, path, None).await.good();
    assert_eq!(out["signed_out"], true);
}

#[tokio::test]
async fn the_account_of_the_board_at_a_server_of_users_lists_and_is_not_used_by_calls() {
    let accounts = Accounts::start().await;
    let admin = accounts.server.api_of("admin", Role::Admin).await;
    let begun = admin.send(Method::POST, &format!("{SIGN_INS}?owner=board"), None).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    let browser = Browser::new();
    let consent = browser.prove(&begun.body, begun.body["code"].as_str().unwrap()).await;
    assert!(consent.html.contains("board"), "{}", consent.html);
    assert_eq!(browser.go_on(&accounts, &consent, "robot").await.status, 200);
    // The tools are known now, and a call still needs an account of its own.
    wait_until(PATIENCE, async || {
        let called = admin.post(CALL, json!({})).await;
        (called.body["title"] == "needs sign in").then_some(())
    })
    .await;
    assert_eq!(accounts.tracker.calls(), Vec::<String>::new());
}

/// The page that a call in a session asks for.
async fn page_of(api: &Api, session: &str) -> Value {
    let path = format!("{session}/tools/tracker__whoami/call");
    wait_until(PATIENCE, async || {
        let called = api.post(&path, json!({})).await;
        called.body.get("sign_in").cloned()
    })
    .await
}

#[tokio::test]
async fn each_session_has_its_own_account_which_ends_with_it() {
    let tracker = AccountServer::open(AccountEra::Stateless).await;
    let server = ApiServer::start(&config(&tracker, "oauth: {per: session}")).await;
    let accounts = Accounts { server, tracker };
    let (alice, admin) =
        (accounts.of("alice").await, accounts.server.api_of("admin", Role::Admin).await);
    // The account of the board lists the tools.
    let begun = admin.send(Method::POST, &format!("{SIGN_INS}?owner=board"), None).await.good();
    let browser = Browser::new();
    let consent = browser.prove(&begun, begun["code"].as_str().unwrap()).await;
    assert_eq!(browser.go_on(&accounts, &consent, "robot").await.status, 200);

    let mut sessions = Vec::new();
    for person in ["anna", "ben"] {
        let session = alice.new_session(json!({})).await;
        let (page, browser) = (page_of(&alice, &session).await, Browser::new());
        let consent = browser.prove(&page, page["code"].as_str().unwrap()).await;
        assert_eq!(browser.go_on(&accounts, &consent, person).await.status, 200);
        sessions.push((session, person));
    }
    for (session, person) in sessions.iter().chain(&sessions) {
        let called = alice.post(&format!("{session}/tools/tracker__whoami/call"), json!({})).await;
        assert_eq!(called.good()["result"]["content"][0]["text"], *person, "{session}");
    }
    let owners = async || {
        let grants = accounts.server.store.grants().await.unwrap();
        let mut owners: Vec<_> = grants.iter().map(|row| row.id.owner.to_string()).collect();
        owners.sort();
        owners
    };
    let owner = |session: &str| session.replace("/api/v1/sessions/", "session:");
    let (anna, ben) = (owner(&sessions[0].0), owner(&sessions[1].0));
    let mut expected = vec!["board".to_owned(), anna, ben.clone()];
    expected.sort();
    assert_eq!(owners().await, expected);

    assert_eq!(accounts.tracker.revocations(), Vec::<String>::new());
    let ended = alice.send(Method::DELETE, &sessions[0].0, None).await;
    assert!((200..300).contains(&ended.status), "{}", ended.body);
    wait_until(PATIENCE, async || (owners().await == ["board", ben.as_str()]).then_some(())).await;
    let revoked = wait_until(PATIENCE, async || {
        let revoked = accounts.tracker.revocations();
        (!revoked.is_empty()).then_some(revoked)
    })
    .await;
    assert!(revoked.iter().all(|token| token.contains("-anna-")), "{revoked:?}");
    let called =
        alice.post(&format!("{}/tools/tracker__whoami/call", sessions[1].0), json!({})).await;
    assert_eq!(called.good()["result"]["content"][0]["text"], "ben", "the other one goes on");
    assert_eq!(accounts.tracker.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn what_one_browser_began_another_one_does_not_continue() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    let page = accounts.page(&alice).await;
    let (url, code) = (page["url"].as_str().unwrap(), page["code"].as_str().unwrap());
    let (first, second) = (Browser::new(), Browser::new());
    let begun = link(&first.prove(&page, code).await);
    let consent = second.prove(&page, code).await;
    assert_ne!(link(&consent), begun, "another state and another verifier");
    let back = accounts.tracker.visit(&begun, "mallory").await;
    for browser in [&first, &second] {
        assert_eq!(browser.open(&back).await.status, 400);
    }
    assert!(!first.open(url).await.html.contains("user:alice"), "the first takes no part any more");
    assert_eq!(second.go_on(&accounts, &consent, "alice").await.status, 200);
}

#[tokio::test]
async fn wrong_codes_are_counted_over_all_browsers() {
    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    let page = accounts.page(&alice).await;
    let (url, code) = (page["url"].as_str().unwrap(), page["code"].as_str().unwrap());
    for _ in 0..3 {
        assert_eq!(Browser::new().submit(url, "proof", "AAAA-AAAA").await.status, 403);
    }
    let browser = Browser::new();
    browser.prove(&page, code).await;
    assert_eq!(Browser::new().submit(url, "proof", "AAAA-AAAA").await.status, 403);
    assert_eq!(Browser::new().submit(url, "proof", "AAAA-AAAA").await.status, 404, "the fifth");
    assert_eq!(browser.open(url).await.status, 404);
}

#[tokio::test]
async fn a_token_is_entered_on_the_page_of_a_server_that_takes_tokens_and_on_no_other() {
    let tracker = AccountServer::open(AccountEra::Stateless).await;
    let server = ApiServer::start(&config(&tracker, "bearer: {per: user}")).await;
    let accounts = Accounts { server, tracker };
    let alice = accounts.of("alice").await;
    let state =
        async |api: &Api| api.get("/api/v1/accounts").await.good()["accounts"][0]["state"].clone();
    let (page, browser) = (accounts.page(&alice).await, Browser::new());
    let url = page["url"].as_str().unwrap();
    let shown = browser.prove(&page, page["code"].as_str().unwrap()).await;
    assert!(shown.html.contains("name=token"), "{}", shown.html);
    assert_eq!(
        Browser::new().submit(url, "token", "s3cret-own").await.status,
        403,
        "another browser"
    );
    let refused = browser.submit(url, "token", "two\nlines").await;
    assert!(refused.html.contains("class=bad"), "{}", refused.html);
    assert_eq!(state(&alice).await, "needs_sign_in");
    let stored = browser.submit(url, "token", "s3cret-own").await;
    assert!(stored.status == 200 && !stored.html.contains("s3cret-own"), "{}", stored.html);
    assert_eq!(state(&alice).await, "active");
    assert_eq!(browser.submit(url, "token", "s3cret-other").await.status, 404, "a second time");

    let accounts = Accounts::start().await;
    let alice = accounts.of("alice").await;
    let (page, browser) = (accounts.page(&alice).await, Browser::new());
    browser.prove(&page, page["code"].as_str().unwrap()).await;
    browser.submit(page["url"].as_str().unwrap(), "token", "s3cret-own").await;
    assert_eq!(state(&alice).await, "needs_sign_in", "people sign in there");
}
