//! Finds environment variables that would hide an edit of the file, or apply to another entry after it.

use super::EntryList;
use crate::overlay;

/// The variable that makes an edit of entry `index` impossible. A variable that sets a whole list hides the file's one. A
/// variable that sets an element is bound to its index: it hides edits of that element and, if `moves_others`, would apply to
/// another element once this one is removed.
pub fn overriding_variable(
    env: &[(String, String)],
    list: EntryList,
    index: usize,
    moves_others: bool,
) -> Option<&str> {
    let is_in_way = |segments: &[&str]| {
        let mut segments = segments.iter();
        let mut next_is = |word: &str| match segments.next() {
            None => Some(true),
            Some(segment) if segment.eq_ignore_ascii_case(word) => None,
            Some(_) => Some(false),
        };
        // A variable for the whole list, or for what holds it, replaces the list of the file.
        if let Some(decided) = list.keys().find_map(&mut next_is) {
            return decided;
        }
        match segments.next().map(|segment| segment.parse::<usize>()) {
            None => true,
            Some(Ok(other)) => other == index || (moves_others && other > index),
            Some(Err(_)) => false,
        }
    };
    overlay::variables(env)
        .into_iter()
        .find(|variable| is_in_way(&variable.segments))
        .map(|variable| variable.name)
}
