//! A model without a network, for demos and tests: it follows the commands in the last user message. [`demo`] is pure:
//! delays are part of its output.
//!
//! Every line that begins with `/` is a command ([`Order`]); a message without commands gets a friendly answer. After
//! the calls of a turn have results, the model reports them. In a ReACT turn it writes text only (`react_script.rs`).

mod order;
mod react_script;

use std::time::Duration;

use serde_json::Value;
use switchboard_chat::{
    Block, FaultKind, Message, ModelEvent, ModelFault, Part, Reply, Said, Stop, ToolCall,
    ToolReturn, Usage, pieces,
};
use switchboard_render::{RenderedTool, Rendering};

use crate::{ModelRequest, accumulator};
use order::{Order, orders};

/// One step of the demo model: a delay or an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Beat {
    Event(ModelEvent),
    Pause(Duration),
}

/// Delay between two chunks of a text.
const PAUSE: Duration = Duration::from_millis(15);
/// Maximum number of chunks; a longer text has larger chunks, so that it does not take longer.
const MAX_CHUNKS: usize = 100;
/// Words per second of `/slow`.
const SLOW_WORDS: u32 = 5;
/// Maximum number of characters of a result that is reported.
const MAX_REPORTED_CHARS: usize = 600;
/// Number of tools that a friendly answer names.
const MAX_NAMED_TOOLS: usize = 3;

/// The answer of the demo model. `failed_before` is the number of failures in this turn, for `/flaky`. The last event
/// ends the stream, as with every model.
pub fn demo(ask: &ModelRequest<'_>, failed_before: u32) -> std::vec::IntoIter<Beat> {
    if react_script::is_react(ask) {
        let mut player = Player::default();
        let fault = react_script::play(&mut player, ask, failed_before);
        return player.end(ask, fault);
    }
    let begin = ask.messages.iter().rposition(|message| matches!(message, Message::User(_)));
    let text = match begin.and_then(|index| ask.messages.get(index)) {
        Some(Message::User(said)) => said_text(said),
        _ => String::new(),
    };
    let after = ask.messages.get(begin.map_or(0, |index| index + 1)..).unwrap_or_default();
    let mut player = Player::default();
    let orders = orders(&text);
    let results = last_results(after);
    let fault = if orders.is_empty() && results.is_empty() {
        player.say(&friendly(&text, &ask.tools.newest));
        None
    } else if results.is_empty() {
        orders.iter().find_map(|order| player.follow(order, &ask.tools.newest, failed_before))
    } else {
        player.go_on(&orders, &results);
        None
    };
    player.end(ask, fault)
}

/// The results at the end of the conversation.
fn last_results(after: &[Message]) -> Vec<&ToolReturn> {
    let results = after.iter().rev().map_while(|message| match message {
        Message::Tool(result) => Some(result),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
    });
    let mut results: Vec<_> = results.collect();
    results.reverse();
    results
}

/// Collects the steps and the content of the answer.
#[derive(Debug, Default)]
struct Player {
    beats: Vec<Beat>,
    content: Vec<Block>,
    calls: usize,
    words: u64,
    thoughts: u64,
}

impl Player {
    /// Executes one command. A returned fault ends the answer.
    fn follow(&mut self, order: &Order<'_>, tools: &Rendering, failed: u32) -> Option<ModelFault> {
        match order {
            Order::Say(text) => self.say(text),
            Order::Think(text) => self.think(text),
            Order::Call { tool, arguments } | Order::Loop { tool, arguments } => {
                self.call(tool, arguments);
            }
            Order::Tools => self.say(&listed(tools)),
            Order::Help => self.say(&order::known()),
            Order::Slow(seconds) => self.say_slowly(*seconds),
            Order::Error { kind, retry_after } => {
                let text = format!("you asked for it with `/error {kind}`");
                let fault = ModelFault::new(*kind, text);
                return Some(ModelFault { retry_after: *retry_after, ..fault });
            }
            Order::Flaky(times) if failed < *times => {
                let text = format!("you asked for {times} failures, this is number {}", failed + 1);
                return Some(ModelFault::new(FaultKind::Overloaded, text));
            }
            Order::Flaky(times) => self.say(&format!("It worked after {times} failures.")),
            Order::Wrong(why) => self.say(&format!("{why}\n{}", order::known())),
        }
        None
    }

