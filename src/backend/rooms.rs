//! The rooms, their members, and changes of their settings at run time.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::errors::invalid;
use super::room_plans::as_external;
use super::state::{CurrentState, floor_state, round_state, turn_state};
use super::{ActorBackend, live};
use crate::actors::membership::changes::{self, MembershipError};
use crate::actors::membership::memberships::MembershipLock;
use crate::actors::runtime::hub;
use crate::domain::conversation::Rules;
use crate::domain::event::Event;
use crate::domain::id::{CompanionId, GuildId, PersonId};
use crate::domain::names::SharedName;
use crate::domain::room_words::MOST_DESCRIBED;
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::Membership;
use crate::ports::backend::live::{LiveStream, Watched};
use crate::ports::backend::room::{
    CompanionView, Companions, Deletion, MOST_IN_A_ROOM, NewRoom, Override, Room, RoomCompanion, RoomId, RoomPatch, RoomPlan,
    Rooms,
};
use crate::ports::backend::room_service::RoomService;
use crate::ports::backend::stamp::{Stamp, rfc3339};
use crate::ports::backend::state::{Episode, FilteredMessage, RepetitionState, RoomState, UsedUpBudget};
use crate::ports::backend::{Detail, Refused};
use crate::ports::inbound_events::ChannelRef;
use crate::settings::companion::Overrides;

#[async_trait]
impl RoomService for ActorBackend {
    async fn list(&self) -> Result<Rooms, Refused> {
        self.rooms_where(|_| true).await
    }

    async fn of_guild(&self, guild: &GuildId) -> Result<Rooms, Refused> {
        self.rooms_where(|membership| membership.guild == *guild).await
    }

    async fn get(&self, room: &RoomId) -> Result<Room, Refused> {
        let (_, membership) = self.room_of(room)?;
        self.room_view(room.clone(), &membership).await
    }

    async fn find(&self, name: &str) -> Result<RoomId, Refused> {
        self.room_named(name)
    }

    async fn create(&self, new: NewRoom) -> Result<Room, Refused> {
        let NewRoom { title, guild, companions, language } = new;
        let lock = self.context.memberships.lock().await;
        self.check_title(&title, None)?;
        let stored: BTreeSet<_> = self.reader().rooms().await?.into_iter().map(|stored| stored.room).collect();
        let is_taken =
            |room: &RoomId| stored.contains(&room.channel()) || self.context.memberships.recorded(&room.channel()).is_some();
        let room = RoomId::of_title(&title, is_taken);
        let title = Some(title).filter(|title| **title != *room.as_str());
        let plan = RoomPlan { guild, companions, language, must_be_new: true };
        self.put_with(&lock, &room, plan, title).await.map(|(room, _)| room)
    }

