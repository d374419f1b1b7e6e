//! `chat`: a conversation with a model that has the tools of a session.
//!
//! Answers go to standard output and everything else to standard error, so that a pipe receives the answers only.

mod interrupts;
mod late_servers;
mod lines;
mod partner;
mod screen;
mod typed;

use std::process::ExitCode;

use futures::future::{BoxFuture, FutureExt};
use futures::{StreamExt, future};
use serde_json::json;
use switchboard_turns::{NewTurn, Words};
use uuid::Uuid;

use self::interrupts::{InterruptAction, Interrupts};
use self::late_servers::LateServers;
use self::lines::{InputLines, whole_input};
use self::partner::Partner;
use self::screen::Screen;
use self::typed::{HELP, Typed};
use crate::args::{ChatArguments, Globals};
use crate::failure::{EXIT_TOOL_ERROR, Failure};
use crate::history_text::history_text;
use crate::output::Output;
use crate::session_backend::SessionBackend;
use crate::turn_news::{Event, News, Status};

/// The exit code that shells use for a program that Ctrl-C ended.
const EXIT_INTERRUPTED: u8 = 130;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &ChatArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let done = open(globals, wanted, output).await;
    match done {
        // In JSON mode each line is a document of its own, including the last one.
        Err(failure) if output.is_json() => {
            output.data(&failure.json().to_string());
            Ok(ExitCode::from(failure.code))
        }
        done => done,
    }
}

async fn open(
    globals: &Globals,
    wanted: &ChatArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let backend = if wanted.once.is_some() {
        SessionBackend::open(globals, output).await?
    } else {
        SessionBackend::open_for_conversation(globals, output).await?
    };
    let done = match Partner::new(&backend, wanted, output).await {
        Ok(partner) => {
            let mut chat = Chat {
                partner,
                wanted,
                output,
                lines: InputLines::new(),
                late: LateServers::of(&backend),
                interrupts: Interrupts::listen()?,
                early: None,
            };
            let done = match &wanted.once {
                Some(text) => chat.once(text).await,
                None => chat.talk().await,
            };
            chat.partner.part().await;
            done
        }
        Err(failure) => Err(failure),
    };
    backend.close().await;
    done
}

/// A running chat.
struct Chat<'a> {
    partner: Partner<'a>,
    wanted: &'a ChatArguments,
    output: Output,
    lines: InputLines,
    late: Option<LateServers>,
    interrupts: Interrupts,
    /// A line that was typed during a turn and is handled after it.
    early: Option<Early>,
}

/// Input that waits for the end of a turn.
enum Early {
    Line(String),
    /// End of input.
    End,
}

/// The result of a turn.
enum TurnOutcome {
    Ended(Status),
    /// The user asked to end the program.
    Given,
}

