//! Reproducible random numbers, for samples of messages and for bootstrap intervals.

/// A random number generator (SplitMix64). A seed gives the same numbers on every machine and in every version.
pub(super) struct Draws(u64);

impl Draws {
    pub(super) const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`, which must not be 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(mixed ^ (mixed >> 31)) * end as u128) >> 64) as usize
    }
}

/// The numbers below `end`, shuffled with a fixed seed. Any number of them from the start is a sample.
pub fn shuffled(end: usize) -> Vec<usize> {
    let (mut draws, mut order) = (Draws::of(1), (0..end).collect::<Vec<_>>());
    for place in 0..end {
        let other = place + draws.below(end - place);
        order.swap(place, other);
    }
    order
}

/// A sample of at most `most` items, drawn with a fixed seed, in their original order.
pub fn sample<T>(items: Vec<T>, most: Option<usize>) -> Vec<T> {
    let most = most.unwrap_or(items.len()).min(items.len());
    let order = shuffled(items.len());
    let mut is_drawn = vec![false; items.len()];
    order[..most].iter().for_each(|drawn| is_drawn[*drawn] = true);
    items.into_iter().zip(is_drawn).filter_map(|(item, is_drawn)| is_drawn.then_some(item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_same_each_time_and_keeps_the_order() {
        let drawn = || sample((0..1_000).collect(), Some(50));

        assert_eq!(drawn(), drawn());
        assert!(drawn().is_sorted() && drawn().len() == 50);
        assert!(drawn().iter().any(|item| *item < 200) && drawn().iter().any(|item| *item > 800), "{:?}", drawn());
        assert_eq!(sample(vec![1, 2], Some(5)), [1, 2]);
        assert_eq!(sample(vec![1, 2], None), [1, 2]);
    }
}