    async fn put(&self, room: &RoomId, plan: RoomPlan) -> Result<(Room, bool), Refused> {
        let lock = self.context.memberships.lock().await;
        self.put_with(&lock, room, plan, None).await
    }
    async fn patch(&self, room: &RoomId, patch: RoomPatch) -> Result<Room, Refused> {
        let lock = self.context.memberships.lock().await;
        let (channel_key, mut membership) = self.room_of(room)?;
        if patch.title != Override::Keep && !self.is_written_here(room) {
            let platform = self.platform(room);
            let detail = format!("title: room {room} is a channel of {platform}; rename it on {platform}");
            let values = json!({ "room": self.name_of(room), "platform": platform });
            return Err(Refused::conflict(Detail::from(detail).coded("refusals.rename_there", values)));
        }
        match &patch.title {
            Override::Set(title) => self.check_title(title, Some(room))?,
            Override::Reset => self.check_title(room.as_str(), Some(room))?,
            Override::Keep => {}
        }
        patch.title.apply(&mut membership.title);
        let mut paused = Some(membership.paused);
        patch.paused.apply(&mut paused);
        membership.paused = paused.unwrap_or_default();
        patch.quiet_hours.apply(&mut membership.quiet_hours);
        patch.voice_notes.apply(&mut membership.voice_notes);
        patch.words.apply(&mut membership.words);
        let mut minors = Some(membership.minors);
        patch.minors.apply(&mut minors);
        membership.minors = minors.unwrap_or_default();
        if patch.minors == Override::Set(false) && self.context.memberships.guild_has_minors(&membership.guild) {
            return Err(Refused::conflict(Detail::of("refusals.guild_has_minors", json!({ "guild": membership.guild }))));
        }
        let mut changed = Vec::new();
        for (id, patch) in patch.companions {
            let companion = CompanionId::from(&*id);
            if !membership.companions.contains(&companion) {
                return Err(invalid(format!("companions.{id}"), self.not_in_room(&companion, room)));
            }
            let mut overrides = membership.overrides.remove(&companion).unwrap_or_default();
            let before = Overrides { paused: None, ..overrides.clone() };
            patch.apply(&mut overrides);
            overrides.check().map_err(|problem| invalid(format!("companions.{id}.{}", problem.key), problem.message))?;
            self.check_models(&overrides, &id)?;
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

    async fn deletion(&self, room: &RoomId) -> Result<Deletion, Refused> {
        let membership = self.context.memberships.recorded(&room.channel()).ok_or_else(|| self.no_room(room))?;
        let messages = self.count_messages(&ChannelKey::new(&membership.guild, &room.channel())).await?;
        Ok(Deletion { messages, deleted_at: membership.deleted_at.map(Stamp) })
    }

    async fn delete(&self, room: &RoomId) -> Result<Deletion, Refused> {
        let channel = room.channel();
        let lock = self.context.memberships.lock().await;
        let membership = self.context.memberships.recorded(&channel).ok_or_else(|| self.no_room(room))?;
        let channel_key = ChannelKey::new(&membership.guild, &channel);
        let deleted_at = match membership.deleted_at {
            Some(at) => {
                // The deletion may be overdue because the store failed. Then it is retried.
                if at <= self.context.clock.now() {
                    changes::delete_later(&self.context, &channel, at, changes::UNDO);
                }
                at
            }
            None => changes::begin_deletion(&self.context, &lock, &channel, membership).await?,
        };
        drop(lock);
        // A room that cannot be read can be deleted.
        let messages = self.count_messages(&channel_key).await.unwrap_or_default();
        Ok(Deletion { messages, deleted_at: Some(deleted_at.into()) })
    }

    async fn undelete(&self, room: &RoomId) -> Result<Room, Refused> {
        let channel = room.channel();
        let lock = self.context.memberships.lock().await;
        let Some(membership) = self.context.memberships.recorded(&channel) else {
            return Err(Refused::not_found(Detail::of("refusals.room_gone", json!({ "room": room }))));
        };
        match membership.deleted_at {
            None => {
                return Err(Refused::conflict(Detail::of("refusals.not_being_deleted", json!({ "room": self.name_of(room) }))));
            }
            Some(at) if at <= self.context.clock.now() => {
                return Err(Refused::conflict(Detail::of("refusals.too_late", json!({ "room": room }))));
            }
            Some(_) => {}
        }
        changes::undo_deletion(&self.context, &lock, &channel, membership.clone()).await?;
        // Views of all rooms begin again with the state of the room.
        let note = json!({ "event": "undeleted", "at": rfc3339(self.context.clock.now()), "channel": channel });
        let channel_key = ChannelKey::new(&membership.guild, &channel);
        self.context.hub.publish(&channel_key, hub::Live::Note(note.to_string().into()));
        self.get(room).await
    }

    async fn clear(&self, room: &RoomId) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.accept(&channel_key, Event::cleared(), None).await.map(drop)
    }

    async fn begin_anew(&self, room: &RoomId) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.accept(&channel_key, Event::Cleared { anew: true }, None).await.map(drop)
    }

    async fn description(&self, room: &RoomId, person: &PersonId) -> Result<Option<Arc<str>>, Refused> {
        let (_, mut membership) = self.room_of(room)?;
        Ok(membership.described.remove(person))
    }

    async fn describe(&self, room: &RoomId, person: &PersonId, text: Option<Arc<str>>) -> Result<(), Refused> {
        let lock = self.context.memberships.lock().await;
        let (channel_key, mut membership) = self.room_of(room)?;
        self.check_writable(room)?;
        let before = match &text {
            Some(text) => membership.described.insert(person.clone(), text.clone()),
            None => membership.described.remove(person),
        };
        if before == text {
            return Ok(());
        }
        if membership.described.len() > MOST_DESCRIBED {
            return Err(Refused::conflict(Detail::of("refusals.too_many_described", json!({ "most": MOST_DESCRIBED }))));
        }
        changes::update_membership(&self.context, &lock, &channel_key.channel, membership).await?;
        if before.is_some() {
            self.mark_erased(&channel_key.guild, person).await?;
        }
        self.context.sent_prompts.forget(&channel_key);
        Ok(())
    }

