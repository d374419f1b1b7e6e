//! `key`: manages API keys. Without `--url` it changes the store directly, so that the first key can be created before
//! anything serves.

use std::process::ExitCode;

use comfy_table::Cell;
use jiff::Timestamp;
use serde_json::json;
use switchboard_api::{AccessView, KeyChange, KeyList, KeyView, NewKeyBody, NewKeyView};
use switchboard_auth::{KEY_PREFIX, KeyDraft, KeyEdit, NewKey, Role};
use switchboard_http::present_keys::{
    expiry, key_access, key_view, unknown_sets, unknown_sets_text,
};
use switchboard_store::{Store, StoredKey};

use crate::args::{Globals, KeyAddArguments, KeyCommand, KeyEditArguments};
use crate::commands::key_sets::known_toolsets;
use crate::embedded::open_store;
use crate::failure::Failure;
use crate::output::{Output, cell, state_cell};
use crate::remote::Remote;

/// Minimum similarity of a suggested name.
const ALIKE: f64 = 0.7;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &KeyCommand,
    output: Output,
) -> Result<ExitCode, Failure> {
    match &globals.url {
        Some(url) => through(&Remote::new(url)?, wanted, output).await?,
        None => directly(globals, wanted, output).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Manages the keys of a running instance.
async fn through(remote: &Remote, wanted: &KeyCommand, output: Output) -> Result<(), Failure> {
    match wanted {
        KeyCommand::Add(wanted) => {
            check_expiry(wanted.expires.as_deref())?;
            let body = NewKeyBody {
                name: wanted.name.clone(),
                role: Some(Role::from(wanted.role).as_str().into()),
                user: wanted.user.clone(),
                expires: wanted.expires.clone(),
                access: wanted.access.view(),
            };
            let made: NewKeyView = remote.post(&["keys"], &body).await?;
            print_new(&made, output);
        }
        KeyCommand::Edit(wanted) => {
            refuse_key(&wanted.name)?;
            check_expiry(wanted.expires.as_deref())?;
            let path = ["keys", wanted.name.as_str()];
            let changed: KeyView = remote.patch(&path, &[], &change_of(wanted)).await?;
            print_changed(&changed, output);
        }
        KeyCommand::List => {
            let list: KeyList = remote.get(&["keys"], &[]).await?;
            print_list(&list, output);
        }
        KeyCommand::Revoke { name } => {
            refuse_key(name)?;
            remote.delete(&["keys", name]).await?;
            print_revoked(name, output);
        }
    }
    Ok(())
}

/// Manages the keys in the store of the data directory.
async fn directly(globals: &Globals, wanted: &KeyCommand, output: Output) -> Result<(), Failure> {
    let now = Timestamp::now();
    match wanted {
        KeyCommand::Add(wanted) => {
            let expires = check_expiry(wanted.expires.as_deref())?;
            let access = wanted.access.view();
            refuse_unknown_sets(globals, &access, &[])?;
            let store = open_store(globals).await?;
            add(&store, wanted, access, expires, output).await?;
        }
        KeyCommand::Edit(wanted) => {
            refuse_key(&wanted.name)?;
            check_expiry(wanted.expires.as_deref())?;
            edit(globals, wanted, now, output).await?;
        }
        KeyCommand::List => {
            let (keys, known) = (open_store(globals).await?.keys().await?, known_toolsets(globals));
            let keys = keys.iter().map(|key| key_view(key, now, known.as_deref())).collect();
            print_list(&KeyList { keys }, output);
        }
        KeyCommand::Revoke { name } => {
            refuse_key(name)?;
            revoke(&open_store(globals).await?, name, now, output).await?;
        }
    }
    Ok(())
}

async fn add(
    store: &Store,
    wanted: &KeyAddArguments,
    access: AccessView,
    expires: Option<Timestamp>,
    output: Output,
) -> Result<(), Failure> {
    let is_first = store.keys().await?.is_empty();
    let draft = KeyDraft {
        expires_at_ms: expires.map(Timestamp::as_millisecond),
        user: wanted.user.clone(),
        access: key_access(access),
        ..KeyDraft::new(&wanted.name, wanted.role.into())
    };
    let made = NewKey::add(store, draft).await?;
    store.close().await;
    let shown = key_view(&made.stored, Timestamp::now(), None);
    print_new(&NewKeyView { key: made.key.expose().to_owned(), shown }, output);
    if is_first {
        output.note("it is the first one: from now on every request needs a key");
    }
    Ok(())
}

async fn edit(
    globals: &Globals,
    wanted: &KeyEditArguments,
    now: Timestamp,
    output: Output,
) -> Result<(), Failure> {
    let store = open_store(globals).await?;
    let keys = store.keys().await?;
    let active: Vec<_> = keys.iter().filter(|key| key.revoked_at_ms.is_none()).collect();
    let found = active.iter().find(|key| key.id == wanted.name);
    let found = found.or_else(|| active.iter().find(|key| key.name == wanted.name));
    let before = *found.ok_or_else(|| unknown(&wanted.name, &keys))?;
    let change = change_of(wanted);
    let had = key_view(before, now, None).access;
    let access = change.access.map(|change| had.clone().changed(change));
    if let Some(access) = &access {
        refuse_unknown_sets(globals, access, had.toolsets.as_deref().unwrap_or_default())?;
    }
    let edit = KeyEdit {
        role: wanted.role.map(Into::into),
        user: change.user,
        expires_at_ms: match change.expires {
            None => None,
            Some(text) => Some(check_expiry(text.as_deref())?.map(Timestamp::as_millisecond)),
        },
        access: access.map(key_access),
    };
    let changed = edit.apply(&store, &before.id).await?;
    store.close().await;
    let changed = changed.ok_or_else(|| unknown(&wanted.name, &keys))?;
    print_changed(&key_view(&changed, now, None), output);
    Ok(())
}

async fn revoke(store: &Store, name: &str, now: Timestamp, output: Output) -> Result<(), Failure> {
    let is_revoked = store.revoke_key(name, now.as_millisecond()).await?;
    let keys = store.keys().await?;
    store.close().await;
    if !is_revoked {
        return Err(unknown(name, &keys));
    }
    print_revoked(name, output);
    if !keys.iter().any(|key| key_view(key, now, None).state == "active") {
        output
            .note("no key is left: every request is refused until `switchboard key add` makes one");
    }
    Ok(())
}

fn change_of(wanted: &KeyEditArguments) -> KeyChange {
    KeyChange {
        role: wanted.role.map(|role| Role::from(role).as_str().into()),
        user: wanted.clears("user").then_some(None).or(wanted.user.clone().map(Some)),
        expires: wanted.clears("expires").then_some(None).or(wanted.expires.clone().map(Some)),
        access: wanted.access_change(),
    }
}

/// The message does not repeat the key, which would end up in logs.
fn refuse_key(name: &str) -> Result<(), Failure> {
    if name.starts_with(KEY_PREFIX) {
        return Err(Failure::usage("this is a key, not the name or the id of one")
            .with_hint(Some("`switchboard key list` shows the names".into())));
    }
    Ok(())
}

/// Refuses toolsets that the configuration does not have, except those that the key had before.
fn refuse_unknown_sets(
    globals: &Globals,
    access: &AccessView,
    had: &[String],
) -> Result<(), Failure> {
    let Some(known) = known_toolsets(globals) else { return Ok(()) };
    let mut unknown = unknown_sets(&key_access(access.clone()), &known);
    unknown.retain(|set| !had.contains(set));
    match unknown_sets_text(&unknown, &known) {
        Some((message, hint)) => Err(Failure::usage(message).with_hint(Some(hint))),
        None => Ok(()),
    }
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

/// The time at which a key with this `--expires` ends.
fn check_expiry(text: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    expiry(Timestamp::now(), text).map(Some).map_err(|(reason, hint)| {
        Failure::usage(format!("the value {text:?} of --expires {reason}"))
            .with_hint(Some(hint.into()))
    })
}

fn print_new(made: &NewKeyView, output: Output) {
    if output.is_json() {
        output.json(made);
    } else {
        output.data(&made.key);
    }
    output.note(&format!(
        "this is the key {:?} ({}); keep it safe, it is not shown again",
        made.shown.name, made.shown.role
    ));
}

fn print_changed(key: &KeyView, output: Output) {
    if output.is_json() {
        return output.json(key);
    }
    output.data(&format!("{}: {}, {}", key.name, key.role, access_text(&key.access)));
}

fn print_revoked(name: &str, output: Output) {
    if output.is_json() {
        output.json(&json!({ "revoked": name }));
    } else {
        output.data(&format!("{name}: revoked"));
    }
}

fn print_list(list: &KeyList, output: Output) {
    if output.is_json() {
        return output.json(list);
    }
    if list.keys.is_empty() {
        return output.note("there are no keys; `switchboard key add NAME` makes one");
    }
    let header =
        ["name", "id", "role", "state", "user", "access", "created", "last used", "expires"];
    output.table(&header, list.keys.iter().map(row).collect());
    for key in list.keys.iter().filter(|key| key.state == "active") {
        for warning in &key.warnings {
            output.note(&format!("key {:?}: {warning}", key.name));
        }
    }
}

fn row(key: &KeyView) -> Vec<Cell> {
    let or = |text: &Option<String>, other: &str| cell(text.as_deref().unwrap_or(other));
    vec![
        cell(&key.name),
        cell(&key.id),
        cell(&key.role),
        state_cell(&key.state),
        or(&key.user, "-"),
        cell(access_text(&key.access)),
        or(&key.created_at, "-"),
        or(&key.last_used_at, "never"),
        or(&key.expires_at, "never"),
    ]
}

/// What a key grants, in one line.
fn access_text(access: &AccessView) -> String {
    let list = |what: &str, names: &[String]| match names {
        [] => format!("no {what}"),
        names => format!("{what} {}", names.join(",")),
    };
    let mut parts = Vec::new();
    parts.extend(access.toolsets.as_deref().map(|sets| list("toolsets", sets)));
    parts.extend(access.tools.as_deref().map(|tools| list("tools", tools)));
    if parts.is_empty() {
        parts.push("all tools".to_owned());
    }
    if !access.deny.is_empty() {
        parts.push(format!("not {}", access.deny.join(",")));
    }
    parts.extend(access.readonly.then(|| "read-only".to_owned()));
    parts.extend(access.rate.clone());
    parts.extend(access.max_instances.map(|most| format!("{most} at a time")));
    parts.join("; ")
}
