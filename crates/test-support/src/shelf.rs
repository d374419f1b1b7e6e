//! Prompts and resources of the scripted server: lists, reading, and subscriptions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::listing::rpc_error;
use crate::state::{Shared, Wire};

/// The offered prompts and resources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf {
    /// Names.
    pub(crate) prompts: Vec<String>,
    /// URIs.
    pub(crate) resources: Vec<String>,
    /// Further entries of the lists of prompts, resources and templates, unchecked.
    pub(crate) entries: [Vec<Value>; 3],
}

/// The notifications that a stream gets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interests {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) uris: BTreeSet<String>,
}

impl Interests {
    /// Session-era streams get changes of every list; resource subscriptions belong to their session.
    pub(crate) fn all_lists() -> Self {
        Self { tools: true, prompts: true, resources: true, uris: BTreeSet::new() }
    }

    /// Parses the filter of `subscriptions/listen`.
    pub(crate) fn read(wanted: &Value) -> Self {
        let uris = wanted["resourceSubscriptions"].as_array().into_iter().flatten();
        Self {
            tools: wanted["toolsListChanged"] == true,
            prompts: wanted["promptsListChanged"] == true,
            resources: wanted["resourcesListChanged"] == true,
            uris: uris.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !(self.tools || self.prompts || self.resources) && self.uris.is_empty()
    }

    /// The filter in the acknowledgement.
    pub(crate) fn honoured(&self) -> Value {
        let mut honoured = json!({});
        for (is_set, name) in [
            (self.tools, "toolsListChanged"),
            (self.prompts, "promptsListChanged"),
            (self.resources, "resourcesListChanged"),
        ] {
            if is_set {
                honoured[name] = json!(true);
            }
        }
        if !self.uris.is_empty() {
            honoured["resourceSubscriptions"] = json!(self.uris);
        }
        honoured
    }
}

/// The capabilities in the handshake.
pub(crate) fn capabilities(shared: &Shared) -> Value {
    let mut capabilities = json!({"tools": {"listChanged": true}});
    if shared.script.has_prompts {
        capabilities["prompts"] = json!({"listChanged": true});
    }
    if shared.script.has_resources {
        capabilities["resources"] = json!({"subscribe": true, "listChanged": true});
    }
    if shared.script.has_logging {
        capabilities["logging"] = json!({});
    }
    capabilities
}

/// The response to a request about prompts or resources; `None` for other requests, or if there are none.
pub(crate) fn answer(shared: &Shared, wire: Wire, id: &Value, message: &Value) -> Option<Value> {
    let script = &shared.script;
    let (method, params) = (message["method"].as_str()?, &message["params"]);
    let is_offered = (method.starts_with("prompts/") && script.has_prompts)
        || (method.starts_with("resources/") && script.has_resources);
    if !is_offered {
        return None;
    }
    let shelf = shared.shelf();
    let [more_prompts, more_resources, templates] = &shelf.entries;
    let (name, uri) = (params["name"].as_str(), params["uri"].as_str());
    let text = |text: &str| json!({"type": "text", "text": text});
    let result = match method {
        "prompts/list" => {
            let prompts = shelf.prompts.iter().map(|name| json!({"name": name}));
            let prompts: Vec<_> = prompts.chain(more_prompts.iter().cloned()).collect();
            Some(json!({ "prompts": prompts }))
        }
        "prompts/get" => name.filter(|name| shelf.prompts.iter().any(|known| known == name)).map(
            |name| json!({"messages": [{"role": "user", "content": text(&format!("prompt {name}"))}]}),
        ),
        "resources/list" => {
            let entry = |uri: &String| json!({"uri": uri, "name": uri});
            let resources = shelf.resources.iter().map(entry);
            let resources: Vec<_> = resources.chain(more_resources.iter().cloned()).collect();
            Some(json!({ "resources": resources }))
        }
        "resources/templates/list" => Some(json!({ "resourceTemplates": templates })),
        "resources/read" => uri.filter(|uri| shelf.resources.iter().any(|known| known == uri)).map(
            |uri| json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": format!("text of {uri}")}]}),
        ),
        _ => return None,
    };
    let Some(mut result) = result else {
        return Some(rpc_error(id, -32602, "there is no such thing"));
    };
    if wire == Wire::Modern {
        result["resultType"] = json!("complete");
        // Also where the protocol does not define it: some servers send it everywhere.
        result["ttlMs"] = json!(script.ttl_ms);
        result["cacheScope"] = json!(script.cache_scope);
    }
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}
