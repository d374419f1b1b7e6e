//! The `instructions` of the MCP handshake: how tools are found and named, followed by the instructions of the servers.
//!
//! A server's text is quoted line by line under its configured name, so that it cannot pass for another server's text or
//! for Switchboard's own.

use switchboard_model::{ExposureMode, Naming, ServerName};
use switchboard_runtime::{ServerInstructions, Snapshot};
use switchboard_view::{Scope, View};

/// The maximum number of characters of all servers' instructions together; the rest is cut or left out.
const MAX_CHARACTERS: usize = 16_000;

/// The `instructions` of the `initialize` result, for a client that sees this view in this scope.
pub(crate) fn instructions(snapshot: &Snapshot, view: &View, scope: &Scope) -> String {
    let mut text = own(view.mode(), view.index().naming());
    let is_seen = |server: &ServerName| {
        if snapshot.index().has_server(server) {
            // Toolsets that can be enabled later count too: instructions are sent only once.
            return view.reaches_server(server);
        }
        snapshot.serves(view, scope, server)
    };
    let said = snapshot.prompts_resources().instructions().iter();
    append(&mut text, said.filter(|(server, _)| is_seen(server)));
    text
}

/// Switchboard's own part.
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

fn append<'a>(text: &mut String, said: impl Iterator<Item = &'a (ServerName, ServerInstructions)>) {
    let (mut room, mut left_out) = (MAX_CHARACTERS, 0usize);
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
        text.extend([
            "\n\n(Instructions of ",
            &left_out.to_string(),
            " more servers are left out.)",
        ]);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_text_that_was_cut_says_so() {
        let long = ServerInstructions::new(&"é".repeat(5_000)).unwrap();
        let mut text = String::new();
        append(&mut text, [(ServerName::new("long"), long)].iter());
        assert!(text.starts_with("\n\nThe MCP server 'long' says:\n> éé"), "{text}");
        assert!(text.ends_with("é\n(This was cut; it has 5000 characters.)"), "{text}");
    }

    #[test]
    fn all_texts_together_have_a_bound_and_what_is_left_out_is_counted() {
        let said = ServerInstructions::new(&"x".repeat(1_998)).unwrap();
        let all: Vec<_> =
            (0..11).map(|n| (ServerName::new(format!("s{n}")), said.clone())).collect();
        let mut text = String::new();
        append(&mut text, all.iter());
        assert_eq!(text.matches("says:").count(), 8);
        assert_eq!(text.matches('x').count(), 8 * 1_998);
        assert!(text.ends_with("(Instructions of 3 more servers are left out.)"), "{text}");
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
