//! A provider that answers with a script, streamed or whole.

use serde_json::{Value, json};

use crate::scripted::Attempt;

/// One answer of the model: its parts by chunk.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) chunks: Vec<Vec<Value>>,
    pub(crate) finish_reason: &'static str,
    pub(crate) prompt: u64,
}

pub(crate) fn text(text: &str) -> Value {
    json!({"text": text})
}

pub(crate) fn call(id: Option<&str>, name: &str, args: &Value) -> Value {
    let mut call = json!({"name": name, "args": args});
    if let Some(id) = id {
        call["id"] = id.into();
    }
    json!({"functionCall": call})
}

pub(crate) fn signed(mut part: Value) -> Value {
    part["thoughtSignature"] = "c2lnbmVk".into();
    part
}

pub(crate) fn answer(chunks: impl IntoIterator<Item = Vec<Value>>) -> Answer {
    Answer { chunks: chunks.into_iter().collect(), finish_reason: "STOP", prompt: 10 }
}

impl Answer {
    fn chunk(&self, parts: &[Value], is_last: bool) -> Value {
        let content = json!({"role": "model", "parts": parts});
        let mut chunk = json!({
            "candidates": [{"content": content, "index": 0}],
            "usageMetadata": {"promptTokenCount": self.prompt, "totalTokenCount": self.prompt},
            "modelVersion": "gemini-test",
            "responseId": format!("response-{}", self.prompt),
        });
        if is_last {
            chunk["candidates"][0]["finishReason"] = self.finish_reason.into();
            chunk["usageMetadata"]["candidatesTokenCount"] = 5.into();
            chunk["usageMetadata"]["totalTokenCount"] = (self.prompt + 5).into();
        }
        chunk
    }

    pub(crate) fn whole(&self) -> Attempt {
        Attempt::Whole(self.chunk(&self.chunks.concat(), true).to_string())
    }

    pub(crate) fn streamed(&self) -> Attempt {
        Attempt::Events(self.events())
    }

    pub(crate) fn events(&self) -> Vec<(String, String)> {
        let last = self.chunks.len().saturating_sub(1);
        let chunks = self.chunks.iter().enumerate();
        chunks
            .map(|(index, parts)| (String::new(), self.chunk(parts, index == last).to_string()))
            .collect()
    }
}
