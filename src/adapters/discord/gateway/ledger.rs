//! Knows of one connection up to which event everything is kept: what the next one resumes from.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::super::dispatch::{Fate, Receipt};

/// The events of one connection. A handle: cloned, it is the same ledger.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<watch::Sender<Entries>>);

/// How the events stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The newest that came.
    received: u64,
    /// Those that nobody said anything about yet; a replayed one may be there twice.
    open: BTreeMap<u64, u32>,
    /// How many those are.
    waiting: usize,
    /// The oldest that has to be told again.
    lost: Option<u64>,
}

impl Entries {
    /// Everything up to here is kept.
    pub fn accepted(&self) -> u64 {
        let open = self.open.first_key_value().map(|(sequence, _)| *sequence);
        let before = open.into_iter().chain(self.lost).min();
        before.map_or(self.received, |oldest| oldest.saturating_sub(1))
    }

    /// How many nobody said anything about yet.
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether one has to be told again.
    pub const fn has_lost(&self) -> bool {
        self.lost.is_some()
    }
}

impl Ledger {
    /// Everything up to here was kept before.
    pub fn new(accepted: u64) -> Self {
        Self(Arc::new(watch::Sender::new(Entries { received: accepted, ..Entries::default() })))
    }

    /// An event came: its receipt.
    pub fn receive(&self, sequence: u64) -> Receipt {
        self.0.send_modify(|entries| {
            entries.received = entries.received.max(sequence);
            *entries.open.entry(sequence).or_default() += 1;
            entries.waiting += 1;
        });
        let ledger = self.clone();
        Receipt::new(move |fate| ledger.told(sequence, fate))
    }

    /// Sees every change.
    pub fn watch(&self) -> watch::Receiver<Entries> {
        self.0.subscribe()
    }

    /// Everything up to here is kept.
    pub fn accepted(&self) -> u64 {
        self.0.borrow().accepted()
    }

    fn told(&self, sequence: u64, fate: Fate) {
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
    fn what_is_accepted_ends_before_the_oldest_open_event() {
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
    fn a_lost_event_stays_before_what_is_accepted_whatever_is_kept_later() {
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
    fn an_event_told_twice_is_kept_once_both_are() {
        let ledger = Ledger::new(0);
        let (first, second) = (ledger.receive(1), ledger.receive(1));

        first.kept();
        assert_eq!((ledger.accepted(), ledger.watch().borrow().waiting()), (0, 1));
        second.kept();
        assert_eq!((ledger.accepted(), ledger.watch().borrow().waiting()), (1, 0));
    }

    #[test]
    fn numbers_that_nobody_counts_up_to_break_nothing() {
        let ledger = Ledger::new(5);
        let (zero, most) = (ledger.receive(0), ledger.receive(u64::MAX));

        assert_eq!(ledger.accepted(), 0);
        zero.kept();
        most.kept();
        assert_eq!(ledger.accepted(), u64::MAX);
    }
}
