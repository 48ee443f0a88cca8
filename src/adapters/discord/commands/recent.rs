//! Detects repeated interactions.

use std::collections::BTreeSet;

use crate::snowflake::Snowflake;

/// The number of remembered interactions. A resumed connection normally repeats fewer.
const REMEMBERED: usize = 4_096;

/// The ids of recent interactions. A resumed connection repeats events.
#[derive(Debug, Default)]
pub(super) struct RecentInteractions(BTreeSet<Snowflake>);

impl RecentInteractions {
    /// Records an interaction. Returns whether it is new.
    pub fn is_new(&mut self, id: Snowflake) -> bool {
        let is_new = self.0.insert(id);
        if self.0.len() > REMEMBERED {
            // The smallest id is the oldest.
            self.0.pop_first();
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interaction_is_remembered_for_a_while() {
        let mut seen = RecentInteractions::default();
        let id = |number| Snowflake::new(number).unwrap();

        assert!(seen.is_new(id(1)));
        assert!(!seen.is_new(id(1)));
        for number in 2..=REMEMBERED as u64 + 1 {
            assert!(seen.is_new(id(number)));
        }

        assert_eq!(seen.0.len(), REMEMBERED);
        assert!(seen.is_new(id(1)), "it is too long ago to be remembered");
    }
}
