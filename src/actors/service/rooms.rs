//! The rooms, their members, and changes of their settings at run time.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use super::ActorBackend;
use super::errors::invalid;
use crate::actors::membership::changes::{self, MembershipError};
use crate::actors::membership::memberships::{CompanionSet, ReloadError, external_companion};
use crate::actors::messages::guild::GuildMessage;
use crate::actors::runtime::actor_keys::GuildKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::hub::Live;
use crate::domain::id::{ChannelId, CompanionId};
use crate::domain::lookalike::look_alike;
use crate::domain::names::SharedName;
use crate::domain::text::one_line;
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::{self, External, Membership};
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::{RoomRecord, decode};
use crate::ports::backend::Refused;
use crate::ports::backend::room::{
    CompanionPatch, CompanionView, Companions, Invited, MOST_IN_A_ROOM, Override, Room, RoomCompanion, RoomId, RoomPatch,
    RoomPlan, Rooms,
};
use crate::ports::backend::stamp::rfc3339;
use crate::settings::companion::{Companion, Interjection, ModelOverrides, Overrides};
use crate::settings::console;
use crate::telemetry::plain::Plain;

/// A title is cut after this many characters.
const LONGEST_TITLE: usize = 200;

/// Why the rooms could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadRoomsError {
    /// Their stored records cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Two companions of one guild share a name.
    #[error("room {room}: {shared}; give one of them another name, or remove it from the guild")]
    SharedName {
        /// The room that could not be loaded.
        room: ChannelId,
        shared: SharedName,
    },
    /// A room of the settings could not be created.
    #[error("room {room}: {error}")]
    MembershipError { room: ChannelId, error: MembershipError },
}

/// Loads the opt-outs and all stored rooms, then creates the rooms of the settings that are not stored. A stored room takes precedence over the
/// settings. Needs the writer.
///
/// Companions that are no longer configured stay on record, and are logged.
///
/// # Errors
/// [`LoadRoomsError`]. A stored room that cannot be loaded because of a shared name is logged and skipped.
pub async fn load_rooms(context: &ActorContext, rooms: &[console::Room]) -> Result<(), LoadRoomsError> {
    let reader = Reader::new(&*context.store);
    context.opt_outs.read(&reader).await?;
    let cast = context.memberships.companions();
    // One read per ward: one read per room would need a disk access for each.
    let mut wards = BTreeMap::new();
    for RoomRecord { room, guild, .. } in reader.rooms().await? {
        let channel_key = ChannelKey::new(&guild, &room);
        let memberships = match wards.entry(channel_key.ward()) {
            Entry::Occupied(loaded) => loaded.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(reader.memberships(channel_key.ward()).await?),
        };
        let key = membership::key(&channel_key);
        let Some(value) = memberships.remove(&key) else { continue };
        let membership: Membership = decode(&key, &value).map_err(ReadError::from)?;
        for companion in &membership.companions {
            let (room, plain_companion) = (Plain(room.as_str()), Plain(companion.as_str()));
            match (membership.is_external(companion), cast.contains_key(companion)) {
                (false, false) => {
                    tracing::warn!(
                        %room,
                        companion = %plain_companion,
                        "a companion of this room is no longer configured; the room continues without it"
                    );
                }
                (true, true) => {
                    tracing::warn!(
                        %room,
                        companion = %plain_companion,
                        "a companion with this id is configured now, but stays external in this room"
                    );
                }
                _ => {}
            }
        }
        if let Err(shared) = context.memberships.put(&room, membership) {
            let (room, guild) = (Plain(room.as_str()), Plain(guild.as_str()));
            tracing::error!(%room, %guild, %shared, "this room cannot be loaded; give one of the two companions another name");
        }
    }
    for room in rooms {
        let channel = room.channel();
        if context.memberships.get(&channel).is_some() || reader.room(&channel).await?.is_some() {
            continue;
        }
        let companions = room.companions.iter().cloned().collect();
        let membership = Membership { companions, ..Membership::empty(room.guild.clone(), context.clock.now()) };
        let lock = context.memberships.lock().await;
        changes::update_membership(context, &lock, &channel, membership).await.map_err(|error| match error {
            MembershipError::SharedName(shared) => LoadRoomsError::SharedName { room: channel.clone(), shared },
            error => LoadRoomsError::MembershipError { room: channel.clone(), error },
        })?;
    }
    Ok(())
}

