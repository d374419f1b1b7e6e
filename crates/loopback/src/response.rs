//! Parses HTTP/1.1 responses: the head, and the framing of the body.

use std::mem::MaybeUninit;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use httparse::{ParserConfig, Response, Status};

const MAX_HEADERS: usize = 100;
/// Maximum size of a head, or of the trailers after the last chunk.
const MAX_HEAD: usize = 64 << 10;
/// Maximum size of a chunk's size line, with its extensions.
const MAX_CHUNK_LINE: usize = 4 << 10;
/// The header in which servers announce how long they keep a connection.
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// Safety margin for a request that crosses the server's close.
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// Smaller pieces are copied, so that their read buffer can be reused at once.
const COPIED: usize = 2 << 10;

/// A malformed response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the answer is not HTTP/1.1: {0}")]
    ResponseHead(httparse::Error),
    #[error("the head of the answer is larger than {MAX_HEAD} bytes")]
    LongHead,
    #[error("the server sent an invalid HTTP header line")]
    Header,
    #[error("the server sent an invalid HTTP status line")]
    Status,
    #[error("the server requests a protocol upgrade")]
    Upgrade,
    #[error("the server sent an invalid Content-Length")]
    Length,
    #[error("invalid chunked encoding in the response")]
    ChunkState,
}

/// The head of a response.
#[derive(Debug)]
pub struct ResponseHead {
    pub status: StatusCode,
    pub headers: HeaderMap,
}

/// A response whose head has been parsed and whose body is still to be read.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) head: ResponseHead,
    pub(crate) body: BodyFraming,
    /// Whether the connection can be reused afterwards.
    pub(crate) is_kept: bool,
    /// How long it can be reused, if the server says so.
    pub(crate) kept_for: Option<Duration>,
}

/// The framing of a body, and the rest that is still to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    Length(u64),
    Chunks(ChunkState),
    /// The body ends with the connection.
    Open,
}

/// The position within a chunked body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChunkState {
    /// Before the size line of the next chunk.
    SizeLine,
    Data(u64),
    /// Before the line break after the data.
    Break,
    /// After the last chunk, with this many bytes of trailers read.
    Trailers(usize),
    Over,
}

/// What the buffer holds of a response body: a piece of it, nothing yet, or its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Piece(Bytes),
    /// More has to be read first.
    Nothing,
    End,
}

/// Takes the head of the response to a request of this method from the buffer, once it is complete. Interim (1xx)
/// responses are skipped.
pub(crate) fn take_head(
    buffer: &mut BytesMut,
    method: &Method,
) -> Result<Option<Begun>, Malformed> {
    loop {
        let Some(begun) = take_any_head(buffer, method)? else {
            return if buffer.len() > MAX_HEAD { Err(Malformed::LongHead) } else { Ok(None) };
        };
        match begun.head.status {
            StatusCode::SWITCHING_PROTOCOLS => return Err(Malformed::Upgrade),
            status if status.is_informational() => {}
            _ => return Ok(Some(begun)),
        }
    }
}

fn take_any_head(buffer: &mut BytesMut, method: &Method) -> Result<Option<Begun>, Malformed> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = Response::new(&mut []);
    let config = ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, buffer, &mut room);
    let parsed = parsed.map_err(Malformed::ResponseHead)?;
    let Status::Complete(length) = parsed else { return Ok(None) };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(Malformed::Status)?;
    // The values are slices of one copy, so that the read buffer is free again.
    let copy = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
    let mut headers = HeaderMap::with_capacity(response.headers.len());
    for header in response.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| Malformed::Header)?;
        let start = header.value.as_ptr().addr() - buffer.as_ptr().addr();
        let value = copy.slice(start..start + header.value.len());
        let value = HeaderValue::from_maybe_shared(value).map_err(|_| Malformed::Header)?;
        headers.append(name, value);
    }
    let is_current = response.version == Some(1);
    buffer.advance(length);
    let body = body_of(status, &headers, method)?;
    // HTTP/1.0 has no chunks.
    let is_odd = !is_current && matches!(body, BodyFraming::Chunks(_));
    let is_kept = body != BodyFraming::Open && !is_odd && stays_open(&headers, is_current);
    let kept_for = kept_for(&headers);
    Ok(Some(Begun { head: ResponseHead { status, headers }, body, is_kept, kept_for }))
}

