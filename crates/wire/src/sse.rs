//! Decodes server-sent events from chunks of any size.
//!
//! Hand-written: existing libraries return owned strings and need a stream. Every delta of every model passes through
//! here, so an event that arrived in one chunk is passed on without a copy.

use memchr::memchr2;

/// Decodes events. Comments, ids and retry times are skipped.
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// The incomplete last line.
    line: Vec<u8>,
    /// The data of the current event, unless it is a single line of the current chunk.
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    /// Whether the last byte was a carriage return: a line feed after it does not end another line.
    after_return: bool,
    began: bool,
    /// Maximum size of an event.
    most: usize,
}

/// An event exceeds the maximum size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// The parsed content of a line.
enum Line<'a> {
    End,
    Data(&'a [u8]),
    Name(&'a [u8]),
    Other,
}

impl SseDecoder {
    /// A decoder for events of at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Decodes a chunk and calls `on` with the name (may be empty) and data of every complete event. `on` returns
    /// whether to continue.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        mut on: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), TooLarge> {
        // The data of the current event, while it is a single line of this chunk.
        let mut here: Option<&[u8]> = None;
        loop {
            if self.after_return && !bytes.is_empty() {
                self.after_return = false;
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else { break };
            let (line, rest) = bytes.split_at(end);
            self.after_return = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            if !self.line.is_empty() {
                self.line.extend_from_slice(line);
                let held = std::mem::take(&mut self.line);
                match read(self.unmarked(&held)) {
                    Line::Data(data) => self.push(data),
                    Line::Name(name) => self.set_name(name),
                    Line::End | Line::Other => {}
                }
                self.began = true;
                continue;
            }
            let line = self.unmarked(line);
            self.began = true;
            match read(line) {
                Line::Data(data) if here.is_none() && !self.has_data => here = Some(data),
                Line::Data(data) => {
                    self.keep(&mut here);
                    self.push(data);
                }
                Line::Name(name) => self.set_name(name),
                Line::End if !self.dispatch(here.take(), &mut on) => return Ok(()),
                Line::End | Line::Other => {}
            }
            if self.data.len() > self.most || here.is_some_and(|data| data.len() > self.most) {
                return Err(TooLarge);
            }
        }
        self.keep(&mut here);
        self.line.extend_from_slice(bytes);
        if self.line.len().saturating_add(self.data.len()) > self.most {
            return Err(TooLarge);
        }
        Ok(())
    }

    /// Passes on the last event if the stream ended without the final blank line; it may be incomplete.
    pub fn finish(&mut self, mut on: impl FnMut(&[u8], &[u8]) -> bool) {
        let held = std::mem::take(&mut self.line);
        if let Line::Data(data) = read(&held) {
            self.push(data);
        }
        self.dispatch(None, &mut on);
    }

    /// Removes a byte order mark at the start of the stream.
    fn unmarked<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let mark = if self.began { None } else { line.strip_prefix(b"\xef\xbb\xbf") };
        mark.unwrap_or(line)
    }

    fn dispatch(&mut self, here: Option<&[u8]>, on: &mut impl FnMut(&[u8], &[u8]) -> bool) -> bool {
        let wants_more = match here {
            Some(data) => on(&self.name, data),
            None if self.has_data => on(&self.name, &self.data),
            None => true,
        };
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        wants_more
    }

    fn keep(&mut self, here: &mut Option<&[u8]>) {
        if let Some(data) = here.take() {
            self.push(data);
        }
    }

    fn push(&mut self, data: &[u8]) {
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(data);
    }

    fn set_name(&mut self, name: &[u8]) {
        self.name.clear();
        self.name.extend_from_slice(name);
    }
}

fn read(line: &[u8]) -> Line<'_> {
    let value = |rest: &'_ [u8]| match rest {
        [] => Some(0),
        [b':', b' ', ..] => Some(2),
        [b':', ..] => Some(1),
        _ => None,
    };
    if line.is_empty() {
        return Line::End;
    }
    if let Some(rest) = line.strip_prefix(b"data")
        && let Some(skip) = value(rest)
    {
        return Line::Data(rest.get(skip..).unwrap_or_default());
    }
    if let Some(rest) = line.strip_prefix(b"event")
        && let Some(skip) = value(rest)
    {
        return Line::Name(rest.get(skip..).unwrap_or_default());
    }
    Line::Other
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = SseDecoder::new(1 << 20);
        let mut all = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for piece in pieces {
            decoder
                .feed(piece, |name, data| {
                    all.push((text(name), text(data)));
                    true
                })
                .unwrap();
        }
        decoder.finish(|name, data| {
            all.push((text(name), text(data)));
            true
        });
        all
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(name, data)| ((*name).into(), (*data).into())).collect();
        assert_eq!(events(&[text.as_bytes()]), expected, "{text:?} in one piece");
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(events(&bytes), expected, "{text:?} byte by byte");
    }

    #[test]
    fn all_line_ends_names_comments_and_marks_are_understood() {
        for end in ["\n", "\r\n", "\r"] {
            let lines =
                [": hello", "", "event: a", "data: 1", "", "data:2", "data: 3", "id: 9", ""];
            let text = lines.join(end) + end;
            check(&text, &[("a", "1"), ("", "2\n3")]);
        }
        check("\u{feff}data: x\n\n", &[("", "x")]);
        check("data\n\ndatabase: x\n\n", &[("", "")]);
        check("event: only a name\n\ndata: y\n\n", &[("", "y")]);
        check("data: not ended", &[("", "not ended")]);
    }

    #[test]
    fn an_event_that_is_too_large_ends_the_reading() {
        let mut decoder = SseDecoder::new(100);
        let line = [b'x'; 60];
        assert_eq!(decoder.feed(b"data: ", |_, _| true), Ok(()));
        assert_eq!(decoder.feed(&line, |_, _| true), Ok(()));
        assert_eq!(decoder.feed(&line, |_, _| true), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_events(
            text in "(data: ?[a-zé]{0,6}|event: [ab]|: c|id: 1|)(\r\n|\n|\r){1,2}((data: ?[a-zé]{0,6}|event: [ab]|)(\r\n|\n|\r)){0,8}",
            cuts in proptest::collection::vec(0_usize..200, 0..12),
        ) {
            let whole = events(&[text.as_bytes()]);
            let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| *cut <= text.len()).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut rest = text.as_bytes();
            let mut at = 0;
            for cut in cuts {
                let (piece, after) = rest.split_at(cut - at);
                pieces.push(piece);
                (rest, at) = (after, cut);
            }
            pieces.push(rest);
            prop_assert_eq!(events(&pieces), whole);
        }
    }
}
