//! Makes a [`Plan`] from a configuration that matches the schema, with all checks that concern more than one value.
//!
//! Entries are read one by one, and each check runs on the valid parts of an entry, so a misspelt key in one server
//! does not hide missing defaults of another.

mod agent;
mod argument;
mod caller_headers;
mod discovery;
pub(crate) mod endpoint;
mod gateway;
mod grant;
mod names;
mod oauth;
mod prompt_tool;
mod provider;
mod provider_auth;
mod records;
mod security;
pub(crate) mod server;
mod store;
mod threat_protection;
mod tls;
mod tool;
mod toolset;
mod warnings;

use std::collections::HashMap;
use std::path::Path as FilePath;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use switchboard_model::{
    AdmissionMode, DEFAULT_MAX_CONCURRENT, LimitsOverlay, LocalToolChoice, Plan, RootKey,
};

use crate::duration;
use crate::path::Path;
use crate::place::ValueOrigin;
use crate::problem::ConfigProblem;
use crate::raw::{RawDuration, RawMode, RawServer, RawTool};
use crate::shape_words::found;
use crate::source::SourceText;
use crate::tree::Node;

/// Maximum number of reported problems; rendering each takes time.
const MAX_PROBLEMS: usize = 500;

/// Collects problems while the plan is made.
pub(crate) struct Planner<'a> {
    pub(crate) source: &'a SourceText<'a>,
    /// The base directory of relative paths.
    pub(crate) directory: &'a FilePath,
    pub(crate) problems: Vec<ConfigProblem>,
    pub(crate) warnings: Vec<ConfigProblem>,
    /// The issuer of `security.jwt`.
    pub(crate) jwt_issuer: Option<String>,
}

/// A node and its path.
#[derive(Clone)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a Node,
    pub(crate) path: Path,
}

impl<'a> At<'a> {
    /// The value of a key, if present.
    pub(crate) fn get(&self, key: &str) -> Option<At<'a>> {
        self.node.get(key).map(|node| At { node, path: self.path.key(key) })
    }

    /// Whether the key is present, with a valid value or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.node.get(key).is_some()
    }

    /// The location of a key, or of the whole map if the key is absent.
    pub(crate) fn key_origin(&self, key: &str) -> &'a ValueOrigin {
        self.node.entry(key).map_or(&self.node.origin, |entry| &entry.origin)
    }

    /// The location of a value, or of the whole map if it is absent.
    fn value_origin(&self, key: &str) -> &'a ValueOrigin {
        self.node.get(key).map_or(&self.node.origin, |node| &node.origin)
    }

    /// The value, if it is a string.
    fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            crate::tree::Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The item of this index, if the value is a list.
    fn element(&self, index: usize) -> Option<At<'a>> {
        let node = self.node.items().get(index)?;
        Some(At { node, path: self.path.index(index) })
    }

    /// The items of the list below `key`.
    pub(crate) fn items(&self, key: &str) -> Vec<At<'a>> {
        let Some(list) = self.get(key) else { return Vec::new() };
        let item = |(index, node)| At { node, path: list.path.index(index) };
        list.node.items().iter().enumerate().map(item).collect()
    }
}

