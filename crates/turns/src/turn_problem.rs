//! A failed turn as its client is told of it.

use switchboard_chat::TurnProblem;

use crate::error::TurnError;

/// Describes why a turn failed: the conversation could not be stored, the turn was refused, or its provider cannot be used.
pub(crate) fn not_kept(error: &TurnError) -> TurnProblem {
    let (kind, blame, advice) = match error {
        TurnError::Provider(fault) => return (&**fault).into(),
        TurnError::Store(_) | TurnError::NotStored(_) | TurnError::Damaged { .. } => (
            "not_kept",
            "switchboard",
            "look at the log of the board and at the disk of its data directory",
        ),
        TurnError::Raced => (
            "not_kept",
            "you",
            "use one client at a time in a session, then send the message again",
        ),
        TurnError::Busy { .. }
        | TurnError::Unknown(_)
        | TurnError::HasRun(_)
        | TurnError::BadName(_)
        | TurnError::NothingSaid
        | TurnError::OutOfBounds { .. }
        | TurnError::Overlay(_)
        | TurnError::History(_)
        | TurnError::Stopping => {
            ("refused", "you", "the turn did not begin; change it and try again")
        }
    };
    let message = match error {
        TurnError::NotStored(failure) if failure.is_outage => {
            format!("the conversation cannot be read or kept: {}", failure.reason)
        }
        // The message contains file names, so it is only logged.
        TurnError::Store(_) | TurnError::NotStored(_) | TurnError::Damaged { .. } => {
            "the conversation cannot be read or kept; the log of the board says why".into()
        }
        _ => error.to_string(),
    };
    TurnProblem {
        kind,
        message,
        blame,
        advice,
        status: None,
        code: None,
        retry_after_ms: None,
        request_id: None,
    }
}
