//! A22: more than twenty secrets, each in another place, in a board that logs everything and fails in many ways. None of them is found
//! in what the program writes or answers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use reqwest::{Method, StatusCode, redirect};
use serde_json::{Value, json};
use switchboard_test_support::model_backends::{Backend, FakeBackends, Step};
use switchboard_test_support::{
    AccountEra, AccountServer, FakeAuthServer, Fault, OWN_CLIENT, Reply, ScriptedServer, Stage,
    ThreatEndpoint, Tool, peers, wait_until,
};

use crate::client::Peer;
use crate::support::{Home, PATIENCE, Serve, dynamic, stdio, with};
use crate::world::{config_with, key};

/// Secrets of the configuration: `${NAME}` in the file, or a file beside it.
const CONFIGURED: [(&str, &str); 14] = [
    ("BEARER", "pl4nted-bearer-01"),
    ("HEADER", "pl4nted-header-02"),
    ("URL_PATH", "pl4nted-path-03"),
    ("URL_QUERY", "pl4nted-query-04"),
    ("URL_PASSWORD", "pl4nted-password-05"),
    ("CHILD_ENV", "pl4nted-child-env-06"),
    ("CHILD_ARG", "pl4nted-child-arg-07"),
    ("FIXED", "pl4nted-fixed-08"),
    ("HIDDEN", "pl4nted-hidden-09"),
    ("PROVIDER_KEY", "pl4nted-provider-10"),
    ("PROVIDER_HEADER", "pl4nted-provider-header-11"),
    ("THREAT_TOKEN", "pl4nted-threat-12"),
    ("DISCOVERY_TOKEN", "pl4nted-discovery-13"),
    ("MODEL_KEY", "pl4nted-model-key-21"),
];

/// The key that an app has for its provider itself.
const APP_KEY: &str = "pl4nted-app-key-22";

/// Secrets that callers send.
const SENT: [(&str, &str); 6] = [
    ("authorization", "Bearer sbk_pl4nted-unknown-key-14-aaaaaaaaaaaaaaaaaaaaaaa"),
    (
        "authorization",
        "Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbDRudGVkIn0.cGw0bnRlZC1zaWduYXR1cmUtMTU",
    ),
    ("authorization", "Basic cGw0bnRlZC1iYXNpYy0xNg=="),
    ("x-api-key", "pl4nted-wrong-key-17"),
    ("cookie", "session=pl4nted-cookie-18"),
    ("proxy-authorization", "Basic cGw0bnRlZC1wcm94eS0xOQ=="),
];

/// The key that encrypts the tokens of people.
const STORE_KEY: &str = "cGw0bnRlZC1zdG9yZS1rZXktMjAtYWFhYWFhYWFhYWE=";

/// What an operator told the records to remove.
const CARD: &str = "card-4111111111111111";

/// Tools with values of the configuration that nobody may see.
const TOOLS: [&str; 2] = [
    "{name: remote.echo, arguments: [{name: tenant, type: string, value: \"${FIXED}\"}, \
             {name: text, type: string}]}",
    "{name: remote.fails, arguments: [{name: zone, type: string, default: \"${HIDDEN}\", hidden: true}]}",
];

/// The sections of the configuration beside the toolbox.
fn sections(threats: &str, models: &FakeBackends) -> [String; 5] {
    let model = |backend: Backend, kind: &str, model: &str| {
        // The paths of the other two begin with the version.
        let url = match backend {
            Backend::Anthropic | Backend::Gemini => models.root_url(),
            _ => models.base_url(backend),
        };
        format!(
            "{{name: {kind}, kind: {kind}, base_url: \"{url}\", model: {model}, api_key: \"${{MODEL_KEY}}\", app_credentials: pass}}"
        )
    };
    let models = APIS.map(|(backend, kind, name, _)| model(backend, kind, name)).join(", ");
    [
        "security: {store_key: \"${STORE_KEY}\"}".to_owned(),
        "records: {redact: ['card-\\d+']}".to_owned(),
        format!(
            "providers: [{models}, {{name: own, kind: openai-chat, base_url: \"http://127.0.0.1:1/v1\", model: m, \
             api_key: \"${{PROVIDER_KEY}}\", headers: {{X-Provider: \"${{PROVIDER_HEADER}}\"}}}}]"
        ),
        format!(
            "threat_protection: {{endpoint: \"{threats}\", token: \"${{THREAT_TOKEN}}\", before_tool: observe, on_failure: open}}"
        ),
        "discovery: {sources: [{name: far, type: gateway, url: \"http://127.0.0.1:1\", agent_id: a, \
         token: \"${DISCOVERY_TOKEN}\"}]}"
            .to_owned(),
    ]
}

