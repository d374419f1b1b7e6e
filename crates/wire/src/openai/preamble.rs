//! What stands before a conversation.

use switchboard_chat::{FaultKind, Message, ModelFault, Part};

use crate::Ask;

/// The instructions of the settings and of the system messages that the conversation begins with, and how many messages
/// those are. One that holds more than text is part of the conversation.
pub(super) fn of(ask: &Ask<'_>) -> (String, usize) {
    let mut texts: Vec<&str> = ask.settings.instructions.as_deref().into_iter().collect();
    let mut leading = 0;
    for message in ask.messages {
        let Message::System(said) = message else { break };
        let are_texts = said.content.iter().map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image(_) | Part::File { .. } => None,
        });
        let Some(said) = are_texts.collect::<Option<Vec<_>>>() else { break };
        texts.extend(said);
        leading += 1;
    }
    texts.retain(|text| !text.trim().is_empty());
    (texts.join("\n\n"), leading)
}

/// No provider answers nothing, and its own words for that are hard to read.
pub(super) fn nothing_to_answer() -> ModelFault {
    let text = "the conversation has no message that could be answered: say something first";
    ModelFault::new(FaultKind::BadRequest, text)
}

/// A body that cannot be written: never seen, but nothing to panic about.
pub(super) fn unwritable(error: &serde_json::Error) -> ModelFault {
    ModelFault::new(FaultKind::BadRequest, format!("the request cannot be written: {error}"))
}
