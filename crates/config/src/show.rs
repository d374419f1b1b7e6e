//! The plan as a document: every effective value with its origin, secrets as `***`.
//!
//! Limits that a tool entry does not set are not shown there, because they depend on the server.

mod discovery;

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use switchboard_model::{
    AccountScope, AdmissionMode, AgentLimits, AgentPlan, ArgumentSpec, BUILT_IN_LIMITS,
    ContentCheckOverlay, DeclarationKeys, EgressRule, Endpoint, EraChoice, GatewayPlan, JwksSource,
    LimitsOverlay, LocalToolChoice, OAuthGrant, OAuthSettings, Plan, ProviderAuth, ProviderPlan,
    RecordOverlay, RecordsPlan, SecurityPlan, ServerPlan, ServerSpec, Sharing, StorePlan,
    ThreatProtectionPlan, TlsPlan, ToolEntry, ToolSchemaForm, ToolsetPlan, UpstreamAuth,
    redact_url, render_duration,
};

use crate::emit::Doc;
use crate::place::SourceLocation;
use crate::plan::At;
use crate::plan::endpoint::redact_address;
use crate::plan::server::CONNECTION_KEYS;
use crate::source::SourceText;
use crate::tree::{Node, TreeEntry, Value};

const REDACTED: &str = "***";

pub(crate) fn document(plan: &Plan, config: &At<'_>, source: &SourceText<'_>) -> Doc {
    let toolbox = config.get("toolbox");
    let mut fields = ShownFields::new(toolbox.clone(), source);
    fields.put("max_concurrent", json!(plan.max_concurrent));
    match &plan.local_tools {
        LocalToolChoice::NamedInTools => {}
        LocalToolChoice::All => fields.put("local_tools", json!("all")),
        LocalToolChoice::Only(names) => fields.put_texts("local_tools", names),
    }
    let items =
        |key: &str| toolbox.iter().flat_map(|toolbox| toolbox.items(key)).collect::<Vec<_>>();
    let tools = items("tools").into_iter().zip(&plan.tools);
    let tools = tools.map(|(at, tool)| tool_entry(tool, at, source)).collect();
    fields.put_list("tools", tools);
    let servers = items("mcps").into_iter().zip(&plan.servers);
    let defaults = toolbox.as_ref().and_then(|toolbox| toolbox.get("defaults"));
    let servers =
        servers.map(|(at, server)| server_entry(server, at, defaults.clone(), source)).collect();
    fields.put_list("mcps", servers);
    let mut whole = ShownFields::new(Some(config.clone()), source);
    whole.out.push(("toolbox".into(), fields.done()));
    // The toolsets made from servers come after the configured ones and are not shown.
    let sets = config.items("toolsets").into_iter().zip(&plan.toolsets);
    let sets = sets.map(|(at, set)| toolset_entry(set, at, source)).collect();
    whole.put_list("toolsets", sets);
    whole.out.push(("gateway".into(), gateway(&plan.gateway, config.get("gateway"), source)));
    whole.out.push(("security".into(), security(&plan.security, config.get("security"), source)));
    let providers = config.items("providers").into_iter().zip(&plan.providers);
    let providers = providers.map(|(at, provider)| provider_entry(provider, at, source)).collect();
    whole.put_list("providers", providers);
    if let Some(at) = config.get("threat_protection") {
        let shown = threat_protection(&plan.threat_protection, at, source);
        whole.out.push(("threat_protection".into(), shown));
    }
    let agents = config.items("agents").into_iter().zip(&plan.agents);
    let agents: Vec<_> = agents.map(|(at, agent)| agent_entry(agent, at, source)).collect();
    if config.has("agents") {
        whole.put_list("agents", agents);
    }
    let discovery = discovery::section(&plan.discovery, config.get("discovery"), source);
    whole.out.push(("discovery".into(), discovery));
    if let Some(at) = config.get("records") {
        whole.out.push(("records".into(), records(&plan.records, at, source)));
    }
    if let (Some(at), Some(plan)) = (config.get("tls"), &plan.tls) {
        whole.out.push(("tls".into(), tls(plan, at, source)));
    }
    if let Some(at) = config.get("store") {
        whole.out.push(("store".into(), store(&plan.store, at, source)));
    }
    Doc::Map(vec![(plan.root.as_str().into(), whole.done())])
}

