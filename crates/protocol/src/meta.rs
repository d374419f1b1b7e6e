//! `_meta` of a request: protocol version, client information and capabilities, progress token.

use std::borrow::Cow;

use crate::Members;

pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
const PROGRESS_KEY: &str = "progressToken";
/// Prefix of keys that the protocol defines. They apply to one hop and are not forwarded.
const RESERVED: &str = "io.modelcontextprotocol/";

/// The members of `_meta` that Switchboard uses.
#[derive(Debug, Clone, Default)]
pub struct Meta<'a> {
    pub version: Option<Cow<'a, str>>,
    /// The client's capabilities, a JSON object as text.
    pub capabilities: Option<&'a str>,
    /// The client's `clientInfo`, a JSON object as text.
    pub client_info: Option<&'a str>,
    pub log_level: Option<Cow<'a, str>>,
    /// A JSON string or number as text.
    pub progress_token: Option<&'a str>,
    members: Members<'a>,
}

/// Why a `_meta` is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaFault(pub String);

impl<'a> Meta<'a> {
    /// Reads the `_meta` of `params`; without one, all fields are empty.
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
            client_info: members.get(CLIENT_INFO_KEY),
            log_level: members.string(LOG_LEVEL_KEY),
            progress_token,
            members,
        })
    }

    /// Checks that the members that the stateless era requires in every request are there.
    pub fn require_modern(&self) -> Result<(), MetaFault> {
        if self.version.is_none() {
            return Err(MetaFault(format!("_meta must have {VERSION_KEY}, a string")));
        }
        if !self.capabilities.is_some_and(|capabilities| capabilities.starts_with('{')) {
            return Err(MetaFault(format!("_meta must have {CAPABILITIES_KEY}, an object")));
        }
        Ok(())
    }

    /// The members that the protocol does not define, as JSON text without braces.
    pub fn foreign(&self) -> String {
        foreign_members(&self.members)
    }
}

/// The members of a `_meta` that are forwarded, as JSON text without braces: not those that the protocol defines, and
/// not the progress token of this hop.
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

/// The extension by which a server answers a request with a task that the client polls for its result.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The capabilities of a client, as JSON, without the tasks extension.
pub fn without_tasks(capabilities: &str) -> String {
    let members = Members::read(capabilities).unwrap_or_default();
    let Some(extensions) = members.object("extensions") else { return capabilities.to_owned() };
    let kept: Vec<_> = extensions.iter().filter(|(key, _)| *key != TASKS_EXTENSION).collect();
    let extensions = format!("{{{}}}", crate::params_text(&kept));
    let all = members.iter().map(|(key, value)| match key {
        "extensions" => (key, extensions.as_str()),
        _ => (key, value),
    });
    format!("{{{}}}", crate::params_text(&all.collect::<Vec<_>>()))
}

/// Which server-initiated requests and extensions a client supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub sampling: bool,
    pub elicitation: Elicitation,
    pub roots: bool,
    /// Whether the client accepts a task in place of a result (an extension).
    pub tasks: bool,
}

/// The elicitation modes that a client supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Elicitation {
    pub form: bool,
    pub url: bool,
}

/// A client capability that a server needs in order to send a request or to answer with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Sampling,
    Form,
    Url,
    Roots,
    Tasks,
}

impl Need {
    /// The capability that a server-initiated request needs; `None` for an unknown method.
    pub fn of(method: &str, params: Option<&str>) -> Option<Self> {
        match method {
            "sampling/createMessage" => Some(Self::Sampling),
            "elicitation/create" => {
                let params = params.and_then(|params| Members::read(params).ok());
                let mode = params.as_ref().and_then(|params| params.string("mode"));
                Some(if mode.as_deref() == Some("url") { Self::Url } else { Self::Form })
            }
            "roots/list" => Some(Self::Roots),
            _ => None,
        }
    }

