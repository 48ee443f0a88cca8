//! Which rooms there are, who is in them, and what is changed about them at run time.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::ActorHouse;
use super::desk::{invalid, unread};
use crate::actors::guild::GuildMessage;
use crate::actors::hub::Live;
use crate::actors::inbound::Inbound;
use crate::actors::kit::Kit;
use crate::actors::places::{GuildPlace, ScribePlace};
use crate::actors::residents::{Cast, Miscast, played};
use crate::actors::scribe::{self, Administer, Contested, Lost, Reply, ScribeMessage};
use crate::domain::event::Event;
use crate::domain::id::{ChannelId, CompanionId, GuildId, Ward};
use crate::domain::names::SharedName;
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::{RoomRecord, decode, encode};
use crate::journal::residence::{self, External, Residence};
use crate::ports::house::Refused;
use crate::ports::house::room::{
    CompanionPatch, CompanionView, Companions, Invited, MOST_IN_A_ROOM, Override, Room, RoomCompanion, RoomId, RoomPatch,
    RoomPlan, Rooms,
};
use crate::ports::house::stamp::rfc3339;
use crate::ports::store::Write;
use crate::settings::companion::{Interjection, Overrides};
use crate::settings::console;

/// Why the rooms could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum MoveInError {
    /// What is stored of them cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Two companions of one guild share a name.
    #[error("room {room}: {shared}; give one of them another name, or take it out of the guild")]
    SharedName {
        /// Which room could not be taken.
        room: ChannelId,
        /// Who shares what.
        shared: SharedName,
    },
    /// Who lives in a room of the settings could not be put on record.
    #[error("who lives in room {room} cannot be put on record: {error}")]
    Unheard {
        /// Which one.
        room: ChannelId,
        /// Why.
        error: scribe::Refused,
    },
    /// A room of the settings could not be stored.
    #[error("room {room} cannot be stored: {error}")]
    Unstored {
        /// Which one.
        room: ChannelId,
        /// Why.
        error: Contested,
    },
}

/// Takes in every room that is stored, and then the rooms of the settings that are not; what is stored wins. Needs the scribe.
///
/// Companions that are no longer configured stay on record, and are told in the log.
///
/// # Errors
/// [`MoveInError`]; a room that was stored and cannot be taken for a shared name is told in the log, and left out.
pub async fn move_in(kit: &Kit, rooms: &[console::Room]) -> Result<(), MoveInError> {
    let reader = Reader::new(&*kit.store);
    for RoomRecord { room, guild, .. } in reader.rooms().await? {
        let place = Place::new(&guild, &room);
        let Some(residence) = stored(kit, &place).await? else { continue };
        let cast = kit.residents.cast();
        for companion in &residence.companions {
            match (residence.is_external(companion), cast.contains_key(companion)) {
                (false, false) => {
                    tracing::warn!(%room, %companion, "a companion of this room is not configured any more; the room goes on without it");
                }
                (true, true) => {
                    tracing::warn!(%room, %companion, "a companion of this id is configured now, and stays external in this room");
                }
                _ => {}
            }
        }
        if let Err(shared) = kit.residents.put(&room, residence) {
            tracing::error!(%room, %guild, %shared, "this room cannot be opened; give one of the two another name");
        }
    }
    for room in rooms {
        let channel = room.channel();
        if kit.residents.get(&channel).is_some() || reader.room(&channel).await?.is_some() {
            continue;
        }
        let residence = Residence {
            guild: room.guild.clone(),
            companions: room.companions.iter().cloned().collect(),
            externals: Default::default(),
            overrides: Default::default(),
            paused: false,
            created_at: kit.clock.now(),
        };
        kit.residents.allows(&channel, &residence).map_err(|shared| MoveInError::SharedName { room: channel.clone(), shared })?;
        for (ward, writes) in writes_of(&channel, &residence) {
            store(kit, ward, writes).await.map_err(|error| MoveInError::Unstored { room: channel.clone(), error })?;
        }
        let _moving = kit.residents.moving(&channel);
        kit.residents
            .put(&channel, residence.clone())
            .map_err(|shared| MoveInError::SharedName { room: channel.clone(), shared })?;
        let place = Place::new(&residence.guild, &channel);
        for event in news(None, &residence) {
            let accepted = Inbound::new(kit.clone()).accept(&place, event, None).await;
            accepted.map_err(|error| MoveInError::Unheard { room: channel.clone(), error })?;
        }
    }
    Ok(())
}

