//! Entries with `type: prompt`: tools that a model answers.

use serde_json::{Map, Value as Json, json};
use switchboard_model::{
    ArgumentSpec, ArgumentType, BUILT_IN_PROVIDERS, DEFAULT_PROMPT_DEPTH, PromptToolPlan, ToolEntry,
};
use switchboard_template::Template;

use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw::RawTool;
use crate::schema::nearest;

/// The keys that only a prompt tool has.
pub(super) const PROMPT_KEYS: [&str; 6] =
    ["template", "provider", "model", "instructions", "tools", "max_depth"];

impl Planner<'_> {
    /// What makes the entry a prompt tool. Arguments without a type are strings.
    pub(super) fn prompt_tool(
        &mut self,
        at: &At<'_>,
        raw: &mut RawTool,
        arguments: &mut [ArgumentSpec],
    ) -> Option<PromptToolPlan> {
        if let Some(at) = at.get("name")
            && let Some(name) = at.text().filter(|name| name.contains('.'))
        {
            let own = name.rsplit('.').next().unwrap_or_default();
            let help = format!("a prompt tool belongs to no server: write `{own}`");
            self.refuse(&at, "cannot be the name of a prompt tool", &help);
        }
        if let Some(at) = at.get("mode") {
            let help = "tools of this process are always strict: remove this key";
            self.refuse(&at, "has no effect on a prompt tool", help);
        }
        for argument in arguments.iter_mut().filter(|argument| argument.kind.is_none()) {
            argument.kind = Some(ArgumentType::String);
        }
        let Some(template) = raw.template.take() else {
            let problem = ConfigProblem::error(format!("missing key `template` in {}", at.path))
                .about(&at.path.key("template"))
                .help("add `template:` with the text that the model is asked");
            self.push(at.value_origin("type"), problem);
            return None;
        };
        self.check_template(at, &template, arguments);
        Some(PromptToolPlan {
            template,
            provider: raw.provider.take(),
            model: raw.model.take(),
            instructions: raw.instructions.take(),
            tools: raw.tools.take().unwrap_or_default(),
            max_depth: raw.max_depth.unwrap_or(DEFAULT_PROMPT_DEPTH),
        })
    }

    /// Reports prompt tools whose provider cannot exist.
    pub(super) fn check_prompt_providers(
        &mut self,
        tools: &[(ToolEntry, At<'_>)],
        config: &At<'_>,
    ) {
        let providers = config.items("providers");
        let written = providers.iter().filter_map(|provider| provider.get("name"));
        let known: Vec<_> =
            written.filter_map(|name| name.text()).chain(BUILT_IN_PROVIDERS).collect();
        for (tool, at) in tools {
            let provider = tool.prompt.as_ref().and_then(|prompt| prompt.provider.as_deref());
            let (Some(provider), Some(at)) = (provider, at.get("provider")) else { continue };
            if known.contains(&provider) {
                continue;
            }
            let nearest = nearest(provider, known.iter().copied());
            let nearest = nearest.filter(|_| !at.node.sensitive);
            let help = match nearest {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add it to `providers`, or use one of {}", known.join(", ")),
            };
            self.refuse(&at, "names no provider", &help);
        }
    }

    /// Reports a template that does not compile, does not end, or reads what is no argument.
    fn check_template(&mut self, at: &At<'_>, template: &str, arguments: &[ArgumentSpec]) {
        let Some(at) = at.get("template") else { return };
        let template = match Template::compile(template) {
            Ok(template) => template,
            Err(fault) => return self.refuse_template(&at, &fault.to_string(), "correct it"),
        };
        let names: Vec<_> = arguments.iter().map(|argument| argument.name.as_str()).collect();
        for unknown in template.variables() {
            if !names.contains(&unknown.as_str()) {
                let what =
                    format!("it uses `{unknown}`, and the tool has no argument of this name");
                let help = if names.is_empty() {
                    format!("declare it: `arguments: [{{name: {unknown}}}]`")
                } else {
                    format!("declare it in `arguments`, which has {}", names.join(", "))
                };
                return self.refuse_template(&at, &what, &help);
            }
        }
        // Other faults may come from the empty arguments.
        if let Err(fault) = template.render(&empty_arguments(arguments))
            && fault.is_endless
        {
            self.refuse_template(&at, &fault.to_string(), "bound its loops");
        }
    }

    fn refuse_template(&mut self, at: &At<'_>, what: &str, help: &str) {
        let problem = ConfigProblem::error(format!("{} cannot be used: {what}", at.path));
        self.push(&at.node.origin, problem.about(&at.path).help(help));
    }
}

/// An empty value for each argument.
fn empty_arguments(arguments: &[ArgumentSpec]) -> Map<String, Json> {
    let empty = |argument: &ArgumentSpec| match (argument.configured_value(), argument.kind) {
        (Some(value), _) => value.clone(),
        (None, Some(ArgumentType::Number | ArgumentType::Integer)) => json!(0),
        (None, Some(ArgumentType::Boolean)) => json!(false),
        (None, Some(ArgumentType::Object)) => json!({}),
        (None, Some(ArgumentType::Array)) => json!([]),
        (None, Some(ArgumentType::String) | None) => json!(""),
    };
    arguments.iter().map(|argument| (argument.name.clone(), empty(argument))).collect()
}
