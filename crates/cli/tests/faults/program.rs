//! The program under test, its servers, and the injected faults.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Executor};
use switchboard_test_support::{Reply, ScriptedServer, Tool};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::ledger::{Ledger, SLOWEST, count};
use crate::support::{Home, Serve, server};

const FULL: Duration = Duration::from_millis(1500);
/// Longer than the store waits for a lock.
const LOCKED: Duration = Duration::from_millis(4500);
const FLOOD_CALLS: usize = 100;
const FLOOD_CONNECTIONS: usize = 200;

/// The current address of the program, and the key for it.
#[derive(Debug)]
pub(crate) struct Place {
    url: Mutex<String>,
    key: String,
    http: Client,
    /// Counts kills: what was asked before one and answered after it says nothing.
    kills: AtomicU64,
    /// The store is being kept from writing.
    is_store_failing: AtomicBool,
    is_stopped: AtomicBool,
    pub(crate) ledger: Arc<Ledger>,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Got {
    Answer(StatusCode, Value),
    /// No answer came; what was asked for may have happened.
    Nothing,
}

impl Place {
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn kills(&self) -> u64 {
        self.kills.load(Ordering::SeqCst)
    }

    pub(crate) fn is_store_failing(&self) -> bool {
        self.is_store_failing.load(Ordering::SeqCst)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.url.lock().unwrap());
        self.http.request(method, url).bearer_auth(&self.key).timeout(SLOWEST)
    }

    /// Sends a request and reads the JSON of its answer; the last event, where it is a stream.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Got {
        let (begun, kills) = (Instant::now(), self.kills());
        let answer = async {
            let response = request.send().await.ok()?;
            let status = response.status();
            let text = response.text().await.ok()?;
            let last = text.lines().rev().find_map(|line| line.strip_prefix("data:"));
            let body = serde_json::from_str(last.unwrap_or(&text)).unwrap_or(Value::Null);
            Some((status, body))
        };
        let answer = answer.await;
        if kills == self.kills() {
            self.ledger.took(begun.elapsed());
        }
        let Some((status, body)) = answer else {
            // Not to burn the processor while the program is away.
            sleep(Duration::from_millis(20)).await;
            return Got::Nothing;
        };
        Got::Answer(status, body)
    }

    pub(crate) async fn api(&self, method: Method, path: &str, body: Option<Value>) -> Got {
        let mut request = self.request(method, &format!("/api/v1{path}"));
        if let Some(body) = body {
            request = request.json(&body);
        }
        self.send(request).await
    }
}

pub(crate) struct Program {
    home: Arc<Home>,
    serve: Serve,
    place: Arc<Place>,
    shop: ScriptedServer,
    vault: ScriptedServer,
    has_vault: bool,
    disk: Option<PathBuf>,
}

impl Program {
    pub(crate) async fn start(ledger: &Arc<Ledger>) -> Self {
        let large = Tool::echo("large").replies(Reply::Huge(200_000));
        let shop = server([Tool::echo("find"), Tool::echo("order"), large]).await;
        let vault = server([Tool::echo("open")]).await;
        let disk = std::env::var_os("FAULT_DISK").map(PathBuf::from);
        let mut home = Home::new(yaml(&shop, Some(&vault)));
        if let Some(disk) = &disk {
            let data = disk.join(format!("data-{}", std::process::id()));
            home = home.with_variable("SWITCHBOARD_DATA_DIR", data.to_str().unwrap());
        }
        let made = home.line("key add load --role admin --json").expect(0).json();
        let serve = home.serve_on_a_small_disk().await;
        let place = Arc::new(Place {
            url: Mutex::new(serve.url.clone()),
            key: made["key"].as_str().unwrap().to_owned(),
            http: Client::builder().no_proxy().build().unwrap(),
            kills: AtomicU64::new(0),
            is_store_failing: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            ledger: ledger.clone(),
        });
        Self { home: Arc::new(home), serve, place, shop, vault, has_vault: true, disk }
    }

    pub(crate) fn place(&self) -> Arc<Place> {
        self.place.clone()
    }

    pub(crate) fn home(&self) -> Arc<Home> {
        self.home.clone()
    }

    fn ledger(&self) -> &Ledger {
        &self.place.ledger
    }

    pub(crate) async fn kill(&mut self) {
        self.place.kills.fetch_add(1, Ordering::SeqCst);
        self.serve.signal("KILL");
        self.serve.ended().await;
        self.serve = self.home.serve_on_a_small_disk().await;
        self.serve.url.clone_into(&mut self.place.url.lock().unwrap());
        // What was sent to the program that is gone may be answered with an error until now.
        self.place.kills.fetch_add(1, Ordering::SeqCst);
        count(&self.ledger().kills);
    }