impl Chat<'_> {
    /// Sends one message and shows its answer.
    async fn once(&mut self, text: &str) -> Result<ExitCode, Failure> {
        let text = if text == "-" { whole_input().await? } else { text.to_owned() };
        Ok(match self.turn(text).await? {
            TurnOutcome::Ended(Status::Completed) => ExitCode::SUCCESS,
            TurnOutcome::Ended(Status::Failed | Status::Limited) => ExitCode::from(EXIT_TOOL_ERROR),
            TurnOutcome::Ended(Status::Cancelled) | TurnOutcome::Given => {
                ExitCode::from(EXIT_INTERRUPTED)
            }
        })
    }

    /// Sends messages until the input ends.
    async fn talk(&mut self) -> Result<ExitCode, Failure> {
        self.greet();
        let mut has_failed = false;
        while let Some(line) = self.line().await? {
            let done = match Typed::read(&line, self.partner.answerer()) {
                Typed::Quit => break,
                Typed::Say(text) => match self.turn(text).await {
                    Ok(TurnOutcome::Given) => return Ok(ExitCode::from(EXIT_INTERRUPTED)),
                    // A cancelled turn is no failure.
                    Ok(TurnOutcome::Ended(status)) => {
                        has_failed |= matches!(status, Status::Failed | Status::Limited);
                        Ok(())
                    }
                    Err(failure) => Err(failure),
                },
                typed => self.act(typed).await,
            };
            match done {
                // In a terminal the user can try again; a script stops, because later messages depend on this one.
                Err(failure) if self.lines.is_terminal => drop(self.output.fail(&failure)),
                done => done?,
            }
        }
        // In a terminal the user has seen the failure; a script needs the exit code.
        let is_failure = has_failed && !self.lines.is_terminal;
        Ok(ExitCode::from(if is_failure { EXIT_TOOL_ERROR } else { 0 }))
    }

    fn greet(&self) {
        if self.lines.is_terminal {
            let name = self.partner.provider();
            self.output
                .note(&format!("{name} answers. /help lists what can be typed; /quit ends."));
        }
    }

    /// The next line; `None` at the end of input.
    async fn line(&mut self) -> Result<Option<String>, Failure> {
        match self.early.take() {
            Some(Early::Line(line)) => return Ok(Some(line)),
            Some(Early::End) => return Ok(None),
            None => {}
        }
        loop {
            self.lines.prompt(self.output);
            tokio::select! {
                biased;
                connected = late_servers::connected(&mut self.late) => {
                    if self.lines.is_terminal {
                        self.output.note("");
                    }
                    for text in connected {
                        self.output.note(&text);
                    }
                }
                _ = self.interrupts.next() => {
                    self.output.note("");
                    return Ok(None);
                }
                line = self.lines.next() => {
                    let line = line?;
                    if line.is_none() && self.lines.is_terminal {
                        self.output.note("");
                    }
                    return Ok(line);
                }
            }
        }
    }

    /// Sends a message and shows the answer.
    async fn turn(&mut self, text: String) -> Result<TurnOutcome, Failure> {
        let session = self.partner.session_for(&text).await?;
        let id = Uuid::now_v7().simple().to_string();
        let wanted = NewTurn {
            message: Some(Words::Text(text)),
            groups: (!self.wanted.group.is_empty()).then(|| self.wanted.group.clone()),
            state: self.wanted.state.clone(),
            instructions: self.wanted.instructions.clone(),
            show_thinking: self.wanted.show_thinking.then_some(true),
            max_rounds: self.wanted.max_rounds,
            ..NewTurn::default()
        };
        let backend = self.partner.backend;
        let mut screen = Screen::new(self.output);
        let mut news = backend.begin_turn(&session, &id, wanted).await?;
        self.partner.has_spoken = true;
        let mut cancelling: Option<BoxFuture<'_, Result<(), Failure>>> = None;
        loop {
            tokio::select! {
                heard = news.next() => match heard {
                    Some(Ok(News::Told(told))) => {
                        let status = match told.event {
                            Event::Done { status, .. } => Some(status),
                            _ => None,
                        };
                        screen.show(told);
                        if let Some(status) = status {
                            return Ok(TurnOutcome::Ended(status));
                        }
                    }
                    Some(Ok(News::Lost)) => screen.line("[the connection was lost; following the turn again]"),
                    Some(Err(failure)) => {
                        screen.end_line();
                        return Err(failure);
                    }
                    None => return Err(Failure::unreachable("the stream of the turn ended early")),
                },
                wish = self.interrupts.next() => {
                    if wish == InterruptAction::End || cancelling.is_some() {
                        screen.end_line();
                        return Ok(TurnOutcome::Given);
                    }
                    screen.line("[cancelling; Ctrl-C again exits]");
                    cancelling = Some(backend.cancel_turn(&session, &id).boxed());
                }
                Err(failure) = running(&mut cancelling) => {
                    screen.end_line();
                    return Err(failure);
                }
                line = self.lines.next(), if self.lines.is_terminal && self.early.is_none() => {
                    screen.end_line();
                    self.early = self.typed_early(line?).await;
                }
            }
        }
    }

    /// Handles a line that was typed during a turn: toolsets are switched at once, everything else waits for the end of
    /// the turn.
    async fn typed_early(&mut self, line: Option<String>) -> Option<Early> {
        let Some(line) = line else { return Some(Early::End) };
        match Typed::read(&line, self.partner.answerer()) {
            Typed::Nothing => None,
            typed @ Typed::Toolset { .. } => {
                if let Err(failure) = self.act(typed).await {
                    let _shown = self.output.fail(&failure);
                }
                None
            }
            _ => Some(Early::Line(line)),
        }
    }

    /// Runs a `/command`.
    async fn act(&mut self, typed: Typed) -> Result<(), Failure> {
        let output = self.output;
        match typed {
            Typed::Nothing | Typed::Quit | Typed::Say(_) => {}
            Typed::Help => output.note(HELP),
            Typed::Wrong(why) => output.note(&why),
            Typed::Provider { name, model } => self.partner.switch(name, model).await?,
            Typed::Toolset { name, is_on, is_now } => {
                self.partner.switch_toolset(name, is_on, is_now).await?;
            }
            Typed::Tools => self.partner.show_tools().await?,
            Typed::History => match self.partner.history().await? {
                Some(history) if output.is_json() => {
                    output.data(&json!({"type": "history", "history": history}).to_string());
                }
                Some(history) => output.foreign(&history_text(&history)),
                None => output.note("nothing was said yet"),
            },
        }
        Ok(())
    }
}

/// Waits for an optional future; without one it waits forever.
async fn running<T>(wanted: &mut Option<BoxFuture<'_, T>>) -> T {
    match wanted {
        Some(running) => running.await,
        None => future::pending().await,
    }
}
