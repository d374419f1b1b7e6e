//! Renewal: one at a time over all tasks and processes, whatever fails meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{join_all, ready};
use http::{HeaderMap, StatusCode};
use switchboard_model::{GrantId, RenewalTurn, Secret};
use switchboard_oauth::{
    Authorization, GrantState, Kept, MemoryTokens, RequestAttempt, SignInCause, SignIns,
    StoredGrant, TokenStore, TokenStoreError, TokenVerdict,
};
use switchboard_test_support::{FakeAuthServer, wait_until};

use crate::support::{Desk, HOUR, bearer, id, issuer, url};

const PATIENCE: Duration = Duration::from_secs(30);

async fn refused(
    authorization: &Arc<Authorization>,
    used: &Arc<switchboard_oauth::Grant>,
) -> Result<TokenVerdict, String> {
    let (status, headers) = (StatusCode::UNAUTHORIZED, HeaderMap::new());
    let judged = authorization.judge(Some(used), status, &headers, RequestAttempt::First).await;
    judged.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_hundred_users_of_an_expired_token_make_one_refresh() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.revoke_families_on_reuse();
    desk.sign_in(&server).await;
    server.set_pause(Duration::from_millis(50));
    desk.wait(2 * HOUR);
    // Two processes with fifty users each.
    let processes = [desk.process(&server), desk.process(&server)];
    let users = (0..100).map(|n| processes[n % 2].token());
    for token in join_all(users).await {
        assert_eq!(bearer(&token.unwrap().unwrap()), "access-2");
    }
    assert_eq!((server.refreshed(), server.reused()), (1, 0));
}

#[tokio::test]
async fn a_token_is_renewed_in_the_background_before_it_expires() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    desk.sign_in(&server).await;
    let process = desk.process(&server);
    server.set_pause(Duration::from_millis(50));
    desk.wait(Duration::from_mins(55));
    assert_eq!(bearer(&process.token().await.unwrap().unwrap()), "access-1", "nobody waits");
    wait_until(PATIENCE, async || {
        let token = process.token().await.unwrap().unwrap();
        (bearer(&token) == "access-2").then_some(())
    })
    .await;
    assert_eq!(server.refreshed(), 1);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    desk.sign_in(&server).await;
    let processes = [desk.process(&server), desk.process(&server)];
    let used = processes[0].token().await.unwrap().unwrap();
    let all = (0..20).map(|n| refused(&processes[n % 2], &used));
    for verdict in join_all(all).await {
        let Ok(TokenVerdict::Again(other)) = verdict else { panic!("{verdict:?}") };
        assert_eq!(bearer(&other), "access-2");
    }
    assert_eq!(server.refreshed(), 1);
}

#[tokio::test]
async fn an_answer_without_a_refresh_token_keeps_the_present_one() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.keep_refresh_token();
    desk.sign_in(&server).await;
    for number in 2..5 {
        desk.wait(2 * HOUR);
        let token = desk.process(&server).token().await.unwrap().unwrap();
        assert_eq!(bearer(&token), format!("access-{number}"));
    }
}

#[tokio::test]
async fn a_revoked_refresh_token_ends_without_another_attempt() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    desk.sign_in(&server).await;
    server.revoke_refresh();
    desk.wait(2 * HOUR);
    for _ in 0..3 {
        let process = desk.process(&server);
        let used = process.token().await.unwrap().unwrap();
        let verdict = refused(&process, &used).await.unwrap_err();
        assert_eq!(verdict, "needs sign-in: run `switchboard auth login google`");
    }
    assert_eq!(server.refreshed(), 1, "a refused refresh token is not tried again");
    let state = desk.state(&server).await;
    assert!(
        matches!(state, GrantState::NeedsSignIn(SignInCause::Refused | SignInCause::Expired)),
        "{state:?}"
    );
    desk.sign_in(&server).await;
    assert_eq!(desk.state(&server).await, GrantState::Active);
}

#[tokio::test]
async fn the_clock_may_jump_an_hour_both_ways() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.revoke_families_on_reuse();
    desk.sign_in(&server).await;
    let process = desk.process(&server);
    let hour = i64::try_from(HOUR.as_millis()).unwrap();
    desk.jump(hour);
    assert_eq!(bearer(&process.token().await.unwrap().unwrap()), "access-2", "forward: renewed");
    desk.jump(-2 * hour);
    let used = process.token().await.unwrap().unwrap();
    assert_eq!(bearer(&used), "access-2", "back: still valid");
    // The server knows better.
    let Ok(TokenVerdict::Again(other)) = refused(&process, &used).await else { panic!() };
    assert_eq!((bearer(&other).as_str(), server.reused()), ("access-3", 0));
}

