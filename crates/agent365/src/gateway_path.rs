//! The path of a tooling gateway's list, as a template: gateways of different versions have different paths.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::error::ToolingError;

/// The place of the agent's id in a template.
const AGENT_ID: &str = "{agent_id}";

/// What must be escaped within one segment of a path.
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// What must be escaped within a value of a query.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path with `{agent_id}` in it, to be appended to a base address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayPath(String);

/// A text that is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGatewayPath {
    /// It does not begin with `/`.
    #[error("the path of a gateway begins with '/', as in '{}'", GatewayPath::V2)]
    NotAPath,
    /// It has no place for the agent.
    #[error("the path of a gateway says where the agent's id goes, as in '{}'", GatewayPath::V2)]
    NoAgentId,
    /// It has a fragment, which no request carries.
    #[error("the path of a gateway has no fragment ('#')")]
    Fragment,
}

impl GatewayPath {
    /// The path that the Python package 2.0.0 requests.
    pub const V2: &'static str = "/agents/v2/{agent_id}/mcpServers";
    /// The path in the package's design document.
    pub const QUERY: &'static str = "/mcp/servers?agentId={agent_id}";

    /// The URL of an agent's list. Neither `/` nor any other character of the id changes the structure of the URL.
    pub fn url(&self, base: &Url, agent_id: &str) -> Result<Url, ToolingError> {
        let (path, query) = match self.0.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.0.as_str(), None),
        };
        // Such a segment would remove others, even when it is escaped.
        if matches!(agent_id, "." | "..") && path.contains(AGENT_ID) {
            return Err(ToolingError::InvalidAgentId { id: agent_id.to_owned() });
        }
        let path = path.replace(AGENT_ID, &escaped_segment(agent_id));
        let mut url = base.clone();
        url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
        let value = utf8_percent_encode(agent_id, VALUE).to_string();
        url.set_query(query.map(|query| query.replace(AGENT_ID, &value)).as_deref());
        url.set_fragment(None);
        Ok(url)
    }
}

/// A text as one segment of a path.
pub(crate) fn escaped_segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

impl Default for GatewayPath {
    fn default() -> Self {
        Self(Self::V2.to_owned())
    }
}

impl FromStr for GatewayPath {
    type Err = InvalidGatewayPath;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            _ if !text.starts_with('/') || text.starts_with("//") => {
                Err(InvalidGatewayPath::NotAPath)
            }
            _ if !text.contains(AGENT_ID) => Err(InvalidGatewayPath::NoAgentId),
            _ if text.contains('#') => Err(InvalidGatewayPath::Fragment),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for GatewayPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(template: &str, base: &str, id: &str, expected: &str) {
        let path: GatewayPath = template.parse().unwrap();
        let url = path.url(&Url::parse(base).unwrap(), id).unwrap();
        assert_eq!(url.as_str(), expected, "{template} {base} {id}");
    }

    #[test]
    fn both_templates_give_the_gateways_addresses() {
        let (v2, query) = (GatewayPath::V2, GatewayPath::QUERY);
        check(v2, "https://p.test", "app-1", "https://p.test/agents/v2/app-1/mcpServers");
        check(v2, "https://p.test/", "app-1", "https://p.test/agents/v2/app-1/mcpServers");
        check(v2, "https://p.test/a/b/", "x", "https://p.test/a/b/agents/v2/x/mcpServers");
        check(v2, "https://p.test/?old=1#x", "x", "https://p.test/agents/v2/x/mcpServers");
        check(query, "https://p.test", "app-1", "https://p.test/mcp/servers?agentId=app-1");
        assert_eq!(GatewayPath::default().to_string(), v2);
    }

    #[test]
    fn no_character_of_an_id_changes_the_structure() {
        let (v2, query) = (GatewayPath::V2, GatewayPath::QUERY);
        for (id, segment, value) in [
            ("a b", "a%20b", "a%20b"),
            ("a/b", "a%2Fb", "a%2Fb"),
            ("../x", "..%2Fx", "..%2Fx"),
            ("a?b#c&d=e", "a%3Fb%23c&d=e", "a%3Fb%23c%26d%3De"),
            ("50%2F", "50%252F", "50%252F"),
            ("ü", "%C3%BC", "%C3%BC"),
            ("a\\b\n", "a%5Cb%0A", "a%5Cb%0A"),
            ("{agent_id}", "%7Bagent_id%7D", "%7Bagent_id%7D"),
        ] {
            check(
                v2,
                "https://p.test",
                id,
                &format!("https://p.test/agents/v2/{segment}/mcpServers"),
            );
            check(
                query,
                "https://p.test",
                id,
                &format!("https://p.test/mcp/servers?agentId={value}"),
            );
        }
    }

    #[test]
    fn an_id_that_would_remove_segments_is_refused() {
        let base = Url::parse("https://p.test").unwrap();
        for id in [".", ".."] {
            let error = GatewayPath::default().url(&base, id).unwrap_err();
            assert_eq!(error, ToolingError::InvalidAgentId { id: id.to_owned() });
            check(
                GatewayPath::QUERY,
                "https://p.test",
                id,
                &format!("https://p.test/mcp/servers?agentId={id}"),
            );
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for (text, expected) in [
            ("", InvalidGatewayPath::NotAPath),
            ("agents/{agent_id}", InvalidGatewayPath::NotAPath),
            ("//evil.test/{agent_id}", InvalidGatewayPath::NotAPath),
            ("https://evil.test/{agent_id}", InvalidGatewayPath::NotAPath),
            ("/agents", InvalidGatewayPath::NoAgentId),
            ("/agents/{agent_id}#x", InvalidGatewayPath::Fragment),
        ] {
            assert_eq!(text.parse::<GatewayPath>(), Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_id_arrives_as_it_is(id in "\\PC{1,20}|[\\x00-\\x7f]{1,20}") {
            prop_assume!(!matches!(id.as_str(), "." | ".."));
            let base = Url::parse("https://p.test/base").unwrap();
            let url = GatewayPath::default().url(&base, &id).unwrap();
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 5, "{}", url);
            prop_assert_eq!(percent_decode_str(segments[3]).decode_utf8().unwrap(), id.as_str());
            let query: GatewayPath = GatewayPath::QUERY.parse().unwrap();
            let url = query.url(&base, &id).unwrap();
            let pairs: Vec<_> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(pairs, [("agentId".to_owned(), id)]);
        }
    }
}
