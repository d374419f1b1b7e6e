//! Changes of a session through the API, checked against the current configuration and catalog.

use std::collections::{BTreeMap, BTreeSet};

use switchboard_model::{ExposureMode, ServerName, ToolStrategy};
use switchboard_render::Provider;
use switchboard_view::{Selection, View, unknown_tool};

use crate::error::SessionError;
use crate::session::{Draft, OwnServer};
use switchboard_runtime::Snapshot;

/// A change of a session. Fields that are `None` or empty change nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    pub title: Option<Option<String>>,
    pub provider: Option<Option<String>>,
    pub model: Option<Option<String>>,
    /// The name of a credential of the provider. A change of the provider without one removes it.
    pub credential: Option<Option<String>>,
    /// The word of a strategy; `Some(None)` leaves it to the provider.
    pub strategy: Option<Option<String>>,
    /// The servers that the session is bound to; `Some(None)` binds it to all.
    pub servers: Option<Option<BTreeSet<String>>>,
    pub toolsets: BTreeMap<String, bool>,
    /// Single tools that are enabled or disabled, by exposed or canonical name; `None` removes the setting of a tool.
    pub tools: BTreeMap<String, Option<bool>>,
    /// For each provider, patterns of the only tools that it gets; `None` removes the restriction.
    pub allow: BTreeMap<String, Option<Vec<String>>>,
    /// Servers that the session attaches; `None` detaches the server.
    pub own_servers: BTreeMap<String, Option<OwnServer>>,
}

/// The maximum length of titles and model names.
const MAX_TEXT: usize = 512;
/// The maximum number of patterns in one provider's list.
const MAX_PATTERNS: usize = 1024;

impl Change {
    /// Applies the change to a draft, or says why it is invalid.
    pub(crate) fn apply(
        self,
        snapshot: &Snapshot,
        view: &View,
        draft: &mut Draft,
    ) -> Result<(), SessionError> {
        let about = &mut draft.about;
        let is_other_provider = self.provider.as_ref().is_some_and(|now| *now != about.provider);
        if is_other_provider {
            about.credential = None;
        }
        for (text, place, what) in [
            (self.title, &mut about.title, "title"),
            (self.provider, &mut about.provider, "provider"),
            (self.model, &mut about.model, "model"),
            (self.credential, &mut about.credential, "credential"),
        ] {
            let Some(text) = text else { continue };
            if text.as_ref().is_some_and(|text| text.chars().count() > MAX_TEXT) {
                let reason = format!("the {what} is longer than {MAX_TEXT} characters");
                return Err(SessionError::Refused(reason).at(what, None));
            }
            *place = text.filter(|text| !text.is_empty());
        }
        if let Some(word) = self.strategy {
            let parse = |word: String| word.parse::<ToolStrategy>();
            let strategy = word.map(parse).transpose();
            about.strategy = strategy
                .map_err(|error| SessionError::Refused(error.to_string()).at("strategy", None))?;
        }
        if let Some(servers) = self.servers {
            if let Some(servers) = &servers {
                check_servers(snapshot, view, &draft.selection, servers)
                    .map_err(|error| error.at("servers", None))?;
            }
            draft.selection.servers = servers;
        }
        for (set, is_on) in self.toolsets {
            let name = set.clone();
            switch_set(snapshot, view, &mut draft.selection, set, is_on)
                .map_err(|error| error.at("toolsets", Some(&name)))?;
        }
        for (tool, is_on) in self.tools {
            switch_tool(view, &mut draft.selection, &tool, is_on)
                .map_err(|error| error.at("tools", Some(&tool)))?;
        }
        for (provider, patterns) in self.allow {
            let known: Result<Provider, _> = provider.parse();
            if let (Err(unknown), true) = (known, patterns.is_some()) {
                let refused = SessionError::Refused(unknown.to_string());
                return Err(refused.at("allow", Some(&provider)));
            }
            if patterns.as_ref().is_some_and(|patterns| patterns.len() > MAX_PATTERNS) {
                let reason = format!("{provider}: more than {MAX_PATTERNS} patterns");
                return Err(SessionError::Refused(reason).at("allow", Some(&provider)));
            }
            match patterns {
                Some(patterns) => drop(draft.selection.allow.insert(provider, patterns)),
                None => drop(draft.selection.allow.remove(&provider)),
            }
        }
        for (name, server) in self.own_servers {
            let shown = name.clone();
            own_server(snapshot, view, draft, name, server)
                .map_err(|error| error.at("own_servers", Some(&shown)))?;
        }
        Ok(())
    }
}

