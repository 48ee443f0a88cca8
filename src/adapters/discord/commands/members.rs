//! Who lives in a channel: letting companions in and out, how readily they speak up, pausing them.

use std::sync::Arc;

use super::choosing::member;
use super::interaction::Where;
use super::registered::{Level, tier_in_words};
use super::words::{self, channel, name, place};
use super::{Desk, Said};
use crate::adapters::discord::snowflake::Snowflake;
use crate::domain::id::CompanionId;
use crate::ports::backend::Refused;
use crate::ports::backend::room::{CompanionPatch, Override, Room, RoomCompanion, RoomPatch};

impl Desk {
    pub(super) async fn join(&self, typed: &str, at: &Where, here: &Where, person: Snowflake) -> Result<String, Said> {
        may_change(at, here)?;
        if !at.holds_talk() {
            return Err(Said::Refused(
                "Companions cannot live in a channel of this kind: choose one in which people write.".into(),
            ));
        }
        let companion = self.configured(typed).await?;
        let (room, is_new) = self.company.admit(&at.channel_ref(), &companion.id).await?;
        if is_new {
            tracing::info!(guild = %at.guild_id(), channel = %at.channel, companion = %companion.id, by = %person, "a companion was let in");
        }
        let present = room.companions.iter().find(|one| one.id == companion.id);
        let mut lines = vec![welcome(&companion.name, present, is_new, at, here)];
        lines.extend(self.obstacles(at));
        Ok(lines.join("\n"))
    }

    /// What keeps companions from hearing and speaking in a channel, as far as that is known.
    pub(super) fn obstacles(&self, at: &Where) -> Vec<String> {
        let missing = at.missing().unwrap_or_default();
        let mut lines = words::needs(&missing);
        if !at.is_direct() && self.discord.reads_all() == Some(false) {
            lines.push(format!("• {}", words::NOT_READING));
        }
        if at.is_hidden() {
            lines.push("• This thread is private: mention the bot in it once, so that Discord lets it in.".to_owned());
        }
        if !lines.is_empty() {
            let vital = missing.iter().any(|need| need.is_vital());
            let text = if vital { "\n**This is in the way:**" } else { "\n**It works better with this:**" };
            lines.insert(0, text.to_owned());
        }
        lines
    }

    pub(super) async fn leave(&self, typed: &str, at: &Where, here: &Where, person: Snowflake) -> Result<String, Said> {
        may_change(at, here)?;
        let room = self.living(at).await?.filter(|room| !room.companions.is_empty());
        let room = room.ok_or_else(|| Said::Refused(nobody(at, here)))?;
        let companion = member(&room, typed)?;
        let was_there = self.company.dismiss(&at.channel_ref(), &companion.id).await?;
        if !was_there {
            return Ok(format!("{} was gone already.", name(&companion.name)));
        }
        tracing::info!(guild = %at.guild_id(), channel = %at.channel, companion = %companion.id, by = %person, "a companion was sent out");
        let place = place(at, here);
        Ok(format!("{} does not live {place} any more. `/tertulia join` brings it back.", name(&companion.name)))
    }

