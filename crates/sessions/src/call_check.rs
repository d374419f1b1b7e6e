//! Checks whether a queued call is still permitted when its slot becomes free.

use std::sync::Arc;

use switchboard_model::LiveAccess;
use switchboard_registry::CatalogTool;
use switchboard_runtime::CallCheck;
use switchboard_view::{Scope, View};

use crate::service::SessionService;
use crate::session::Session;

/// How a caller named a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// By its name in the caller's list.
    Listed,
    /// Through `call_tool`, which also reaches tools that are not listed.
    ByCallTool,
}

impl SessionService {
    /// The check that the board makes when a call has its slot: whether the caller still sees the tool. The call may
    /// have waited in the queue, and the view and the access of the caller may have changed since.
    pub fn check_for(
        self: &Arc<Self>,
        scope: &Arc<Scope>,
        session: Option<&Arc<Session>>,
        reached: Reached,
        access: &LiveAccess,
    ) -> CallCheck {
        let (service, scope, session) = (self.clone(), scope.clone(), session.cloned());
        let access = access.clone();
        CallCheck::new(move |tool| {
            if session.as_ref().is_some_and(|session| session.is_ended()) {
                return Err("its session was ended".into());
            }
            let scope = service.scope_for(&scope, session.as_ref(), &access);
            is_allowed(&service.view_of(&scope, session.as_ref()).view, tool, reached)
        })
    }
}

fn is_allowed(view: &View, tool: &CatalogTool, reached: Reached) -> Result<(), String> {
    let entry = view.reach(tool.name.as_str()).ok();
    let Some(entry) = entry.filter(|entry| entry.tool.name == tool.name) else {
        return Err("the tool is no longer available to this caller".into());
    };
    let is_allowed = match reached {
        Reached::Listed => view.shows(entry),
        Reached::ByCallTool => !view.is_switched_off(entry),
    };
    if is_allowed { Ok(()) } else { Err("the tool was switched off".into()) }
}
