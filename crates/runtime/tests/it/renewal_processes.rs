//! Real processes that renew the grants of one data directory, and die while they do: this test binary, started again.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use pretty_assertions::assert_eq;
use switchboard_model::{
    DescribedIssuer, GrantId, LoopbackRedirect, StoreKey, StoreKeys, TokenRequestFormat,
};
use switchboard_oauth::{GrantState, GrantTarget, SignIn, SignInCause, SignInState, SignIns};
use switchboard_runtime::StoredTokens;
use switchboard_store::Store;
use switchboard_test_support::{FakeAuthServer, wait_until};
use url::Url;

const DIRECTORY: &str = "RENEWAL_TEST_DIRECTORY";
const ISSUER: &str = "RENEWAL_TEST_ISSUER";
const ANSWER: &str = "tokens ";
const PATIENCE: Duration = Duration::from_secs(30);
/// The clock when a test begins. Nothing but the tests moves it.
const START: i64 = 1_700_000_000_000;
const HOUR: i64 = 3_600_000;
/// Longer than the turn of a process that died.
const TURN: i64 = 21_000;
const ACCOUNTS: usize = 50;
const ROUNDS: usize = 20;

fn issuer(base: &str) -> DescribedIssuer {
    let at = |path: &str| format!("{base}/{path}").parse().unwrap();
    DescribedIssuer {
        issuer: Some(base.to_owned()),
        authorize_url: Some(at("authorize")),
        token_url: Some(at("token")),
        device_url: None,
        revoke_url: None,
        client_id: "ours".into(),
        client_secret: None,
        scopes: Vec::new(),
        extra_params: BTreeMap::new(),
        token_auth: TokenRequestFormat::Form,
        redirect: LoopbackRedirect::default(),
    }
}

fn url(base: &str) -> Url {
    format!("{base}/mcp").parse().unwrap()
}

fn accounts(count: usize) -> Vec<GrantId> {
    (0..count).map(|n| GrantId::of_provider("google", &format!("c{n}"))).collect()
}

/// The grants of a directory, with a clock that the test sets.
async fn open(directory: &Path) -> (SignIns, Arc<AtomicI64>) {
    let store = Store::open(directory).await.unwrap();
    let key = StoreKey::parse(&"07".repeat(32));
    store.set_grant_keys(&StoreKeys { current: key, previous: Vec::new() });
    let now = Arc::new(AtomicI64::new(START));
    let clock = now.clone();
    let clock = Arc::new(move || clock.load(Ordering::SeqCst));
    (SignIns::new(Arc::new(StoredTokens::with_clock(store, clock))), now)
}

/// What a child does: for each line with the time and a number of accounts, say the token of each account. Started by the
/// test runner itself, it has no directory and does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let (Ok(directory), Ok(base)) = (std::env::var(DIRECTORY), std::env::var(ISSUER)) else {
        return;
    };
    let (process, now) = open(Path::new(&directory)).await;
    println!("\n{ANSWER}");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (time, count) = line.split_once(' ').unwrap();
        now.store(time.parse().unwrap(), Ordering::SeqCst);
        let (issuer, url, ids) = (issuer(&base), url(&base), accounts(count.parse().unwrap()));
        let tokens = ids.into_iter().map(|id| {
            let account = process.described(id, &url, &issuer);
            async move {
                match account.token().await {
                    Ok(Some(grant)) => grant.access_token().expose().to_owned(),
                    Ok(None) => "none".to_owned(),
                    Err(error) => error.to_string().replace(' ', "_"),
                }
            }
        });
        println!("\n{ANSWER}{}", join_all(tokens).await.join(" "));
    }
}

/// A process that renews when it is told to.
struct Process {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(directory: &Path, server: &FakeAuthServer) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["renewal_processes::child", "--exact", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(ISSUER, server.issuer())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { child, answers };
        process.answer();
        process
    }

    /// Asks for the tokens of these accounts at this time.
    fn ask(&mut self, now: i64, accounts: usize) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{now} {accounts}").unwrap();
        stdin.flush().unwrap();
    }

    fn answer(&mut self) -> Vec<String> {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the process ended");
            if let Some(tokens) = line.strip_prefix(ANSWER) {
                return tokens.split_whitespace().map(str::to_owned).collect();
            }
        }
    }

    /// Ends it as a crash does (SIGKILL).
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Where a test fails, its processes end with it.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

async fn sign_in(sign_ins: &SignIns, server: &FakeAuthServer, id: &GrantId) {
    let (base, tokens) = (server.issuer(), sign_ins.tokens().clone());
    let begun = SignIn::described(id.clone(), &url(&base), &issuer(&base), tokens).await.unwrap();
    let page = reqwest::get(begun.url().to_owned());
    let (signed_in, _page) = tokio::join!(begun.finish(), page);
    signed_in.unwrap();
}

