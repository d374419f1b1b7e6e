//! The parser of replies. It takes text in chunks of any size; a whole text is one chunk.
//!
//! Labels count at the beginning of a line, and some of them behind a sentence of a thought. The first action decides: the reply is a list of actions then, and an
//! answer or an observation after them is dropped, because the model invented the results that it is based on. A reply
//! without a label is an answer, unless it is an action as one JSON object.

mod actions;
mod inline_labels;
mod reasoning;
mod texts;

use serde_json::{Map, Value};

use self::texts::{PieceKind, emit};
use crate::arguments::{self, ObjectEnd};
use crate::inline::InlineScan;
use crate::labels::{Label, LineStart, Surroundings, classify};
use crate::problem::ReactProblem;
use crate::text_sink::{TextSink, Wrapping};

pub use self::reasoning::strip_reasoning;

/// A piece of a reply, in the order of the text.
#[derive(Debug, Clone, PartialEq)]
pub enum ReactPiece {
    /// More of the reasoning in a `<think>` block.
    Reasoning(String),
    /// More of a thought.
    Thought(String),
    ThoughtEnd,
    /// An action names a tool. Its [`ReactPiece::Call`] follows.
    CallBegun(String),
    Call(ReactCall),
    /// More of the answer.
    Answer(String),
}

/// An action of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ReactCall {
    pub name: String,
    /// The arguments; the error is what the model wrote instead of a JSON object.
    pub arguments: Result<Map<String, Value>, String>,
}

/// The end of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReactEnd {
    /// Why the reply has neither an action nor an answer. An empty reply has no problem and no pieces.
    pub problem: Option<ReactProblem>,
    /// Whether an answer or an observation that the model invented was dropped.
    pub has_dropped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Text before the first label.
    Lead,
    Thought,
    /// The line of `Action:`.
    Name,
    /// An object in place of a name.
    ActionObject,
    /// Between the name of a tool and its arguments.
    BeforeArgs,
    Args,
    ArgsObject,
    AfterAction,
    Answer,
    /// An answer without a label, in which labels still count.
    PlainAnswer,
    /// What the model invented.
    Dropped,
}

/// The action whose arguments are being read.
#[derive(Debug)]
enum OpenAction {
    Tool(String),
    Answer,
    /// `Action: None`.
    Nothing,
}

/// The incremental parser of one reply. Its memory is bounded: pieces are passed on as they arrive.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the text so far")]
pub struct ReactParser {
    section: Section,
    /// The beginning of a line, until it is decided whether it is a label.
    head: Option<String>,
    has_return: bool,
    /// In a `<think>` block: the beginning of what may be its closing tag.
    reasoning: Option<String>,
    /// The text before the first label, the line of an action, or arguments.
    buffer: String,
    is_too_long: bool,
    /// A line with a code fence, until it is decided whether it belongs to the text.
    fence: Option<String>,
    is_in_code_block: bool,
    sink: TextSink,
    /// Looks for labels within a thought.
    inline: InlineScan,
    object: ObjectEnd,
    action: Option<OpenAction>,
    calls: usize,
    has_thought: bool,
    has_answer: bool,
    end: ReactEnd,
}

impl Default for ReactParser {
    fn default() -> Self {
        Self {
            section: Section::Lead,
            head: Some(String::new()),
            has_return: false,
            reasoning: None,
            buffer: String::new(),
            is_too_long: false,
            fence: None,
            is_in_code_block: false,
            sink: TextSink::default(),
            inline: InlineScan::default(),
            object: ObjectEnd::default(),
            action: None,
            calls: 0,
            has_thought: false,
            has_answer: false,
            end: ReactEnd::default(),
        }
    }
}

impl ReactParser {
    /// Parses a whole reply.
    pub fn parse(text: &str) -> (Vec<ReactPiece>, ReactEnd) {
        let (mut parser, mut out) = (Self::default(), Vec::new());
        parser.feed(text, &mut out);
        let end = parser.finish(&mut out);
        (out, end)
    }

    /// Parses more text and appends its pieces.
    pub fn feed(&mut self, text: &str, out: &mut Vec<ReactPiece>) {
        for c in text.chars() {
            // Every line break is one `\n`.
            if std::mem::take(&mut self.has_return) {
                self.char('\n', out);
                if c == '\n' {
                    continue;
                }
            }
            match c {
                '\r' => self.has_return = true,
                c => self.char(c, out),
            }
        }
    }

