//! What it takes to reach one upstream server, and how it is doing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use url::{Host, Url};

use crate::{Secret, ServerName, redact_url};

/// How long connecting and the first listing may take when the configuration does not say.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The same for a stdio server: `npx`, `uvx` and their like may have to download it first.
pub const DEFAULT_STDIO_CONNECT_TIMEOUT: Duration = Duration::from_mins(5);

/// A stdio server that is connected has nothing to download: it may not take longer than this for a list.
const LONGEST_STDIO_LIST: Duration = Duration::from_mins(1);

/// How to reach a server. Two equal specs need no reconnect when a configuration is reloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// The configured name.
    pub name: ServerName,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Where it is, as it may be shown: without credentials, and with `${VAR}` as it was written.
    pub place: String,
    /// What references of the configuration (`${VAR}`, `file:`) put into the endpoint, or else may be a key in it.
    /// Servers quote it, and it must not be shown then either.
    pub referenced: Vec<Secret>,
    /// Which protocol era to speak.
    pub era: EraChoice,
    /// How long connecting and the first listing may take together.
    pub connect_timeout: Duration,
    /// Whether sessions share its connection.
    pub sharing: Sharing,
}

/// Whether the sessions of clients share the connection to a server: the process of a stdio server, the MCP session of
/// one that is reached over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// One connection serves everybody.
    #[default]
    Shared,
    /// Each session has its own, which ends after `idle` without a request; at most `most` at the same time.
    PerSession { most: u32, idle: Duration },
}

impl Sharing {
    /// The word that the configuration uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::PerSession { .. } => "per_session",
        }
    }
}

/// How many sessions have a connection of their own to a server at the same time when the configuration does not say.
pub const DEFAULT_MAX_CONNECTIONS: u32 = 16;

/// How long the connection of a session is kept without a request when the configuration does not say.
pub const DEFAULT_CONNECTION_IDLE: Duration = Duration::from_mins(10);

/// Where a server is and what it takes to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// MCP over streamable HTTP.
    StreamableHttp { url: Url, headers: BTreeMap<String, Secret>, auth: UpstreamAuth },
    /// The HTTP+SSE transport of 2024-11-05.
    Sse { url: Url, headers: BTreeMap<String, Secret>, auth: UpstreamAuth },
    /// A child process that speaks over its standard input and output.
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, Secret>,
        cwd: Option<PathBuf>,
    },
}

/// How to be let in by a server that is reached over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum UpstreamAuth {
    /// Not at all, or by a header.
    #[default]
    None,
    /// With a token that somebody wrote down.
    Bearer(Secret),
    /// With a token that is kept in a file, where it may be replaced; `token` is what was there when the configuration
    /// was read.
    BearerFile { path: PathBuf, token: Secret },
    /// With tokens of an authorization server.
    OAuth(OAuthSettings),
}

/// How to get tokens of an authorization server. Where it is, the server says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    pub grant: OAuthGrant,
    /// What to ask for, instead of what the server names.
    pub scopes: Vec<String>,
}

/// Whose access it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OAuthGrant {
    /// That of a person, who signs in with a browser.
    SignIn(SignInClient),
    /// Our own. Nobody signs in.
    ClientCredentials(OwnClient),
}

impl Default for OAuthGrant {
    fn default() -> Self {
        Self::SignIn(SignInClient::default())
    }
}

impl OAuthGrant {
    /// What must not be shown, wherever it is quoted.
    pub fn secret(&self) -> Option<&Secret> {
        match self {
            Self::SignIn(client) => client.secret.as_ref(),
            Self::ClientCredentials(OwnClient { proof: ClientProof::Secret(secret), .. }) => {
                Some(secret)
            }
            // It is sent nowhere.
            Self::ClientCredentials(OwnClient { proof: ClientProof::Key { .. }, .. }) => None,
        }
    }
}

/// Who we are where somebody signs in. What is not given is asked for there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignInClient {
    /// A client that was registered beforehand.
    pub id: Option<String>,
    pub secret: Option<Secret>,
    /// The document that describes us, where the authorization server reads such documents.
    pub metadata_url: Option<Url>,
    /// The port to which the browser comes back; without it any that is free.
    pub redirect_port: Option<u16>,
}

/// A client that was registered for us, and how we prove to be it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnClient {
    pub id: String,
    pub proof: ClientProof,
    /// Who registered it, and nobody else sees the proof. Without it, the first authorization server that the server names.
    pub issuer: Option<String>,
}