/// Leaves out servers that are members through their own `toolset` key, which is shown there.
fn toolset_entry(set: &ToolsetPlan, at: At<'_>, source: &SourceText<'_>) -> Doc {
    let written = at.items("servers").len();
    let mut fields = ShownFields::new(Some(at), source);
    fields.put("name", json!(set.name));
    fields.put("description", json!(set.description));
    fields.put_written("when_to_use", set.when_to_use.as_ref().map(|text| json!(text)));
    let servers = set.servers.iter().take(written);
    let servers: Vec<_> = servers.map(|server| server.as_str().to_owned()).collect();
    fields.put_texts("servers", &servers);
    fields.put_texts("tools", &set.tools);
    fields.done()
}

fn gateway(plan: &GatewayPlan, at: Option<At<'_>>, source: &SourceText<'_>) -> Doc {
    let mut fields = ShownFields::new(at, source);
    fields.put_written("exposure", plan.exposure.map(|mode| json!(mode.as_str())));
    fields.put_written_texts("tool_sets", plan.tool_sets.as_ref());
    fields.put("naming", json!(plan.naming.as_str()));
    fields.put_written("max_active_toolsets", plan.max_active_toolsets.map(|n| json!(n)));
    fields.put_written_texts("allow_toolsets", plan.allow_toolsets.as_ref());
    fields.put_texts("deny_toolsets", &plan.deny_toolsets);
    fields.put("stateless_state", json!(plan.stateless_state.as_str()));
    fields.put("session_idle", json!(render_duration(plan.session_idle)));
    fields.put("max_sessions", json!(plan.max_sessions));
    fields.put("max_sessions_per_principal", json!(plan.max_sessions_per_principal));
    fields.put("max_session_servers", json!(plan.max_session_servers));
    fields.put("max_body_bytes", json!(plan.max_body_bytes));
    fields.put("startup_wait", json!(render_duration(plan.startup_wait)));
    fields.put("trustgraph", json!(plan.trustgraph));
    fields.put_written("public_url", plan.public_url.as_ref().map(|url| json!(redact_url(url))));
    fields.done()
}