/// Takes other companions from now on: whoever is configured no more leaves the rooms, whoever is again comes back. Nothing changes on an
/// error.
///
/// # Errors
/// Two that live in one guild would share a name, or a program outside plays one of them.
pub fn recast(kit: &Kit, cast: Cast) -> Result<(), Miscast> {
    kit.residents.recast(cast)?;
    let guilds: BTreeSet<_> = kit.residents.all().into_iter().map(|(_, residence)| residence.guild).collect();
    for guild in guilds {
        if let Some(actor) = kit.directory.find(&GuildPlace(guild)) {
            // A guild that is gone reads it when it is back, and so does a channel that sleeps.
            let _ = actor.cast(GuildMessage::ResidenceChanged(None));
        }
    }
    Ok(())
}

/// What happened when one residence followed another. Whoever leaves makes room first.
fn news(before: Option<&Residence>, after: &Residence) -> Vec<Event> {
    // Whoever was external and is not any more is somebody else, and the other way round.
    let stays = |of: &Residence, in_other: &Residence, companion: &CompanionId| {
        in_other.companions.contains(companion) && of.is_external(companion) == in_other.is_external(companion)
    };
    let lived = |companion: &CompanionId| before.is_some_and(|before| stays(after, before, companion));
    let mut news = Vec::new();
    if let Some(before) = before {
        let gone = before.companions.iter().filter(|companion| !stays(before, after, companion));
        news.extend(gone.map(|companion| Event::Left { companion: companion.clone() }));
    }
    for companion in after.companions.iter().filter(|companion| !lived(companion)) {
        news.push(Event::Joined { companion: companion.clone(), external: after.is_external(companion) });
    }
    let is_room_changed = before.is_some_and(|before| before.paused) != after.paused;
    if is_room_changed {
        news.push(Event::Paused { companion: None, paused: after.paused });
    }
    for companion in &after.companions {
        let was = before.is_some_and(|before| lived(companion) && before.is_paused(companion));
        let is = if is_room_changed { after.paused } else { was };
        if is != after.is_paused(companion) {
            news.push(Event::Paused { companion: Some(companion.clone()), paused: !is });
        }
    }
    news
}

async fn stored(kit: &Kit, place: &Place) -> Result<Option<Residence>, ReadError> {
    let key = residence::key(place);
    let value = kit.store.get(key.clone()).await?;
    Ok(value.map(|value| decode(&key, &value)).transpose()?)
}

async fn store(kit: &Kit, ward: Ward, writes: Vec<Write>) -> Result<(), Contested> {
    let (reply, done) = Reply::awaited();
    let administer = ScribeMessage::Administer(Administer { ward, writes, fresh: Vec::new(), reply });
    match kit.directory.find(&ScribePlace()) {
        Some(scribe) => drop(scribe.cast(administer)),
        None => drop(administer),
    }
    done.await.unwrap_or(Err(Lost::Unknown.into()))
}

/// The residence first: a room of the directory always has one.
fn writes_of(channel: &ChannelId, residence: &Residence) -> [(Ward, Vec<Write>); 2] {
    let place = Place::new(&residence.guild, channel);
    let record = RoomRecord { room: channel.clone(), guild: residence.guild.clone(), created_at: residence.created_at };
    [
        (place.ward(), vec![Write::Put(residence::key(&place), encode(residence))]),
        (Ward(0), vec![Write::Put(key::room(channel), encode(&record))]),
    ]
}

impl ActorHouse {
    pub(super) async fn list_rooms(&self) -> Result<Rooms, Refused> {
        let mut rooms = Vec::new();
        for (channel, residence) in self.kit.residents.all() {
            if let Some(room) = RoomId::of(&channel) {
                rooms.push(self.viewed(room, &residence).await?);
            }
        }
        Ok(Rooms { rooms })
    }

    pub(super) async fn view_room(&self, room: &RoomId) -> Result<Room, Refused> {
        let (_, residence) = self.room_of(room)?;
        self.viewed(room.clone(), &residence).await
    }

    pub(super) async fn make_room(&self, room: &RoomId, plan: RoomPlan) -> Result<(Room, bool), Refused> {
        let _turn = self.changes.lock().await;
        let channel = room.channel();
        let known = self.kit.residents.get(&channel);
        self.check_plan(&plan, known.as_ref(), room)?;
        let is_new = known.is_none();
        let mut residence = known.unwrap_or_else(|| Residence {
            guild: plan.guild.clone(),
            companions: Default::default(),
            externals: Default::default(),
            overrides: Default::default(),
            paused: false,
            created_at: self.kit.clock.now(),
        });
        residence.companions = plan.companions.iter().map(|invited| invited.id.clone()).collect();
        residence.externals = plan.companions.into_iter().filter_map(as_external).collect();
        residence.overrides.retain(|companion, _| residence.companions.contains(companion));
        self.settle_residence(&channel, residence.clone()).await?;
        Ok((self.viewed(room.clone(), &residence).await?, is_new))
    }

