//! Hints between the boards of one `PostgreSQL` database: "this changed, look at it".
//!
//! A hint says what changed and never what it is now: truth is rows with versions. A hint may be lost, late or sent twice,
//! so whoever follows hints also handles [`HintNotice::PollAll`], which comes after each interruption and at intervals.
//!
//! Hints are sent after the commit of what they announce, many in one transaction of their own: a transaction with
//! `NOTIFY` takes a lock of the whole database during its commit, and with a durable commit that costs four of five
//! transactions per second. On `SQLite` no hint is sent or received.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::hint::{ChangeHint, HintNotice, HintState};
use crate::hint_listener::HintListener;
use crate::hint_publisher::{HintPublisher, OutgoingHint};
use crate::postgres_pool::PostgresPool;

/// Hints that wait to be sent. Beyond it others are told to poll everything.
const WAITING: usize = 4096;
/// Notices that wait for a receiver. A receiver that is further behind must poll everything.
const RECEIVED: usize = 1024;
/// How long closing the store waits for hints that were not sent yet.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The hints of a store. Its tasks end with it.
#[derive(Debug)]
pub struct Hints {
    source: Option<HintSource>,
    notices: broadcast::Sender<HintNotice>,
    shared: Arc<HintState>,
    outgoing: Mutex<Option<mpsc::Sender<OutgoingHint>>>,
    is_listening: AtomicBool,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop: DropGuard,
}

/// Where hints go and come from.
#[derive(Debug, Clone)]
struct HintSource {
    pool: PostgresPool,
    listen: PgConnectOptions,
}

impl Hints {
    /// The hints of a store that no other board uses.
    pub(crate) fn none() -> Self {
        Self::with(None)
    }

    /// Hints over a database. `listen` is the address for the connection that receives them.
    pub(crate) fn over(pool: PostgresPool, listen: PgConnectOptions) -> Self {
        Self::with(Some(HintSource { pool, listen }))
    }

    fn with(source: Option<HintSource>) -> Self {
        let stop = CancellationToken::new();
        Self {
            source,
            notices: broadcast::Sender::new(RECEIVED),
            shared: Arc::new(HintState {
                origin: origin(),
                is_prompt: AtomicBool::new(false),
                has_dropped: AtomicBool::new(false),
            }),
            outgoing: Mutex::default(),
            is_listening: AtomicBool::new(false),
            tasks: TaskTracker::new(),
            _stop: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Tells other boards of a change that has been committed. Never waits; a hint that cannot be sent is lost.
    pub fn publish(&self, hint: ChangeHint) {
        let Some(source) = &self.source else { return };
        let mut outgoing = self.outgoing.lock();
        let sender = outgoing.get_or_insert_with(|| {
            let (sender, waiting) = mpsc::channel(WAITING);
            let publisher = HintPublisher::new(source.pool.clone(), self.shared.clone());
            self.tasks.spawn(publisher.run(waiting, self.stop.clone()));
            sender
        });
        if sender.try_send(OutgoingHint::Hint(hint)).is_err() {
            self.shared.has_dropped.store(true, Ordering::Release);
        }
    }

    /// What other boards say from now on. The first notice after a connection is [`HintNotice::PollAll`]; a receiver that
    /// lags has to treat that as one, too. On `SQLite` it is silent.
    pub fn subscribe(&self) -> broadcast::Receiver<HintNotice> {
        let received = self.notices.subscribe();
        if let Some(source) = &self.source
            && !self.is_listening.swap(true, Ordering::AcqRel)
        {
            let listener = HintListener::new(
                source.pool.clone(),
                source.listen.clone(),
                self.notices.clone(),
                self.shared.clone(),
            );
            self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(listener.run()));
        }
        received
    }

    /// Whether hints arrive at once. Otherwise changes of other boards are noticed by polling.
    pub fn is_prompt(&self) -> bool {
        self.shared.is_prompt.load(Ordering::Acquire)
    }

    /// Sends what waits, and ends the tasks.
    pub(crate) async fn close(&self) {
        let sender = self.outgoing.lock().clone();
        if let Some(sender) = sender {
            let (done, sent) = oneshot::channel();
            let flush = async {
                if sender.send(OutgoingHint::Flush(done)).await.is_ok() {
                    let _ended = sent.await;
                }
            };
            if timeout(FLUSH_TIMEOUT, flush).await.is_err() {
                tracing::debug!("the last hints to other boards were not sent");
            }
        }
        self.stop.cancel();
    }
}

fn origin() -> String {
    let mut random = [0_u8; 8];
    // Without randomness, boards would ignore each other's hints and poll.
    if let Err(error) = getrandom::fill(&mut random) {
        tracing::debug!(%error, "no random origin of hints");
    }
    format!("{:016x}", u64::from_le_bytes(random))
}
