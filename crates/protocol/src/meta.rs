//! `_meta`: what a request says about its client.

use std::borrow::Cow;

use crate::Members;

pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
const PROGRESS_KEY: &str = "progressToken";
/// Keys of the protocol itself: they speak of one hop and are not passed on.
const RESERVED: &str = "io.modelcontextprotocol/";

/// What a request says about its client.
#[derive(Debug, Clone, Default)]
pub struct Meta<'a> {
    pub version: Option<Cow<'a, str>>,
    /// The object, as text.
    pub capabilities: Option<&'a str>,
    pub log_level: Option<Cow<'a, str>>,
    /// A string or a number, as text.
    pub progress_token: Option<&'a str>,
    members: Members<'a>,
}

/// What is wrong with a `_meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaFault(pub String);

impl<'a> Meta<'a> {
    /// Reads the `_meta` of `params`; without one it is empty.
    pub fn of(params: &Members<'a>) -> Result<Self, MetaFault> {
        let Some(text) = params.get("_meta") else { return Ok(Self::default()) };
        let members = Members::read(text).map_err(|error| MetaFault(format!("_meta: {error}")))?;
        let progress_token = members.get(PROGRESS_KEY);
        if progress_token.is_some_and(|token| !crate::is_valid_id(token)) {
            return Err(MetaFault("progressToken must be a string or an integer".into()));
        }
        Ok(Self {
            version: members.string(VERSION_KEY),
            capabilities: members.get(CAPABILITIES_KEY),
            log_level: members.string(LOG_LEVEL_KEY),
            progress_token,
            members,
        })
    }

    /// What every modern request must say.
    pub fn require_modern(&self) -> Result<(), MetaFault> {
        if self.version.is_none() {
            return Err(MetaFault(format!("_meta must have {VERSION_KEY}, a string")));
        }
        if !self.capabilities.is_some_and(|capabilities| capabilities.starts_with('{')) {
            return Err(MetaFault(format!("_meta must have {CAPABILITIES_KEY}, an object")));
        }
        Ok(())
    }

    /// The members that are the client's own, as text without braces.
    pub fn foreign(&self) -> String {
        foreign_members(&self.members)
    }
}

/// Members of a `_meta` that are passed on: not those of the protocol, and not the progress token of this hop.
pub fn foreign_members(members: &Members<'_>) -> String {
    let mut text = String::new();
    for (key, value) in members.iter() {
        if key == PROGRESS_KEY || key.starts_with(RESERVED) {
            continue;
        }
        if !text.is_empty() {
            text.push(',');
        }
        crate::push_string(&mut text, key);
        text.push(':');
        text.push_str(value);
    }
    text
}

/// What a client says it can do when a server asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub sampling: bool,
    pub elicitation: bool,
    pub roots: bool,
}

impl Capabilities {
    /// Reads the object of a handshake or of a `_meta`.
    pub fn read(json: &str) -> Self {
        if json == "{}" {
            return Self::default();
        }
        let members = Members::read(json).unwrap_or_default();
        let has = |key: &str| members.get(key).is_some_and(|value| value.starts_with('{'));
        Self { sampling: has("sampling"), elicitation: has("elicitation"), roots: has("roots") }
    }

    /// Whether the client takes this question.
    pub fn allow(self, method: &str) -> bool {
        match method {
            "sampling/createMessage" => self.sampling,
            "elicitation/create" => self.elicitation,
            "roots/list" => self.roots,
            _ => false,
        }
    }

    /// The name of the capability that a question needs.
    pub fn needed_for(method: &str) -> Option<&'static str> {
        match method {
            "sampling/createMessage" => Some("sampling"),
            "elicitation/create" => Some("elicitation"),
            "roots/list" => Some("roots"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_stays_and_what_is_theirs_goes_on() {
        let params = r#"{"_meta":{"traceparent":"00-1","progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"a\"b":[1, 2]}}"#;
        let params = Members::read(params).unwrap();
        let meta = Meta::of(&params).unwrap();
        assert_eq!(meta.require_modern(), Ok(()));
        assert_eq!(meta.progress_token, Some("7"));
        assert_eq!(meta.foreign(), r#""traceparent":"00-1","a\"b":[1, 2]"#);
        assert!(Capabilities::read(meta.capabilities.unwrap()).allow("roots/list"));
        assert!(!Capabilities::read(meta.capabilities.unwrap()).allow("elicitation/create"));
    }

    #[test]
    fn a_modern_request_must_say_who_it_is() {
        for (meta, missing) in [
            ("{}", VERSION_KEY),
            (r#"{"io.modelcontextprotocol/protocolVersion":7}"#, VERSION_KEY),
            (r#"{"io.modelcontextprotocol/protocolVersion":"x"}"#, CAPABILITIES_KEY),
        ] {
            let text = format!("{{\"_meta\":{meta}}}");
            let params = Members::read(&text).unwrap();
            let fault = Meta::of(&params).unwrap().require_modern().unwrap_err();
            assert!(fault.0.contains(missing), "{}", fault.0);
        }
        let params = Members::read(r#"{"_meta":{"progressToken":{}}}"#).unwrap();
        assert!(Meta::of(&params).is_err());
    }
}
