//! OpenAI Responses.

mod item;
mod mcp_call;
mod request;
mod round;
mod stream;
mod whole_item;

pub(crate) use request::ResponsesRequest;
pub(crate) use stream::ResponsesSplicer;

/// The beginning of the ids of answers that are made here.
const ANSWER_PREFIX: &str = "resp_sb";
