//! The keys of a store. They are big-endian and begin with ward and kind, so that related records are adjacent.

use std::fmt;

use crate::domain::id::{Seq, Ward};

/// A channel, interned to an integer within its ward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelNo(pub u32);

/// The kinds of keys, each with its byte in the encoding.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $byte:literal,)+) => {
        /// The kind of record under a key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])+ $kind = $byte,)+
        }

        impl Kind {
            /// The kind with this byte.
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
    /// An event of a channel: channel, number.
    Journal = 1,
    /// The number of a channel's last event: channel. The store maintains it with every append.
    Head = 2,
    /// A conversation's state and the last event that it contains: channel.
    Snapshot = 3,
    /// A channel with unsettled messages, armed timers or replies owed, or in which a companion may start a conversation:
    /// channel.
    Pending = 4,
    /// A reply owed: channel, ticket.
    Outbox = 5,
    /// Platform message id → number: channel, id.
    MessageId = 6,
    /// Guild and person → the first number of a range of events with messages of the person: guild, person, channel, number.
    Person = 7,
    /// Interned channels: guild, channel name → number of the channel.
    ChannelName = 8,
    /// The reverse: a channel's number → its guild and name.
    ChannelOf = 9,
    /// The rolling summary: channel.
    Summary = 10,
    /// Memberships with their overrides at run time: guild, channel.
    Setting = 11,
    /// Usage that counts towards budgets and costs: guild, moment, channel, number.
    Usage = 12,
    /// Dead letters, messages that killed their handler: channel, number.
    DeadLetter = 13,
    /// The directory of rooms (room → guild): the one index that spans guilds. Ward 0.
    Room = 14,
    /// The low-water mark of a journal, below which events were deleted or have expired: channel.
    Tombstone = 15,
    /// Notes of platforms, such as sessions: guild or nothing, name.
    Session = 16,
    /// Webhooks of channels.
    Webhook = 17,
    /// Facts about the store and its wards, such as ids, terms, marks of deletions, and starts of the server.
    Meta = 18,
    /// People who have opted out: guild, person.
    OptOut = 19,
    /// Briefs of personas: hash of the persona. Ward 0.
    Brief = 20,
    /// Companions that cannot be stored in a file: id. Ward 0.
    Companion = 21,
    /// Pictures of companions: id. Ward 0.
    Picture = 22,
    /// Character cards from which companions were created: id. Ward 0.
    Card = 23,
    /// Invitations to rooms, with their guests: id. Ward 0.
    Invitation = 24,
    /// People who received the notice that companions are AI: guild, person.
    Told = 25,
    /// The index of notes: channel, number.
    Note = 26,
    /// Whether notes are taken: guild, and the person or nothing for the whole guild.
    NoteSwitch = 27,
    /// Files of messages, without their bytes: channel, number of the message, number of the file.
    File = 28,
    /// The bytes of files, in parts: channel, number of the message, number of the file, number of the part.
    FilePart = 29,
}

/// A key: one byte for the ward, one for the kind, and the rest by kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    /// The smallest key of this kind: ward and kind, with no rest.
    pub fn new(ward: Ward, kind: Kind) -> Self {
        Self(vec![ward.0, kind as u8])
    }

    /// Appends a channel's number (four bytes).
    pub fn channel(mut self, channel: ChannelNo) -> Self {
        self.0.extend(channel.0.to_be_bytes());
        self
    }

    /// Appends a number (eight bytes).
    pub fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// Appends a text and a zero byte, so that no text is a prefix of another. Zero bytes in the text are omitted.
    pub fn text(mut self, text: &str) -> Self {
        self.0.extend(text.bytes().filter(|byte| *byte != 0));
        self.0.push(0);
        self
    }

    /// The key of an event in a channel's journal.
    pub fn event(ward: Ward, channel: ChannelNo, seq: Seq) -> Self {
        Self::new(ward, Kind::Journal).channel(channel).number(seq.0)
    }

    /// The key of the number of a channel's last event.
    pub fn head(ward: Ward, channel: ChannelNo) -> Self {
        Self::new(ward, Kind::Head).channel(channel)
    }

    /// The smallest key that is greater than every key with this prefix.
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

    /// The encoded bytes. Their order is the order of keys.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Creates a key from bytes, without checking them.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The kind; `None` for an unknown byte.
    pub fn kind(&self) -> Option<Kind> {
        self.0.get(1).copied().and_then(Kind::of)
    }

    /// Whether the key is of this kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind() == Some(kind)
    }

    /// The number in the last eight bytes, for keys that end in a number.
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
