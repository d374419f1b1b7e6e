//! Lists and renderings as bytes: made once per revision, and served as they are.
//!
//! A client that has the present version gets 304. Clients that accept gzip get bytes that were compressed once.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use serde::Serialize;
use switchboard_auth::Principal;
use switchboard_model::AccessRules;
use switchboard_render::Provider;
use switchboard_runtime::Board;
use switchboard_sessions::{Session, SessionState};

/// How many answers are kept, and how large they are together. When there are more, all are made again.
const KEPT_ANSWERS: usize = 512;
const KEPT_BYTES: usize = 64 << 20;
/// Smaller answers are not worth compressing.
const COMPRESSED_FROM: usize = 1024;

/// What an answer is about, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum AnswerKey {
    Tools { audience: ToolAudience, all: bool },
    Toolsets(Option<Arc<AccessRules>>),
    SessionTools { session: SessionKey, all: bool, sees_policy: bool },
    Rendering { session: SessionKey, provider: Provider, explain: bool },
    Renderings { session: SessionKey, providers: Vec<Provider> },
}

/// The callers that see the same tools.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ToolAudience {
    Overseers,
    Clients(Option<Arc<AccessRules>>),
}

impl ToolAudience {
    pub(crate) fn of(principal: &Principal) -> Self {
        if principal.oversees() { Self::Overseers } else { Self::Clients(principal.access.tools()) }
    }
}

/// A session, which is another one than an earlier one of the same id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey {
    id: Arc<str>,
    created_at_ms: i64,
}

impl SessionKey {
    pub(crate) fn of(session: &Session) -> Self {
        Self { id: session.id.clone(), created_at_ms: session.created_at_ms }
    }
}

/// The version of everything that an answer is made from. Read before the answer is made: then an answer is never older than
/// its stamp says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerStamp {
    snapshot: u64,
    server_changes: u64,
    session: Option<(u64, u64)>,
}

impl AnswerStamp {
    pub(crate) fn of_board(board: &Board) -> Self {
        let (snapshot, server_changes) = (board.version(), board.server_changes());
        Self { snapshot, server_changes, session: None }
    }

    /// The stamp of what a session shows and the board says about it.
    pub(crate) fn of_session(board: &Board, now: &SessionState) -> Self {
        let session = Some((now.revision, now.cached.version()));
        Self { session, ..Self::of_board(board) }
    }

    /// The stamp of what depends on the tools of a session alone.
    pub(crate) fn of_view(now: &SessionState) -> Self {
        let session = Some((now.revision, now.cached.version()));
        Self { snapshot: 0, server_changes: 0, session }
    }
}

/// An answer that is made.
#[derive(Debug)]
pub(crate) struct MadeAnswer {
    bytes: Bytes,
    /// Weak, because the compressed bytes have the same tag.
    etag: HeaderValue,
    compressed: OnceLock<Option<Bytes>>,
}

impl MadeAnswer {
    fn new(bytes: Vec<u8>) -> Self {
        let digest = blake3::hash(&bytes).to_hex();
        let etag = format!("W/\"{}\"", digest.get(..32).unwrap_or_default());
        let etag = HeaderValue::try_from(etag).unwrap_or(HeaderValue::from_static("W/\"\""));
        Self { bytes: bytes.into(), etag, compressed: OnceLock::new() }
    }

    /// The response to a request with these headers.
    pub(crate) fn respond(&self, headers: &HeaderMap) -> Response {
        let mut response = if self.is_known(headers) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            match accepts_gzip(headers).then(|| self.compressed()).flatten() {
                Some(bytes) => {
                    let encoding = (header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                    ([encoding], bytes.clone()).into_response()
                }
                None => self.bytes.clone().into_response(),
            }
        };
        let json = HeaderValue::from_static("application/json");
        let answer = response.headers_mut();
        answer.insert(header::CONTENT_TYPE, json);
        answer.insert(header::ETAG, self.etag.clone());
        answer.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        answer.insert(header::VARY, HeaderValue::from_static("accept-encoding, authorization"));
        response
    }

    /// Whether the client has these bytes already.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(header::IF_NONE_MATCH);
        let mut tags =
            values.iter().filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
        let own = self.etag.to_str().unwrap_or_default().trim_start_matches("W/");
        tags.any(|tag| tag.trim() == "*" || tag.trim().trim_start_matches("W/") == own)
    }

    /// The compressed bytes, if they are worth it; made at the first request for them.
    fn compressed(&self) -> Option<&Bytes> {
        let made = self.compressed.get_or_init(|| {
            let is_large = self.bytes.len() >= COMPRESSED_FROM;
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            // Writing to memory does not fail.
            let is_written = is_large && encoder.write_all(&self.bytes).is_ok();
            is_written.then(|| encoder.finish().ok())?.map(Bytes::from)
        });
        made.as_ref()
    }

    fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Whether a client accepts gzip, also by `*`.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING);
    let mut encodings =
        values.iter().filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
    encodings.any(|encoding| {
        let (name, weight) = encoding.split_once(';').unwrap_or((encoding, ""));
        let is_refused = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0));
        matches!(name.trim(), "gzip" | "x-gzip" | "*") && !is_refused
    })
}

