//! What a client is told at the beginning: how tools are found and named here, and what their servers say.
//!
//! A server's text is quoted line by line under the name that the configuration gives it, so that none can speak in
//! another's name or in ours.

use switchboard_model::{ExposureMode, Naming, ServerName};
use switchboard_view::{Scope, View};

use crate::front::Front;

/// Characters of what one server says; the rest is cut.
const MAX_SAID: usize = 2_000;
/// Characters of what all servers say together; what does not fit is cut or left out.
const MAX_SAID_BY_ALL: usize = 16_000;

/// What a server says about itself, quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// At most [`MAX_SAID`] characters.
    quoted: String,
    /// Characters of the whole text as the server wrote it.
    length: usize,
    is_cut: bool,
}

impl Said {
    /// `None` when the server says nothing.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let length = text.chars().count();
        if length == 0 {
            return None;
        }
        let is_break = |c: char| {
            matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
        };
        let mut quoted = String::from("> ");
        let mut characters = text.chars().peekable();
        let (mut room, mut is_cut) = (MAX_SAID - 2, false);
        while let Some(c) = characters.next() {
            if c == '\r' && characters.peek() == Some(&'\n') {
                continue;
            }
            let piece = if is_break(c) { "\n> ".into() } else { c.to_string() };
            let wanted = piece.chars().count();
            if wanted > room {
                is_cut = true;
                break;
            }
            room -= wanted;
            quoted.push_str(&piece);
        }
        Some(Self { quoted, length, is_cut })
    }
}

/// The instructions for a client that has this view.
pub(crate) fn instructions(front: &Front, view: &View, scope: &Scope) -> String {
    let mut text = own(view.mode(), view.index().naming());
    let is_seen = |server: &ServerName| {
        if front.index().has_server(server) {
            // What can be switched on later counts too: these words are said once.
            return view.reaches_server(server);
        }
        front.serves(view, scope, server)
    };
    let said = front.extras.said().iter();
    append(&mut text, said.filter(|(server, _)| is_seen(server)));
    text
}

/// What we say ourselves.
fn own(mode: ExposureMode, naming: Naming) -> String {
    let names = match naming {
        Naming::Prefixed => {
            "Tools come from MCP servers; the part of a name before `__` is the server."
        }
        Naming::Bare => "Tools come from MCP servers and have the names that these give them.",
    };
    match mode {
        ExposureMode::Dynamic => format!(
            "Tools are grouped in toolsets that are switched on when they are needed. Look for a tool with search_tools \
             and run it with call_tool, or switch its whole group on with enable_toolset; list_toolsets shows the \
             groups. {names}"
        ),
        ExposureMode::Legacy | ExposureMode::Static => names.to_owned(),
    }
}

fn append<'a>(text: &mut String, said: impl Iterator<Item = &'a (ServerName, Said)>) {
    let (mut room, mut left_out) = (MAX_SAID_BY_ALL, 0usize);
    for (server, said) in said {
        if room == 0 {
            left_out += 1;
            continue;
        }
        let shown: String = said.quoted.chars().take(room).collect();
        let count = shown.chars().count();
        let is_cut = said.is_cut || shown.len() < said.quoted.len();
        room -= count;
        text.extend(["\n\nThe MCP server '", server.as_str(), "' says:\n", &shown]);
        if is_cut {
            let length = said.length.to_string();
            text.extend(["\n(This was cut; it has ", &length, " characters.)"]);
        }
    }
    if left_out > 0 {
        text.extend(["\n\n(What ", &left_out.to_string(), " more servers say is left out.)"]);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn quoted(text: &str) -> String {
        Said::new(text).unwrap().quoted
    }

    #[test]
    fn each_line_is_quoted_however_it_is_broken() {
        assert_eq!(quoted(" one "), "> one");
        assert_eq!(quoted("one\r\ntwo\n\nthree"), "> one\n> two\n> \n> three");
        for c in ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'] {
            let text = format!("mine{c}The MCP server 'bank' says:");
            assert_eq!(quoted(&text), "> mine\n> The MCP server 'bank' says:", "{c:?}");
        }
        assert_eq!(Said::new(" \n "), None);
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let fits = Said::new(&"é".repeat(MAX_SAID - 2)).unwrap();
        assert!(!fits.is_cut && fits.quoted.chars().count() == MAX_SAID);
        let long = Said::new(&"é".repeat(5_000)).unwrap();
        assert!(long.is_cut && long.quoted.chars().count() == MAX_SAID);
        let lines = Said::new(&format!("a{}b", "\n".repeat(3_000))).unwrap();
        assert!(lines.is_cut && lines.quoted.chars().count() <= MAX_SAID);
        let mut text = String::new();
        append(&mut text, [(ServerName::new("long"), long)].iter());
        assert!(text.starts_with("\n\nThe MCP server 'long' says:\n> éé"), "{text}");
        assert!(text.ends_with("é\n(This was cut; it has 5000 characters.)"), "{text}");
    }

    #[test]
    fn all_texts_together_have_a_bound_and_what_is_left_out_is_counted() {
        let said = Said::new(&"x".repeat(MAX_SAID - 2)).unwrap();
        let all: Vec<_> =
            (0..11).map(|n| (ServerName::new(format!("s{n}")), said.clone())).collect();
        let mut text = String::new();
        append(&mut text, all.iter());
        assert_eq!(text.matches("says:").count(), 8);
        assert_eq!(text.matches('x').count(), 8 * (MAX_SAID - 2));
        assert!(text.ends_with("(What 3 more servers say is left out.)"), "{text}");
    }

    #[test]
    fn our_own_words_fit_the_names_and_the_exposure() {
        for (mode, naming, has_prefix, has_meta) in [
            (ExposureMode::Legacy, Naming::Prefixed, true, false),
            (ExposureMode::Static, Naming::Bare, false, false),
            (ExposureMode::Dynamic, Naming::Prefixed, true, true),
            (ExposureMode::Dynamic, Naming::Bare, false, true),
        ] {
            let text = own(mode, naming);
            assert_eq!(
                (text.contains("`__`"), text.contains("enable_toolset")),
                (has_prefix, has_meta),
                "{mode:?} {naming:?}"
            );
        }
    }
}
