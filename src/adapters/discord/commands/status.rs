//! `/tertulia status`: lists the companions of a channel, and whether they can read and speak there.

#[cfg(test)]
mod tests;

use super::choosing::member;
use super::interaction::ChannelContext;
use super::members::{line, room_quiet, voice_notes_of};
use super::text::{Text, say};
use super::words::{self, channel, listed, when};
use super::{Answer, CommandHandler};
use crate::delivery_errors::DeliveryError;
use crate::domain::closing::Stage;
use crate::domain::moment::Moment;
use crate::permissions::Need;
use crate::ports::backend::room::{CompanionView, Room, RoomCompanion, RoomId};
use crate::ports::backend::state::{CompanionState, RoomState};
use crate::snowflake::Snowflake;

/// The limit of listed companions.
const MOST_LISTED: usize = 12;

/// The status of a channel.
#[derive(Clone, Debug)]
pub(super) struct ChannelStatus {
    pub here: ChannelContext,
    /// The channel's room, if it has one.
    pub room: Option<Room>,
    /// The state of the room's companions.
    pub state: Option<RoomState>,
    /// For a thread or direct message without messages: the room that it becomes with the first message.
    pub future_room: Option<Room>,
    /// The configured companions, if the room has none.
    pub all: Vec<CompanionView>,
    /// The permissions that the bot lacks here. `None` if unknown.
    pub missing: Option<Vec<Need>>,
    pub reads_all: Option<bool>,
    pub delivery_error: Option<DeliveryError>,
    pub store_is_ready: bool,
    pub models_are_ready: bool,
    /// What is quarantined, and the end of the quarantine.
    pub quarantined_until: Option<(Quarantined, Moment)>,
    /// Whether the user has opted out.
    pub is_opted_out: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Quarantined {
    Server,
    Channel,
}

impl CommandHandler {
    pub(super) async fn status(&self, typed: Option<&str>, here: &ChannelContext, person: Snowflake) -> Result<Text, Answer> {
        let room = self.room(here).await?;
        let is_empty = room.as_ref().is_none_or(|room| room.companions.is_empty());
        let future_room = if room.is_none() { self.future_room(here).await? } else { None };
        let state = match &room {
            // If the query fails, the answer lists the companions without their state.
            Some(room) if !is_empty => self.backend.rooms.state(&room.id).await.ok(),
            _ => None,
        };
        let readiness = self.backend.maintenance.readiness().await;
        let is_ready = |name: &str| readiness.parts.iter().filter(|part| &*part.part == name).all(|part| part.ready);
        let status = ChannelStatus {
            here: here.clone(),
            room,
            state,
            future_room: future_room.filter(|room| !room.companions.is_empty()),
            all: if is_empty { self.visible(here).await? } else { Vec::new() },
            missing: self.missing(here),
            reads_all: self.discord.reads_all(),
            delivery_error: self.discord.delivery_errors().last(here.channel),
            store_is_ready: is_ready("store"),
            models_are_ready: is_ready("models"),
            quarantined_until: self.quarantined_until(here).await,
            is_opted_out: self.opt_outs.is_ignored(&here.guild_id(), &person.person()),
        };
        describe(&status, typed)
    }
}

impl CommandHandler {
    /// The permissions that the bot lacks, also the one that is only for acknowledging a stop. `None` if unknown.
    fn missing(&self, here: &ChannelContext) -> Option<Vec<Need>> {
        let mut missing = here.missing()?;
        let reacts = self.discord.acknowledges_stop() && !missing.contains(&Need::Listen) && !missing.contains(&Need::Enter);
        let lacks = |need: &Need| here.bot_permissions.is_some_and(|permissions| need.is_missing(permissions));
        missing.extend(Some(Need::React).filter(|need| reacts && !here.is_direct() && lacks(need)));
        Some(missing)
    }

