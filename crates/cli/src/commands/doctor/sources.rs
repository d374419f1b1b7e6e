//! Findings about the sources of servers. A source that fails prevents no start, so it is a warning.

use switchboard_api::{SourceList, SourceView};

use super::Finding;
use crate::output::harmless;

/// Maximum number of left out entries of one source that are shown; `discover` shows all.
const MOST_SHOWN: usize = 10;

/// Findings about each source, and about what it names and does not add.
pub(super) fn about_sources(list: &SourceList) -> Vec<Finding> {
    list.sources.iter().flat_map(about_source).collect()
}

fn about_source(source: &SourceView) -> Vec<Finding> {
    let subject = harmless(&format!("source {} ({} {})", source.name, source.kind, source.place));
    let servers = source.servers.len();
    let mut findings = vec![match (&source.error, source.state.as_str()) {
        (Some(error), _) => {
            let says = harmless(&format!("{error}; {servers} last known servers"));
            Finding { hint: source.hint.clone(), ..Finding::warning(subject, says) }
        }
        (None, "ok") => Finding::well(subject, format!("{servers} servers")),
        (None, "waiting") if source.chosen_because.is_some() && source.kind == "manifest" => {
            Finding::well(subject, "there is none yet")
        }
        (None, state) => Finding::warning(subject, state),
    }];
    let about = |says: String| Finding::warning(format!("source {}", source.name), harmless(&says));
    findings.extend(source.warnings.iter().map(|warning| about(warning.clone())));
    let left_out = source.left_out.iter().take(MOST_SHOWN);
    findings.extend(left_out.map(|it| about(format!("'{}' is left out: {}", it.name, it.reason))));
    if let Some(more) = source.left_out.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        findings
            .push(about(format!("{more} more are left out; `switchboard discover` shows them")));
    }
    findings
}
