//! Sends hints: those of a few milliseconds in one transaction, each change once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::hint::{ChangeHint, HintState, HintTopic};
use crate::postgres_pool::PostgresPool;
use crate::postgres_transaction::{PostgresTransaction, WriteKind};
use crate::statement::{Wanted, query};

/// The channel of all boards of a database.
pub(crate) const CHANNEL: &str = "switchboard";
/// Hints of this time are sent together.
const GATHERED_FOR: Duration = Duration::from_millis(5);
/// `PostgreSQL` takes payloads of up to 7,999 bytes.
const MAX_PAYLOAD: usize = 7_900;
/// The word of a message that tells receivers to poll everything.
pub(crate) const POLL_ALL: &str = "poll";
const AT_ONCE: usize = 1024;

/// An entry of the queue.
#[derive(Debug)]
pub(crate) enum OutgoingHint {
    Hint(ChangeHint),
    /// Answered when what came before it was sent.
    Flush(oneshot::Sender<()>),
}

#[derive(Debug)]
pub(crate) struct HintPublisher {
    pool: PostgresPool,
    shared: Arc<HintState>,
}

impl HintPublisher {
    pub(crate) fn new(pool: PostgresPool, shared: Arc<HintState>) -> Self {
        Self { pool, shared }
    }

    pub(crate) async fn run(
        self,
        mut waiting: mpsc::Receiver<OutgoingHint>,
        stop: CancellationToken,
    ) {
        let mut entries = Vec::with_capacity(AT_ONCE);
        loop {
            let received = waiting.recv_many(&mut entries, AT_ONCE);
            match stop.run_until_cancelled(received).await {
                None | Some(0) => return,
                Some(_) => {}
            }
            if entries.iter().all(|entry| matches!(entry, OutgoingHint::Hint(_))) {
                tokio::time::sleep(GATHERED_FOR).await;
                while let Ok(entry) = waiting.try_recv() {
                    entries.push(entry);
                }
            }
            let mut latest: BTreeMap<(HintTopic, String), i64> = BTreeMap::new();
            let mut flushes = Vec::new();
            for entry in entries.drain(..) {
                match entry {
                    OutgoingHint::Hint(hint) => {
                        let version = latest.entry((hint.topic, hint.key)).or_insert(hint.version);
                        *version = (*version).max(hint.version);
                    }
                    OutgoingHint::Flush(done) => flushes.push(done),
                }
            }
            let has_dropped = self.shared.has_dropped.swap(false, Ordering::AcqRel);
            let payloads = payloads(&self.shared.origin, &latest, has_dropped);
            if let Err(error) = notify(&self.pool, &payloads).await {
                tracing::debug!(%error, "hints to other boards were not sent; they poll");
            }
            for done in flushes {
                let _gone = done.send(());
            }
        }
    }
}

/// The messages for these hints, each below the limit of `PostgreSQL`.
fn payloads(
    origin: &str,
    latest: &BTreeMap<(HintTopic, String), i64>,
    has_dropped: bool,
) -> Vec<String> {
    let mut payloads = Vec::new();
    let mut payload = origin.to_owned();
    if has_dropped {
        payload = format!("{payload}\n{POLL_ALL}");
    }
    for ((topic, key), version) in latest {
        let line = format!("\n{} {version} {key}", topic.word());
        if payload.len() + line.len() > MAX_PAYLOAD && payload.len() > origin.len() {
            payloads.push(std::mem::replace(&mut payload, origin.to_owned()));
        }
        // No message could carry it.
        if origin.len() + line.len() > MAX_PAYLOAD {
            payloads.push(format!("{origin}\n{POLL_ALL}"));
        } else {
            payload.push_str(&line);
        }
    }
    if payload.len() > origin.len() {
        payloads.push(payload);
    }
    payloads
}

/// Sends messages in one transaction whose commit does not wait for the disk.
pub(crate) async fn notify(pool: &PostgresPool, payloads: &[String]) -> Result<(), sqlx::Error> {
    if payloads.is_empty() {
        return Ok(());
    }
    let mut open = PostgresTransaction::begin(pool, WriteKind::Deferred).await?;
    for payload in payloads {
        let statement = query("SELECT 1 FROM pg_notify($1, $2)").bind(CHANNEL).bind(payload);
        open.run(&statement, Wanted::Count).await?;
    }
    open.commit().await
}

/// The hints of a message, or `None` for "poll everything". The first line is its origin.
pub(crate) fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Vec<ChangeHint>> {
    lines
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let topic = HintTopic::of(words.next()?)?;
            let version = words.next()?.parse().ok()?;
            Some(ChangeHint { topic, key: words.next()?.to_owned(), version })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(topic: HintTopic, key: &str, version: i64) -> ((HintTopic, String), i64) {
        ((topic, key.to_owned()), version)
    }

    #[test]
    fn what_is_written_is_read_again_whatever_its_size() {
        let latest: BTreeMap<_, _> = (0..1000)
            .map(|n| hint(HintTopic::Session, &format!("a session with spaces {n}"), n))
            .chain([hint(HintTopic::Config, "", 0)])
            .collect();
        let payloads = payloads("0123", &latest, false);
        assert!(payloads.len() > 1);
        let mut found = BTreeMap::new();
        for payload in &payloads {
            assert!(payload.len() <= MAX_PAYLOAD, "{}", payload.len());
            let mut lines = payload.lines();
            assert_eq!(lines.next(), Some("0123"));
            for hint in read(lines).unwrap() {
                found.insert((hint.topic, hint.key), hint.version);
            }
        }
        assert_eq!(found, latest);
    }

    #[test]
    fn what_cannot_be_sent_becomes_a_poll() {
        let long = BTreeMap::from([hint(HintTopic::Session, &"x".repeat(9000), 1)]);
        let nothing = BTreeMap::new();
        for (latest, has_dropped) in [(&long, false), (&nothing, true)] {
            let sent = payloads("0123", latest, has_dropped);
            assert_eq!(sent, ["0123\npoll"]);
            assert_eq!(read(sent[0].lines().skip(1)), None);
        }
        assert_eq!(payloads("0123", &nothing, false), Vec::<String>::new());
        // A newer board may know more topics.
        assert_eq!(read(["weather 1 x"].into_iter()), None);
    }
}