/// The backend of each API for apps, its kind and model, and the path.
const APIS: [(Backend, &str, &str, &str); 4] = [
    (Backend::Chat, "openai-chat", "llama", "/openai/v1/chat/completions"),
    (Backend::OpenAi, "openai", "gpt-5.5", "/openai/v1/responses"),
    (Backend::Anthropic, "anthropic", "claude-opus-5-5", "/anthropic/v1/messages"),
    (
        Backend::Gemini,
        "gemini",
        "gemini-3.1-pro-preview",
        "/gemini/v1beta/models/gemini-3.1-pro-preview:generateContent",
    ),
];

struct World {
    home: Home,
    remote: ScriptedServer,
    quoting: ScriptedServer,
    office: FakeAuthServer,
    threats: ThreatEndpoint,
    models: FakeBackends,
    tracker: AccountServer,
    /// The codes and states of sign-ins.
    answers: Mutex<Vec<String>>,
    key: String,
    operator: String,
}

impl World {
    async fn new() -> Self {
        let failing = Reply::ToolError(format!(
            "cannot use {} with {}",
            CONFIGURED[7].1, "Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
        ));
        let rpc = Reply::RpcError { code: -32000, message: format!("bad {}", CONFIGURED[1].1) };
        let remote = ScriptedServer::builder()
            .tools([
                Tool::echo("echo"),
                Tool::new("fails").replies(failing),
                Tool::new("breaks").replies(rpc),
            ])
            .requires_bearer(CONFIGURED[0].1)
            .start()
            .await;
        let quoting = ScriptedServer::builder().tools([Tool::echo("get")]).start().await;
        let office = FakeAuthServer::open().await;
        let threats = ThreatEndpoint::start().await;
        let models = FakeBackends::start().await;
        let tracker = AccountServer::open(AccountEra::Stateless).await;
        let url = remote.url().replace("http://", "http://user:${URL_PASSWORD}@");
        let quoted = quoting.url().replace("/mcp", "/${URL_PATH}/mcp");
        let (id, _) = OWN_CLIENT;
        let script = "echo \"started with $1 and $API_KEY\" >&2; exec \"$0\"";
        let peer = peers::stdio_peer();
        let arguments = ["-c", script, peer.to_str().unwrap(), "--key=${CHILD_ARG}"];
        let servers = [
            with(
                &dynamic("remote", &format!("{url}?key=${{URL_QUERY}}")),
                "auth: {bearer: \"file:bearer\"}, headers: {X-Key: \"${HEADER}\", X-User: \"${caller.subject:-board}\"}, \
                 record: {arguments: true, results: true}, content_check: {before_call: observe}",
            ),
            with(&dynamic("quoting", &quoted), "required: false"),
            with(
                &dynamic("tracker", &tracker.url()),
                "required: false, auth: {oauth: {per: user}}",
            ),
            with(
                &stdio("child", Path::new("sh"), &arguments),
                "env: {API_KEY: \"${CHILD_ENV}\"}, record: {arguments: true, results: true}",
            ),
            with(
                &dynamic("office", &office.url()),
                &format!(
                    "auth: {{oauth: {{grant: client_credentials, client_id: {id}, client_secret: '${{OWN_CLIENT}}'}}}}"
                ),
            ),
        ];
        let sections = sections(threats.url(), &models);
        let sections: Vec<_> = sections.iter().map(String::as_str).collect();
        let mut home = Home::new(config_with(&TOOLS, &servers, &sections))
            .with_variable("RUST_LOG", "trace")
            .with_variable("OWN_CLIENT", OWN_CLIENT.1)
            .with_variable("STORE_KEY", STORE_KEY);
        for (name, value) in CONFIGURED {
            home = home.with_variable(name, value);
        }
        home.file("bearer", CONFIGURED[0].1);
        let (key, operator) = (key(&home, "anna", "client"), key(&home, "root", "admin"));
        let answers = Mutex::default();
        Self { home, remote, quoting, office, threats, models, tracker, answers, key, operator }
    }

