//! Parses a typed line: a message or a `/command`.

/// The meaning of a typed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    Nothing,
    Say(String),
    Quit,
    Help,
    Tools,
    History,
    Provider {
        name: String,
        model: Option<String>,
    },
    Toolset {
        name: String,
        is_on: bool,
        is_now: bool,
    },
    /// An invalid command, with the reason.
    Wrong(String),
}

/// The kind of provider: the demo model has commands of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answerer {
    Demo,
    Other,
}

/// Commands of the demo model. `/tools` and `/help` belong to the chat; type `//tools` or `//help` to send them to the
/// model.
const DEMO_WORDS: [&str; 7] = ["/call", "/loop", "/say", "/think", "/slow", "/error", "/flaky"];

pub(super) const HELP: &str = "\
/provider NAME [MODEL]       let another provider answer from now on
/tools                       list the tools that the model sees, and the toolsets
/toolset on|off NAME [now]   switch a toolset; `now` lets a turn that runs see it at once
/history                     show what was said
/quit                        end (so does Ctrl-D)
//TEXT                       say /TEXT
A line that ends with \\ goes on in the next one. Ctrl-C cancels a turn.";

impl Typed {
    pub(super) fn read(line: &str, answerer: Answerer) -> Self {
        let text = line.trim();
        if text.is_empty() {
            return Self::Nothing;
        }
        if let Some(said) = text.strip_prefix("//") {
            return Self::Say(format!("/{said}"));
        }
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.starts_with('/') {
            return Self::Say(text.to_owned());
        }
        let rest: Vec<_> = words.collect();
        match (first, rest.as_slice()) {
            ("/quit" | "/exit", []) => Self::Quit,
            ("/help", []) => Self::Help,
            ("/tools", []) => Self::Tools,
            ("/history", []) => Self::History,
            ("/provider", [name]) => Self::Provider { name: (*name).to_owned(), model: None },
            ("/provider", [name, model]) => {
                Self::Provider { name: (*name).to_owned(), model: Some((*model).to_owned()) }
            }
            ("/toolset", [switch @ ("on" | "off"), name, when @ ..])
                if matches!(when, [] | ["now"]) =>
            {
                let (is_on, is_now) = (*switch == "on", !when.is_empty());
                Self::Toolset { name: (*name).to_owned(), is_on, is_now }
            }
            ("/quit" | "/exit" | "/help" | "/tools" | "/history", _) => {
                Self::Wrong(format!("{first} takes no words"))
            }
            ("/provider", _) => Self::Wrong("write /provider NAME [MODEL]".into()),
            ("/toolset", _) => Self::Wrong("write /toolset on|off NAME [now]".into()),
            _ if answerer == Answerer::Demo && DEMO_WORDS.contains(&first) => {
                Self::Say(text.to_owned())
            }
            _ => Self::Wrong(format!(
                "there is no command {first}; /help lists the commands, and /{first} sends it to the model"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &Typed) {
        assert_eq!(&Typed::read(line, Answerer::Other), expected, "{line}");
    }

    #[test]
    fn lines_are_messages_or_things_to_do() {
        check("  ", &Typed::Nothing);
        check(" hello you ", &Typed::Say("hello you".into()));
        check("//call x", &Typed::Say("/call x".into()));
        check("/quit", &Typed::Quit);
        check("/help", &Typed::Help);
        check("/provider openai", &Typed::Provider { name: "openai".into(), model: None });
        let model = Some("gpt".to_owned());
        check("/provider openai gpt", &Typed::Provider { name: "openai".into(), model });
        let toolset = |is_on, is_now| Typed::Toolset { name: "mail".into(), is_on, is_now };
        check("/toolset on mail", &toolset(true, false));
        check("/toolset off mail now", &toolset(false, true));
    }

    #[test]
    fn what_cannot_be_done_is_not_said_to_the_model() {
        for line in
            ["/toolset", "/toolset up mail", "/toolset on mail soon", "/provider", "/tools x", "/x"]
        {
            let typed = Typed::read(line, Answerer::Demo);
            assert!(matches!(typed, Typed::Wrong(_)), "{line}: {typed:?}");
        }
    }

    #[test]
    fn the_demo_model_hears_its_own_words() {
        for word in DEMO_WORDS {
            let line = format!("{word} x\n/call y");
            assert_eq!(Typed::read(&line, Answerer::Demo), Typed::Say(line.clone()));
            assert!(matches!(Typed::read(&line, Answerer::Other), Typed::Wrong(_)), "{line}");
        }
        assert_eq!(Typed::read("/tools", Answerer::Demo), Typed::Tools);
    }
}