/// Replaces the configured companions. Companions that are no longer configured leave the rooms; those that are configured again return.
/// Nothing changes on an error.
///
/// # Errors
/// Two companions of one guild would share a name, or one of them is external in a room.
pub fn reload_companions(context: &ActorContext, cast: CompanionSet) -> Result<(), ReloadError> {
    context.memberships.reload_companions(cast)?;
    let guilds: BTreeSet<_> = context.memberships.all().into_iter().map(|(_, membership)| membership.guild).collect();
    for guild in guilds {
        if let Some(actor) = context.directory.find(&GuildKey(guild)) {
            // A guild that is being restarted reads the change when it starts, and so does a channel that is not running.
            let _ = actor.cast(GuildMessage::MembershipChanged(None));
        }
    }
    Ok(())
}

impl ActorBackend {
    pub(super) async fn list_rooms(&self) -> Result<Rooms, Refused> {
        let mut rooms = Vec::new();
        for (channel, membership) in self.context.memberships.all() {
            if let Some(room) = RoomId::of(&channel) {
                rooms.push(self.room_view(room, &membership).await?);
            }
        }
        Ok(Rooms { rooms })
    }

    pub(super) async fn view_room(&self, room: &RoomId) -> Result<Room, Refused> {
        let (_, membership) = self.room_of(room)?;
        self.room_view(room.clone(), &membership).await
    }

    pub(super) async fn create_room(&self, room: &RoomId, plan: RoomPlan) -> Result<(Room, bool), Refused> {
        let lock = self.context.memberships.lock().await;
        let channel = room.channel();
        let existing = self.context.memberships.get(&channel);
        if existing.is_none() && !self.is_written_here(room) {
            return Err(Refused::Conflict(format!(
                "{room} is a channel of {} without companions: {}",
                self.platform(room),
                self.how_to_create(room)
            )));
        }
        if plan.must_be_new && existing.is_some() {
            return Err(Refused::Conflict(format!("there is already a room {room}; choose another name, or open that room")));
        }
        self.check_plan(&plan, existing.as_ref(), room)?;
        let is_new = existing.is_none();
        let mut membership = existing.unwrap_or_else(|| Membership::empty(plan.guild.clone(), self.context.clock.now()));
        match plan.language {
            Override::Keep => {}
            Override::Reset => membership.language = None,
            Override::Set(language) => membership.language = Some(language),
        }
        membership.companions = plan.companions.iter().map(|invited| invited.id.clone()).collect();
        membership.externals = plan.companions.into_iter().filter_map(as_external).collect();
        membership.overrides.retain(|companion, _| membership.companions.contains(companion));
        membership.stands_alone = membership.within.is_some();
        changes::update_membership(&self.context, &lock, &channel, membership.clone()).await?;
        Ok((self.room_view(room.clone(), &membership).await?, is_new))
    }

    pub(super) async fn change_room(&self, room: &RoomId, patch: RoomPatch) -> Result<Room, Refused> {
        let lock = self.context.memberships.lock().await;
        let (channel_key, mut membership) = self.room_of(room)?;
        if patch.title != Override::Keep && !self.is_written_here(room) {
            return Err(Refused::Conflict(format!(
                "title: room {room} is a channel of {platform}; rename it on {platform}",
                platform = self.platform(room)
            )));
        }
        change(&patch.title, &mut membership.title);
        match patch.paused {
            Override::Keep => {}
            Override::Reset => membership.paused = false,
            Override::Set(paused) => membership.paused = paused,
        }
        let mut changed = Vec::new();
        for (id, patch) in &patch.companions {
            let companion = CompanionId::from(&**id);
            if !membership.companions.contains(&companion) {
                return Err(invalid(
                    format!("companions.{id}"),
                    format!("{id} is not in room {room}; set its companions with PUT"),
                ));
            }
            let mut overrides = membership.overrides.remove(&companion).unwrap_or_default();
            let before = Overrides { paused: None, ..overrides.clone() };
            apply(patch, &mut overrides, id)?;
            overrides.check().map_err(|problem| invalid(format!("companions.{id}.{}", problem.key), problem.message))?;
            self.check_models(&overrides, id)?;
            if (Overrides { paused: None, ..overrides.clone() }) != before {
                changed.push(companion.clone());
            }
            if overrides != Overrides::default() {
                membership.overrides.insert(companion, overrides);
            }
        }
        membership.stands_alone = membership.within.is_some();
        changes::update_membership(&self.context, &lock, &channel_key.channel, membership.clone()).await?;
        for channel in
            std::iter::once(channel_key.channel.clone()).chain(self.context.memberships.inheriting_from(&channel_key.channel))
        {
            let channel_key = ChannelKey::new(&channel_key.guild, &channel);
            changed.iter().for_each(|companion| self.publish_policy(&channel_key, companion));
        }
        self.room_view(room.clone(), &membership).await
    }

