//! One run of the suite, and what it complains about.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use switchboard_test_support::peers;
use tokio::process::Command;

/// A whole run takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(100);

/// An extension that neither side of the tests has; the suite does not score it either.
const NOT_OURS: &str = "tasks-";

/// Which checks are run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Suite {
    /// 0.1.16, which knows only the legacy era.
    Active,
    /// 0.2.0-alpha.12: what this revision of the protocol requires, and what is run besides.
    Requirements(&'static str),
}

/// A scenario that cannot work in some setting, and why.
pub(crate) type Excuse = (&'static str, &'static str);

impl Suite {
    fn file(self) -> &'static str {
        match self {
            Self::Active => "conformance-0.1/dist/index.js",
            Self::Requirements(_) => "conformance-0.2/dist/index.js",
        }
    }

    /// The part of the command line that selects the scenarios.
    fn selection(self) -> [&'static str; 2] {
        match self {
            Self::Active => ["--suite", "active"],
            Self::Requirements(revision) => ["--requirements", revision],
        }
    }

    fn command(self, mode: &str) -> Command {
        let mut command = Command::new(peers::node());
        command.arg(peers::npm_file(self.file())).arg(mode);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Lets the suite be a client of the server at this address. At least `scenarios` must have run, and
    /// all but the excused ones without a complaint.
    pub(crate) async fn test_server(self, url: &str, scenarios: usize, excused: &[Excuse]) {
        let directory = tempfile::tempdir().unwrap();
        let mut command = self.command("server");
        command.args(["--url", url]).args(self.selection()).arg("-o").arg(directory.path());
        self.test(command, directory.path(), "server-", scenarios, excused).await;
    }

    /// Lets the suite be the server of this command, in one scenario.
    pub(crate) async fn test_client(self, driver: &str, scenario: &str) {
        let directory = tempfile::tempdir().unwrap();
        let mut command = self.command("client");
        command.args(["--command", driver, "--scenario", scenario]);
        command.env("SWITCHBOARD_BIN", env!("CARGO_BIN_EXE_switchboard"));
        if let Self::Requirements(revision) = self {
            command.args(["--spec-version", revision]);
        }
        command.arg("-o").arg(directory.path());
        self.test(command, directory.path(), "", 1, &[]).await;
    }

    async fn test(
        self,
        mut command: Command,
        results: &Path,
        prefix: &str,
        scenarios: usize,
        excused: &[Excuse],
    ) {
        let ran = tokio::time::timeout(PATIENCE, command.output()).await;
        let output = ran.expect("the suite ends in time").unwrap();
        let words = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let found = read(results, prefix);
        assert!(found.len() >= scenarios, "{} scenarios ran:\n{words}", found.len());
        let mut complaints = String::new();
        let counted = found.iter().filter(|(scenario, _)| {
            !scenario.starts_with(NOT_OURS) && excused.iter().all(|(name, _)| name != scenario)
        });
        for (scenario, checks) in counted {
            complain(&mut complaints, scenario, checks);
        }
        assert!(complaints.is_empty(), "{self:?}\n{complaints}\n{words}");
        let all_counted = excused.is_empty();
        assert!(!all_counted || output.status.success(), "{self:?} ended badly:\n{words}");
    }
}

/// Scenarios and their checks, from the files that the suite writes.
fn read(results: &Path, prefix: &str) -> Vec<(String, Vec<Value>)> {
    let below = |directory: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    // A scenario such as `auth/basic-cimd` lies one level deeper.
    let directories = below(results);
    let deeper: Vec<_> = directories.iter().flat_map(|directory| below(directory)).collect();
    let mut found: Vec<_> = directories
        .into_iter()
        .chain(deeper)
        .filter(|directory| directory.join("checks.json").is_file())
        .map(|directory| {
            let name = directory.strip_prefix(results).unwrap().to_str().unwrap();
            // The name ends with the time of the run.
            // `scenario-2026-11-16T02-34-20-...`: both parts may hold any number.
            let (dated, _time) = name.rsplit_once('T').unwrap();
            let (scenario, _date) = dated.split_at(dated.len() - "-2026-11-16".len());
            let checks = std::fs::read_to_string(directory.join("checks.json")).unwrap();
            let scenario = scenario.strip_prefix(prefix).unwrap_or(scenario);
            (scenario.to_owned(), serde_json::from_str(&checks).unwrap())
        })
        .collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

fn complain(complaints: &mut String, scenario: &str, checks: &[Value]) {
    for check in checks {
        let status = check["status"].as_str().unwrap();
        if matches!(status, "FAILURE" | "WARNING") {
            let (id, message) = (&check["id"], &check["errorMessage"]);
            writeln!(complaints, "{scenario}: {status} {id}: {message}").unwrap();
        }
    }
}
