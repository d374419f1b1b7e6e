//! `key`: manages API keys. It changes the store directly, so that the first key can be created before anything serves.

use std::process::ExitCode;

use comfy_table::Cell;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::{Value, json};
use switchboard_auth::{KEY_PREFIX, KeyDraft, NewKey};
use switchboard_store::{Store, StoredKey};

use crate::args::{Globals, KeyAddArguments, KeyCommand};
use crate::embedded::open_store;
use crate::failure::Failure;
use crate::output::{Output, cell, state_cell};

/// Minimum similarity of a suggested name.
const ALIKE: f64 = 0.7;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &KeyCommand,
    output: Output,
) -> Result<ExitCode, Failure> {
    if globals.url.is_some() {
        let way_out = "run this where the instance runs, without --url and SWITCHBOARD_URL, and with its --data-dir";
        return Err(Failure::usage(
            "keys are managed where the data directory is, not through a running instance",
        )
        .with_hint(Some(way_out.into())));
    }
    let now = Timestamp::now();
    match wanted {
        KeyCommand::Add(wanted) => {
            let expires = wanted.expires.as_deref().map(|text| end(now, text)).transpose()?;
            add(&open_store(globals).await?, wanted, expires, output).await?;
        }
        KeyCommand::List => list(&open_store(globals).await?.keys().await?, now, output),
        KeyCommand::Revoke { name } => {
            revoke(&open_store(globals).await?, name, now, output).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn add(
    store: &Store,
    wanted: &KeyAddArguments,
    expires: Option<Timestamp>,
    output: Output,
) -> Result<(), Failure> {
    let is_first = store.keys().await?.is_empty();
    let expires_ms = expires.map(Timestamp::as_millisecond);
    let draft = KeyDraft {
        expires_at_ms: expires_ms,
        user: wanted.user.clone(),
        ..KeyDraft::new(&wanted.name, wanted.role.into())
    };
    let made = NewKey::add(store, draft).await?;
    store.close().await;
    let NewKey { key, stored } = made;
    if output.is_json() {
        let mut document = view(&stored, Timestamp::now());
        document["key"] = json!(key.expose());
        output.json(&document);
    } else {
        output.data(key.expose());
    }
    output.note(&format!(
        "this is the key {:?} ({}); keep it safe, it is not shown again",
        stored.name, stored.role
    ));
    if is_first {
        output.note("it is the first one: from now on every request needs a key");
    }
    Ok(())
}

fn list(keys: &[StoredKey], now: Timestamp, output: Output) {
    if output.is_json() {
        let keys: Vec<_> = keys.iter().map(|key| view(key, now)).collect();
        output.json(&json!({ "keys": keys }));
    } else if keys.is_empty() {
        output.note("there are no keys; `switchboard key add NAME` makes one");
    } else {
        let header = ["name", "id", "role", "state", "created", "last used", "expires"];
        output.table(&header, keys.iter().map(|key| row(key, now)).collect());
    }
}

async fn revoke(store: &Store, name: &str, now: Timestamp, output: Output) -> Result<(), Failure> {
    if name.starts_with(KEY_PREFIX) {
        // The message does not repeat the key, which would end up in logs.
        return Err(Failure::usage("this is a key, not the name or the id of one")
            .with_hint(Some("`switchboard key list` shows the names".into())));
    }
    let is_revoked = store.revoke_key(name, now.as_millisecond()).await?;
    let keys = store.keys().await?;
    store.close().await;
    if !is_revoked {
        return Err(unknown(name, &keys));
    }
    if output.is_json() {
        output.json(&json!({ "revoked": name }));
    } else {
        output.data(&format!("{name}: revoked"));
    }
    if !keys.iter().any(|key| state(key, now) == "active") {
        output
            .note("no key is left: every request is refused until `switchboard key add` makes one");
    }
    Ok(())
}

fn unknown(name: &str, keys: &[StoredKey]) -> Failure {
    let is_it = |key: &&StoredKey| key.name == name || key.id == name;
    if keys.iter().any(|key| is_it(&key)) {
        return Failure::unknown_key(format!("the key {name:?} was revoked before"));
    }
    let nearest = keys
        .iter()
        .filter(|key| key.revoked_at_ms.is_none())
        .map(|key| (strsim::jaro_winkler(name, &key.name), &key.name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let hint = match nearest {
        Some((_, near)) => format!("did you mean {near:?}?"),
        None => "`switchboard key list` shows the names".to_owned(),
    };
    Failure::unknown_key(format!("there is no key {name:?}")).with_hint(Some(hint))
}

/// The time after the duration `text` from now.
fn end(now: Timestamp, text: &str) -> Result<Timestamp, Failure> {
    let wrong = |what: &str| {
        Failure::usage(format!("the value {text:?} of --expires {what}"))
            .with_hint(Some("write a duration such as `90d`, `12h`, `6w` or `1y`".into()))
    };
    let span: Span = text.trim().parse().map_err(|_| wrong("is not a duration"))?;
    // Days and months follow the calendar; UTC has no days of unusual length.
    let end = now.to_zoned(TimeZone::UTC).checked_add(span).map_err(|_| wrong("is too long"))?;
    if end.timestamp() <= now {
        return Err(wrong("is not above zero"));
    }
    Ok(end.timestamp())
}

fn state(key: &StoredKey, now: Timestamp) -> &'static str {
    match (key.revoked_at_ms, key.expires_at_ms) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= now.as_millisecond() => "expired",
        (None, _) => "active",
    }
}

fn moment(at_ms: i64) -> Option<String> {
    Timestamp::from_millisecond(at_ms).ok().map(|at| format!("{at:.0}"))
}

fn view(key: &StoredKey, now: Timestamp) -> Value {
    json!({
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "user": key.user,
        "state": state(key, now),
        "created_at": moment(key.created_at_ms),
        "last_used_at": key.last_used_at_ms.and_then(moment),
        "revoked_at": key.revoked_at_ms.and_then(moment),
        "expires_at": key.expires_at_ms.and_then(moment),
    })
}

fn row(key: &StoredKey, now: Timestamp) -> Vec<Cell> {
    let or = |at_ms: Option<i64>, other: &str| {
        cell(at_ms.and_then(moment).unwrap_or_else(|| other.to_owned()))
    };
    vec![
        cell(&key.name),
        cell(&key.id),
        cell(&key.role),
        state_cell(state(key, now)),
        or(Some(key.created_at_ms), "-"),
        or(key.last_used_at_ms, "never"),
        or(key.expires_at_ms, "never"),
    ]
}
