//! The effective configuration: every value with its origin, secrets redacted.

use std::fmt;

use serde_json::{Value as Json, json};
use switchboard_model::Plan;

use crate::emit::Doc;
use crate::place::SourceLocation;
use crate::plan::At;
use crate::problem::ConfigProblem;
use crate::show;
use crate::source::SourceText;
use crate::template;

/// A valid configuration.
#[derive(Clone)]
pub struct Loaded {
    /// The resulting plan.
    pub plan: Plan,
    /// Problems that do not prevent the start.
    pub warnings: Vec<ConfigProblem>,
    shown: Doc,
}

/// One effective value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The path, starting with the root key as written.
    pub path: String,
    /// The value for display; secrets are `***`.
    pub value: String,
    /// The value with its type; secrets are `***`.
    pub json: Json,
    /// Where the value was set.
    pub origin: SourceLocation,
}

impl Loaded {
    pub(crate) fn new(
        plan: Plan,
        warnings: Vec<ConfigProblem>,
        config: &At<'_>,
        source: &SourceText<'_>,
    ) -> Self {
        let shown = show::document(&plan, config, source);
        Self { plan, warnings, shown }
    }

    /// A warning about the value at a path below the root key, such as `toolsets[0].tools[1]`, with its location.
    pub fn warning_at(&self, path: &str, message: String, help: Option<String>) -> ConfigProblem {
        let is_meant =
            |setting: &Setting| setting.path.split_once('.').is_some_and(|(_, rest)| rest == path);
        let setting = self.settings().into_iter().find(is_meant);
        let (path, place) = setting.map(|setting| (setting.path, setting.origin)).unzip();
        let place = place.filter(|place| *place != SourceLocation::Default);
        ConfigProblem { path, place, help, ..ConfigProblem::error(message).into_warning() }
    }

    /// Every effective value with its origin, defaults included.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        collect(&self.shown, String::new(), &mut settings);
        settings
    }

    /// The effective configuration as a YAML file, with the origin of each value in a comment. It can be loaded again
    /// unless secrets were redacted.
    pub fn to_yaml(&self) -> String {
        self.shown.map_text(&template::escape).to_yaml()
    }

    /// The effective configuration as JSON, and each value with its origin.
    pub fn to_json(&self) -> Json {
        let settings: Vec<_> = self
            .settings()
            .into_iter()
            .map(|s| json!({"path": s.path, "value": s.value, "origin": s.origin.to_string()}))
            .collect();
        json!({
            "config": self.shown.to_json(),
            "settings": settings,
            "warnings": self.warnings.iter().map(ConfigProblem::to_json).collect::<Vec<_>>(),
        })
    }
}

/// Prints the redacted settings, because the plan holds expanded values in plain fields.
impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("settings", &self.settings())
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

fn collect(doc: &Doc, path: String, settings: &mut Vec<Setting>) {
    match doc {
        Doc::Value(json, place) => {
            let value = json.as_str().map_or_else(|| json.to_string(), str::to_owned);
            let origin = place.clone().unwrap_or(SourceLocation::Default);
            settings.push(Setting { path, value, json: json.clone(), origin });
        }
        Doc::Template(text, place) => {
            let json = Json::String(text.clone());
            settings.push(Setting { path, value: text.clone(), json, origin: place.clone() });
        }
        Doc::List(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{path}[{index}]"), settings);
            }
        }
        Doc::Map(entries) => {
            for (key, value) in entries {
                let dot = if path.is_empty() { "" } else { "." };
                collect(value, format!("{path}{dot}{key}"), settings);
            }
        }
    }
}
