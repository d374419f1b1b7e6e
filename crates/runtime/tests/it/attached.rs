//! Tests of attached servers: who sees their tools, which addresses are permitted, attaching and detaching.

use std::sync::Arc;

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::{
    AttachedServer, BUILT_IN_LIMITS, CallError, CallErrorKind, Caller, Face, HttpTransport, Secret,
    ServerName, ServerState,
};
use switchboard_runtime::{
    AttachError, Board, ClientProfile, ForwardedContext, MAX_SERVERS_PER_OWNER, PassFailure,
    RawCall, RawReport, ToolChoice, UpstreamRequest,
};
use switchboard_test_support::{Fault, Reply, ScriptedServer, Stage, Tool, free_port};
use url::Url;

use crate::support::{
    Logs, PATIENCE, board, board_on, dynamic, end, failure, names, plan, records, revision, server,
    text, until, yaml,
};

/// What an echoing tool makes of the arguments of `call_choice`.
const ECHOED: &str = r#"\"n\":1"#;

/// A configuration that lets sessions use what is on this machine.
fn open(servers: &[String]) -> String {
    with_security(servers, "egress: {allow: [127.0.0.0/8, \"::1\"]}")
}

fn with_security(servers: &[String], security: &str) -> String {
    format!("{}  security: {{{security}}}\n", yaml(&[], servers))
}

fn spec(name: &str, server: &ScriptedServer) -> AttachedServer {
    spec_at(name, &server.url())
}

fn spec_at(name: &str, url: &str) -> AttachedServer {
    AttachedServer::new(name, Url::parse(url).unwrap())
}

/// Attaches a server and waits until it has been connected.
async fn attach(board: &Board, owner: &str, spec: AttachedServer) -> ServerName {
    let alias = spec.name.clone();
    let name = board.attach_server(owner, spec).await.unwrap();
    until(|| state(board, owner, alias.as_str()) == Some(ServerState::Ready)).await;
    until(|| board.catalog().owned_by(owner).iter().any(|tool| tool.name.server() == &name)).await;
    name
}

fn state(board: &Board, owner: &str, alias: &str) -> Option<ServerState> {
    let own = board.attached(owner);
    own.iter().find(|(spec, _)| spec.name.as_str() == alias).map(|(_, status)| status.state)
}

/// `alias.tool` of all that an owner has.
fn owned(board: &Board, owner: &str) -> Vec<String> {
    let catalog = board.catalog();
    let shown = catalog.owned_by(owner).iter().map(|tool| (tool.alias.clone(), tool));
    shown.map(|(alias, tool)| format!("{}.{}", alias.unwrap(), tool.name.tool())).collect()
}

async fn call_owned(board: &Board, owner: &str, name: &str) -> RawReport {
    let catalog = board.catalog();
    let tool = ToolChoice::from(&**catalog.resolve_for(owner, name).unwrap());
    call_choice(board, tool).await
}

