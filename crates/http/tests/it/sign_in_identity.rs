//! On a board that accepts tokens, a person shows on a sign-in page who they are by signing in at the board's issuer.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Redirect;
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use pretty_assertions::assert_eq;
use reqwest::{Client, Method, redirect};
use serde_json::{Value, json};
use switchboard_auth::GatekeeperOptions;
use switchboard_test_support::{AccountEra, AccountServer};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::api_server::{Api, ApiServer};
use crate::jwt_key::JwtKey;

const SIGN_INS: &str = "/api/v1/accounts/tracker/sign-ins";

type Values = BTreeMap<String, String>;

/// An issuer at which the person in the query parameter `user` is signed in.
struct JwtIssuer {
    base: String,
    key: JwtKey,
    _serving: AbortOnDropHandle<()>,
}

impl JwtIssuer {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let key = JwtKey::new();
        let state = Arc::new((base.clone(), key.clone()));
        let router = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(state);
        let serving = tokio_util::task::TaskTracker::new()
            .spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base, key, _serving: AbortOnDropHandle::new(serving) }
    }
}

type Issuer = State<Arc<(String, JwtKey)>>;

async fn metadata(State(issuer): Issuer) -> Json<Value> {
    let base = &issuer.0;
    Json(json!({
        "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"), "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

async fn authorize(State(issuer): Issuer, Query(query): Query<Values>) -> Redirect {
    assert_eq!(query["resource"], crate::jwt_key::AUDIENCE);
    let (back, state) = (&query["redirect_uri"], &query["state"]);
    Redirect::to(&format!("{back}?code={}&state={state}&iss={}", query["user"], issuer.0))
}

async fn token(State(issuer): Issuer, Form(form): Form<Values>) -> Json<Value> {
    assert_eq!((form["client_id"].as_str(), form["client_secret"].as_str()), ("pages", "s3cret"));
    let token = issuer.1.sign(&issuer.0, &form["code"], 60);
    Json(json!({"access_token": token, "token_type": "Bearer", "expires_in": 60}))
}

/// A browser: it keeps its cookie.
struct Browser {
    http: Client,
    cookie: parking_lot::Mutex<Option<String>>,
}

impl Browser {
    fn new() -> Self {
        let http = Client::builder().redirect(redirect::Policy::none()).no_proxy().build().unwrap();
        Self { http, cookie: parking_lot::Mutex::default() }
    }

    /// The status, where it is sent to, and the page.
    async fn open(&self, url: &str) -> (u16, String, String) {
        let cookie = self.cookie.lock().clone().unwrap_or_default();
        let request = self.http.get(url).header("cookie", cookie);
        let response = request.header("sec-fetch-mode", "navigate").send().await.unwrap();
        let header = |name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        if let Some(set) = header("set-cookie") {
            *self.cookie.lock() = set.split(';').next().map(str::to_owned);
        }
        let there = header("location").unwrap_or_default();
        (response.status().as_u16(), there, response.text().await.unwrap())
    }
}

struct World {
    server: ApiServer,
    tracker: AccountServer,
    issuer: JwtIssuer,
    _directory: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let (tracker, issuer) =
            (AccountServer::open(AccountEra::Stateless).await, JwtIssuer::open().await);
        let directory = tempfile::tempdir().unwrap();
        let options = issuer.key.options(&issuer.base, directory.path());
        let server = ApiServer::without_board_but(GatekeeperOptions { jwt: Some(options) }).await;
        let yaml = format!(
            "switchboard:\n  security:\n    jwt:\n      issuer: \"{}\"\n      audience: https://board.example/mcp\n      \
             jwks_file: {}/jwks.json\n      page_client: {{client_id: pages, client_secret: s3cret}}\n  toolbox:\n    mcps:\n      \
             - {{name: tracker, url: \"{}\", mode: dynamic, default_tool_config: {{}}, auth: {{oauth: {{per: user}}}}}}\n",
            issuer.base,
            directory.path().display(),
            tracker.url()
        );
        server.start_board(&yaml).await;
        Self { server, tracker, issuer, _directory: directory }
    }

    fn of(&self, person: &str) -> Api {
        self.server.api().with_key(&self.issuer.key.sign(&self.issuer.base, person, 3600))
    }

    /// Opens the page and begins to sign in at the issuer of the board; the address of the issuer's answer.
    async fn answer(&self, browser: &Browser, page: &str, person: &str) -> String {
        let (status, _, html) = browser.open(page).await;
        assert_eq!(status, 200, "{html}");
        assert!(!html.contains("tracker") && html.contains("/identify"), "{html}");
        let (_, there, _) = browser.open(&format!("{page}/identify")).await;
        assert!(there.starts_with(&format!("{}/authorize?", self.issuer.base)), "{there}");
        let (_, back, _) = browser.open(&format!("{there}&user={person}")).await;
        back
    }
}

async fn page(api: &Api) -> String {
    let begun = api.send(Method::POST, SIGN_INS, None).await.good();
    assert!(begun["code"].is_string(), "the code stays as another way: {begun}");
    begun["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_person_of_the_call_goes_on_without_a_code() {
    let world = World::start().await;
    let (alice, browser) = (world.of("alice"), Browser::new());
    let page = page(&alice).await;
    let back = world.answer(&browser, &page, "alice").await;
    let (status, there, html) = browser.open(&back).await;
    assert_eq!(status, 303, "{html}");
    assert!(page.ends_with(&there), "{there}");
    let (_, _, consent) = browser.open(&page).await;
    assert!(consent.contains("tracker") && consent.contains("Continue to"), "{consent}");
    // The answer counts once.
    assert_eq!(browser.open(&back).await.0, 400);
    let (_, link) = consent.split_once("href=\"").unwrap();
    let link = link.split_once('"').unwrap().0.replace("&amp;", "&");
    let (status, _, done) = browser.open(&world.tracker.visit(&link, "alice").await).await;
    assert_eq!(status, 200, "{done}");
    let mine = alice.get("/api/v1/accounts").await.good();
    assert_eq!(mine["accounts"][0]["state"], "active", "{mine}");
}

#[tokio::test]
async fn another_person_or_another_browser_does_not_go_on() {
    let world = World::start().await;
    let alice = world.of("alice");
    let page = page(&alice).await;
    let browser = Browser::new();
    let back = world.answer(&browser, &page, "bob").await;
    let (status, _, html) = browser.open(&back).await;
    assert_eq!((status, html.contains("Another person")), (403, true), "{html}");
    let back = world.answer(&browser, &page, "alice").await;
    let (status, _, html) = Browser::new().open(&back).await;
    assert_eq!((status, html.contains("Another browser")), (403, true), "{html}");
    let forged = back.replace(&format!("iss={}", world.issuer.base), "iss=https://evil.example");
    assert_eq!(browser.open(&forged).await.0, 502, "the issuer is compared");
    let (_, _, html) = browser.open(&page).await;
    assert!(!html.contains("tracker"), "{html}");
    assert_eq!(world.tracker.pages_opened(), 0);
    for person in 0..4 {
        let back = world.answer(&browser, &page, &format!("p{person}")).await;
        browser.open(&back).await;
    }
    assert_eq!(browser.open(&page).await.0, 404, "too many wrong persons end the page");
}
