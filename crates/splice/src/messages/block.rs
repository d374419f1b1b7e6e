//! A content block that arrives in deltas.

use crate::raw_json::{Raw, RawObject, array, raw, to_raw};

/// A content block, from its start event and its deltas.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockBuilder {
    block: RawObject,
    pub(super) kind: String,
    text: String,
    thinking: String,
    signature: Option<Raw>,
    citations: Vec<Raw>,
    input: String,
}

impl BlockBuilder {
    /// A block as its start event has it: complete already, if no delta follows.
    pub(super) fn new(block: RawObject) -> Self {
        Self {
            kind: block.parsed("type").unwrap_or_default(),
            text: block.parsed("text").unwrap_or_default(),
            thinking: block.parsed("thinking").unwrap_or_default(),
            block,
            ..Self::default()
        }
    }

    pub(super) fn apply(&mut self, delta: &RawObject) {
        let text = |name| delta.parsed::<String>(name).unwrap_or_default();
        match delta.parsed::<String>("type").as_deref() {
            Some("text_delta") => self.text.push_str(&text("text")),
            Some("thinking_delta") => self.thinking.push_str(&text("thinking")),
            Some("input_json_delta") => self.input.push_str(&text("partial_json")),
            Some("signature_delta") => {
                self.signature = delta.get("signature").map(ToOwned::to_owned);
            }
            Some("citations_delta") => {
                self.citations.extend(delta.get("citation").map(ToOwned::to_owned));
            }
            // An unknown delta replaces members, as that of a compaction does.
            _ => {
                for name in delta.names().filter(|name| *name != "type") {
                    if let Some(value) = delta.get(name) {
                        self.block.set(name, value.to_owned());
                    }
                }
            }
        }
    }

    /// The text of a text block.
    pub(super) fn text(&self) -> &str {
        if self.kind == "text" { &self.text } else { "" }
    }

    /// The name of a tool.
    pub(super) fn name(&self) -> String {
        self.block.parsed("name").unwrap_or_default()
    }

    pub(super) fn id(&self) -> String {
        self.block.parsed("id").unwrap_or_default()
    }

    /// The arguments of a call, as the model wrote them.
    pub(super) fn arguments(&self) -> String {
        if self.input.trim().is_empty() {
            self.block.get("input").map_or_else(|| "{}".to_owned(), |input| input.get().to_owned())
        } else {
            self.input.clone()
        }
    }

    /// The arguments of a call as an object. Text that is no object becomes an empty one, which the API requires.
    pub(super) fn input(&self) -> Raw {
        let arguments = self.arguments();
        let is_object = serde_json::from_str::<RawObject>(&arguments).is_ok();
        raw(if is_object { arguments } else { "{}".to_owned() })
    }

    /// The whole block. The provider wants it back exactly like this.
    pub(super) fn build(&self) -> Raw {
        let mut block = self.block.clone();
        match self.kind.as_str() {
            "text" => {
                block.set("text", to_raw(&self.text));
                if !self.citations.is_empty() {
                    block.set("citations", array(self.citations.iter().map(|one| one.get())));
                }
            }
            "thinking" => {
                block.set("thinking", to_raw(&self.thinking));
                if let Some(signature) = &self.signature {
                    block.set("signature", signature.clone());
                }
            }
            _ if self.input.is_empty() => {}
            _ => block.set("input", self.input()),
        }
        block.to_raw()
    }
}
