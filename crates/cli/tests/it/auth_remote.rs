//! `auth --url`: accounts of users and of the board at a running instance, signed in from another place.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;
use switchboard_test_support::{AccountEra, AccountServer, FakeAuthServer, wait_until};

use crate::support::{Home, PATIENCE};

/// A sign-in that has printed its page.
struct Login {
    child: Child,
    stdout: BufReader<ChildStdout>,
    page: String,
}

impl Login {
    fn begin(home: &Home, arguments: &[&str]) -> Self {
        let mut child = home.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut page = String::new();
        stdout.read_line(&mut page).unwrap();
        Self { child, stdout, page: page.trim().to_owned() }
    }

    /// What the program said, once it has ended well.
    fn end(mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        self.stdout.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        said
    }
}

fn browser() -> reqwest::Client {
    let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    builder.no_proxy().build().unwrap()
}

/// Goes through the page of the board, at which nothing is to be proven, and signs in as this person.
async fn connect(tracker: &AccountServer, page: &str, person: &str) {
    let browser = browser();
    let shown = browser.get(page).header("sec-fetch-mode", "navigate").send().await.unwrap();
    let cookie = shown.headers()["set-cookie"].to_str().unwrap().to_owned();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let html = shown.text().await.unwrap();
    let (_, link) = html.split_once("href=\"").unwrap();
    let link = link.split_once('"').unwrap().0.replace("&amp;", "&");
    let back = tracker.visit(&link, person).await;
    let done = browser.get(back).header("cookie", cookie).send().await.unwrap();
    assert!(done.status().is_success());
}

fn tracker_home(tracker: &AccountServer, oauth: &str) -> Home {
    Home::new(format!(
        "switchboard:\n  toolbox:\n    mcps:\n      - {{name: tracker, url: \"{}\", mode: dynamic, required: false, \
         default_tool_config: {{}}, auth: {{oauth: {{{oauth}}}}}}}\n",
        tracker.url()
    ))
}

