//! Requests that are sent to the provider as they are.

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;

use switchboard_providers::PassedResponse;
use tokio::sync::OwnedSemaphorePermit;

use crate::answer_stream::AnswerStream;
use crate::round::Upstream;
use crate::{AnswerBody, AppAnswer, Failure};

/// The maximum size of an answer that is not a stream.
const MAX_WHOLE_BYTES: usize = 16 << 20;

/// Sends a request and passes the answer on.
pub(crate) async fn pass(upstream: &Upstream, body: Bytes) -> Result<AppAnswer, Failure> {
    let response = upstream.send(body).await?;
    let headers = response.headers.clone();
    let body = if upstream.is_streamed {
        AnswerBody::Stream(pieces(response))
    } else {
        AnswerBody::Whole(response.whole(MAX_WHOLE_BYTES).await?)
    };
    Ok(AppAnswer { headers, body })
}

/// The pieces of a response. One that breaks off ends without its last event, as it does at the provider.
fn pieces(response: PassedResponse) -> AnswerStream {
    stream::unfold(response, |mut response| async move {
        match response.chunk().await {
            Ok(Some(piece)) => Some((piece, response)),
            Ok(None) => None,
            Err(fault) => {
                tracing::debug!(%fault, "an answer that is passed on broke off");
                None
            }
        }
    })
    .boxed()
}

impl AppAnswer {
    /// The answer, which keeps its place among the running ones until it has been sent.
    pub(crate) fn holding(self, place: OwnedSemaphorePermit) -> Self {
        let body = match self.body {
            AnswerBody::Whole(body) => AnswerBody::Whole(body),
            AnswerBody::Stream(pieces) => {
                let held = stream::unfold((pieces, place), |(mut pieces, place)| async move {
                    let piece = pieces.next().await?;
                    Some((piece, (pieces, place)))
                });
                AnswerBody::Stream(held.boxed())
            }
        };
        Self { body, ..self }
    }
}
