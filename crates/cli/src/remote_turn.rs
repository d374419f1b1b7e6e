//! Follows a turn at a running instance, and reconnects when the stream is lost.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use reqwest::Response;
use sse_stream::{Error as SseError, Sse, SseStream};
use switchboard_turns::NewTurn;

use crate::failure::{EXIT_UNREACHABLE, Failure};
use crate::remote::Remote;
use crate::turn_news::{Event, FollowedTurn, News, Told};

/// Longest silence before a reconnect; an instance sends something at least every 15 seconds.
const LONGEST_SILENCE: Duration = Duration::from_mins(1);
/// Maximum number of reconnects, and the first pause.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// A turn that is being followed.
struct Following<'a> {
    remote: &'a Remote,
    session: String,
    turn: String,
    /// The id of the last received event.
    last: u64,
    frames: BoxStream<'static, Result<Sse, SseError>>,
    /// Reconnects since the last event.
    tries: u32,
    is_lost: bool,
    is_over: bool,
}

/// Starts a turn. The turn id makes a repeated request safe: the message is sent only once.
pub(crate) async fn begin<'a>(
    remote: &'a Remote,
    session: &str,
    turn: &str,
    wanted: NewTurn,
) -> Result<FollowedTurn<'a>, Failure> {
    let path = ["sessions", session, "turns"];
    let response = match remote.post_for_events(&path, &wanted).await {
        Err(failure) if failure.kind() == "unreachable" => {
            tokio::time::sleep(FIRST_PAUSE).await;
            remote.post_for_events(&path, &wanted).await?
        }
        answered => answered?,
    };
    let following = Following {
        remote,
        session: session.to_owned(),
        turn: turn.to_owned(),
        last: 0,
        frames: frames(response),
        tries: 0,
        is_lost: false,
        is_over: false,
    };
    let news = stream::unfold(following, |mut following| async move {
        let news = following.next().await?;
        Some((news, following))
    });
    Ok(news.boxed())
}

fn frames(response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    SseStream::from_bytes_stream(response.bytes_stream()).boxed()
}

impl Following<'_> {
    /// `None` after the last event.
    async fn next(&mut self) -> Option<Result<News, Failure>> {
        while !self.is_over {
            if self.is_lost {
                match self.follow_again().await {
                    Ok(()) => self.is_lost = false,
                    Err(failure) => {
                        self.is_over = true;
                        return Some(Err(failure));
                    }
                }
            }
            // Silence, a broken stream and an early end are handled alike: the turn may still run.
            let heard = tokio::time::timeout(LONGEST_SILENCE, self.frames.next()).await;
            let Ok(Some(Ok(frame))) = heard else {
                self.is_lost = true;
                return Some(Ok(News::Lost));
            };
            if let Some(told) = self.told(frame) {
                return Some(Ok(News::Told(told)));
            }
        }
        None
    }

    fn told(&mut self, frame: Sse) -> Option<Told> {
        let told = Told::of(frame.data?);
        if let Some(id) = frame.id.and_then(|id| id.parse().ok()) {
            self.last = id;
        }
        self.tries = 0;
        self.is_over = matches!(told.event, Event::Done { .. });
        Some(told)
    }

    async fn follow_again(&mut self) -> Result<(), Failure> {
        let path = ["sessions", &self.session, "turns", &self.turn, "events"];
        loop {
            tokio::time::sleep(FIRST_PAUSE.saturating_mul(1 << self.tries.min(TRIES))).await;
            self.tries += 1;
            match self.remote.events_after(&path, self.last).await {
                Ok(response) => {
                    self.frames = frames(response);
                    return Ok(());
                }
                Err(failure) if failure.kind() == "unknown_turn" => {
                    return Err(Failure::unreachable(
                        "the instance was restarted during the turn and no longer has it",
                    )
                    .with_hint(Some(self.where_it_is())));
                }
                Err(failure) if failure.code != EXIT_UNREACHABLE || self.tries >= TRIES => {
                    return Err(failure.with_hint(Some(self.where_it_is())));
                }
                Err(_) => {}
            }
        }
    }

    fn where_it_is(&self) -> String {
        format!("`switchboard session history {}` shows what was kept", self.session)
    }
}
