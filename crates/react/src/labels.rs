//! Recognises the labels of a reply, which stand at the beginning of a line.

/// A label of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Thought,
    Action,
    Args,
    /// Other words for [`Label::Args`], which count only after the name of a tool: thoughts use them as well.
    Parameters,
    Observation,
    Answer,
}

/// The result of looking at the beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStart {
    /// More characters are needed.
    Undecided,
    Text,
    Label {
        label: Label,
        /// Number of emphasis characters, such as `**`, that were opened before the label and are still open after it.
        open: usize,
    },
    /// `<think>`: the model's own reasoning begins.
    Reasoning,
    /// A line that opens or closes a code block.
    Fence,
}

/// The words of the labels, in lower case and without separators. Models know some of them by other names.
const WORDS: [(&str, Label); 17] = [
    ("thought", Label::Thought),
    ("thoughts", Label::Thought),
    ("action", Label::Action),
    ("args", Label::Args),
    ("arguments", Label::Args),
    ("actioninput", Label::Args),
    ("actionargs", Label::Args),
    ("actionarguments", Label::Args),
    ("parameters", Label::Parameters),
    ("params", Label::Parameters),
    ("input", Label::Parameters),
    ("toolinput", Label::Parameters),
    ("observation", Label::Observation),
    ("observations", Label::Observation),
    ("finalanswer", Label::Answer),
    ("answer", Label::Answer),
    ("finalresponse", Label::Answer),
];

/// The opening tags of the reasoning that some models write into their text.
pub(crate) const REASONING_OPENS: [&str; 2] = ["<think>", "<thinking>"];
/// The closing tags.
pub(crate) const REASONING_ENDS: [&str; 2] = ["</think>", "</thinking>"];

/// The tag before an action that is written as a JSON object, as some models are trained to write it.
const CALL_TAG: &str = "<tool_call>";

/// A label is within this many bytes of the beginning of its line.
const MAX_LABEL: usize = 64;
/// Maximum length of the language after the backticks of a code block.
const MAX_LANGUAGE: usize = 24;

/// What may surround a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surroundings {
    Prose,
    /// Within JSON, where a quoted word is a key and never a label.
    Json,
}

/// Classifies the beginning of a line. The decision never depends on what follows it.
pub(crate) fn classify(head: &str, surroundings: Surroundings) -> LineStart {
    if head.len() > MAX_LABEL {
        return LineStart::Text;
    }
    let trimmed = head.trim_start_matches([' ', '\t']);
    if trimmed.starts_with('<') {
        return tag(trimmed, surroundings);
    }
    if trimmed.starts_with('`') && is_fence_so_far(trimmed) {
        return if trimmed.ends_with('\n') { LineStart::Fence } else { LineStart::Undecided };
    }
    label(trimmed, surroundings)
}

fn tag(text: &str, surroundings: Surroundings) -> LineStart {
    let lower = text.to_ascii_lowercase();
    if REASONING_OPENS.contains(&lower.as_str()) {
        return LineStart::Reasoning;
    }
    let is_prose = surroundings == Surroundings::Prose;
    if is_prose && lower == CALL_TAG {
        return LineStart::Label { label: Label::Action, open: 0 };
    }
    let may_be = REASONING_OPENS.iter().any(|tag| tag.starts_with(&lower))
        || (is_prose && CALL_TAG.starts_with(&lower));
    if may_be { LineStart::Undecided } else { LineStart::Text }
}

/// Whether the text can be, or become, a line of three or more backticks with at most a language after them.
fn is_fence_so_far(text: &str) -> bool {
    let rest = text.trim_start_matches('`');
    let ticks = text.len() - rest.len();
    if ticks < 3 {
        return rest.is_empty();
    }
    let language = rest.trim_end_matches(['\n', ' ', '\t']);
    language.len() <= MAX_LANGUAGE
        && language.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'))
}

/// Where the scan of a label stands.
#[derive(PartialEq, Eq)]
enum ScanState {
    /// Quotes, list markers, headings and emphasis before the word.
    Before,
    Word,
    /// A number or emphasis after the word.
    After,
}