    async fn quarantined_until(&self, here: &ChannelContext) -> Option<(Quarantined, Moment)> {
        // If the query fails, the answer omits the quarantine.
        let quarantine = self.backend.maintenance.quarantine().await.ok()?;
        if let Some(guild) = quarantine.guilds.iter().find(|guild| guild.id == here.guild_id()) {
            return Some((Quarantined::Server, guild.until.0));
        }
        let room = RoomId::of(&here.channel.channel())?;
        let channel = quarantine.channels.iter().find(|channel| *channel.room == *room.as_str())?;
        Some((Quarantined::Channel, channel.until.0))
    }
}

/// Describes a channel. If `typed` names a companion, only that one is listed.
pub(super) fn describe(status: &ChannelStatus, typed: Option<&str>) -> Result<Text, Answer> {
    let mut lines = companion_lines(status, typed)?;
    lines.push(words::blank());
    lines.extend(obstacles(status));
    lines.extend(status.is_opted_out.then(words::opted_out));
    Ok(Text::lines(lines))
}

fn companion_lines(status: &ChannelStatus, typed: Option<&str>) -> Result<Vec<Text>, Answer> {
    let occupied_room = status.room.as_ref().filter(|room| !room.companions.is_empty());
    let Some(room) = occupied_room.or(status.future_room.as_ref()) else {
        return Ok(how_to_begin(status));
    };
    let selected: Vec<_> = match typed {
        Some(typed) => vec![member(room, typed)?],
        None => room.companions.iter().collect(),
    };
    let mut lines = vec![match status.here.parent {
        _ if occupied_room.is_some() => say!("**Who is here**"),
        Some(parent) => say!(
            "**Who is here**: those of {channel}, as soon as somebody says something in this thread",
            channel = channel(parent.get())
        ),
        None => say!("**Who is here**: as soon as you say something"),
    }];
    lines.extend(selected.iter().take(MOST_LISTED).map(|member| {
        let state = status
            .state
            .as_ref()
            .filter(|_| occupied_room.is_some())
            .and_then(|state| state.companions.iter().find(|state| state.id == member.id));
        companion(member, state)
    }));
    if selected.len() > MOST_LISTED {
        lines.push(say!("and {count} more", count = selected.len() - MOST_LISTED).bullet());
    }
    if occupied_room.is_some_and(|room| room.paused) {
        lines.push(say!("The whole channel is paused. `/tertulia pause switch:off` resumes them."));
    }
    lines.extend(occupied_room.and_then(room_quiet));
    lines.extend(occupied_room.filter(|_| typed.is_none()).map(voice_notes_of));
    Ok(lines)
}

fn how_to_begin(status: &ChannelStatus) -> Vec<Text> {
    let Some(first) = status.all.first() else {
        return vec![say!("No companion is here, and none is configured. The operator of the bot can configure some.")];
    };
    let available = listed(status.all.iter().take(MOST_LISTED).map(|member| &member.name));
    let first = first.id.to_string();
    vec![
        say!("**No companion is here yet.**"),
        match status.here.is_direct() {
            true => say!("To add one: `/tertulia join companion:{companion}`", companion = first),
            false => say!(
                "To add one: `/tertulia join companion:{companion}` (you need the permission **Manage Channels**)",
                companion = first
            ),
        },
        say!("Available companions: {names}.", names = available),
    ]
}

fn companion(member: &RoomCompanion, state: Option<&CompanionState>) -> Text {
    let stage = state.map_or(Stage::None, |state| state.closing);
    let stage = match stage {
        Stage::None => None,
        Stage::PreClosing => Some(say!("The conversation is drawing to a close for it.")),
        Stage::Closing => Some(say!("It is saying goodbye.")),
        Stage::Terminal => Some(match state.map_or(0, |state| state.reopen_after.saturating_sub(state.heard_closed)) {
            1 => say!("It has ended this conversation, and comes back when it is named or after one more message."),
            count => say!(
                "It has ended this conversation, and comes back when it is named or after {count} more messages.",
                count = u64::from(count)
            ),
        }),
    };
    let retries =
        state.is_some_and(|state| state.retry_at.is_some()).then(|| say!("Its model gave no answer; it tries again soon."));
    Text::sentences([line(member)].into_iter().chain(stage).chain(retries))
}

fn obstacles(status: &ChannelStatus) -> Vec<Text> {
    let missing = status.missing.as_deref().unwrap_or_default();
    let mut lines = words::needs(missing);
    if !status.here.is_direct() && status.reads_all == Some(false) {
        lines.push(words::not_reading().bullet());
    }
    if let Some(delivery_error) = &status.delivery_error {
        let text = say!(
            "The last statement could not be posted here ({time}): {reason}",
            time = when(delivery_error.at),
            reason = words::discord_refusal(&delivery_error.why)
        );
        lines.push(text.bullet());
        if let Some(at) = delivery_error.retry_at {
            let text = say!(
                "Until permissions change here, companions stay silent without thinking about an answer. They try again {time}.",
                time = when(at)
            );
            lines.push(text.bullet());
        }
    }
    if let Some((quarantined, until)) = status.quarantined_until {
        let stopped = match quarantined {
            Quarantined::Server => say!("Companions of this server are stopped after repeated failures."),
            Quarantined::Channel => say!("Companions of this channel are stopped after repeated failures."),
        };
        let again = say!(
            "They try again {time}; the operator of the bot can see the reason, and let them try sooner.",
            time = when(until)
        );
        lines.push(Text::sentences([stopped, again]).bullet());
    }
    if !status.store_is_ready {
        lines
            .push(say!("Messages cannot be stored at the moment. The operator of the bot finds the reason in its log.").bullet());
    }
    if !status.models_are_ready {
        lines.push(
            say!("The AI model behind the companions does not answer at the moment, so they stay silent until it does.").bullet(),
        );
    }
    if !lines.is_empty() {
        let is_blocked = !status.store_is_ready
            || !status.models_are_ready
            || status.delivery_error.is_some()
            || status.quarantined_until.is_some();
        let vital = is_blocked || missing.iter().any(|need| need.is_vital());
        lines.insert(0, if vital { say!("**Problems**") } else { say!("**It works, with restrictions**") });
    } else if status.missing.is_none() {
        lines.push(say!("No problem is known."));
    } else {
        lines.push(say!("Everything works: companions can read and speak here."));
    }
    lines
}