    /// Each secret was used for what it is there for; otherwise nothing would be found anyway.
    fn check_that_they_were_used(&self) {
        let stats = self.remote.stats();
        assert_eq!(stats.last_header("tools/call", "x-key"), Some(CONFIGURED[1].1));
        assert_eq!(stats.last_header("tools/call", "x-user"), Some("anna"));
        let bearer = format!("Bearer {}", CONFIGURED[0].1);
        assert_eq!(stats.last_header("tools/call", "authorization"), Some(bearer.as_str()));
        for (name, value) in [("tenant", CONFIGURED[7].1), ("zone", CONFIGURED[8].1)] {
            let is_sent = stats.calls.iter().any(|call| call.params["arguments"][name] == value);
            assert!(is_sent, "{name} never reached the server");
        }
        assert!(
            self.quoting.stats().requests.iter().any(|seen| seen.path.contains(CONFIGURED[2].1))
        );
        assert!(self.office.came_itself() > 0, "no token was issued");
        assert!(!self.threats.requests().is_empty(), "nothing was checked");
        assert_eq!(self.tracker.calls(), ["anna"], "nobody signed in");
        for secret in [CONFIGURED[13].1, APP_KEY] {
            let asked = self.models.requests();
            let with_it =
                asked.iter().filter(|it| it.headers.values().any(|it| it.contains(secret)));
            let backends = with_it.map(|it| format!("{:?}", it.backend)).collect::<BTreeSet<_>>();
            assert_eq!(backends.len(), APIS.len(), "{secret} was sent to {backends:?}");
        }
    }

    /// Everything that must not be found, as it is and in its usual encodings.
    fn needles(&self) -> Vec<String> {
        let sent = SENT.iter().map(|(_, value)| value.split(' ').next_back().unwrap());
        let sent = sent.map(|value| value.strip_prefix("session=").unwrap_or(value).to_owned());
        let own = [CARD, OWN_CLIENT.1, APP_KEY].map(str::to_owned);
        let own = own.into_iter().chain([self.key.clone(), self.operator.clone()]);
        let account = self.tracker.tokens().into_iter().chain(self.answers.lock().clone());
        let own = own.chain([STORE_KEY.to_owned()]).chain(account);
        CONFIGURED.iter().map(|(_, value)| (*value).to_owned()).chain(sent).chain(own).collect()
    }

    /// Names each needle in a text.
    #[track_caller]
    fn scan(&self, place: &str, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        for needle in self.needles() {
            if let Some(at) = text.find(&needle) {
                let before = text.get(..at).unwrap_or_default().chars().count().saturating_sub(120);
                let around: String = text.chars().skip(before).take(300).collect();
                panic!("{needle} is in {place}: {around}");
            }
        }
    }

    async fn api(
        &self,
        serve: &Serve,
        method: Method,
        path: &str,
        key: &str,
    ) -> (StatusCode, String) {
        let request = serve.http.request(method, serve.at(path)).bearer_auth(key);
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }
}

