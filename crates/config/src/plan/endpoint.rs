//! The endpoint of a server: its transport and the keys that belong to it.

use std::collections::{BTreeMap, HashSet};

use http::{HeaderName, HeaderValue};
use switchboard_model::{Endpoint, OAuthGrant, OAuthSettings, Secret, UpstreamAuth};
use url::Url;

use super::oauth::scope_of;
use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw::{RawBearer, RawServer, RawTransport};

const HTTP_KEYS: [&str; 4] = ["url", "headers", "auth", "listing"];
const STDIO_KEYS: [&str; 7] =
    ["command", "args", "env", "cwd", "process", "max_processes", "process_idle_timeout"];

impl Planner<'_> {
    pub(super) fn endpoint(&mut self, at: &At<'_>, raw: &mut RawServer) -> Option<Endpoint> {
        let transport = self.transport(at, raw.transport)?;
        match transport {
            RawTransport::Stdio => self.stdio(at, raw),
            RawTransport::StreamableHttp => {
                let (url, headers, auth) = self.http(at, raw, "streamable_http")?;
                Some(Endpoint::StreamableHttp { url, headers, auth })
            }
            RawTransport::Sse => {
                let (url, headers, auth) = self.http(at, raw, "sse")?;
                Some(Endpoint::Sse { url, headers, auth })
            }
        }
    }

    /// The configured transport, else the one that `command` or `url` implies.
    fn transport(&mut self, at: &At<'_>, raw: Option<RawTransport>) -> Option<RawTransport> {
        if at.has("transport") {
            return raw;
        }
        match (at.has("command"), at.has("url")) {
            (true, false) => Some(RawTransport::Stdio),
            (false, true) => Some(RawTransport::StreamableHttp),
            (true, true) => {
                let problem =
                    ConfigProblem::error(format!("{} has both `url` and `command`", at.path))
                        .about(&at.path)
                        .help("a server is reached over HTTP or started as a program: remove one");
                self.push(at.key_origin("command"), problem);
                None
            }
            (false, false) => {
                let message = format!("{} has neither `url` nor `command`", at.path);
                let help = "add `url: http://...` for a server that is reached over HTTP, or \
                            `command: ...` for one that is started as a program";
                self.push(
                    &at.node.origin,
                    ConfigProblem::error(message).about(&at.path).help(help),
                );
                None
            }
        }
    }

    fn http(
        &mut self,
        at: &At<'_>,
        raw: &mut RawServer,
        transport: &str,
    ) -> Option<(Url, BTreeMap<String, Secret>, UpstreamAuth)> {
        self.refuse_keys(at, &STDIO_KEYS, transport);
        self.require(at, "url", transport);
        let url = raw
            .url
            .as_deref()
            .and_then(|text| self.url(at, "url", text, "http://localhost:8180/mcp"));
        let mut headers = self.headers(at, raw.headers.take().unwrap_or_default());
        let written = at.get("headers");
        let is_of_caller = |name: &str| {
            let node = written.as_ref().and_then(|at| at.node.get(name));
            node.is_some_and(|node| node.of_caller.is_some())
        };
        headers.retain(|name, _| !is_of_caller(name));
        let per = scope_of(raw.auth.as_ref());
        let listing = self.listing(at, raw.listing, per);
        let (bearer, oauth) =
            raw.auth.take().map(|auth| (auth.bearer, auth.oauth)).unwrap_or_default();
        self.check_bearer(at, bearer.as_ref());
        let named_twice = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let key = if bearer.is_some() { "bearer" } else { "oauth" };
        let is_given = bearer.is_some() || oauth.is_some();
        if let (Some(auth), true, true) = (at.get("auth"), named_twice, is_given) {
            let message = format!("{} has both `auth.{key}` and an Authorization header", at.path);
            let problem =
                ConfigProblem::error(message).about(&auth.path).help("remove one of the two");
            self.push(at.key_origin("auth"), problem);
        }
        let auth = match (bearer, oauth) {
            (None, None) => UpstreamAuth::None,
            (Some(RawBearer::PerOwner(_)), None) => UpstreamAuth::OAuth(OAuthSettings {
                grant: OAuthGrant::StoredToken,
                scopes: Vec::new(),
                per,
                listing,
            }),
            (Some(RawBearer::Token(bearer)), None) => {
                let token = Secret::new(bearer);
                let file = at.get("auth").and_then(|auth| auth.get("bearer")?.node.file.clone());
                match file {
                    Some(path) => UpstreamAuth::BearerFile { path, token },
                    None => UpstreamAuth::Bearer(token),
                }
            }
            (None, Some(oauth)) => {
                UpstreamAuth::OAuth(OAuthSettings { listing, ..self.oauth(at, oauth)? })
            }
            (Some(_), Some(_)) => {
                let message = format!("{}.auth has both `bearer` and `oauth`", at.path);
                let problem = ConfigProblem::error(message).about(&at.path.key("auth"));
                self.push(at.key_origin("auth"), problem.help("remove one of the two"));
                return None;
            }
        };
        Some((url?, headers, auth))
    }

    fn stdio(&mut self, at: &At<'_>, raw: &mut RawServer) -> Option<Endpoint> {
        self.refuse_keys(at, &HTTP_KEYS, "stdio");
        self.require(at, "command", "stdio");
        if let (Some(""), Some(at)) = (raw.command.as_deref().map(str::trim), at.get("command")) {
            self.refuse(&at, "is not a command", "write the program to start");
        }
        let env = raw.env.take().unwrap_or_default();
        for name in env.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let problem = ConfigProblem::error(format!(
                    "{}.env: a name must not be empty or hold `=`",
                    at.path
                ));
                self.push(at.key_origin("env"), problem.about(&at.path.key("env")));
            }
        }
        let env = env.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
        Some(Endpoint::Stdio {
            command: raw.command.take()?,
            args: raw.args.take().unwrap_or_default(),
            env,
            cwd: raw.cwd.take().map(|cwd| self.directory.join(cwd)),
        })
    }

    /// Parses the URL below `key`; `example` is shown in the help text.
    pub(super) fn url(&mut self, at: &At<'_>, key: &str, text: &str, example: &str) -> Option<Url> {
        let at = at.get(key)?;
        let why = match Url::parse(text) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                "is not an http or https address".into()
            }
            Ok(url) if url.host_str().is_some_and(|host| !host.is_empty()) => return Some(url),
            Ok(_) => "names no host".into(),
            Err(error) => format!("is not a valid URL: {error}"),
        };
        // The message does not quote the URL, which may hold a password; only the snippet does, if its line may be
        // shown.
        let problem = ConfigProblem::error(format!("{}: the address {why}", at.path));
        let problem = problem.about(&at.path).help(format!("write an address such as `{example}`"));
        self.push(&at.node.origin, problem);
        None
    }

    pub(super) fn headers(
        &mut self,
        at: &At<'_>,
        raw: BTreeMap<String, String>,
    ) -> BTreeMap<String, Secret> {
        let mut names = HashSet::new();
        let mut headers = BTreeMap::new();
        let place = at.get("headers");
        for (name, value) in raw {
            let fault = if HeaderName::from_bytes(name.as_bytes()).is_err() {
                Some("is not a valid header name")
            } else if HeaderValue::from_str(&value).is_err() {
                Some("has a value with characters that a header cannot carry")
            } else if !names.insert(name.to_ascii_lowercase()) {
                Some("is written twice; header names ignore case")
            } else {
                None
            };
            if let (Some(fault), Some(place)) = (fault, &place) {
                let problem =
                    ConfigProblem::error(format!("{}: the header {name:?} {fault}", place.path));
                self.push(place.key_origin(&name), problem.about(&place.path.key(&name)));
            }
            headers.insert(name, Secret::new(value));
        }
        headers
    }

    fn check_bearer(&mut self, at: &At<'_>, bearer: Option<&RawBearer>) {
        let Some(auth) = at.get("auth") else { return };
        let Some(bearer) = bearer else {
            if auth.node.entries().is_empty() {
                let problem =
                    ConfigProblem::error(format!("{} is empty", auth.path)).about(&auth.path);
                self.push(
                    at.key_origin("auth"),
                    problem.help("add `bearer: ${TOKEN}` or `oauth: {}`, or remove it"),
                );
            }
            return;
        };
        let RawBearer::Token(bearer) = bearer else { return };
        if bearer.trim().is_empty() || HeaderValue::from_str(bearer).is_err() {
            let message = format!(
                "{}.bearer is empty or holds characters that a header cannot carry",
                auth.path
            );
            self.push(
                auth.key_origin("bearer"),
                ConfigProblem::error(message).about(&auth.path.key("bearer")),
            );
        }
    }

    fn require(&mut self, at: &At<'_>, key: &str, transport: &str) {
        if !at.has(key) {
            let problem = ConfigProblem::error(format!("missing key `{key}` in {}", at.path))
                .about(&at.path.key(key))
                .help(format!("a `{transport}` server needs `{key}`"));
            self.push(&at.node.origin, problem);
        }
    }

    fn refuse_keys(&mut self, at: &At<'_>, keys: &[&str], transport: &str) {
        for key in keys.iter().filter(|key| at.has(key)) {
            let message = format!("`{key}` does not belong to a `{transport}` server");
            let problem =
                ConfigProblem::error(format!("{message} ({})", at.path)).about(&at.path.key(key));
            self.push(at.key_origin(key), problem.help("remove it, or change `transport`"));
        }
    }
}