async fn state(sign_ins: &SignIns, server: &FakeAuthServer, id: &GrantId) -> GrantState {
    let (url, issuer) = (url(&server.issuer()), issuer(&server.issuer()));
    let target = GrantTarget::Described(&url, &issuer);
    SignInState::of(id, target, &**sign_ins.tokens()).await.unwrap().state
}

/// Each account is renewed by both processes at once, round after round: 1,000 rounds in all. The accounts take turns at
/// the same time, because a process that waits for another one polls.
#[tokio::test(flavor = "multi_thread")]
async fn attack_8_two_processes_renew_a_thousand_times_and_lose_no_sign_in() {
    let directory = tempfile::tempdir().unwrap();
    let server = FakeAuthServer::open().await;
    server.revoke_families_on_reuse();
    let (here, _) = open(directory.path()).await;
    for id in accounts(ACCOUNTS) {
        sign_in(&here, &server, &id).await;
    }
    let mut processes =
        [Process::start(directory.path(), &server), Process::start(directory.path(), &server)];
    let mut now = START;
    for round in 1..=ROUNDS {
        now += 2 * HOUR;
        for process in &mut processes {
            process.ask(now, ACCOUNTS);
        }
        let [one, two] = &mut processes;
        let (one, two) = (one.answer(), two.answer());
        assert_eq!(one, two, "both use the new tokens");
        assert!(one.iter().all(|token| token.starts_with("access-")), "{one:?}");
        assert_eq!((server.refreshed(), server.reused()), (round * ACCOUNTS, 0), "round {round}");
    }
    for id in accounts(ACCOUNTS) {
        let kept = here.tokens().load(&id, None).await.unwrap().unwrap();
        assert_eq!(kept.version, i64::try_from(ROUNDS + 1).unwrap());
        assert!(kept.is_encrypted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attack_9_a_process_that_is_killed_while_the_issuer_works_costs_no_sign_in() {
    let directory = tempfile::tempdir().unwrap();
    let server = FakeAuthServer::open().await;
    server.revoke_families_on_reuse();
    let (here, here_now) = open(directory.path()).await;
    let id = accounts(1).remove(0);
    sign_in(&here, &server, &id).await;
    let mut survivor = Process::start(directory.path(), &server);
    let mut now = START;
    // Each round waits for the end of a turn, which the clock of the database counts.
    for round in 1..=2 {
        now += 2 * HOUR;
        here_now.store(now, Ordering::SeqCst);
        let asked = server.token_requests().len();
        server.set_pause(PATIENCE * 10);
        let mut victim = Process::start(directory.path(), &server);
        victim.ask(now, 1);
        wait_until(PATIENCE, async || (server.token_requests().len() > asked).then_some(())).await;
        assert_eq!(state(&here, &server, &id).await, GrantState::Renewing, "round {round}");
        victim.kill();
        server.set_pause(Duration::ZERO);
        // The turn of the dead process is over.
        now += TURN;
        survivor.ask(now, 1);
        assert_eq!(survivor.answer(), [format!("access-{}", round + 1)]);
        assert_eq!((server.refreshed(), server.reused()), (round, 0));
        assert_eq!(state(&here, &server, &id).await, GrantState::Active);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attack_9_a_process_that_is_killed_before_it_writes_leaves_a_clear_state() {
    let directory = tempfile::tempdir().unwrap();
    let server = FakeAuthServer::open().await;
    server.revoke_families_on_reuse();
    let (here, here_now) = open(directory.path()).await;
    let id = accounts(1).remove(0);
    sign_in(&here, &server, &id).await;
    let mut now = START + 2 * HOUR;
    server.set_answer_pause(PATIENCE * 10);
    let mut victim = Process::start(directory.path(), &server);
    victim.ask(now, 1);
    // The refresh token is used up, and its successor is on the way.
    wait_until(PATIENCE, async || (server.refreshed() == 1).then_some(())).await;
    victim.kill();
    server.set_answer_pause(Duration::ZERO);
    now += TURN;
    here_now.store(now, Ordering::SeqCst);
    let mut survivor = Process::start(directory.path(), &server);
    for _ in 0..3 {
        survivor.ask(now, 1);
        assert_eq!(survivor.answer(), ["access-1"], "so that the server says what it wants");
    }
    assert_eq!(server.refreshed(), 2, "the refused refresh token is not tried again");
    let needed = state(&here, &server, &id).await;
    assert_eq!(needed, GrantState::NeedsSignIn(SignInCause::Refused));
    sign_in(&here, &server, &id).await;
    now += 2 * HOUR;
    survivor.ask(now, 1);
    assert!(survivor.answer()[0].starts_with("access-"));
    assert_eq!(state(&here, &server, &id).await, GrantState::Active);
}
