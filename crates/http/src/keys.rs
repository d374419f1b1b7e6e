//! API keys, for administrators. A change that is answered with success is stored and in force.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use switchboard_api::{KeyChange, KeyList, KeyView, NewKeyBody, NewKeyView};
use switchboard_auth::{AuthError, KeyDraft, KeyEdit, NewKey, Role};
use switchboard_store::{Store, StoredKey};

use crate::answers::{
    BadRequest, Guarded, KeyConflict, StoreFailed, TakesBody, UnknownKey, WrongShape,
};
use crate::extract::{FromBody, FromPath};
use crate::present_keys::{expiry, key_access, key_view, unknown_sets, unknown_sets_text};
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadySessions};
use crate::server_state::Shared;

/// Names a key.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct KeyPath {
    /// The id or the name of the key. A revoked key has only its id.
    #[param(min_length = 1, max_length = 64, example = "laptop")]
    id: String,
}

/// List the API keys
///
/// Including revoked ones, oldest first, without the keys themselves. Needs the role admin.
#[utoipa::path(
    get,
    path = "/api/v1/keys",
    operation_id = "listKeys",
    tag = "keys",
    responses((status = 200, description = "All keys.", body = KeyList), Guarded, StoreFailed)
)]
pub(crate) async fn list(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
) -> Result<Json<KeyList>, ProblemResponse> {
    let known = sessions.toolset_names();
    let keys = board.store().keys().await?;
    let keys = keys.iter().map(|key| key_view(key, Timestamp::now(), Some(&known)));
    Ok(Json(KeyList { keys: keys.collect() }))
}

/// Create an API key
///
/// The response has the key itself, which is not shown again. From the first key on, every request needs credentials.
/// Needs the role admin.
#[utoipa::path(
    post,
    path = "/api/v1/keys",
    operation_id = "createKey",
    tag = "keys",
    request_body(content = NewKeyBody, description = "The properties of the key."),
    responses(
        (status = 201, description = "The new key.", body = NewKeyView),
        Guarded,
        TakesBody,
        KeyConflict,
        WrongShape,
        StoreFailed,
    )
)]
pub(crate) async fn create(
    State(shared): State<Shared>,
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    FromBody(wanted): FromBody<NewKeyBody>,
) -> Result<(StatusCode, Json<NewKeyView>), ProblemResponse> {
    let (known, now) = (sessions.toolset_names(), Timestamp::now());
    let access = key_access(wanted.access);
    refuse_unknown(&unknown_sets(&access, &known), &known)?;
    let draft = KeyDraft {
        role: role_of(wanted.role.as_deref())?.unwrap_or(Role::Client),
        expires_at_ms: expires_at(now, wanted.expires.as_deref())?,
        user: wanted.user,
        access,
        ..KeyDraft::new(&wanted.name, Role::Client)
    };
    let made = NewKey::add(board.store(), draft).await.map_err(refused)?;
    in_force(&shared).await;
    let shown = key_view(&made.stored, now, Some(&known));
    let key = made.key.expose().to_owned();
    Ok((StatusCode::CREATED, Json(NewKeyView { key, shown })))
}

/// Show an API key
///
/// Needs the role admin.
#[utoipa::path(
    get,
    path = "/api/v1/keys/{id}",
    operation_id = "getKey",
    tag = "keys",
    params(KeyPath),
    responses(
        (status = 200, description = "The key.", body = KeyView),
        Guarded,
        BadRequest,
        UnknownKey,
        StoreFailed,
    )
)]
pub(crate) async fn show(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    FromPath(KeyPath { id }): FromPath<KeyPath>,
) -> Result<Json<KeyView>, ProblemResponse> {
    let known = sessions.toolset_names();
    let key = find(board.store(), &id).await?.ok_or_else(|| unknown(&id))?;
    Ok(Json(key_view(&key, Timestamp::now(), Some(&known))))
}

/// Change an API key
///
/// Its role, its user, its end and what it grants. Running sessions and calls follow at once. Needs the role admin.
#[utoipa::path(
    patch,
    path = "/api/v1/keys/{id}",
    operation_id = "changeKey",
    tag = "keys",
    params(KeyPath),
    request_body(content = KeyChange, description = "What is to be changed."),
    responses(
        (status = 200, description = "The key as it is now.", body = KeyView),
        Guarded,
        TakesBody,
        UnknownKey,
        WrongShape,
        StoreFailed,
    )
)]
pub(crate) async fn change(
    State(shared): State<Shared>,
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    FromPath(KeyPath { id }): FromPath<KeyPath>,
    FromBody(wanted): FromBody<KeyChange>,
) -> Result<Json<KeyView>, ProblemResponse> {
    let (known, now) = (sessions.toolset_names(), Timestamp::now());
    let before = find(board.store(), &id).await?.filter(|key| key.revoked_at_ms.is_none());
    let before = before.ok_or_else(|| unknown(&id))?;
    let access =
        wanted.access.map(|change| key_access(key_view(&before, now, None).access.changed(change)));
    if let Some(access) = &access {
        let had = key_access(key_view(&before, now, None).access);
        // A toolset that has gone since may stay: it grants nothing.
        let mut new = unknown_sets(access, &known);
        new.retain(|set| !had.toolsets.iter().flatten().any(|old| old == set));
        refuse_unknown(&new, &known)?;
    }
    let edit = KeyEdit {
        role: role_of(wanted.role.as_deref())?,
        user: wanted.user,
        expires_at_ms: match wanted.expires {
            None => None,
            Some(None) => Some(None),
            Some(Some(text)) => Some(expires_at(now, Some(&text))?),
        },
        access,
    };
    let changed = edit.apply(board.store(), &before.id).await.map_err(refused)?;
    let changed = changed.ok_or_else(|| unknown(&id))?;
    in_force(&shared).await;
    Ok(Json(key_view(&changed, now, Some(&known))))
}

