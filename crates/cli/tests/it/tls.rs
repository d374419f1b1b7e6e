//! `tls`: clients, rotation while streams are open, certificates that cannot be used.

use std::process::Command;
use std::time::Duration;

use pretty_assertions::assert_eq;
use reqwest::Version;
use serde_json::{Value, json};
use switchboard_test_support::{Tool, wait_until};

use crate::certificates::{Authority, served_subject};
use crate::support::{Home, PATIENCE, Serve, call, dynamic, server, yaml};

const TLS: &str = "  tls: {cert: cert.pem, key: key.pem}\n";

/// A home with an authority and an installed pair of it.
fn home(more: &str) -> (Home, Authority) {
    let home = Home::new(format!("switchboard:\n{more}  toolbox: {{mcps: []}}\n"));
    let authority = Authority::new(home.path());
    authority.issue("first", 30);
    authority.install("first");
    (home, authority)
}

async fn serve(home: &Home, authority: &Authority) -> Serve {
    let mut serve = home.serve().await;
    serve.http = authority.client().build().unwrap();
    serve
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

async fn until_served(serve: &Serve, subject: &str) {
    let expected = format!("subject=CN = {subject}");
    let dense = expected.replace(" = ", "=");
    wait_until(PATIENCE, async || {
        let served = served_subject(&serve.url);
        (served == expected || served == dense).then_some(())
    })
    .await;
}

#[tokio::test]
async fn clients_of_both_versions_of_http_and_the_command_line_are_served() {
    let upstream = server([Tool::echo("echo")]).await;
    let home = Home::new(yaml(&[], &[dynamic("up", &upstream.url())]) + TLS);
    let authority = Authority::new(home.path());
    authority.issue("first", 30);
    authority.install("first");
    let serve = serve(&home, &authority).await;
    assert!(serve.url.starts_with("https://127.0.0.1:"), "{}", serve.url);

    let response = serve.http.get(serve.at("/healthz")).send().await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    let old = authority.client().http1_only().build().unwrap();
    let response = old.get(serve.at("/healthz")).send().await.unwrap();
    assert_eq!(response.version(), Version::HTTP_11);
    for http in [&serve.http, &old] {
        let (status, body) = call(http, &serve.url, "up.echo", json!({"text": "x"})).await;
        assert_eq!(status, 200, "{body}");
    }
    let curl = |arguments: &[&str]| Command::new("curl").args(arguments).output().unwrap();
    let ca = authority.path("ca.pem");
    let done = curl(&["-sS", "--noproxy", "*", "--cacert", &ca, &serve.at("/healthz")]);
    assert_eq!(String::from_utf8_lossy(&done.stdout), "ok\n");

    let url = ["--url", &serve.url];
    let unknown = home.run(&[&url[..], &["tool", "list"]].concat()).expect(4).all();
    assert_says(&unknown, &["UnknownIssuer", "hint: --ca-file"]);
    let ca = ["--ca-file", &ca];
    let listed = home.run(&[&url[..], &ca, &["tool", "list"]].concat()).expect(0);
    assert_says(&listed.stdout, &["up.echo"]);
    let bridged = [&url[..], &ca, &["stdio"]].concat();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let answer = home.run_with_input(&bridged, format!("{initialize}\n")).expect(0).stdout;
    let answer: Value = serde_json::from_str(answer.trim()).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn a_request_without_tls_is_told_what_the_address_accepts() {
    let (home, authority) = home(TLS);
    let serve = serve(&home, &authority).await;
    let plain = serve.at("/healthz").replace("https://", "http://");
    let response = serve.http.get(plain).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_says(&response.text().await.unwrap(), &["this address accepts HTTPS only"]);
}

#[tokio::test]
async fn a_new_pair_is_used_without_the_end_of_open_streams_and_a_bad_one_is_refused() {
    let (home, authority) = home(TLS);
    authority.issue("second", 60);
    authority.issue("expired", -1);
    let serve = serve(&home, &authority).await;
    until_served(&serve, "first").await;
    let mut stream = serve.http.get(serve.at("/api/v1/events")).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    stream.chunk().await.unwrap();

    authority.install("second");
    until_served(&serve, "second").await;
    // Half of a pair, and then what is no pair at all.
    authority.install_file("first.pem", "cert.pem");
    serve.said("belongs to another certificate").await;
    std::fs::write(home.path().join("cert.pem"), "not PEM\n").unwrap();
    serve.said("holds no certificate").await;
    authority.install("expired");
    serve.said("has expired at").await;
    until_served(&serve, "second").await;
    let ready: Value = serve.get("/readyz").await;
    assert_says(ready["certificate"]["refused"].as_str().unwrap(), &["has expired"]);
    let url = ["--url", &serve.url, "--ca-file", &authority.path("ca.pem"), "doctor"];
    let doctor = home.run(&url).expect(1);
    assert_says(&doctor.stdout, &["FAIL certificate", "were refused", "has expired"]);
    let metrics = serve.text("/metrics").await;
    assert_says(&metrics, &["switchboard_tls_reload_failures_total 3"]);

    authority.install("first");
    until_served(&serve, "first").await;
    assert_eq!(serve.get("/readyz").await["certificate"]["refused"], Value::Null);
    // The stream of the first pair is still open, and hears of changes.
    home.rewrite(format!("switchboard:\n{TLS}  toolbox: {{mcps: [], max_concurrent: 7}}\n"));
    let heard = tokio::time::timeout(PATIENCE, stream.chunk()).await.expect("something happens");
    assert!(heard.unwrap().is_some());
}

#[tokio::test]
async fn the_files_may_be_named_anew_while_the_board_runs() {
    let (home, authority) = home(TLS);
    authority.issue("other", 30);
    let serve = serve(&home, &authority).await;
    home.rewrite("switchboard:\n  tls: {cert: other.pem, key: other.key}\n  toolbox: {mcps: []}\n");
    until_served(&serve, "other").await;
}

#[tokio::test]
async fn clients_need_a_certificate_of_the_authority_where_it_is_required() {
    for (word, is_served_without) in [("required", false), ("optional", true)] {
        let (home, authority) = home(&format!(
            "  tls: {{cert: cert.pem, key: key.pem, client_ca: ca.pem, client_certificate: {word}}}\n"
        ));
        authority.issue("agent", 30);
        let serve = serve(&home, &authority).await;
        let url = serve.at("/healthz");
        assert_eq!(serve.http.get(&url).send().await.is_ok(), is_served_without, "{word}");
        let known = authority.client().identity(authority.identity("agent")).build().unwrap();
        assert_eq!(known.get(&url).send().await.unwrap().status(), 200, "{word}");

        let stranger_home = Home::new("");
        let strangers = Authority::new(stranger_home.path());
        strangers.issue("stranger", 30);
        let stranger = authority.client().identity(strangers.identity("stranger")).build().unwrap();
        assert!(stranger.get(&url).send().await.is_err(), "{word}");

        let both = ["pem", "key"]
            .map(|end| std::fs::read_to_string(authority.path(&format!("agent.{end}"))).unwrap());
        let both = home.file("both.pem", both.concat());
        let ca = authority.path("ca.pem");
        let list = ["--url", &serve.url, "--ca-file", &ca, "tool", "list"];
        let code = home.run(&list).code;
        assert_eq!(code, Some(if is_served_without { 0 } else { 4 }), "{word}");
        home.run(&[&list[..], &["--client-certificate", both.to_str().unwrap()]].concat())
            .expect(0);
    }
}

#[test]
fn a_start_with_files_that_cannot_be_used_says_which_and_why() {
    let (home, authority) = home(TLS);
    authority.issue("second", 30);
    let start = || home.run(&["serve", "--listen", "127.0.0.1:0"]).expect(1).stderr;
    let check = |expected: &[&str]| {
        assert_says(&start(), expected);
        let doctor = home.run(&["doctor"]).expect(1).stdout;
        assert_says(&doctor, &["FAIL certificate"]);
        assert_says(&doctor, expected);
    };
    authority.install_file("second.key", "key.pem");
    check(&[
        "key.pem belongs to another certificate",
        "cert.pem",
        "hint: the certificate of the server must be the first",
    ]);
    authority.install_file("second.pem", "key.pem");
    check(&["key.pem holds no private key; it holds: CERTIFICATE"]);
    std::fs::write(
        home.path().join("key.pem"),
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    check(&["it holds: ENCRYPTED PRIVATE KEY", "hint: remove the passphrase"]);
    // A file without its line breaks, as variables and forms make it, and one that was not copied whole: no key is shown.
    let key = std::fs::read_to_string(authority.path("first.key")).unwrap();
    let secret = key.lines().nth(1).unwrap().to_owned();
    let half = key.lines().take(2).collect::<Vec<_>>().join("\n");
    for text in
        [key.replace('\n', ""), key.replace('\n', " "), half, key.replace("KEY-----\n", "KEY-----")]
    {
        std::fs::write(home.path().join("key.pem"), text).unwrap();
        let said = start();
        assert_says(&said, &["key.pem"]);
        assert!(!said.contains(&secret), "{said}");
        let bytes: Vec<_> = secret.bytes().take(9).map(|byte| byte.to_string()).collect();
        assert!(!said.contains(&bytes.join(", ")), "{said}");
    }
    authority.install("first");
    authority.install_file("first.key", "cert.pem");
    check(&["cert.pem holds no certificate; it holds: PRIVATE KEY"]);
    let cut: String = std::fs::read_to_string(authority.path("first.pem")).unwrap();
    std::fs::write(
        home.path().join("cert.pem"),
        cut.lines().take(3).collect::<Vec<_>>().join("\n"),
    )
    .unwrap();
    check(&[
        "cert.pem is not valid PEM: the line `END CERTIFICATE` at the end of a section is missing",
    ]);
    std::fs::write(
        home.path().join("cert.pem"),
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    check(&["cert.pem holds a certificate that cannot be read"]);
    std::fs::remove_file(home.path().join("cert.pem")).unwrap();
    check(&["cannot read the certificate", "cert.pem", "No such file"]);
}

#[tokio::test]
async fn an_expired_certificate_is_served_with_a_warning() {
    let (home, authority) = home(TLS);
    authority.issue("expired", -1);
    authority.install("expired");
    let serve = home.serve().await;
    serve.said("has expired at").await;
    let doctor = home.run(&["doctor"]).expect(1);
    assert_says(&doctor.stdout, &["FAIL certificate: has expired", "hint: renew"]);
    let refused =
        home.run(&["--url", &serve.url, "--ca-file", &authority.path("ca.pem"), "tool", "list"]);
    assert_says(&refused.expect(4).stderr, &["hint: its certificate has expired"]);
    // A good pair replaces it.
    authority.install("first");
    until_served(&serve, "first").await;
}

#[tokio::test]
async fn a_wide_address_needs_credentials_with_tls_too() {
    let (home, _authority) = home(TLS);
    let refused = home.run(&["serve", "--listen", "0.0.0.0:0"]).expect(1);
    assert_says(&refused.stderr, &["no credentials are configured"]);
}

#[tokio::test]
async fn a_connection_that_never_ends_its_handshake_is_closed() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (home, authority) = home(TLS);
    let serve = serve(&home, &authority).await;
    let address = serve.url.strip_prefix("https://").unwrap();
    let mut silent = tokio::net::TcpStream::connect(address).await.unwrap();
    // The first bytes of a handshake that announces more.
    silent.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1]).await.unwrap();
    let read = tokio::time::timeout(Duration::from_secs(20), silent.read(&mut [0])).await;
    assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?}");
}

#[tokio::test]
async fn a_board_that_is_told_to_stop_is_not_ready_first_and_serves_on_for_the_delay() {
    let upstream = server([Tool::echo("echo")]).await;
    let home = Home::new(yaml(&[], &[dynamic("up", &upstream.url())]));
    let mut serve = home.serve_with(&["--shutdown-delay", "2"]).await;
    assert_eq!(serve.get("/readyz").await["status"], "ready");
    serve.signal("TERM");
    let problem: Value = wait_until(PATIENCE, async || {
        let response = serve.http.get(serve.at("/readyz")).send().await.unwrap();
        (response.status() == 503).then_some(response)
    })
    .await
    .json()
    .await
    .unwrap();
    assert_says(problem["type"].as_str().unwrap(), &["stopping"]);
    let (status, body) = call(&serve.http, &serve.url, "up.echo", json!({"text": "x"})).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(serve.text("/healthz").await, "ok\n");
    assert_eq!(serve.ended().await.code(), Some(0));
}