    pub(super) async fn change_room(&self, room: &RoomId, patch: RoomPatch) -> Result<Room, Refused> {
        let _turn = self.changes.lock().await;
        let (place, mut residence) = self.room_of(room)?;
        match patch.paused {
            Override::Keep => {}
            Override::TakeBack => residence.paused = false,
            Override::Set(paused) => residence.paused = paused,
        }
        let mut tempered = Vec::new();
        for (id, patch) in &patch.companions {
            let companion = CompanionId::from(&**id);
            if !residence.companions.contains(&companion) {
                return Err(invalid(
                    format!("companions.{id}"),
                    format!("{id} is not in room {room}; who is in it is set by PUT"),
                ));
            }
            let mut overrides = residence.overrides.remove(&companion).unwrap_or_default();
            let before = Overrides { paused: None, ..overrides.clone() };
            apply(patch, &mut overrides, id)?;
            overrides.check().map_err(|problem| invalid(format!("companions.{id}.{}", problem.key), problem.message))?;
            if (Overrides { paused: None, ..overrides.clone() }) != before {
                tempered.push(companion.clone());
            }
            if overrides != Overrides::default() {
                residence.overrides.insert(companion, overrides);
            }
        }
        self.settle_residence(&place.channel, residence.clone()).await?;
        tempered.iter().for_each(|companion| self.show_tempered(&place, companion));
        self.viewed(room.clone(), &residence).await
    }

    pub(super) async fn close_room(&self, room: &RoomId) -> Result<(), Refused> {
        let _turn = self.changes.lock().await;
        let (place, _) = self.room_of(room)?;
        let channel = &place.channel;
        // The directory goes first: a residence that nothing leads to does no harm, and is written over when the room is made again.
        self.administer(Ward(0), vec![Write::Remove(key::room(channel))]).await?;
        self.kit.residents.remove(channel);
        self.stop_channel(&place.guild, channel);
        self.delete_journal(&place).await?;
        self.administer(place.ward(), vec![Write::Remove(residence::key(&place))]).await?;
        // Whoever watches looks up whether the room is still there.
        self.kit.hub.publish(&place, Live::Note(json!({ "event": "closed", "channel": channel }).to_string().into()));
        Ok(())
    }

    pub(super) fn list_companions(&self) -> Companions {
        let cast = self.kit.residents.cast();
        let companions = cast.values().map(|companion| CompanionView {
            id: companion.id.clone(),
            name: companion.name.clone(),
            aliases: companion.aliases.clone(),
            interjection: companion.interjection.as_str().into(),
            chattiness: companion.chattiness.clone(),
            text_lull_timeout: companion.text_lull_timeout,
            voice_lull_timeout: companion.voice_lull_timeout,
        });
        Companions { companions: companions.collect() }
    }

    fn check_plan(&self, plan: &RoomPlan, known: Option<&Residence>, room: &RoomId) -> Result<(), Refused> {
        if let Some(known) = known.filter(|known| known.guild != plan.guild) {
            return Err(Refused::Conflict(format!(
                "room {room} belongs to guild {}, for good; name that guild, or make another room",
                known.guild
            )));
        }
        console::check_room_name(plan.guild.as_str())
            .map_err(|message| invalid("guild", message.strip_prefix("= ").unwrap_or(&message)))?;
        let cast = self.kit.residents.cast();
        for (place, invited) in plan.companions.iter().enumerate() {
            let field = format!("companions[{place}]");
            match (invited.external, cast.contains_key(&invited.id)) {
                (false, true) => {}
                // What is stored wins over what was configured since.
                (true, true) if known.is_some_and(|known| known.is_external(&invited.id)) => {}
                (true, true) => {
                    return Err(Refused::Conflict(format!(
                        "{field}: {id} is one of the companions of this server, and cannot be external; leave external out, or take another id",
                        id = invited.id
                    )));
                }
                (true, false) => self.check_external(&field, invited)?,
                (false, false) => {
                    let known = cast.keys().map(CompanionId::as_str).collect::<Vec<_>>().join(", ");
                    let id = &invited.id;
                    let detail = format!(
                        "there is no companion {id}, there are {known}; one that a program outside plays is {{\"id\": \"{id}\", \"external\": true}}"
                    );
                    return Err(invalid(field, detail));
                }
            }
        }
        if plan.companions.len() > MOST_IN_A_ROOM {
            let count = plan.companions.len();
            return Err(invalid("companions", format!("names {count} companions, at most {MOST_IN_A_ROOM} can be in a room")));
        }
        Ok(())
    }

    fn check_external(&self, field: &str, invited: &Invited) -> Result<(), Refused> {
        let Some((id, external)) = as_external(invited.clone()) else { return Ok(()) };
        let problems = played(&id, &external, &self.kit.settings.companion_defaults).err().unwrap_or_default();
        match problems.into_iter().next() {
            None => Ok(()),
            Some(problem) => {
                let message = problem.message.strip_prefix("= ").unwrap_or(&problem.message).to_owned();
                Err(invalid(format!("{field}.{}", problem.key), message))
            }
        }
    }

