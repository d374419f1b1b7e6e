//! Requests that an SDK sends again join the turn that runs, or ran, for the same request.
//!
//! An app that asked for no stream gets its answer at the end of the turn, when calls have run already. If its connection breaks
//! before that, its SDK sends the request again, and the calls must not run twice. A request joins an earlier one with the
//! same body if the SDK says that it is a repetition, or if nobody waits for the earlier one and nobody got its answer.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderMap;
use parking_lot::Mutex;
use switchboard_splice::{Refusal, RefusalKind};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::Failure;

/// How long an answer can be joined.
const KEPT: Duration = Duration::from_mins(10);
/// How long a turn goes on when nobody waits for it. SDKs wait up to 8 seconds before another attempt.
const WITHOUT_WAITER: Duration = Duration::from_secs(15);
/// How many answers, and how many bytes of them, can be joined.
const MAX_ANSWERS: usize = 2_000;
const MAX_BYTES: usize = 64 << 20;

/// The whole answer of a turn.
#[derive(Debug, Clone)]
pub(crate) struct WholeAnswer {
    pub(crate) body: Bytes,
    /// Headers of the provider's first response that the app gets.
    pub(crate) headers: HeaderMap,
    pub(crate) rounds: u32,
}

/// Identifies a request: who sent it, where, and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey([u8; 32]);

impl RequestKey {
    pub(crate) fn new(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }
}

/// The turns that can be joined.
#[derive(Debug, Default)]
pub(crate) struct RepeatedRequests {
    book: Arc<Mutex<Book>>,
    running: TaskTracker,
}

#[derive(Debug, Default)]
struct Book {
    turns: HashMap<RequestKey, Arc<SharedTurn>>,
    /// Ended turns, oldest first, with their sizes.
    ended: VecDeque<(Instant, RequestKey, Arc<SharedTurn>, usize)>,
    bytes: usize,
}

/// A turn that several requests may wait for.
#[derive(Debug)]
struct SharedTurn {
    /// The id of the turn.
    id: String,
    end: watch::Sender<Option<Result<WholeAnswer, Failure>>>,
    waiters: watch::Sender<usize>,
    /// Whether a request got the answer.
    was_given: Mutex<bool>,
}

/// A request that waits for a turn.
struct Waiter(Arc<SharedTurn>);

