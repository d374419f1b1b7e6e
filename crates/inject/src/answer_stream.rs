//! The answer to an app that asked for a stream.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::app_turn::AppTurn;

/// The interval of frames that keep an idle connection open. A busy stream has them too.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The pieces of an answer. Dropping it cancels the turn.
pub type AnswerStream = BoxStream<'static, Bytes>;

struct StreamedTurn {
    turn: AppTurn,
    keep_alive: Interval,
}

/// The stream of a turn that has its first frames.
pub(crate) fn of_turn(turn: AppTurn) -> AnswerStream {
    // A fixed interval: resetting it at each event would cost a timer each time.
    let mut keep_alive = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let streamed = StreamedTurn { turn, keep_alive };
    stream::unfold(streamed, |mut streamed| async move {
        let frames = streamed.next().await?;
        Some((frames, streamed))
    })
    .boxed()
}

impl StreamedTurn {
    /// The next frames; `None` after the last ones.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frames) = self.turn.take_frames() {
                return Some(frames);
            }
            if self.turn.is_over() {
                return None;
            }
            tokio::select! {
                biased;
                () = self.turn.advance_stream() => {}
                _ = self.keep_alive.tick() => self.turn.keep_alive(),
            }
        }
    }
}
