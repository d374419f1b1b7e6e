//! Labels within the line of a thought. What may be one is held back until it is decided.

use super::texts::{MAX_LEAD, PieceKind};
use super::{ReactParser, ReactPiece, Section};
use crate::inline::{InlineLabel, InlineScan};
use crate::text_sink::TextSink;
use crate::tool_name;

impl ReactParser {
    /// Takes a character of a thought.
    pub(super) fn thought(&mut self, c: char, out: &mut Vec<ReactPiece>) {
        if !self.inline.holds(c) {
            self.inline.pass(c);
            return self.text(PieceKind::Thought, c, out);
        }
        self.inline.held.push(c);
        match self.inline.label() {
            InlineLabel::Undecided | InlineLabel::Named(_) => {}
            InlineLabel::Answer(text) if text.len() <= MAX_LEAD => {}
            InlineLabel::Answer(_) => {
                self.end_inline(out);
                self.release_inline(out);
            }
            InlineLabel::Action(name) => {
                let target = tool_name::named(name);
                self.inline.held.clear();
                self.end_thought(out);
                self.begin_action(target, out);
                self.begin_object(Section::ArgsObject, c);
            }
            InlineLabel::Text => {
                // A label may begin within the held text.
                let held = std::mem::take(&mut self.inline.held);
                let mut chars = held.chars();
                if let Some(first) = chars.next() {
                    self.inline.pass(first);
                    self.text(PieceKind::Thought, first, out);
                }
                chars.for_each(|c| self.thought(c, out));
            }
        }
    }

    /// Begins the action that the end of a thought names, because its arguments follow. Returns whether there is one.
    pub(super) fn begin_named_action(&mut self, out: &mut Vec<ReactPiece>) -> bool {
        let InlineLabel::Named(name) = self.inline.label() else { return false };
        let target = tool_name::named(name);
        self.inline.held.clear();
        self.end_thought(out);
        self.begin_action(target, out);
        true
    }

    /// Makes the held text an answer, if it is one that no other label has followed.
    pub(super) fn end_inline(&mut self, out: &mut Vec<ReactPiece>) {
        if matches!(self.inline.label(), InlineLabel::Answer(_)) {
            self.release_fence(out);
        }
        let InlineLabel::Answer(text) = self.inline.label() else { return };
        if self.section != Section::Thought || text.trim().is_empty() {
            return;
        }
        let text = text.to_owned();
        self.inline = InlineScan::default();
        self.end_thought(out);
        self.head = None;
        if self.calls > 0 {
            self.end.has_dropped = true;
            self.section = Section::Dropped;
            return;
        }
        (self.section, self.sink) = (Section::Answer, TextSink::new(0));
        text.chars().for_each(|c| self.text(PieceKind::Answer, c, out));
    }

    /// Passes the held text on as a part of the thought.
    pub(super) fn release_inline(&mut self, out: &mut Vec<ReactPiece>) {
        for c in std::mem::take(&mut self.inline.held).chars() {
            self.inline.pass(c);
            self.text(PieceKind::Thought, c, out);
        }
    }
}
