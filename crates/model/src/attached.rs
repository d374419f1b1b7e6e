//! A server that a session brings with it.

use std::collections::BTreeMap;
use std::fmt;

use url::Url;

use crate::{Endpoint, Secret, ServerName, UpstreamAuth};

/// Minimum length of a segment of a path that is treated as a key: shorter ones are words.
const SHORTEST_KEY: usize = 16;

/// How to reach a server that no configuration names. There is no way to say a command here: what a session brings
/// is asked over HTTP and never started.
#[derive(Clone, PartialEq, Eq)]
pub struct AttachedServer {
    /// What the session calls it.
    pub name: ServerName,
    pub url: Url,
    pub transport: HttpTransport,
    /// Sent with every request.
    pub headers: BTreeMap<String, Secret>,
    pub bearer: Option<Secret>,
}

/// The transports that start no program.
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

    /// Where it is, as log lines may show it. People put keys into paths, so there is none.
    pub fn place(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// What is not shown where the server quotes it: the path as a whole, and each segment of it that may be a key.
    pub fn secret_parts(&self) -> Vec<Secret> {
        let segments = self.url.path_segments().into_iter().flatten();
        let keys = segments.filter(|segment| segment.len() >= SHORTEST_KEY);
        std::iter::once(self.url.path()).chain(keys).map(Secret::new).collect()
    }

    /// Where it is and what it takes to be let in.
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
