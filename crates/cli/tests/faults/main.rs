//! Faults under load: the program is killed, its disk takes nothing, its database is locked, its configuration changes and
//! clients flood it, while sessions, MCP clients, conversations and keys are written.
//!
//! Two things must hold. What was acknowledged is there afterwards and what was refused is not; an answer that was lost may
//! mean either. And what policy hides is never listed and never reaches its server.
//!
//! `FAULT_SECONDS` says for how long (20 by default; `make faults` takes ten minutes). With `FAULT_DISK`, a directory on a
//! small file system of its own, the disk is really filled; else a limit on the size of files stands for that.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, and what they are made of"
)]

mod clients;
mod conversations;
mod keys;
mod ledger;
mod program;
mod readers;
mod sessions;

use switchboard_test_program::support;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::Ledger;
use crate::program::Program;

const DEFAULT_SECONDS: u64 = 20;
/// Between two faults.
const QUIET: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_nothing_hidden_is_shown() {
    let seconds = std::env::var("FAULT_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds: u64 = seconds.unwrap_or(DEFAULT_SECONDS);
    let ledger = Arc::new(Ledger::default());
    let mut program = Program::start(&ledger).await;
    let sessions: Vec<_> =
        (0..3).map(|n| tokio::spawn(sessions::work(program.place(), n))).collect();
    let clients: Vec<_> = (0..2).map(|_| tokio::spawn(clients::work(program.place()))).collect();
    let talks = tokio::spawn(conversations::work(program.place()));
    let readers: Vec<_> = (0..2).map(|_| tokio::spawn(readers::work(program.place()))).collect();
    let keys = tokio::spawn(keys::work(program.place(), program.home()));

    let end = Instant::now() + Duration::from_secs(seconds);
    'all: loop {
        for fault in 0..5 {
            match fault {
                0 => program.kill().await,
                1 => program.fill_disk().await,
                2 => program.reload().await,
                3 => program.lock_database().await,
                _ => program.flood().await,
            }
            tokio::time::sleep(QUIET).await;
            if Instant::now() >= end {
                break 'all;
            }
        }
    }

    program.place().stop();
    let (mut all_sessions, mut all_clients) = (Vec::new(), Vec::new());
    for worker in sessions {
        all_sessions.push(worker.await.unwrap());
    }
    for worker in clients {
        all_clients.push(worker.await.unwrap());
    }
    let (talk, keys) = (talks.await.unwrap(), keys.await.unwrap());
    for worker in readers {
        worker.await.unwrap();
    }
    // The last word: it goes down without a warning, and what is there then is compared with what was promised.
    program.kill().await;
    for model in &all_sessions {
        model.verify(&program.place()).await;
    }
    for client in &all_clients {
        client.verify(&program.place()).await;
    }
    talk.verify(&program.place()).await;
    keys::verify(&program.home(), &keys);
    program.verify_hidden();
    eprintln!("{seconds} s: {ledger}");
    ledger.verify();
}