    /// Ends the reply and appends its last pieces.
    pub fn finish(&mut self, out: &mut Vec<ReactPiece>) -> ReactEnd {
        if let Some(tag) = self.reasoning.take() {
            emit(out, PieceKind::Reasoning, &tag);
        } else {
            // A last line break decides what a line without one is.
            self.char('\n', out);
        }
        if self.section == Section::Lead && !self.lead_is_action(out) {
            self.lead_is_answer(out);
        }
        // Nothing follows the name, so the tool gets no arguments.
        if self.section == Section::Thought && self.calls == 0 && self.begin_named_action(out) {
            self.end_action(out);
        }
        self.end_inline(out);
        self.close(out);
        if self.calls > 0 || self.has_answer {
            self.end.problem = None;
        } else if self.end.problem.is_none() && self.has_thought {
            self.end.problem = Some(ReactProblem::NoAction);
        }
        self.end
    }

    fn char(&mut self, c: char, out: &mut Vec<ReactPiece>) {
        if self.reasoning.is_some() {
            return self.reason(c, out);
        }
        let Some(head) = &mut self.head else { return self.body(c, out) };
        head.push(c);
        let surroundings = match self.section {
            Section::ArgsObject | Section::ActionObject => Surroundings::Json,
            _ => Surroundings::Prose,
        };
        match classify(head, surroundings) {
            LineStart::Undecided => {}
            LineStart::Label { label, open } if self.counts(label) => {
                self.head = c.eq(&'\n').then(String::new);
                self.drop_fence();
                self.label(label, open, out);
            }
            LineStart::Reasoning if self.may_reason() => {
                self.release_inline(out);
                self.head = None;
                self.reasoning = Some(String::new());
            }
            LineStart::Fence if self.skips_fences() => {
                let line = self.head.replace(String::new()).unwrap_or_default();
                if matches!(self.section, Section::Lead | Section::Thought) {
                    self.release_fence(out);
                    self.fence = Some(line);
                } else {
                    self.is_in_code_block = !self.is_in_code_block;
                }
            }
            LineStart::Text | LineStart::Label { .. } | LineStart::Reasoning | LineStart::Fence => {
                let line = self.head.take().unwrap_or_default();
                if !line.trim().is_empty() {
                    self.release_fence(out);
                }
                line.chars().for_each(|c| self.body(c, out));
            }
        }
    }

    /// Whether a label counts in this section.
    fn counts(&self, label: Label) -> bool {
        match self.section {
            Section::Lead => match label {
                Label::Thought | Label::Action | Label::Answer => true,
                Label::Args => self.buffer.trim().is_empty(),
                Label::Parameters | Label::Observation => false,
            },
            Section::PlainAnswer => {
                matches!(label, Label::Thought | Label::Action | Label::Answer)
            }
            Section::Answer | Section::Dropped => false,
            Section::BeforeArgs => true,
            Section::Thought
            | Section::Name
            | Section::ActionObject
            | Section::Args
            | Section::ArgsObject
            | Section::AfterAction => label != Label::Parameters,
        }
    }

    fn may_reason(&self) -> bool {
        use Section::{AfterAction, BeforeArgs, Lead, Name, Thought};
        matches!(self.section, Lead | Thought | Name | BeforeArgs | AfterAction)
    }

    fn skips_fences(&self) -> bool {
        match self.section {
            Section::Answer | Section::PlainAnswer | Section::Dropped => false,
            // A string in the arguments may contain code.
            Section::ArgsObject | Section::ActionObject => !self.object.is_in_string(),
            Section::Lead
            | Section::Thought
            | Section::Name
            | Section::BeforeArgs
            | Section::Args
            | Section::AfterAction => true,
        }
    }

    fn drop_fence(&mut self) {
        if self.fence.take().is_some() {
            self.is_in_code_block = !self.is_in_code_block;
        }
    }

    fn release_fence(&mut self, out: &mut Vec<ReactPiece>) {
        if let Some(line) = self.fence.take() {
            line.chars().for_each(|c| self.body(c, out));
            self.head = None;
        }
    }

