//! How to reach an upstream server, and its connection state.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::{Host, Url};

use crate::{CallerHeader, EgressPolicy, LoopbackRedirect, Secret, ServerName, redact_url};

/// Default of `connect_timeout`, which covers connecting and the first listing.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The same for a stdio server: `npx` or `uvx` may have to download it first.
pub const DEFAULT_STDIO_CONNECT_TIMEOUT: Duration = Duration::from_mins(5);

/// Longest duration of a later listing of a stdio server, which has nothing left to download.
const LONGEST_STDIO_LIST: Duration = Duration::from_mins(1);

/// How to reach a server. Two equal specs need no reconnect when a configuration is reloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// The configured name.
    pub name: ServerName,
    /// The transport, its address, and the credentials.
    pub endpoint: Endpoint,
    /// The address for display: without credentials, and with `${VAR}` as written.
    pub place: String,
    /// Strings to redact where the server quotes them: values that references (`${VAR}`, `file:`) put into the
    /// endpoint, and parts of the endpoint that may be keys.
    pub referenced: Vec<Secret>,
    /// Headers whose values come from the caller of each request. Only an HTTP server of the configuration file has some.
    pub caller_headers: Vec<CallerHeader>,
    /// Which protocol era to speak.
    pub era: EraChoice,
    /// How long connecting and the first listing may take together.
    pub connect_timeout: Duration,
    /// Whether client sessions share its connection.
    pub sharing: Sharing,
    /// The policy that every dialled address must pass; `None` for an address that the operator of this machine wrote.
    pub egress: Option<Arc<EgressPolicy>>,
}

/// Whether client sessions share the connection to a server: the process of a stdio server, or the MCP session of an
/// HTTP server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// One connection serves all sessions.
    #[default]
    Shared,
    /// Each session has its own connection, which is closed after `idle` without a request; at most `most` at the same
    /// time.
    PerSession { most: u32, idle: Duration },
    /// Each owner of an account at the server has its own connection, with the same bounds.
    PerOwner { most: u32, idle: Duration },
}

impl Sharing {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::PerSession { .. } => "per_session",
            Self::PerOwner { .. } => "per_owner",
        }
    }
}

/// Default of the maximum number of per-session connections to one server.
pub const DEFAULT_MAX_CONNECTIONS: u32 = 16;

/// Default of the maximum number of connections to one server at which each owner has an account.
pub const DEFAULT_MAX_OWNER_CONNECTIONS: u32 = 256;

/// Default of how long a per-session connection is kept without a request.
pub const DEFAULT_CONNECTION_IDLE: Duration = Duration::from_mins(10);

/// The transport of a server, its address, and the credentials.
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

/// How requests to an HTTP server are authorized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum UpstreamAuth {
    /// Not at all, or by a configured header.
    #[default]
    None,
    /// With a token from the configuration.
    Bearer(Secret),
    /// With a token from a file that may be replaced while the process runs; `token` is its content when the
    /// configuration was read.
    BearerFile { path: PathBuf, token: Secret },
    /// With tokens from an authorization server.
    OAuth(OAuthSettings),
}

/// How to get tokens from an authorization server, which the server's protected resource metadata names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    pub grant: OAuthGrant,
    /// The scopes to request, in place of the ones that the server names.
    pub scopes: Vec<String>,
    /// Whose account a call uses.
    pub per: AccountScope,
    /// Whose account lists the tools, where a call does not use the board's.
    pub listing: ListingAccount,
}

/// Whose account a call uses at a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccountScope {
    /// One account for all callers.
    #[default]
    Board,
    /// The account of the person who calls. A call never uses another one.
    Person,
    /// An account for each session.
    Session,
}

impl AccountScope {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Board => "board",
            Self::Person => "user",
            Self::Session => "session",
        }
    }
}

/// Whose account lists the tools of a server at which each owner has an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListingAccount {
    /// The board's account if there is one, else the first owner who signed in.
    #[default]
    First,
    /// The board's account alone.
    Board,
}

/// The OAuth grant, with the client that uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OAuthGrant {
    /// Authorization code grant: a person signs in with a browser.
    SignIn(SignInClient),
    /// Client credentials grant: no person is involved.
    ClientCredentials(OwnClient),
    /// No grant: each owner stores a token that was issued beforehand.
    StoredToken,
    /// Token exchange (RFC 8693): the token that the caller showed to the board is exchanged for one for the server.
    TokenExchange(ExchangeClient),
}

impl Default for OAuthGrant {
    fn default() -> Self {
        Self::SignIn(SignInClient::default())
    }
}

impl OAuthGrant {
    /// The secret of the client, to be redacted wherever it is quoted.
    pub fn secret(&self) -> Option<&Secret> {
        match self {
            Self::SignIn(client) => client.secret.as_ref(),
            Self::TokenExchange(client) => client.secret.as_ref(),
            Self::ClientCredentials(OwnClient { proof: ClientProof::Secret(secret), .. }) => {
                Some(secret)
            }
            // The private key is never sent, so no server can quote it.
            Self::ClientCredentials(OwnClient { proof: ClientProof::Key { .. }, .. })
            | Self::StoredToken => None,
        }
    }
}

