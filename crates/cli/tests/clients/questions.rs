//! Elicitation by tools of a real `FastMCP` server: real clients give the same answers directly and through the
//! program.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{peers, wait_until};

use crate::client::{Place, Script};
use crate::program;
use crate::support::{Home, dynamic, stdio, with, yaml};

/// Starting Python takes long on a busy machine.
const LONGEST_START: Duration = Duration::from_mins(1);

/// The server over HTTP. Dropping it ends it.
struct Asking {
    child: Child,
    url: String,
}

impl Asking {
    async fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(peers::python())
            .arg(peers::script("asking_server.py"))
            .args(["http", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let address = format!("127.0.0.1:{port}");
        wait_until(LONGEST_START, async || tokio::net::TcpStream::connect(&address).await.ok())
            .await;
        Self { child, url: format!("http://{address}/mcp") }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn child() -> String {
    stdio(
        "asking",
        &peers::python(),
        &[peers::script("asking_server.py").to_str().unwrap(), "stdio"],
    )
}

async fn saw(script: &Script, place: Place) -> Value {
    script.start(&place).result().await
}

/// What a client sees through the program; each tool that returned something directly must return the same.
#[track_caller]
fn check(directly: &Value, through: &Value) {
    for (tool, text) in directly["returned"].as_object().unwrap() {
        if !text.is_null() {
            assert_eq!(&through["returned"][tool], text, "{tool}: {through}");
        }
    }
    assert_eq!(through["progress"], directly["progress"], "{through}");
    for log in directly["logs"].as_array().unwrap() {
        assert!(through["logs"].as_array().unwrap().contains(log), "{through}");
    }
}

async fn through_both(script: Script) -> (Value, Value) {
    let asking = Asking::start().await;
    let directly = saw(&script, Place::Http(asking.url.clone())).await;
    let home = Home::new(yaml(&[], &[dynamic("asking", &asking.url)]));
    let serve = home.serve().await;
    let over_http = saw(&script, Place::Http(serve.at("/mcp"))).await;
    check(&directly, &over_http);
    let home = Home::new(yaml(&[], &[child()]));
    let from_child = saw(&script, program(&home, &["stdio"])).await;
    check(&directly, &from_child);
    (directly, over_http)
}

#[tokio::test]
async fn a_session_of_the_typescript_sdk_is_asked() {
    let (directly, through) = through_both(Script::node("questions.mjs", "legacy")).await;
    let returned = json!({"ask": "accept: Ada", "ask_by_result": null, "sample": "something",
        "roots": "file:///home/ada", "talk": "done"});
    assert_eq!(directly["returned"], returned);
    assert_eq!(through["returned"]["ask_by_result"], "told: Ada", "more than directly");
}

#[tokio::test]
async fn a_session_of_the_python_sdk_is_asked() {
    let (directly, through) = through_both(Script::python("questions.py", "legacy")).await;
    assert_eq!(directly["returned"]["ask"], "accept: Ada");
    assert_eq!(through["returned"]["ask_by_result"], "told: Ada", "more than directly");
}

#[tokio::test]
async fn a_client_without_a_session_is_asked() {
    let (directly, _) = through_both(Script::python("questions.py", "auto")).await;
    let returned = json!({"ask": null, "ask_by_result": "told: Ada", "sample": null, "roots": null,
        "talk": "done"});
    assert_eq!(directly["returned"], returned);
}

/// The server asks for the roots when its connection begins, and again when they have changed.
#[tokio::test]
async fn a_process_of_its_own_has_the_roots_of_its_client() {
    let script = Script::node("roots.mjs", "legacy");
    let (server, place) = (peers::npm_bin("mcp-server-filesystem"), "/tmp");
    let allowed = json!({"before": ["/usr"], "after": ["/var"]});
    let command = [server.to_str().unwrap(), place].map(str::to_owned);
    assert_eq!(saw(&script, Place::Program(command.into())).await, allowed);
    let own = with(&stdio("files", &server, &[place]), "process: per_session");
    let home = Home::new(yaml(&[], &[own]));
    assert_eq!(saw(&script, program(&home, &["stdio"])).await, allowed);
    let serve = home.serve().await;
    assert_eq!(saw(&script, Place::Http(serve.at("/mcp"))).await, allowed);
}