/// Revoke an API key
///
/// Requests with it are refused from now on. Needs the role admin.
#[utoipa::path(
    delete,
    path = "/api/v1/keys/{id}",
    operation_id = "revokeKey",
    tag = "keys",
    params(KeyPath),
    responses(
        (status = 204, description = "The key is revoked."),
        Guarded,
        BadRequest,
        UnknownKey,
        StoreFailed,
    )
)]
pub(crate) async fn revoke(
    State(shared): State<Shared>,
    Ready(board): Ready,
    FromPath(KeyPath { id }): FromPath<KeyPath>,
) -> Result<StatusCode, ProblemResponse> {
    if !board.store().revoke_key(&id, Timestamp::now().as_millisecond()).await? {
        return Err(unknown(&id));
    }
    in_force(&shared).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Brings a stored change into force before it is answered.
async fn in_force(shared: &Shared) {
    if let Err(error) = shared.gatekeeper.refresh().await {
        tracing::error!(%error, "a changed API key is in force only when the keys can be read again");
    }
    shared.leases.check(&shared.gatekeeper).await;
}

/// The active key with this id or name, else the revoked key with this id.
async fn find(store: &Store, id: &str) -> Result<Option<StoredKey>, ProblemResponse> {
    let keys = store.keys().await?;
    let is_active = |key: &&StoredKey| key.revoked_at_ms.is_none();
    let found = keys.iter().filter(is_active).find(|key| key.id == id);
    let found = found.or_else(|| keys.iter().filter(is_active).find(|key| key.name == id));
    Ok(found.or_else(|| keys.iter().find(|key| key.id == id)).cloned())
}

fn role_of(word: Option<&str>) -> Result<Option<Role>, ProblemResponse> {
    let read = |word: &str| {
        Role::from_word(word).ok_or_else(|| {
            wrong(format!("'{word}' is not a role; there are: client, operator, admin"), None)
        })
    };
    word.map(read).transpose()
}

fn expires_at(now: Timestamp, text: Option<&str>) -> Result<Option<i64>, ProblemResponse> {
    let end = text.map(|text| expiry(now, text)).transpose();
    end.map(|end| end.map(Timestamp::as_millisecond)).map_err(|(reason, hint)| {
        wrong(format!("the value of `expires` {reason}"), Some(hint.into()))
    })
}

fn refuse_unknown(unknown: &[String], known: &[String]) -> Result<(), ProblemResponse> {
    let Some((message, hint)) = unknown_sets_text(unknown, known) else { return Ok(()) };
    Err(wrong(message, Some(hint)))
}

fn wrong(detail: String, hint: Option<String>) -> ProblemResponse {
    let mut problem = ProblemResponse::new("bad_request", StatusCode::UNPROCESSABLE_ENTITY, detail);
    problem.0.hint = hint;
    problem
}

fn unknown(id: &str) -> ProblemResponse {
    // Somebody may have sent the key itself, which must not be repeated.
    let detail = if id.starts_with(switchboard_auth::KEY_PREFIX) {
        "this is a key, not the name or the id of one".to_owned()
    } else {
        format!("there is no key '{id}'")
    };
    ProblemResponse::new("unknown_key", StatusCode::NOT_FOUND, detail)
}

fn refused(error: AuthError) -> ProblemResponse {
    let hint = error.hint();
    match error {
        AuthError::Store(error)
            if matches!(error, switchboard_store::StoreError::NameTaken { .. }) =>
        {
            let detail = error.to_string();
            let mut problem = ProblemResponse::new("conflict", StatusCode::CONFLICT, detail);
            problem.0.hint = hint;
            problem
        }
        AuthError::Store(error) => error.into(),
        AuthError::BadName { .. } | AuthError::BadUser { .. } | AuthError::BadAccess { .. } => {
            wrong(error.to_string(), hint)
        }
        other => {
            let detail = other.to_string();
            ProblemResponse::new("internal_error", StatusCode::INTERNAL_SERVER_ERROR, detail)
        }
    }
}