/// The values that references put into the endpoint and the credentials of a server.
pub(super) fn referenced(at: &At<'_>) -> Vec<Secret> {
    let keys = ["url", "headers", "auth", "command", "args", "env"];
    keys.iter().filter_map(|key| at.get(key)).flat_map(|at| at.node.all_referenced()).collect()
}

/// The address of a server for display: expanded values appear as written.
pub(super) fn shown_place(at: &At<'_>, endpoint: &Endpoint) -> String {
    let template = |at: &At<'_>| at.node.template.as_deref().map(redact_address);
    match endpoint {
        Endpoint::StreamableHttp { .. } | Endpoint::Sse { .. } => {
            let written = at.get("url").and_then(|url| template(&url));
            written.unwrap_or_else(|| endpoint.to_string())
        }
        Endpoint::Stdio { command, args, .. } => {
            let command = at.get("command").and_then(|at| template(&at)).unwrap_or(command.clone());
            let written = at.items("args");
            let args = args.iter().enumerate().map(|(index, arg)| {
                written.get(index).and_then(template).unwrap_or_else(|| arg.clone())
            });
            std::iter::once(command).chain(args).collect::<Vec<_>>().join(" ")
        }
    }
}

/// A URL as written, without any credentials in it.
pub(crate) fn redact_address(written: &str) -> String {
    let Some((scheme, rest)) = written.split_once("://") else { return written.to_owned() };
    let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let host =
        authority.rsplit_once('@').map_or(authority.to_owned(), |(_, host)| format!("***@{host}"));
    let path = path.split_once('?').map_or(path.to_owned(), |(path, _)| format!("{path}?***"));
    format!("{scheme}://{host}{path}")
}
