//! A reply is read the same way whole and in any chunks.

use proptest::prelude::*;
use switchboard_react::{ReactEnd, ReactParser, ReactPiece};

use crate::replies::{REPLIES, shown};

/// Parses a text in chunks that end at these positions.
fn chunked(text: &str, cuts: &[usize]) -> (Vec<ReactPiece>, ReactEnd) {
    let (mut parser, mut all) = (ReactParser::default(), Vec::new());
    let mut from = 0;
    for cut in cuts.iter().copied().chain([text.len()]) {
        let Some(chunk) = text.get(from..cut) else { continue };
        let mut out = Vec::new();
        parser.feed(chunk, &mut out);
        all.append(&mut out);
        from = cut;
    }
    let mut out = Vec::new();
    let end = parser.finish(&mut out);
    all.append(&mut out);
    (merged(all), end)
}

fn merged(pieces: Vec<ReactPiece>) -> Vec<ReactPiece> {
    let mut all: Vec<ReactPiece> = Vec::new();
    for piece in pieces {
        match (all.last_mut(), piece) {
            (Some(ReactPiece::Reasoning(text)), ReactPiece::Reasoning(more))
            | (Some(ReactPiece::Thought(text)), ReactPiece::Thought(more))
            | (Some(ReactPiece::Answer(text)), ReactPiece::Answer(more)) => text.push_str(&more),
            (_, piece) => all.push(piece),
        }
    }
    all
}

#[test]
fn every_reply_of_the_table_is_read_the_same_character_by_character_and_at_every_cut() {
    for (reply, expected) in REPLIES {
        let all: Vec<_> = reply.char_indices().map(|(at, _)| at).collect();
        let (pieces, end) = chunked(reply, &all);
        assert_eq!(shown(&pieces, end), *expected, "{reply}");
        for cut in all {
            let (pieces, end) = chunked(reply, &[cut]);
            assert_eq!(shown(&pieces, end), *expected, "{reply} at {cut}");
        }
    }
}

/// Texts made of what replies are made of.
fn replies() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        proptest::sample::select(vec![
            "Thought:",
            "Action:",
            "Args:",
            "Final Answer:",
            "Observation:",
            "Answer:",
            "**",
            "`",
            "```",
            "\n",
            "\r\n",
            "\r",
            "{",
            "}",
            "\"",
            "\\",
            "[",
            "]",
            " ",
            ":",
            "<think>",
            "</think>",
            "</thinking>",
            "json",
            "add",
            "none",
            "{\"a\": 1}",
            "Action Input",
            "#",
            ">",
            "- ",
            "\t",
            ". ",
            "Thought: I look. Action: find",
            " Args: {",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,20}",
        "\\PC{0,6}",
    ];
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_reply_is_read_the_same_at_every_chunking(
        reply in replies(),
        cuts in proptest::collection::btree_set(0_usize..400, 0..30),
    ) {
        let cuts: Vec<_> = cuts.into_iter().filter(|at| reply.is_char_boundary(*at)).collect();
        let whole = ReactParser::parse(&reply);
        let (pieces, end) = chunked(&reply, &cuts);
        prop_assert_eq!(&pieces, &merged(whole.0));
        prop_assert_eq!(end, whole.1);
    }

    #[test]
    fn every_announced_call_is_made_and_a_reply_is_used_or_has_a_problem(reply in replies()) {
        let (pieces, end) = ReactParser::parse(&reply);
        let count = |of: fn(&ReactPiece) -> bool| pieces.iter().filter(|piece| of(piece)).count();
        let begun = count(|piece| matches!(piece, ReactPiece::CallBegun(_)));
        let calls = count(|piece| matches!(piece, ReactPiece::Call(_)));
        let answers = count(|piece| matches!(piece, ReactPiece::Answer(_)));
        let thoughts = count(|piece| matches!(piece, ReactPiece::Thought(_)));
        prop_assert_eq!(begun, calls);
        if calls + answers > 0 {
            prop_assert_eq!(end.problem, None);
        } else {
            prop_assert!(thoughts == 0 || end.problem.is_some());
        }
    }
}
