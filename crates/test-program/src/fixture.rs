//! The conformance fixture as a process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use switchboard_test_support::peers;

/// A running fixture. Dropping it kills it.
#[derive(Debug)]
pub struct Fixture {
    child: Child,
    pub url: String,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Fixture {
    pub fn start(era: &str) -> Self {
        let mut child = Command::new(peers::conformance_fixture())
            .args(["--listen", "127.0.0.1:0", "--era", era])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }
}
