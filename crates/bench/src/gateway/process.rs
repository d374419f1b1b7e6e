//! The processes under test: their start, address and resource usage.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal};

/// A server process; it is stopped when this value is dropped.
pub(crate) struct Process {
    child: Child,
    /// Host and port.
    pub(crate) address: String,
}

/// CPU time of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    pub(crate) user: Duration,
    /// Time in the kernel, which a program can reduce only by making fewer system calls.
    pub(crate) system: Duration,
}

impl CpuTime {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    pub(crate) fn total(self) -> Duration {
        self.user + self.system
    }
}

/// The tool that a process runs under.
#[derive(Debug)]
pub(crate) enum Tool {
    None,
    /// Counts instructions, and writes the counts to this file with a number appended.
    Callgrind(PathBuf),
}

impl Tool {
    fn command(&self, program: &Path) -> Command {
        match self {
            Self::None => Command::new(program),
            Self::Callgrind(file) => {
                let mut command = Command::new("valgrind");
                command.args(["--quiet", "--tool=callgrind"]);
                command.arg(format!("--callgrind-out-file={}", file.display())).arg(program);
                command
            }
        }
    }
}

impl Process {
    /// Starts another mode of this program.
    pub(crate) fn peer(arguments: &[&str]) -> anyhow::Result<Self> {
        Self::peer_under(&Tool::None, arguments)
    }

    pub(crate) fn peer_under(tool: &Tool, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut command = tool.command(&std::env::current_exe()?);
        command.arg("peer").args(arguments).stderr(Stdio::inherit());
        Self::start(command)
    }

    pub(crate) fn gateway(program: &Path, directory: &Path, yaml: &str) -> anyhow::Result<Self> {
        Self::gateway_under(&Tool::None, program, directory, yaml)
    }

    pub(crate) fn gateway_under(
        tool: &Tool,
        program: &Path,
        directory: &Path,
        yaml: &str,
    ) -> anyhow::Result<Self> {
        let config = directory.join("switchboard.yaml");
        std::fs::create_dir_all(directory)?;
        std::fs::write(&config, yaml)?;
        let mut command = tool.command(program);
        command.arg("--config").arg(config).arg("--data-dir").arg(directory.join("data"));
        let log = directory.join("log");
        command.args(["--quiet", "serve", "--listen", "127.0.0.1:0"]);
        command.stderr(std::fs::File::create(&log)?);
        Self::start(command).with_context(|| {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            format!("the gateway does not start: {said}")
        })
    }

    fn start(mut command: Command) -> anyhow::Result<Self> {
        // Standard input stays open while this process lives: the peers end when it closes.
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let child = spawned.with_context(|| format!("cannot start {command:?}"))?;
        let mut process = Self { child, address: String::new() };
        let stdout = process.child.stdout.take().context("no output")?;
        let mut output = BufReader::new(stdout);
        let mut line = String::new();
        while process.address.is_empty() {
            line.clear();
            ensure!(output.read_line(&mut line)? > 0, "a server ended before it was ready");
            if let Some((_, address)) = line.trim_end().split_once("serving at http://") {
                address.clone_into(&mut process.address);
            }
        }
        // Keeps the pipe open without reading it: writing to a closed pipe would fail, and the output is small.
        process.child.stdout = Some(output.into_inner());
        Ok(process)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all threads, including those that ended.
    pub(crate) fn cpu_time(&self) -> anyhow::Result<CpuTime> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The program name is in parentheses and may contain spaces.
        let (_, fields) = stat.rsplit_once(')').context("no such stat")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let per_second = u32::try_from(rustix::param::clock_ticks_per_second())?;
        ensure!(per_second > 0, "no clock ticks");
        let time = |index: usize| -> anyhow::Result<Duration> {
            let ticks = fields.get(index).context("too few fields")?.parse()?;
            Ok(Duration::from_secs(ticks) / per_second)
        };
        Ok(CpuTime { user: time(11)?, system: time(12)? })
    }

    /// Voluntary context switches of the threads that are alive.
    pub(crate) fn sleeps(&self) -> anyhow::Result<u64> {
        let mut sleeps = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may end in the meantime.
            let Ok(status) = std::fs::read_to_string(thread?.path().join("status")) else {
                continue;
            };
            let mut lines = status.lines();
            let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sleeps += count.context("no count of switches")?.trim().parse::<u64>()?;
        }
        Ok(sleeps)
    }

    /// Resident memory in MB (of 1,048,576 bytes).
    pub(crate) fn resident(&self) -> anyhow::Result<f64> {
        self.memory("VmRSS:")
    }

    /// The maximum resident memory so far, in MB.
    pub(crate) fn peak_resident(&self) -> anyhow::Result<f64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, what: &str) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(what));
        let kib = line.and_then(|line| line.split_whitespace().next());
        let kib = kib.with_context(|| format!("no {what}"))?;
        Ok(kib.parse::<f64>()? / 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Terminated by a signal first: a build that records a profile (see `scripts/dist`) writes it when it exits.
        // The process may have exited already; failing requests have shown that.
        let asked = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
        let mut looks = if asked.is_ok() { 3_000 } else { 0 };
        while looks > 0 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
            looks -= 1;
        }
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}