impl Waiter {
    fn new(turn: Arc<SharedTurn>) -> Self {
        turn.waiters.send_modify(|count| *count += 1);
        Self(turn)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.waiters.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl RepeatedRequests {
    /// The answer to a request: that of the turn that it joins, else of the turn that `begin` makes. The turn ends early if
    /// nobody waits for it any more.
    pub(crate) async fn answer(
        &self,
        key: RequestKey,
        is_retry: bool,
        id: &str,
        begin: impl FnOnce() -> BoxFuture<'static, Result<WholeAnswer, Failure>>,
    ) -> Result<(String, WholeAnswer), Failure> {
        let (turn, is_new) = self.join(key, is_retry, id);
        let waiter = Waiter::new(turn.clone());
        if is_new {
            let (book, turn) = (self.book.clone(), turn.clone());
            let running = AssertUnwindSafe(begin()).catch_unwind();
            self.running.spawn(async move {
                let answered = tokio::select! {
                    answered = running => Some(answered.unwrap_or_else(|_| Err(broken()))),
                    () = turn.is_left() => None,
                };
                book.lock().ended(key, &turn, answered.as_ref());
                turn.end.send_replace(answered);
            });
        } else {
            tracing::debug!(turn = turn.id, "a request joins the turn of an earlier one");
        }
        let mut end = turn.end.subscribe();
        let ended = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        *turn.was_given.lock() = true;
        drop(waiter);
        let text = "the turn was cancelled, because nobody waited for its answer";
        let answer = ended.unwrap_or_else(|| Err(Failure::busy(text, Duration::from_secs(1))))?;
        Ok((turn.id.clone(), answer))
    }

    /// The turn for a request, and whether it is a new one.
    fn join(&self, key: RequestKey, is_retry: bool, id: &str) -> (Arc<SharedTurn>, bool) {
        let mut book = self.book.lock();
        book.forget_old();
        if let Some(known) = book.turns.get(&key)
            && (is_retry || (*known.waiters.borrow() == 0 && !*known.was_given.lock()))
        {
            return (known.clone(), false);
        }
        let turn = Arc::new(SharedTurn {
            id: id.to_owned(),
            end: watch::Sender::new(None),
            waiters: watch::Sender::new(0),
            was_given: Mutex::new(false),
        });
        book.turns.insert(key, turn.clone());
        (turn, true)
    }
}

fn broken() -> Failure {
    let text = "the turn ended by an internal error; the log says why";
    Refusal::new(RefusalKind::Internal, text).into()
}

impl SharedTurn {
    /// Completes when nobody has waited for the turn for a while.
    async fn is_left(&self) {
        let mut waiters = self.waiters.subscribe();
        loop {
            if waiters.wait_for(|count| *count == 0).await.is_err() {
                return;
            }
            let came_back = waiters.wait_for(|count| *count > 0);
            if tokio::time::timeout(WITHOUT_WAITER, came_back).await.is_err() {
                return;
            }
        }
    }
}

impl Book {
    /// Keeps the answer of a turn for a while. A turn that failed is not joined: another attempt may succeed.
    fn ended(
        &mut self,
        key: RequestKey,
        turn: &Arc<SharedTurn>,
        answered: Option<&Result<WholeAnswer, Failure>>,
    ) {
        let is_current = self.turns.get(&key).is_some_and(|known| Arc::ptr_eq(known, turn));
        match answered {
            Some(Ok(answer)) if is_current => {
                let size = answer.body.len();
                self.bytes += size;
                self.ended.push_back((Instant::now(), key, turn.clone(), size));
                self.forget_old();
            }
            _ if is_current => drop(self.turns.remove(&key)),
            _ => {}
        }
    }

    fn forget_old(&mut self) {
        while let Some((at, ..)) = self.ended.front() {
            let is_old = at.elapsed() > KEPT;
            if !is_old && self.ended.len() <= MAX_ANSWERS && self.bytes <= MAX_BYTES {
                return;
            }
            let Some((_, key, turn, size)) = self.ended.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(size);
            if self.turns.get(&key).is_some_and(|known| Arc::ptr_eq(known, &turn)) {
                self.turns.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pretty_assertions::assert_eq;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    /// Counts the turns that began, and those that ended by themselves.
    #[derive(Debug, Default)]
    struct Counts {
        begun: AtomicUsize,
        ended: AtomicUsize,
    }

    impl Counts {
        fn of(&self) -> (usize, usize) {
            (self.begun.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed))
        }

        /// A turn that takes some time. It fails if there is no text.
        fn turn(
            self: &Arc<Self>,
            took: Duration,
            text: Option<&'static str>,
        ) -> BoxFuture<'static, Result<WholeAnswer, Failure>> {
            let counts = self.clone();
            counts.begun.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::time::sleep(took).await;
                counts.ended.fetch_add(1, Ordering::Relaxed);
                let body = text.map(|text| Bytes::from_static(text.as_bytes()));
                let body = body.ok_or_else(|| Failure::busy("busy", Duration::from_secs(1)))?;
                Ok(WholeAnswer { body, headers: HeaderMap::new(), rounds: 2 })
            }
            .boxed()
        }
    }

    fn key(body: &str) -> RequestKey {
        RequestKey::new(&[b"principal", body.as_bytes()])
    }

    /// The id of the turn that answered, and its text.
    async fn ask(
        repeated: &RepeatedRequests,
        body: &str,
        is_retry: bool,
        id: &str,
        turn: impl FnOnce() -> BoxFuture<'static, Result<WholeAnswer, Failure>>,
    ) -> Result<(String, Bytes), Failure> {
        let (id, answer) = repeated.answer(key(body), is_retry, id, turn).await?;
        Ok((id, answer.body))
    }

    #[tokio::test(start_paused = true)]
    async fn a_repetition_joins_the_turn_that_runs_or_ran() {
        let (repeated, counts) = (RepeatedRequests::default(), Arc::<Counts>::default());
        let turn = || counts.turn(LONG, Some("one"));
        // The app gives up waiting, and asks again after a moment.
        let first = tokio::time::timeout(LONG / 2, ask(&repeated, "a", false, "1", turn)).await;
        assert!(first.is_err());
        tokio::time::sleep(WITHOUT_WAITER / 2).await;
        let (id, body) = ask(&repeated, "a", true, "2", turn).await.unwrap();
        assert_eq!((id.as_str(), &*body), ("1", &b"one"[..]));
        assert_eq!(counts.of(), (1, 1));
        // Its answer was lost on the way.
        assert_eq!(ask(&repeated, "a", true, "3", turn).await.unwrap().0, "1");
        tokio::time::sleep(KEPT + LONG).await;
        assert_eq!(ask(&repeated, "a", true, "4", turn).await.unwrap().0, "4", "long ago");
        assert_eq!(counts.of(), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_question_is_another_one_once_it_was_answered() {
        let (repeated, counts) = (RepeatedRequests::default(), Arc::<Counts>::default());
        let turn = || counts.turn(LONG, Some("one"));
        assert_eq!(ask(&repeated, "a", false, "1", turn).await.unwrap().0, "1");
        assert_eq!(ask(&repeated, "a", false, "2", turn).await.unwrap().0, "2");
        assert_eq!(ask(&repeated, "b", true, "3", turn).await.unwrap().0, "3", "another body");
        // Two that ask at the same time want two answers.
        let both = tokio::join!(
            ask(&repeated, "c", false, "4", turn),
            ask(&repeated, "c", false, "5", turn)
        );
        assert_eq!((both.0.unwrap().0.as_str(), both.1.unwrap().0.as_str()), ("4", "5"));
        assert_eq!(counts.of(), (5, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_for_which_nobody_waits_is_cancelled() {
        let (repeated, counts) = (RepeatedRequests::default(), Arc::<Counts>::default());
        let turn = || counts.turn(LONG, Some("one"));
        let moment = Duration::from_secs(1);
        let first = tokio::time::timeout(moment, ask(&repeated, "a", false, "1", turn)).await;
        assert!(first.is_err());
        tokio::time::sleep(LONG * 2).await;
        assert_eq!(counts.of(), (1, 0));
        assert_eq!(ask(&repeated, "a", true, "2", turn).await.unwrap().0, "2");
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_failed_or_broke_is_not_joined() {
        let (repeated, counts) = (RepeatedRequests::default(), Arc::<Counts>::default());
        let failing = || counts.turn(LONG, None);
        assert!(ask(&repeated, "a", false, "1", failing).await.is_err());
        let turn = || counts.turn(LONG, Some("one"));
        assert_eq!(ask(&repeated, "a", true, "2", turn).await.unwrap().0, "2");
        let broken = || async { panic!("a fault of the test") }.boxed();
        let failure = ask(&repeated, "b", false, "3", broken).await.unwrap_err();
        assert_eq!(failure.refusal.kind, RefusalKind::Internal);
        assert_eq!(ask(&repeated, "b", true, "4", turn).await.unwrap().0, "4");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_has_a_bound() {
        let (repeated, counts) = (RepeatedRequests::default(), Arc::<Counts>::default());
        for number in 0..MAX_ANSWERS + 10 {
            let body = number.to_string();
            let turn = || counts.turn(Duration::ZERO, Some("one"));
            ask(&repeated, &body, false, "1", turn).await.unwrap();
        }
        let book = repeated.book.lock();
        assert_eq!((book.turns.len(), book.ended.len()), (MAX_ANSWERS, MAX_ANSWERS));
        assert_eq!(book.bytes, MAX_ANSWERS * 3);
    }
}
