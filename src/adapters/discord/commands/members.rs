//! Changes the companions of a channel: adds and removes them, sets how readily they speak up, pauses them.

use std::sync::Arc;

use super::choosing::member;
use super::interaction::ChannelContext;
use super::registered::{Level, tier_in_words};
use super::words::{self, channel, name, place};
use super::{Answer, CommandHandler};
use crate::adapters::discord::snowflake::Snowflake;
use crate::domain::id::CompanionId;
use crate::ports::backend::room::{CompanionPatch, Override, Room, RoomCompanion, RoomPatch};
use crate::settings::companion::Interjection;

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
        let companion = self.configured(typed).await?;
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

    /// What prevents companions from reading and speaking in a channel, as far as it is known.
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

    pub(super) async fn set_level(
        &self,
        level: Level,
        typed: Option<&str>,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<String, Answer> {
        let interjection = match level {
            Level::Tier(tier) => Interjection::ALL.into_iter().find(|level| level.as_str() == tier),
            Level::Default => None,
        };
        let interjection = interjection.map_or(Override::Reset, Override::Set);
        let patch = CompanionPatch { interjection, ..CompanionPatch::default() };
        let affected = self.patch(typed, here, Override::Keep, &patch).await?;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, by = %person, level = level.name(), "the interjection level of companions was changed");
        let mut lines = vec!["From now on, in this channel:".to_owned()];
        lines.extend(affected.iter().map(line));
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
            // Everybody is resumed, including companions that were paused one by one.
            (false, false) => (Override::Reset, Override::Reset),
        };
        let affected = self.patch(typed, here, for_room, &CompanionPatch { paused, ..CompanionPatch::default() }).await?;
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

    /// Changes the room and the named companion, or all of its companions. Returns the changed companions.
    async fn patch(
        &self,
        typed: Option<&str>,
        here: &ChannelContext,
        paused: Override<bool>,
        patch: &CompanionPatch,
    ) -> Result<Vec<RoomCompanion>, Answer> {
        may_change(here, here)?;
        let room = self.room_with_companions(here).await?;
        let selected: Vec<CompanionId> = match typed {
            Some(typed) => vec![member(&room, typed)?.id.clone()],
            None => room.companions.iter().map(|member| member.id.clone()).collect(),
        };
        let companions = selected.iter().map(|id| (Arc::from(id.as_str()), patch.clone())).collect();
        let room = self.backend.rooms.patch(&room.id, RoomPatch { paused, companions, ..RoomPatch::default() }).await?;
        Ok(room.companions.into_iter().filter(|member| selected.contains(&member.id)).collect())
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

/// Refuses if the user may not change the channel.
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
    let tier = tier_in_words(&member.interjection);
    let external = if member.external { " (a program outside speaks for it)" } else { "" };
    let paused = if member.paused { ", but is paused: it says nothing" } else { "" };
    format!("• {name_text}{external} {tier}{paused}.")
}
