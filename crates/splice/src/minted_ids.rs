//! Ids of an answer, made from the seed of its turn.

/// Makes ids that no other turn has.
#[derive(Debug, Clone)]
pub(crate) struct MintedIds {
    seed: Box<str>,
    made: u64,
}

impl MintedIds {
    pub(crate) fn new(seed: &str) -> Self {
        Self { seed: seed.into(), made: 0 }
    }

    /// The next id: the prefix and 32 hexadecimal digits.
    pub(crate) fn next(&mut self, prefix: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.seed.as_bytes()).update(&self.made.to_le_bytes());
        self.made += 1;
        let digits = hasher.finalize().to_hex();
        format!("{prefix}{}", digits.get(..32).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_within_a_turn_and_between_turns() {
        let (mut one, mut again, mut other) =
            (MintedIds::new("a"), MintedIds::new("a"), MintedIds::new("b"));
        let first = one.next("call_");
        assert_eq!(first.len(), 5 + 32);
        assert_eq!(first, again.next("call_"));
        assert_ne!(first, other.next("call_"));
        assert_ne!(first, one.next("call_"));
    }
}
