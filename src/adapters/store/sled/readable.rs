//! Reads a database that may be damaged in places: after an unreadable page, the following pages can still be read.

use std::ops::Bound;

use super::message_of;
use crate::adapters::store::audit::Hole;
use crate::ports::store::Value;
use crate::ports::store::key::Key;

/// The number of key bytes used to find the end of a damaged place. Keys are shorter, except for those with long names.
const WIDTH: usize = 40;

/// Every readable record, ascending. Each unreadable range is reported once.
pub(super) struct Readable {
    db: sled::Db,
    entries: sled::Iter,
    last: Option<sled::IVec>,
    /// Nothing after this can be read.
    is_over: bool,
}

impl Readable {
    pub(super) fn of(db: &sled::Db) -> Self {
        Self { db: db.clone(), entries: db.iter(), last: None, is_over: false }
    }

    /// Continues after the unreadable range.
    fn skip(&mut self, error: &sled::Error) -> Hole {
        let from = self.last.as_ref().map_or_else(Vec::new, |last| [last.as_ref(), &[0]].concat());
        let next = next_readable(&self.db, &from);
        match &next {
            Some(next) => self.entries = self.db.range::<&[u8], _>((Bound::Included(next.as_ref()), Bound::Unbounded)),
            None => self.is_over = true,
        }
        let key = |bytes: &sled::IVec| Key::from_bytes(bytes);
        Hole {
            after: self.last.as_ref().map(key),
            before: next.as_ref().map(key),
            detail: message_of(error),
            channel_names: [None, None],
        }
    }
}

/// Every readable record, ascending, with the unreadable ranges in between.
pub(super) fn records(db: &sled::Db) -> impl Iterator<Item = Result<(Key, Value), Hole>> + use<> {
    Readable::of(db).map(|entry| entry.map(|(key, value)| (Key::from_bytes(&key), value.to_vec())))
}

impl Iterator for Readable {
    type Item = Result<(sled::IVec, sled::IVec), Hole>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        match self.entries.next()? {
            Ok((key, value)) => {
                self.last = Some(key.clone());
                Some(Ok((key, value)))
            }
            Err(error) => Some(Err(self.skip(&error))),
        }
    }
}

/// The first readable key after an unreadable one, as far as a binary search can find it; none: there is none.
fn next_readable(db: &sled::Db, from: &[u8]) -> Option<sled::IVec> {
    let mut unreadable = Position::of(from);
    // None: this position cannot be read.
    let first_at = |position: &Position| match db.range::<&[u8], _>(position.0.as_slice()..).next() {
        None => Some(None),
        Some(Ok((key, _))) => Some(Some(key)),
        Some(Err(_)) => None,
    };
    let begin = unreadable.clone();
    let mut found = None;
    for bit in 0..WIDTH * 8 {
        let Some(position) = begin.ahead_by(bit) else { break };
        match first_at(&position) {
            Some(first) => {
                found = Some((position, first));
                break;
            }
            None => unreadable = position,
        }
    }
    let (mut readable, mut first) = found?;
    while let Some(middle) = unreadable.middle(&readable) {
        match first_at(&middle) {
            Some(found) => (readable, first) = (middle, found),
            None => unreadable = middle,
        }
    }
    first.filter(|first| first.as_ref() > from)
}

/// A position among the keys, as a number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Position([u8; WIDTH]);

impl Position {
    fn of(key: &[u8]) -> Self {
        let mut bytes = [0; WIDTH];
        let length = key.len().min(WIDTH);
        bytes[..length].copy_from_slice(&key[..length]);
        Self(bytes)
    }

    /// The position ahead by the value of this bit; none: beyond all keys.
    fn ahead_by(&self, bit: usize) -> Option<Self> {
        let mut bytes = self.0;
        let mut carry = 1_u16 << (bit % 8);
        for byte in bytes[..WIDTH - bit / 8].iter_mut().rev() {
            let sum = u16::from(*byte) + carry;
            *byte = sum as u8;
            carry = sum >> 8;
        }
        (carry == 0).then_some(Self(bytes))
    }

    /// The position halfway to a later one; none: there is nothing in between.
    fn middle(&self, later: &Self) -> Option<Self> {
        let mut carry = 0;
        let mut sums = [0_u16; WIDTH];
        for at in (0..WIDTH).rev() {
            let sum = u16::from(self.0[at]) + u16::from(later.0[at]) + carry;
            sums[at] = sum & 255;
            carry = sum >> 8;
        }
        let mut bytes = [0; WIDTH];
        for (byte, sum) in bytes.iter_mut().zip(sums) {
            let halved = sum + (carry << 8);
            *byte = (halved >> 1) as u8;
            carry = halved & 1;
        }
        let middle = Self(bytes);
        (middle != *self && middle != *later).then_some(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(bytes: &[u8]) -> Position {
        Position::of(bytes)
    }

    #[test]
    fn positions_are_numbers() {
        let last = |byte| {
            let mut bytes = [0; WIDTH];
            bytes[WIDTH - 1] = byte;
            Position(bytes)
        };

        assert_eq!(last(1).ahead_by(0), Some(last(2)));
        assert_eq!(position(&[1, 255]).ahead_by(8 * (WIDTH - 2)), Some(position(&[2])));
        assert_eq!(Position([255; WIDTH]).ahead_by(0), None);
        assert_eq!(position(&[1]).middle(&position(&[4])), Some(position(&[2, 128])));
        assert_eq!(Position([255; WIDTH]).middle(&Position([255; WIDTH])), None);
        assert_eq!(position(&[255]).middle(&Position([255; WIDTH])).map(|middle| middle.0[0]), Some(255));
        assert_eq!(last(1).middle(&last(2)), None);
    }
}
