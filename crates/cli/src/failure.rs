//! The failure of a command, and its exit code.

use serde_json::{Value, json};
use switchboard_api::Problem;
use switchboard_auth::AuthError;
use switchboard_runtime::{ConfigError, EditError, StartError, StartFailure};
use switchboard_store::StoreError;

/// The configuration is wrong, or the start failed.
pub(crate) const EXIT_START: u8 = 1;
/// The command line, a name or an argument is wrong.
pub(crate) const EXIT_USAGE: u8 = 2;
/// The tool answered with an error.
pub(crate) const EXIT_TOOL_ERROR: u8 = 3;
/// Unreachable, refused or timed out.
pub(crate) const EXIT_UNREACHABLE: u8 = 4;

/// A failed command: message, hint and exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    kind: String,
    message: String,
    hint: Option<String>,
    /// Further members of the `--json` output.
    details: Option<Box<Value>>,
    /// Whether the message already contains `error:`.
    is_rendered: bool,
}

impl Failure {
    fn new(code: u8, kind: &str, message: impl Into<String>) -> Self {
        let (kind, message) = (kind.to_owned(), message.into());
        Self { code, kind, message, hint: None, details: None, is_rendered: false }
    }

    pub(crate) fn start(message: impl Into<String>) -> Self {
        Self::new(EXIT_START, "start_failed", message)
    }

    pub(crate) fn unknown_key(message: impl Into<String>) -> Self {
        Self::new(EXIT_START, "unknown_key", message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(EXIT_USAGE, "usage", message)
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(EXIT_UNREACHABLE, "unreachable", message)
    }

    pub(crate) fn with_hint(self, hint: Option<String>) -> Self {
        Self { hint: hint.or(self.hint), ..self }
    }

    /// The machine-readable kind of the failure.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// The text for a terminal.
    pub(crate) fn text(&self) -> String {
        let prefix = if self.is_rendered { "" } else { "error: " };
        let hint = self.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        format!("{prefix}{}{hint}", self.message)
    }

    /// The JSON of the failure.
    pub(crate) fn json(&self) -> Value {
        let mut error = json!({"kind": self.kind, "message": self.message, "hint": self.hint});
        if let (Some(object), Some(details)) = (error.as_object_mut(), &self.details) {
            object.insert("details".into(), Value::clone(details));
        }
        json!({ "error": error })
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Invalid(problems) => Self {
                details: Some(Box::new(problems.to_json())),
                is_rendered: true,
                ..Self::new(EXIT_START, "invalid_configuration", problems.to_string())
            },
            other => Self::new(EXIT_START, "no_configuration", other.to_string()),
        }
    }
}

impl From<switchboard_config::Problems> for Failure {
    fn from(problems: switchboard_config::Problems) -> Self {
        ConfigError::Invalid(problems).into()
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let each = error.failures.iter().map(|failure| {
            let (kind, server, tool) = match failure {
                StartFailure::Connect { server, .. } => ("connect", Some(server.to_string()), None),
                StartFailure::Violation(violation) => {
                    let server = violation.server().map(ToString::to_string);
                    ("not_configured", server, Some(violation.tool().to_owned()))
                }
                StartFailure::Store(_) => ("store", None, None),
                StartFailure::Exposure(_) => ("exposure", None, None),
            };
            json!({"kind": kind, "server": server, "tool": tool, "message": failure.to_string()})
        });
        let details = Value::Array(each.collect());
        Self { details: Some(Box::new(details)), ..Self::start(error.to_string()) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let hint = error.hint();
        Self::start(error.with_cause()).with_hint(hint)
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        let (hint, message) = (error.hint(), error.to_string());
        let failure = match error {
            AuthError::BadName { .. } | AuthError::BadUser { .. } | AuthError::BadAccess { .. } => {
                Self::usage(message)
            }
            _ => Self::start(message),
        };
        failure.with_hint(hint)
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        if let Some(problems) = error.problems() {
            return problems.clone().into();
        }
        let hint = error.hint().map(str::to_owned);
        let message = error.to_string();
        let failure = match error {
            EditError::Refused(_) => Self::usage(message),
            EditError::Unreadable(error) => return error.into(),
            _ => Self::new(EXIT_START, "not_changed", message),
        };
        failure.with_hint(hint)
    }
}

/// A problem of a call, from an embedded board or a running instance.
impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let code = match problem.kind() {
            "unknown_tool"
            | "invalid_arguments"
            | "unknown_result"
            | "bad_request"
            | "unknown_session"
            | "session_exists"
            | "unknown_server"
            | "unknown_provider"
            | "unknown_credential"
            | "unknown_sign_in"
            | "unknown_agent"
            | "unknown_framework"
            | "unknown_declaration" => EXIT_USAGE,
            "upstream_error" => EXIT_TOOL_ERROR,
            "internal_error"
            | "store"
            | "invalid_configuration"
            | "not_applied"
            | "overridden"
            | "no_configuration_file"
            | "file_unwritable"
            | "file_changed" => EXIT_START,
            _ => EXIT_UNREACHABLE,
        };
        let errors = problem.errors.iter().filter(|_| problem.errors.len() > 1);
        // An error about the whole body has no path.
        let colon = |path: &str| if path.is_empty() { "" } else { ": " };
        let errors: String = errors
            .flat_map(|error| ["\n  ", &error.path, colon(&error.path), &error.message])
            .collect();
        let message = format!("{}{errors}", problem.detail);
        let details = serde_json::to_value(&problem.errors).ok();
        let details = details.filter(|_| !problem.errors.is_empty()).map(Box::new);
        Self { details, ..Self::new(code, problem.kind(), message) }.with_hint(problem.hint)
    }
}