#[tokio::test(start_paused = true)]
async fn the_turn_of_a_dead_process_is_taken_over_though_the_clock_went_back() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    desk.sign_in(&server).await;
    desk.wait(2 * HOUR);
    let kept = desk.tokens.load(&id(), None).await.unwrap().unwrap();
    let begun = desk.tokens.begin_renewal(&id(), &kept.issuer, kept.version, None).await;
    assert_eq!(begun.unwrap(), RenewalTurn::Taken);
    assert_eq!(desk.state(&server).await, GrantState::Renewing);
    // Its holder died. A turn ends by itself after 20 s; here it would end in an hour.
    desk.jump(-i64::try_from(HOUR.as_millis()).unwrap());
    let began = tokio::time::Instant::now();
    let token = desk.process(&server).token().await.unwrap().unwrap();
    assert_eq!(bearer(&token), "access-2");
    let waited = began.elapsed().as_secs();
    assert!((25..30).contains(&waited), "{waited}");
}

/// A store with faults.
#[derive(Debug)]
struct FaultyTokens {
    inner: Arc<MemoryTokens>,
    /// The operations that fail.
    failing: parking_lot::Mutex<Vec<&'static str>>,
    /// How many operations have failed.
    failures: AtomicUsize,
}

impl FaultyTokens {
    fn guard<'a, T: Send + 'a>(&'a self, name: &str, then: Kept<'a, T>) -> Kept<'a, T> {
        if self.failing.lock().iter().any(|failing| *failing == name || *failing == "all") {
            self.failures.fetch_add(1, Ordering::SeqCst);
            let message = "the store is away".to_owned();
            return ready(Err(TokenStoreError { message, hint: None })).boxed();
        }
        then
    }
}

impl TokenStore for FaultyTokens {
    fn load<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: Option<&'a str>,
    ) -> Kept<'a, Option<StoredGrant>> {
        self.guard("load", self.inner.load(id, issuer))
    }
    fn list(&self) -> Kept<'_, Vec<StoredGrant>> {
        self.guard("list", self.inner.list())
    }
    fn save<'a>(&'a self, id: &'a GrantId, issuer: &'a str, content: Secret) -> Kept<'a, ()> {
        self.inner.save(id, issuer, content)
    }
    fn begin_renewal<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: &'a str,
        version: i64,
        abandoned: Option<i64>,
    ) -> Kept<'a, RenewalTurn> {
        if self.failing.lock().iter().any(|failing| matches!(*failing, "begin" | "all")) {
            return self.guard("all", ready(Ok(RenewalTurn::Changed)).boxed());
        }
        self.inner.begin_renewal(id, issuer, version, abandoned)
    }
    fn finish_renewal<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: &'a str,
        version: i64,
        content: Secret,
    ) -> Kept<'a, bool> {
        if self.failing.lock().iter().any(|failing| matches!(*failing, "finish" | "all")) {
            self.failures.fetch_add(1, Ordering::SeqCst);
            let message = "the store is away".to_owned();
            return ready(Err(TokenStoreError { message, hint: None })).boxed();
        }
        self.inner.finish_renewal(id, issuer, version, content)
    }
    fn end_renewal<'a>(&'a self, id: &'a GrantId, issuer: &'a str, version: i64) -> Kept<'a, ()> {
        self.guard("end", self.inner.end_renewal(id, issuer, version))
    }
    fn forget<'a>(&'a self, id: &'a GrantId) -> Kept<'a, bool> {
        self.inner.forget(id)
    }
    fn need<'a>(&'a self, id: &'a GrantId) -> Kept<'a, Option<String>> {
        self.inner.need(id)
    }
    fn set_need<'a>(&'a self, id: &'a GrantId, need: String) -> Kept<'a, ()> {
        self.inner.set_need(id, need)
    }
    fn now_ms(&self) -> i64 {
        self.inner.now_ms()
    }
}

async fn with_faults(server: &FakeAuthServer) -> (Desk, Arc<FaultyTokens>, Arc<Authorization>) {
    let desk = Desk::new();
    desk.sign_in(server).await;
    let inner = desk.tokens.clone();
    let faulty = Arc::new(FaultyTokens {
        inner,
        failing: parking_lot::Mutex::default(),
        failures: AtomicUsize::new(0),
    });
    let process = SignIns::new(faulty.clone()).described(id(), &url(server), &issuer(server));
    assert_eq!(bearer(&process.token().await.unwrap().unwrap()), "access-1");
    (desk, faulty, process)
}

#[tokio::test]
async fn without_the_store_nothing_is_renewed_and_the_old_token_is_used_until_it_ends() {
    let server = FakeAuthServer::open().await;
    let (desk, faulty, process) = with_faults(&server).await;
    *faulty.failing.lock() = vec!["all"];
    desk.wait(Duration::from_secs(3590));
    assert_eq!(bearer(&process.token().await.unwrap().unwrap()), "access-1");
    desk.wait(Duration::from_secs(20));
    let failed = process.token().await.unwrap_err();
    assert!(failed.message.contains("the store is away"), "{failed}");
    assert_eq!(server.refreshed(), 0, "the issuer was not asked");
    faulty.failing.lock().clear();
    assert_eq!(bearer(&process.token().await.unwrap().unwrap()), "access-2");
}