    /// The capability's name in messages to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sampling => "sampling",
            Self::Form => "elicitation",
            Self::Url => "elicitation.url",
            Self::Roots => "roots",
            Self::Tasks => "extensions.io.modelcontextprotocol/tasks",
        }
    }

    /// The `capabilities` object that declares it, as JSON.
    pub fn declared(self) -> &'static str {
        match self {
            Self::Sampling => r#"{"sampling":{}}"#,
            Self::Form => r#"{"elicitation":{}}"#,
            Self::Url => r#"{"elicitation":{"url":{}}}"#,
            Self::Roots => r#"{"roots":{}}"#,
            Self::Tasks => r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
        }
    }
}

impl Capabilities {
    /// Reads the `capabilities` object of an `initialize` request or of a `_meta`.
    pub fn read(json: &str) -> Self {
        if json == "{}" {
            return Self::default();
        }
        let members = Members::read(json).unwrap_or_default();
        let has = |members: &Members<'_>, key: &str| {
            members.get(key).is_some_and(|value| value.starts_with('{'))
        };
        let elicitation = members.object("elicitation").map_or_else(Elicitation::default, |ways| {
            let url = has(&ways, "url");
            // A client that names no mode supports forms: URL mode was added later.
            Elicitation { form: has(&ways, "form") || !url, url }
        });
        let tasks = members.object("extensions").is_some_and(|them| has(&them, TASKS_EXTENSION));
        Self {
            sampling: has(&members, "sampling"),
            elicitation,
            roots: has(&members, "roots"),
            tasks,
        }
    }

    /// Whether the client supports any server-initiated request.
    pub fn answers_requests(self) -> bool {
        self.sampling || self.roots || self.elicitation.form || self.elicitation.url
    }

    /// Whether the client has a capability.
    pub fn meet(self, need: Need) -> bool {
        match need {
            Need::Sampling => self.sampling,
            Need::Form => self.elicitation.form,
            Need::Url => self.elicitation.url,
            Need::Roots => self.roots,
            Need::Tasks => self.tasks,
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
        assert!(Capabilities::read(meta.capabilities.unwrap()).meet(Need::Roots));
        assert!(!Capabilities::read(meta.capabilities.unwrap()).meet(Need::Form));
    }

    #[test]
    fn forms_and_addresses_are_two_things() {
        for (capabilities, form, url) in [
            ("{}", false, false),
            (r#"{"elicitation":7}"#, false, false),
            (r#"{"elicitation":{}}"#, true, false),
            (r#"{"elicitation":{"form":{}}}"#, true, false),
            (r#"{"elicitation":{"url":{}}}"#, false, true),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true, true),
            (r#"{"elicitation":{"later":{}}}"#, true, false),
        ] {
            let read = Capabilities::read(capabilities);
            assert_eq!(
                (read.meet(Need::Form), read.meet(Need::Url)),
                (form, url),
                "{capabilities}"
            );
        }
        for (params, need) in [
            (None, Need::Form),
            (Some(r#"{"message":"who?"}"#), Need::Form),
            (Some(r#"{"mode":"form"}"#), Need::Form),
            (Some(r#"{"mode":"url","url":"https://example.com"}"#), Need::Url),
        ] {
            assert_eq!(Need::of("elicitation/create", params), Some(need), "{params:?}");
        }
        assert_eq!(Need::of("tools/call", None), None);
        for need in [Need::Sampling, Need::Form, Need::Url, Need::Roots, Need::Tasks] {
            assert!(Capabilities::read(need.declared()).meet(need), "{need:?}");
        }
    }

    #[test]
    fn the_word_that_somebody_takes_tasks_is_taken_back() {
        for (said, expected) in [
            ("{}", "{}"),
            (r#"{"roots":{}}"#, r#"{"roots":{}}"#),
            (
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"x/y":{"a": 1}},"roots":{}}"#,
                r#"{"extensions":{"x/y":{"a": 1}},"roots":{}}"#,
            ),
            (r#"{"extensions":7}"#, r#"{"extensions":7}"#),
        ] {
            assert_eq!(without_tasks(said), expected);
            assert!(!Capabilities::read(&without_tasks(said)).meet(Need::Tasks));
        }
        assert!(!Capabilities::read(r#"{"extensions":{"x/y":{}}}"#).meet(Need::Tasks));
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
