//! What each API does with the answers of several rounds.

use std::fmt::Debug;

use serde_json::value::RawValue;
use switchboard_chat::ToolReturn;

use crate::Refusal;
use crate::raw_json::Raw;
use crate::request_format::ShownReply;

/// Joins the answers of all rounds into one answer in the format of one API.
///
/// For each round: [`Splicer::event`] for each event of the provider (or [`Splicer::whole`] once, if the app asked for no
/// stream), then [`Splicer::end_round`], then [`Splicer::call_ended`] for each call that ran here. After the last round
/// [`Splicer::finish`] or [`Splicer::fail`] writes the end, exactly once. `out` gets complete SSE frames.
pub(crate) trait Splicer: Send + Debug {
    /// One event of the provider's stream: the name of the event, if it has one, and its data.
    fn event(
        &mut self,
        name: &str,
        data: &str,
        owner: &dyn Fn(&str) -> ToolOwner,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal>;

    /// The whole answer of a round, for an app that asked for no stream.
    fn whole(&mut self, body: &str, owner: &dyn Fn(&str) -> ToolOwner) -> Result<(), Refusal>;

    /// The stream of a round has ended. A stream that was cut off before its end is an error.
    fn end_round(&mut self, out: &mut Vec<u8>) -> Result<SplicedRound, Refusal>;

    /// A call that ran here has ended. Called once for each, in any order.
    fn call_ended(&mut self, call: &PendingCall, result: &ToolReturn, out: &mut Vec<u8>);

    /// Writes the end of the stream.
    fn finish(&mut self, why: FinishReason, out: &mut Vec<u8>);

    /// The whole answer of all rounds, for an app that asked for no stream.
    fn finish_whole(&mut self, why: FinishReason) -> String;

    /// Ends a stream that has begun with the error of this API.
    fn fail(&mut self, refusal: &Refusal, out: &mut Vec<u8>);

    /// What the app was shown so far of text and of its own calls.
    fn shown(&self) -> ShownReply;

    /// Ids in the reply that the app was shown and sends back. They find the record where the conversation before the reply
    /// was changed.
    fn handles(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether anything of the current round was written: then it cannot be repeated.
    fn has_shown_of_round(&self) -> bool;

    /// Forgets what was read of the current round, which is repeated.
    fn abandon_round(&mut self);

    /// A frame that keeps the connection open while calls run.
    fn keep_alive(&self) -> &'static [u8];

    /// The whole answer as it will end, where the app may ask for it later.
    fn stored_answer(&self, why: FinishReason) -> Option<Raw> {
        let _ = why;
        None
    }

    /// Where the provider ran code in the last round: later rounds go on there.
    fn container(&self) -> Option<&RawValue> {
        None
    }

    /// The id of the answer that the app sees, where the API has one.
    fn answer_id(&self) -> Option<&str> {
        None
    }
}

/// Whose tool a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolOwner {
    /// It runs here.
    Session,
    /// Its call goes back to the app.
    App,
}

/// A call of a session tool in the provider's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingCall {
    /// The provider's id of the call; made by us where the provider gives none.
    pub(crate) id: String,
    /// The declared name.
    pub(crate) name: String,
    /// The arguments as the model wrote them.
    pub(crate) arguments: String,
}

/// The answer of one round.
#[derive(Debug, Default)]
pub(crate) struct SplicedRound {
    /// Calls of session tools, in the order of the answer.
    pub(crate) calls: Vec<PendingCall>,
    /// The number of calls that the app was shown.
    pub(crate) app_calls: usize,
    /// The answer as elements of the conversation, exactly as the provider wants them back.
    pub(crate) replay: Vec<Raw>,
    pub(crate) output_tokens: Option<u64>,
    /// The id under which the provider stores the answer, where it does.
    pub(crate) upstream_id: Option<String>,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishReason {
    /// As the provider's last round ended.
    Model,
    /// The app's maximum of output tokens is used up.
    OutputLimit,
    /// The maximum of rounds is reached.
    RoundLimit,
}