#[tokio::test]
async fn a_store_that_goes_away_during_a_renewal_gets_the_tokens_later() {
    let server = FakeAuthServer::open().await;
    server.revoke_families_on_reuse();
    let (desk, faulty, process) = with_faults(&server).await;
    *faulty.failing.lock() = vec!["finish"];
    desk.wait(2 * HOUR);
    assert_eq!(bearer(&process.token().await.unwrap().unwrap()), "access-2", "used from memory");
    assert!(faulty.failures.load(Ordering::SeqCst) > 0);
    assert_eq!(desk.tokens.load(&id(), None).await.unwrap().unwrap().version, 1);
    faulty.failing.lock().clear();
    // The next renewal begins with writing what is not written.
    desk.wait(2 * HOUR);
    assert_eq!(bearer(&process.token().await.unwrap().unwrap()), "access-3");
    assert_eq!(server.reused(), 0);
    assert_eq!(bearer(&desk.process(&server).token().await.unwrap().unwrap()), "access-3");
}

#[tokio::test]
async fn an_issuer_that_answers_nonsense_ends_nothing() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    desk.sign_in(&server).await;
    desk.wait(2 * HOUR);
    for (status, body, shown) in [
        (StatusCode::OK, "<html>maintenance</html>", "not with the JSON of OAuth"),
        (StatusCode::BAD_GATEWAY, "<html>", "HTTP 502"),
        (StatusCode::OK, "[]", "not with the JSON of OAuth"),
        (StatusCode::OK, "{}", "no usable token"),
        (StatusCode::BAD_REQUEST, r#"{"error":"invalid_client"}"#, "invalid_client"),
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"error":"temporarily_unavailable"}"#, "temporarily"),
        (StatusCode::FOUND, "", "HTTP 302"),
    ] {
        server.answer_token_requests(status, body);
        let failed = desk.process(&server).token().await.unwrap_err();
        assert!(failed.message.contains(shown), "{body}: {failed}");
        assert!(!failed.message.contains("refresh-1"), "{failed}");
        let kept = desk.tokens.load(&id(), None).await.unwrap().unwrap();
        assert_eq!(
            (kept.version, kept.renewing_until_ms),
            (1, 0),
            "{body}: the turn is given back"
        );
    }
    server.answer_token_requests(StatusCode::OK, &"x".repeat(2 * 1024 * 1024));
    let failed = desk.process(&server).token().await.unwrap_err();
    assert!(failed.message.contains("larger than"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_hangs_is_given_up_after_ten_seconds() {
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    desk.sign_in(&server).await;
    desk.wait(2 * HOUR);
    server.set_pause(Duration::from_hours(1));
    let began = tokio::time::Instant::now();
    let failed = desk.process(&server).token().await.unwrap_err();
    assert!(failed.message.contains("did not answer within 10 seconds"), "{failed}");
    assert_eq!(began.elapsed().as_secs(), 10);
}

/// Kill at each step: before the turn, with the turn, and after the issuer answered and before the write.
#[tokio::test(start_paused = true)]
async fn attack_9_a_process_that_dies_at_any_step_leaves_a_clear_state() {
    // With the turn taken and nothing sent: the next process waits for the end of the turn and renews.
    let (server, desk) = (FakeAuthServer::open().await, Desk::new());
    server.revoke_families_on_reuse();
    desk.sign_in(&server).await;
    desk.wait(2 * HOUR);
    let kept = desk.tokens.load(&id(), None).await.unwrap().unwrap();
    desk.tokens.begin_renewal(&id(), &kept.issuer, kept.version, None).await.unwrap();
    let other = desk.process(&server);
    let clock = async {
        tokio::time::sleep(Duration::from_secs(21)).await;
        desk.wait(Duration::from_secs(21));
        std::future::pending::<()>().await;
    };
    let token = tokio::select! { token = other.token() => token, () = clock => unreachable!() };
    assert_eq!(bearer(&token.unwrap().unwrap()), "access-2");
    assert_eq!(server.reused(), 0);

    // After the issuer answered and before the write: the refresh token is gone. The next attempt is refused once, and
    // the state says that somebody must sign in.
    let rotated = reqwest::Client::new()
        .post(format!("{}/token", server.issuer()))
        .body("grant_type=refresh_token&refresh_token=refresh-2")
        .send()
        .await
        .unwrap();
    assert!(rotated.status().is_success());
    desk.wait(2 * HOUR);
    let process = desk.process(&server);
    let used = process.token().await.unwrap().unwrap();
    refused(&process, &used).await.unwrap_err();
    assert!(matches!(desk.state(&server).await, GrantState::NeedsSignIn(_)));
    assert_eq!(server.reused(), 1);
}