fn security(plan: &SecurityPlan, at: Option<At<'_>>, source: &SourceText<'_>) -> Doc {
    let jwt_at = at.as_ref().and_then(|at| at.get("jwt"));
    let egress_at = at.as_ref().and_then(|at| at.get("egress"));
    let mut fields = ShownFields::new(at, source);
    fields.put_texts("allowed_hosts", &plan.allowed_hosts);
    fields.put_texts("allowed_origins", &plan.allowed_origins);
    if let Some(jwt) = &plan.jwt {
        let mut below = ShownFields::new(jwt_at, source);
        below.put("issuer", json!(jwt.issuer));
        below.put("audience", json!(jwt.audience));
        if let Some(client) = &jwt.page_client {
            let written = below.written("page_client");
            let mut shown = ShownFields::new(written, source);
            shown.put("client_id", json!(client.id));
            if client.secret.is_some() {
                shown.put("client_secret", json!(REDACTED));
            }
            shown.put_texts("scopes", &client.scopes);
            let shown = shown.done();
            below.out.push(("page_client".into(), shown));
        }
        match &jwt.jwks {
            JwksSource::Url(url) => below.put("jwks_url", json!(redact_url(url))),
            // As written: the resolved path would be wrong after the file is moved.
            JwksSource::File(_) => {
                below.put_written(
                    "jwks_file",
                    below.written("jwks_file").map(|at| at.node.to_json()),
                );
            }
        }
        below.put_texts("required_scopes", &jwt.required_scopes);
        below.put("leeway", json!(render_duration(jwt.leeway)));
        // The default is the audience, which may have come from a variable.
        if below.written("resource").is_some() || !below.is_sensitive("audience") {
            below.put("resource", json!(redact_url(&jwt.resource)));
        }
        for key in ["grants", "default_grant"] {
            below.put_written(key, below.written(key).map(|at| at.node.to_json()));
        }
        fields.out.push(("jwt".into(), below.done()));
    }
    if let Some(egress_at) = egress_at {
        let mut below = ShownFields::new(Some(egress_at), source);
        let texts =
            |rules: &[EgressRule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
        below.put_texts("allow", &texts(&plan.egress.allow));
        below.put_texts("deny", &texts(&plan.egress.deny));
        fields.out.push(("egress".into(), below.done()));
    }
    fields.put_written("store_key", plan.store_keys.current.as_ref().map(|_| json!(REDACTED)));
    if !plan.store_keys.previous.is_empty() {
        let hidden = vec![REDACTED.to_owned(); plan.store_keys.previous.len()];
        fields.put_texts("previous_store_keys", &hidden);
    }
    fields.done()
}

fn tool_entry(tool: &ToolEntry, at: At<'_>, source: &SourceText<'_>) -> Doc {
    let arguments = at.items("arguments");
    let mut fields = ShownFields::new(Some(at), source);
    // An entry in the form of TrustGraph stays one: its `name` is the exposed name.
    if let Some(name) = fields.written("mcp-tool").and(fields.written("name")) {
        fields.put("type", json!("mcp-tool"));
        fields.put("mcp-tool", json!(tool.name));
        fields.put("name", name.node.to_json());
    } else {
        fields.put("name", json!(tool.name));
    }
    fields.put_written("id", tool.id.as_ref().map(|id| json!(id)));
    if let Some(prompt) = &tool.prompt {
        fields.put("type", json!("prompt"));
        fields.put("template", json!(prompt.template));
        fields.put_written("provider", prompt.provider.as_ref().map(|text| json!(text)));
        fields.put_written("model", prompt.model.as_ref().map(|text| json!(text)));
        fields.put_written("instructions", prompt.instructions.as_ref().map(|text| json!(text)));
        fields.put_texts("tools", &prompt.tools);
        fields.put("max_depth", json!(prompt.max_depth));
    }
    fields.put("enabled", json!(tool.enabled));
    fields.put_written("mode", tool.mode.map(|mode| json!(mode.as_str())));
    fields.put_limits(&tool.limits);
    fields.put_written("description", tool.description.as_ref().map(|text| json!(text)));
    if fields.written("mcp-tool").is_none() {
        fields.put_written("expose_as", tool.expose_as.as_ref().map(|text| json!(text)));
    }
    fields.put_written("validate_arguments", tool.validate_arguments.map(|checks| json!(checks)));
    fields.put_content_check(tool.content_check);
    fields.put_record(tool.record);
    let grouping = &tool.grouping;
    fields.put_written_texts("group", grouping.group.as_ref());
    fields.put_written("state", grouping.state.as_ref().map(|state| json!(state)));
    let states = ["applicable-states", "applicable_states"];
    let key = states.into_iter().find(|key| fields.written(key).is_some()).unwrap_or(states[1]);
    fields.put_written_texts(key, grouping.applicable_states.as_ref());
    if let Some(specs) = &tool.arguments {
        let specs = arguments.into_iter().zip(specs);
        let specs = specs.map(|(at, spec)| argument(spec, at, source)).collect();
        fields.put_list("arguments", specs);
    }
    fields.done()
}

fn argument(spec: &ArgumentSpec, at: At<'_>, source: &SourceText<'_>) -> Doc {
    let mut fields = ShownFields::new(Some(at), source);
    fields.put("name", json!(spec.name));
    fields.put_written("type", spec.kind.map(|kind| json!(kind.as_str())));
    fields.put_written("description", spec.description.as_ref().map(|text| json!(text)));
    fields.put_written("required", spec.required.map(|required| json!(required)));
    for key in ["enum", "default", "items", "properties"] {
        fields.put_as_written(key);
    }
    fields.put_redacted("value");
    fields.put_as_written("hidden");
    fields.done()
}

/// Values inherited from `toolbox.defaults` are shown with every server, with their origin there.
fn server_entry<'a>(
    server: &ServerPlan,
    at: At<'a>,
    inherited: Option<At<'a>>,
    source: &'a SourceText<'a>,
) -> Doc {
    let defaults = at.get("default_tool_config");
    let is_used = defaults.is_some() || server.mode == AdmissionMode::Dynamic;
    let inherited_limits = inherited.as_ref().and_then(|at| at.get("default_tool_config"));
    let spec = &server.spec;
    let mut fields = ShownFields::new(Some(at), source);
    fields.inherited = inherited;
    fields.put("name", json!(spec.name.as_str()));
    fields.put("transport", json!(spec.endpoint.transport().as_str()));
    put_endpoint(&mut fields, spec);
    if let Sharing::PerSession { most, idle } = spec.sharing {
        let values = [json!(spec.sharing.as_str()), json!(most), json!(render_duration(idle))];
        for ((key, older), value) in CONNECTION_KEYS.into_iter().zip(values) {
            let is_older = fields.written(key).is_none() && fields.written(older).is_some();
            fields.put(if is_older { older } else { key }, value);
        }
    }
    fields.put("mode", json!(server.mode.as_str()));
    if let Some(limits) = server.default_limits.filter(|_| is_used) {
        let mut below = ShownFields::new(defaults, source);
        below.inherited = inherited_limits;
        below.put_limits(&LimitsOverlay {
            max_instances: limits.max_instances.or(Some(BUILT_IN_LIMITS.max_instances)),
            timeout: limits.timeout.or(Some(BUILT_IN_LIMITS.timeout)),
            max_timeout: Some(limits.resolve().max_timeout),
            max_result_bytes: limits.max_result_bytes.or(Some(BUILT_IN_LIMITS.max_result_bytes)),
            ..limits
        });
        fields.out.push(("default_tool_config".into(), below.done()));
    }
    fields.put_written_texts("tool_allowlist", server.tool_allowlist.as_ref());
    fields.put_texts("tool_denylist", &server.tool_denylist);
    fields.put("required", json!(server.required));
    let own_name = || spec.name.as_str().to_owned();
    if server.toolset.is_some() || !fields.is_sensitive("name") {
        fields.put("toolset", json!(server.toolset.clone().unwrap_or_else(own_name)));
    }
    fields.put_written_texts("prompts", server.prompts.as_ref());
    let era = match spec.era {
        EraChoice::Auto => "auto",
        EraChoice::Fixed(era) => era.as_str(),
    };
    fields.put("era", json!(era));
    fields.put("connect_timeout", json!(render_duration(spec.connect_timeout)));
    let poll_interval = server.poll_interval.map(|interval| json!(render_duration(interval)));
    fields.put_written("poll_interval", poll_interval);
    fields.put("validate_arguments", json!(server.validate_arguments));
    fields.put_content_check(server.content_check);
    fields.put_record(server.record);
    fields.done()
}

