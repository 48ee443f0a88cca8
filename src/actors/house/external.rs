//! What programs outside submit for the companions that they play: votes, and words.

use super::ActorHouse;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::vote::State;
use crate::journal::place::Place;
use crate::ports::house::Refused;
use crate::ports::house::messages::Words;
use crate::ports::house::room::RoomId;

impl ActorHouse {
    pub(super) async fn take_vote(&self, room: &RoomId, state: State) -> Result<(), Refused> {
        let place = self.stage_of(room, &state.from)?;
        drop(place);
        Err(Refused::NotYet("rounds are not held in this version".into()))
    }

    pub(super) async fn take_words(&self, room: &RoomId, words: Words) -> Result<Seq, Refused> {
        let place = self.stage_of(room, &words.from)?;
        drop(place);
        Err(Refused::NotYet("rounds are not held in this version".into()))
    }

    /// Where this companion is present and is played by a program outside.
    fn stage_of(&self, room: &RoomId, companion: &CompanionId) -> Result<Place, Refused> {
        let (place, residence) = self.room_of(room)?;
        match (residence.companions.contains(companion), residence.is_external(companion)) {
            (true, true) => Ok(place),
            (true, false) => Err(Refused::Conflict(format!("{companion} is not external: this server votes and speaks for it"))),
            (false, _) => Err(Refused::Conflict(format!(
                "{companion} is not in room {room}; PUT /api/rooms/{room} with {{\"id\": \"{companion}\", \"external\": true}} lets it in"
            ))),
        }
    }
}
