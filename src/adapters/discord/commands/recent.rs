//! Detects repeated interactions.

use std::collections::{BTreeSet, VecDeque};

use crate::snowflake::Snowflake;

/// The number of remembered interactions. A resumed connection normally repeats fewer.
const REMEMBERED: usize = 4_096;

/// The ids of recent interactions. A resumed connection repeats events.
#[derive(Debug, Default)]
pub(super) struct RecentInteractions {
    ids: BTreeSet<Snowflake>,
    in_order: VecDeque<Snowflake>,
}

impl RecentInteractions {
    /// Records an interaction. Returns whether it is new.
    pub fn is_new(&mut self, id: Snowflake) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.in_order.push_back(id);
        if self.in_order.len() > REMEMBERED
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
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

        assert_eq!((seen.ids.len(), seen.in_order.len()), (REMEMBERED, REMEMBERED));
        assert!(seen.is_new(id(1)), "it is too long ago to be remembered");
    }
}
