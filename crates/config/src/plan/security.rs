//! Validates the `security` section.

use std::net::Ipv6Addr;

use http::uri::Authority;
use serde_json::Value as Json;
use switchboard_model::{
    DEFAULT_JWT_LEEWAY, EgressPolicy, JwksSource, JwtPlan, PageClient, Secret, SecurityPlan,
    StoreKey, StoreKeys, is_on_this_machine,
};
use url::Url;

use super::names::Names;
use super::toolset::{Member, Toolsets, may_discover, server_names};
use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw::RawJwt;

impl Planner<'_> {
    pub(super) fn security(
        &mut self,
        config: &At<'_>,
        sound: &Json,
        members: &[Member],
        sets: &Toolsets,
    ) -> SecurityPlan {
        let Some(at) = config.get("security") else { return SecurityPlan::default() };
        let raw = serde_json::from_value::<RawJwt>(sound["security"]["jwt"].clone()).ok();
        let servers = server_names(members, may_discover(config));
        let jwt = raw.and_then(|raw| self.jwt(&at.get("jwt")?, raw, &servers, &sets.names));
        SecurityPlan {
            allowed_hosts: self.each(&at, "allowed_hosts", host, HOST_HELP),
            allowed_origins: self.each(&at, "allowed_origins", origin, ORIGIN_HELP),
            jwt,
            egress: at.get("egress").map(|at| self.egress(&at)).unwrap_or_default(),
            store_keys: self.store_keys(&at),
        }
    }

    fn store_keys(&mut self, at: &At<'_>) -> StoreKeys {
        let previous = at.items("previous_store_keys");
        let previous = previous.iter().filter_map(|item| self.store_key(item)).collect();
        let current = at.get("store_key").and_then(|at| self.store_key(&at));
        StoreKeys { current, previous }
    }

    fn store_key(&mut self, at: &At<'_>) -> Option<StoreKey> {
        let key = StoreKey::parse(at.text()?);
        if key.is_none() {
            let problem = ConfigProblem::error(format!("{} is not a key of 32 bytes", at.path));
            let help = "make one with `openssl rand -base64 32`, and give it as `${VAR}`, `file:/path` or `keyring:NAME`";
            self.push(&at.node.origin, problem.about(&at.path).help(help));
        }
        key
    }

    fn egress(&mut self, at: &At<'_>) -> EgressPolicy {
        EgressPolicy {
            allow: self.each(at, "allow", str::parse, EGRESS_HELP),
            deny: self.each(at, "deny", str::parse, EGRESS_HELP),
        }
    }

    /// Parses every element of a list, and reports the invalid ones.
    fn each<T>(
        &mut self,
        at: &At<'_>,
        key: &str,
        read: fn(&str) -> Result<T, &'static str>,
        help: &str,
    ) -> Vec<T> {
        let mut all = Vec::new();
        for item in at.items(key) {
            match item.text().map(read) {
                Some(Ok(value)) => all.push(value),
                Some(Err(why)) => self.refuse(&item, why, help),
                None => {}
            }
        }
        all
    }

    fn jwt(&mut self, at: &At<'_>, raw: RawJwt, servers: &Names, sets: &Names) -> Option<JwtPlan> {
        let grants = self.jwt_grants(at, raw.grants, raw.default_grant, servers, sets);
        let issuer = raw.issuer.filter(|text| self.address(at, "issuer", text).is_some());
        let jwks = self.jwks(at, raw.jwks_url.as_deref(), raw.jwks_file.as_deref());
        let leeway = self.duration(at, "leeway", raw.leeway);
        let required_scopes = raw.required_scopes.unwrap_or_default();
        self.check_scopes(at, "required_scopes", &required_scopes);
        let resource = match (&raw.resource, &raw.audience) {
            (Some(resource), _) => self.address(at, "resource", resource),
            (None, Some(audience)) if !at.has("resource") => self.resource_of(at, audience),
            (None, _) => None,
        };
        let page_client = raw.page_client.and_then(|client| {
            let scopes = client.scopes.unwrap_or_else(|| required_scopes.clone());
            if let Some(place) = at.get("page_client") {
                self.check_scopes(&place, "scopes", &scopes);
            }
            let secret = client.client_secret.map(Secret::new);
            Some(PageClient { id: client.client_id?, secret, scopes })
        });
        Some(JwtPlan {
            page_client,
            issuer: issuer?,
            audience: raw.audience?,
            jwks: jwks?,
            required_scopes,
            leeway: leeway.unwrap_or(DEFAULT_JWT_LEEWAY),
            resource: resource?,
            grants,
        })
    }

    /// Exactly one of `jwks_url` and `jwks_file` must be present.
    fn jwks(&mut self, at: &At<'_>, url: Option<&str>, file: Option<&str>) -> Option<JwksSource> {
        match (at.has("jwks_url"), at.has("jwks_file")) {
            (true, true) => {
                let message = format!("{} has both `jwks_url` and `jwks_file`", at.path);
                let problem = ConfigProblem::error(message).about(&at.path.key("jwks_file"));
                self.push(
                    at.key_origin("jwks_file"),
                    problem.help("keys come from one place: remove one of the two"),
                );
                None
            }
            (false, false) => {
                let message = format!("{} has neither `jwks_url` nor `jwks_file`", at.path);
                let help = "add `jwks_url: https://...`, where the issuer publishes its keys";
                self.push(
                    &at.node.origin,
                    ConfigProblem::error(message).about(&at.path).help(help),
                );
                None
            }
            (true, false) => self.address(at, "jwks_url", url?).map(JwksSource::Url),
            (false, true) => Some(JwksSource::File(self.directory.join(file?))),
        }
    }

    /// The resource URL of the metadata. An audience may be any string; if it is not a URL, `resource` is required.
    fn resource_of(&mut self, at: &At<'_>, audience: &str) -> Option<Url> {
        let resource = secure_address(audience).ok();
        if resource.is_none() {
            let message = format!("{}.audience is not an address that clients can use", at.path);
            let problem = ConfigProblem::error(message).about(&at.path.key("audience"));
            let help = "add `resource: https://...`, the address of this gateway";
            self.push(at.value_origin("audience"), problem.help(help));
        }
        resource
    }

    /// Parses a URL that tokens or keys depend on: https, or http on this machine.
    fn address(&mut self, at: &At<'_>, key: &str, text: &str) -> Option<Url> {
        match secure_address(text) {
            Ok(url) => Some(url),
            Err(why) => {
                let at = at.get(key)?;
                // The message does not quote the URL, which may hold a password; only the snippet does, if its line may
                // be shown.
                let problem = ConfigProblem::error(format!("{}: the address {why}", at.path));
                let help = "write an https address; plain http is for this machine only";
                self.push(&at.node.origin, problem.about(&at.path).help(help));
                None
            }
        }
    }
}