    pub(super) async fn policy(
        &self,
        level: Level,
        typed: Option<&str>,
        here: &Where,
        person: Snowflake,
    ) -> Result<String, Said> {
        may_change(here, here)?;
        let room = self.inhabited(here).await?;
        let whom = whom(&room, typed)?;
        let interjection = match level {
            Level::Tier(tier) => Override::Set(Arc::from(tier)),
            Level::Default => Override::Reset,
        };
        let patch = |_: &RoomCompanion| CompanionPatch { interjection: interjection.clone(), ..CompanionPatch::default() };
        let room = self.patch(&room, Override::Keep, &whom, patch).await?;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, by = %person, level = level.name(), "how readily companions speak up was changed");
        let mut lines = vec!["From now on, in this channel:".to_owned()];
        lines.extend(room.companions.iter().filter(|one| whom.contains(&one.id)).map(line));
        Ok(lines.join("\n"))
    }

    pub(super) async fn pause(&self, on: bool, typed: Option<&str>, here: &Where, person: Snowflake) -> Result<String, Said> {
        may_change(here, here)?;
        let room = self.inhabited(here).await?;
        let whom = whom(&room, typed)?;
        let (of_room, of_companion) = match (typed.is_some(), on) {
            (true, true) => (Override::Keep, Override::Set(true)),
            (true, false) => (Override::Keep, Override::Reset),
            (false, true) => (Override::Set(true), Override::Keep),
            // Everybody goes on, those who were paused one by one, too.
            (false, false) => (Override::Reset, Override::Reset),
        };
        let patch = |_: &RoomCompanion| CompanionPatch { paused: of_companion, ..CompanionPatch::default() };
        let room = self.patch(&room, of_room, &whom, patch).await?;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, by = %person, on, "companions were paused, or let go on");
        let concerned: Vec<_> = room.companions.iter().filter(|one| whom.contains(&one.id)).collect();
        let names = words::listed(concerned.iter().map(|one| &one.name));
        Ok(if on {
            format!(
                "Paused in this channel: {names}. Nothing that is said meanwhile is answered. `/tertulia pause switch:off` lets them go on."
            )
        } else if concerned.iter().any(|one| one.paused) {
            "The whole channel is paused, so nobody speaks yet. `/tertulia pause switch:off` without a companion lets all of them go on.".to_owned()
        } else {
            format!("They go on in this channel: {names}.")
        })
    }

    async fn patch(
        &self,
        room: &Room,
        paused: Override<bool>,
        whom: &[CompanionId],
        patch: impl Fn(&RoomCompanion) -> CompanionPatch,
    ) -> Result<Room, Said> {
        let concerned = room.companions.iter().filter(|one| whom.contains(&one.id));
        let companions = concerned.map(|one| (Arc::from(one.id.as_str()), patch(one))).collect();
        self.backend.patch_room(&room.id, RoomPatch { paused, companions }).await.map_err(Refused::into)
    }

    /// The room that a channel is, with somebody in it.
    async fn inhabited(&self, here: &Where) -> Result<Room, Said> {
        let room = self.room(here).await?;
        if let Some(room) = room.clone().filter(|room| !room.companions.is_empty()) {
            return Ok(room);
        }
        let is_to_be = room.is_none() && self.would_be(here).await?.is_some_and(|room| !room.companions.is_empty());
        Err(Said::Refused(match here.parent.filter(|_| is_to_be) {
            Some(parent) => {
                let parent = channel(parent.get());
                format!(
                    "Companions come into this thread from {parent} once somebody says something here. Until then, use this command there."
                )
            }
            None if is_to_be => "Say something here first; then use this command again.".to_owned(),
            None => nobody(here, here),
        }))
    }
}

fn nobody(at: &Where, here: &Where) -> String {
    format!("Nobody lives {} yet. `/tertulia join` lets somebody in.", place(at, here))
}

/// Whether whoever asks may change a channel.
fn may_change(at: &Where, here: &Where) -> Result<(), Said> {
    if at.is_theirs_to_change() {
        return Ok(());
    }
    let place = place(at, here);
    Err(Said::Refused(format!(
        "For this you need the permission **Manage Channels** {place}. Whoever runs this server can give it to you."
    )))
}

/// The companions that are meant: the one that is named, else all.
fn whom(room: &Room, typed: Option<&str>) -> Result<Vec<CompanionId>, Said> {
    match typed {
        Some(typed) => Ok(vec![member(room, typed)?.id.clone()]),
        None => Ok(room.companions.iter().map(|one| one.id.clone()).collect()),
    }
}

fn welcome(called: &Arc<str>, present: Option<&RoomCompanion>, is_new: bool, at: &Where, here: &Where) -> String {
    let who = name(called);
    let place = place(at, here);
    let posts = if at.is_forum() { ", and in every post there" } else { "" };
    if !is_new {
        return format!("{who} lives {place} already{posts}.");
    }
    let tier = present.map_or("", |one| tier_in_words(&one.interjection));
    let tier = if tier.is_empty() { String::new() } else { format!(", and {tier}") };
    format!(
        "{who} lives {place} now{posts}. It reads along from now on, answers when it is named{tier}. `/tertulia talkativeness` changes that."
    )
}

/// A companion in one line: how readily it speaks up, and whether it may.
pub(super) fn line(one: &RoomCompanion) -> String {
    let who = name(&one.name);
    let tier = tier_in_words(&one.interjection);
    let external = if one.external { " (a program outside speaks for it)" } else { "" };
    let paused = if one.paused { ", but is paused: it says nothing" } else { "" };
    format!("• {who}{external} {tier}{paused}.")
}
