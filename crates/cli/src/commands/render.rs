//! `render`: shows the tools of a session in the format of a provider.

use std::process::ExitCode;

use switchboard_api::{RenderedToolView, RenderingView};
use switchboard_render::{Provider, UnknownRenderTarget};

use crate::args::{Globals, RenderArguments};
use crate::failure::Failure;
use crate::output::{Output, cell, harmless};
use crate::session_backend::SessionBackend;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &RenderArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let provider: Provider = wanted
        .provider
        .parse()
        .map_err(|error: UnknownRenderTarget| Failure::usage(error.to_string()))?;
    let backend = SessionBackend::open(globals, output).await?;
    let rendered = backend.render(&wanted.session, provider, wanted.explain, wanted.since).await;
    backend.close().await;
    let rendered = rendered?;
    if output.is_json() {
        output.json(&rendered);
    } else if wanted.explain {
        explain(&rendered, output);
    } else {
        let delta = rendered.delta.as_ref().filter(|delta| !delta.is_null());
        if let (Some(since), None) = (wanted.since, delta) {
            output.note(&format!("revision {since} is not known any more: this is the whole list"));
        }
        output.json(delta.unwrap_or(&rendered.tools));
        for one in rendered.quarantined.iter().chain(&rendered.left_out) {
            output.note(&format!("not shown: {}: {}", one.name, harmless(&one.reason)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(rendered: &RenderingView, output: Output) {
    let (count, total) = (rendered.count, rendered.tokens.total);
    let revision = rendered.tools_revision;
    output.data(&format!(
        "{count} tools for {} at revision {revision}, {total} tokens in every request",
        rendered.provider
    ));
    output.data(&format!("({})", rendered.tokens.basis.note));
    let explained = rendered.explained.as_deref().unwrap_or_default();
    let header = ["tool", "tokens", "rewritten"];
    let row = |tool: &RenderedToolView| {
        let rewrites = tool.rewrites.len();
        let rewrites = if rewrites == 0 { "as it is".into() } else { format!("{rewrites} times") };
        [tool.name.clone(), tool.tokens.to_string(), rewrites].map(cell).to_vec()
    };
    output.table(&header, explained.iter().map(row).collect());
    for tool in explained {
        for rewrite in &tool.rewrites {
            let place = if rewrite.path.is_empty() { "/" } else { &rewrite.path };
            let (what, place) = (harmless(&rewrite.what), harmless(place));
            output.data(&format!("{} {place}: {what}: {}", tool.name, rewrite.reason));
        }
    }
    for one in &rendered.quarantined {
        output.data(&format!("{} quarantined: {}", one.name, harmless(&one.reason)));
    }
    for one in &rendered.left_out {
        output.data(&format!("{} left out: {}", one.name, one.reason));
    }
}