    /// Stores a residence, lives by it from now on, and lets the channel know.
    async fn settle_residence(&self, channel: &ChannelId, residence: Residence) -> Result<(), Refused> {
        self.kit.residents.allows(channel, &residence).map_err(|shared| conflict(&shared))?;
        for (ward, writes) in writes_of(channel, &residence) {
            self.administer(ward, writes).await?;
        }
        let before = self.kit.residents.get(channel);
        let moving = self.kit.residents.moving(channel);
        self.kit.residents.put(channel, residence.clone()).map_err(|shared| conflict(&shared))?;
        // On record before anybody can say something here: who comes later has not heard what was said before. What is missed here for a
        // failure, the channel makes up for.
        let place = Place::new(&residence.guild, channel);
        let recorded = self.record_news(&place, news(before.as_ref(), &residence)).await;
        drop(moving);
        self.tell_guild(&residence.guild, channel);
        recorded
    }

    async fn record_news(&self, place: &Place, news: Vec<Event>) -> Result<(), Refused> {
        for event in news {
            self.accept(place, event, None).await?;
        }
        Ok(())
    }

    /// What the channel still has on its way is refused by the scribe once the journal is deleted.
    fn stop_channel(&self, guild: &GuildId, channel: &ChannelId) {
        if let Some(actor) = self.kit.directory.find(&GuildPlace(guild.clone())) {
            // A guild that is gone has taken its channels along.
            let _ = actor.cast(GuildMessage::Close(channel.clone()));
        }
    }

    fn show_tempered(&self, place: &Place, companion: &CompanionId) {
        if !self.kit.hub.is_watched(place) {
            return;
        }
        let Some(settings) = self.kit.residents.companion(&place.channel, companion) else { return };
        let note = json!({
            "event": "tempered",
            "at": rfc3339(self.kit.clock.now()),
            "channel": place.channel,
            "companion": companion,
            "interjection": settings.interjection.as_str(),
            "chattiness": settings.chattiness,
            "text_lull_timeout": settings.text_lull_timeout,
            "voice_lull_timeout": settings.voice_lull_timeout,
        });
        self.kit.hub.publish(place, Live::Note(note.to_string().into()));
    }

    async fn viewed(&self, id: RoomId, residence: &Residence) -> Result<Room, Refused> {
        let channel = id.channel();
        let companion = |companion: &CompanionId| {
            let settings = self.kit.residents.companion(&channel, companion)?;
            Some(RoomCompanion {
                id: companion.clone(),
                name: settings.name.clone(),
                aliases: settings.aliases.clone(),
                external: residence.is_external(companion),
                interjection: settings.interjection.as_str().into(),
                paused: residence.is_paused(companion),
            })
        };
        let last_at = self.last_said(&Place::new(&residence.guild, &channel)).await.map_err(unread)?;
        Ok(Room {
            guild: residence.guild.clone(),
            companions: residence.companions.iter().filter_map(companion).collect(),
            paused: residence.paused,
            last_at,
            id,
        })
    }
}

fn as_external(invited: Invited) -> Option<(CompanionId, External)> {
    invited.external.then_some((invited.id, External { name: invited.name, aliases: invited.aliases }))
}

fn conflict(shared: &SharedName) -> Refused {
    Refused::Conflict(format!("{shared}; two companions of one guild cannot share a name"))
}

fn apply(patch: &CompanionPatch, overrides: &mut Overrides, id: &str) -> Result<(), Refused> {
    let interjection = match &patch.interjection {
        Override::Keep => Override::Keep,
        Override::TakeBack => Override::TakeBack,
        Override::Set(tier) => Override::Set(tier_of(tier, id)?),
    };
    change(&interjection, &mut overrides.interjection);
    change(&patch.chattiness, &mut overrides.chattiness);
    change(&patch.text_lull_timeout, &mut overrides.text_lull_timeout);
    change(&patch.voice_lull_timeout, &mut overrides.voice_lull_timeout);
    change(&patch.paused, &mut overrides.paused);
    Ok(())
}

fn change<T: Clone>(by: &Override<T>, value: &mut Option<T>) {
    match by {
        Override::Keep => {}
        Override::TakeBack => *value = None,
        Override::Set(new) => *value = Some(new.clone()),
    }
}

fn tier_of(tier: &Arc<str>, id: &str) -> Result<Interjection, Refused> {
    Interjection::ALL.into_iter().find(|known| known.as_str() == &**tier).ok_or_else(|| {
        let known = Interjection::ALL.map(Interjection::as_str).join(", ");
        invalid(format!("companions.{id}.interjection"), format!("{tier:?} is not one of {known}"))
    })
}