fn secure_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a valid URL: {error}"))?;
    match url.scheme() {
        _ if url.host_str().is_none_or(str::is_empty) => Err("names no host".into()),
        "https" => Ok(url),
        "http" if is_on_this_machine(&url) => Ok(url),
        "http" => Err("is plain http on another machine; use https".into()),
        _ => Err("is not an https address".into()),
    }
}

const EGRESS_HELP: &str =
    "write a network such as `10.20.0.0/16`, or a name without a port such as `mcp.corp.example`";

const HOST_HELP: &str = "write a name such as `gateway.example.com` or `gateway.example.com:8420`";

/// Parses a host as a `Host` header contains it.
fn host(text: &str) -> Result<String, &'static str> {
    const BAD: &str = "is not a host name";
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(format!("[{address}]"));
    }
    if text.contains(['@', '*', '/']) {
        return Err(BAD);
    }
    let authority: Authority = text.parse().map_err(|_| BAD)?;
    let has_port = authority.as_str().len() > authority.host().len();
    if authority.host().is_empty() || (has_port && authority.port_u16().is_none()) {
        return Err(BAD);
    }
    Ok(authority.as_str().to_ascii_lowercase())
}

const ORIGIN_HELP: &str = "write scheme, host and port only, such as `https://app.example.com`";

/// Parses an origin as browsers send it.
fn origin(text: &str) -> Result<String, &'static str> {
    const BAD: &str = "is not the origin of a web page";
    let url = Url::parse(text).map_err(|_| BAD)?;
    let has_more = !matches!(url.path(), "" | "/")
        || url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.password().is_some();
    if has_more || url.host_str().is_none_or(|host| host.is_empty() || host.contains('*')) {
        return Err(BAD);
    }
    let origin = url.origin();
    // Origins of extensions and desktop programs have schemes that the URL standard treats as opaque.
    let text = text.trim_end_matches('/').to_ascii_lowercase();
    Ok(if origin.is_tuple() { origin.ascii_serialization() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_with_an_optional_port() {
        let rows = [
            ("gateway.example.com", Some("gateway.example.com")),
            ("Gateway.Example.com:8420", Some("gateway.example.com:8420")),
            ("10.0.0.1", Some("10.0.0.1")),
            ("fd00::1", Some("[fd00::1]")),
            ("[fd00::1]:80", Some("[fd00::1]:80")),
            ("https://gateway.example.com", None),
            ("gateway.example.com/mcp", None),
            ("me@gateway.example.com", None),
            ("*.example.com", None),
            ("gateway.example.com:", None),
            ("gateway.example.com:99999", None),
            ("", None),
            ("a b", None),
        ];
        for (written, expected) in rows {
            assert_eq!(host(written).ok().as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn origins_are_spelt_as_browsers_do() {
        let rows = [
            ("https://app.example.com", Some("https://app.example.com")),
            ("HTTPS://App.example.com:443/", Some("https://app.example.com")),
            ("http://10.0.0.1:3000", Some("http://10.0.0.1:3000")),
            ("app://obsidian.md", Some("app://obsidian.md")),
            ("https://app.example.com/page", None),
            ("https://app.example.com?x", None),
            ("https://me@app.example.com", None),
            ("https://*.example.com", None),
            ("app.example.com", None),
            ("null", None),
            ("*", None),
            ("file:///x", None),
        ];
        for (written, expected) in rows {
            assert_eq!(origin(written).ok().as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn keys_and_issuers_are_reached_safely() {
        for good in ["https://i.example.com", "http://localhost:9000/x", "http://127.0.0.1/"] {
            assert!(secure_address(good).is_ok(), "{good}");
        }
        for bad in ["http://i.example.com", "ftp://i.example.com", "i.example.com", "https://", ""]
        {
            assert!(secure_address(bad).is_err(), "{bad}");
        }
    }
}
