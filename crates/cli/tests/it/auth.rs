//! `auth`: signing in to a server, the messages before and after, and secrets that are never shown.

use std::io::{BufRead as _, BufReader, Read as _};

use switchboard_test_support::{CODE, FakeAuthServer, OWN_CLIENT, wait_until};

use crate::support::{Home, PATIENCE};

fn home(office: &FakeAuthServer, more: &str) -> Home {
    with_oauth(office, "", more)
}

fn with_oauth(office: &FakeAuthServer, oauth: &str, more: &str) -> Home {
    let url = office.url();
    Home::new(format!(
        "switchboard:\n  toolbox:\n    mcps:\n      - {{name: office, url: \"{url}\", mode: dynamic, \
         default_tool_config: {{}}, auth: {{oauth: {{{oauth}}}}}{more}}}\n"
    ))
}

/// Signs in; gives back everything that the program wrote.
pub(crate) async fn login(home: &Home, flags: &[&str]) -> String {
    let arguments = [&["auth", "login", "office", "--no-browser"], flags].concat();
    let mut child = home.command(&arguments).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut address = String::new();
    stdout.read_line(&mut address).unwrap();
    let page = reqwest::get(address.trim()).await.unwrap();
    assert!(page.status().is_success());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_are_encrypted_with_the_store_key_and_locked_without_it() {
    let office = FakeAuthServer::open().await;
    let url = office.url();
    let home = Home::new(format!(
        "switchboard:\n  security: {{store_key: '${{KEY}}'}}\n  toolbox:\n    mcps:\n      - {{name: office, url: \"{url}\", \
         mode: dynamic, default_tool_config: {{}}, auth: {{oauth: {{}}}}}}\n"
    ))
    .with_variable("KEY", "0a".repeat(32));
    login(&home, &[]).await;
    let status = home.line("auth status --json").expect(0).json();
    assert_eq!(status["servers"][0]["is_encrypted"], true);
    let doctor = home.line("doctor").expect(0);
    assert!(doctor.stdout.contains("sign-ins: encrypted"), "{}", doctor.stdout);

    let home = home.with_variable("KEY", "0b".repeat(32));
    assert_eq!(state(&home), "locked");
    let locked = home.line("auth status").expect(0);
    assert!(locked.stderr.contains("a key that is not configured"), "{}", locked.stderr);
    assert!(home.line("doctor").expect(1).stdout.contains("`security.previous_store_keys`"));
    home.line("auth login office --no-browser").expect(4);
    let home = home.with_variable("KEY", "0a".repeat(32));
    assert_eq!(state(&home), "active", "nothing was overwritten");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_board_that_others_reach_needs_a_store_key_for_sign_ins() {
    let office = FakeAuthServer::open().await;
    let home = home(&office, "");
    home.line("key add somebody").expect(0);
    let refused = home.line("serve --listen 0.0.0.0:0").expect(1);
    assert!(refused.stderr.contains("would be kept in clear text"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`security.store_key`"), "{}", refused.stderr);
}

fn state(home: &Home) -> String {
    let status = home.line("auth status --json").expect(0).json();
    status["servers"][0]["state"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_server_keeps_the_start_until_somebody_signed_in() {
    let office = FakeAuthServer::open().await;
    let home = home(&office, "");
    let refused = home.line("check --connect").expect(1);
    let expected = format!(
        "error: Failed to connect to MCP server 'office' at {}\n\
         Error: needs sign-in: run `switchboard auth login office`\n\
         Hint: it opens the server's sign-in page in a browser\n",
        office.url()
    );
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    assert_eq!(state(&home), "needs_sign_in");

    let said = login(&home, &[]).await;
    assert!(said.contains(&format!("signed in at 'office' by {}", office.issuer())), "{said}");
    assert_eq!(state(&home), "active");
    // Each command is another process.
    for line in ["check --connect", "server test office", "tool call greet", "doctor"] {
        home.line(line).expect(0);
    }
    assert_eq!(home.line("tool call greet").expect(0).stdout.trim(), "hello");
    assert_eq!((office.signed_in(), office.refreshed()), (1, 0));

    assert_eq!(home.line("auth logout office").expect(0).stdout, "office: signed out\n");
    assert_eq!(home.line("auth logout office").expect(0).stdout, "office: was not signed in\n");
    assert_eq!(state(&home), "needs_sign_in");
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_codes_nor_tokens_are_logged_however_much_is_asked_for() {
    let office = FakeAuthServer::open().await;
    let home = home(&office, "").with_variable("RUST_LOG", "trace");
    let mut said = login(&home, &["-vvv"]).await;
    office.revoke_access();
    let called = home.line("tool call greet -vvv").expect(0);
    assert_eq!(office.refreshed(), 1);
    said.push_str(&called.stderr);
    let status = home.line("auth status -vvv").expect(0);
    said.push_str(&(status.stdout + &status.stderr));
    assert!(said.contains("token renewed"), "{said}");
    for secret in [CODE, "access-1", "access-2", "refresh-1", "refresh-2", "s3cret-client"] {
        assert!(!said.contains(secret), "{secret} in\n{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_board_connects_by_itself_after_a_sign_in() {
    let office = FakeAuthServer::open().await;
    let home = home(&office, ", required: false");
    let serving = home.serve().await;
    let list = || home.line(&format!("server list --url {}", serving.url));
    let before = list().expect(0);
    assert!(
        before.stderr.contains("office: needs sign-in: run `switchboard auth login office`"),
        "{}",
        before.stderr
    );
    login(&home, &[]).await;
    wait_until(PATIENCE, async || list().stdout.contains("ready").then_some(())).await;
}

#[test]
fn what_cannot_be_signed_in_at_is_said() {
    let home = Home::new(
        "switchboard:\n  toolbox:\n    mcps:\n      - {name: plain, url: \"http://127.0.0.1:1\", mode: dynamic, \
         default_tool_config: {}}\n",
    );
    let unknown = home.line("auth login nobody").expect(2);
    assert!(unknown.stderr.contains("no server 'nobody' is configured"), "{}", unknown.stderr);
    let plain = home.line("auth login plain").expect(4);
    assert!(
        plain.stderr.contains("no sign-in is configured for the server 'plain'"),
        "{}",
        plain.stderr
    );
    assert!(home.line("auth status").expect(0).stderr.contains("no server has `auth.oauth`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_its_own_serves_at_once_and_tells_nobody_its_secret() {
    let office = FakeAuthServer::open().await;
    let (id, secret) = OWN_CLIENT;
    let own = format!("grant: client_credentials, client_id: {id}, client_secret: '${{SECRET}}'");
    let home = with_oauth(&office, &own, "").with_variable("SECRET", secret);
    let called = home.line("tool call greet -vvv").expect(0);
    assert_eq!(called.stdout.trim(), "hello");
    assert_eq!(state(&home), "automatic");
    let status = home.line("auth status").expect(0);
    assert!(status.stdout.contains("renewed by itself"), "{}", status.stdout);
    let login = home.line("auth login office").expect(4);
    assert!(login.stderr.contains("it uses the client credentials grant"), "{}", login.stderr);
    let shown = home.line("config show").expect(0);
    for said in [called.stderr, status.stdout, status.stderr, login.stderr, shown.stdout] {
        assert!(!said.contains(secret) && !said.contains("access-1"), "{said}");
    }

    let home = home.with_variable("SECRET", "s3cret-wrong");
    home.line("auth logout office").expect(0);
    let refused = home.line("check --connect").expect(1);
    let expected = format!("{} issues no token to the client '{id}'", office.issuer());
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    assert!(!refused.stderr.contains("s3cret-wrong"), "{}", refused.stderr);
}
