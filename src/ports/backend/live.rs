//! The events of one room or all rooms, as they happen.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use serde_json::Value;

use super::room::RoomId;
use crate::domain::id::{ChannelId, Seq};

/// The rooms to watch.
#[derive(Clone, Debug)]
pub enum Watched {
    /// A room, from the event after this number, or from now on.
    Room(RoomId, Option<Seq>),
    /// All rooms. A room in the cursor is watched from the event after its number.
    All(Cursor),
}

/// The subscriber fell behind its bounded buffer, and its subscription ended. It should subscribe again after the last event that it has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the subscriber fell behind, it should subscribe again after the last event that it has")]
pub struct Lagged {
    /// The last event of the subscriber: its number in a view of one room, otherwise the text of a [`Cursor`].
    pub after: Value,
}

/// A subscription: each event as a JSON object, rendered once for all watchers. Its buffer is bounded. If the subscriber falls behind, the last
/// item is [`Lagged`]. The stream ends without one when the room is deleted, or at shutdown.
pub type LiveStream = Pin<Box<dyn Stream<Item = Result<Arc<str>, Lagged>> + Send>>;

/// The position at which a view of all rooms resumes: for each room the number of the last event that the client has. As text:
/// `lobby.12,discord:1234.7`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor(BTreeMap<RoomId, Seq>);

/// Why a text is not a [`Cursor`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// An entry is not a room and a number.
    #[error("{0:?} is not a room and its number; write each room as ROOM.NUMBER, such as lobby.12")]
    Entry(String),
    /// The number of a room is invalid.
    #[error("the number of room {room} is {number:?}, must be a whole number from 0 up: the seq of its last event that you have")]
    Number {
        room: RoomId,
        /// The text in the place of the number.
        number: String,
    },
    /// A room is named twice.
    #[error("room {0} is named twice; name it once, with the seq of its last event that you have")]
    Twice(RoomId),
    /// The text is too long.
    #[error(
        "has {0} bytes, at most {max} are accepted; leave out rooms, and compare the `last` of their `hello` with what you have",
        max = Cursor::MAX_BYTES
    )]
    TooLong(usize),
}

impl Cursor {
    /// The longest text of a cursor, in bytes: about 700 channels of Discord. It keeps the head of a request under its limit.
    pub const MAX_BYTES: usize = 24 << 10;

    /// Parses a cursor. A room can also be named by its channel, as events do (`console:lobby`).
    ///
    /// # Errors
    /// Returns an error if the text is not a cursor.
    pub fn parse(text: &str) -> Result<Self, CursorError> {
        if text.len() > Self::MAX_BYTES {
            return Err(CursorError::TooLong(text.len()));
        }
        let mut rooms = BTreeMap::new();
        for entry in text.split(',') {
            let (room, number) = entry.rsplit_once('.').ok_or_else(|| CursorError::Entry(start(entry)))?;
            let room = RoomId::parse(room).or_else(|| RoomId::of(&ChannelId::from(room)));
            let room = room.ok_or_else(|| CursorError::Entry(start(entry)))?;
            let digits = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
            let Some(seq) = digits.and_then(|number| number.parse().ok()) else {
                return Err(CursorError::Number { room, number: start(number) });
            };
            if rooms.insert(room.clone(), Seq(seq)).is_some() {
                return Err(CursorError::Twice(room));
            }
        }
        Ok(Self(rooms))
    }

    /// A cursor with as many of the first rooms as fit into it.
    pub fn of(rooms: impl IntoIterator<Item = (RoomId, Seq)>) -> Self {
        let mut bytes = 0;
        let fits = |(room, seq): &(RoomId, Seq)| {
            bytes += room.as_str().len() + ".".len() + seq.to_string().len() + ",".len();
            bytes <= Self::MAX_BYTES
        };
        Self(rooms.into_iter().take_while(fits).collect())
    }

    /// The rooms and their numbers, ordered by room.
    pub fn into_rooms(self) -> BTreeMap<RoomId, Seq> {
        self.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (room, seq)) in self.0.iter().enumerate() {
            write!(f, "{}{room}.{seq}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// The part of an untrusted text that an error quotes.
fn start(text: &str) -> String {
    text.chars().take(RoomId::MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(id: &str) -> RoomId {
        RoomId::parse(id).unwrap()
    }

    #[test]
    fn a_cursor_is_read_back_as_it_was_written() {
        let cursor = Cursor::of([(room("lobby"), Seq(12)), (room("discord:1234"), Seq(7)), (room("a_b-c"), Seq(0))]);

        assert_eq!(cursor.to_string(), "a_b-c.0,discord:1234.7,lobby.12");
        assert_eq!(Cursor::parse(&cursor.to_string()), Ok(cursor));
    }

    #[test]
    fn a_room_can_be_named_by_its_channel() {
        assert_eq!(Cursor::parse("console:lobby.12"), Cursor::parse("lobby.12"));
    }

    #[test]
    fn an_error_names_the_entry_and_what_to_write() {
        let error = |text: &str| Cursor::parse(text).unwrap_err().to_string();

        assert!(error("12").starts_with("\"12\" is not a room and its number; write each room as ROOM.NUMBER"));
        assert!(error("lobby.1,").starts_with("\"\" is not a room"));
        assert!(error("lobby.1,a b.2").starts_with("\"a b.2\" is not a room"));
        assert!(error("lobby.x").starts_with("the number of room lobby is \"x\""));
        assert!(error("lobby.").starts_with("the number of room lobby is \"\""));
        assert!(error("lobby.+1").starts_with("the number of room lobby is \"+1\""));
        assert!(error("lobby.99999999999999999999").starts_with("the number of room lobby is"));
        assert!(error("lobby.1,console:lobby.2").starts_with("room lobby is named twice"));
        assert!(error(&"lobby.1,".repeat(4_000)).starts_with("has 32000 bytes, at most 24576 are accepted"));
    }

    #[test]
    fn a_cursor_of_many_rooms_is_cut_to_what_is_accepted() {
        let rooms = (0..2_000).map(|number| (room(&format!("discord:12345678901234567{number:02}")), Seq(u64::MAX)));

        let cursor = Cursor::of(rooms);

        assert!(cursor.0.len() > 400, "{}", cursor.0.len());
        assert_eq!(Cursor::parse(&cursor.to_string()), Ok(cursor));
    }
}