fn body_of(
    status: StatusCode,
    headers: &HeaderMap,
    method: &Method,
) -> Result<BodyFraming, Malformed> {
    let has_none = status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        || method == Method::HEAD;
    if has_none {
        return Ok(BodyFraming::Length(0));
    }
    // Chunks take precedence over any content length.
    if let Some(last) = headers.get_all(header::TRANSFER_ENCODING).iter().next_back() {
        let coding = last.as_bytes().rsplit(|byte| *byte == b',').next().unwrap_or_default();
        let is_chunked = coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
        return Ok(if is_chunked {
            BodyFraming::Chunks(ChunkState::SizeLine)
        } else {
            BodyFraming::Open
        });
    }
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else { return Ok(BodyFraming::Open) };
    if lengths.any(|other| other != first) {
        return Err(Malformed::Length);
    }
    let length = number(first.as_bytes(), 10).ok_or(Malformed::Length)?;
    Ok(BodyFraming::Length(length))
}

fn stays_open(headers: &HeaderMap, is_current: bool) -> bool {
    let mut words = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii);
    if is_current {
        !words.any(|word| word.eq_ignore_ascii_case(b"close"))
    } else {
        words.any(|word| word.eq_ignore_ascii_case(b"keep-alive"))
    }
}

/// How long a connection can be reused: a little less than its server keeps it.
fn kept_for(headers: &HeaderMap) -> Option<Duration> {
    let said = headers.get(KEEP_ALIVE)?;
    let seconds = said.as_bytes().split(|byte| *byte == b',').find_map(|parameter| {
        let (name, value) =
            parameter.split_at_checked(parameter.iter().position(|b| *b == b'=')?)?;
        let is_timeout = name.trim_ascii().eq_ignore_ascii_case(b"timeout");
        is_timeout.then(|| number(value.get(1..)?.trim_ascii(), 10)).flatten()
    })?;
    let kept = Duration::from_secs(seconds);
    Some(kept.saturating_sub(ON_THE_WAY).max(kept.min(ON_THE_WAY) / 2))
}

/// Digits and nothing else.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    // The parser would accept a sign.
    let is_plain = digits.starts_with(|first: char| first.is_digit(radix));
    u64::from_str_radix(digits, radix).ok().filter(|_| is_plain)
}

impl BodyFraming {
    /// Whether the body is complete.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunks(ChunkState::Over))
    }

    /// Takes the next part of the body from the buffer.
    pub(crate) fn take(&mut self, buffer: &mut BytesMut) -> Result<Taken, Malformed> {
        let piece = match self {
            Self::Length(left) => take_piece(buffer, left),
            Self::Chunks(chunk) => return chunk.take(buffer),
            Self::Open => {
                let mut endless = u64::MAX;
                take_piece(buffer, &mut endless)
            }
        };
        Ok(match piece {
            Some(piece) => Taken::Piece(piece),
            None if self.is_over() => Taken::End,
            None => Taken::Nothing,
        })
    }
}

impl ChunkState {
    fn take(&mut self, buffer: &mut BytesMut) -> Result<Taken, Malformed> {
        self.advance(buffer)?;
        let Self::Data(left) = self else {
            return Ok(if *self == Self::Over { Taken::End } else { Taken::Nothing });
        };
        let Some(piece) = take_piece(buffer, left) else { return Ok(Taken::Nothing) };
        if *left == 0 {
            *self = Self::Break;
            // Advances past the framing, so that the last piece is known to be the last one. A fault in it is reported
            // by the next read.
            let _found_again = self.advance(buffer);
        }
        Ok(Taken::Piece(piece))
    }

