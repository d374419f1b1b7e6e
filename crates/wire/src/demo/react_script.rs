//! The demo model in a ReACT turn: it has no tools but those of its prompt, and writes text only. Each `/call` is one
//! action; the next one follows when the observation of the last has come.

use switchboard_chat::{Message, ModelFault, Part, Said};

use super::order::{Order, known, orders};
use super::{MAX_NAMED_TOOLS, Player, said_text};
use crate::ModelRequest;

const OBSERVATION: &str = "Observation:";

/// Whether the request comes from a ReACT turn: it declares no tools, and its instructions ask for actions.
pub(super) fn is_react(ask: &ModelRequest<'_>) -> bool {
    let instructions = ask.settings.instructions.as_deref().unwrap_or_default();
    ask.tools.newest.tools.is_empty() && instructions.contains("\nFinal Answer:")
}

/// Plays the next reply. A returned fault ends the answer.
pub(super) fn play(
    player: &mut Player,
    ask: &ModelRequest<'_>,
    failed_before: u32,
) -> Option<ModelFault> {
    let begin = ask.messages.iter().rposition(|message| asked(message).is_some());
    let text = begin.and_then(|index| asked(ask.messages.get(index)?)).unwrap_or_default();
    let after = ask.messages.get(begin.map_or(0, |index| index + 1)..).unwrap_or_default();
    let observed: Vec<String> = after.iter().filter_map(observation).collect();
    let orders = orders(&text);
    let actions: Vec<_> = orders.iter().filter(|order| is_action(order)).collect();
    let next = match actions.last() {
        // `/loop` never ends.
        Some(last @ Order::Loop { .. }) => Some(actions.get(observed.len()).unwrap_or(last)),
        _ => actions.get(observed.len()),
    };
    if observed.is_empty() {
        for order in &orders {
            match order {
                Order::Think(thought) => player.say(&format!("Thought: {thought}")),
                Order::Error { .. } | Order::Flaky(_) => {
                    if let Some(fault) = player.follow(order, &ask.tools.newest, failed_before) {
                        return Some(fault);
                    }
                }
                _ => {}
            }
        }
    }
    match next {
        Some(Order::Call { tool, arguments } | Order::Loop { tool, arguments }) => {
            let arguments = if arguments.is_empty() { "{}" } else { arguments };
            let (step, steps) = (observed.len() + 1, actions.len());
            player.say(&format!(
                "Thought: step {step} of {steps}: I call {tool}.\nAction: {tool}\nArgs: {arguments}"
            ));
        }
        _ => player
            .say(&format!("Final Answer: {}", answer(&text, &orders, &actions, &observed, ask))),
    }
    None
}

fn is_action(order: &Order<'_>) -> bool {
    matches!(order, Order::Call { .. } | Order::Loop { .. })
}

/// What the user asks in this message. After a turn that was cancelled, it follows the observations of that turn in the
/// same message.
fn asked(message: &Message) -> Option<String> {
    let Message::User(said) = message else { return None };
    let is_observation =
        |part: &Part| matches!(part, Part::Text { text } if text.starts_with(OBSERVATION));
    let Some(last) = said.content.iter().rposition(is_observation) else {
        return Some(said_text(said));
    };
    let content = said.content.get(last + 1..).unwrap_or_default().to_vec();
    let text = said_text(&Said { content });
    (!text.trim().is_empty()).then_some(text)
}

/// The text of an observation.
fn observation(message: &Message) -> Option<String> {
    let Message::User(said) = message else { return None };
    let first = said.content.iter().find_map(|part| match part {
        Part::Text { text } => text.strip_prefix(OBSERVATION),
        Part::Image(_) | Part::File { .. } => None,
    });
    first.map(|text| text.trim().to_owned())
}

fn answer(
    text: &str,
    orders: &[Order<'_>],
    actions: &[&Order<'_>],
    observed: &[String],
    ask: &ModelRequest<'_>,
) -> String {
    let mut lines = Vec::new();
    for (action, result) in actions.iter().zip(observed) {
        if let Order::Call { tool, .. } | Order::Loop { tool, .. } = action {
            lines.push(match result.strip_prefix("Error:") {
                Some(error) => format!("{tool} failed:{error}"),
                None => format!("{tool} answered: {result}"),
            });
        }
    }
    for order in orders {
        match order {
            Order::Say(text) => lines.push((*text).to_owned()),
            Order::Tools => lines.push(listed(ask)),
            Order::Help => lines.push(known()),
            Order::Wrong(why) => lines.push(format!("{why}\n{}", known())),
            Order::Slow(seconds) => lines.push(format!("I would talk for {seconds} seconds.")),
            Order::Flaky(times) => lines.push(format!("It worked after {times} failures.")),
            Order::Think(_) | Order::Call { .. } | Order::Loop { .. } | Order::Error { .. } => {}
        }
    }
    if lines.is_empty() {
        let said = text.trim();
        lines.push(format!(
            "Hello! I am the demo model without native tool calls; you said “{said}”. {} Write `/call TOOL {{}}` and I call that tool.",
            listed(ask)
        ));
    }
    lines.join("\n")
}

/// The tools that the prompt lists, as far as the model can tell: the lines `- name`.
fn listed(ask: &ModelRequest<'_>) -> String {
    let prompt = ask.settings.instructions.as_deref().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let names: Vec<_> = prompt
        .lines()
        .filter_map(|line| line.strip_prefix("- ")?.split(|c| !is_name(c)).next())
        .filter(|name| !name.is_empty())
        .collect();
    match names.as_slice() {
        [] => "My prompt lists no tools.".into(),
        names if names.len() <= MAX_NAMED_TOOLS => {
            format!("My prompt lists {}.", names.join(", "))
        }
        names => {
            let first = names.get(..MAX_NAMED_TOOLS).unwrap_or_default().join(", ");
            format!("My prompt lists {} tools, such as {first}.", names.len())
        }
    }
}
