//! The difference between two renderings, in the provider's own format if it has one.
//!
//! Sending a changed list invalidates the prompt cache and, on some models, earlier thinking. OpenAI and Anthropic
//! therefore accept changes as items of the conversation, which stay in its history.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::{Provider, RenderedTool, Rendering};

/// The difference between two renderings. Serialises as the API's response.
#[derive(Debug, Clone, Serialize)]
pub struct Delta {
    pub provider: &'static str,
    pub added: Vec<Box<str>>,
    pub removed: Vec<Box<str>>,
    /// Tools with the same name and a different declaration.
    pub changed: Vec<Box<str>>,
    #[serde(flatten)]
    pub apply: ApplyDelta,
}

/// How the change is applied to a running conversation.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "apply", rename_all = "snake_case")]
pub enum ApplyDelta {
    /// The renderings are equal.
    Nothing,
    /// Append these items to the conversation and leave `tools` unchanged.
    Append {
        items: Vec<Box<RawValue>>,
        /// Values of the `anthropic-beta` header that are required.
        betas: Vec<&'static str>,
        /// Where the items may be placed.
        place: &'static str,
        /// Changes that the items cannot express: these tools stay declared, and their calls get an error result.
        #[serde(skip_serializing_if = "Option::is_none")]
        remains: Option<Remains>,
    },
    /// Send the whole list again.
    Resend { reason: &'static str },
}

/// Tools whose change an appended item cannot express.
#[derive(Debug, Clone, Serialize)]
pub struct Remains {
    pub tools: Vec<Box<str>>,
    pub reason: &'static str,
}

const TOOL_CHANGES: &str = "mid-conversation-tool-changes-2026-07-01";
const INLINE_TOOLS: &str = "inline-tools-2026-09-15";

impl Delta {
    /// The difference between two renderings for the same provider.
    pub fn between(before: &Rendering, after: &Rendering) -> Self {
        Self::since(before, after, &HashMap::new())
    }