    pub(crate) async fn fill_disk(&self) {
        self.place.is_store_failing.store(true, Ordering::SeqCst);
        if let Some(disk) = &self.disk {
            let filler = disk.join("filler");
            let mut file = File::create(&filler).unwrap();
            let begun = Instant::now();
            while begun.elapsed() < FULL {
                // Also what others free meanwhile.
                while file.write_all(&[0; 4096]).is_ok() {}
                sleep(Duration::from_millis(5)).await;
            }
            std::fs::remove_file(&filler).unwrap();
        } else {
            self.serve.limit_files(Some(1));
            sleep(FULL).await;
            self.serve.limit_files(None);
        }
        count(&self.ledger().full_disks);
        self.recovered().await;
    }

    pub(crate) async fn lock_database(&self) {
        self.place.is_store_failing.store(true, Ordering::SeqCst);
        let data = match &self.disk {
            Some(disk) => disk.join(format!("data-{}", std::process::id())),
            None => self.home.path().join("data"),
        };
        let options = SqliteConnectOptions::new()
            .filename(data.join("switchboard.db"))
            .busy_timeout(Duration::from_secs(30));
        let mut other = options.connect().await.unwrap();
        other.execute("BEGIN IMMEDIATE").await.unwrap();
        sleep(LOCKED).await;
        other.execute("ROLLBACK").await.unwrap();
        count(&self.ledger().locks);
        self.recovered().await;
    }

    /// The program finds out by itself that the store takes writes again.
    async fn recovered(&self) {
        let end = Instant::now() + SLOWEST;
        loop {
            let ready = self.place.send(self.place.request(Method::GET, "/readyz")).await;
            if matches!(&ready, Got::Answer(StatusCode::OK, body) if body.get("store").is_none()) {
                break;
            }
            if Instant::now() >= end {
                self.ledger().violation(format!("the store does not recover: {ready:?}"));
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        self.place.is_store_failing.store(false, Ordering::SeqCst);
    }

    /// Takes the hidden server away together with what hides it, and brings both back.
    pub(crate) async fn reload(&mut self) {
        for _ in 0..4 {
            self.has_vault = !self.has_vault;
            self.home.rewrite(yaml(&self.shop, self.has_vault.then_some(&self.vault)));
            self.serve.signal("HUP");
            sleep(Duration::from_millis(250)).await;
            count(&self.ledger().reloads);
        }
    }

    /// Many concurrent callers with stored results, and many idle connections.
    pub(crate) async fn flood(&self) {
        let address = self.serve.url.trim_start_matches("http://").to_owned();
        let mut silent = Vec::new();
        for _ in 0..FLOOD_CONNECTIONS {
            silent.extend(TcpStream::connect(&address).await.ok());
        }
        let calls = (0..FLOOD_CALLS).map(|_| {
            let body = json!({"arguments": {}});
            self.place.api(Method::POST, "/tools/shop.large/call", Some(body))
        });
        for got in futures::future::join_all(calls).await {
            match got {
                Got::Answer(StatusCode::OK, _) => count(&self.ledger().calls),
                // More than the store takes in time: that is said, and the result is not promised.
                Got::Answer(StatusCode::SERVICE_UNAVAILABLE, _) => count(&self.ledger().refused),
                other => self.ledger().violation(format!("a call in a flood: {other:?}")),
            }
        }
        drop(silent);
        count(&self.ledger().floods);
    }

    /// Nothing ever reached the hidden server.
    pub(crate) fn verify_hidden(&self) {
        let calls = self.vault.stats().calls;
        if !calls.is_empty() {
            self.ledger().violation(format!("hidden tools were called: {calls:?}"));
        }
    }
}

fn yaml(shop: &ScriptedServer, vault: Option<&ScriptedServer>) -> String {
    let entry = |name: &str, url: String| {
        format!(
            "      - {{name: {name}, url: \"{url}\", mode: dynamic, required: false, default_tool_config: \
             {{max_instances: 50, timeout: 30s, max_result_bytes: 65536}}}}\n"
        )
    };
    let hidden = if vault.is_some() { ", deny_toolsets: [vault]" } else { "" };
    format!(
        "switchboard:\n  gateway: {{exposure: dynamic{hidden}}}\n  toolsets:\n    \
         - {{name: look, description: Looks, tools: [find]}}\n    \
         - {{name: buy, description: Buys, tools: [order]}}\n  toolbox:\n    max_concurrent: 100\n    mcps:\n{}{}",
        entry("shop", shop.url()),
        vault.map(|vault| entry("vault", vault.url())).unwrap_or_default(),
    )
}
