//! Timestamps in sent data, so that a reader on the same machine can measure the latency.

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};

/// The placeholder for a timestamp in the texts of a step; it has the length of a timestamp.
pub const STAMP: &str = "@stamp-of-nanosecond";

/// Nanoseconds of a clock that all processes of a machine share.
pub fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

/// The timestamps in a text, in order.
pub fn stamps(text: &[u8]) -> Vec<u64> {
    let starts = text.iter().enumerate().filter(|(_, byte)| **byte == b'@').map(|(place, _)| place);
    let stamps = starts.filter_map(|start| {
        let digits = text.get(start + 1..start + STAMP.len())?;
        str::from_utf8(digits).ok()?.parse().ok()
    });
    stamps.collect()
}

/// The bytes with the current time in each placeholder.
pub(crate) fn stamped(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> = bytes
        .windows(STAMP.len())
        .enumerate()
        .filter(|(_, window)| *window == STAMP.as_bytes())
        .map(|(place, _)| place)
        .collect();
    let stamp = format!("@{:019}", nanoseconds());
    for place in places {
        bytes[place..place + stamp.len()].copy_from_slice(stamp.as_bytes());
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_can_be_read_again_wherever_it_stands() {
        let before = nanoseconds();
        let sent = stamped(&Bytes::from(format!("a@b {STAMP}, {STAMP}")));
        let read = stamps(&sent);
        assert_eq!((read.len(), sent.len()), (2, 4 + 2 * STAMP.len() + 2));
        assert!(read.iter().all(|stamp| (before..=nanoseconds()).contains(stamp)), "{read:?}");
    }
}
