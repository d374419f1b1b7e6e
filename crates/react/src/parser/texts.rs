//! The texts of a reply: thoughts, the answer, and what comes before the first label.

use super::{ReactParser, ReactPiece, Section};
use crate::labels::REASONING_ENDS;
use crate::text_sink::{TextSink, Wrapping};

/// Text without a label is a thought if a label follows within this size. Otherwise it is an answer.
pub(super) const MAX_LEAD: usize = 1000;

#[derive(Clone, Copy)]
pub(super) enum PieceKind {
    Reasoning,
    Thought,
    Answer,
}

impl ReactParser {
    pub(super) fn text(&mut self, kind: PieceKind, c: char, out: &mut Vec<ReactPiece>) {
        let mut text = String::new();
        self.sink.push(c, &mut text);
        emit(out, kind, &text);
    }

    pub(super) fn lead(&mut self, c: char, out: &mut Vec<ReactPiece>) {
        self.buffer.push(c);
        // A model whose reasoning began in its prompt writes the closing tag only.
        let closing = |end: &&&str| {
            let length = self.buffer.len().checked_sub(end.len());
            let last = length.and_then(|from| self.buffer.get(from..));
            c == '>' && last.is_some_and(|last| last.eq_ignore_ascii_case(end))
        };
        if let Some(end) = REASONING_ENDS.iter().find(closing) {
            self.buffer.truncate(self.buffer.len() - end.len());
            emit(out, PieceKind::Reasoning, &std::mem::take(&mut self.buffer));
            self.head = Some(String::new());
        } else if self.buffer.len() > MAX_LEAD {
            self.lead_is_answer(out);
        }
    }

    pub(super) fn lead_is_answer(&mut self, out: &mut Vec<ReactPiece>) {
        self.section = Section::PlainAnswer;
        self.sink = TextSink::new(0);
        let fence = self.fence.take().unwrap_or_default();
        let lead = std::mem::take(&mut self.buffer) + &fence;
        lead.chars().for_each(|c| self.text(PieceKind::Answer, c, out));
    }

    pub(super) fn end_thought(&mut self, out: &mut Vec<ReactPiece>) {
        let mut rest = String::new();
        self.sink.end(Wrapping::Plain, &mut rest);
        emit(out, PieceKind::Thought, &rest);
        if self.sink.is_started() {
            self.has_thought = true;
            out.push(ReactPiece::ThoughtEnd);
        }
    }
}

/// Appends text, to the last piece if that is of the same kind.
pub(super) fn emit(out: &mut Vec<ReactPiece>, kind: PieceKind, text: &str) {
    if text.is_empty() {
        return;
    }
    match (kind, out.last_mut()) {
        (PieceKind::Reasoning, Some(ReactPiece::Reasoning(last)))
        | (PieceKind::Thought, Some(ReactPiece::Thought(last)))
        | (PieceKind::Answer, Some(ReactPiece::Answer(last))) => last.push_str(text),
        (PieceKind::Reasoning, _) => out.push(ReactPiece::Reasoning(text.to_owned())),
        (PieceKind::Thought, _) => out.push(ReactPiece::Thought(text.to_owned())),
        (PieceKind::Answer, _) => out.push(ReactPiece::Answer(text.to_owned())),
    }
}