fn provider_entry(provider: &ProviderPlan, at: At<'_>, source: &SourceText<'_>) -> Doc {
    let mut fields = ShownFields::new(Some(at), source);
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    fields.put("name", json!(provider.name));
    fields.put("kind", json!(provider.kind.as_str()));
    fields.put_written("base_url", provider.base_url.as_ref().map(|url| json!(redact_url(url))));
    let is_described = fields.written("auth").is_some();
    match &provider.auth {
        ProviderAuth::None => {}
        _ if is_described => {}
        ProviderAuth::ApiKey(_) => fields.put("api_key", json!(REDACTED)),
        ProviderAuth::Bearer(_) => fields.put("bearer", json!(REDACTED)),
        ProviderAuth::OAuth(_) | ProviderAuth::TokenFile(_) => {}
    }
    fields.put_as_written("auth");
    fields.put_as_written("credentials");
    fields.put_written("model", text(&provider.model));
    fields.put_secrets("headers", provider.headers.keys().map(String::as_str));
    let settings = &provider.settings;
    fields.put_written("instructions", text(&settings.instructions));
    if !settings.system_blocks.is_empty() {
        fields.put_texts("system_blocks", &settings.system_blocks);
    }
    fields.put_written("max_output_tokens", settings.max_output_tokens.map(|n| json!(n)));
    fields.put_written("temperature", settings.temperature.map(|n| json!(n)));
    fields.put_written("top_p", settings.top_p.map(|n| json!(n)));
    fields.put_written("effort", settings.effort.map(|effort| json!(effort.as_str())));
    fields.put("show_thinking", json!(settings.show_thinking));
    fields.put_written("account", text(&provider.account));
    fields.put_written("project", text(&provider.project));
    let tool_schema = provider.tool_schema;
    let is_chosen = tool_schema != ToolSchemaForm::Auto;
    fields.put_written("tool_schema", is_chosen.then(|| json!(tool_schema.as_str())));
    let keys = settings.declaration_keys;
    let is_chosen = keys != DeclarationKeys::default();
    fields.put_written("declaration_keys", is_chosen.then(|| json!(keys.as_str())));
    let strategy = provider.strategy.map(|strategy| json!(strategy.as_str()));
    fields.put_written("strategy", strategy);
    fields.put_as_written("models");
    fields.put_written("native_tools", (!provider.has_native_tools).then(|| json!(false)));
    fields.put_written("react_template", text(&provider.react_template));
    fields.put_written("app_credentials", provider.passes_app_credentials.then(|| json!("pass")));
    fields.put("idle_timeout", json!(render_duration(provider.idle_timeout)));
    fields.put("total_timeout", json!(render_duration(provider.total_timeout)));
    fields.done()
}

