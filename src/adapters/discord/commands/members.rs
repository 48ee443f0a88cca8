//! Changes the companions of a channel: adds and removes them, sets their interjection level, pauses them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::choosing::member;
use super::interaction::ChannelContext;
use super::quoting::name;
use super::registered::{Level, SPOKEN_TO, tier_sentence};
use super::text::{Text, say};
use super::words::{self, channel, elsewhere};
use super::{Answer, CommandHandler};
use crate::ports::backend::room::{CompanionPatch, Override, Room, RoomCompanion, RoomPatch, VoiceNotes};
use crate::settings::companion::{Interjection, QuietHours};
use crate::snowflake::Snowflake;

impl CommandHandler {
    pub(super) async fn join(
        &self,
        typed: &str,
        at: &ChannelContext,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<Text, Answer> {
        may_change(at, here)?;
        if !at.can_have_members() {
            return Err(Answer::Refused(say!(
                "Companions cannot join a channel of this kind: choose one in which people write."
            )));
        }
        let companion = self.configured(typed, here).await?;
        self.refuse_in_guilds_without_bot(at).await?;
        let (room, is_new) = self.backend.rooms.admit(&at.channel_ref(), &companion.id).await?;
        if is_new {
            tracing::info!(guild = %at.guild_id(), channel = %at.channel, companion = %companion.id, by = %person, "a companion joined a channel");
        }
        if let (Some(calls), Some(guild)) = (&self.calls, at.guild) {
            calls.companions_changed(guild);
        }
        let present = room.companions.iter().find(|member| member.id == companion.id);
        let mut lines = vec![welcome(&companion.name, present, is_new, at, here)];
        lines.extend(self.obstacles(at));
        Ok(Text::lines(lines))
    }

    /// Describes the known obstacles to reading and speaking in a channel.
    pub(super) fn obstacles(&self, at: &ChannelContext) -> Vec<Text> {
        let missing = at.missing().unwrap_or_default();
        let mut lines = words::needs(&missing);
        if !at.is_direct() && self.discord.reads_all() == Some(false) {
            lines.push(words::not_reading().bullet());
        }
        if at.is_hidden() {
            lines.push(say!("This thread is private: mention the bot in it once, so that Discord adds it.").bullet());
        }
        if !lines.is_empty() {
            let vital = missing.iter().any(|need| need.is_vital());
            let heading = if vital { say!("**Fix this first:**") } else { say!("**It works better with this:**") };
            lines.splice(0..0, [words::blank(), heading]);
        }
        lines
    }

    pub(super) async fn leave(
        &self,
        typed: &str,
        at: &ChannelContext,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<Text, Answer> {
        may_change(at, here)?;
        let room = self.room_or_future_room(at).await?.filter(|room| !room.companions.is_empty());
        let room = room.ok_or_else(|| Answer::Refused(no_companion(at, here)))?;
        let companion = member(&room, typed)?;
        let was_there = self.backend.rooms.dismiss(&at.channel_ref(), &companion.id).await?;
        let name_text = name(&companion.name);
        if !was_there {
            return Ok(say!("{name} had already left.", name = name_text));
        }
        tracing::info!(guild = %at.guild_id(), channel = %at.channel, companion = %companion.id, by = %person, "a companion left a channel");
        let left = match elsewhere(at, here) {
            None => say!("{name} is no longer here.", name = name_text),
            Some(channel) => say!("{name} is no longer in {channel}.", name = name_text, channel = channel),
        };
        Ok(Text::sentences([left, say!("`/tertulia join` brings it back.")]))
    }

    /// Sets the interjection level and quiet hours. If no companion is named, quiet hours are set for the channel, so they also apply to companions
    /// that join later.
    pub(super) async fn set_level(
        &self,
        level: Option<Level>,
        quiet_hours: Option<&str>,
        typed: Option<&str>,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<Text, Answer> {
        let quiet_hours = match (quiet_hours.map(QuietHours::parse), level) {
            (Some(None), _) => {
                return Err(Answer::Refused(say!("Quiet hours are two times, such as `23:00-08:00`, or `always`, or `never`.")));
            }
            (None, None) => return Err(Answer::Refused(say!("Choose a level, or write quiet hours such as `23:00-08:00`."))),
            (Some(Some(hours)), _) => Override::Set(hours),
            (None, Some(Level::SpokenTo)) => Override::Set(QuietHours::Always),
            (None, Some(Level::Default)) => Override::Reset,
            (None, Some(Level::Tier(_))) => Override::Keep,
        };
        let interjection = match level {
            Some(Level::Tier(tier)) => {
                Interjection::ALL.into_iter().find(|level| level.as_str() == tier).map_or(Override::Reset, Override::Set)
            }
            Some(Level::Default) => Override::Reset,
            Some(Level::SpokenTo) | None => Override::Keep,
        };
        // Choosing a tier removes the quiet hours `always`, but keeps hours such as 23:00-08:00.
        let ends_always = |now: QuietHours, end: Override<QuietHours>| match (level, quiet_hours, now) {
            (Some(Level::Tier(_)), Override::Keep, QuietHours::Always) => end,
            _ => Override::Keep,
        };
        let of_room = |room: &Room| match (typed, quiet_hours) {
            (Some(_), _) => Override::Keep,
            (None, Override::Keep) => ends_always(room.quiet_hours.unwrap_or_default(), Override::Reset),
            (None, hours) => hours,
        };
        let of_member = |member: &RoomCompanion| match (typed, quiet_hours) {
            (None, Override::Set(_)) => Override::Keep,
            (_, Override::Keep) => ends_always(member.quiet_hours, Override::Set(QuietHours::Never)),
            (_, hours) => hours,
        };
        let for_room = |room: &Room| RoomPatch { quiet_hours: of_room(room), ..RoomPatch::default() };
        let for_member =
            |member: &RoomCompanion| CompanionPatch { interjection, quiet_hours: of_member(member), ..CompanionPatch::default() };
        let room = self.patch(typed, here, for_room, for_member).await?;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, by = %person, level = level.map(Level::name), ?quiet_hours, "the interjection level of companions was changed");
        let mut lines = vec![say!("From now on, in this channel:")];
        lines.extend(room.companions.iter().map(line));
        lines.extend(room_quiet(&room));
        Ok(Text::lines(lines))
    }

    pub(super) async fn pause(
        &self,
        on: bool,
        typed: Option<&str>,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<Text, Answer> {
        let (for_room, paused) = match (typed.is_some(), on) {
            (true, true) => (Override::Keep, Override::Set(true)),
            (true, false) => (Override::Keep, Override::Reset),
            (false, true) => (Override::Set(true), Override::Keep),
            // Resumes all companions, including those that were paused individually.
            (false, false) => (Override::Reset, Override::Reset),
        };
        let for_room = |_: &Room| RoomPatch { paused: for_room, ..RoomPatch::default() };
        let room = self.patch(typed, here, for_room, |_| CompanionPatch { paused, ..CompanionPatch::default() }).await?;
        let affected = room.companions;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, by = %person, on, "companions were paused or resumed");
        let names = words::listed(affected.iter().map(|member| &member.name));
        Ok(if on {
            say!(
                "Paused in this channel: {names}. Messages of this time are not answered. `/tertulia pause switch:off` resumes them.",
                names = names
            )
        } else if affected.iter().any(|member| member.paused) {
            say!(
                "The whole channel is paused, so nobody speaks yet. `/tertulia pause switch:off` without a companion resumes all of them."
            )
        } else {
            say!("Resumed in this channel: {names}.", names = names)
        })
    }

    /// Sets whether the words of voice notes in a channel are recognised.
    pub(super) async fn voice_notes(&self, on: bool, here: &ChannelContext, person: Snowflake) -> Result<Text, Answer> {
        let for_room = |_: &Room| RoomPatch { voice_notes: Override::Set(on), ..RoomPatch::default() };
        let room = self.patch(None, here, for_room, |_| CompanionPatch::default()).await?;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, by = %person, on, "the recognition of voice notes was changed");
        Ok(voice_notes_of(&room))
    }

    /// Changes the room and the companion that `typed` names, or all if it is `None`. Returns the room with only these companions.
    async fn patch(
        &self,
        typed: Option<&str>,
        here: &ChannelContext,
        of_room: impl Fn(&Room) -> RoomPatch + Send,
        of_member: impl Fn(&RoomCompanion) -> CompanionPatch + Send,
    ) -> Result<Room, Answer> {
        may_change(here, here)?;
        let room = self.room_with_companions(here).await?;
        let selected: Vec<&RoomCompanion> = match typed {
            Some(typed) => vec![member(&room, typed)?],
            None => room.companions.iter().collect(),
        };
        let companions: BTreeMap<Arc<str>, _> =
            selected.into_iter().map(|member| (member.id.as_str().into(), of_member(member))).collect();
        let patch = RoomPatch { companions: companions.clone(), ..of_room(&room) };
        let mut room = self.backend.rooms.patch(&room.id, patch).await?;
        room.companions.retain(|member| companions.contains_key(member.id.as_str()));
        Ok(room)
    }

    /// The room of a channel, if a companion is in it.
    async fn room_with_companions(&self, here: &ChannelContext) -> Result<Room, Answer> {
        let room = self.room(here).await?;
        if let Some(room) = room.clone().filter(|room| !room.companions.is_empty()) {
            return Ok(room);
        }
        let will_have_companions =
            room.is_none() && self.future_room(here).await?.is_some_and(|room| !room.companions.is_empty());
        Err(Answer::Refused(match here.parent.filter(|_| will_have_companions) {
            Some(parent) => say!(
                "The companions of {channel} join this thread once somebody says something here. Until then, use this command there.",
                channel = channel(parent.get())
            ),
            None if will_have_companions => say!("Say something here first; then use this command again."),
            None => no_companion(here, here),
        }))
    }
}

pub(super) fn no_companion(at: &ChannelContext, here: &ChannelContext) -> Text {
    match elsewhere(at, here) {
        None => say!("No companion is here yet. Add one with `/tertulia join`."),
        Some(channel) => say!("No companion is in {channel} yet. Add one with `/tertulia join`.", channel = channel),
    }
}

/// Returns an error if the user may not change the channel.
pub(super) fn may_change(at: &ChannelContext, here: &ChannelContext) -> Result<(), Answer> {
    if at.user_may_change() {
        return Ok(());
    }
    let needed = match elsewhere(at, here) {
        None => say!("For this you need the permission **Manage Channels** here."),
        Some(channel) => say!("For this you need the permission **Manage Channels** in {channel}.", channel = channel),
    };
    Err(Answer::Refused(Text::sentences([needed, say!("An administrator of this server can give it to you.")])))
}

fn welcome(
    companion: &Arc<str>,
    present: Option<&RoomCompanion>,
    is_new: bool,
    at: &ChannelContext,
    here: &ChannelContext,
) -> Text {
    let name = name(companion);
    let place = match (elsewhere(at, here), is_new) {
        (None, true) => say!("{name} is here now.", name = name),
        (None, false) => return say!("{name} is here already.", name = name),
        (Some(channel), true) if at.is_forum() => {
            say!("{name} is in {channel} now, and in every post there.", name = name, channel = channel)
        }
        (Some(channel), false) if at.is_forum() => {
            return say!("{name} is in {channel} already, and in every post there.", name = name, channel = channel);
        }
        (Some(channel), true) => say!("{name} is in {channel} now.", name = name, channel = channel),
        (Some(channel), false) => return say!("{name} is in {channel} already.", name = name, channel = channel),
    };
    let reads = say!("It reads along from now on, and answers when it is named.");
    let tier = present.map(|member| tier_sentence(&member.interjection, &member.name));
    Text::sentences([Some(place), Some(reads), tier, Some(say!("`/tertulia talkativeness` changes that."))].into_iter().flatten())
}

/// A line about a companion: how readily it speaks up, and whether it is paused.
pub(super) fn line(member: &RoomCompanion) -> Text {
    let (tier, hours) = match member.quiet_hours {
        QuietHours::Always => (SPOKEN_TO, None),
        QuietHours::Never => (&*member.interjection, None),
        hours => (
            &*member.interjection,
            Some(say!("In the hours {hours}, it speaks only when it is spoken to.", hours = hours.to_string())),
        ),
    };
    let external = member.external.then(|| say!("A program outside speaks for it."));
    let paused = member.paused.then(|| say!("It is paused, and says nothing."));
    Text::sentences([Some(tier_sentence(tier, &member.name)), hours, external, paused].into_iter().flatten()).bullet()
}

/// A line about a channel's voice notes.
pub(super) fn voice_notes_of(room: &Room) -> Text {
    match room.voice_notes {
        VoiceNotes::All => say!(
            "The words of all voice notes in this channel are recognised, and kept like messages. Before the first one, a message here says by whom."
        ),
        VoiceNotes::Addressed => say!(
            "The words of voice notes to companions are recognised: replies to them, mentions, and all voice notes if only one companion is here."
        ),
        VoiceNotes::Off => say!(
            "Voice notes show only their length: their words are not recognised. `/tertulia voice notes switch:on` turns that on."
        ),
        VoiceNotes::NoRecogniser => say!(
            "Voice notes show only their length, because the bot has no speech recognition. Its operator can set it up (docs/voice.md)."
        ),
    }
}

/// A line about a channel in which companions speak only when spoken to.
pub(super) fn room_quiet(room: &Room) -> Option<Text> {
    let when = match room.quiet_hours? {
        QuietHours::Never => return None,
        QuietHours::Always => say!("In this channel, companions speak only when they are spoken to, at all times."),
        hours => say!(
            "In this channel, companions speak only when they are spoken to in the hours {hours}.",
            hours = hours.to_string()
        ),
    };
    Some(Text::sentences([when, say!("`/tertulia talkativeness` without a companion changes that.")]))
}