/// The OAuth client of a sign-in. If neither `id` nor `metadata_url` applies, the client is registered dynamically.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignInClient {
    /// The id of a client that was registered beforehand.
    pub id: Option<String>,
    pub secret: Option<Secret>,
    /// The URL of a client id metadata document, for authorization servers that support such documents.
    pub metadata_url: Option<Url>,
    /// The redirect URI on this machine.
    pub redirect: LoopbackRedirect,
}

/// The client that exchanges the tokens of callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeClient {
    pub id: String,
    pub secret: Option<Secret>,
    /// The issuer that exchanges tokens. The tokens of callers are sent to no other one.
    pub issuer: String,
    /// The `audience` of the request, for issuers that do not read `resource`.
    pub audience: Option<String>,
}

/// A client that was registered beforehand, and how it authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnClient {
    pub id: String,
    pub proof: ClientProof,
    /// The authorization server that the client is registered with; no other one receives the proof. If `None`, the
    /// first one that the server names.
    pub issuer: Option<String>,
}

/// How a client authenticates to the authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientProof {
    Secret(Secret),
    /// Private key JWT: the key signs an assertion and is never sent.
    Key {
        pem: Secret,
        algorithm: SigningAlgorithm,
    },
}

/// The signature algorithm of a private key JWT.
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

    /// The URL and the OAuth settings, if the server uses OAuth.
    pub fn oauth(&self) -> Option<(&Url, &OAuthSettings)> {
        match self {
            Self::StreamableHttp { url, auth: UpstreamAuth::OAuth(settings), .. }
            | Self::Sse { url, auth: UpstreamAuth::OAuth(settings), .. } => Some((url, settings)),
            Self::StreamableHttp { .. } | Self::Sse { .. } | Self::Stdio { .. } => None,
        }
    }

    /// Whose account a call uses.
    pub fn account_scope(&self) -> AccountScope {
        self.oauth().map(|(_, settings)| settings.per).unwrap_or_default()
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

/// The address with its credentials redacted; for stdio the command line. User-visible texts use [`ServerSpec::place`],
/// which also hides the values of variables.
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

/// The transports of a configured server.
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

/// The two incompatible generations of the MCP protocol.
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

/// Which era the configuration selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraChoice {
    /// Detected by asking the server.
    #[default]
    Auto,
    /// The given one, without detection.
    Fixed(Era),
}

/// The connection state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Not yet connected for the first time.
    Connecting,
    /// Connected; its tools can be called.
    Ready,
    /// Lost, or never connected. Its last known tools stay in the catalog; calls fail as unavailable.
    Unavailable,
}

impl ServerState {
    /// The word in tables and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Whether the host of a URL is a loopback name or address.
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

    fn spec(endpoint: Endpoint, connect_timeout: Duration) -> ServerSpec {
        ServerSpec {
            name: ServerName::new("crm"),
            place: endpoint.to_string(),
            endpoint,
            referenced: Vec::new(),
            caller_headers: Vec::new(),
            era: EraChoice::Auto,
            connect_timeout,
            sharing: Sharing::Shared,
            egress: None,
        }
    }

    #[test]
    fn a_child_that_may_take_minutes_to_start_lists_again_within_less() {
        let child = Endpoint::Stdio {
            command: "npx".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
        };
        let url = Url::parse("http://h/mcp").unwrap();
        let http = Endpoint::Sse { url, headers: BTreeMap::new(), auth: UpstreamAuth::default() };
        let long = Duration::from_mins(5);
        assert_eq!(child.default_connect_timeout(), long);
        assert!(http.default_connect_timeout() < long);
        assert!(spec(child.clone(), long).list_timeout() < long);
        assert_eq!(spec(http, long).list_timeout(), long);
        let second = Duration::from_secs(1);
        assert_eq!(spec(child, second).list_timeout(), second);
    }

    #[test]
    fn the_secret_of_an_oauth_client_is_known_where_it_is_sent() {
        let sign_in = |secret: Option<&str>| {
            let secret = secret.map(Secret::new);
            OAuthGrant::SignIn(SignInClient { secret, ..SignInClient::default() })
        };
        let own = |proof: ClientProof| {
            OAuthGrant::ClientCredentials(OwnClient { id: "me".into(), proof, issuer: None })
        };
        let key = ClientProof::Key { pem: Secret::new("pem"), algorithm: SigningAlgorithm::Es256 };
        for (grant, secret) in [
            (OAuthGrant::default(), None),
            (sign_in(None), None),
            (sign_in(Some("s3cret")), Some("s3cret")),
            (own(ClientProof::Secret(Secret::new("s3cret"))), Some("s3cret")),
            (own(key), None),
        ] {
            assert_eq!(grant.secret().map(Secret::expose), secret, "{grant:?}");
        }
    }

    #[test]
    fn states_and_sharing_have_the_words_of_tables_and_configurations() {
        let states = [ServerState::Connecting, ServerState::Ready, ServerState::Unavailable];
        assert_eq!(states.map(ServerState::as_str), ["connecting", "ready", "unavailable"]);
        let per_session = Sharing::PerSession { most: 1, idle: Duration::ZERO };
        let per_owner = Sharing::PerOwner { most: 1, idle: Duration::ZERO };
        let words = ["shared", "per_session", "per_owner"];
        assert_eq!([Sharing::Shared, per_session, per_owner].map(Sharing::as_str), words);
        let scopes = [AccountScope::Board, AccountScope::Person, AccountScope::Session];
        assert_eq!(scopes.map(AccountScope::as_str), ["board", "user", "session"]);
    }
}
