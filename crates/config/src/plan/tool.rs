//! One entry of `toolbox.tools`.

use std::collections::HashMap;

use switchboard_model::{ArgumentSpec, ArgumentType, META_TOOLS, ToolEntry};

use super::{At, Planner, RawLimits, admission_mode};
use crate::problem::ConfigProblem;
use crate::raw::{RawArgument, RawArgumentType, RawTool};

impl Planner<'_> {
    pub(super) fn tool(&mut self, at: &At<'_>, raw: RawTool) -> Option<ToolEntry> {
        let limits = RawLimits {
            max_instances: raw.max_instances,
            timeout: raw.timeout,
            max_timeout: raw.max_timeout,
            queue_timeout: raw.queue_timeout,
            inactivity_timeout: raw.inactivity_timeout,
            max_result_bytes: raw.max_result_bytes,
        };
        let limits = self.limits(at, limits);
        let arguments = raw.arguments.map(|arguments| self.arguments(at, arguments));
        Some(ToolEntry {
            name: raw.name?,
            limits,
            mode: raw.mode.map(admission_mode),
            description: raw.description,
            expose_as: raw.expose_as,
            enabled: raw.enabled.unwrap_or(true),
            arguments,
        })
    }

    /// Reports exposed names that collide with each other or with a meta-tool.
    pub(super) fn check_exposed_names(&mut self, tools: &[(ToolEntry, At<'_>)]) {
        let mut seen = HashMap::new();
        for (tool, at) in tools {
            let (Some(name), Some(at)) = (&tool.expose_as, at.get("expose_as")) else { continue };
            if META_TOOLS.contains(&name.as_str()) {
                let help = "it is the name of a tool of the gateway itself; choose another name";
                self.refuse(&at, "is reserved", help);
            }
            if let Some(first) = seen.insert(name.as_str(), &at.node.origin) {
                let shown = if at.node.sensitive { "***" } else { name };
                let problem =
                    ConfigProblem::error(format!("two tool entries are exposed as `{shown}`"))
                        .about(&at.path)
                        .note(format!("the first is at {}", self.source.place(first)))
                        .help("choose another name for one of them");
                self.push(&at.node.origin, problem);
            }
        }
    }

    fn arguments(&mut self, at: &At<'_>, raw: Vec<RawArgument>) -> Vec<ArgumentSpec> {
        let places = at.items("arguments");
        let mut seen = HashMap::new();
        let mut arguments = Vec::with_capacity(raw.len());
        for (at, raw) in places.iter().zip(raw) {
            let (Some(name), Some(kind)) = (raw.name, raw.kind) else { continue };
            let origin = at.value_origin("name");
            if let Some(first) = seen.insert(name.clone(), origin) {
                let shown = super::shown_name(at, &name);
                let problem = ConfigProblem::error(format!("two arguments are named `{shown}`"))
                    .about(&at.path.key("name"))
                    .note(format!("the first is at {}", self.source.place(first)));
                self.push(origin, problem);
            }
            arguments.push(ArgumentSpec {
                name,
                kind: argument_type(kind),
                description: raw.description.unwrap_or_default(),
                required: raw.required,
            });
        }
        arguments
    }
}

fn argument_type(raw: RawArgumentType) -> ArgumentType {
    match raw {
        RawArgumentType::String => ArgumentType::String,
        RawArgumentType::Number => ArgumentType::Number,
        RawArgumentType::Integer => ArgumentType::Integer,
        RawArgumentType::Boolean => ArgumentType::Boolean,
        RawArgumentType::Object => ArgumentType::Object,
        RawArgumentType::Array => ArgumentType::Array,
    }
}
