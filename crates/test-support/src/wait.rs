//! Waiting for a condition, and finding a free port.

use std::net::TcpListener;
use std::time::Duration;

use tokio::time::Instant;

const POLL: Duration = Duration::from_millis(10);

/// A loopback port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    listener.local_addr().expect("a bound listener has an address").port()
}

/// Calls `probe` repeatedly until it returns a value. Panics after `deadline`, even if a single probe takes that long.
pub async fn wait_until<T>(deadline: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + deadline;
    loop {
        match tokio::time::timeout_at(end, probe()).await {
            Ok(Some(value)) => return value,
            Ok(None) if Instant::now() < end => tokio::time::sleep(POLL).await,
            Ok(None) | Err(_) => panic!("what the test waits for did not come within {deadline:?}"),
        }
    }
}