fn threat_protection(plan: &ThreatProtectionPlan, at: At<'_>, source: &SourceText<'_>) -> Doc {
    let mut fields = ShownFields::new(Some(at), source);
    fields.put_written("endpoint", plan.endpoint.as_ref().map(|url| json!(redact_url(url))));
    fields.put_written("token", plan.token.as_ref().map(|_| json!(REDACTED)));
    fields.put("timeout", json!(render_duration(plan.timeout)));
    fields.put("on_failure", json!(plan.on_failure.as_str()));
    fields.put("before_model", json!(plan.before_model.as_str()));
    fields.put("before_tool", json!(plan.before_tool.as_str()));
    fields.put("after_tool", json!(plan.after_tool.as_str()));
    fields.put_texts("redact", &plan.redact);
    fields.put("accept_without_key", json!(plan.accept_without_key));
    fields.done()
}

fn records(plan: &RecordsPlan, at: At<'_>, source: &SourceText<'_>) -> Doc {
    let mut fields = ShownFields::new(Some(at), source);
    fields.put("max_age", json!(render_duration(plan.max_age)));
    fields.put("max_count", json!(plan.max_count));
    fields.put("max_content_bytes", json!(plan.max_content_bytes));
    fields.put_texts("redact", &plan.redact);
    fields.done()
}

/// The files as they are written, as with the `cwd` of a server.
fn tls(plan: &TlsPlan, at: At<'_>, source: &SourceText<'_>) -> Doc {
    let written = |key: &str| at.get(key).map(|file| file.node.to_json());
    let (cert, key, ca) = (written("cert"), written("key"), written("client_ca"));
    let mut fields = ShownFields::new(Some(at), source);
    fields.put_written("cert", cert);
    fields.put_written("key", key);
    fields.put_written("client_ca", ca);
    if let Some(clients) = &plan.clients {
        let word = if clients.are_required { "required" } else { "optional" };
        fields.put("client_certificate", json!(word));
    }
    fields.done()
}

