//! `session history`: shows, exports or imports the conversation of a session.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use switchboard_api::Problem;
use switchboard_chat::{HISTORY_VERSION, History};
use switchboard_sessions::SessionError;
use switchboard_store::Store;

use crate::args::{Globals, SessionHistoryArguments};
use crate::embedded::open_store;
use crate::failure::Failure;
use crate::history_text::history_text;
use crate::output::Output;
use crate::remote::Remote;
use crate::replace_file::replace_file;

/// Maximum size of an imported file.
const LARGEST: u64 = 1 << 30;

/// The source of conversations. Without an instance the store is read directly: an embedded board without servers would
/// make the session lose its tools for a moment.
enum Conversations {
    Remote(Remote),
    Stored(Store),
}

pub(crate) async fn run(
    globals: &Globals,
    wanted: &SessionHistoryArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let conversations = match &globals.url {
        Some(url) => Conversations::Remote(Remote::new(url)?),
        None => Conversations::Stored(open_store(globals).await?),
    };
    let done = match &wanted.import {
        Some(file) => import(&conversations, &wanted.id, file, output).await,
        None => show(&conversations, wanted, output).await,
    };
    if let Conversations::Stored(store) = conversations {
        store.close().await;
    }
    done.map(|()| ExitCode::SUCCESS)
}

async fn import(
    conversations: &Conversations,
    id: &str,
    file: &Path,
    output: Output,
) -> Result<(), Failure> {
    let history = History::read(&read(file)?).map_err(|error| {
        Failure::usage(format!("{} holds no conversation: {error}", file.display()))
    })?;
    conversations.replace(id, &history).await?;
    let count = history.messages.len();
    if output.is_json() {
        output.json(&json!({"session": id, "messages": count}));
    } else {
        output.note(&format!("session '{id}' has {count} messages now"));
    }
    Ok(())
}

async fn show(
    conversations: &Conversations,
    wanted: &SessionHistoryArguments,
    output: Output,
) -> Result<(), Failure> {
    let history = conversations.read(&wanted.id).await?;
    match &wanted.export {
        Some(file) if !is_dash(file) => {
            let text = serde_json::to_string_pretty(&history).unwrap_or_default() + "\n";
            replace_file(file, &text)?;
            let count = history.messages.len();
            if output.is_json() {
                output.json(&json!({"file": file, "messages": count}));
            } else {
                output.note(&format!("{count} messages are in {}", file.display()));
            }
        }
        Some(_) => output.json(&history),
        None if output.is_json() => output.json(&history),
        None if history.messages.is_empty() => output.note("nothing was said yet"),
        None => output.foreign(&history_text(&history)),
    }
    Ok(())
}

fn is_dash(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if is_dash(file) {
        std::io::stdin().lock().take(LARGEST).read_to_end(&mut bytes)
    } else {
        let opened = std::fs::File::open(file);
        opened.and_then(|opened| opened.take(LARGEST).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
    Ok(bytes)
}

impl Conversations {
    async fn read(&self, id: &str) -> Result<History, Failure> {
        match self {
            Self::Remote(remote) => remote.get(&["sessions", id, "history"], &[]).await,
            Self::Stored(store) => {
                let messages = stored(store, id).await?.join(",");
                let text = format!(r#"{{"version": {HISTORY_VERSION}, "messages": [{messages}]}}"#);
                History::read(text.as_bytes()).map_err(|error| {
                    Failure::start(format!(
                        "the stored conversation of session '{id}' cannot be read: {error}"
                    ))
                })
            }
        }
    }

    async fn replace(&self, id: &str, history: &History) -> Result<(), Failure> {
        match self {
            Self::Remote(remote) => {
                remote.put::<History>(&["sessions", id, "history"], history).await.map(drop)
            }
            Self::Stored(store) => {
                let before = u64::try_from(stored(store, id).await?.len()).unwrap_or(u64::MAX);
                let texts = history.messages.iter().map(serde_json::to_string);
                let texts = texts.collect::<Result<Vec<_>, _>>();
                let texts = texts.map_err(|error| Failure::start(error.to_string()))?;
                if store.replace_messages(id, before, &texts).await? {
                    return Ok(());
                }
                let detail = "the conversation was changed at the same time; try again";
                Err(Problem::new("stale_history", 0, detail).into())
            }
        }
    }
}

/// The messages of a session, or an error if it does not exist.
async fn stored(store: &Store, id: &str) -> Result<Vec<String>, Failure> {
    match store.session(id).await? {
        Some(_) => Ok(store.messages(id).await?),
        None => Err(SessionError::Unknown(id.to_owned()).into()),
    }
}
