//! The guard process between Switchboard and a stdio server: it ends the server's whole process tree when Switchboard
//! ends, even if Switchboard is killed.
//!
//! A child may ignore the end of its input, and SIGKILL leaves no time to clean up. Every stdio server is therefore
//! started by `switchboard guard`, which becomes the subreaper of the tree, watches its parent through a pidfd, and
//! kills the tree when the parent ends. The server inherits its standard streams directly: no data is copied.

use std::process::ExitCode;

/// The exit code of a guard that could not start its command.
pub(crate) const GUARD_FAILED: u8 = 127;

/// Runs `command` under guard until it or `parent` ends. The exit code is that of the command.
#[cfg(target_os = "linux")]
pub fn run_guard(parent: u32, command: &str, arguments: &[String]) -> ExitCode {
    linux::run(parent, command, arguments)
}

/// Only Linux supports guarding a process tree.
#[cfg(not(target_os = "linux"))]
pub fn run_guard(_parent: u32, _command: &str, _arguments: &[String]) -> ExitCode {
    ExitCode::from(126)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, ExitCode};
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, kill_process, pidfd_open,
        set_child_subreaper, wait,
    };
    use tokio::signal::unix::{SignalKind, signal};

    /// How long the tree may take to exit by itself. The whole shutdown takes at most two seconds.
    const GRACE: Duration = Duration::from_millis(700);

    pub(super) fn run(parent: u32, command: &str, arguments: &[String]) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let guarded = runtime.map(|runtime| {
            let ended = runtime.block_on(guard(parent, command, arguments));
            // The thread that watches the parent may block forever.
            runtime.shutdown_background();
            ended
        });
        match guarded {
            Ok(Ok(code)) => ExitCode::from(code),
            Ok(Err(error)) | Err(error) => {
                // If standard error is closed too, the error is lost.
                let _unheard = writeln!(std::io::stderr(), "cannot start `{command}`: {error}");
                ExitCode::from(super::GUARD_FAILED)
            }
        }
    }

    async fn guard(parent: u32, command: &str, arguments: &[String]) -> std::io::Result<u8> {
        let mut children = signal(SignalKind::child())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // A terminal sends these to the whole process group; only the parent decides when to end.
        let _ignored = (signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
        set_child_subreaper(Some(getpid()))?;
        let expected = i32::try_from(parent).ok().and_then(Pid::from_raw);
        let (Some(parent), true) = (expected, getppid() == expected) else {
            return Err(std::io::Error::other("the parent process is gone"));
        };
        let parent = pidfd_open(parent, PidfdFlags::empty())?;
        let parent_ended = tokio::task::spawn_blocking(move || {
            // A pidfd becomes readable when its process ends. An error means that there is nothing to watch, except
            // EINTR, which a child's exit may cause.
            let watch = || poll(&mut [PollFd::new(&parent, PollFlags::IN)], None);
            let _ended_or_gone = rustix::io::retry_on_intr(watch);
        });
        let child = Command::new(command).args(arguments).process_group(0).spawn()?;
        let_go_of_streams()?;
        let code = tokio::select! {
            code = reap_until_exit(&mut children, child.id()) => code,
            _ = parent_ended => 0,
            _ = terminate.recv() => 0,
        };
        kill_tree(&mut children).await;
        Ok(code)
    }

    /// Closes the guard's copies of the streams, so that each side sees when the other one closes them.
    fn let_go_of_streams() -> std::io::Result<()> {
        let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        Ok(())
    }

    /// Reaps all descendants until the child itself exits.
    async fn reap_until_exit(children: &mut tokio::signal::unix::Signal, child: u32) -> u8 {
        loop {
            while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
                if u32::try_from(pid.as_raw_nonzero().get()) == Ok(child) {
                    let killed = status.terminating_signal().map(|signal| 128 + signal);
                    let code = status.exit_status().or(killed).unwrap_or(1);
                    return u8::try_from(code).unwrap_or(1);
                }
            }
            children.recv().await;
        }
    }

    /// Ends all descendants: SIGTERM first, then SIGKILL. Repeats the scan to find new forks.
    async fn kill_tree(children: &mut tokio::signal::unix::Signal) {
        signal_descendants(Signal::TERM);
        let deadline = tokio::time::Instant::now() + GRACE;
        while !reap_and_list().is_empty() {
            if tokio::time::timeout_at(deadline, children.recv()).await.is_err() {
                break;
            }
        }
        for _ in 0..50 {
            if reap_and_list().is_empty() {
                return;
            }
            signal_descendants(Signal::KILL);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn reap_and_list() -> Vec<Pid> {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        descendants()
    }

    fn signal_descendants(signal: Signal) {
        for pid in descendants() {
            // A process that has just exited needs no signal.
            let _gone = kill_process(pid, signal);
        }
    }

    /// All descendant processes. Orphans are included, because the guard is their reaper.
    fn descendants() -> Vec<Pid> {
        let parents: Vec<(i32, i32)> = std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                // `pid (name) state ppid …`; the name may contain anything, so parsing starts after the last bracket.
                let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
                let state = fields.next()?;
                let parent: i32 = fields.next()?.parse().ok()?;
                (state != "Z").then_some((pid, parent))
            })
            .collect();
        let mut found = vec![getpid().as_raw_nonzero().get()];
        let mut at = 0;
        while let Some(above) = found.get(at).copied() {
            let below = parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid);
            found.extend(below);
            at += 1;
        }
        found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
    }
}
