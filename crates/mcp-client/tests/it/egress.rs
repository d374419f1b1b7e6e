//! Tests that a connection to an attached server leads only to permitted addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use switchboard_mcp_client::{ConnectOptions, Connection};
use switchboard_model::{
    AttachedServer, ConnectError, ConnectErrorKind, EgressPolicy, EraChoice, ServerSpec,
};
use switchboard_outbound::{EgressGuard, HttpPool};
use switchboard_test_support::{ScriptedServer, Tool};
use url::Url;

fn policy(allow: &[&str], deny: &[&str]) -> EgressPolicy {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    EgressPolicy { allow: rules(allow), deny: rules(deny) }
}

/// A resolver that returns these addresses, one set for each lookup and the last one for all further lookups, and
/// counts the lookups.
fn guard(policy: EgressPolicy, answers: &[&[&str]]) -> (EgressGuard, Arc<Mutex<usize>>) {
    let asked = Arc::new(Mutex::new(0));
    let parse = |address: &&str| SocketAddr::new(address.parse::<IpAddr>().unwrap(), 0);
    let answers: Vec<Vec<SocketAddr>> =
        answers.iter().map(|answer| answer.iter().map(parse).collect()).collect();
    let counter = asked.clone();
    let lookup = move |_name: String| -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let mut asked = counter.lock().unwrap();
        let answer = answers.get(*asked).or(answers.last()).cloned().unwrap_or_default();
        *asked += 1;
        Box::pin(std::future::ready(Ok(answer)))
    };
    (EgressGuard::with_lookup(policy, Arc::new(lookup)), asked)
}

fn spec(url: &str) -> ServerSpec {
    let attached = AttachedServer::new("mine", Url::parse(url).unwrap());
    ServerSpec {
        name: attached.name.clone(),
        endpoint: attached.endpoint(),
        place: attached.place(),
        referenced: Vec::new(),
        caller_headers: Vec::new(),
        era: EraChoice::Auto,
        connect_timeout: std::time::Duration::from_secs(5),
        sharing: switchboard_model::Sharing::Shared,
        egress: None,
    }
}

async fn open(guard: EgressGuard, url: &str) -> Result<Arc<Connection>, ConnectError> {
    let options = ConnectOptions { http: HttpPool::guarded_by(guard), ..Default::default() };
    Connection::open(&spec(url), &options).await.map(|(connection, _)| connection)
}

async fn server() -> ScriptedServer {
    ScriptedServer::builder().tools([Tool::echo("echo")]).without_sessions().start().await
}

/// A host name that resolves to this machine, with the port of a server on it.
fn named(server: &ScriptedServer) -> String {
    format!("http://mcp.example:{}/mcp", server.port())
}

/// A listener that knows whether it was connected to.
struct Trap(std::net::TcpListener);

impl Trap {
    fn new() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    fn was_dialled(&self) -> bool {
        self.0.accept().is_ok()
    }
}

#[tokio::test]
async fn a_name_leads_only_where_it_may_and_nothing_is_sent_elsewhere() {
    let trap = Trap::new();
    let (refusing, asked) = guard(EgressPolicy::default(), &[&["127.0.0.1"]]);
    let url = format!("http://mcp.example:{}/mcp", trap.port());
    let error = open(refusing, &url).await.unwrap_err();
    assert_eq!(error.kind, ConnectErrorKind::Forbidden);
    assert_eq!(
        error.message,
        "the egress check refuses 'mcp.example': it resolves to no address that a session may connect to"
    );
    assert!(!error.message.contains("127.0.0.1"), "who asks must not learn the network");
    assert_eq!(
        error.hint().as_deref(),
        Some("the operator of this board can add it to `security.egress.allow`")
    );
    assert!(*asked.lock().unwrap() > 0);
    assert!(!trap.was_dialled());

    let server = server().await;
    for allowed in ["127.0.0.0/8", "mcp.example", "*.example"] {
        let (guard, _) = guard(policy(&[allowed], &[]), &[&["127.0.0.1"]]);
        open(guard, &named(&server)).await.unwrap().close().await;
    }
}

#[tokio::test]
async fn of_several_addresses_only_those_are_dialled_that_may_be() {
    let server = server().await;
    let (guard, _) = guard(policy(&["127.0.0.1"], &[]), &[&["127.0.0.2", "10.0.0.1", "127.0.0.1"]]);
    open(guard, &named(&server)).await.unwrap().close().await;
}

/// The first lookup returns a permitted address, later ones return others: the checked address is dialled, and each
/// later connection is checked again. Also where a configured server would be reached over the loopback client.
#[tokio::test]
async fn a_name_that_changes_its_mind_gains_nothing() {
    for host in ["mcp.example", "mcp.localhost"] {
        let server = server().await;
        let allowed = policy(&["127.0.0.1"], &[]);
        let (guard, asked) = guard(allowed, &[&["127.0.0.1"], &["127.0.0.2"]]);
        let url = format!("http://{host}:{}/mcp", server.port());
        let connection = open(guard, &url).await.unwrap();
        assert_eq!(*asked.lock().unwrap(), 1, "one connection, one lookup");
        server.restart_on_same_port().await;
        let error = connection.list_tools().await.unwrap_err();
        assert_eq!(error.kind, ConnectErrorKind::Forbidden, "{error}");
        assert!(*asked.lock().unwrap() >= 2);
        connection.close().await;
    }
}

#[tokio::test]
async fn an_address_that_is_written_out_is_checked_without_a_lookup() {
    let trap = Trap::new();
    let port = trap.port();
    for host in ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"] {
        let (guard, asked) = guard(EgressPolicy::default(), &[&["1.1.1.1"]]);
        let error = open(guard, &format!("http://{host}:{port}/mcp")).await.unwrap_err();
        assert_eq!(error.kind, ConnectErrorKind::Forbidden, "{host}: {error}");
        assert_eq!(*asked.lock().unwrap(), 0, "{host}");
    }
    let (denying, _) = guard(policy(&[], &["mcp.example"]), &[&["1.1.1.1"]]);
    let error = open(denying, "http://mcp.example/mcp").await.unwrap_err();
    assert_eq!(
        error.message,
        "the egress check refuses mcp.example: `security.egress.deny` names it"
    );
    assert!(!trap.was_dialled());
}
