//! How much of one thing was used within the last while, in a room that does not grow with it.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::moment::Moment;

/// Up to this limit each use is kept by itself.
const KEPT_EACH: u64 = 1_440;
/// The uses of so long are one sum, of a larger limit.
pub const PIECE: Duration = Duration::from_secs(60);
/// Room for so many more pieces stays when there are fewer.
const ROOM_KEPT: usize = 8;

/// A window of so many seconds that slides with the time, open at the old end.
///
/// With a limit of up to 1,440 each use is kept by itself, to the microsecond, and no more of them than the limit needs. With a larger one
/// the uses of a minute of the clock are kept as one sum, which is over when the newest of them is. So there are never more than 1,441 of
/// either in a day, however much is used; no window ever holds more than its limit; and what is free again is so less than a minute late.
#[derive(Clone, Debug, Default)]
pub struct Sliding<const SECS: u64> {
    /// In the order of time.
    pieces: VecDeque<Piece>,
    sum: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The newest of its uses.
    newest: Moment,
    amount: u64,
}

impl<const SECS: u64> Sliding<SECS> {
    const LENGTH: Duration = Duration::from_secs(SECS);

    /// Counts what was used at a moment, where so much may be used in a window.
    pub fn count(&mut self, amount: u64, at: Moment, most: u64) {
        let newest = self.pieces.back().map_or(at, |piece| piece.newest.max(at));
        if amount == 0 || is_over(at, newest, Self::LENGTH) {
            return;
        }
        self.forget(newest);
        self.sum = self.sum.saturating_add(amount);
        let place = self.pieces.partition_point(|piece| piece.newest <= at);
        if most > KEPT_EACH {
            let is_same = |piece: &&mut Piece| minute(piece.newest) == minute(at);
            if let Some(piece) = self.pieces.get_mut(place).filter(is_same) {
                piece.amount = piece.amount.saturating_add(amount);
                return;
            }
            if let Some(piece) = place.checked_sub(1).and_then(|before| self.pieces.get_mut(before)).filter(is_same) {
                *piece = Piece { newest: at, amount: piece.amount.saturating_add(amount) };
                return;
            }
        }
        self.pieces.insert(place, Piece { newest: at, amount });
        // Each piece is a use at the least: of more than the limit, only the newest tell when it is free again.
        while most <= KEPT_EACH && self.pieces.len() as u64 > most {
            self.drop_oldest();
        }
    }

    /// How much counts as used.
    pub fn used(&mut self, now: Moment) -> u64 {
        self.forget(now);
        self.sum
    }

    /// If no more may be used, with so much that is promised counted as used now: when one more may, if nothing is used until then; none:
    /// never.
    pub fn full(&mut self, now: Moment, most: u64, promised: u64) -> Option<Option<Moment>> {
        let too_many = self.used(now).saturating_add(promised).checked_sub(most)?;
        let mut released = 0_u64;
        let last = self.pieces.iter().find(|piece| {
            released = released.saturating_add(piece.amount);
            released > too_many
        });
        Some((most > 0).then(|| last.map_or(now, |piece| piece.newest) + Self::LENGTH))
    }

    /// Forgets what is over, and gives back the room that it took. False: nothing is left.
    pub fn prune(&mut self, now: Moment) -> bool {
        let is_used = self.used(now) > 0;
        if self.pieces.capacity() > 4 * (self.pieces.len() + ROOM_KEPT) {
            self.pieces.shrink_to(self.pieces.len() + ROOM_KEPT);
        }
        is_used
    }

    fn forget(&mut self, now: Moment) {
        while self.pieces.front().is_some_and(|piece| is_over(piece.newest, now, Self::LENGTH)) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let gone = self.pieces.pop_front().map_or(0, |piece| piece.amount);
        self.sum = self.sum.saturating_sub(gone);
    }
}

pub(super) fn is_over(at: Moment, now: Moment, window: Duration) -> bool {
    now.since(at) >= window
}

const fn minute(at: Moment) -> u64 {
    at.as_micros() / PIECE.as_micros() as u64
}

#[cfg(test)]
mod tests;