/// What only the client has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientProof {
    Secret(Secret),
    /// The key itself stays here: what is sent is signed with it.
    Key {
        pem: Secret,
        algorithm: SigningAlgorithm,
    },
}

/// How a key signs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SigningAlgorithm {
    #[default]
    Es256,
    Es384,
    Rs256,
    Rs384,
    Rs512,
}

impl ServerSpec {
    /// How long a later listing may take.
    pub fn list_timeout(&self) -> Duration {
        match self.endpoint {
            Endpoint::Stdio { .. } => self.connect_timeout.min(LONGEST_STDIO_LIST),
            Endpoint::StreamableHttp { .. } | Endpoint::Sse { .. } => self.connect_timeout,
        }
    }
}

impl Endpoint {
    /// How long connecting and the first listing may take when the configuration does not say.
    pub fn default_connect_timeout(&self) -> Duration {
        match self {
            Self::Stdio { .. } => DEFAULT_STDIO_CONNECT_TIMEOUT,
            Self::StreamableHttp { .. } | Self::Sse { .. } => DEFAULT_CONNECT_TIMEOUT,
        }
    }

    /// The settings of OAuth, where the server wants it.
    pub fn oauth(&self) -> Option<(&Url, &OAuthSettings)> {
        match self {
            Self::StreamableHttp { url, auth: UpstreamAuth::OAuth(settings), .. }
            | Self::Sse { url, auth: UpstreamAuth::OAuth(settings), .. } => Some((url, settings)),
            Self::StreamableHttp { .. } | Self::Sse { .. } | Self::Stdio { .. } => None,
        }
    }

    /// Which transport this is.
    pub fn transport(&self) -> TransportKind {
        match self {
            Self::StreamableHttp { .. } => TransportKind::StreamableHttp,
            Self::Sse { .. } => TransportKind::Sse,
            Self::Stdio { .. } => TransportKind::Stdio,
        }
    }
}

/// The place with its credentials redacted; a child as its command line. What people see is
/// [`ServerSpec::place`], which does not show what a variable held either.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StreamableHttp { url, .. } | Self::Sse { url, .. } => {
                f.write_str(&redact_url(url))
            }
            Self::Stdio { command, args, .. } => {
                f.write_str(command)?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
        }
    }
}

/// The transports of the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    StreamableHttp,
    Sse,
    Stdio,
}

impl TransportKind {
    /// The word of the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StreamableHttp => "streamable_http",
            Self::Sse => "sse",
            Self::Stdio => "stdio",
        }
    }
}

/// The two halves of the protocol's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: `initialize` and sessions.
    Legacy,
    /// 2026-07-28 and later: stateless, `server/discover`.
    Modern,
}

impl Era {
    /// The word that tables and JSON show.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// Which era the configuration asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraChoice {
    /// Ask the server.
    #[default]
    Auto,
    /// Do not ask.
    Fixed(Era),
}

/// How a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Not yet connected for the first time.
    Connecting,
    /// Connected; its tools can be called.
    Ready,
    /// Lost, or never reached; its last known tools stay declared and answer "unavailable".
    Unavailable,
}

impl ServerState {
    /// The word that tables and JSON show.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Whether a URL names this very machine.
pub fn is_on_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_names() {
        let is_near = |text: &str| is_on_this_machine(&Url::parse(text).unwrap());
        for near in
            ["http://127.0.0.1:1/", "http://[::1]/", "http://localhost/", "http://LOCALHOST/"]
        {
            assert!(is_near(near), "{near}");
        }
        for far in ["http://10.0.0.1/", "https://example.test/", "http://localhost.example.test/"] {
            assert!(!is_near(far), "{far}");
        }
    }

    #[test]
    fn an_endpoint_shows_its_place_and_no_secret() {
        let http = Endpoint::StreamableHttp {
            url: Url::parse("http://u:p@h/mcp?k=v").unwrap(),
            headers: BTreeMap::from([("x-key".into(), Secret::new("s3cret"))]),
            auth: UpstreamAuth::Bearer(Secret::new("s3cret")),
        };
        assert_eq!(http.to_string(), "http://***@h/mcp?k=***");
        assert!(!format!("{http:?}").contains("s3cret"));
        assert_eq!(http.transport().as_str(), "streamable_http");
        let child = Endpoint::Stdio {
            command: "npx".into(),
            args: vec!["server".into(), "dir".into()],
            env: BTreeMap::new(),
            cwd: None,
        };
        assert_eq!(
            (child.to_string().as_str(), child.transport().as_str()),
            ("npx server dir", "stdio")
        );
    }
}
