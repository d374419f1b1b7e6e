//! Receives hints on a connection of its own, and notices when none arrive.
//!
//! A connection may be gone without a word, and a pooler may answer `LISTEN` and forget it. So the listener sends itself a
//! message through the database at intervals: one that does not come back in time is the end of the connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, timeout};

use crate::hint::{HintNotice, HintState};
use crate::hint_publisher::{CHANNEL, notify, read};
use crate::postgres_pool::PostgresPool;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const PING_EVERY: Duration = Duration::from_secs(5);
/// How long a message to itself may take.
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// While hints arrive, followers poll this often all the same.
const POLL_EVERY: Duration = Duration::from_secs(5);
/// How often followers poll while no hints arrive.
const POLL_WITHOUT_HINTS: Duration = Duration::from_millis(500);
/// How long to wait before the next attempt to receive hints. Followers poll meanwhile.
const RETRY_EVERY: Duration = Duration::from_secs(5);
const PING: &str = "ping";

#[derive(Debug)]
pub(crate) struct HintListener {
    pool: PostgresPool,
    listen: PgConnectOptions,
    notices: broadcast::Sender<HintNotice>,
    shared: Arc<HintState>,
}

impl HintListener {
    pub(crate) fn new(
        pool: PostgresPool,
        listen: PgConnectOptions,
        notices: broadcast::Sender<HintNotice>,
        shared: Arc<HintState>,
    ) -> Self {
        Self { pool, listen, notices, shared }
    }

    pub(crate) async fn run(self) {
        let mut is_told = false;
        loop {
            let error = self.listen_until_it_fails().await;
            let was_prompt = self.shared.is_prompt.swap(false, Ordering::AcqRel);
            if was_prompt || !std::mem::replace(&mut is_told, true) {
                tracing::warn!(
                    %error,
                    "no notifications from the database: changes of other boards are noticed by polling"
                );
            }
            // A connection that worked is replaced at once.
            let until = Instant::now() + if was_prompt { Duration::ZERO } else { RETRY_EVERY };
            loop {
                self.tell(HintNotice::PollAll);
                if Instant::now() >= until {
                    break;
                }
                sleep(POLL_WITHOUT_HINTS).await;
            }
        }
    }

    /// Receives hints, and returns why it no longer can.
    async fn listen_until_it_fails(&self) -> sqlx::Error {
        let mut listener = match self.connect().await {
            Ok(listener) => listener,
            Err(error) => return error,
        };
        let mut pings = 0_u64;
        let mut answered = 0_u64;
        let mut next_ping = Instant::now();
        let mut next_poll = Instant::now() + POLL_EVERY;
        let mut deadline = None;
        loop {
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return not_received();
            }
            if now >= next_ping && deadline.is_none() {
                pings += 1;
                let ping = format!("{}\n{PING} {pings} ", self.shared.origin);
                if let Err(error) = notify(&self.pool, &[ping]).await {
                    return error;
                }
                deadline = Some(Instant::now() + PING_TIMEOUT);
                next_ping = now + PING_EVERY;
            }
            if now >= next_poll {
                self.tell(HintNotice::PollAll);
                next_poll = now + POLL_EVERY;
            }
            let wake = deadline.unwrap_or(next_ping).min(next_poll);
            match tokio::time::timeout_at(wake, listener.try_recv()).await {
                Err(_elapsed) => {}
                Ok(Err(error)) => return error,
                // The connection was lost; the listener would make a new one and say nothing of what was missed.
                Ok(Ok(None)) => return lost(),
                Ok(Ok(Some(message))) => {
                    if let Some(number) = self.receive(message.payload()) {
                        answered = answered.max(number);
                    }
                    if answered == pings {
                        deadline = None;
                        self.begin();
                    }
                }
            }
        }
    }

    async fn connect(&self) -> Result<PgListener, sqlx::Error> {
        let connect = async {
            let one = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(CONNECT_TIMEOUT)
                .connect_lazy_with(self.listen.clone());
            let mut listener = PgListener::connect_with(&one).await?;
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await?;
            Ok(listener)
        };
        timeout(CONNECT_TIMEOUT, connect).await.unwrap_or_else(|_| Err(sqlx::Error::PoolTimedOut))
    }

    /// Notes that notifications arrive. What changed before is not known.
    fn begin(&self) {
        if !self.shared.is_prompt.swap(true, Ordering::AcqRel) {
            tracing::debug!("notifications from the database arrive");
            self.tell(HintNotice::PollAll);
        }
    }

    /// Passes on a message of another board, and returns the number of a ping of this one.
    fn receive(&self, payload: &str) -> Option<u64> {
        let mut lines = payload.lines();
        if lines.next() == Some(self.shared.origin.as_str()) {
            let mut words = lines.next()?.split(' ');
            return (words.next() == Some(PING)).then(|| words.next()?.parse().ok())?;
        }
        if payload.lines().nth(1).is_some_and(|line| line.starts_with(PING)) {
            return None;
        }
        match read(lines) {
            Some(hints) => {
                for hint in hints {
                    self.tell(HintNotice::Hint(hint));
                }
            }
            None => self.tell(HintNotice::PollAll),
        }
        None
    }

    fn tell(&self, notice: HintNotice) {
        // An error means that nobody follows.
        let _unheard = self.notices.send(notice);
    }
}

fn not_received() -> sqlx::Error {
    sqlx::Error::Protocol(
        "a notification did not come back; a pooler in transaction mode loses them: set `store.listen_url` to the address \
         of the database itself"
            .into(),
    )
}

fn lost() -> sqlx::Error {
    sqlx::Error::Protocol("the connection for notifications was lost".into())
}