fn label(text: &str, surroundings: Surroundings) -> LineStart {
    let mut word = String::new();
    let mut state = ScanState::Before;
    let (mut open, mut is_quoted, mut is_heading) = (0_usize, false, false);
    let mut closed = 0_usize;
    for c in text.chars() {
        let known = WORDS.iter().find(|(known, _)| *known == word).map(|(_, label)| *label);
        match c {
            '*' | '_' | '`' | '"' | '\'' if state == ScanState::Before => {
                is_quoted |= matches!(c, '"' | '\'');
                open += 1;
            }
            ' ' | '\t' | '>' | '#' | '-' | '•' | '.' | ')' | '0'..='9'
                if state == ScanState::Before =>
            {
                is_heading |= c == '#';
                // Emphasis is directly before the word; `* ` is a list.
                open = 0;
            }
            _ if c.is_alphabetic() && state != ScanState::After => {
                state = ScanState::Word;
                word.extend(c.to_lowercase());
                if !WORDS.iter().any(|(known, _)| known.starts_with(&word)) {
                    return LineStart::Text;
                }
            }
            ' ' | '_' | '-' | '\t' => {}
            '0'..='9' if known.is_some() => state = ScanState::After,
            '*' | '`' if known.is_some() => {
                state = ScanState::After;
                closed += 1;
            }
            ':' | '：' => {
                let Some(label) = known else { return LineStart::Text };
                if is_quoted && surroundings == Surroundings::Json {
                    return LineStart::Text;
                }
                return LineStart::Label { label, open: open.saturating_sub(closed) };
            }
            // A heading or a bold line needs no colon.
            '\n' if is_heading || (open > 0 && closed >= open && !is_quoted) => {
                return known.map_or(LineStart::Text, |label| LineStart::Label { label, open: 0 });
            }
            _ => return LineStart::Text,
        }
    }
    LineStart::Undecided
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: LineStart) {
        let mut found = LineStart::Undecided;
        let mut head = String::new();
        for c in line.chars() {
            head.push(c);
            found = classify(&head, Surroundings::Prose);
            if found != LineStart::Undecided {
                break;
            }
        }
        assert_eq!(found, expected, "{line:?}");
    }

    fn of(label: Label) -> LineStart {
        LineStart::Label { label, open: 0 }
    }

    #[test]
    fn labels_are_read_as_models_write_them() {
        check("Thought:", of(Label::Thought));
        check("THOUGHT :", of(Label::Thought));
        check("  thought 3:", of(Label::Thought));
        check("**Thought**:", of(Label::Thought));
        check("**Thought:", LineStart::Label { label: Label::Thought, open: 2 });
        check("* Thought:", of(Label::Thought));
        check("1. Thought:", of(Label::Thought));
        check("> - `Action`:", of(Label::Action));
        check("### Action\n", of(Label::Action));
        check("**Final Answer**\n", of(Label::Answer));
        check("Final_Answer:", of(Label::Answer));
        check("FINAL-ANSWER:", of(Label::Answer));
        check("Action Input:", of(Label::Args));
        check("action_input：", of(Label::Args));
        check("Observation 1:", of(Label::Observation));
        check("Tool Input:", of(Label::Parameters));
        check("\"Action:", LineStart::Label { label: Label::Action, open: 1 });
    }

    #[test]
    fn other_lines_are_text() {
        for line in [
            "Actions speak louder:",
            "Action\n",
            "Final Answer\n",
            "Final:",
            "The Action: x",
            "\n",
            "Thoughtful:",
            "\"action\": \"x\"",
            "Args x:",
            "Thought 1 of 2:",
            "**bold** text",
            "`x`: y",
            "<b>",
            "``` not a fence ```",
        ] {
            check(line, LineStart::Text);
        }
        check(&format!("{}Thought:", " ".repeat(70)), LineStart::Text);
    }

    #[test]
    fn tags_and_fences_are_lines_of_their_own() {
        check("<think>", LineStart::Reasoning);
        check(" <Thinking>", LineStart::Reasoning);
        check("<tool_call>", of(Label::Action));
        check("</tool_call>", LineStart::Text);
        assert_eq!(classify("<tool_call>", Surroundings::Json), LineStart::Text);
        check("```json\n", LineStart::Fence);
        check("  ````\n", LineStart::Fence);
        check("``\n", LineStart::Text);
    }

    #[test]
    fn a_quoted_word_within_json_is_a_key() {
        assert_eq!(classify("  \"Action:", Surroundings::Json), LineStart::Text);
        assert_eq!(classify("Action:", Surroundings::Json), of(Label::Action));
    }
}