/// The answers that are made, each with the stamp of what it was made from.
#[derive(Debug, Default)]
pub(crate) struct MadeAnswers(Mutex<KeptAnswers>);

#[derive(Debug, Default)]
struct KeptAnswers {
    answers: HashMap<AnswerKey, (AnswerStamp, Arc<MadeAnswer>)>,
    bytes: usize,
}

impl MadeAnswers {
    /// The answer of this stamp; `make` makes its content where it is not there.
    pub(crate) fn get_or_make<T: Serialize>(
        &self,
        key: AnswerKey,
        stamp: AnswerStamp,
        make: impl FnOnce() -> T,
    ) -> Arc<MadeAnswer> {
        if let Some(answer) = self.get(&key, stamp) {
            return answer;
        }
        // Without the lock: a large answer takes milliseconds, and others must not wait for it.
        let bytes = serde_json::to_vec(&make()).unwrap_or_default();
        let answer = Arc::new(MadeAnswer::new(bytes));
        let mut kept = self.0.lock();
        if let Some((_, old)) = kept.answers.remove(&key) {
            kept.bytes -= old.size();
        }
        let size = kept.bytes + answer.size();
        if kept.answers.len() >= KEPT_ANSWERS || size > KEPT_BYTES {
            *kept = KeptAnswers::default();
        }
        kept.bytes += answer.size();
        kept.answers.insert(key, (stamp, answer.clone()));
        answer
    }

    /// The answer of this stamp, if it is made.
    pub(crate) fn get(&self, key: &AnswerKey, stamp: AnswerStamp) -> Option<Arc<MadeAnswer>> {
        let kept = self.0.lock();
        let (_, answer) = kept.answers.get(key).filter(|(made, _)| *made == stamp)?;
        Some(answer.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn headers(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    fn stamp(snapshot: u64) -> AnswerStamp {
        AnswerStamp { snapshot, server_changes: 0, session: None }
    }

    #[test]
    fn an_answer_is_made_once_per_stamp() {
        let answers = MadeAnswers::default();
        let key = AnswerKey::Tools { audience: ToolAudience::Overseers, all: false };
        let one = answers.get_or_make(key.clone(), stamp(1), || "one");
        let same = answers.get_or_make(key.clone(), stamp(1), || "two");
        assert!(Arc::ptr_eq(&one, &same));
        let next = answers.get_or_make(key.clone(), stamp(2), || "two");
        assert_eq!(next.bytes, "\"two\"");
        let all = AnswerKey::Tools { audience: ToolAudience::Overseers, all: true };
        assert_eq!(answers.get_or_make(all, stamp(2), || "all").bytes, "\"all\"");
        for at in 0..2 * KEPT_ANSWERS {
            let session = SessionKey { id: at.to_string().into(), created_at_ms: 0 };
            let key = AnswerKey::SessionTools { session, all: false, sees_policy: false };
            answers.get_or_make(key, stamp(1), || "tools");
        }
        assert!(answers.0.lock().answers.len() <= KEPT_ANSWERS);
    }

    #[test]
    fn a_client_that_has_the_bytes_gets_304() {
        let answer = MadeAnswer::new(b"{}".to_vec());
        let tag = answer.respond(&HeaderMap::new()).headers()[header::ETAG].clone();
        for (value, status) in [
            (tag.to_str().unwrap(), 304),
            (tag.to_str().unwrap().trim_start_matches("W/"), 304),
            ("*", 304),
            ("W/\"other\"", 200),
            ("", 200),
        ] {
            let known = HeaderMap::from_iter([(header::IF_NONE_MATCH, value.parse().unwrap())]);
            let response = answer.respond(&known);
            assert_eq!(response.status().as_u16(), status, "{value}");
            assert_eq!(response.headers()[header::ETAG], tag);
        }
    }

    #[test]
    fn only_clients_that_accept_gzip_get_it() {
        let text = "tools ".repeat(1000);
        let answer = MadeAnswer::new(text.clone().into_bytes());
        for (accepted, is_gzip) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0, br", false),
            ("br, deflate", false),
            ("", false),
        ] {
            let response = answer.respond(&headers(header::ACCEPT_ENCODING, accepted));
            let is_encoded = response.headers().contains_key(header::CONTENT_ENCODING);
            assert_eq!(is_encoded, is_gzip, "{accepted}");
        }
        let compressed = answer.compressed().unwrap();
        let mut read = String::new();
        flate2::read::GzDecoder::new(&**compressed).read_to_string(&mut read).unwrap();
        assert!(read == text && compressed.len() < text.len() / 10);
        assert_eq!(MadeAnswer::new(b"{}".to_vec()).compressed(), None);
    }
}
