//! The actions of a reply: the name of a tool and its arguments.

use super::texts::{PieceKind, emit};
use super::{OpenAction, ReactCall, ReactParser, ReactPiece, Section};
use crate::arguments::{self, ObjectEnd, ReadArguments};
use crate::problem::ReactProblem;
use crate::tool_name::{self, ActionTarget};

/// Maximum length of the line that names a tool.
const MAX_NAME: usize = 512;
/// Maximum size of the arguments of one action.
const MAX_ARGUMENTS: usize = 1 << 20;
/// Maximum number of actions in one reply; more are dropped.
const MAX_ACTIONS: usize = 128;

impl ReactParser {
    pub(super) fn keep(&mut self, c: char) {
        if self.buffer.len() >= MAX_ARGUMENTS {
            self.is_too_long = true;
        } else {
            self.buffer.push(c);
        }
    }

    pub(super) fn name(&mut self, c: char, out: &mut Vec<ReactPiece>) {
        let has_name = || tool_name::named(&self.buffer) != ActionTarget::Nothing;
        match c {
            '\n' if is_fence(&self.buffer) => {
                self.buffer.clear();
                self.is_in_code_block = !self.is_in_code_block;
            }
            '\n' => self.end_name(out),
            '{' if has_name() => {
                self.end_name(out);
                self.begin_object(Section::ArgsObject, c);
            }
            '{' => self.begin_object(Section::ActionObject, c),
            '(' | '[' if has_name() => {
                self.end_name(out);
                self.section = Section::Args;
            }
            _ if self.buffer.len() < MAX_NAME => self.buffer.push(c),
            _ => {}
        }
    }

    pub(super) fn begin_object(&mut self, section: Section, c: char) {
        self.buffer.clear();
        self.buffer.push(c);
        (self.section, self.is_too_long) = (section, false);
        self.object = ObjectEnd::default();
        self.object.ends_with(c);
    }

    /// Reads the name of a tool from the line of an action; a blank line has none yet.
    pub(super) fn end_name(&mut self, out: &mut Vec<ReactPiece>) {
        let line = std::mem::take(&mut self.buffer);
        let (named, rest) = tool_name::split(&line);
        if named == ActionTarget::Nothing {
            return;
        }
        self.begin_action(named, out);
        self.section = Section::BeforeArgs;
        if let Some(rest) = rest {
            self.section = Section::Args;
            rest.chars().for_each(|c| self.args(c));
        }
    }

    pub(super) fn begin_action(&mut self, named: ActionTarget, out: &mut Vec<ReactPiece>) {
        self.action = Some(match named {
            ActionTarget::Tool(name) if self.calls < MAX_ACTIONS => {
                out.push(ReactPiece::CallBegun(name.clone()));
                OpenAction::Tool(name)
            }
            ActionTarget::Answer if self.calls == 0 => OpenAction::Answer,
            ActionTarget::NoAction => OpenAction::Nothing,
            ActionTarget::Tool(_) | ActionTarget::Answer | ActionTarget::Nothing => {
                self.end.has_dropped = true;
                OpenAction::Nothing
            }
        });
    }

    pub(super) fn before_args(&mut self, c: char) {
        match c {
            '\n' => self.buffer.clear(),
            '{' if self.buffer.trim().trim_matches('`').is_empty() => {
                self.begin_object(Section::ArgsObject, c);
            }
            _ if self.buffer.len() < MAX_NAME => self.buffer.push(c),
            _ => {}
        }
    }

    pub(super) fn args(&mut self, c: char) {
        let before = self.buffer.trim_matches([' ', '\t', '\n', '`', '*', '(']);
        if c == '{' && (before.is_empty() || before.eq_ignore_ascii_case("json")) {
            self.begin_object(Section::ArgsObject, c);
        } else {
            self.keep(c);
        }
    }

    pub(super) fn object_ended(&mut self, out: &mut Vec<ReactPiece>) {
        if self.section == Section::ArgsObject {
            return self.end_action(out);
        }
        let text = std::mem::take(&mut self.buffer);
        self.section = Section::AfterAction;
        match tool_name::from_object(&text) {
            Some((named, arguments)) if named != ActionTarget::Nothing => {
                self.begin_action(named, out);
                self.finish_action(arguments, out);
            }
            _ => self.fail(ReactProblem::NoName),
        }
    }

    /// Makes a reply without labels an action, if it is nothing but the JSON object of one. Returns whether it is.
    pub(super) fn lead_is_action(&mut self, out: &mut Vec<ReactPiece>) -> bool {
        let Some((named, arguments)) = tool_name::from_reply(&self.buffer) else { return false };
        self.buffer.clear();
        self.fence = None;
        self.section = Section::AfterAction;
        self.begin_action(named, out);
        self.finish_action(arguments, out);
        true
    }

    /// Ends the action with the arguments that were read so far.
    pub(super) fn end_action(&mut self, out: &mut Vec<ReactPiece>) {
        let text = std::mem::take(&mut self.buffer);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        self.section = Section::AfterAction;
        let arguments =
            if is_too_long { Err(arguments::cut(&text)) } else { arguments::read(&text) };
        self.finish_action(arguments, out);
    }

    pub(super) fn finish_action(&mut self, arguments: ReadArguments, out: &mut Vec<ReactPiece>) {
        match self.action.take() {
            Some(OpenAction::Tool(name)) => {
                self.calls += 1;
                out.push(ReactPiece::Call(ReactCall { name, arguments }));
            }
            Some(OpenAction::Answer) => {
                let text = arguments::as_answer(arguments);
                self.has_answer |= !text.is_empty();
                emit(out, PieceKind::Answer, &text);
            }
            Some(OpenAction::Nothing) | None => {}
        }
    }
}

/// Whether the line of an action holds the beginning of a code block only.
fn is_fence(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("```") && !line.trim_start_matches('`').contains('`')
}
