//! The fake model backends as a program: prints their address and serves until stdin ends.
//!
//! `switchboard-fake-models [SCRIPT]`, where SCRIPT is JSON such as `{"anthropic": [{"text": "hello"}]}`. While it
//! runs, `POST /_fake/script` adds steps, `POST /_fake/clear` clears scripts and records, and `GET /_fake/seen` returns
//! the received requests.
#![expect(clippy::print_stdout, reason = "a program for tests")]

use std::error::Error;

use switchboard_test_support::model_backends::{FakeBackends, Script};
use tokio::io::AsyncReadExt as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let fakes = FakeBackends::start().await;
    if let Some(script) = std::env::args().nth(1) {
        fakes.run_script(Script::parse(&script)?);
    }
    println!("{}", fakes.root_url());
    // The parent process holds the other end of stdin: when it ends, so does this one.
    let mut ignored = Vec::new();
    tokio::io::stdin().read_to_end(&mut ignored).await?;
    Ok(())
}
