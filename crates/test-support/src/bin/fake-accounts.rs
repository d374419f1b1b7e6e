//! A server at which each person has an account, with its authorization server, as a program: prints its address and serves
//! until stdin ends. At the end it prints what must never happen and did, a line for each.
#![expect(clippy::print_stdout, reason = "a program for tests")]

use std::error::Error;

use switchboard_test_support::{AccountEra, AccountServer};
use tokio::io::AsyncReadExt as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = AccountServer::open(AccountEra::Stateless).await;
    println!("{}", server.url());
    // The parent process holds the other end of stdin: when it ends, so does this one.
    let mut ignored = Vec::new();
    tokio::io::stdin().read_to_end(&mut ignored).await?;
    for violation in server.violations() {
        println!("{violation}");
    }
    Ok(())
}
