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
