//! Shows a turn: the answer on standard output, everything else on standard error.

use std::collections::HashMap;

use owo_colors::OwoColorize;
use tokio::time::Instant;

use crate::history_text::{call_text, first_line};
use crate::output::{Output, harmless};
use crate::turn_news::{Event, Status, Told};

/// Shows one turn.
pub(super) struct Screen {
    output: Output,
    began: Instant,
    /// The kind of the line that is not complete yet.
    open: Option<OpenBlock>,
    /// What was shown since the last model request: an answer if there was any text of it, else reasoning.
    shown: Option<OpenBlock>,
    /// The tool names of calls, by call id.
    calls: HashMap<String, String>,
    asked: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Answer,
    Thought,
}

impl Screen {
    pub(super) fn new(output: Output) -> Self {
        Self {
            output,
            began: Instant::now(),
            open: None,
            shown: None,
            calls: HashMap::new(),
            asked: String::new(),
        }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, told: Told) {
        if self.output.is_json() {
            return self.output.data(&told.json);
        }
        match told.event {
            Event::Started { provider, model } => {
                self.asked = format!("{provider} {model}");
                self.shown = None;
            }
            Event::Content { delta } => self.say(&delta),
            Event::Thinking { delta } => self.think(&delta),
            Event::ToolCall { id, name, arguments } => {
                self.line(&format!("-> {}", call_text(&name, &arguments)));
                self.calls.insert(id, name);
            }
            Event::ToolProgress { id, progress, total, message } => {
                let name = self.calls.get(&id).map_or("a tool", |name| name);
                let total = total.map(|total| format!("/{}", rounded(total))).unwrap_or_default();
                let progress = rounded(progress);
                let message = message.map(|text| format!(": {text}")).unwrap_or_default();
                let text = harmless(&format!(".. {name} {progress}{total}{message}"));
                self.line(&text.dimmed().to_string());
            }
            Event::ToolResult { name, is_error, content, latency_ms } => {
                let outcome =
                    if is_error { "error".red().to_string() } else { "ok".green().to_string() };
                let time = latency_ms.map(|ms| format!(" in {ms} ms")).unwrap_or_default();
                let result = first_line(&content);
                self.line(&format!("<- {} {outcome}{time}: {result}", harmless(&name)));
            }
            Event::Observation { id: None, text } => self.line(&format!("<- {}", harmless(&text))),
            Event::Strategy { strategy, reason } => {
                let text = harmless(&format!("{reason}; the turn goes on with {strategy}"));
                self.line(&format!("[{text}]"));
            }
            Event::State { state } => self.line(&format!("[state: {}]", harmless(&state))),
            Event::Restarted { tools_revision } => {
                self.discard();
                self.line(&format!(
                    "[the tools changed: the model is called again with those of revision {tools_revision}]"
                ));
            }
            Event::Retrying { attempt, after_ms, error } => {
                self.discard();
                let (message, seconds) = (harmless(&error.message), seconds(after_ms.into()));
                self.line(&format!("[{message}; asking again in {seconds} (try {attempt})]"));
            }
            Event::Error { error } => {
                let message = harmless(&error.message);
                self.line(&format!("{} {message}", "error:".red().bold()));
                self.line(&format!("hint: {}", harmless(&error.advice)));
            }
            Event::Done { status, usage } => {
                if status == Status::Cancelled {
                    self.line("[cancelled; what was said so far is kept]");
                }
                // A turn that failed at once has used no tokens.
                if usage.total() == 0 {
                    return self.end_line();
                }
                let (read, written) = (usage.input_tokens, usage.output_tokens);
                let time = seconds(self.began.elapsed().as_millis());
                let asked = harmless(&self.asked);
                let text = format!("[{asked}: {read} tokens in, {written} out, {time}]");
                self.line(&text.dimmed().to_string());
            }
            // The observation of a call is shown as its result.
            Event::Observation { id: Some(_), .. } | Event::Other => {}
        }
    }

    /// Shows a line on standard error.
    pub(super) fn line(&mut self, text: &str) {
        self.end_line();
        self.output.styled_note(text);
    }

    /// Ends an incomplete line.
    pub(super) fn end_line(&mut self) {
        match self.open.take() {
            Some(OpenBlock::Answer) => self.output.piece("\n"),
            Some(OpenBlock::Thought) => self.output.aside("\n"),
            None => {}
        }
    }

    fn say(&mut self, delta: &str) {
        if self.open == Some(OpenBlock::Thought) {
            self.end_line();
        }
        self.output.piece(delta);
        self.shown = Some(OpenBlock::Answer);
        self.open = open_after(delta, self.open, OpenBlock::Answer);
    }

    fn think(&mut self, delta: &str) {
        if self.open != Some(OpenBlock::Thought) {
            self.end_line();
            self.output.aside(&"(thinking) ".dimmed().to_string());
        }
        self.output.aside(&harmless(delta).dimmed().to_string());
        self.shown = self.shown.or(Some(OpenBlock::Thought));
        // Reasoning that ends with a newline continues in the same block.
        self.open = Some(OpenBlock::Thought);
    }

    /// Marks the text since the last model request as discarded, on the stream where it was shown.
    fn discard(&mut self) {
        match self.shown.take() {
            Some(OpenBlock::Answer) => {
                self.end_line();
                self.output.piece("[the answer above is discarded]\n");
            }
            Some(OpenBlock::Thought) => self.line("[the reasoning above is discarded]"),
            None => {}
        }
    }
}

fn open_after(delta: &str, before: Option<OpenBlock>, what: OpenBlock) -> Option<OpenBlock> {
    match delta.chars().last() {
        Some('\n') => None,
        Some(_) => Some(what),
        None => before,
    }
}

/// Rounds to two decimals for display.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn seconds(ms: u128) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}