    /// Takes a character that belongs to the current section.
    fn body(&mut self, c: char, out: &mut Vec<ReactPiece>) {
        let has_labels = !matches!(self.section, Section::Answer | Section::Dropped);
        if c == '\n' && has_labels {
            self.head = Some(String::new());
        }
        match self.section {
            Section::Lead => self.lead(c, out),
            Section::Thought => self.thought(c, out),
            Section::Answer | Section::PlainAnswer => self.text(PieceKind::Answer, c, out),
            Section::Name => self.name(c, out),
            Section::BeforeArgs => self.before_args(c),
            Section::Args => self.args(c),
            Section::ArgsObject | Section::ActionObject => {
                self.keep(c);
                if self.object.ends_with(c) {
                    self.object_ended(out);
                }
            }
            Section::AfterAction | Section::Dropped => {}
        }
    }

    fn fail(&mut self, problem: ReactProblem) {
        self.end.problem.get_or_insert(problem);
    }

    fn label(&mut self, label: Label, open: usize, out: &mut Vec<ReactPiece>) {
        let takes_args = match self.section {
            Section::Thought if label == Label::Args => self.begin_named_action(out),
            Section::Name => {
                self.end_name(out);
                self.section == Section::BeforeArgs
            }
            section => section == Section::BeforeArgs,
        };
        if matches!(label, Label::Args | Label::Parameters) {
            if takes_args {
                self.buffer.clear();
                self.section = Section::Args;
                return;
            }
            let is_misplaced = matches!(self.section, Section::Lead | Section::Thought);
            let is_unnamed = self.section == Section::Name;
            self.close(out);
            self.section = Section::AfterAction;
            if is_misplaced {
                self.fail(ReactProblem::ArgsWithoutAction);
            } else if is_unnamed {
                self.fail(ReactProblem::NoName);
            }
            return;
        }
        let is_more = self.section == Section::PlainAnswer;
        self.close(out);
        (self.sink, self.inline) = (TextSink::new(open), InlineScan::default());
        self.section = match label {
            Label::Action => Section::Name,
            Label::Observation | Label::Answer if self.calls > 0 => {
                self.end.has_dropped = true;
                self.head = None;
                Section::Dropped
            }
            Label::Answer => {
                if is_more {
                    emit(out, PieceKind::Answer, "\n\n");
                }
                self.head = None;
                Section::Answer
            }
            Label::Thought | Label::Observation | Label::Args | Label::Parameters => {
                Section::Thought
            }
        };
    }

    /// Ends the current section because a label or the end of the reply follows.
    fn close(&mut self, out: &mut Vec<ReactPiece>) {
        match self.section {
            Section::Lead => {
                self.sink = TextSink::new(0);
                let lead = std::mem::take(&mut self.buffer);
                lead.chars().for_each(|c| self.text(PieceKind::Thought, c, out));
                self.end_thought(out);
            }
            Section::Thought => {
                self.release_inline(out);
                self.end_thought(out);
            }
            Section::Answer | Section::PlainAnswer => {
                let wrapping =
                    if self.is_in_code_block { Wrapping::CodeBlock } else { Wrapping::Plain };
                let mut rest = String::new();
                self.sink.end(wrapping, &mut rest);
                emit(out, PieceKind::Answer, &rest);
                self.has_answer |= self.sink.is_started();
                if !self.has_answer {
                    self.fail_empty_answer();
                }
            }
            Section::Name => {
                self.end_name(out);
                if self.section == Section::Name {
                    self.fail(ReactProblem::NoName);
                } else {
                    self.end_action(out);
                }
            }
            Section::ActionObject => self.fail(ReactProblem::NoName),
            Section::BeforeArgs => {
                self.buffer.clear();
                self.end_action(out);
            }
            Section::Args => self.end_action(out),
            Section::ArgsObject => {
                let text = std::mem::take(&mut self.buffer);
                self.finish_action(Err(arguments::cut(&text)), out);
            }
            Section::AfterAction | Section::Dropped => {}
        }
        self.buffer.clear();
    }

    fn fail_empty_answer(&mut self) {
        if self.section == Section::Answer {
            self.fail(ReactProblem::EmptyAnswer);
        }
    }
}