    pub(super) async fn close_room(&self, room: &RoomId) -> Result<(), Refused> {
        let lock = self.context.memberships.lock().await;
        let (channel_key, _) = self.room_of(room)?;
        changes::close(&self.context, &lock, &channel_key.channel).await.map_err(Refused::from)
    }

    pub(super) fn list_companions(&self) -> Companions {
        let cast = self.context.memberships.companions();
        let companions = cast.values().map(|companion| CompanionView {
            id: companion.id.clone(),
            name: companion.name.clone(),
            aliases: companion.aliases.clone(),
            interjection: companion.interjection.as_str().into(),
            chattiness: companion.chattiness.clone(),
            text_lull_timeout: companion.text_lull_timeout,
            voice_lull_timeout: companion.voice_lull_timeout,
            starts_after: companion.starts_after,
            max_turns: companion.max_turns,
            repetition: companion.repetition,
            model: companion.model.clone(),
        });
        Companions { companions: companions.collect() }
    }

    fn check_plan(&self, plan: &RoomPlan, existing: Option<&Membership>, room: &RoomId) -> Result<(), Refused> {
        if let Some(existing) = existing.filter(|existing| existing.guild != plan.guild) {
            return Err(Refused::Conflict(format!(
                "room {room} belongs to guild {}, which cannot change; name that guild, or create another room",
                existing.guild
            )));
        }
        // The guild of a channel of another platform comes from that platform.
        if self.is_written_here(room) {
            console::check_room_name(plan.guild.as_str())
                .map_err(|message| invalid("guild", message.strip_prefix("= ").unwrap_or(&message)))?;
        }
        if let Override::Set(language) = &plan.language
            && let Some(message) = self.context.settings.speech.problem_of(language)
        {
            return Err(invalid("language", message.strip_prefix("= ").unwrap_or(&message)));
        }
        let cast = self.context.memberships.companions();
        for (index, invited) in plan.companions.iter().enumerate() {
            let field = format!("companions[{index}]");
            if invited.external && !self.is_written_here(room) {
                let id = &invited.id;
                let detail = format!(
                    "{id} is external, and external companions cannot be in channels of {} yet; name one of this server's companions, or add {id} to \
                     a room of the console",
                    self.platform(room)
                );
                return Err(Refused::Conflict(format!("{field}: {detail}")));
            }
            match (invited.external, cast.contains_key(&invited.id)) {
                (false, true) => {}
                // The stored room takes precedence over a companion that was configured later.
                (true, true) if existing.is_some_and(|existing| existing.is_external(&invited.id)) => {}
                (true, true) => {
                    return Err(Refused::Conflict(format!(
                        "{field}: {id} is one of this server's companions and cannot be external; leave external out, or choose another id",
                        id = invited.id
                    )));
                }
                (true, false) => self.check_external(&field, invited)?,
                (false, false) => {
                    let configured = cast.keys().map(CompanionId::as_str).collect::<Vec<_>>().join(", ");
                    let id = &invited.id;
                    let detail = format!(
                        "there is no companion {id}, there are {configured}; an external companion is given as {{\"id\": \"{id}\", \"external\": \
                         true}}"
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

    fn check_models(&self, overrides: &Overrides, id: &str) -> Result<(), Refused> {
        let models = &self.context.settings.models;
        match overrides.model.chosen().find_map(|(role, name)| Some((role, models.problem_of(role, name)?))) {
            None => Ok(()),
            Some((role, problem)) => {
                let message = problem.strip_prefix("= ").unwrap_or(&problem).to_owned();
                Err(invalid(format!("companions.{id}.model.{}", role.as_str()), message))
            }
        }
    }

    fn check_external(&self, field: &str, invited: &Invited) -> Result<(), Refused> {
        let Some((id, external)) = as_external(invited.clone()) else { return Ok(()) };
        let problems = match external_companion(&id, &external, &self.context.settings.companion_defaults) {
            Ok(companion) => return self.check_looks(field, &companion),
            Err(problems) => problems,
        };
        match problems.into_iter().next() {
            None => Ok(()),
            Some(problem) => {
                let message = problem.message.strip_prefix("= ").unwrap_or(&problem.message).to_owned();
                Err(invalid(format!("{field}.{}", problem.key), message))
            }
        }
    }

    /// Rejects an external companion that people could mistake for one of this server's companions, whatever room that is in. A companion with
    /// the same id is not compared here: shared names within the guild are checked when the membership is stored.
    fn check_looks(&self, field: &str, external: &Companion) -> Result<(), Refused> {
        for ours in self.context.memberships.companions().values() {
            for (name, taken) in external.names().flat_map(|name| ours.names().map(move |taken| (name, taken))) {
                if external.id != ours.id && look_alike(name, taken) {
                    return Err(Refused::Conflict(format!(
                        "{field}: {name:?}, a name of {}, looks like {taken:?}, a name of this server's companion {}; choose another name",
                        external.id, ours.id
                    )));
                }
            }
        }
        Ok(())
    }

    /// Shows watchers a companion's new settings.
    fn publish_policy(&self, channel_key: &ChannelKey, companion: &CompanionId) {
        if !self.context.hub.is_watched(channel_key) {
            return;
        }
        let Some(settings) = self.context.memberships.companion(&channel_key.channel, companion) else { return };
        let note = json!({
            "event": "tempered",
            "at": rfc3339(self.context.clock.now()),
            "channel": channel_key.channel,
            "companion": companion,
            "interjection": settings.interjection.as_str(),
            "chattiness": settings.chattiness,
            "text_lull_timeout": settings.text_lull_timeout,
            "voice_lull_timeout": settings.voice_lull_timeout,
            "starts_after": settings.starts_after,
            "max_turns": settings.max_turns,
            "repetition": settings.repetition,
            "model": settings.model,
        });
        self.context.hub.publish(channel_key, Live::Note(note.to_string().into()));
    }

    pub(super) async fn room_view(&self, id: RoomId, membership: &Membership) -> Result<Room, Refused> {
        let channel = id.channel();
        let companion = |companion: &CompanionId| {
            let settings = self.context.memberships.companion(&channel, companion)?;
            Some(RoomCompanion {
                id: companion.clone(),
                name: settings.name.clone(),
                aliases: settings.aliases.clone(),
                external: membership.is_external(companion),
                interjection: settings.interjection.as_str().into(),
                starts_after: settings.starts_after,
                max_turns: settings.max_turns,
                repetition: settings.repetition,
                model: settings.model.clone(),
                paused: membership.is_paused(companion),
            })
        };
        let last_at = self.last_message_at(&ChannelKey::new(&membership.guild, &channel)).await?;
        let title = self.context.platforms.of(&channel).and_then(|platform| platform.title(&channel));
        let title = title.map(|title| one_line(&title, LONGEST_TITLE)).filter(|title| !title.is_empty());
        Ok(Room {
            title: title.map(Arc::from).or_else(|| membership.title.clone()),
            guild: membership.guild.clone(),
            inherits_from: membership.inherits_from().cloned(),
            companions: membership.companions.iter().filter_map(companion).collect(),
            language: membership.language.clone(),
            paused: membership.paused,
            last_at,
            id,
        })
    }
}

fn as_external(invited: Invited) -> Option<(CompanionId, External)> {
    invited.external.then_some((invited.id, External { name: invited.name, aliases: invited.aliases }))
}

fn apply(patch: &CompanionPatch, overrides: &mut Overrides, id: &str) -> Result<(), Refused> {
    let interjection = match &patch.interjection {
        Override::Keep => Override::Keep,
        Override::Reset => Override::Reset,
        Override::Set(level) => Override::Set(level_of(level, id)?),
    };
    change(&interjection, &mut overrides.interjection);
    change(&patch.chattiness, &mut overrides.chattiness);
    change(&patch.text_lull_timeout, &mut overrides.text_lull_timeout);
    change(&patch.voice_lull_timeout, &mut overrides.voice_lull_timeout);
    change(&patch.starts_after, &mut overrides.starts_after);
    change(&patch.max_turns, &mut overrides.max_turns);
    change(&patch.repetition, &mut overrides.repetition);
    match &patch.model {
        Override::Keep => {}
        Override::Reset => overrides.model = ModelOverrides::default(),
        Override::Set(models) => {
            change(&models.main, &mut overrides.model.main);
            change(&models.side, &mut overrides.model.side);
        }
    }
    change(&patch.paused, &mut overrides.paused);
    Ok(())
}

fn change<T: Clone>(patch: &Override<T>, value: &mut Option<T>) {
    match patch {
        Override::Keep => {}
        Override::Reset => *value = None,
        Override::Set(new) => *value = Some(new.clone()),
    }
}

fn level_of(level: &Arc<str>, id: &str) -> Result<Interjection, Refused> {
    Interjection::ALL.into_iter().find(|each| each.as_str() == &**level).ok_or_else(|| {
        let levels = Interjection::ALL.map(Interjection::as_str).join(", ");
        invalid(format!("companions.{id}.interjection"), format!("{level:?} is not one of {levels}"))
    })
}
