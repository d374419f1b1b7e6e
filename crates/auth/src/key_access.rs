//! What a key grants, in the form in which it is stored: a JSON object whose absent members restrict nothing.

use serde::{Deserialize, Serialize};
use switchboard_model::{Access, AccessRule, CallerLimits, Rate};

/// The most toolsets, tools or denied tools of one key.
const MAX_NAMES: usize = 500;
/// The longest name or pattern.
const LONGEST_NAME: usize = 256;

/// What a key grants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyAccess {
    /// Toolsets; an empty list grants nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolsets: Option<Vec<String>>,
    /// Tools in addition to those of `toolsets`, as names or patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools that are not granted, as names or patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Only tools that say they change nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub readonly: bool,
    /// How many calls of one tool may run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_instances: Option<u32>,
    /// How often one tool may be called, such as `60/min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
}

impl KeyAccess {
    /// Reads a stored access; `None` stands for everything.
    pub fn from_stored(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text else { return Ok(Self::default()) };
        let access: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        access.check()?;
        Ok(access)
    }

    /// The text to be stored; `None` if everything is granted without limits.
    pub fn to_stored(&self) -> Option<String> {
        let is_all = *self == Self::default();
        (!is_all).then(|| serde_json::to_string(self).unwrap_or_else(|_| "{}".into()))
    }

    /// The access in force; the error names what is wrong.
    pub fn access(&self) -> Result<Access, String> {
        self.check()?;
        let rule = AccessRule {
            toolsets: self.toolsets.clone(),
            tools: self.tools.clone(),
            deny_tools: self.deny.clone(),
            read_only: self.readonly,
        };
        Ok(Access::of(rule, CallerLimits { max_instances: self.max_instances, rate: self.rate()? }))
    }

    fn rate(&self) -> Result<Option<Rate>, String> {
        let Some(text) = &self.rate else { return Ok(None) };
        text.parse().map(Some).map_err(|error| format!("the rate {text:?} {error}"))
    }

    fn check(&self) -> Result<(), String> {
        let lists = [
            ("toolsets", self.toolsets.as_deref().unwrap_or_default()),
            ("tools", self.tools.as_deref().unwrap_or_default()),
            ("denied tools", &self.deny),
        ];
        for (what, names) in lists {
            if names.len() > MAX_NAMES {
                return Err(format!("a key names at most {MAX_NAMES} {what}"));
            }
            let is_bad = |name: &&String| {
                name.trim().is_empty()
                    || name.len() > LONGEST_NAME
                    || name.chars().any(char::is_control)
            };
            if let Some(bad) = names.iter().find(is_bad) {
                return Err(format!("{bad:?} is not a name among the {what}"));
            }
        }
        if self.max_instances == Some(0) {
            return Err("max_instances is at least 1; revoke the key to stop all its calls".into());
        }
        self.rate().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn an_absent_list_grants_all_and_an_empty_one_nothing() {
        let read = |text: &str| KeyAccess::from_stored(Some(text)).unwrap().access().unwrap();
        assert!(KeyAccess::from_stored(None).unwrap().access().unwrap().has_all_tools());
        assert!(read("{}").has_all_tools());
        assert!(read(r#"{"rate":"5/s"}"#).has_all_tools());
        let nothing = read(r#"{"toolsets":[]}"#).tools.unwrap();
        assert_eq!(nothing.iter().next().unwrap().toolsets, Some(Vec::new()));
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let access = KeyAccess {
            toolsets: Some(vec!["crm".into()]),
            deny: vec!["*_delete".into()],
            readonly: true,
            rate: Some("60/min".into()),
            ..KeyAccess::default()
        };
        let stored = access.to_stored().unwrap();
        assert_eq!(
            stored,
            r#"{"toolsets":["crm"],"deny":["*_delete"],"readonly":true,"rate":"60/min"}"#
        );
        assert_eq!(KeyAccess::from_stored(Some(&stored)), Ok(access));
        assert_eq!(KeyAccess::default().to_stored(), None);
    }

    #[test]
    fn bad_values_are_named() {
        for (text, expected) in [
            (r#"{"rate":"0/min"}"#, "the rate \"0/min\" permits no call"),
            (r#"{"rate":"5/week"}"#, "the rate \"5/week\" has an unknown period"),
            (r#"{"max_instances":0}"#, "max_instances is at least 1"),
            (r#"{"tools":[" "]}"#, "\" \" is not a name among the tools"),
            (r#"{"tool":["a"]}"#, "unknown field `tool`"),
            (r#"{"toolsets":"a"}"#, "invalid type"),
        ] {
            let error = KeyAccess::from_stored(Some(text)).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
