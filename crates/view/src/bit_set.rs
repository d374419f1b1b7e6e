//! A set of positions, one bit for each.

/// A set of positions that does not change.
#[derive(Debug, Default)]
pub(crate) struct BitSet(Box<[u64]>);

impl BitSet {
    /// The positions whose flag is set.
    pub(crate) fn of(flags: &[bool]) -> Self {
        let word = |chunk: &[bool]| {
            let bits = chunk.iter().enumerate();
            bits.fold(0, |word, (at, flag)| word | (u64::from(*flag) << at))
        };
        Self(flags.chunks(64).map(word).collect())
    }

    pub(crate) fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_the_positions_whose_flag_is_set(flags in prop::collection::vec(any::<bool>(), 0..200)) {
            let set = BitSet::of(&flags);
            for at in 0..flags.len() + 70 {
                prop_assert_eq!(set.has(at), flags.get(at).copied().unwrap_or_default());
            }
        }
    }
}