fn store(plan: &StorePlan, at: At<'_>, source: &SourceText<'_>) -> Doc {
    let slots_at = at.get("slots");
    let mut fields = ShownFields::new(Some(at), source);
    fields.put_written("url", plan.url.as_ref().map(|_| json!(REDACTED)));
    fields.put_written("listen_url", plan.listen_url.as_ref().map(|_| json!(REDACTED)));
    fields.put("max_connections", json!(plan.max_connections));
    if slots_at.is_some() {
        let mut below = ShownFields::new(slots_at, source);
        below.put_written("after_loss", plan.slots.after_loss.map(|it| json!(it.as_str())));
        below.put("on_store_loss", json!(plan.slots.on_store_loss.as_str()));
        fields.out.push(("slots".into(), below.done()));
    }
    fields.done()
}

fn agent_entry(agent: &AgentPlan, at: At<'_>, source: &SourceText<'_>) -> Doc {
    let (tools_at, limits_at) = (at.get("tools"), at.get("limits"));
    let mut fields = ShownFields::new(Some(at), source);
    fields.put("name", json!(agent.name));
    fields.put_written("description", agent.description.as_ref().map(|text| json!(text)));
    let servers = agent.servers.as_ref();
    let servers = servers.map(|all| all.iter().map(ToString::to_string).collect());
    fields.put_written_texts("servers", servers.as_ref());
    fields.put_written_texts("toolsets", agent.toolsets.as_ref());
    if tools_at.is_some() {
        let mut below = ShownFields::new(tools_at, source);
        below.put_written_texts("allow", agent.allow_tools.as_ref());
        below.put_texts("deny", &agent.deny_tools);
        fields.out.push(("tools".into(), below.done()));
    }
    if limits_at.is_some() {
        let mut below = ShownFields::new(limits_at, source);
        let AgentLimits { max_concurrent, timeout, queue_timeout, max_result_bytes } = agent.limits;
        let duration = |time: Option<_>| time.map(|time| json!(render_duration(time)));
        below.put_written("max_concurrent", max_concurrent.map(|n| json!(n)));
        below.put_written("timeout", duration(timeout));
        below.put_written("queue_timeout", duration(queue_timeout));
        below.put_written("max_result_bytes", max_result_bytes.map(|n| json!(n)));
        fields.out.push(("limits".into(), below.done()));
    }
    fields.put_written_texts("keys", agent.keys.as_ref());
    fields.done()
}

fn put_endpoint(fields: &mut ShownFields<'_>, spec: &ServerSpec) {
    match &spec.endpoint {
        Endpoint::StreamableHttp { url, headers, auth } | Endpoint::Sse { url, headers, auth } => {
            fields.put("url", json!(redact_url(url)));
            let of_callers = spec.caller_headers.iter().map(|header| header.name.as_str());
            let names: BTreeSet<_> = headers.keys().map(String::as_str).chain(of_callers).collect();
            fields.put_secrets("headers", names.into_iter());
            put_auth(fields, auth);
        }
        Endpoint::Stdio { command, args, env, .. } => {
            fields.put("command", json!(command));
            fields.put_texts("args", args);
            fields.put_secrets("env", env.keys().map(String::as_str));
            // As written: the resolved path would be wrong after the file is moved.
            let cwd = fields.at.as_ref().and_then(|at| at.get("cwd")).map(|cwd| cwd.node.to_json());
            fields.put_written("cwd", cwd);
        }
    }
}