    /// Skips all framing in the buffer.
    fn advance(&mut self, buffer: &mut BytesMut) -> Result<(), Malformed> {
        loop {
            let next = match self {
                Self::Data(_) | Self::Over => return Ok(()),
                Self::SizeLine => match line(buffer, MAX_CHUNK_LINE)? {
                    Some(line) => match chunk_length(line)? {
                        0 => (line.len() + 2, Self::Trailers(0)),
                        length => (line.len() + 2, Self::Data(length)),
                    },
                    None => return Ok(()),
                },
                Self::Break => match buffer.get(..2) {
                    Some(b"\r\n") => (2, Self::SizeLine),
                    Some(_) => return Err(Malformed::ChunkState),
                    None => return Ok(()),
                },
                Self::Trailers(before) => match line(buffer, MAX_HEAD - *before)? {
                    Some([]) => (2, Self::Over),
                    Some(line) => (line.len() + 2, Self::Trailers(*before + line.len() + 2)),
                    None => return Ok(()),
                },
            };
            let (length, next) = next;
            buffer.advance(length);
            *self = next;
        }
    }
}

/// The first line in the buffer, without its end; `None` if it is incomplete.
fn line(buffer: &[u8], limit: usize) -> Result<Option<&[u8]>, Malformed> {
    match memchr::memchr(b'\n', buffer) {
        Some(end) if end < limit => {
            let line = buffer.get(..end).and_then(|line| line.strip_suffix(b"\r"));
            line.map(Some).ok_or(Malformed::ChunkState)
        }
        None if buffer.len() < limit => Ok(None),
        _ => Err(Malformed::ChunkState),
    }
}

/// The chunk size: the line up to the first `;`.
fn chunk_length(line: &[u8]) -> Result<u64, Malformed> {
    let length = line.split(|byte| *byte == b';').next().unwrap_or_default();
    number(length.trim_ascii_end(), 16).ok_or(Malformed::ChunkState)
}

