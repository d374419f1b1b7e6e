//! `calls show`: everything that is recorded of one call.

use std::process::ExitCode;

use switchboard_api::{RecordView, RecordedContentView};

use super::calls_source::CallSource;
use crate::args::Globals;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) async fn run(globals: &Globals, id: &str, output: Output) -> Result<ExitCode, Failure> {
    let source = CallSource::open(globals).await?;
    let Some(call) = source.call(id).await? else {
        return Err(Failure::usage(format!("there is no record of a call '{id}'"))
            .with_hint(Some("`switchboard calls --json` has the ids of recent calls".into())));
    };
    if output.is_json() {
        output.json(&call);
    } else {
        let fields = fields(&call);
        let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in fields {
            output.data(&format!("{name:width$}  {value}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is known of the call, in the order of the questions: what, how, who, by which policy.
fn fields(call: &RecordView) -> Vec<(&'static str, String)> {
    let client = match (&call.client, &call.client_version) {
        (Some(name), Some(version)) => Some(format!("{name} {version}")),
        (name, version) => name.clone().or_else(|| version.clone()),
    };
    let policy = call.policy.as_ref().map(|policy| {
        let words = [policy.configured.as_deref(), policy.mode.as_deref()];
        let words = words.into_iter().flatten().chain([policy.digest.as_str()]);
        words.collect::<Vec<_>>().join(" ")
    });
    let optional = [
        ("id", Some(call.id.clone())),
        ("started", Some(call.started_at.clone())),
        ("tool", call.tool.clone()),
        ("requested", Some(call.requested.clone())),
        ("server", call.server.clone()),
        ("outcome", Some(call.outcome.clone())),
        ("error", call.message.clone()),
        ("waited", Some(format!("{:.1} ms", call.wait_ms))),
        ("ran", Some(format!("{:.1} ms", call.run_ms))),
        ("via", Some(call.face.clone())),
        ("principal", call.principal.clone()),
        ("person", call.person.clone()),
        ("key", call.key.clone()),
        ("owner", call.owner.clone()),
        ("client", client),
        ("session", call.session.clone()),
        ("agent", call.agent.clone()),
        ("revision", Some(call.revision.to_string())),
        ("policy", policy),
        ("argument digest", Some(call.argument_digest.clone())),
        ("arguments", call.arguments.as_ref().map(content)),
        ("result bytes", Some(call.result_bytes.to_string())),
        ("result handle", call.result_handle.clone()),
        ("result", call.result.as_ref().map(content)),
    ];
    optional.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn content(content: &RecordedContentView) -> String {
    if content.cut {
        format!("{}… (cut; {} bytes in all)", content.text, content.bytes)
    } else {
        content.text.clone()
    }
}