fn refuse<T>(reason: String) -> Result<T, SessionError> {
    Err(SessionError::Refused(reason))
}

/// The configured servers of which policy permits something and the owner of the session may use something.
fn known_to<'a>(snapshot: &'a Snapshot, view: &'a View) -> impl Iterator<Item = &'a String> {
    let is_granted = |name: &&String| view.grants_server(&ServerName::new(name.as_str()));
    snapshot.known_servers().iter().filter(is_granted)
}

fn check_servers(
    snapshot: &Snapshot,
    view: &View,
    selection: &Selection,
    servers: &BTreeSet<String>,
) -> Result<(), SessionError> {
    let local = switchboard_model::LOCAL_SERVER;
    let is_known = |name: &String| {
        known_to(snapshot, view).any(|known| known == name)
            || (name == local
                && snapshot.index().has_server(&ServerName::local())
                && view.grants_server(&ServerName::local()))
            // A server that is bound stays bound, also when it is no longer configured.
            || selection.servers.as_ref().is_some_and(|bound| bound.contains(name))
    };
    match servers.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<_> = known_to(snapshot, view).map(String::as_str).collect();
            let known = match known.as_slice() {
                [] => "none is configured".to_owned(),
                known => format!("there are: {}", known.join(", ")),
            };
            refuse(format!("there is no MCP server '{name}' here; {known}"))
        }
    }
}

fn switch_set(
    snapshot: &Snapshot,
    view: &View,
    selection: &mut Selection,
    set: String,
    is_on: bool,
) -> Result<(), SessionError> {
    let mode = view.mode();
    // A toolset that is no longer configured can still be disabled.
    let is_lost = !is_on && selection.toolsets.contains_key(&set);
    if view.toolset(&set).is_none() && !is_lost {
        let known = match view.set_names() {
            [] => "there are none here".to_owned(),
            known => format!("there are: {}", known.join(", ")),
        };
        return refuse(format!("there is no toolset '{set}' here; {known}"));
    }
    if selection.is_on(&set, mode) == is_on {
        return Ok(());
    }
    if is_on && mode == ExposureMode::Dynamic {
        let is_there = |name: &&str| snapshot.index().toolset(name).is_some();
        let active = selection.switched_on().filter(is_there).count();
        if let Some(max) = snapshot.index().max_active_toolsets().filter(|max| active >= *max) {
            return refuse(format!(
                "toolset '{set}' cannot be enabled: at most {max} may be active (max_active_toolsets); disable one first"
            ));
        }
    }
    if !is_on && mode == ExposureMode::Dynamic {
        selection.toolsets.remove(&set);
    } else {
        selection.toolsets.insert(set, is_on);
    }
    Ok(())
}

fn switch_tool(
    view: &View,
    selection: &mut Selection,
    tool: &str,
    is_on: Option<bool>,
) -> Result<(), SessionError> {
    // The setting of a tool that no longer exists can still be removed.
    if is_on.is_none() && selection.tools.remove(tool).is_some() {
        return Ok(());
    }
    let entry =
        view.reach(tool).map_err(|nearest| SessionError::Refused(unknown_tool(tool, &nearest)))?;
    let name = entry.shown_name().as_str().to_owned();
    match is_on {
        Some(is_on) => drop(selection.tools.insert(name, is_on)),
        None => drop(selection.tools.remove(&name)),
    }
    Ok(())
}

fn own_server(
    snapshot: &Snapshot,
    view: &View,
    draft: &mut Draft,
    name: String,
    server: Option<OwnServer>,
) -> Result<(), SessionError> {
    let Some(server) = server else {
        if draft.servers.remove(&name).is_none() {
            return refuse(format!("the session has no server '{name}' of its own"));
        }
        return Ok(());
    };
    if !ServerName::is_valid(&name) || name == switchboard_model::LOCAL_SERVER {
        return refuse(format!(
            "'{name}' cannot name a server: 1 to 64 letters, digits, `_` and `-`, the first a letter or digit, not `local`"
        ));
    }
    if known_to(snapshot, view).any(|known| *known == name) {
        return refuse(format!(
            "there is an MCP server '{name}' in the configuration: bind it, or choose another name"
        ));
    }
    draft.servers.insert(name, server);
    Ok(())
}