/// Takes the available part of `left` bytes.
fn take_piece(buffer: &mut BytesMut, left: &mut u64) -> Option<Bytes> {
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
    if length == 0 {
        return None;
    }
    *left -= length as u64;
    match buffer.get(..length) {
        Some(piece) if length <= COPIED => {
            let piece = Bytes::copy_from_slice(piece);
            buffer.advance(length);
            Some(piece)
        }
        _ => Some(buffer.split_to(length).freeze()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a response that arrives in these pieces: its head, its body, and the data after it.
    fn read(pieces: &[&[u8]], method: &Method) -> Result<(Begun, Vec<u8>, Vec<u8>), Malformed> {
        let (mut buffer, mut begun) = (BytesMut::new(), None);
        let (mut body, mut read) = (BodyFraming::Open, Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            if begun.is_none() {
                begun = take_head(&mut buffer, method)?;
                body = begun.as_ref().map_or(BodyFraming::Open, |begun| begun.body.clone());
            }
            while begun.is_some()
                && let Taken::Piece(piece) = body.take(&mut buffer)?
            {
                read.extend_from_slice(&piece);
            }
        }
        let mut begun = begun.expect("the head is there");
        begun.body = body;
        Ok((begun, read, buffer.to_vec()))
    }

    fn show(answer: &str, method: &Method) -> String {
        let answer = answer.replace('|', "\r\n");
        match read(&[answer.as_bytes()], method) {
            Ok((begun, body, left)) => {
                let end = match begun.body {
                    body if body.is_over() => "over",
                    BodyFraming::Open => "open",
                    _ => "more",
                };
                let kept = if begun.is_kept { "kept" } else { "closed" };
                let (body, left) = (String::from_utf8_lossy(&body), String::from_utf8_lossy(&left));
                format!("{} {body:?} {end} {kept} {left:?}", begun.head.status.as_u16())
            }
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn the_end_of_an_answer_is_where_its_head_says() {
        let check = |answer: &str, expected: &str| {
            assert_eq!(show(answer, &Method::POST), expected, "{answer}");
        };
        check("HTTP/1.1 200 OK|content-length: 2||abc", r#"200 "ab" over kept "c""#);
        check("HTTP/1.1 200 OK|Content-Length: 4||abc", r#"200 "abc" more kept """#);
        check("HTTP/1.1 200|content-length:0||", r#"200 "" over kept """#);
        check("HTTP/1.1 204 No Content||", r#"204 "" over kept """#);
        check("HTTP/1.1 304 x|content-length: 9||", r#"304 "" over kept """#);
        check("HTTP/1.1 200 OK||abc", r#"200 "abc" open closed """#);
        check("HTTP/1.0 200 OK|content-length: 1||a", r#"200 "a" over closed """#);
        check(
            "HTTP/1.0 200 OK|content-length: 1|connection: Keep-Alive||a",
            r#"200 "a" over kept """#,
        );
        check(
            "HTTP/1.1 200 OK|content-length: 1|connection: x, Close||a",
            r#"200 "a" over closed """#,
        );
        check(
            "HTTP/1.0 200 OK|transfer-encoding: chunked|connection: keep-alive||1|a|0||",
            r#"200 "a" over closed """#,
        );
        check("HTTP/1.1 200 OK|a:|b: \t|content-length: 1||a", r#"200 "a" over kept """#);
        check("HTTP/1.1 100 x||HTTP/1.1 103 y|link: z||HTTP/1.1 204 n||", r#"204 "" over kept """#);
        let chunked = "HTTP/1.1 200 OK|transfer-encoding: chunked|";
        let check_chunks =
            |rest: &str, expected: &str| check(&format!("{chunked}{rest}"), expected);
        check_chunks("|2|ab|1;x=y|c|0||", r#"200 "abc" over kept """#);
        check_chunks("|A |0123456789|0|a: b|c: d||z", r#"200 "0123456789" over kept "z""#);
        check_chunks("|2|ab|1", r#"200 "ab" more kept "1""#);
        // The length of the chunks counts.
        check_chunks("content-length: 1||2|ab|0||", r#"200 "ab" over kept """#);
        check("HTTP/1.1 200 OK|transfer-encoding: gzip||ab", r#"200 "ab" open closed """#);
        check(
            "HTTP/1.1 200 OK|transfer-encoding: gzip, Chunked||1|a|0||",
            r#"200 "a" over kept """#,
        );
        assert_eq!(
            show("HTTP/1.1 200 OK|content-length: 9||", &Method::HEAD),
            r#"200 "" over kept """#
        );
    }

    #[test]
    fn a_connection_is_kept_for_less_long_than_its_server_keeps_it() {
        let check = |said: &str, expected: Option<u64>| {
            let answer = format!("HTTP/1.1 204 No Content|{said}|").replace('|', "\r\n");
            let (begun, ..) = read(&[answer.as_bytes()], &Method::POST).unwrap();
            assert_eq!(begun.kept_for, expected.map(Duration::from_millis), "{said}");
        };
        check("", None);
        check("Keep-Alive: timeout=5|", Some(4000));
        check("keep-alive: max=100, Timeout = 72|", Some(71_000));
        // At least half of it, so that a connection in constant use is not replaced for each request.
        check("keep-alive: timeout=1|", Some(500));
        check("keep-alive: timeout=0|", Some(0));
        for odd in ["timeout", "timeout=", "timeout=-1", "timeout=5s", "max=100", ""] {
            check(&format!("keep-alive: {odd}|"), None);
        }
    }

    #[test]
    fn what_is_no_answer_is_said_to_be_none() {
        let check = |answer: &str, expected: Malformed| {
            assert_eq!(show(answer, &Method::GET), expected.to_string(), "{answer}");
        };
        check("SSH-2.0-OpenSSH_9||", Malformed::ResponseHead(httparse::Error::Version));
        check("HTTP/1.1 101 x|upgrade: y||", Malformed::Upgrade);
        check("HTTP/1.1 200 OK|a b: c||", Malformed::ResponseHead(httparse::Error::HeaderName));
        check(&format!("HTTP/1.1 200 OK|a: {}", "a".repeat(MAX_HEAD)), Malformed::LongHead);
        let many = "a: b|".repeat(MAX_HEADERS + 1);
        check(
            &format!("HTTP/1.1 200 OK|{many}|"),
            Malformed::ResponseHead(httparse::Error::TooManyHeaders),
        );
        for length in ["-1", "+1", "1.0", "", "1, 2", "99999999999999999999"] {
            check(&format!("HTTP/1.1 200 OK|content-length: {length}||"), Malformed::Length);
        }
        let two = "content-length: 1|content-length: 2";
        check(&format!("HTTP/1.1 200 OK|{two}||"), Malformed::Length);
        for chunks in ["x|", "+1|a|", "-1|", "|", "1|ab|", "1\n", "11111111111111111|", ";|"] {
            let answer = format!("HTTP/1.1 200 OK|transfer-encoding: chunked||{chunks}");
            check(&answer, Malformed::ChunkState);
        }
        let endless = "1".repeat(MAX_CHUNK_LINE);
        let trailers = format!("0|{}", "a: b|".repeat(MAX_HEAD / 6 + 1));
        for chunks in [endless, trailers] {
            let answer = format!("HTTP/1.1 200 OK|transfer-encoding: chunked||{chunks}");
            check(&answer, Malformed::ChunkState);
        }
    }

    proptest! {
        /// The pieces in which a response arrives make no difference.
        #[test]
        fn it_does_not_matter_how_an_answer_is_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..5000), 0..5),
            is_chunked: bool,
            mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        ) {
            let whole = bodies.concat();
            let mut answer = b"HTTP/1.1 200 OK\r\ncontent-type: x\r\n".to_vec();
            if is_chunked {
                answer.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                for body in &bodies {
                    answer.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
                    answer.extend_from_slice(body);
                    answer.extend_from_slice(b"\r\n");
                }
                answer.extend_from_slice(b"0\r\n\r\n");
            } else {
                answer.extend_from_slice(format!("content-length: {}\r\n\r\n", whole.len()).as_bytes());
                answer.extend_from_slice(&whole);
            }
            let mut places: Vec<usize> = cuts.drain(..).map(|cut| cut.index(answer.len())).collect();
            places.extend([0, answer.len()]);
            places.sort_unstable();
            let pieces: Vec<&[u8]> = places.windows(2).map(|at| &answer[at[0]..at[1]]).collect();
            let (begun, body, left) = read(&pieces, &Method::POST).unwrap();
            prop_assert!(begun.body.is_over() && begun.is_kept && left.is_empty());
            prop_assert_eq!(begun.head.headers.get("content-type").unwrap(), "x");
            prop_assert_eq!(body, whole);
        }

        #[test]
        fn nothing_that_comes_is_too_much(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            const STARTS: [&[u8]; 4] = [
                b"",
                b"HTTP/1.1 200 OK\r\n",
                b"HTTP/1.1 200 OK\r\na:",
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            ];
            for start in STARTS {
                let mut buffer = BytesMut::from(start);
                buffer.extend_from_slice(&bytes);
                buffer.extend_from_slice(b"\r\n\r\n");
                let Ok(Some(mut begun)) = take_head(&mut buffer, &Method::GET) else { continue };
                while let Ok(Taken::Piece(_)) = begun.body.take(&mut buffer) {}
            }
        }
    }
}
