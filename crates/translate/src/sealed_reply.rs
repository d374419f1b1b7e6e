//! A model's reply with data that only its provider understands, sealed into a text that an app sends back.
//!
//! Thinking is signed or encrypted, and a provider wants it back exactly in the next request. The app's API has a place for
//! such a text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use switchboard_chat::{Block, Reply, Source};

const PREFIX: &str = "sb1.";

/// The reply as a text; `None` if it has nothing beside its text and its calls.
pub(crate) fn seal(reply: &Reply, source: &Source) -> Option<String> {
    let has_opaque = reply.content.iter().any(|block| match block {
        Block::Text { opaque, .. } | Block::Reasoning { opaque, .. } => opaque.is_some(),
        Block::ToolCall(call) => call.opaque.is_some(),
    });
    if !has_opaque {
        return None;
    }
    let sealed = Reply {
        content: reply.content.clone(),
        source: Some(source.clone()),
        stop: reply.stop,
        ..Reply::default()
    };
    let json = serde_json::to_vec(&sealed).ok()?;
    Some(format!("{PREFIX}{}", STANDARD_NO_PAD.encode(json)))
}

/// Opens a sealed reply, if it is the one that the app sends back: with the same text and the same calls. The calls get the
/// ids that the app knows.
pub(crate) fn open(sealed: &str, visible: &Reply) -> Option<Reply> {
    let json = STANDARD_NO_PAD.decode(sealed.strip_prefix(PREFIX)?).ok()?;
    let mut reply: Reply = serde_json::from_slice(&json).ok()?;
    let known: Vec<_> = visible.calls().collect();
    let is_same = reply.text() == visible.text()
        && reply.calls().count() == known.len()
        && reply.calls().zip(&known).all(|(own, known)| {
            own.name == known.name && (own.arguments == known.arguments || own.unreadable.is_some())
        });
    if !is_same {
        return None;
    }
    let mut ids = known.iter().map(|call| call.id.clone());
    for block in &mut reply.content {
        if let Block::ToolCall(call) = block {
            call.id = ids.next()?;
        }
    }
    Some(reply)
}
