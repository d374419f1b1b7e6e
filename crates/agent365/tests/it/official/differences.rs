//! The differences between the package and our client that are meant.

/// Headers that differ in every request, and why.
pub(super) const IN_EVERY_REQUEST: &[(&str, &str)] = &[
    ("user-agent", "our own name, in the same form"),
    ("accept-encoding", "answers are small, and a compressed one could be a bomb"),
];

/// Case, member, the package's value, ours, and why. An absent member is empty.
pub(super) const DIFFERENCES: &[(&str, &str, &str, &str, &str)] = &[];
