//! The path of a value, `switchboard.toolbox.mcps[0].mode`, and which paths hold secrets.

use std::fmt;

/// A path from the root key downwards, root key included.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Path(Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Segment {
    Key(String),
    Index(usize),
}

/// The keys of a server entry whose whole subtree is secret.
const SERVER_SECRETS: [&str; 3] = ["auth", "headers", "env"];
/// The keys of the security section that hold secrets.
const SECURITY_SECRETS: [&str; 2] = ["store_key", "previous_store_keys"];
/// The keys of a provider entry that hold no secret. All other keys count as secret, so that a key under a misspelt
/// `api_key` is redacted too.
const PROVIDER_PLAIN: [&str; 22] = [
    "name",
    "kind",
    "base_url",
    "model",
    "models",
    "instructions",
    "system_blocks",
    "max_output_tokens",
    "temperature",
    "top_p",
    "effort",
    "show_thinking",
    "account",
    "project",
    "tool_schema",
    "declaration_keys",
    "strategy",
    "native_tools",
    "react_template",
    "app_credentials",
    "idle_timeout",
    "total_timeout",
];

/// The keys of `auth` and of an entry of `credentials` of a provider that hold no secret.
const CREDENTIAL_PLAIN: [&str; 17] = [
    "kind",
    "issuer",
    "authorize_url",
    "token_url",
    "client_id",
    "scopes",
    "redirect_port",
    "redirect_host",
    "redirect_path",
    "device_url",
    "revoke_url",
    "extra_params",
    "token_auth",
    "path",
    "access_token",
    "expires_at",
    "account_id",
];

impl Path {
    pub(crate) fn root(key: &str) -> Self {
        Self(vec![Segment::Key(key.into())])
    }

    #[must_use]
    pub(crate) fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.into()))
    }

    #[must_use]
    pub(crate) fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// Whether the value is a key that encrypts the store, or a list of them.
    pub(crate) fn is_store_key(&self) -> bool {
        let is_key = |at: usize, keys: &[&str]| matches!(self.0.get(at), Some(Segment::Key(key)) if keys.contains(&key.as_str()));
        is_key(1, &["security"]) && is_key(2, &SECURITY_SECRETS)
    }

    /// Whether the value may hold a credential and must not be shown. This includes the whole subtree: `auth: abc` is
    /// malformed, but `abc` may be a token.
    pub(crate) fn is_secret(&self) -> bool {
        let key = |at: usize| match self.0.get(at) {
            Some(Segment::Key(key)) => key.as_str(),
            Some(Segment::Index(_)) | None => "",
        };
        let is_plain_of_provider = match key(3) {
            "auth" => CREDENTIAL_PLAIN.contains(&key(4)),
            "credentials" => CREDENTIAL_PLAIN.contains(&key(5)),
            key => PROVIDER_PLAIN.contains(&key),
        };
        let is_servers =
            key(1) == "toolbox" && key(2) == "mcps" && SERVER_SECRETS.contains(&key(4));
        // Whose account is used is no secret.
        let is_servers = is_servers && !(key(4) == "auth" && key(6) == "per");
        let is_discovery = key(1) == "discovery" && (key(2) == "token" || key(4) == "token");
        is_servers
            || self.is_store_key()
            || (key(1) == "threat_protection" && key(2) == "token")
            || (key(1) == "store" && (key(2) == "url" || key(2) == "listen_url"))
            || is_discovery
            || (key(1) == "providers" && self.0.len() > 3 && !is_plain_of_provider)
    }

    /// Whether the value is a header of a provider, in which `${session}` stands for the session of a request.
    pub(crate) fn is_provider_header(&self) -> bool {
        let is_key = |at: usize, key: &str| self.0.get(at) == Some(&Segment::Key(key.to_owned()));
        is_key(1, "providers") && is_key(3, "headers")
    }

    /// Whether the value is a header of a server, which may come from the caller of each request.
    pub(crate) fn is_server_header(&self) -> bool {
        let key = |at: usize| match self.0.get(at) {
            Some(Segment::Key(key)) => key.as_str(),
            Some(Segment::Index(_)) | None => "",
        };
        key(1) == "toolbox" && key(2) == "mcps" && key(4) == "headers" && self.0.len() == 6
    }

    /// The last key of the path, skipping indices; the name of the value in messages.
    pub(crate) fn last_key(&self) -> &str {
        let keys = self.0.iter().rev().filter_map(|segment| match segment {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Index(_) => None,
        });
        keys.into_iter().next().unwrap_or_default()
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if position == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_the_user_wrote_it() {
        let server = Path::root("myai").key("toolbox").key("mcps").index(2);
        assert_eq!(server.to_string(), "myai.toolbox.mcps[2]");
        assert_eq!(server.last_key(), "mcps");
    }

    #[test]
    fn secrets_are_the_credentials_headers_and_env_of_entries() {
        let server = Path::root("myai").key("toolbox").key("mcps").index(0);
        for key in ["auth", "headers", "env"] {
            assert!(server.key(key).is_secret());
            assert!(server.key(key).key("x").is_secret());
        }
        assert!(!server.key("url").is_secret());
        let provider = Path::root("myai").key("providers").index(0);
        for key in ["api_key", "bearer", "headers", "apikey"] {
            assert!(provider.key(key).is_secret() && provider.key(key).key("x").is_secret());
        }
        let security = Path::root("myai").key("security");
        assert!(security.key("store_key").is_secret() && !security.key("jwt").is_secret());
        assert!(security.key("previous_store_keys").index(0).is_secret());
        let checks = Path::root("myai").key("threat_protection");
        assert!(checks.key("token").is_secret() && !checks.key("endpoint").is_secret());
        assert!(!provider.is_secret());
        let known = crate::schema::SchemaAt::config().property("providers").unwrap();
        let secret = known.items().unwrap().keys().filter(|key| provider.key(key).is_secret());
        let secret: Vec<_> = secret.collect();
        assert_eq!(secret, ["api_key", "bearer", "auth", "credentials", "headers"]);
        for credential in [provider.key("auth"), provider.key("credentials").key("work")] {
            assert!(credential.is_secret(), "it may be a token that is misplaced");
            for key in ["client_secret", "value", "client_secert"] {
                assert!(credential.key(key).is_secret(), "{key}");
            }
            for key in ["kind", "token_url", "path", "access_token"] {
                assert!(!credential.key(key).is_secret(), "{key}");
            }
            assert!(!credential.key("scopes").index(0).is_secret());
        }
        let discovery = Path::root("myai").key("discovery");
        let source = discovery.key("sources").index(0);
        assert!(discovery.key("token").is_secret() && source.key("token").is_secret());
        assert!(!discovery.key("endpoint").is_secret() && !source.key("url").is_secret());
        assert!(!Path::root("myai").key("toolbox").key("tools").index(0).key("env").is_secret());
    }
}