fn accounts(home: &Home, url: &str) -> Value {
    home.line(&format!("auth status --all --json --url {url}")).expect(0).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_accounts_of_users_and_of_the_board_are_signed_in_from_elsewhere() {
    for (oauth, owner) in [("per: user", "local"), ("", "board")] {
        let tracker = AccountServer::open(AccountEra::Stateless).await;
        let home = tracker_home(&tracker, oauth);
        let serving = home.serve().await;
        let url = serving.url.as_str();
        let before = home.line(&format!("auth status --all --url {url}")).expect(0);
        assert!(before.stderr.contains("tracker: run `switchboard auth login tracker`"));
        let doctor = home.line("doctor").expect(0).stdout;
        let says = "an account for each user: 0 active; no account is signed in";
        assert_eq!(doctor.contains(says), oauth == "per: user", "{doctor}");

        let login =
            Login::begin(&home, &["auth", "login", "tracker", "--no-browser", "--url", url]);
        connect(&tracker, &login.page, "anna").await;
        assert!(login.end().contains("signed in at 'tracker'"));
        let account = &accounts(&home, url)["accounts"][0];
        assert_eq!((&account["owner"], &account["state"]), (&owner.into(), &"active".into()));
        let call = format!("tool call whoami --url {url}");
        let called = wait_until(PATIENCE, async || {
            let called = home.line(&call);
            called.stdout.contains("anna").then_some(called)
        })
        .await;
        called.expect(0);

        // Commands that inspect the server know of the accounts.
        for line in ["server test tracker", "doctor"] {
            let shown = home.line(line).expect(0).stdout;
            let says = "an account for each user: 1 active; one of them lists the tools";
            assert_eq!(shown.contains(says), oauth == "per: user", "{line}: {shown}");
        }

        let logout = format!("auth logout tracker --url {url}");
        assert_eq!(home.line(&logout).expect(0).stdout, "tracker: signed out\n");
        assert_eq!(home.line(&logout).expect(0).stdout, "tracker: was not signed in\n");
    }
}

fn cloud_home(office: &FakeAuthServer, name: &str) -> Home {
    let issuer = office.issuer();
    Home::new(format!(
        "switchboard:\n  providers:\n    - {{name: {name}, kind: openai-chat, base_url: \"{issuer}/v1\", model: m, auth: \
         {{kind: oauth, issuer: \"{issuer}\", client_id: ours, scopes: [chat]}}}}\n  toolbox:\n    mcps: []\n"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_signed_in_with_a_browser_on_this_machine_or_elsewhere() {
    let office = FakeAuthServer::open().await;
    let home = cloud_home(&office, "cloud");
    let serving = home.serve().await;
    let url = serving.url.as_str();
    // The browser is on the machine of the person, and comes back to this program.
    let login = Login::begin(&home, &["auth", "login", "cloud", "--no-browser", "--url", url]);
    assert!(reqwest::get(&login.page).await.unwrap().status().is_success());
    let said = login.end();
    assert!(said.contains(&format!("signed in at 'cloud' by {}", office.issuer())), "{said}");

    // It is on another machine, and the person pastes the address that it ended at.
    let arguments =
        ["auth", "login", "cloud", "--credential", "work", "--no-browser", "--url", url];
    let mut login = Login::begin(&home, &arguments);
    let answer = browser().get(&login.page).send().await.unwrap();
    let back = answer.headers()["location"].to_str().unwrap();
    writeln!(login.child.stdin.as_mut().unwrap(), "{back}").unwrap();
    let mut said = said + &login.end();

    let status = home.line(&format!("auth status --all --url {url}")).expect(0);
    for shown in ["cloud", "default", "work", "active"] {
        assert!(status.stdout.contains(shown), "{shown}: {}", status.stdout);
    }
    let out = home.line(&format!("auth logout cloud --credential work --url {url}")).expect(0);
    assert_eq!(out.stdout, "cloud: signed out\n");
    assert_eq!(office.revocations(), ["refresh-2"]);
    // The sign-in is in the store of the instance, where the program finds it without --url too.
    let states = home.line("auth status --json").expect(0).json();
    assert_eq!(states["providers"][0]["state"], "active", "{states}");
    said.push_str(&status.stdout);
    for secret in ["access-", "refresh-", "s3cret"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_signed_in_where_the_program_runs() {
    let office = FakeAuthServer::open().await;
    let home = cloud_home(&office, "cloud");
    let before = home.line("auth status").expect(0);
    assert!(
        before.stderr.contains("cloud: nobody has signed in; run `switchboard auth login cloud`")
    );
    for arguments in
        [vec!["auth", "login", "cloud"], vec!["auth", "login", "cloud", "--credential", "work"]]
    {
        let login = Login::begin(&home, &[arguments, vec!["--no-browser"]].concat());
        assert!(reqwest::get(&login.page).await.unwrap().status().is_success());
        assert!(login.end().contains("signed in at 'cloud'"));
    }
    let states = home.line("auth status --json").expect(0).json();
    let states: Vec<_> = states["providers"].as_array().unwrap().iter().collect();
    assert_eq!(states.len(), 2);
    assert!(states.iter().all(|it| it["state"] == "active"), "{states:?}");
    let out = home.line("auth logout cloud --credential work").expect(0);
    assert_eq!(out.stdout, "cloud: signed out\n");
    assert_eq!(home.line("auth logout cloud").expect(0).stdout, "cloud: signed out\n");
    assert_eq!(office.revocations(), ["refresh-2", "refresh-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_signed_in_at_elsewhere_is_said() {
    let office = FakeAuthServer::open().await;
    let home = cloud_home(&office, "cloud");
    let serving = home.serve().await;
    let check = |line: &str, code: i32, part: &str| {
        let refused = home.line(&format!("{line} --url {}", serving.url)).expect(code);
        assert!(refused.stderr.contains(part), "{line}: {}", refused.stderr);
    };
    check("auth login nobody", 2, "there is no MCP server 'nobody'");
    check("auth login nobody --provider", 2, "there is no provider `nobody`");
    check("auth logout cloud --server", 2, "there is no MCP server 'cloud'");
    check("auth login cloud --device", 2, "--device");
}
