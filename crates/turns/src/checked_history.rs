//! A conversation as texts, for content checks. Images and files are named, not shown; what a model thought is left out.

use std::sync::Arc;

use switchboard_chat::{Block, Media, Message, Part, Place, Reply, ToolReturn};
use switchboard_model::CheckHook;
use switchboard_runtime::{
    CheckInput, CheckedConversation, CheckedMessage, CheckedRole, readable_json,
};

/// The conversation in which the calls of its last reply are made.
pub(crate) fn conversation(turn: &str, messages: &[Message]) -> Arc<CheckedConversation> {
    Arc::new(CheckedConversation {
        message: turn.to_owned(),
        user_message: last_of_user(messages),
        messages: messages.iter().map(message).collect(),
    })
}

/// What is checked before a model is asked: all messages since its last reply, with the earlier ones as context.
pub(crate) fn model_request(
    conversation: &str,
    turn: &str,
    instructions: Option<&str>,
    messages: &[Message],
) -> CheckInput {
    let is_reply = |message: &Message| matches!(message, Message::Assistant(_));
    let new = messages.iter().rposition(is_reply).map_or(0, |last| last + 1);
    let (context, content) = messages.split_at(new);
    let instructions = instructions.map(|text| CheckedMessage::new(CheckedRole::System, text));
    CheckInput {
        hook: CheckHook::BeforeModel,
        conversation: conversation.to_owned(),
        message: turn.to_owned(),
        user_message: last_of_user(messages),
        context: instructions.into_iter().chain(context.iter().map(message)).collect(),
        content: content.iter().map(message).collect(),
    }
}

fn last_of_user(messages: &[Message]) -> String {
    let last = messages.iter().rev().find_map(|message| match message {
        Message::User(said) => Some(&said.content),
        Message::System(_) | Message::Assistant(_) | Message::Tool(_) => None,
    });
    last.map(|content| parts(content)).unwrap_or_default()
}

fn message(message: &Message) -> CheckedMessage {
    let (role, text) = match message {
        Message::System(said) => (CheckedRole::System, parts(&said.content)),
        Message::User(said) => (CheckedRole::User, parts(&said.content)),
        Message::Assistant(answer) => (CheckedRole::Assistant, reply(answer)),
        Message::Tool(result) => (CheckedRole::Assistant, returned(result)),
    };
    CheckedMessage { role, text }
}

fn reply(reply: &Reply) -> String {
    let blocks = reply.content.iter().filter_map(|block| match block {
        Block::Text { text, .. } => Some(text.clone()),
        Block::Reasoning { .. } => None,
        Block::ToolCall(call) => {
            let arguments = readable_json(&call.arguments);
            Some(format!("Call of the tool {} with the arguments {arguments}", call.name))
        }
    });
    blocks.collect::<Vec<_>>().join("\n")
}

fn returned(result: &ToolReturn) -> String {
    let structured = result.structured.as_ref().map(readable_json);
    let texts = [Some(parts(&result.content)), structured];
    let texts: Vec<_> = texts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    format!("Result of the tool {}: {}", result.name, texts.join("\n"))
}

fn parts(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text { text } => text.clone(),
        Part::Image(media) => named("image", media),
        Part::File { name, media } => named(name.as_deref().unwrap_or("file"), media),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn named(name: &str, media: &Media) -> String {
    match &media.place {
        Place::Data(data) => {
            format!("({name} left out: {}, {} bytes of base64)", media.media_type, data.len())
        }
        Place::Url(url) => format!("({name}, {}, {url})", media.media_type),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use switchboard_chat::{Said, ToolCall};

    use super::*;

    fn call() -> ToolCall {
        ToolCall {
            id: "c1".into(),
            name: "shop__buy".into(),
            arguments: json!({"what": "a\nb"}),
            unreadable: None,
            origin: None,
            opaque: None,
        }
    }

    fn messages() -> Vec<Message> {
        let image = Media { media_type: "image/png".into(), place: Place::Data("AAAA".into()) };
        let call = call();
        vec![
            Message::system("be kind"),
            Message::User(Said { content: vec![Part::text("buy this"), Part::Image(image)] }),
            Message::Assistant(Reply {
                content: vec![
                    Block::thought("hm"),
                    Block::text("Gladly."),
                    Block::ToolCall(Box::new(call.clone())),
                ],
                ..Reply::default()
            }),
            Message::Tool(ToolReturn {
                structured: Some(json!({"paid": true})),
                ..ToolReturn::failed(&call, "bought")
            }),
        ]
    }

    fn texts(messages: &[CheckedMessage]) -> Vec<(CheckedRole, &str)> {
        messages.iter().map(|message| (message.role, message.text.as_str())).collect()
    }

    #[test]
    fn what_is_new_for_the_model_is_checked_and_the_rest_is_context() {
        let input = model_request("work", "t1", Some("answer in French"), &messages());
        assert_eq!(
            (&*input.conversation, &*input.message, &*input.user_message),
            ("work", "t1", "buy this\n(image left out: image/png, 4 bytes of base64)")
        );
        let called = "Gladly.\nCall of the tool shop__buy with the arguments {\"what\": \"a\nb\"}";
        assert_eq!(
            texts(&input.context),
            [
                (CheckedRole::System, "answer in French"),
                (CheckedRole::System, "be kind"),
                (CheckedRole::User, &input.user_message),
                (CheckedRole::Assistant, called),
            ]
        );
        let result = "Result of the tool shop__buy: bought\n{\"paid\": true}";
        assert_eq!(texts(&input.content), [(CheckedRole::Assistant, result)]);
        let first = model_request("work", "t1", None, &messages()[..2]);
        assert_eq!((first.context.len(), first.content.len()), (0, 2));
        assert_eq!(conversation("t1", &messages()).messages.len(), 4);
    }
}
