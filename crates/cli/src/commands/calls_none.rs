//! The message of `calls` without results: whether the named tool or server is known, and similar names.

use switchboard_store::CallFilter;

/// Minimum similarity of a suggested name.
const ALIKE: f64 = 0.75;

/// The names that can occur in records.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    /// Canonical names of tools, with the server of each.
    pub(crate) tools: Vec<(String, String)>,
    pub(crate) servers: Vec<String>,
}

/// Says that no record matches, and suggests similar names.
pub(crate) fn no_calls(filter: &CallFilter, known: &KnownNames) -> String {
    let servers = known.servers.iter().map(String::as_str);
    if let Some(server) = &filter.server
        && !servers.clone().any(|known| known == server)
    {
        return unknown("server", server, nearest(server, servers.map(|name| (name, name))));
    }
    let bare = |(name, server): &(String, String)| {
        let rest = name.strip_prefix(server.as_str()).and_then(|rest| rest.strip_prefix('.'));
        rest.unwrap_or(name).to_owned()
    };
    if let Some(tool) = &filter.tool
        && !known.tools.iter().any(|it| it.0 == *tool || bare(it) == *tool)
    {
        let whole = known.tools.iter().map(|(name, _)| (name.clone(), name.as_str()));
        let bare = known.tools.iter().map(|it| (bare(it), it.0.as_str()));
        return unknown("tool", tool, nearest(tool, whole.chain(bare)));
    }
    let is_filtered = *filter != CallFilter::newest(filter.limit);
    if is_filtered { "no recorded call matches" } else { "no calls are recorded" }.to_owned()
}

fn unknown(what: &str, name: &str, nearest: Option<String>) -> String {
    let hint = match nearest {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("`switchboard {what} list` shows the names"),
    };
    format!("no calls are recorded of a {what} '{name}'; {hint}")
}

/// Finds the best match among pairs of a name to compare and a name to show.
fn nearest<'a>(
    name: &str,
    known: impl Iterator<Item = (impl AsRef<str>, &'a str)>,
) -> Option<String> {
    known
        .map(|(compared, shown)| (strsim::jaro_winkler(name, compared.as_ref()), shown))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, shown)| shown.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_told_with_the_nearest_one() {
        #[track_caller]
        fn check(tool: Option<&str>, server: Option<&str>, expected: &str) {
            let known = KnownNames {
                tools: [("demo.echo", "demo"), ("crm.find.one", "crm")]
                    .map(|(tool, server)| (tool.to_owned(), server.to_owned()))
                    .to_vec(),
                servers: vec!["demo".into(), "crm".into()],
            };
            let filter = CallFilter {
                tool: tool.map(Into::into),
                server: server.map(Into::into),
                ..CallFilter::newest(20)
            };
            assert_eq!(no_calls(&filter, &known), expected);
        }
        check(None, None, "no calls are recorded");
        check(Some("echo"), None, "no recorded call matches");
        check(Some("demo.echo"), Some("demo"), "no recorded call matches");
        check(Some("find.one"), None, "no recorded call matches");
        let meant = "no calls are recorded of a tool 'ecko'; did you mean 'demo.echo'?";
        check(Some("ecko"), None, meant);
        let shown =
            "no calls are recorded of a tool 'zzz'; `switchboard tool list` shows the names";
        check(Some("zzz"), None, shown);
        let meant = "no calls are recorded of a server 'dema'; did you mean 'demo'?";
        check(Some("zzz"), Some("dema"), meant);
    }
}