async fn call_choice(board: &Board, tool: ToolChoice) -> RawReport {
    let call = RawCall {
        check: None,
        tool,
        arguments: Some(r#"{"n":1}"#.into()),
        caller: Arc::new(Caller::local(Face::Mcp)),
        requested: None,
        passing: ForwardedContext::default(),
        events: None,
        conversation: None,
    };
    board.call_raw(call).await
}

#[track_caller]
fn said(report: &RawReport) -> &str {
    match &report.result {
        Ok(answer) => answer.as_str(),
        Err(failed) => panic!("{}", failed.error),
    }
}

#[track_caller]
fn failed(report: RawReport) -> CallError {
    report
        .result
        .map(|answer| answer.as_str().to_owned())
        .expect_err("this should have failed")
        .error
}

fn tool_saying(name: &str, words: &str) -> Tool {
    Tool::new(name).replies(Reply::Text(words.into()))
}

#[tokio::test]
async fn the_tools_of_a_session_appear_in_one_step_and_are_its_own() {
    let crm = server([Tool::echo("search")]).await;
    let first = server([tool_saying("search", "of the first"), Tool::echo("more")]).await;
    let second = server([tool_saying("search", "of the second")]).await;
    let board = board(&open(&[dynamic("crm", &crm)])).await;
    let start = revision(&board);
    let own = attach(&board, "s1", spec("mine", &first)).await;
    assert_eq!(revision(&board), start + 1);
    attach(&board, "s2", spec("mine", &second)).await;
    assert_eq!(revision(&board), start + 2);

    assert_eq!(owned(&board, "s1"), ["mine.search", "mine.more"]);
    assert_eq!(owned(&board, "s2"), ["mine.search"]);
    assert_eq!(owned(&board, "s3"), Vec::<String>::new());
    assert!(said(&call_owned(&board, "s1", "search").await).contains("of the first"));
    assert!(said(&call_owned(&board, "s2", "mine.search").await).contains("of the second"));
    let tool = board.catalog().owned_by("s1")[0].clone();
    assert_eq!((tool.limits, tool.owner.as_deref()), (BUILT_IN_LIMITS, Some("s1")));

    // Everybody else sees and reaches what was there before.
    assert_eq!(names(&board), ["crm.search"]);
    assert_eq!(text(&board, "search", json!({"n": 1})).await, r#"{"n":1}"#);
    for name in ["more", "mine.more", "mine.search", tool.name.as_str(), "mine", own.as_str()] {
        let error = failure(&board, name, json!({})).await;
        assert_eq!(error.kind, CallErrorKind::UnknownTool, "{name}");
        assert!(!error.hint().unwrap_or_default().contains('@'), "{name}");
    }
    for choice in [
        ToolChoice::Exact(tool.name.clone()),
        ToolChoice::Owned { owner: "s2".into(), name: tool.name.clone() },
        ToolChoice::Owned { owner: "".into(), name: tool.name.clone() },
    ] {
        assert_eq!(failed(call_choice(&board, choice).await).kind, CallErrorKind::UnknownTool);
    }
    assert!(board.servers().iter().all(|(plan, _)| plan.spec.name.as_str() == "crm"));
    assert!(board.snapshot().offers().iter().all(|(server, _)| server.as_str() == "crm"));
    let caller = Caller::local(Face::Mcp);
    let ping = || UpstreamRequest { method: "ping", ..UpstreamRequest::default() };
    let of = |session: Option<&str>| ClientProfile {
        session: session.map(Into::into),
        ..ClientProfile::default()
    };
    for session in [None, Some("s2"), Some("")] {
        let passed = board.pass(&own, &caller, &of(session), ping(), None).await;
        assert!(matches!(passed, Err(PassFailure::Unavailable(_))), "{session:?}");
    }
    assert!(board.pass(&own, &caller, &of(Some("s1")), ping(), None).await.is_ok());
    end(&board).await;
}

#[tokio::test]
async fn entries_of_the_file_are_not_about_the_tools_of_a_session() {
    let own = server([Tool::echo("search")]).await;
    let config = open(&[]).replace(
        "tools: []",
        "tools: [{name: search, enabled: false}, {name: x, max_instances: 1}]",
    );
    let board = board(&config).await;
    attach(&board, "s1", spec("mine", &own)).await;
    assert_eq!(owned(&board, "s1"), ["mine.search"]);
    end(&board).await;
}

#[tokio::test]
async fn every_transport_and_era_serves_and_credentials_arrive_and_are_not_logged() {
    let logs = Logs::listen();
    let builder = || ScriptedServer::builder().tools([Tool::echo("t")]).requires_bearer("s3cret-b");
    let rows = [
        (builder().legacy().start().await, HttpTransport::StreamableHttp),
        (builder().modern().start().await, HttpTransport::StreamableHttp),
        (builder().sse_transport().start().await, HttpTransport::Sse),
    ];
    let board = board(&open(&[])).await;
    for (at, (server, transport)) in rows.iter().enumerate() {
        let (name, url) = (format!("s{at}"), format!("{}?key=s3cret-q", server.url()));
        let wrong = AttachedServer { transport: *transport, ..spec_at(&name, &url) };
        board.attach_server("owner", wrong.clone()).await.unwrap();
        until(|| state(&board, "owner", &name) == Some(ServerState::Unavailable)).await;
        let headers = BTreeMap::from([("X-Key".to_owned(), Secret::new("s3cret-h"))]);
        let right = AttachedServer { bearer: Some(Secret::new("s3cret-b")), headers, ..wrong };
        attach(&board, "owner", right).await;
        let report = call_owned(&board, "owner", &format!("{name}.t")).await;
        assert!(said(&report).contains(ECHOED), "{report:?}");
        let requests = server.stats().requests;
        let last = requests.iter().rev().find(|seen| seen.method.as_deref() == Some("tools/call"));
        assert_eq!(last.unwrap().headers["x-key"], "s3cret-h");
    }
    assert!(logs.lines().iter().any(|line| line.message.starts_with("Connecting to MCP server")));
    logs.assert_nothing_of("s3cret");
    logs.assert_nothing_of("owner");
    end(&board).await;
}

#[tokio::test]
async fn what_is_not_public_is_refused_until_the_file_allows_it() {
    let server = server([Tool::echo("t")]).await;
    let board = board(&yaml(&[], &[])).await;
    let refusal = board.attach_server("s1", spec("mine", &server)).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the egress check refuses the address of server 'mine', 127.0.0.1: it is an address of the machine itself"
    );
    let way_out = "the operator of this board can add it to `security.egress.allow`";
    assert_eq!(refusal.hint(), Some(way_out));
    assert_eq!(board.attached("s1").len(), 0);

    // This name is known to be the machine itself before it is looked up.
    let named = format!("http://localhost:{}/mcp", server.port());
    let refusal = board.attach_server("s1", spec_at("mine", &named)).await.unwrap_err();
    assert_eq!(refusal.hint(), Some(way_out));
    assert_eq!((board.attached("s1").len(), server.stats().requests.len()), (0, 0));

    // The file says so, then it says no more: nobody dials what is looked up.
    board.apply(plan(&open(&[]))).await.unwrap();
    attach(&board, "s1", spec_at("mine", &named)).await;
    board.apply(plan(&yaml(&[], &[]))).await.unwrap();
    until(|| state(&board, "s1", "mine") == Some(ServerState::Unavailable)).await;
    let error = board.attached("s1")[0].1.error.clone().unwrap();
    assert!(error.message.starts_with("the egress check refuses"), "{}", error.message);
    assert_eq!(error.hint().as_deref(), Some(way_out));

    // The file says so again, and it is connected without anybody doing anything.
    board.apply(plan(&open(&[]))).await.unwrap();
    until(|| state(&board, "s1", "mine") == Some(ServerState::Ready)).await;
    assert!(said(&call_owned(&board, "s1", "t").await).contains(ECHOED));

    // And back: its tools stay declared and say why they cannot be used.
    let denied = with_security(&[], "egress: {allow: [127.0.0.0/8], deny: [localhost]}");
    board.apply(plan(&denied)).await.unwrap();
    until(|| state(&board, "s1", "mine") == Some(ServerState::Unavailable)).await;
    let error = failed(call_owned(&board, "s1", "t").await);
    assert_eq!(
        error.message,
        "tool 't' of MCP server 'mine' is unavailable: \
         the egress check refuses localhost: `security.egress.deny` names it"
    );
    assert_eq!(owned(&board, "s1"), ["mine.t"]);
    until(|| server.open_sessions() == 0).await;
    end(&board).await;
}

#[tokio::test]
async fn a_redirect_leads_nowhere_else() {
    let (elsewhere, own) = (server([Tool::echo("t")]).await, server([Tool::echo("t")]).await);
    let board = board(&open(&[])).await;
    // Also to a place that may be reached by itself: the check of one address is none of another.
    for place in [elsewhere.url(), "http://169.254.169.254/latest".into(), "http://[::1]/".into()] {
        own.set_fault(Fault::Redirect(Stage::Any, place)).await;
        board.attach_server("s1", spec("mine", &own)).await.unwrap();
        until(|| state(&board, "s1", "mine") == Some(ServerState::Unavailable)).await;
        let error = board.attached("s1")[0].1.error.clone().unwrap();
        assert!(error.message.starts_with("HTTP 307"), "{error}");
        assert!(board.detach_server("s1", &ServerName::new("mine")).await);
    }
    assert_eq!(elsewhere.stats().requests.len(), 0);
    end(&board).await;
}

#[tokio::test]
async fn a_reload_keeps_what_sessions_brought() {
    let (crm, own) = (server([Tool::echo("a")]).await, server([Tool::echo("t")]).await);
    let board = board(&open(&[])).await;
    attach(&board, "s1", spec("mine", &own)).await;
    let before = revision(&board);
    board.apply(plan(&open(&[dynamic("mine", &crm)]))).await.unwrap();
    assert_eq!((names(&board), revision(&board)), (vec!["mine.a".to_owned()], before + 1));
    assert_eq!(owned(&board, "s1"), ["mine.t"]);
    assert!(said(&call_owned(&board, "s1", "t").await).contains(ECHOED));
    board.apply(plan(&open(&[]))).await.unwrap();
    assert_eq!((owned(&board, "s1"), own.stats().initialize_count), (vec!["mine.t".into()], 1));
    end(&board).await;
}

#[tokio::test]
async fn the_same_again_changes_nothing_and_another_replaces() {
    let first = ScriptedServer::builder().tools([Tool::echo("t")]).requires_bearer("new-token");
    let (first, second) = (first.start().await, server([Tool::echo("u")]).await);
    let board = board(&open(&[])).await;
    let with =
        |token: &str| AttachedServer { bearer: Some(Secret::new(token)), ..spec("mine", &first) };
    let name = attach(&board, "s1", with("new-token")).await;
    let before = revision(&board);
    assert_eq!(board.attach_server("s1", with("new-token")).await.unwrap(), name);
    assert_eq!(state(&board, "s1", "mine"), Some(ServerState::Ready), "nothing is connected anew");
    assert_eq!((revision(&board), first.stats().initialize_count), (before, 1));

    // Other credentials for the same place: the tools stay declared meanwhile, under the same names.
    assert_eq!(board.attach_server("s1", with("old-token")).await.unwrap(), name);
    until(|| state(&board, "s1", "mine") == Some(ServerState::Unavailable)).await;
    assert_eq!((owned(&board, "s1"), revision(&board)), (vec!["mine.t".into()], before));
    let error = failed(call_owned(&board, "s1", "t").await);
    assert_eq!(error.kind, CallErrorKind::Unavailable);
    assert!(error.message.starts_with("tool 't' of MCP server 'mine' is unavailable: "), "{error}");
    assert!(!error.message.contains("old-token") && !error.message.contains('@'), "{error}");

    // Another place has other tools; those of the first are gone at once.
    let nobody = spec_at("mine", &format!("http://127.0.0.1:{}/mcp", free_port()));
    assert_eq!(board.attach_server("s1", nobody).await.unwrap(), name);
    assert_eq!((owned(&board, "s1").len(), revision(&board)), (0, before + 1));
    assert_eq!(board.attach_server("s1", spec("mine", &second)).await.unwrap(), name);
    until(|| owned(&board, "s1") == ["mine.u"]).await;
    assert_eq!(board.attached("s1").len(), 1);
    until(|| first.open_sessions() == 0 && first.open_streams() == 0).await;
    end(&board).await;
}

#[tokio::test]
async fn what_is_detached_is_gone_in_one_step_with_its_connection() {
    let servers = [server([Tool::echo("a")]).await, server([Tool::echo("b")]).await];
    let other = server([Tool::echo("c")]).await;
    let board = board(&open(&[])).await;
    attach(&board, "s1", spec("x", &servers[0])).await;
    attach(&board, "s1", spec("y", &servers[1])).await;
    attach(&board, "s2", spec("x", &other)).await;
    let before = revision(&board);
    let others = board.catalog().key_for(Some("s2"));

    assert!(!board.detach_server("s1", &ServerName::new("z")).await);
    assert!(!board.detach_server("s3", &ServerName::new("x")).await);
    assert_eq!((revision(&board), board.detach_all("s3").await), (before, 0));
    assert!(board.detach_server("s1", &ServerName::new("x")).await);
    assert_eq!((owned(&board, "s1"), revision(&board)), (vec!["y.b".into()], before + 1));
    until(|| servers[0].open_sessions() == 0 && servers[0].open_streams() == 0).await;

    attach(&board, "s1", spec("x", &servers[0])).await;
    assert_eq!(owned(&board, "s1"), ["y.b", "x.a"], "what comes back comes last");
    assert_eq!(board.detach_all("s1").await, 2);
    assert_eq!((board.attached("s1").len(), revision(&board)), (0, before + 3));
    for server in &servers {
        until(|| server.open_sessions() == 0 && server.open_streams() == 0).await;
    }
    assert_eq!(board.catalog().key_for(Some("s2")), others, "nobody else saw anything");
    assert!(said(&call_owned(&board, "s2", "c").await).contains(ECHOED));
    assert_eq!(other.stats().initialize_count, 1);
    end(&board).await;
}

#[tokio::test]
async fn a_call_that_runs_outlives_its_server() {
    let own = server([Tool::echo("slow").sleeps(400)]).await;
    let board = board(&open(&[])).await;
    attach(&board, "s1", spec("mine", &own)).await;
    let calling = call_owned(&board, "s1", "slow");
    let leaving = async {
        until(|| own.stats().running_calls == 1).await;
        board.detach_all("s1").await
    };
    let (report, count) = tokio::join!(calling, leaving);
    assert_eq!((report.result.is_ok(), count), (true, 1));
    until(|| own.open_sessions() == 0).await;
    end(&board).await;
}

#[tokio::test]
async fn there_is_room_for_so_many() {
    let own = server([Tool::echo("t")]).await;
    let config = |most: usize| format!("{}  gateway: {{max_session_servers: {most}}}\n", open(&[]));
    let board = board(&config(MAX_SERVERS_PER_OWNER + 1)).await;
    for at in 0..MAX_SERVERS_PER_OWNER {
        board.attach_server("s1", spec(&format!("n{at}"), &own)).await.unwrap();
    }
    let error = board.attach_server("s1", spec("more", &own)).await.unwrap_err();
    assert_eq!(error, AttachError::TooManyOfOwner { limit: MAX_SERVERS_PER_OWNER });
    assert!(error.is_about_room());
    board.attach_server("s1", spec("n0", &own)).await.unwrap();
    board.attach_server("s2", spec("n0", &own)).await.unwrap();
    let error = board.attach_server("s2", spec("n1", &own)).await.unwrap_err();
    assert_eq!(error.to_string(), "all sessions together have 17 servers of their own already");
    assert_eq!(error.hint(), Some("the operator can raise `gateway.max_session_servers`"));
    assert!(board.detach_server("s1", &ServerName::new("n3")).await);
    board.attach_server("s2", spec("n1", &own)).await.unwrap();

    // Fewer from now on: nobody loses what it has.
    board.apply(plan(&config(0))).await.unwrap();
    assert_eq!((board.attached("s1").len(), board.attached("s2").len()), (15, 2));
    let error = board.attach_server("s3", spec("n0", &own)).await.unwrap_err();
    assert_eq!(error, AttachError::TooMany { limit: 0 });
    end(&board).await;
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for_and_one_that_is_lost_keeps_its_tools() {
    let own = server([Tool::echo("t")]).await;
    own.stop().await;
    let board = board(&open(&[])).await;
    let before = revision(&board);
    board.attach_server("s1", spec("mine", &own)).await.unwrap();
    until(|| state(&board, "s1", "mine") == Some(ServerState::Unavailable)).await;
    assert_eq!((owned(&board, "s1").len(), revision(&board)), (0, before));
    own.restart_on_same_port().await;
    until(|| owned(&board, "s1") == ["mine.t"]).await;
    assert_eq!(revision(&board), before + 1);

    own.stop().await;
    board.refresh();
    until(|| state(&board, "s1", "mine") == Some(ServerState::Unavailable)).await;
    let error = failed(call_owned(&board, "s1", "t").await);
    assert_eq!(
        error.hint().as_deref(),
        Some("the server is being reconnected; the session shows how it is doing")
    );
    own.restart_on_same_port().await;
    until(|| state(&board, "s1", "mine") == Some(ServerState::Ready)).await;
    assert_eq!((owned(&board, "s1"), revision(&board)), (vec!["mine.t".into()], before + 1));
    until(|| own.open_streams() > 0).await;
    own.set_tools_and_notify([Tool::echo("t"), Tool::echo("u")]).await;
    until(|| owned(&board, "s1") == ["mine.t", "mine.u"]).await;
    assert_eq!(revision(&board), before + 2);
    end(&board).await;
}

#[tokio::test]
async fn a_server_that_connects_does_not_wait_for_another_one_of_its_session() {
    let good = server([Tool::echo("t")]).await;
    let silent = ScriptedServer::builder().fault(Fault::Hang(Stage::Any)).start().await;
    let board = board(&open(&[])).await;
    board.attach_server("s1", spec("silent", &silent)).await.unwrap();
    board.attach_server("s1", spec("good", &good)).await.unwrap();
    let settled = board.attached_settled("s1", |name| name.as_str() == "good");
    // The silent one is given up after its `connect_timeout` of 30 seconds.
    tokio::time::timeout(PATIENCE, settled).await.expect("waits for no other server");
    assert_eq!(owned(&board, "s1"), ["good.t"]);
    assert_eq!(state(&board, "s1", "silent"), Some(ServerState::Connecting));
    end(&board).await;
}

#[tokio::test]
async fn a_list_without_end_is_not_taken() {
    let own = ScriptedServer::builder().pages(101).tools_per_page(10).start().await;
    let board = board(&open(&[])).await;
    board.attach_server("s1", spec("mine", &own)).await.unwrap();
    until(|| state(&board, "s1", "mine") == Some(ServerState::Unavailable)).await;
    let error = board.attached("s1")[0].1.error.clone().unwrap();
    assert_eq!(error.message, "the server lists more than 1000 tools");
    end(&board).await;
}

#[tokio::test]
async fn nothing_of_it_is_remembered_or_counted_by_name() {
    let metrics = switchboard_telemetry::install_metrics();
    let home = tempfile::tempdir().unwrap();
    let own = server([Tool::echo("unheard_of")]).await;
    let first = board_on(home.path(), switchboard_runtime::Memory::Keep, &open(&[])).await;
    let name = attach(&first, "s1", spec("mine", &own)).await;
    assert!(said(&call_owned(&first, "s1", "mine.unheard_of").await).contains(ECHOED));
    let last = revision(&first);
    assert_eq!(first.store().remembered_tools().await.unwrap().len(), 0);
    let page = metrics.render();
    assert!(page.contains(r#"server="@session",tool="@session",outcome="ok""#), "{page}");
    for word in ["unheard_of", "mine", name.as_str()] {
        assert!(!page.contains(word), "{word} in {page}");
    }
    let record = &records(&first, 1).await[0];
    assert_eq!(record.tool.as_ref().map(|tool| tool.server().clone()), Some(name.clone()));
    end(&first).await;
    until(|| own.open_sessions() == 0 && own.open_streams() == 0).await;
    assert_eq!(first.attach_server("s1", spec("mine", &own)).await, Err(AttachError::ShuttingDown));

    // The next run knows nothing of it, and gives it the same name when it comes again.
    let second = board_on(home.path(), switchboard_runtime::Memory::Keep, &open(&[])).await;
    assert_eq!((second.attached("s1").len(), owned(&second, "s1").len()), (0, 0));
    assert!(revision(&second) > last);
    assert_eq!(attach(&second, "s1", spec("mine", &own)).await, name);
    end(&second).await;
}