fn put_auth(fields: &mut ShownFields<'_>, auth: &UpstreamAuth) {
    match auth {
        UpstreamAuth::None => {}
        UpstreamAuth::Bearer(_) | UpstreamAuth::BearerFile { .. } => {
            fields.put_secrets("auth", std::iter::once("bearer"));
        }
        UpstreamAuth::OAuth(OAuthSettings { grant: OAuthGrant::StoredToken, per, .. }) => {
            let below = fields.written("auth");
            let written = below.as_ref().and_then(|auth| auth.get("bearer"));
            let mut bearer = ShownFields::new(written, fields.source);
            bearer.put("per", json!(per.as_str()));
            let mut below = ShownFields::new(below, fields.source);
            below.out.push(("bearer".into(), bearer.done()));
            fields.out.push(("auth".into(), below.done()));
        }
        UpstreamAuth::OAuth(settings) => {
            let below = fields.written("auth");
            let oauth = below.as_ref().and_then(|auth| auth.get("oauth"));
            let keys = oauth.as_ref().map(|oauth| oauth.node.entries()).unwrap_or_default();
            let keys: Vec<_> =
                keys.iter().map(|entry| entry.key.clone()).filter(|key| key != "per").collect();
            let mut below = ShownFields::new(below, fields.source);
            let mut shown = ShownFields::new(oauth, fields.source);
            for key in &keys {
                let secret = shown.written(key);
                shown.out.push((key.clone(), shown.value(secret.as_ref(), json!(REDACTED))));
            }
            if settings.per != AccountScope::Board {
                shown.put("per", json!(settings.per.as_str()));
            }
            let shown =
                if shown.out.is_empty() { Doc::Value(json!({}), None) } else { shown.done() };
            below.out.push(("oauth".into(), shown));
            fields.out.push(("auth".into(), below.done()));
        }
    }
}

/// The fields of one map, each with its origin from the tree.
struct ShownFields<'a> {
    at: Option<At<'a>>,
    /// The origin of values that are not in `at`.
    inherited: Option<At<'a>>,
    source: &'a SourceText<'a>,
    out: Vec<(String, Doc)>,
}

impl<'a> ShownFields<'a> {
    fn new(at: Option<At<'a>>, source: &'a SourceText<'a>) -> Self {
        Self { at, inherited: None, source, out: Vec::new() }
    }

