//! The configuration in force.

use axum::Json;
use serde_json::Value;
use switchboard_api::{
    ConfigOriginView, ConfigValueView, ConfigView, FieldError, RefusedConfigView, ReloadView,
};
use switchboard_config::{Setting, SourceLocation, json_schema};
use switchboard_runtime::{ConfigError, ConfigFault, RefusedConfig, ReloadOutcome};

use crate::answers::Guarded;
use crate::entry_edit::pointer;
use crate::ready::ReadyConfig;

/// Show the configuration
///
/// Every effective value and where it was set: at which place of the file, by which environment variable, or by default.
/// Secrets are `***`. Needs the role operator.
#[utoipa::path(
    get,
    path = "/api/v1/config",
    operation_id = "getConfig",
    tag = "config",
    responses((status = 200, description = "The configuration.", body = ConfigView), Guarded)
)]
pub(crate) async fn show(ReadyConfig(config): ReadyConfig) -> Json<ConfigView> {
    let state = config.state();
    let values = state.loaded.settings().into_iter().map(value).collect();
    let warnings = state.loaded.warnings.iter().map(ToString::to_string).collect();
    Json(ConfigView {
        revision: state.revision,
        loaded_at_ms: state.loaded_at_ms,
        file: config.source().path().map(|path| path.display().to_string()),
        values,
        warnings,
        refused: state.refused.as_ref().map(refused),
    })
}

/// Get the schema of the configuration
///
/// The JSON Schema of the configuration file, for editors. Needs the role operator.
#[utoipa::path(
    get,
    path = "/api/v1/config/schema",
    operation_id = "getConfigSchema",
    tag = "config",
    responses((status = 200, description = "The schema.", body = Object), Guarded)
)]
pub(crate) async fn schema() -> Json<Value> {
    Json(json_schema())
}

/// Read the configuration again
///
/// Applies the file as it is now, or keeps the configuration in force if it is refused. The board does this by itself when the file
/// changes. Needs the role operator.
#[utoipa::path(
    post,
    path = "/api/v1/config/reload",
    operation_id = "reloadConfig",
    tag = "config",
    responses((status = 200, description = "The outcome.", body = ReloadView), Guarded)
)]
pub(crate) async fn reload(ReadyConfig(config): ReadyConfig) -> Json<ReloadView> {
    let outcome = match config.reload().await {
        ReloadOutcome::Applied => "applied",
        ReloadOutcome::Unchanged => "unchanged",
        ReloadOutcome::Refused(_) => "refused",
    };
    let state = config.state();
    let errors = state.refused.as_ref().map(|it| refused(it).errors).unwrap_or_default();
    Json(ReloadView { outcome: outcome.into(), revision: state.revision, errors })
}

fn value(setting: Setting) -> ConfigValueView {
    let origin = match setting.origin {
        SourceLocation::File { name, line, column } => ConfigOriginView {
            kind: "file".into(),
            place: Some(name),
            line: Some(line),
            column: Some(column),
        },
        SourceLocation::Environment { variable } => ConfigOriginView {
            kind: "environment".into(),
            place: Some(variable),
            line: None,
            column: None,
        },
        SourceLocation::Default => {
            ConfigOriginView { kind: "default".into(), place: None, line: None, column: None }
        }
    };
    let secret = setting.value == "***";
    ConfigValueView { pointer: pointer(&setting.path), value: setting.json, secret, origin }
}

fn refused(refused: &RefusedConfig) -> RefusedConfigView {
    let whole = |message: String| FieldError { path: String::new(), message };
    let errors = match &*refused.reason {
        ConfigFault::Config(ConfigError::Invalid(problems)) => problems
            .iter()
            .map(|problem| {
                let place = problem.place.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
                let path = problem.path.as_deref().map(pointer).unwrap_or_default();
                FieldError { path, message: format!("{place}{}", problem.message) }
            })
            .collect(),
        ConfigFault::Config(other) => vec![whole(other.to_string())],
        ConfigFault::Start(error) => {
            error.failures.iter().map(|failure| whole(failure.to_string())).collect()
        }
    };
    RefusedConfigView { at_ms: refused.at_ms, errors }
}
