//! Errors of calls that have no result. Each message names the tool and the cause; the hint says what to do.

use std::time::Duration;

use switchboard_model::{CallError, CallErrorKind, render_duration};
use switchboard_registry::{CatalogTool, Unresolved};
use switchboard_store::StoreError;

use crate::caller_headers::RefusedHeader;
use crate::rate_limits::{RateExceeded, RateOwner};

pub(crate) fn described(tool: &CatalogTool) -> String {
    if tool.name.server().is_local() {
        format!("tool '{}' (local tool)", tool.name.tool())
    } else {
        format!("tool '{}' of MCP server '{}'", tool.name.tool(), tool.shown_server())
    }
}

/// The error for a tool that the access of the caller does not grant: that of an unknown tool, without similar names.
pub(crate) fn not_granted(name: &str) -> CallError {
    CallError::new(CallErrorKind::UnknownTool, format!("there is no tool '{name}'"))
}

/// The error for a call beyond a rate, in words that a model can act on.
pub(crate) fn rate_limited(tool: &CatalogTool, exceeded: RateExceeded) -> CallError {
    let RateExceeded { rate, whose, wait } = exceeded;
    // Rounded up: a caller that waits this long is not too early.
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let by = match whose {
        RateOwner::Tool => "",
        RateOwner::Caller => " by this caller",
    };
    let message = format!(
        "{} was not called: it may be called {rate}{by}, and that is used up",
        described(tool)
    );
    let unit = if seconds == 1 { "second" } else { "seconds" };
    CallError::new(CallErrorKind::RateLimited, message)
        .with_hint(format!("wait {seconds} {unit}, then call it again"))
        .with_retry_after(Duration::from_secs(seconds))
}

pub(crate) fn unknown_tool(name: &str, unresolved: &Unresolved) -> CallError {
    let error = CallError::new(CallErrorKind::UnknownTool, format!("there is no tool '{name}'"));
    let nearest: Vec<_> = unresolved.nearest.iter().map(|name| format!("'{name}'")).collect();
    if nearest.is_empty() {
        error.with_operator_hint("`switchboard tool list` shows all tools")
    } else {
        error.with_hint(format!("did you mean {}?", nearest.join(" or ")))
    }
}

pub(crate) fn unavailable(tool: &CatalogTool, reason: &str) -> CallError {
    let message = format!("{} is unavailable: {reason}", described(tool));
    CallError::new(CallErrorKind::Unavailable, message)
}

/// The error for a call whose slots are shared by boards, while the database that lends them cannot be reached.
pub(crate) fn no_lease(tool: &CatalogTool) -> CallError {
    let reason = "this board cannot reach its database, so that it does not know how many calls of the tool run at other boards";
    unavailable(tool, reason).with_hint("try again later").with_operator_hint(
        "with `store.slots.on_store_loss: share` each board goes on with its share of the slots",
    )
}

/// The person who calls has no account at the server, or one with too few rights.
pub(crate) fn needs_sign_in(tool: &CatalogTool) -> CallError {
    let message = format!("{} needs a sign-in of the person who calls it", described(tool));
    CallError::new(CallErrorKind::NeedsSignIn, message)
}

/// The server of the tool is disconnected and is being reconnected.
pub(crate) fn reconnecting(tool: &CatalogTool, reason: &str) -> CallError {
    let error = unavailable(tool, reason).with_hint("the server is being reconnected");
    match tool.owner {
        None => error.with_operator_hint("`switchboard server list` shows how it is doing"),
        Some(_) => error.with_hint("the session shows how it is doing"),
    }
}

/// The call was rejected by the check after its slot was granted.
pub(crate) fn withdrawn(tool: &CatalogTool, reason: &str) -> CallError {
    let message =
        format!("{} was not called: {reason} while the call waited for a slot", described(tool));
    CallError::new(CallErrorKind::UnknownTool, message)
}

pub(crate) fn timed_out(tool: &CatalogTool) -> CallError {
    let limit = render_duration(tool.limits.timeout);
    let message = format!(
        "{} was running longer than its timeout of {limit} and was cancelled",
        described(tool)
    );
    CallError::new(CallErrorKind::Timeout, message)
        .with_hint("raise `timeout` for a tool that needs longer")
}

/// The call reported progress, and then none for its whole time limit.
pub(crate) fn stalled(tool: &CatalogTool) -> CallError {
    let limit = render_duration(tool.limits.timeout);
    let message = format!(
        "{} was running and reported no further progress for its timeout of {limit} and was cancelled",
        described(tool)
    );
    CallError::new(CallErrorKind::Timeout, message)
        .with_hint("raise `timeout` for a tool that needs longer between two reports")
}

pub(crate) fn ran_longest(tool: &CatalogTool) -> CallError {
    let limit = render_duration(tool.limits.max_timeout);
    let message = format!(
        "{} was running, with progress, longer than its max_timeout of {limit} and was cancelled",
        described(tool)
    );
    CallError::new(CallErrorKind::Timeout, message)
        .with_hint("raise `max_timeout` for a tool that needs longer")
}

pub(crate) fn fell_silent(tool: &CatalogTool, silence: Duration) -> CallError {
    let limit = render_duration(silence);
    let message = format!(
        "{} was running but gave no sign of life for its inactivity_timeout of {limit} and was cancelled",
        described(tool)
    );
    CallError::new(CallErrorKind::InactivityTimeout, message)
}

pub(crate) fn not_kept(tool: &CatalogTool, error: &StoreError) -> CallError {
    let message = format!(
        "{} has run, but its result is too large to be answered and could not be kept: the store failed: {}",
        described(tool),
        error.reason()
    );
    if error.is_outage() {
        return CallError::new(CallErrorKind::Unavailable, message)
            .with_hint("`GET /readyz` and the log say how the store is doing")
            .with_hint("do not repeat a call that changes something");
    }
    tracing::error!(error = error.in_full(), "a result could not be kept");
    CallError::new(CallErrorKind::Internal, message)
}

/// The caller has no value for a header that the server wants.
pub(crate) fn header_refused(tool: &CatalogTool, refused: &RefusedHeader) -> CallError {
    let message = format!("{} was not called: {refused}", described(tool));
    CallError::new(CallErrorKind::Blocked, message).with_operator_hint(refused.way_out())
}
