//! Counts the uses within a sliding window, in bounded memory.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::moment::Moment;

/// The maximum limit with which each use is stored separately.
const MAX_SEPARATE_USES: u64 = 1_440;
/// With a larger limit, the uses of this period are stored as one sum.
pub const PIECE: Duration = Duration::from_secs(60);
/// Spare capacity that stays after shrinking, in pieces.
const SPARE_CAPACITY: usize = 8;

/// A sliding window of `SECS` seconds, open at the old end.
///
/// With a limit of up to 1,440, the newest uses are stored, each with its time in microseconds, and at most as many as the limit.
/// With a larger limit, the uses of one minute of the clock are stored as one sum, which expires with the newest of them. So a
/// day never has more than 1,441 entries, regardless of the use. No window ever exceeds its limit, and uses expire less than a
/// minute late.
#[derive(Clone, Debug, Default)]
pub struct Sliding<const SECS: u64> {
    /// Ordered by time.
    pieces: VecDeque<Piece>,
    sum: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The time of its newest use.
    newest: Moment,
    amount: u64,
}

impl<const SECS: u64> Sliding<SECS> {
    const LENGTH: Duration = Duration::from_secs(SECS);

    /// Counts `amount` uses at the time `at`, with `most` as the limit of the window.
    pub fn count(&mut self, amount: u64, at: Moment, most: u64) {
        let newest = self.pieces.back().map_or(at, |piece| piece.newest.max(at));
        if amount == 0 || is_expired(at, newest, Self::LENGTH) {
            return;
        }
        self.remove_expired(newest);
        self.sum = self.sum.saturating_add(amount);
        let index = self.pieces.partition_point(|piece| piece.newest <= at);
        if most > MAX_SEPARATE_USES {
            let is_same = |piece: &&mut Piece| minute(piece.newest) == minute(at);
            if let Some(piece) = self.pieces.get_mut(index).filter(is_same) {
                piece.amount = piece.amount.saturating_add(amount);
                return;
            }
            if let Some(piece) = index.checked_sub(1).and_then(|before| self.pieces.get_mut(before)).filter(is_same) {
                *piece = Piece { newest: at, amount: piece.amount.saturating_add(amount) };
                return;
            }
        }
        self.pieces.insert(index, Piece { newest: at, amount });
        // Each piece contains at least one use, so pieces older than the newest `most` do not influence when the window becomes
        // free.
        while most <= MAX_SEPARATE_USES && self.pieces.len() as u64 > most {
            self.drop_oldest();
        }
    }

    /// The uses within the window that ends now.
    pub fn used(&mut self, now: Moment) -> u64 {
        self.remove_expired(now);
        self.sum
    }

    /// If the window is full, with `promised` uses counted as made now: the time at which one more use is allowed, if nothing is
    /// used until then. The inner `None` means never. The outer `None` means that the window is not full.
    pub fn full(&mut self, now: Moment, most: u64, promised: u64) -> Option<Option<Moment>> {
        let excess = self.used(now).saturating_add(promised).checked_sub(most)?;
        let mut released = 0_u64;
        let last = self.pieces.iter().find(|piece| {
            released = released.saturating_add(piece.amount);
            released > excess
        });
        Some((most > 0).then(|| last.map_or(now, |piece| piece.newest) + Self::LENGTH))
    }

    /// Removes expired uses and frees their memory. Returns whether any uses are left.
    pub fn prune(&mut self, now: Moment) -> bool {
        let is_used = self.used(now) > 0;
        if self.pieces.capacity() > 4 * (self.pieces.len() + SPARE_CAPACITY) {
            self.pieces.shrink_to(self.pieces.len() + SPARE_CAPACITY);
        }
        is_used
    }

    /// Handles a clock that was set back to this moment: later uses count as made now.
    pub(super) fn set_back(&mut self, to: Moment) {
        for piece in self.pieces.iter_mut().rev().take_while(|piece| piece.newest > to) {
            piece.newest = to;
        }
    }

    fn remove_expired(&mut self, now: Moment) {
        while self.pieces.front().is_some_and(|piece| is_expired(piece.newest, now, Self::LENGTH)) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let amount = self.pieces.pop_front().map_or(0, |piece| piece.amount);
        self.sum = self.sum.saturating_sub(amount);
    }
}

pub(super) fn is_expired(at: Moment, now: Moment, window: Duration) -> bool {
    now.since(at) >= window
}

const fn minute(at: Moment) -> u64 {
    at.as_micros() / PIECE.as_micros() as u64
}

#[cfg(test)]
mod tests;