    /// Reports the results, and repeats the calls of `/loop`.
    fn go_on(&mut self, orders: &[Order<'_>], results: &[&ToolReturn]) {
        let told: Vec<_> = results.iter().map(|result| told(result)).collect();
        self.say(&told.join("\n"));
        for order in orders {
            if let Order::Loop { tool, arguments } = order {
                self.call(tool, arguments);
            }
        }
    }

    fn say(&mut self, text: &str) {
        let is_more = matches!(self.content.last(), Some(Block::Text { .. }));
        let text = if is_more { format!("\n{text}") } else { text.to_owned() };
        for piece in in_chunks(&text) {
            self.pause(PAUSE);
            self.text(piece);
        }
    }

    fn say_slowly(&mut self, seconds: u32) {
        let words = seconds.saturating_mul(SLOW_WORDS);
        for word in 1..=words {
            self.pause(Duration::from_secs(1) / SLOW_WORDS);
            self.text(if word == words { "done.".into() } else { format!("{word} ") });
        }
    }

    fn text(&mut self, piece: String) {
        self.words = self.words.saturating_add(count(&piece));
        match self.content.last_mut() {
            Some(Block::Text { text, .. }) => text.push_str(&piece),
            _ => self.content.push(Block::text(piece.clone())),
        }
        self.beats.push(Beat::Event(ModelEvent::Text(piece)));
    }

    fn think(&mut self, text: &str) {
        for piece in in_chunks(text) {
            self.pause(PAUSE);
            self.beats.push(Beat::Event(ModelEvent::Thinking(piece)));
        }
        self.thoughts = self.thoughts.saturating_add(count(text));
        self.content.push(Block::Reasoning { text: text.to_owned(), opaque: None });
    }

    fn call(&mut self, tool: &str, written: &str) {
        let index = self.calls;
        self.calls += 1;
        self.words = self.words.saturating_add(1 + count(written));
        self.pause(PAUSE);
        self.beats.push(Beat::Event(ModelEvent::CallBegun { index, name: tool.to_owned() }));
        let delta = if written.is_empty() { "{}".to_owned() } else { written.to_owned() };
        self.beats.push(Beat::Event(ModelEvent::CallArguments { index, delta }));
        let (arguments, unreadable) = accumulator::arguments(written);
        self.content.push(Block::ToolCall(Box::new(ToolCall {
            // [`switchboard_chat::Turn`] assigns the id.
            id: String::new(),
            name: tool.to_owned(),
            arguments,
            unreadable,
            origin: None,
            opaque: None,
        })));
    }

    fn pause(&mut self, pause: Duration) {
        self.beats.push(Beat::Pause(pause));
    }

    fn end(
        mut self,
        ask: &ModelRequest<'_>,
        fault: Option<ModelFault>,
    ) -> std::vec::IntoIter<Beat> {
        let usage = Usage {
            input_tokens: ask.messages.iter().map(words_of).sum(),
            output_tokens: self.words.saturating_add(self.thoughts),
            reasoning_tokens: self.thoughts,
            ..Usage::default()
        };
        let last = if let Some(fault) = fault {
            ModelEvent::Failed(Box::new(fault))
        } else {
            self.beats.push(Beat::Event(ModelEvent::Usage(usage)));
            ModelEvent::Finished(Box::new(Reply {
                content: self.content,
                source: Some(ask.source.clone()),
                stop: if self.calls > 0 { Stop::ToolCalls } else { Stop::End },
                usage: Some(usage),
                ..Reply::default()
            }))
        };
        self.beats.push(Beat::Event(last));
        self.beats.into_iter()
    }
}

fn friendly(text: &str, tools: &Rendering) -> String {
    let said = if text.trim().is_empty() {
        "you said nothing".to_owned()
    } else {
        format!("you said “{}”", cut(text.trim(), 80))
    };
    let names: Vec<_> =
        tools.tools.iter().take(MAX_NAMED_TOOLS).map(|tool| format!("`{}`", tool.name)).collect();
    let seen = match (names.as_slice(), tools.tools.len()) {
        ([], _) => "I see no tools in this session.".to_owned(),
        (_, all) if all <= MAX_NAMED_TOOLS => format!("I see {}.", names.join(", ")),
        (_, all) => format!("I see {all} tools, such as {}.", names.join(", ")),
    };
    let example = tools.tools.first().map_or("a_tool", |tool| &*tool.name);
    format!(
        "Hello! I am the demo model; {said}, but I only do what I am told. {seen} Write `/call {example} {{}}` and I call \
         it, or `/help` for all that I can do."
    )
}

fn listed(tools: &Rendering) -> String {
    if tools.tools.is_empty() {
        return "I see no tools in this session.".into();
    }
    let line = |tool: &std::sync::Arc<RenderedTool>| match description(tool) {
        Some(text) => format!("- `{}`: {}", tool.name, cut(&text, 80)),
        None => format!("- `{}`", tool.name),
    };
    let lines: Vec<_> = tools.tools.iter().map(line).collect();
    format!("I see {} tools:\n{}", lines.len(), lines.join("\n"))
}

/// The first line of a tool's description, in any provider's format.
fn description(tool: &RenderedTool) -> Option<String> {
    let declared: Value = serde_json::from_str(&tool.json).ok()?;
    let places = [&declared["description"], &declared["function"]["description"]];
    let text = places.into_iter().find_map(Value::as_str)?;
    text.lines().next().filter(|line| !line.is_empty()).map(str::to_owned)
}

fn told(result: &ToolReturn) -> String {
    let (text, media) = pieces(result);
    let more = if media.is_empty() {
        String::new()
    } else {
        format!(" (and {} parts that are not text)", media.len())
    };
    let verb = if result.is_error { "failed" } else { "answered" };
    let text = if text.trim().is_empty() {
        "nothing".into()
    } else {
        cut(text.trim(), MAX_REPORTED_CHARS)
    };
    format!("{} {verb}: {text}{more}", result.name)
}

fn said_text(said: &Said) -> String {
    let texts = said.content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image(_) | Part::File { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn words_of(message: &Message) -> u64 {
    match message {
        Message::System(said) | Message::User(said) => count(&said_text(said)),
        Message::Assistant(reply) => {
            let calls = reply.calls().map(|call| 1 + count(&call.arguments.to_string()));
            count(&reply.text()).saturating_add(calls.sum())
        }
        Message::Tool(result) => count(&pieces(result).0),
    }
}

fn count(text: &str) -> u64 {
    text.split_whitespace().count().try_into().unwrap_or(u64::MAX)
}

fn cut(text: &str, most: usize) -> String {
    let cut: String = text.chars().take(most).collect();
    if cut.len() < text.len() { format!("{cut}...") } else { cut }
}

/// Splits a text into words, or into groups of words if there are many.
fn in_chunks(text: &str) -> Vec<String> {
    let words: Vec<_> = text.split_inclusive([' ', '\n']).collect();
    let size = words.len().div_ceil(MAX_CHUNKS).max(1);
    words.chunks(size).map(<[&str]>::concat).collect()
}

#[cfg(test)]
#[path = "demo/demo_tests.rs"]
mod tests;