    fn written(&self, key: &str) -> Option<At<'a>> {
        self.at.as_ref().and_then(|at| at.get(key))
    }

    fn is_sensitive(&self, key: &str) -> bool {
        self.written(key).is_some_and(|at| at.node.sensitive)
    }

    fn put(&mut self, key: &str, value: Json) {
        let inherited = || self.inherited.as_ref().and_then(|at| at.get(key));
        let doc = self.value(self.written(key).or_else(inherited).as_ref(), value);
        self.out.push((key.into(), doc));
    }

    fn put_written(&mut self, key: &str, value: Option<Json>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn put_texts(&mut self, key: &str, texts: &[String]) {
        let items = self.at.iter().flat_map(|at| at.items(key)).collect::<Vec<_>>();
        let docs =
            texts.iter().enumerate().map(|(index, text)| self.value(items.get(index), json!(text)));
        let docs = docs.collect();
        self.put_list(key, docs);
    }

    fn put_written_texts(&mut self, key: &str, texts: Option<&Vec<String>>) {
        if let Some(texts) = texts {
            self.put_texts(key, texts);
        }
    }

    /// A value of any shape, with the origin of each of its parts.
    fn put_as_written(&mut self, key: &str) {
        if let Some(at) = self.written(key) {
            let doc = self.any(&at, &|node| node.to_json());
            self.out.push((key.into(), doc));
        }
    }

    /// A value of any shape whose parts may be credentials. References to variables are shown.
    fn put_redacted(&mut self, key: &str) {
        if let Some(at) = self.written(key) {
            let doc = self.any(&at, &|_| json!(REDACTED));
            self.out.push((key.into(), doc));
        }
    }

    fn any(&self, at: &At<'_>, shown: &dyn Fn(&Node) -> Json) -> Doc {
        match &at.node.value {
            Value::List(items) if !items.is_empty() => {
                let items = items.iter().enumerate();
                let item =
                    |(index, node)| self.any(&At { node, path: at.path.index(index) }, shown);
                Doc::List(items.map(item).collect())
            }
            Value::Map(entries) if !entries.is_empty() => {
                let entry = |entry: &TreeEntry| {
                    let at = At { node: &entry.node, path: at.path.key(&entry.key) };
                    (entry.key.clone(), self.any(&at, shown))
                };
                Doc::Map(entries.iter().map(entry).collect())
            }
            _ => self.value(Some(at), shown(at.node)),
        }
    }

    /// An empty list is a value too and has an origin.
    fn put_list(&mut self, key: &str, items: Vec<Doc>) {
        if items.is_empty() {
            self.put(key, json!([]));
        } else {
            self.out.push((key.into(), Doc::List(items)));
        }
    }

    fn put_limits(&mut self, limits: &LimitsOverlay) {
        self.put_written("max_instances", limits.max_instances.map(|n| json!(n)));
        let durations = [
            ("timeout", limits.timeout),
            ("max_timeout", limits.max_timeout),
            ("queue_timeout", limits.queue_timeout),
            ("inactivity_timeout", limits.inactivity_timeout),
        ];
        for (key, duration) in durations {
            self.put_written(key, duration.map(|duration| json!(render_duration(duration))));
        }
        self.put_written("max_result_bytes", limits.max_result_bytes.map(|n| json!(n)));
        self.put_written("rate", limits.rate.map(|rate| json!(rate.to_string())));
    }

    /// Only what is configured is shown: without it nothing is checked.
    fn put_content_check(&mut self, checks: ContentCheckOverlay) {
        let below = |at: &Option<At<'a>>| at.as_ref().and_then(|at| at.get("content_check"));
        let mut fields = ShownFields::new(below(&self.at), self.source);
        fields.inherited = below(&self.inherited);
        fields.put_written("before_call", checks.before_call.map(|mode| json!(mode.as_str())));
        fields.put_written("after_call", checks.after_call.map(|mode| json!(mode.as_str())));
        if !fields.out.is_empty() {
            self.out.push(("content_check".into(), fields.done()));
        }
    }

    /// Only what is configured is shown: without it nothing is recorded.
    fn put_record(&mut self, record: RecordOverlay) {
        let below = |at: &Option<At<'a>>| at.as_ref().and_then(|at| at.get("record"));
        let mut fields = ShownFields::new(below(&self.at), self.source);
        fields.inherited = below(&self.inherited);
        fields.put_written("arguments", record.arguments.map(|it| json!(it)));
        fields.put_written("results", record.results.map(|it| json!(it)));
        if !fields.out.is_empty() {
            self.out.push(("record".into(), fields.done()));
        }
    }

    fn put_secrets<'k>(&mut self, key: &str, names: impl Iterator<Item = &'k str>) {
        let map = self.written(key);
        let secret = |name: &str| {
            let value = map.as_ref().and_then(|map| map.get(name));
            (name.to_owned(), self.value(value.as_ref(), json!(REDACTED)))
        };
        let secrets: Vec<_> = names.map(secret).collect();
        if !secrets.is_empty() {
            self.out.push((key.into(), Doc::Map(secrets)));
        }
    }

    fn value(&self, at: Option<&At<'_>>, value: Json) -> Doc {
        let place = at.map_or(SourceLocation::Default, |at| self.source.place(&at.node.origin));
        match at.filter(|at| at.node.sensitive) {
            None => Doc::Value(value, Some(place)),
            Some(at) => match at.node.template.as_deref().map(redact_address) {
                Some(template) => Doc::Template(template, place),
                None => Doc::Value(json!(REDACTED), Some(place)),
            },
        }
    }

    fn done(self) -> Doc {
        Doc::Map(self.out)
    }
}
