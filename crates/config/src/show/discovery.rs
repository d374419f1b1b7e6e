//! The `discovery` section as a document.

use serde_json::json;
use switchboard_model::{
    DiscoveryPlan, LimitsOverlay, RegistryPlace, SourceKind, SourcePlan, SourcePolicy, redact_url,
    render_duration,
};

use super::{REDACTED, ShownFields};
use crate::emit::Doc;
use crate::plan::At;
use crate::source::SourceText;

pub(super) fn section(plan: &DiscoveryPlan, at: Option<At<'_>>, source: &SourceText<'_>) -> Doc {
    let sources = at.iter().flat_map(|at| at.items("sources")).collect::<Vec<_>>();
    let limits_at = at.as_ref().and_then(|at| at.get("default_tool_config"));
    let mut fields = ShownFields::new(at, source);
    fields.put("auto", json!(plan.auto));
    let name = plan.orchestrator_name.as_ref().map(|name| json!(name));
    fields.put_written("orchestrator_name", name);
    fields.put_written("agent_id", plan.agent_id.as_ref().map(|id| json!(id)));
    fields.put_written("token", plan.token.as_ref().map(|_| json!(REDACTED)));
    fields.put_written("endpoint", plan.endpoint.as_ref().map(|url| json!(redact_url(url))));
    if fields.written("mode").is_some() {
        fields.put("mode", json!(plan.policy.mode.as_str()));
    }
    put_limits(&mut fields, limits_at, &plan.policy.default_limits, source);
    put_timeout(&mut fields, &plan.policy);
    fields.put_content_check(plan.policy.content_check);
    let sources = sources.into_iter().zip(&plan.sources);
    let inherited = &plan.policy.default_limits;
    let sources = sources.map(|(at, plan)| source_entry(plan, inherited, at, source));
    let sources: Vec<_> = sources.collect();
    if !sources.is_empty() {
        fields.put_list("sources", sources);
    }
    fields.done()
}

fn source_entry(
    plan: &SourcePlan,
    inherited: &LimitsOverlay,
    at: At<'_>,
    source: &SourceText<'_>,
) -> Doc {
    let limits_at = at.get("default_tool_config");
    let servers_at = at.get("servers");
    let mut fields = ShownFields::new(Some(at), source);
    fields.put("name", json!(plan.name));
    fields.put("type", json!(plan.kind.as_str()));
    match &plan.kind {
        SourceKind::Manifest { .. } | SourceKind::Registry(RegistryPlace::File(_)) => {
            // As written: the resolved path would be wrong after the file is moved.
            let path = fields.written("path").map(|path| path.node.to_json());
            fields.put_written("path", path);
        }
        SourceKind::Gateway(gateway) => {
            fields.put_written("url", gateway.url.as_ref().map(|url| json!(redact_url(url))));
            fields.put_written("agent_id", gateway.agent_id.as_ref().map(|id| json!(id)));
            fields.put_written("token", gateway.token.as_ref().map(|_| json!(REDACTED)));
            let template = gateway.path_template.as_ref().map(|template| json!(template));
            fields.put_written("path_template", template);
        }
        SourceKind::Registry(RegistryPlace::Url { url, token }) => {
            fields.put("url", json!(redact_url(url)));
            fields.put_written("token", token.as_ref().map(|_| json!(REDACTED)));
        }
    }
    let policy = &plan.policy;
    fields.put("refresh", json!(render_duration(plan.refresh)));
    fields.put("mode", json!(policy.mode.as_str()));
    // Limits that are inherited as a whole are shown with the section.
    if policy.default_limits != *inherited {
        put_limits(&mut fields, limits_at, &policy.default_limits, source);
    }
    fields.put_written_texts("allow", policy.tool_allowlist.as_ref());
    if !policy.tool_denylist.is_empty() {
        fields.put_texts("deny", &policy.tool_denylist);
    }
    if servers_at.is_some() {
        let mut below = ShownFields::new(servers_at, source);
        below.put_written_texts("allow", policy.server_allowlist.as_ref());
        below.put_texts("deny", &policy.server_denylist);
        fields.out.push(("servers".into(), below.done()));
    }
    let prefix = Some(&policy.prefix).filter(|prefix| !prefix.is_empty());
    fields.put_written("prefix", prefix.map(|prefix| json!(prefix)));
    fields.put("max_servers", json!(policy.max_servers));
    put_timeout(&mut fields, policy);
    fields.put_content_check(policy.content_check);
    fields.done()
}

/// The limits with the origin of those that are written here.
fn put_limits<'a>(
    fields: &mut ShownFields<'a>,
    at: Option<At<'a>>,
    limits: &LimitsOverlay,
    source: &'a SourceText<'a>,
) {
    if *limits != LimitsOverlay::default() {
        let mut below = ShownFields::new(at, source);
        below.put_limits(limits);
        fields.out.push(("default_tool_config".into(), below.done()));
    }
}

fn put_timeout(fields: &mut ShownFields<'_>, policy: &SourcePolicy) {
    let timeout = policy.connect_timeout.map(|timeout| json!(render_duration(timeout)));
    fields.put_written("connect_timeout", timeout);
}