impl Planner<'_> {
    /// Makes the plan. It may be used only if there are no problems.
    pub(crate) fn plan(&mut self, root: RootKey, config: &At<'_>, sound: &Json) -> Plan {
        let empty = Node::new(crate::tree::Value::Null, ValueOrigin::Nowhere);
        let toolbox = config
            .get("toolbox")
            .unwrap_or_else(|| At { node: &empty, path: config.path.key("toolbox") });
        let json = &sound["toolbox"];
        let jwt = config.get("security").and_then(|security| security.get("jwt"));
        let jwt_issuer = jwt.and_then(|jwt| jwt.get("issuer")?.text().map(str::to_owned));
        self.jwt_issuer = jwt_issuer;

        let sound_lists = without_gaps(sound);
        let threat_protection = self.threat_protection(config, &sound_lists);
        let servers = entries::<RawServer>(&toolbox, "mcps", json);
        let tools = entries::<RawTool>(&toolbox, "tools", json);
        self.refuse_duplicates(&tools, "tool entries", |raw| raw.name.as_deref());
        let tools: Vec<_> = tools
            .into_iter()
            .filter_map(|(at, raw)| Some((self.tool(&at, raw, &servers)?, at)))
            .collect();
        self.check_exposed_names(&tools);
        self.check_named_tools(&tools);
        self.check_tool_ids(&tools);

        self.refuse_duplicates(&servers, "servers", |raw| raw.name.as_deref());
        let local_tools = local_tools(&json["local_tools"]);
        let members = toolset::members(&servers, &local_tools);
        let defaults = self.server_defaults(&toolbox, json);
        let servers: Vec<_> = servers
            .into_iter()
            .filter_map(|(at, raw)| Some((self.server(&at, raw, &defaults)?, at)))
            .collect();

        self.warn(&tools, &servers);
        if threat_protection.endpoint.is_none() {
            self.refuse_checks_without_endpoint(config, &toolbox, &tools, &servers);
        }
        let sound = sound_lists;
        let mut toolsets = self.toolsets(config, &sound, &members);
        let gateway = self.gateway(config, &sound, &toolsets);
        toolsets.hide_denied_servers(&gateway.deny_toolsets);
        let security = self.security(config, &sound, &members, &toolsets);
        self.check_account_storage(config, &servers, gateway.public_url.as_ref());
        let providers = self.providers(config, &sound);
        self.check_prompt_providers(&tools, config);
        let agents = self.agents(config, &sound, &members, &toolsets);
        let discovery = self.discovery(config, &sound, &defaults);
        let records = self.records(config, &sound);
        let tls = self.tls(config, &sound);
        let store = self.store(config, &sound);
        let max_concurrent = json["max_concurrent"].as_u64().and_then(|n| u32::try_from(n).ok());
        Plan {
            root,
            max_concurrent: max_concurrent.unwrap_or(DEFAULT_MAX_CONCURRENT),
            tools: tools.into_iter().map(|(entry, _)| entry).collect(),
            servers: servers.into_iter().map(|(server, _)| server).collect(),
            local_tools,
            toolsets: toolsets.plans,
            gateway,
            security,
            providers,
            agents,
            discovery,
            threat_protection,
            records,
            tls,
            store,
        }
    }

    fn refuse_duplicates<T>(
        &mut self,
        entries: &[(At<'_>, T)],
        what: &str,
        name: impl Fn(&T) -> Option<&str>,
    ) {
        let mut first_places = HashMap::new();
        for (at, raw) in entries {
            let Some(name) = name(raw) else { continue };
            let origin = at.value_origin("name");
            if let Some(first) = first_places.get(name).copied() {
                let shown = shown_name(at, name);
                let problem = ConfigProblem::error(format!("two {what} are named `{shown}`"))
                    .about(&at.path.key("name"))
                    .note(format!("the first is at {}", self.source.place(first)))
                    .help("rename one of them, or remove it");
                self.push(origin, problem);
            } else {
                first_places.insert(name, origin);
            }
        }
    }

    fn push(&mut self, origin: &ValueOrigin, problem: ConfigProblem) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        self.problems.push(self.source.locate(origin, problem));
    }

    /// Reports the value of a key: "`path`: found ... `why`".
    fn refuse(&mut self, at: &At<'_>, why: &str, help: &str) {
        let problem = ConfigProblem::error(format!("{}: {} {why}", at.path, found(at.node)));
        self.push(&at.node.origin, problem.about(&at.path).help(help));
    }

    fn duration(&mut self, at: &At<'_>, key: &str, raw: Option<RawDuration>) -> Option<Duration> {
        match duration::parse(&raw?.0) {
            Ok(duration) => Some(duration),
            Err(why) => {
                let at = at.get(key)?;
                self.refuse(&at, why, duration::ACCEPTED);
                None
            }
        }
    }

    fn limits(&mut self, at: &At<'_>, raw: RawLimits) -> LimitsOverlay {
        let timeout = self.duration(at, "timeout", raw.timeout);
        let max_timeout = self.duration(at, "max_timeout", raw.max_timeout);
        if max_timeout.zip(timeout).is_some_and(|(longest, timeout)| longest < timeout)
            && let Some(at) = at.get("max_timeout")
        {
            let help = "it limits calls that report progress: write `timeout` or more";
            self.refuse(&at, "is shorter than `timeout`", help);
        }
        LimitsOverlay {
            max_instances: raw.max_instances,
            timeout,
            max_timeout,
            queue_timeout: self.duration(at, "queue_timeout", raw.queue_timeout),
            inactivity_timeout: self.duration(at, "inactivity_timeout", raw.inactivity_timeout),
            max_result_bytes: raw.max_result_bytes,
            rate: self.rate(at, raw.rate.as_deref()),
        }
    }
}

/// The limits that tool entries and server defaults have in common.
struct RawLimits {
    max_instances: Option<u32>,
    timeout: Option<RawDuration>,
    max_timeout: Option<RawDuration>,
    queue_timeout: Option<RawDuration>,
    inactivity_timeout: Option<RawDuration>,
    max_result_bytes: Option<u64>,
    rate: Option<String>,
}

/// The valid entries of a list, each with its position.
fn entries<'a, T: DeserializeOwned>(toolbox: &At<'a>, key: &str, json: &Json) -> Vec<(At<'a>, T)> {
    let read = |at: At<'a>, index: usize| {
        // An entry that does not deserialize failed the schema check and has been reported.
        let raw = json.get(key)?.get(index).cloned()?;
        serde_json::from_value(raw).ok().map(|raw| (at, raw))
    };
    let items = toolbox.items(key).into_iter().enumerate();
    items.filter_map(|(index, at)| read(at, index)).collect()
}

/// Removes `null` elements, which stand for malformed values, from lists of strings; they would make the whole list and
/// the map around it unreadable. Lists of maps keep them, because their elements are found by index.
fn without_gaps(json: &Json) -> Json {
    match json {
        Json::Object(map) => {
            map.iter().map(|(key, value)| (key.clone(), without_gaps(value))).collect()
        }
        Json::Array(items) if items.iter().any(Json::is_object) => {
            items.iter().map(without_gaps).collect()
        }
        Json::Array(items) => items.iter().filter(|item| !item.is_null()).cloned().collect(),
        _ => json.clone(),
    }
}

/// A name for display; one that came from a variable is redacted.
fn shown_name<'a>(at: &At<'_>, name: &'a str) -> &'a str {
    if at.get("name").is_some_and(|name| name.node.sensitive) { "***" } else { name }
}

fn admission_mode(raw: RawMode) -> AdmissionMode {
    match raw {
        RawMode::Strict => AdmissionMode::Strict,
        RawMode::Dynamic => AdmissionMode::Dynamic,
    }
}

fn local_tools(json: &Json) -> LocalToolChoice {
    match json {
        Json::String(_) => LocalToolChoice::All,
        Json::Array(names) => {
            let names = names.iter().filter_map(Json::as_str);
            LocalToolChoice::Only(names.map(str::to_owned).collect())
        }
        _ => LocalToolChoice::NamedInTools,
    }
}
