//! The fake model backends as a program: prints their address, serves until stdin ends.
//!
//! `switchboard-fake-models [SCRIPT]`, where SCRIPT is JSON such as `{"anthropic": [{"text": "hello"}]}`. While it
//! runs, `POST /_fake/script` adds steps, `POST /_fake/clear` forgets everything and `GET /_fake/seen` tells
//! what was asked.
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
    // Whoever started this holds the other end: when it goes, so do the fakes.
    let mut ignored = Vec::new();
    tokio::io::stdin().read_to_end(&mut ignored).await?;
    Ok(())
}
