//! The process between us and a stdio server: it makes sure that the server's whole process tree ends when we
//! do, even when we are killed.
//!
//! A child cannot be trusted to read the end of its input, and a kill signal gives us no chance to clean up. So
//! every stdio server is started by `switchboard guard`, which becomes the reaper of everything below it,
//! watches us through a pidfd, and kills the tree when we end. The server inherits its standard streams
//! directly: no byte is copied.

use std::process::ExitCode;

/// The exit code of a guard that could not start its command.
pub(crate) const GUARD_FAILED: u8 = 127;

/// Runs `command` under guard until it ends or `parent` does. The exit code is the command's.
#[cfg(target_os = "linux")]
pub fn run_guard(parent: u32, command: &str, arguments: &[String]) -> ExitCode {
    linux::run(parent, command, arguments)
}

/// Only Linux can guard a process tree.
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

    /// How long the tree may take to end by itself. The promise is two seconds in all.
    const GRACE: Duration = Duration::from_millis(700);

    pub(super) fn run(parent: u32, command: &str, arguments: &[String]) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let guarded = runtime.map(|runtime| {
            let ended = runtime.block_on(guard(parent, command, arguments));
            // The thread that watches our parent may wait for ever.
            runtime.shutdown_background();
            ended
        });
        match guarded {
            Ok(Ok(code)) => ExitCode::from(code),
            Ok(Err(error)) | Err(error) => {
                // Nobody is left to tell if standard error is gone too.
                let _unheard = writeln!(std::io::stderr(), "cannot start `{command}`: {error}");
                ExitCode::from(super::GUARD_FAILED)
            }
        }
    }

    async fn guard(parent: u32, command: &str, arguments: &[String]) -> std::io::Result<u8> {
        let mut children = signal(SignalKind::child())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // A terminal sends these to the whole group; when to end is for our parent to say.
        let _ignored = (signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
        set_child_subreaper(Some(getpid()))?;
        let expected = i32::try_from(parent).ok().and_then(Pid::from_raw);
        let (Some(parent), true) = (expected, getppid() == expected) else {
            return Err(std::io::Error::other("the process that asked for it is gone"));
        };
        let parent = pidfd_open(parent, PidfdFlags::empty())?;
        let parent_ended = tokio::task::spawn_blocking(move || {
            // A pidfd becomes readable when its process ends; an error means that there is nothing to watch.
            // The end of a child may interrupt it, which says nothing about our parent.
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

    /// The streams belong to the child alone, so that both sides see when the other closes them.
    fn let_go_of_streams() -> std::io::Result<()> {
        let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        Ok(())
    }

    /// Reaps everything that ends below us, until it is the child itself.
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

    /// Ends everything below us: politely, then for good. New forks are found by looking again.
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
            // One that has just ended needs no signal.
            let _gone = kill_process(pid, signal);
        }
    }

    /// Every process that has us above it. Orphans count: we are their reaper.
    fn descendants() -> Vec<Pid> {
        let parents: Vec<(i32, i32)> = std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                // `pid (name) state ppid …`; the name may hold anything, so read behind its last bracket.
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
