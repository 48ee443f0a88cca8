//! Tracks the receipts of one connection's events. The next connection resumes after the last event before the
//! oldest one that is open or lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::super::dispatch::{Fate, Receipt};

/// The events of one connection. Clones share the ledger.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<watch::Sender<Entries>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The newest event that arrived.
    received: u64,
    /// Events with open receipts, and the number of these. A replayed event may have two.
    open: BTreeMap<u64, u32>,
    /// The number of open receipts.
    waiting: usize,
    /// The oldest event that Discord must send again.
    lost: Option<u64>,
}

impl Entries {
    /// The highest number up to which no event is open or lost.
    pub fn accepted(&self) -> u64 {
        let open = self.open.first_key_value().map(|(sequence, _)| *sequence);
        let before = open.into_iter().chain(self.lost).min();
        before.map_or(self.received, |oldest| oldest.saturating_sub(1))
    }

    /// The number of open receipts.
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether Discord must send an event again.
    pub const fn has_lost(&self) -> bool {
        self.lost.is_some()
    }
}

impl Ledger {
    /// Creates the ledger of a connection that resumes after `accepted`.
    pub fn new(accepted: u64) -> Self {
        Self(Arc::new(watch::Sender::new(Entries { received: accepted, ..Entries::default() })))
    }

    /// Records that an event arrived, and returns its receipt.
    pub fn receive(&self, sequence: u64) -> Receipt {
        self.0.send_modify(|entries| {
            entries.received = entries.received.max(sequence);
            *entries.open.entry(sequence).or_default() += 1;
            entries.waiting += 1;
        });
        let ledger = self.clone();
        Receipt::new(move |fate| ledger.set_fate(sequence, fate))
    }

    pub fn watch(&self) -> watch::Receiver<Entries> {
        self.0.subscribe()
    }

    /// The highest number up to which no event is open or lost.
    pub fn accepted(&self) -> u64 {
        self.0.borrow().accepted()
    }

    fn set_fate(&self, sequence: u64, fate: Fate) {
        self.0.send_modify(|entries| {
            entries.waiting -= 1;
            if let Some(count) = entries.open.get_mut(&sequence) {
                *count -= 1;
                if *count == 0 {
                    entries.open.remove(&sequence);
                }
            }
            if fate == Fate::Lost {
                entries.lost = Some(entries.lost.map_or(sequence, |lost| lost.min(sequence)));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_events_end_before_the_oldest_open_one() {
        let ledger = Ledger::new(10);
        let [eleven, twelve, fifteen] = [11, 12, 15].map(|sequence| ledger.receive(sequence));

        twelve.kept();
        assert_eq!(ledger.accepted(), 10);
        eleven.kept();
        assert_eq!(ledger.accepted(), 14);
        fifteen.kept();
        assert_eq!(ledger.accepted(), 15);
    }

    #[test]
    fn later_receipts_do_not_move_the_position_past_a_lost_event() {
        let ledger = Ledger::new(0);
        let [one, two, three] = [1, 2, 3].map(|sequence| ledger.receive(sequence));

        one.kept();
        drop(two);
        three.kept();

        assert_eq!(ledger.accepted(), 1);
        assert!(ledger.watch().borrow().has_lost());
        assert_eq!(ledger.watch().borrow().waiting(), 0);
    }

    #[test]
    fn a_repeated_event_is_accepted_after_both_receipts() {
        let ledger = Ledger::new(0);
        let (first, second) = (ledger.receive(1), ledger.receive(1));

        first.kept();
        assert_eq!((ledger.accepted(), ledger.watch().borrow().waiting()), (0, 1));
        second.kept();
        assert_eq!((ledger.accepted(), ledger.watch().borrow().waiting()), (1, 0));
    }

    #[test]
    fn extreme_numbers_are_handled() {
        let ledger = Ledger::new(5);
        let (zero, most) = (ledger.receive(0), ledger.receive(u64::MAX));

        assert_eq!(ledger.accepted(), 0);
        zero.kept();
        most.kept();
        assert_eq!(ledger.accepted(), u64::MAX);
    }
}