    /// The difference for a conversation in which the tools of `declared` have been declared before. A name can be
    /// declared once per conversation: a tool that returns is only referenced, and one that returns with another
    /// declaration requires a new list.
    pub fn since(
        before: &Rendering,
        after: &Rendering,
        declared: &HashMap<Box<str>, Arc<RenderedTool>>,
    ) -> Self {
        let index = |rendering: &Rendering| -> HashMap<Box<str>, Arc<RenderedTool>> {
            rendering.tools.iter().map(|tool| (tool.name.clone(), Arc::clone(tool))).collect()
        };
        let (old, new) = (index(before), index(after));
        let mut added = Vec::new();
        let mut changed = Vec::new();
        for tool in &after.tools {
            match old.get(&tool.name) {
                None => added.push(tool),
                Some(known) if known.json != tool.json => changed.push(tool),
                Some(_) => {}
            }
        }
        let gone = before.tools.iter().filter(|tool| !new.contains_key(&tool.name));
        let removed: Vec<Box<str>> = gone.map(|tool| tool.name.clone()).collect();
        let apply = match after.provider {
            _ if added.is_empty() && changed.is_empty() && removed.is_empty() => {
                ApplyDelta::Nothing
            }
            Provider::OpenAi => openai(&added, &changed, &removed),
            Provider::Anthropic => anthropic(&added, &changed, &removed, declared),
            Provider::OpenAiChat | Provider::Gemini | Provider::GeminiParameters => {
                ApplyDelta::Resend {
                    reason: "this provider takes changes of tools only as a new list",
                }
            }
            Provider::Mcp => ApplyDelta::Resend {
                reason: "MCP clients are told that the list changed and read it again",
            },
            Provider::LangChain | Provider::SemanticKernel => {
                ApplyDelta::Resend { reason: "the framework builds its tools from the whole list" }
            }
            Provider::React => {
                ApplyDelta::Resend { reason: "the prompt is written from the whole list" }
            }
        };
        let names =
            |tools: &[&Arc<RenderedTool>]| tools.iter().map(|tool| tool.name.clone()).collect();
        Self {
            provider: after.provider.as_str(),
            added: names(&added),
            removed,
            changed: names(&changed),
            apply,
        }
    }
}

/// `additional_tools` adds tools; OpenAI has no item that removes one.
fn openai(
    added: &[&Arc<RenderedTool>],
    changed: &[&Arc<RenderedTool>],
    removed: &[Box<str>],
) -> ApplyDelta {
    if added.is_empty() {
        return ApplyDelta::Resend {
            reason: "OpenAI has no item that removes or replaces a tool; keep it declared and answer its calls with an error, or send the list again",
        };
    }
    let tools: Vec<&str> = added.iter().map(|tool| &*tool.json).collect();
    let item = format!(
        r#"{{"type":"additional_tools","role":"developer","tools":[{}]}}"#,
        tools.join(",")
    );
    let undone: Vec<Box<str>> =
        removed.iter().cloned().chain(changed.iter().map(|tool| tool.name.clone())).collect();
    let remains = (!undone.is_empty()).then_some(Remains {
        tools: undone,
        reason: "OpenAI has no item that removes or replaces a tool: they stay declared as they were until the list is sent again",
    });
    match RawValue::from_string(item) {
        Ok(item) => ApplyDelta::Append {
            items: vec![item],
            betas: Vec::new(),
            place: "at the end of `input`",
            remains,
        },
        Err(_) => {
            ApplyDelta::Resend { reason: "the `additional_tools` item could not be serialized" }
        }
    }
}

/// One system message. A changed tool is removed and added again.
fn anthropic(
    added: &[&Arc<RenderedTool>],
    changed: &[&Arc<RenderedTool>],
    removed: &[Box<str>],
    declared: &HashMap<Box<str>, Arc<RenderedTool>>,
) -> ApplyDelta {
    let known = |tool: &RenderedTool| declared.get(&tool.name);
    let is_other = |tool: &&&Arc<RenderedTool>| known(tool).is_some_and(|it| it.json != tool.json);
    if changed.iter().chain(added).any(|tool| is_other(&tool)) {
        return ApplyDelta::Resend {
            reason: "a name can be declared once per conversation, and a tool of the same name is declared differently now",
        };
    }
    let gone = removed.iter().chain(changed.iter().map(|tool| &tool.name));
    let removal = |name: &str| -> Value {
        json!({"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}})
    };
    let mut blocks: Vec<String> = gone.map(|name| removal(name).to_string()).collect();
    let mut betas = vec![TOOL_CHANGES];
    for tool in changed.iter().chain(added) {
        if known(tool).is_some() {
            let reference = json!({"type": "tool_reference", "name": tool.name});
            blocks.push(json!({"type": "tool_addition", "tool": reference}).to_string());
            continue;
        }
        blocks.push(format!(
            r#"{{"type":"tool_addition","tool":{{"type":"tool_definition","definition":{}}}}}"#,
            tool.json
        ));
        if !betas.contains(&INLINE_TOOLS) {
            betas.push(INLINE_TOOLS);
        }
    }
    let message = format!(r#"{{"role":"system","content":[{}]}}"#, blocks.join(","));
    match RawValue::from_string(message) {
        Ok(message) => ApplyDelta::Append {
            items: vec![message],
            betas,
            place: "in `messages`, after a user message: last, or before an assistant message; never two in a row",
            remains: None,
        },
        Err(_) => ApplyDelta::Resend {
            reason: "the system message with the tool changes could not be serialized",
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_model::{JsonText, ToolDescriptor};

    use super::*;
    use crate::NamedTool;

    fn rendering(provider: Provider, tools: &[(&str, &str)]) -> Rendering {
        let tools: Vec<(String, ToolDescriptor)> = tools
            .iter()
            .map(|(name, about)| {
                let mut tool = ToolDescriptor::named(*name);
                tool.description = Some((*about).to_owned());
                tool.input_schema = JsonText::from(&json!({"type": "object"}));
                ((*name).to_owned(), tool)
            })
            .collect();
        Rendering::new(
            provider,
            tools.iter().map(|(name, descriptor)| NamedTool { name, descriptor }),
        )
    }

    fn delta(provider: Provider, before: &[(&str, &str)], after: &[(&str, &str)]) -> Value {
        let delta = Delta::between(&rendering(provider, before), &rendering(provider, after));
        serde_json::to_value(delta).unwrap()
    }

    #[test]
    fn nothing_changed_is_nothing_to_do() {
        for provider in Provider::ALL {
            let delta = delta(provider, &[("a", "A")], &[("a", "A")]);
            assert_eq!(delta["apply"], "nothing", "{delta}");
        }
    }

    #[test]
    fn openai_takes_additions_and_is_told_what_stays() {
        let delta = delta(
            Provider::OpenAi,
            &[("a", "A"), ("b", "B")],
            &[("b", "B"), ("c", "C"), ("d", "D")],
        );
        insta::assert_json_snapshot!(delta, @r#"
        {
          "provider": "openai",
          "added": [
            "c",
            "d"
          ],
          "removed": [
            "a"
          ],
          "changed": [],
          "apply": "append",
          "items": [
            {
              "type": "additional_tools",
              "role": "developer",
              "tools": [
                {
                  "type": "function",
                  "name": "c",
                  "description": "C",
                  "parameters": {
                    "type": "object",
                    "properties": {}
                  },
                  "strict": false
                },
                {
                  "type": "function",
                  "name": "d",
                  "description": "D",
                  "parameters": {
                    "type": "object",
                    "properties": {}
                  },
                  "strict": false
                }
              ]
            }
          ],
          "betas": [],
          "place": "at the end of `input`",
          "remains": {
            "tools": [
              "a"
            ],
            "reason": "OpenAI has no item that removes or replaces a tool: they stay declared as they were until the list is sent again"
          }
        }
        "#);
    }

    #[test]
    fn openai_has_no_item_for_a_removal() {
        let delta = delta(Provider::OpenAi, &[("a", "A")], &[]);
        assert_eq!((&delta["apply"], &delta["removed"]), (&json!("resend"), &json!(["a"])));
        assert!(delta["reason"].as_str().unwrap().contains("no item that removes"), "{delta}");
    }

    #[test]
    fn anthropic_takes_every_change_as_one_system_message() {
        let delta = delta(
            Provider::Anthropic,
            &[("a", "A"), ("b", "B")],
            &[("b", "another B"), ("c", "C")],
        );
        insta::assert_json_snapshot!(delta["items"], @r#"
        [
          {
            "role": "system",
            "content": [
              {
                "type": "tool_removal",
                "tool": {
                  "type": "tool_reference",
                  "name": "a"
                }
              },
              {
                "type": "tool_removal",
                "tool": {
                  "type": "tool_reference",
                  "name": "b"
                }
              },
              {
                "type": "tool_addition",
                "tool": {
                  "type": "tool_definition",
                  "definition": {
                    "name": "b",
                    "description": "another B",
                    "input_schema": {
                      "type": "object",
                      "properties": {}
                    }
                  }
                }
              },
              {
                "type": "tool_addition",
                "tool": {
                  "type": "tool_definition",
                  "definition": {
                    "name": "c",
                    "description": "C",
                    "input_schema": {
                      "type": "object",
                      "properties": {}
                    }
                  }
                }
              }
            ]
          }
        ]
        "#);
        assert_eq!(delta["betas"], json!([TOOL_CHANGES, INLINE_TOOLS]));
        assert_eq!(delta["changed"], json!(["b"]));
        let removal = Delta::between(
            &rendering(Provider::Anthropic, &[("a", "A")]),
            &rendering(Provider::Anthropic, &[]),
        );
        let ApplyDelta::Append { betas, .. } = removal.apply else { panic!("{removal:?}") };
        assert_eq!(betas, [TOOL_CHANGES]);
    }

    #[test]
    fn others_get_the_whole_list_again() {
        for provider in [Provider::Gemini, Provider::OpenAiChat, Provider::Mcp, Provider::LangChain]
        {
            let delta = delta(provider, &[], &[("a", "A")]);
            assert_eq!((&delta["apply"], &delta["added"]), (&json!("resend"), &json!(["a"])));
        }
    }
}
