//! Converts API keys to the types of the API. The CLI uses the same functions when it works without a server.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use switchboard_api::{AccessView, KeyView};
use switchboard_auth::KeyAccess;
use switchboard_store::StoredKey;

/// A key. `known` are the toolsets of the board, where they are known.
pub fn key_view(key: &StoredKey, now: Timestamp, known: Option<&[String]>) -> KeyView {
    let state = match (key.revoked_at_ms, key.expires_at_ms) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= now.as_millisecond() => "expired",
        (None, _) => "active",
    };
    let read = KeyAccess::from_stored(key.access.as_deref());
    let mut warnings = Vec::new();
    if let Err(reason) = &read {
        warnings.push(format!("its access cannot be read, so it grants nothing: {reason}"));
    }
    // Unreadable access grants nothing.
    let access = read.unwrap_or(KeyAccess { toolsets: Some(Vec::new()), ..KeyAccess::default() });
    let lost = known.map(|known| unknown_sets(&access, known)).unwrap_or_default();
    warnings
        .extend(lost.iter().map(|set| format!("there is no toolset '{set}': it grants nothing")));
    KeyView {
        id: key.id.clone(),
        name: key.name.clone(),
        role: key.role.clone(),
        user: key.user.clone(),
        state: state.into(),
        access: access_view(access),
        warnings,
        created_at: moment(key.created_at_ms),
        last_used_at: key.last_used_at_ms.and_then(moment),
        revoked_at: key.revoked_at_ms.and_then(moment),
        expires_at: key.expires_at_ms.and_then(moment),
    }
}

fn access_view(access: KeyAccess) -> AccessView {
    let KeyAccess { toolsets, tools, deny, readonly, max_instances, rate } = access;
    AccessView { toolsets, tools, deny, readonly, max_instances, rate }
}

/// The access that a client of the API wrote.
pub fn key_access(access: AccessView) -> KeyAccess {
    let AccessView { toolsets, tools, deny, readonly, max_instances, rate } = access;
    KeyAccess { toolsets, tools, deny, readonly, max_instances, rate }
}

/// The toolsets of an access that the board does not have.
pub fn unknown_sets(access: &KeyAccess, known: &[String]) -> Vec<String> {
    let named = access.toolsets.iter().flatten();
    named.filter(|set| !known.contains(set)).cloned().collect()
}

/// What is wrong with unknown toolsets, and the way out; `None` if there are none.
pub fn unknown_sets_text(unknown: &[String], known: &[String]) -> Option<(String, String)> {
    let first = unknown.first()?;
    let there = if known.is_empty() {
        "the configuration has no toolsets".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    };
    Some((format!("there is no toolset '{first}'"), there))
}

/// The time after the duration `text` from now; the error completes a sentence and has a hint.
pub fn expiry(now: Timestamp, text: &str) -> Result<Timestamp, (&'static str, &'static str)> {
    const HINT: &str = "write a duration such as `90d`, `12h`, `6w` or `1y`";
    let span: Span = text.trim().parse().map_err(|_| ("is not a duration", HINT))?;
    // Days and months follow the calendar; UTC has no days of unusual length.
    let end = now.to_zoned(TimeZone::UTC).checked_add(span);
    let end = end.map_err(|_| ("is too long", HINT))?.timestamp();
    if end <= now {
        return Err(("is not above zero", HINT));
    }
    Ok(end)
}

fn moment(at_ms: i64) -> Option<String> {
    Timestamp::from_millisecond(at_ms).ok().map(|at| format!("{at:.0}"))
}
