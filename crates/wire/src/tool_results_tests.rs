//! Random conversations: the rules of order hold in every format.

use proptest::prelude::*;
use serde_json::json;
use switchboard_chat::{Block, Message, Part, Source, ToolReturn};
use switchboard_model::ProviderKind;

use crate::samples::{call, calls, media, reply, result, source, thought};

/// One element of a random conversation.
#[derive(Debug, Clone)]
enum Step {
    User(String),
    System(String),
    /// Source, whether there is text, and number of calls.
    Reply {
        who: usize,
        text: String,
        thinks: bool,
        calls: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let text = prop_oneof![Just(String::new()), Just(" \n".to_owned()), "[a-z]{1,5}"];
    prop_oneof![
        text.clone().prop_map(Step::User),
        text.clone().prop_map(Step::System),
        (0_usize..4, text, any::<bool>(), 0_usize..4)
            .prop_map(|(who, text, thinks, calls)| Step::Reply { who, text, thinks, calls }),
    ]
}

/// A valid conversation, as stored ones are.
pub(crate) fn conversation(own: Source) -> impl Strategy<Value = Vec<Message>> {
    proptest::collection::vec(step(), 0..12).prop_map(move |steps| {
        let whos = [
            own.clone(),
            Source { model: "another".into(), ..own.clone() },
            source(ProviderKind::OpenAi, "gpt-6"),
            source(ProviderKind::Demo, "demo"),
        ];
        let mut messages = Vec::new();
        let mut count = 0;
        for step in steps {
            match step {
                Step::User(text) => messages.push(Message::user(text)),
                Step::System(text) => messages.push(Message::system(text)),
                Step::Reply { who, text, thinks, calls } => {
                    let first = count;
                    count += calls;
                    messages.extend(answered(&whos[who], text, thinks, first..count));
                }
            }
        }
        messages
    })
}

fn answered(
    who: &Source,
    text: String,
    thinks: bool,
    numbers: std::ops::Range<usize>,
) -> Vec<Message> {
    let seal = json!({"signature": "s", "thoughtSignature": "s", "encrypted_content": "s"});
    let mut content: Vec<Block> = thinks.then(|| thought("t", seal)).into_iter().collect();
    content.push(Block::text(text));
    let ids: Vec<_> = numbers.clone().map(|number| format!("c{number}")).collect();
    content.extend(ids.iter().map(|id| calls(call(id, "find", json!({"a b": id})))));
    let results = ids.iter().rev().zip(numbers).map(|(id, number)| {
        let content = match number % 3 {
            0 => vec![],
            1 => vec![Part::text("r")],
            _ => vec![Part::text("r"), Part::Image(media("image/png", "AA=="))],
        };
        Message::Tool(ToolReturn { is_error: number % 2 == 0, ..result(id, content) })
    });
    [reply(who, content)].into_iter().chain(results).collect()
}
