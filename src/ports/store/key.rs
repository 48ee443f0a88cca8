//! The keys of a store: big-endian, beginning with ward and kind, so that what belongs together lies together.

use std::fmt;

use crate::domain::id::{Seq, Ward};

/// A channel, interned to an integer within its ward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelNo(pub u32);

/// The kinds of keys, each with the byte that stands for it in a key.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $byte:literal,)+) => {
        /// What a key holds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])+ $kind = $byte,)+
        }

        impl Kind {
            /// The kind that this byte stands for.
            const fn of(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$kind),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Event of a channel: channel, number.
    Journal = 1,
    /// The number of a channel's last event: channel. Kept by the store itself, with every append.
    Head = 2,
    /// A conversation's state and the last event that it contains: channel.
    Snapshot = 3,
    /// A channel with unsettled messages, armed timers or replies owed: channel.
    Pending = 4,
    /// A reply owed: channel, ticket.
    Outbox = 5,
    /// Platform message id → number: channel, id.
    MessageId = 6,
    /// Guild and person → the first number of a stretch of events in which they said something: guild, person, channel, number.
    Person = 7,
    /// Interned channels: guild, channel name → number of the channel; and back.
    ChannelName = 8,
    /// Back from a channel's number to its guild and name.
    ChannelOf = 9,
    /// The rolling summary: channel.
    Summary = 10,
    /// Overrides at run time, memberships: guild, channel.
    Setting = 11,
    /// What counts against budgets and costs: guild, moment, channel, number.
    Usage = 12,
    /// Messages set aside because they killed their handler: id.
    DeadLetter = 13,
    /// The directory of rooms (room → guild): the one index that spans guilds. Ward 0.
    Room = 14,
    /// What remains of a deleted journal: channel.
    Tombstone = 15,
    /// What platforms remember, sessions among it: guild or nothing, name.
    Session = 16,
    /// Webhooks of channels.
    Webhook = 17,
    /// Facts about the store itself: its ids, the terms of wards.
    Meta = 18,
    /// People who are not to be heard: guild, person.
    OptOut = 19,
}

/// A key: ward, kind, and the rest by kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    /// A key of this kind, with no rest: the least of its kind.
    pub fn new(ward: Ward, kind: Kind) -> Self {
        Self(vec![ward.0, kind as u8])
    }

    /// With a channel's number appended (four bytes).
    pub fn channel(mut self, channel: ChannelNo) -> Self {
        self.0.extend(channel.0.to_be_bytes());
        self
    }

    /// With a number appended (eight bytes).
    pub fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// With a text appended, closed by a zero byte so that no text is the beginning of another. Zero bytes in it are left out.
    pub fn text(mut self, text: &str) -> Self {
        self.0.extend(text.bytes().filter(|byte| *byte != 0));
        self.0.push(0);
        self
    }

    /// The event of this number in this channel.
    pub fn event(ward: Ward, channel: ChannelNo, seq: Seq) -> Self {
        Self::new(ward, Kind::Journal).channel(channel).number(seq.0)
    }

    /// Where a channel's last number is kept.
    pub fn head(ward: Ward, channel: ChannelNo) -> Self {
        Self::new(ward, Kind::Head).channel(channel)
    }

    /// The least key that is greater than every key which begins with this one.
    pub fn end(mut self) -> Self {
        while let Some(last) = self.0.last_mut() {
            if *last < u8::MAX {
                *last += 1;
                break;
            }
            self.0.pop();
        }
        self
    }

    /// The bytes, in their order.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes bytes for a key.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// What it holds, if that is known.
    pub fn kind(&self) -> Option<Kind> {
        self.0.get(1).copied().and_then(Kind::of)
    }

    /// Whether it is of this kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind() == Some(kind)
    }

    /// The number in the last eight bytes, for keys that end in one.
    pub fn last_number(&self) -> Option<u64> {
        self.0.last_chunk().map(|bytes| u64::from_be_bytes(*bytes))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}
