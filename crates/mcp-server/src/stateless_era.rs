//! Requests of the stateless era, each of which carries the protocol version, the client info and its capabilities.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::json;
use switchboard_auth::Principal;
use switchboard_model::{Caller, Face, StatelessState};
use switchboard_protocol::{
    Capabilities, ErrorBody, LEGACY_VERSIONS, Members, Meta, ModernFault, SUPPORTED_VERSIONS,
    check_headers, check_version, code, read_client_info,
};
use switchboard_sessions::{Session, SessionError};
use switchboard_view::Scope;

use crate::gateway::Gateway;
use crate::log_level::LogLevel;
use crate::outcome::Outcome;
use crate::request_context::RequestContext;

/// Checks the required members of a stateless-era request. The order of the checks decides which error is reported.
pub(crate) fn check<'a>(
    method: &str,
    params: &Members<'a>,
    headers: Option<&HeaderMap>,
) -> Result<Meta<'a>, Outcome> {
    let refuse = |code: i64, message: String| Outcome::Error {
        status: 400,
        error: ErrorBody::new(code, message),
    };
    let meta = Meta::of(params).map_err(|fault| refuse(code::INVALID_PARAMS, fault.0))?;
    meta.require_modern().map_err(|fault| refuse(code::INVALID_PARAMS, fault.0))?;
    let version = meta.version.as_deref().unwrap_or_default();
    let checked = match headers {
        Some(headers) => check_headers(headers, method, params, version),
        None => Ok(()),
    };
    match checked.and_then(|()| check_version(version)) {
        Ok(()) => Ok(meta),
        Err(ModernFault::Header(reason)) => Err(refuse(code::HEADER_MISMATCH, reason)),
        Err(ModernFault::Version(requested)) => {
            let message = if LEGACY_VERSIONS.contains(&&*requested) {
                format!("protocol version {requested:?} needs a session: begin with `initialize`")
            } else {
                format!("protocol version {requested:?} is not supported")
            };
            let data = json!({"supported": SUPPORTED_VERSIONS, "requested": requested});
            let error = ErrorBody::new(code::UNSUPPORTED_PROTOCOL_VERSION, message)
                .with_data(data.to_string());
            Err(Outcome::Error { status: 400, error })
        }
    }
}

impl Gateway {
    /// The context of a stateless-era request. Its session is that of the endpoint, or that of the credential if configured.
    pub(crate) async fn stateless_context(
        &self,
        principal: &Principal,
        scope: Arc<Scope>,
        endpoint: Option<Arc<Session>>,
        meta: &Meta<'_>,
        can_stream: bool,
    ) -> Result<RequestContext, SessionError> {
        self.service.note_access(&principal.id, &principal.access);
        let session = match endpoint {
            Some(session) => Some(session),
            None if self.shares_by_principal() => {
                Some(Box::pin(self.sessions().for_principal(&principal.id)).await?)
            }
            None => None,
        };
        let capabilities = meta.capabilities.unwrap_or("{}");
        let info = read_client_info(meta.client_info);
        if let Some(session) = &session {
            let version = meta.version.as_deref().unwrap_or_default();
            self.service.stateless_clients().note(session, &info, version);
        }
        let agent = scope.agent.as_deref().map(Arc::from);
        let scope = self.service.scope_for(&scope, session.as_ref(), &principal.access);
        let mut caller = Caller { client: info, agent, ..principal.caller(Face::Mcp) };
        if let Some(session) = &session {
            caller = caller.in_session(session.id.clone(), session.owner.clone());
        }
        Ok(RequestContext {
            caller: Arc::new(caller),
            client: None,
            session,
            scope,
            capabilities: Capabilities::read(capabilities),
            // `None` means an empty object.
            capabilities_text: (capabilities != "{}").then(|| capabilities.into()),
            log_level: meta.log_level.as_deref().and_then(LogLevel::read),
            can_stream,
        })
    }

    fn shares_by_principal(&self) -> bool {
        self.board.plan().gateway.stateless_state == StatelessState::Principal
    }
}