/// Anna connects an account of her own, and uses it.
async fn connect_account(world: &World, serve: &Serve) {
    let sign_ins = "/api/v1/accounts/tracker/sign-ins";
    let (_, begun) = world.api(serve, Method::POST, sign_ins, &world.key).await;
    let begun: Value = serde_json::from_str(&begun).unwrap();
    let (url, code) = (begun["url"].as_str().unwrap(), begun["code"].as_str().unwrap());
    let browser = reqwest::Client::builder().redirect(redirect::Policy::none()).no_proxy();
    let browser = browser.build().unwrap();
    let form = browser.post(url).header("content-type", "application/x-www-form-urlencoded");
    let proven = form.body(format!("proof={code}")).send().await.unwrap();
    let cookie = proven.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap();
    let cookie = cookie.to_owned();
    let open = async |url: &str| {
        let page = browser.get(url).header("cookie", &cookie).send().await.unwrap();
        page.text().await.unwrap()
    };
    let consent = open(url).await;
    world.scan("the page", consent.as_bytes());
    let (_, link) = consent.split_once("href=\"").unwrap();
    let link = link.split_once('"').unwrap().0.replace("&amp;", "&");
    let back = world.tracker.visit(&link, "anna").await;
    let answer = |name: &str| {
        let value = back.split(['?', '&']).find_map(|part| part.strip_prefix(name));
        value.unwrap().to_owned()
    };
    world.answers.lock().extend([answer("code="), answer("state="), cookie.clone()]);
    // A forged answer, the real one, and the real one again.
    for url in [back.replace("state=", "state=x"), back.clone(), back] {
        world.scan("the page after the sign-in", open(&url).await.as_bytes());
    }
    let anna = Peer::of(serve).with_key(&world.key);
    wait_until(PATIENCE, async || {
        anna.call("tracker__whoami", json!({})).await;
        (!world.tracker.calls().is_empty()).then_some(())
    })
    .await;
}

/// Apps ask models, with the key of the board, with one of their own and with a wrong one; and the models' providers quote the key
/// of the board in their errors.
async fn use_apps(world: &World, serve: &Serve) {
    let call = "call office__greet {}";
    let said = json!([{"role": "user", "content": call}]);
    let board = ("authorization", format!("Bearer {}", world.key));
    let both = [("x-switchboard-key", world.key.clone()), ("x-api-key", APP_KEY.to_owned())];
    for (backend, _, model, path) in APIS {
        let body = match backend {
            Backend::OpenAi => json!({"model": model, "input": call}),
            Backend::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": call}]}]}),
            _ => json!({"model": model, "max_tokens": 100, "messages": said}),
        };
        let ask = async |headers: &[(&str, String)]| {
            let mut request = serve.http.post(serve.at(path)).json(&body);
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            let response = request.send().await.unwrap();
            let (status, headers) = (response.status(), format!("{:?}", response.headers()));
            let text = response.text().await.unwrap();
            world.scan(path, format!("{headers}{text}").as_bytes());
            (status, text)
        };
        let (status, text) = ask(std::slice::from_ref(&board)).await;
        assert!(status.is_success() && text.contains("hello"), "{path} {status} {text}");
        ask(&both).await;
        for name in ["authorization", "x-api-key", "x-goog-api-key", "x-switchboard-key"] {
            let (status, text) = ask(&[(name, "pl4nted-wrong-key-17".to_owned())]).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path} {text}");
        }
        let quoted = format!("the key {} is over its limit", CONFIGURED[13].1);
        let refusal =
            json!({"error": {"message": quoted, "code": 400, "status": "INVALID_ARGUMENT"}});
        for step in [
            Step::new().status(400, &[("x-request-id", "r")], refusal.to_string()),
            Step::new().status(401, &[], refusal.to_string()),
            Step::text("There").error_event("api_error", quoted.clone()),
        ] {
            world.models.script(backend, [step]);
            ask(std::slice::from_ref(&board)).await;
        }
    }
}

