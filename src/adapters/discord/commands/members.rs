//! Changes the companions of a channel: adds and removes them, sets their interjection level, pauses them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::choosing::member;
use super::interaction::ChannelContext;
use super::registered::{Level, SPOKEN_TO, tier_in_words};
use super::words::{self, channel, name, place};
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
    ) -> Result<String, Answer> {
        may_change(at, here)?;
        if !at.can_have_members() {
            return Err(Answer::Refused(
                "Companions cannot join a channel of this kind: choose one in which people write.".into(),
            ));
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
        Ok(lines.join("\n"))
    }

    /// Describes the known obstacles to reading and speaking in a channel.
    pub(super) fn obstacles(&self, at: &ChannelContext) -> Vec<String> {
        let missing = at.missing().unwrap_or_default();
        let mut lines = words::needs(&missing);
        if !at.is_direct() && self.discord.reads_all() == Some(false) {
            lines.push(format!("• {}", words::NOT_READING));
        }
        if at.is_hidden() {
            lines.push("• This thread is private: mention the bot in it once, so that Discord adds it.".to_owned());
        }
        if !lines.is_empty() {
            let vital = missing.iter().any(|need| need.is_vital());
            let text = if vital { "\n**Fix this first:**" } else { "\n**It works better with this:**" };
            lines.insert(0, text.to_owned());
        }
        lines
    }

    pub(super) async fn leave(
        &self,
        typed: &str,
        at: &ChannelContext,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<String, Answer> {
        may_change(at, here)?;
        let room = self.room_or_future_room(at).await?.filter(|room| !room.companions.is_empty());
        let room = room.ok_or_else(|| Answer::Refused(no_companion(at, here)))?;
        let companion = member(&room, typed)?;
        let was_there = self.backend.rooms.dismiss(&at.channel_ref(), &companion.id).await?;
        if !was_there {
            return Ok(format!("{} had already left.", name(&companion.name)));
        }
        tracing::info!(guild = %at.guild_id(), channel = %at.channel, companion = %companion.id, by = %person, "a companion left a channel");
        let place = place(at, here);
        Ok(format!("{} is no longer {place}. `/tertulia join` brings it back.", name(&companion.name)))
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
    ) -> Result<String, Answer> {
        let quiet_hours = match (quiet_hours.map(QuietHours::parse), level) {
            (Some(None), _) => {
                return Err(Answer::Refused("Quiet hours are two times, such as `23:00-08:00`, or `always`, or `never`.".into()));
            }
            (None, None) => return Err(Answer::Refused("Choose a level, or write quiet hours such as `23:00-08:00`.".into())),
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
        let mut lines = vec!["From now on, in this channel:".to_owned()];
        lines.extend(room.companions.iter().map(line));
        lines.extend(room_quiet(&room));
        Ok(lines.join("\n"))
    }

    pub(super) async fn pause(
        &self,
        on: bool,
        typed: Option<&str>,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<String, Answer> {
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
            format!(
                "Paused in this channel: {names}. Messages of this time are not answered. `/tertulia pause switch:off` resumes them."
            )
        } else if affected.iter().any(|member| member.paused) {
            "The whole channel is paused, so nobody speaks yet. `/tertulia pause switch:off` without a companion resumes all of them.".to_owned()
        } else {
            format!("Resumed in this channel: {names}.")
        })
    }

    /// Sets whether the words of voice notes in a channel are recognised.
    pub(super) async fn voice_notes(&self, on: bool, here: &ChannelContext, person: Snowflake) -> Result<String, Answer> {
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
            Some(parent) => {
                let parent = channel(parent.get());
                format!(
                    "The companions of {parent} join this thread once somebody says something here. Until then, use this command there."
                )
            }
            None if will_have_companions => "Say something here first; then use this command again.".to_owned(),
            None => no_companion(here, here),
        }))
    }
}

fn no_companion(at: &ChannelContext, here: &ChannelContext) -> String {
    format!("No companion is {} yet. Add one with `/tertulia join`.", place(at, here))
}

/// Returns an error if the user may not change the channel.
pub(super) fn may_change(at: &ChannelContext, here: &ChannelContext) -> Result<(), Answer> {
    if at.user_may_change() {
        return Ok(());
    }
    let place = place(at, here);
    Err(Answer::Refused(format!(
        "For this you need the permission **Manage Channels** {place}. An administrator of this server can give it to you."
    )))
}

fn welcome(
    companion: &Arc<str>,
    present: Option<&RoomCompanion>,
    is_new: bool,
    at: &ChannelContext,
    here: &ChannelContext,
) -> String {
    let name_text = name(companion);
    let place = place(at, here);
    let posts = if at.is_forum() { ", and in every post there" } else { "" };
    if !is_new {
        return format!("{name_text} is {place} already{posts}.");
    }
    let tier = present.map_or("", |member| tier_in_words(&member.interjection));
    let tier = if tier.is_empty() { String::new() } else { format!(", and {tier}") };
    format!(
        "{name_text} is {place} now{posts}. It reads along from now on, answers when it is named{tier}. `/tertulia talkativeness` changes that."
    )
}

/// A line about a companion: how readily it speaks up, and whether it is paused.
pub(super) fn line(member: &RoomCompanion) -> String {
    let name_text = name(&member.name);
    let tier = match member.quiet_hours {
        QuietHours::Always => tier_in_words(SPOKEN_TO).to_owned(),
        QuietHours::Never => tier_in_words(&member.interjection).to_owned(),
        hours => format!("{}, but only when it is spoken to in the hours {hours}", tier_in_words(&member.interjection)),
    };
    let external = if member.external { " (a program outside speaks for it)" } else { "" };
    let paused = if member.paused { ", but is paused: it says nothing" } else { "" };
    format!("• {name_text}{external} {tier}{paused}.")
}

/// A line about a channel's voice notes.
pub(super) fn voice_notes_of(room: &Room) -> String {
    match room.voice_notes {
        VoiceNotes::All => "The words of all voice notes in this channel are recognised, and kept like messages. Before the first one, a message here says by whom.",
        VoiceNotes::Addressed => "The words of voice notes to companions are recognised: replies to them, mentions, and all voice notes if only one companion is here.",
        VoiceNotes::Off => "Voice notes show only their length: their words are not recognised. `/tertulia voice notes switch:on` turns that on.",
        VoiceNotes::NoRecogniser => "Voice notes show only their length, because the bot has no speech recognition. Its operator can set it up (docs/voice.md).",
    }
    .to_owned()
}

/// A line about a channel in which companions speak only when spoken to.
pub(super) fn room_quiet(room: &Room) -> Option<String> {
    let when = match room.quiet_hours? {
        QuietHours::Never => return None,
        QuietHours::Always => "at all times".to_owned(),
        hours => format!("in the hours {hours}"),
    };
    Some(format!(
        "In this channel, companions speak only when they are spoken to {when}. `/tertulia talkativeness` without a companion changes that."
    ))
}
