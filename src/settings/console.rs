//! Section `console`: its rooms and their companions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Problem;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
use crate::domain::room_words::{MOST_DEPTH, MOST_INSTRUCTIONS, MOST_NOTE, RoomWords, Style};

/// The maximum number of companions in a room. One message can trigger an evaluation of each of them.
pub const MOST_IN_A_ROOM: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Console {
    /// The rooms that exist from the start (at most 10,000). Changes stored at run time override them.
    pub rooms: Vec<Room>,
}

/// One room of the console.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Room {
    /// The room's id, 1 to 64 of `A-Z a-z 0-9 _ -`; its channel is `console:<id>`.
    pub id: Arc<str>,
    /// The room's guild. The same rule applies to its id.
    pub guild: GuildId,
    /// The companions in it: at most [`MOST_IN_A_ROOM`], without duplicates.
    pub companions: Vec<CompanionId>,
    /// Instructions for all companions in the room: at most [`MOST_INSTRUCTIONS`] characters.
    pub instructions: Option<Arc<str>>,
    pub style: Option<Style>,
    /// A note within the talk of each statement's prompt: at most [`MOST_NOTE`] characters.
    pub note: Option<Arc<str>>,
    /// The number of messages after the note: at most [`MOST_DEPTH`].
    pub note_depth: Option<u8>,
}

impl Room {
    /// The room's channel id, `console:<id>`.
    pub fn channel(&self) -> ChannelId {
        format!("console:{}", self.id).into()
    }

    /// The words of the room itself. They apply where nothing is set at run time.
    pub fn words(&self) -> RoomWords {
        let Self { instructions, style, note, note_depth, .. } = self.clone();
        RoomWords { instructions, style, note, note_depth }
    }
}

impl Console {
    /// Checks the ids, and that no room and no companion of a room is listed twice. Returns the first problem.
    pub fn check(&self) -> Result<(), Problem> {
        if self.rooms.len() > 10_000 {
            return Err(Problem::new("rooms", format!("has {} entries, at most 10000 are allowed", self.rooms.len())));
        }
        let mut seen = BTreeMap::new();
        for (index, room) in self.rooms.iter().enumerate() {
            check_room_name(&room.id).map_err(|message| Problem::new(format!("rooms[{index}].id"), message))?;
            check_room_name(room.guild.as_str()).map_err(|message| Problem::new(format!("rooms[{index}].guild"), message))?;
            if let Some(first) = seen.insert(&room.id, index) {
                let message = format!("= \"{}\" is the id of rooms[{first}] already; each room needs its own", room.id);
                return Err(Problem::new(format!("rooms[{index}].id"), message));
            }
            let twice = (1..room.companions.len()).find(|&at| room.companions[..at].contains(&room.companions[at]));
            if let Some(twice) = twice {
                let message = format!("names {} twice", room.companions[twice]);
                return Err(Problem::new(format!("rooms[{index}].companions"), message));
            }
            if room.companions.len() > MOST_IN_A_ROOM {
                let message = format!("names {} companions, at most {MOST_IN_A_ROOM} can be in a room", room.companions.len());
                return Err(Problem::new(format!("rooms[{index}].companions"), message));
            }
            let Room { instructions, note, note_depth, .. } = room;
            for (key, text, most) in [("instructions", instructions, MOST_INSTRUCTIONS), ("note", note, MOST_NOTE)] {
                let chars = text.as_ref().map_or(0, |text| text.chars().count());
                if chars > most {
                    let message = format!("has {chars} characters, at most {most} are allowed");
                    return Err(Problem::new(format!("rooms[{index}].{key}"), message));
                }
            }
            if let Some(depth) = note_depth.filter(|depth| *depth > MOST_DEPTH) {
                let message = format!("is {depth}, must be from 0 to {MOST_DEPTH}");
                return Err(Problem::new(format!("rooms[{index}].note_depth"), message));
            }
        }
        Ok(())
    }
}

/// Checks that a room of the console, its guild, or a profile can have this name: 1 to 64 of `A-Z a-z 0-9 _ -`.
pub fn check_room_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(format!("= {:?} is not a name of 1 to 64 letters a-z or A-Z, digits, _ or -", super::companion::shortened(name)))
}
