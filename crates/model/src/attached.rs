//! A server that a session attaches in addition to the configured ones.

use std::collections::BTreeMap;
use std::fmt;

use url::Url;

use crate::{Endpoint, Secret, ServerName, UpstreamAuth};

/// Minimum length of a URL path segment that is redacted as a possible key. Shorter segments are shown.
const SHORTEST_KEY: usize = 16;

/// How to reach a server that a session attached. It has no `command` on purpose: sessions can attach servers over HTTP
/// but never start a program.
#[derive(Clone, PartialEq, Eq)]
pub struct AttachedServer {
    /// The name that the session gave the server.
    pub name: ServerName,
    pub url: Url,
    pub transport: HttpTransport,
    /// Sent with every request.
    pub headers: BTreeMap<String, Secret>,
    pub bearer: Option<Secret>,
}

/// The HTTP transports; stdio is not among them because it starts a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpTransport {
    #[default]
    StreamableHttp,
    Sse,
}

impl HttpTransport {
    /// The word of the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StreamableHttp => "streamable_http",
            Self::Sse => "sse",
        }
    }
}

impl AttachedServer {
    /// A server without credentials.
    pub fn new(name: impl Into<String>, url: Url) -> Self {
        Self {
            name: ServerName::new(name.into()),
            url,
            transport: HttpTransport::default(),
            headers: BTreeMap::new(),
            bearer: None,
        }
    }

    /// The scheme and host, for log lines. The path is left out because users put keys into paths.
    pub fn place(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Strings to redact where the server quotes them: the whole path, and each segment that may be a key.
    pub fn secret_parts(&self) -> Vec<Secret> {
        let segments = self.url.path_segments().into_iter().flatten();
        let keys = segments.filter(|segment| segment.len() >= SHORTEST_KEY);
        std::iter::once(self.url.path()).chain(keys).map(Secret::new).collect()
    }

    /// The endpoint and credentials, in the form that the connection uses.
    pub fn endpoint(&self) -> Endpoint {
        let (url, headers) = (self.url.clone(), self.headers.clone());
        let auth = self.bearer.clone().map_or(UpstreamAuth::None, UpstreamAuth::Bearer);
        match self.transport {
            HttpTransport::StreamableHttp => Endpoint::StreamableHttp { url, headers, auth },
            HttpTransport::Sse => Endpoint::Sse { url, headers, auth },
        }
    }
}

impl fmt::Debug for AttachedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttachedServer")
            .field("name", &self.name)
            .field("place", &self.place())
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_it_holds_no_secret() {
        let url = Url::parse("https://me:hunter2@mcp.example.com:444/s/hunter2?key=hunter2");
        let server = AttachedServer {
            headers: BTreeMap::from([("x-key".into(), Secret::new("hunter2"))]),
            bearer: Some(Secret::new("hunter2")),
            ..AttachedServer::new("mine", url.unwrap())
        };
        assert_eq!(server.place(), "https://mcp.example.com:444");
        assert!(!format!("{server:?}").contains("hunter2"));
        assert_eq!(server.secret_parts(), [Secret::new("/s/hunter2")]);
        let keyed = Url::parse("https://example.com/v1/0123456789abcdef/mcp").unwrap();
        let parts = AttachedServer::new("mine", keyed).secret_parts();
        assert_eq!(parts, ["/v1/0123456789abcdef/mcp", "0123456789abcdef"].map(Secret::new));
        assert_eq!(server.endpoint().transport().as_str(), server.transport.as_str());
        let older = AttachedServer { transport: HttpTransport::Sse, ..server };
        assert_eq!(older.endpoint().transport().as_str(), older.transport.as_str());
    }
}
