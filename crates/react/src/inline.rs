//! Recognises labels within the line of a thought: `I should look. Action: find Args: {"n": 1}`.
//!
//! Thoughts mention labels as well, and a mention must not run a tool. So a label counts only at the beginning of a
//! thought or behind the end of a sentence, and an action only with a name, the label of its arguments and the beginning
//! of an object.

/// Maximum size of the text that is held back for an action.
const MAX_HELD: usize = 256;
/// Labels of arguments, in lower case.
const ARGS: [&str; 4] = ["args", "arguments", "action input", "action_input"];
const BLANKS: [char; 2] = [' ', '\t'];

/// What the text from the beginning of a possible label on is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InlineLabel<'a> {
    Text,
    /// More characters are needed.
    Undecided,
    /// `Action:` and a name. It is an action if `Args:` follows at the beginning of the next line.
    Named(&'a str),
    /// `Action:`, a name, `Args:` and the beginning of an object.
    Action(&'a str),
    /// `Final Answer:`, and the text after it. It is an answer if no other label follows.
    Answer(&'a str),
}

/// Finds the places in a thought at which a label may begin, and holds back the text from there on until it is decided.
#[derive(Debug, Default)]
pub(crate) struct InlineScan {
    pub(crate) held: String,
    /// The last character that is neither blank nor closes a quote or emphasis.
    last: Option<char>,
    is_within_word: bool,
}

impl InlineScan {
    /// Whether this character of a thought is held back: a label has begun, or may begin with it.
    pub(crate) fn holds(&self, c: char) -> bool {
        let is_new_sentence =
            self.last.is_none_or(|last| matches!(last, '.' | '!' | '?' | '…' | '。'));
        !self.held.is_empty()
            || (matches!(c, 'A' | 'F' | '*') && is_new_sentence && !self.is_within_word)
    }

    /// Notes a character that is certain to be text.
    pub(crate) fn pass(&mut self, c: char) {
        self.is_within_word = !c.is_whitespace();
        if self.is_within_word && !matches!(c, '"' | '\'' | ')' | ']' | '*' | '_' | '”' | '’') {
            self.last = Some(c);
        }
    }

    /// What the held text is.
    pub(crate) fn label(&self) -> InlineLabel<'_> {
        match action(&self.held) {
            Ok(label) | Err(label) if label != InlineLabel::Text => label,
            Ok(label) | Err(label) => answer(&self.held).unwrap_or(label),
        }
    }
}

/// A parsed part and the text after it; the error ends the parse.
type Parsed<'a, T> = Result<T, InlineLabel<'a>>;

fn action(text: &str) -> Parsed<'_, InlineLabel<'_>> {
    if text.len() > MAX_HELD {
        return Err(InlineLabel::Text);
    }
    let rest = label(text, &["action"])?.trim_start_matches(BLANKS);
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
    let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let is_name = name.chars().all(|c| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '`' | '"' | '\'' | '*')
    });
    if !is_name {
        return Err(InlineLabel::Text);
    }
    if end.is_none() {
        return Err(InlineLabel::Undecided);
    }
    if !name.contains(char::is_alphanumeric) {
        return Err(InlineLabel::Text);
    }
    if rest.trim().is_empty() {
        return Ok(InlineLabel::Named(name));
    }
    let rest = label(rest.trim_start_matches([' ', '\t', ',', ';']), &ARGS)?.trim_start();
    match rest.chars().next() {
        None => Err(InlineLabel::Undecided),
        Some('{') => Ok(InlineLabel::Action(name)),
        Some(_) => Err(InlineLabel::Text),
    }
}

fn answer(text: &str) -> Option<InlineLabel<'_>> {
    match label(text, &["final answer"]) {
        Ok(rest) => Some(InlineLabel::Answer(rest)),
        Err(InlineLabel::Undecided) => Some(InlineLabel::Undecided),
        Err(_) => None,
    }
}

/// The text after one of these words and its colon, either of which may be emphasized.
fn label<'a>(text: &'a str, words: &[&str]) -> Parsed<'a, &'a str> {
    let text = without_emphasis(text);
    if text.is_empty() {
        return Err(InlineLabel::Undecided);
    }
    let mut is_begun = false;
    for word in words {
        let both = text.len().min(word.len());
        let (Some(written), Some(wanted)) = (text.get(..both), word.get(..both)) else { continue };
        if !written.eq_ignore_ascii_case(wanted) {
            continue;
        }
        let Some(rest) = text.get(word.len()..) else {
            is_begun = true;
            continue;
        };
        let rest = without_emphasis(rest).trim_start_matches(BLANKS);
        match rest.strip_prefix(':') {
            Some(rest) => return Ok(without_emphasis(rest)),
            None => is_begun |= rest.is_empty(),
        }
    }
    Err(if is_begun { InlineLabel::Undecided } else { InlineLabel::Text })
}

fn without_emphasis(text: &str) -> &str {
    text.strip_prefix("**").unwrap_or_else(|| text.strip_prefix('*').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[track_caller]
    fn check(held: &str, expected: InlineLabel<'_>) {
        let scan = InlineScan { held: held.into(), ..InlineScan::default() };
        assert_eq!(scan.label(), expected, "{held:?}");
        // What is decided at the end is not decided otherwise before.
        for (end, _) in held.char_indices().skip(1) {
            let held = held.get(..end).unwrap_or_default().to_owned();
            let scan = InlineScan { held, ..InlineScan::default() };
            let is_open = !matches!(scan.label(), InlineLabel::Text | InlineLabel::Action(_));
            assert!(is_open || expected == InlineLabel::Text, "at {end}: {scan:?}");
        }
    }

    #[test]
    fn an_action_needs_its_name_and_the_beginning_of_an_object() {
        check("Action: find Args: {", InlineLabel::Action("find"));
        check("**Action:** `find`, **Args:** {", InlineLabel::Action("`find`"));
        check("Action : a.b Action Input:\n{", InlineLabel::Action("a.b"));
        check("Action: find\n", InlineLabel::Named("find"));
        check("Action: find Arguments", InlineLabel::Undecided);
        check("Action: fin", InlineLabel::Undecided);
        for text in [
            "Actions",
            "Action plan",
            "Action: look around",
            "Action: find Args: none",
            "Action: ** Args: {",
            "Action: find\nArgs",
            "An",
            "*x",
        ] {
            check(text, InlineLabel::Text);
        }
        check(&format!("Action: {}", "x".repeat(300)), InlineLabel::Text);
    }

    #[test]
    fn an_answer_needs_its_label_alone() {
        check("Final Answer: 42", InlineLabel::Answer(" 42"));
        check("**Final Answer:** 42", InlineLabel::Answer(" 42"));
        check("Final Ans", InlineLabel::Undecided);
        check("Finally", InlineLabel::Text);
        check("Final Answers:", InlineLabel::Text);
    }

    #[test]
    fn a_label_may_begin_a_thought_and_a_sentence() {
        let holds = |before: &str, c: char| {
            let mut scan = InlineScan::default();
            before.chars().for_each(|c| scan.pass(c));
            scan.holds(c)
        };
        assert!(holds("", 'A') && holds("I look. ", 'A') && holds("\"Now!\" ", '*'));
        assert!(!holds("the ", 'A') && !holds("I look.", 'A') && !holds("I look. ", 'b'));
    }
}