    async fn state(&self, room: &RoomId) -> Result<RoomState, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        let CurrentState { inspection, out_of_service, .. } = self.current_state(&channel_key).await?;
        let conversation = &inspection.conversation;
        let companions = self
            .context
            .memberships
            .admitted(&membership)
            .companions
            .iter()
            .filter_map(|id| Some((id, self.context.memberships.companion(&channel_key.channel, id)?)))
            .map(|(id, settings)| self.companion_state(id, &settings, &membership, &inspection))
            .collect();
        let floor = conversation.turns().floor().map(floor_state);
        let late = conversation.turns().owed_replies().skip(usize::from(conversation.turns().floor().is_some()));
        let now = self.context.clock.now();
        let idle = self.context.settings.closing.episode_idle();
        let settings = self.context.in_force();
        let rules = Rules::from(&*settings);
        let tally = conversation.tally();
        let episode = conversation.episode().filter(|episode| now.since(episode.last_at) < idle);
        let filtered = conversation.filtered().found().map(|(asked, model, message)| FilteredMessage {
            message,
            asked: asked.as_str(),
            model: model.clone(),
        });
        Ok(RoomState {
            companions,
            floor,
            late: late.map(floor_state).collect(),
            rounds: conversation.turns().rounds().iter().map(round_state).collect(),
            turn: conversation.turns().selected().map(turn_state),
            streak: tally.streak,
            max_companion_streak: rules.turn_taking.max_companion_streak,
            turns: tally.turns,
            max_turns: rules.turn_taking.max_turns,
            repetition: RepetitionState {
                score: f64::from(tally.repetition) / 1000.0,
                detections: tally.detections,
                judging: conversation.turns().open_judgement().is_some(),
            },
            episode: episode.map(|episode| Episode { began_at: episode.began_at.into() }),
            filtered: filtered.collect(),
            kept_away: out_of_service,
            used_up: inspection.used_up.map(UsedUpBudget::from),
            at: now.into(),
        })
    }

    async fn companions(&self) -> Result<Companions, Refused> {
        let cast = self.context.memberships.companions();
        let companions = cast.values().map(|companion| CompanionView {
            ai: true,
            id: companion.id.clone(),
            name: companion.name.clone(),
            aliases: companion.aliases.clone(),
            interjection: companion.interjection.as_str().into(),
            chattiness: companion.chattiness.clone(),
            text_lull_timeout: companion.text_lull_timeout,
            voice_lull_timeout: companion.voice_lull_timeout,
            quiet_hours: companion.quiet_hours,
            starts_after: companion.starts_after,
            max_turns: companion.max_turns,
            repetition: companion.repetition,
            model: companion.model.clone(),
            picture: self.context.pictures.path(&companion.id),
            greets: !companion.greetings.is_empty(),
            guild: companion.guild.clone(),
            public_picture: companion
                .picture
                .clone()
                .or_else(|| self.context.pictures.public_url(&companion.id, &self.context.settings.server)),
        });
        Ok(Companions { companions: companions.collect() })
    }

    async fn admit(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<(Room, bool), Refused> {
        let id = self.joinable_room(channel_ref)?;
        // The lock ensures that two concurrent additions both take effect.
        let lock = self.context.memberships.lock().await;
        let (is_room, mut membership) = self.membership_at(channel_ref)?;
        if is_room && membership.companions.contains(companion) {
            return Ok((self.room_view(id, &membership).await?, false));
        }
        if !self.has_companion(companion, &channel_ref.guild) {
            return Err(self.no_companion(companion));
        }
        self.check_adults(&membership, companion).map_err(Refused::conflict)?;
        let is_new = membership.companions.insert(companion.clone());
        if membership.companions.len() > MOST_IN_A_ROOM {
            return Err(Refused::conflict(format!(
                "at most {MOST_IN_A_ROOM} companions can be in a channel; remove another one first"
            )));
        }
        membership.stands_alone |= is_new && membership.within.is_some();
        changes::update_membership(&self.context, &lock, &channel_ref.channel, membership.clone()).await.map_err(|error| match error {
            MembershipError::SharedName(SharedName { name, first, second }) => {
                let other = if first == *companion { second } else { first };
                Refused::conflict(format!(
                    "{companion} and {other}, who is in this guild, share the name {name:?}; remove {other} from all its channels here first"
                ))
            }
            error => error.into(),
        })?;
        Ok((self.room_view(id, &membership).await?, is_new))
    }

    async fn dismiss(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<bool, Refused> {
        self.joinable_room(channel_ref)?;
        let lock = self.context.memberships.lock().await;
        let (_, mut membership) = self.membership_at(channel_ref)?;
        if !membership.companions.remove(companion) {
            return Ok(false);
        }
        membership.externals.remove(companion);
        membership.overrides.remove(companion);
        membership.stands_alone = membership.within.is_some();
        changes::update_membership(&self.context, &lock, &channel_ref.channel, membership).await?;
        Ok(true)
    }

    async fn live(&self, watched: Watched) -> Result<LiveStream, Refused> {
        Ok(live::Subscription::new(self, watched).await?.into_stream())
    }
}

impl ActorBackend {
    async fn rooms_where(&self, is_wanted: impl Fn(&Membership) -> bool + Send) -> Result<Rooms, Refused> {
        let mut rooms = Vec::new();
        for (channel, membership) in self.context.memberships.all().into_iter().filter(|(_, one)| is_wanted(one)) {
            if let Some(room) = RoomId::of(&channel) {
                rooms.push(self.room_view(room, &membership).await?);
            }
        }
        Ok(Rooms { rooms })
    }

    async fn put_with(
        &self,
        lock: &MembershipLock,
        room: &RoomId,
        plan: RoomPlan,
        title: Option<Arc<str>>,
    ) -> Result<(Room, bool), Refused> {
        let channel = room.channel();
        let existing = self.context.memberships.get(&channel);
        if existing.is_none() && !self.is_written_here(room) {
            return Err(Refused::conflict(format!(
                "{room} is a channel of {} without companions: {}",
                self.platform(room),
                self.how_to_create(room)
            )));
        }
        if plan.must_be_new && existing.is_some() {
            return Err(Refused::conflict(Detail::of("refusals.room_exists", json!({ "room": room }))));
        }
        if let Some(at) = self.context.memberships.deleted_at(&channel) {
            return Err(Refused::conflict(self.being_deleted(room, at)));
        }
        self.check_plan(&plan, existing.as_ref(), room)?;
        let is_new = existing.is_none();
        let new = || Membership { title, ..Membership::empty(plan.guild.clone(), self.context.clock.now()) };
        let mut membership = existing.unwrap_or_else(new);
        plan.language.apply(&mut membership.language);
        membership.companions = plan.companions.iter().map(|invited| invited.id.clone()).collect();
        membership.externals = plan.companions.into_iter().filter_map(as_external).collect();
        membership.overrides.retain(|companion, _| membership.companions.contains(companion));
        membership.stands_alone = membership.within.is_some();
        changes::update_membership(&self.context, lock, &channel, membership.clone()).await?;
        Ok((self.room_view(room.clone(), &membership).await?, is_new))
    }

    /// Publishes a companion's new settings to watchers.
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
            "quiet_hours": settings.quiet_hours,
            "starts_after": settings.starts_after,
            "max_turns": settings.max_turns,
            "repetition": settings.repetition,
            "model": settings.model,
        });
        self.context.hub.publish(channel_key, hub::Live::Note(note.to_string().into()));
    }

    pub(super) async fn room_view(&self, id: RoomId, membership: &Membership) -> Result<Room, Refused> {
        let channel = id.channel();
        let companion = |companion: &CompanionId| {
            let settings = self.context.memberships.companion(&channel, companion)?;
            Some(RoomCompanion {
                id: companion.clone(),
                name: settings.name.clone(),
                ai: true,
                about: settings.about.clone().filter(|_| !membership.is_external(companion)),
                aliases: settings.aliases.clone(),
                external: membership.is_external(companion),
                interjection: settings.interjection.as_str().into(),
                quiet_hours: settings.quiet_hours,
                starts_after: settings.starts_after,
                max_turns: settings.max_turns,
                repetition: settings.repetition,
                model: settings.model.clone(),
                kept_out: self.context.memberships.excludes(membership, companion),
                paused: membership.is_paused(companion),
                picture: self.context.pictures.path(companion).filter(|_| !membership.is_external(companion)),
            })
        };
        let last_at = self.last_message_at(&ChannelKey::new(&membership.guild, &channel)).await?;
        Ok(Room {
            title: self.title_of(&id, membership),
            guild: membership.guild.clone(),
            inherits_from: membership.inherits_from().cloned(),
            companions: membership.companions.iter().filter_map(companion).collect(),
            language: membership.language.clone(),
            quiet_hours: membership.quiet_hours,
            minors: self.context.memberships.has_minors(&channel),
            voice_notes: self.inbound.voice_notes(&channel),
            words: self.context.words_of(&channel),
            paused: membership.paused,
            last_at,
            id,
        })
    }
}
