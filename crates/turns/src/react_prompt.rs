//! The prompts of ReACT turns: rendered once for each list of tools and template.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::ProviderPlan;
use switchboard_react::PromptTemplate;
use switchboard_render::Rendering;
use switchboard_template::TemplateFault;

/// Maximum number of prompts and of templates that are kept.
const MAX_KEPT: usize = 64;

/// The prompts that were rendered last. Sessions that show the same tools share one.
#[derive(Debug, Default)]
pub(crate) struct ReactPrompts {
    kept: Mutex<KeptPrompts>,
}

#[derive(Debug, Default)]
struct KeptPrompts {
    /// By text; `None` is the built-in template.
    templates: VecDeque<(Option<String>, Arc<PromptTemplate>)>,
    prompts: VecDeque<KeptPrompt>,
}

#[derive(Debug)]
struct KeptPrompt {
    /// Weak: a prompt must not keep the tools of earlier views alive.
    tools: Weak<Rendering>,
    template: Arc<PromptTemplate>,
    text: Arc<str>,
}

impl ReactPrompts {
    /// The prompt for these tools, in the provider's own template if it has one.
    pub(crate) fn prompt(
        &self,
        plan: &ProviderPlan,
        tools: &Arc<Rendering>,
    ) -> Result<Arc<str>, Box<ModelFault>> {
        let unusable = |error: TemplateFault| {
            let text = format!("the ReACT prompt of the provider `{}`: {error}", plan.name);
            Box::new(ModelFault::new(FaultKind::BadRequest, text))
        };
        let mut kept = self.kept.lock();
        let template = kept.template(plan.react_template.as_deref()).map_err(unusable)?;
        let known = kept.prompts.iter().find(|prompt| {
            Arc::ptr_eq(&prompt.template, &template)
                && prompt.tools.upgrade().is_some_and(|known| Arc::ptr_eq(&known, tools))
        });
        if let Some(known) = known {
            return Ok(known.text.clone());
        }
        let entries = serde_json::from_slice(&tools.json()).unwrap_or_default();
        let text: Arc<str> = template.render(&entries).map_err(unusable)?.into();
        kept.prompts.retain(|prompt| prompt.tools.strong_count() > 0);
        if kept.prompts.len() >= MAX_KEPT {
            kept.prompts.pop_front();
        }
        let tools = Arc::downgrade(tools);
        kept.prompts.push_back(KeptPrompt { tools, template, text: text.clone() });
        Ok(text)
    }
}

impl KeptPrompts {
    fn template(&mut self, text: Option<&str>) -> Result<Arc<PromptTemplate>, TemplateFault> {
        let known = self.templates.iter().find(|(known, _)| known.as_deref() == text);
        if let Some((_, template)) = known {
            return Ok(template.clone());
        }
        let template = Arc::new(match text {
            Some(text) => PromptTemplate::compile(text)?,
            None => PromptTemplate::built_in()?,
        });
        if self.templates.len() >= MAX_KEPT {
            self.templates.pop_front();
        }
        self.templates.push_back((text.map(str::to_owned), template.clone()));
        Ok(template)
    }
}

/// The instructions of a ReACT request: those of the provider or the turn, then the prompt.
pub(crate) fn after_instructions(instructions: Option<String>, prompt: &str) -> String {
    match instructions.filter(|own| !own.trim().is_empty()) {
        Some(own) => format!("{own}\n\n{prompt}"),
        None => prompt.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::{ProviderKind, ToolDescriptor};
    use switchboard_render::{NamedTool, Provider};

    use super::*;

    fn rendering(names: &[&str]) -> Arc<Rendering> {
        let tools: Vec<_> = names.iter().map(|name| ToolDescriptor::named(*name)).collect();
        let tools = tools.iter().map(|descriptor| NamedTool { name: &descriptor.name, descriptor });
        Arc::new(Rendering::new(Provider::React, tools))
    }

    #[test]
    fn a_prompt_is_rendered_once_for_its_tools_and_template() {
        let prompts = ReactPrompts::default();
        let plan = ProviderPlan::new("p", ProviderKind::OpenAiChat);
        let tools = rendering(&["a__b"]);
        let first = prompts.prompt(&plan, &tools).unwrap();
        assert!(first.contains("- a__b\n"), "{first}");
        assert!(Arc::ptr_eq(&first, &prompts.prompt(&plan, &tools).unwrap()));
        let template = Some("{{ tool_names | join(' ') }}".to_owned());
        let own = ProviderPlan { react_template: template, ..plan.clone() };
        assert_eq!(&*prompts.prompt(&own, &tools).unwrap(), "a__b");
        let equal = prompts.prompt(&plan, &rendering(&["a__b"])).unwrap();
        assert_eq!(first, equal, "equal tools give equal bytes");
        for _ in 0..MAX_KEPT * 2 {
            prompts.prompt(&plan, &rendering(&["c__d"])).unwrap();
        }
        assert!(prompts.kept.lock().prompts.len() <= MAX_KEPT);
    }

    #[test]
    fn a_template_that_fails_names_its_provider() {
        let plan = ProviderPlan::new("small", ProviderKind::OpenAiChat);
        let plan = ProviderPlan { react_template: Some("{{ nothing }}".into()), ..plan };
        let fault = ReactPrompts::default().prompt(&plan, &rendering(&[])).unwrap_err();
        assert!(fault.message.starts_with("the ReACT prompt of the provider `small`: line 1:"));
    }
}
