//! One run of the suite, and its failures.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use switchboard_test_support::peers;
use tokio::process::Command;

/// A whole run takes some seconds.
const PATIENCE: Duration = Duration::from_secs(100);

/// Which checks are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    /// 0.1.16, which knows only the legacy era.
    Active,
    /// 0.2.0-alpha.12: what this revision of the protocol requires, and what is run besides.
    Requirements(&'static str),
}

/// What a scenario counts for in the suite's own verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// A failure makes the suite end with an error.
    Scored,
    /// It is run and reported, such as an extension of the protocol.
    Reported,
}

/// A scenario that cannot pass, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeftOut {
    pub(crate) scenario: &'static str,
    pub(crate) weight: Weight,
    pub(crate) reason: &'static str,
}

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

    /// The scenarios for clients that the suite has, by its own account.
    pub(crate) async fn client_scenarios(self) -> BTreeSet<String> {
        let mut command = self.command("list");
        command.arg("--client");
        if let Self::Requirements(revision) = self {
            command.args(["--requirements", revision]);
        }
        let output = command.output().await.unwrap();
        let words = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{words}");
        // `- NAME` and perhaps its revisions, below a heading. What a revision requires is listed for both sides,
        // whatever was asked for, and what is never scored in one list, with the side behind the name.
        let mut names = BTreeSet::new();
        let mut is_for_clients = true;
        for line in words.lines().map(str::trim) {
            if let Some(entry) = line.strip_prefix("- ") {
                let (name, side) = entry.split_once(' ').unwrap_or((entry, ""));
                if is_for_clients && side != "[server]" {
                    names.insert(name.to_owned());
                }
            } else if line.ends_with(':') {
                is_for_clients = !line.starts_with("Server scenarios");
            }
        }
        names
    }

    /// Lets the suite be a client of the server at this address. At least `scenarios` must have run, and
    /// all but those that are left out without a complaint.
    pub(crate) async fn test_server(self, url: &str, scenarios: usize, left_out: &[LeftOut]) {
        let directory = tempfile::tempdir().unwrap();
        let mut command = self.command("server");
        command.args(["--url", url]).args(self.selection()).arg("-o").arg(directory.path());
        self.test(command, directory.path(), "server-", scenarios, left_out).await;
    }

    /// Lets the suite be the server of this command, in one scenario.
    pub(crate) async fn test_client(self, driver: &str, scenario: &str) {
        self.run_client(driver, scenario, &[]).await;
    }

    /// The same with a scenario that cannot pass: it is there, and still fails.
    pub(crate) async fn client_fails(self, driver: &str, left_out: LeftOut) {
        // One scenario that is named is what a run is about, whatever it counts for in others.
        let left_out = LeftOut { weight: Weight::Scored, ..left_out };
        self.run_client(driver, left_out.scenario, &[left_out]).await;
    }

    async fn run_client(self, driver: &str, scenario: &str, left_out: &[LeftOut]) {
        let directory = tempfile::tempdir().unwrap();
        let mut command = self.command("client");
        command.args(["--command", driver, "--scenario", scenario]);
        command.env("SWITCHBOARD_BIN", env!("CARGO_BIN_EXE_switchboard"));
        if let Self::Requirements(revision) = self {
            // Extensions belong to no revision, and are run with it all the same.
            command.args(["--spec-version", revision, "--force"]);
        }
        command.arg("-o").arg(directory.path());
        self.test(command, directory.path(), "", 1, left_out).await;
    }

    async fn test(
        self,
        mut command: Command,
        results: &Path,
        prefix: &str,
        scenarios: usize,
        left_out: &[LeftOut],
    ) {
        let ran = tokio::time::timeout(PATIENCE, command.output()).await;
        let output = ran.expect("the suite ends in time").unwrap();
        let words = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let found = read(results, prefix);
        assert!(found.len() >= scenarios, "{} scenarios ran:\n{words}", found.len());
        let mut complaints = String::new();
        for (scenario, checks) in &found {
            let excuse = left_out.iter().find(|left_out| left_out.scenario == scenario);
            let complained = complaints_of(scenario, checks);
            match excuse {
                None => complaints.push_str(&complained),
                Some(LeftOut { reason, .. }) if complained.is_empty() => {
                    writeln!(complaints, "{scenario} passes, and is left out: {reason}").unwrap();
                }
                Some(_) => {}
            }
        }
        for LeftOut { scenario, .. } in left_out {
            if found.iter().all(|(name, _)| name != scenario) {
                writeln!(complaints, "{scenario} is left out, and was not run").unwrap();
            }
        }
        assert!(complaints.is_empty(), "{self:?}\n{complaints}\n{words}");
        let should_pass = left_out.iter().all(|left_out| left_out.weight == Weight::Reported);
        assert_eq!(output.status.success(), should_pass, "{self:?} ended otherwise:\n{words}");
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

/// What did not go well in a scenario, line by line.
fn complaints_of(scenario: &str, checks: &[Value]) -> String {
    let mut complaints = String::new();
    for check in checks {
        let status = check["status"].as_str().unwrap();
        if matches!(status, "FAILURE" | "WARNING") {
            let (id, message) = (&check["id"], &check["errorMessage"]);
            writeln!(complaints, "{scenario}: {status} {id}: {message}").unwrap();
        }
    }
    complaints
}