/// Calls and requests that work, and those that fail in every way.
async fn exercise(world: &World, serve: &Serve) {
    let anna = Peer::of(serve).with_key(&world.key);
    let session = anna.open().await;
    for (tool, arguments) in [
        ("remote__echo", json!({"text": format!("{CARD} and {}", CONFIGURED[1].1)})),
        ("remote__echo", json!({"text": 1, "tenant": CONFIGURED[7].1})),
        ("remote__fails", json!({})),
        ("remote__breaks", json!({})),
        ("child__stats", json!({})),
        ("office__greet", json!({})),
        ("none__such", json!({"password": CONFIGURED[0].1})),
    ] {
        anna.call(tool, arguments.clone()).await;
        session.call(tool, arguments).await;
    }
    for (name, value) in SENT {
        let smuggling = Peer::of(serve).with(name, value);
        smuggling.modern("tools/list", json!({})).await;
        let both = anna.with(name, value);
        both.modern("tools/list", json!({})).await;
        let request = serve.http.get(serve.at("/api/v1/tools")).header(name, value);
        world.scan(
            "an answer to a smuggled credential",
            &request.send().await.unwrap().bytes().await.unwrap(),
        );
    }
    let chat = json!({"provider": "own"}).to_string();
    for (path, body) in [
        ("/api/v1/sessions", chat.as_str()),
        ("/api/v1/tools/remote.echo/call", "{not json"),
        ("/api/v1/tools/remote.breaks/call", "{}"),
    ] {
        let request = serve.http.post(serve.at(path)).bearer_auth(&world.key);
        let request = request.header("content-type", "application/json").body(body.to_owned());
        world.scan(path, &request.send().await.unwrap().bytes().await.unwrap());
    }
    // Servers that quote what they were sent, are gone, and come back.
    world.quoting.set_fault(Fault::Reflect(Stage::Any)).await;
    anna.call("quoting__get", json!({})).await;
    world.remote.set_fault_times(2, Fault::Reflect(Stage::Call)).await;
    anna.call("remote__echo", json!({})).await;
    world.remote.set_fault_times(1, Fault::Status(Stage::Call, 500)).await;
    anna.call("remote__echo", json!({})).await;
    world.remote.restart_on_same_port().await;
    anna.call("remote__echo", json!({"text": "again"})).await;
}

/// What the board shows.
const PATHS: [&str; 23] = [
    "/",
    "/readyz",
    "/metrics",
    "/api/v1/docs",
    "/api/v1/openapi.json",
    "/api/v1/servers",
    "/api/v1/servers/remote",
    "/api/v1/servers/office",
    "/api/v1/servers/child",
    "/api/v1/tools",
    "/api/v1/tools/remote.echo",
    "/api/v1/tools/remote.echo/declaration",
    "/api/v1/tools/remote.fails/declaration",
    "/api/v1/config",
    "/api/v1/sources",
    "/api/v1/providers",
    "/api/v1/sessions",
    "/api/v1/accounts",
    "/api/v1/accounts?all=true",
    "/api/v1/content-checks",
    "/api/v1/calls?limit=1000",
    "/api/v1/calls/export",
    "/.well-known/oauth-protected-resource",
];

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a22_no_planted_secret_is_found_anywhere() {
    let world = World::new().await;
    let serve = world.home.serve_with(&["-vvv"]).await;
    connect_account(&world, &serve).await;
    use_apps(&world, &serve).await;
    exercise(&world, &serve).await;
    world.check_that_they_were_used();
    for path in PATHS {
        for key in [&world.key, &world.operator] {
            let (_, text) = world.api(&serve, Method::GET, path, key).await;
            world.scan(path, text.as_bytes());
        }
    }
    let home = &world.home;
    for line in [
        "config show",
        "check --connect",
        "server list",
        "server show remote",
        "server test quoting",
        "tool list",
        "tool show remote.echo",
        "doctor",
        "auth status",
        "key list",
        "calls --long",
        "calls export --since 1h",
        "discover",
    ] {
        for more in ["", "--json", "-vvv"] {
            let outcome = home.line(&format!("{line} {more}"));
            world.scan(line, outcome.all().as_bytes());
        }
    }
    // The records are there, with what may be in them.
    let exported = home.line("calls export --server remote").expect(0).stdout;
    assert!(exported.contains("*** and ***"), "{exported}");
    assert!(exported.lines().count() >= 10, "{exported}");
    let stderr = wait_until(PATIENCE, async || {
        let stderr = serve.stderr();
        stderr.contains("tool call ended").then_some(stderr)
    })
    .await;
    assert!(stderr.contains("TRACE") || stderr.contains("trace"), "the log is at its lowest level");
    world.scan("the log", stderr.as_bytes());
    world.scan("standard output", serve.stdout().as_bytes());
    let files = files_below(&home.path().join("data"));
    assert!(files.iter().any(|file| file.ends_with("switchboard.db")), "{files:?}");
    for file in files {
        world.scan(&file.display().to_string(), &std::fs::read(&file).unwrap());
    }
}
