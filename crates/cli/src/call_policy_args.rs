//! Options about the calls of a tool or a server: whether arguments are checked, contents are checked, and contents are
//! recorded.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

/// What a content check does.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CheckArgument {
    Off,
    Observe,
    Block,
}

impl CheckArgument {
    fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Observe => "observe",
            Self::Block => "block",
        }
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct CallPolicyArguments {
    /// Whether arguments are checked before a call is sent
    #[arg(long, value_name = "TRUE_OR_FALSE", help_heading = "Calls")]
    pub(crate) validate_arguments: Option<bool>,
    /// The check by the threat-protection endpoint before a tool runs
    #[arg(long, value_name = "CHECK", help_heading = "Calls")]
    pub(crate) check_before_call: Option<CheckArgument>,
    /// The check by the threat-protection endpoint of a result
    #[arg(long, value_name = "CHECK", help_heading = "Calls")]
    pub(crate) check_after_call: Option<CheckArgument>,
    /// Whether the arguments of calls are recorded
    #[arg(long, value_name = "TRUE_OR_FALSE", help_heading = "Calls")]
    pub(crate) record_arguments: Option<bool>,
    /// Whether the results of calls are recorded
    #[arg(long, value_name = "TRUE_OR_FALSE", help_heading = "Calls")]
    pub(crate) record_results: Option<bool>,
}

impl CallPolicyArguments {
    /// The fields of the entry. Keys of the present `content_check` and `record` that no option names stay.
    pub(crate) fn fields(
        &self,
        present: Option<&Map<String, Value>>,
    ) -> [(&'static str, Option<Value>); 3] {
        let check = |check: Option<CheckArgument>| check.map(|check| json!(check.as_str()));
        let flag = |flag: Option<bool>| flag.map(|flag| json!(flag));
        let below = |key: &str, given: [(&str, Option<Value>); 2]| {
            let given: Vec<_> = given
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?)))
                .collect();
            let old = present.and_then(|present| present.get(key)?.as_object().cloned());
            let mut all = old.unwrap_or_default();
            let is_given = !given.is_empty();
            all.extend(given);
            is_given.then_some(Value::Object(all))
        };
        let content_check = [
            ("before_call", check(self.check_before_call)),
            ("after_call", check(self.check_after_call)),
        ];
        let record =
            [("arguments", flag(self.record_arguments)), ("results", flag(self.record_results))];
        [
            ("validate_arguments", flag(self.validate_arguments)),
            ("content_check", below("content_check", content_check)),
            ("record", below("record", record)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn options_change_their_key_and_keep_the_others() {
        let present = json!({"record": {"results": true}, "content_check": {"after_call": "off"}});
        let check = |wanted: CallPolicyArguments, expected: Value| {
            let fields = wanted.fields(present.as_object()).into_iter();
            let fields: Map<_, _> =
                fields.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
            assert_eq!(Value::Object(fields), expected);
        };
        check(CallPolicyArguments::default(), json!({}));
        let wanted = CallPolicyArguments {
            validate_arguments: Some(false),
            check_before_call: Some(CheckArgument::Observe),
            record_arguments: Some(true),
            ..CallPolicyArguments::default()
        };
        check(
            wanted,
            json!({
                "validate_arguments": false,
                "content_check": {"after_call": "off", "before_call": "observe"},
                "record": {"results": true, "arguments": true},
            }),
        );
        let wanted = CallPolicyArguments {
            check_after_call: Some(CheckArgument::Block),
            record_results: Some(false),
            ..CallPolicyArguments::default()
        };
        check(
            wanted,
            json!({"content_check": {"after_call": "block"}, "record": {"results": false}}),
        );
    }
}
