//! The status of a guild's call: the bot's channel, the people in it, and what does not work.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::super::snowflake::Snowflake;
use super::super::voice::{Counts, VoiceConnection};
use super::guild::{By, Present, Silence};
use super::{Calls, Entry, Shared};
use crate::ports::call_room::Description;

/// A connection to a call, open or being opened.
pub struct Live {
    connection: Arc<VoiceConnection>,
    is_end_to_end: bool,
    /// Whether the call was encrypted end to end earlier and is not any more.
    is_downgraded: bool,
}

/// The status of a guild's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The target channel.
    pub channel: Snowflake,
    /// True if a user asked for the call, false if the settings name the channel.
    pub is_asked_for: bool,
    pub is_connected: bool,
    pub silence: Silence,
    /// Whether the call is encrypted end to end.
    pub is_end_to_end: bool,
    /// Whether the call was encrypted end to end earlier and is not any more.
    pub is_downgraded: bool,
    /// How long the bot has been in the call.
    pub lasted: Option<Duration>,
    /// The people in the channel, without bots.
    pub people: Vec<(Snowflake, Present)>,
    /// The counters of the newest connection.
    pub counts: Counts,
    /// Why the bot is not connected, if known.
    pub trouble: Option<String>,
}

impl Calls {
    /// The status of a guild's call. `None`: the bot has no target channel.
    pub fn status(&self, guild: Snowflake) -> Option<Status> {
        self.0.guilds.lock().get_mut(&guild)?.status()
    }

    /// The speech services of a channel.
    pub fn speech(&self, channel: Snowflake) -> Description {
        self.0.parts.calls.describe(&channel.channel())
    }

    /// Waits until the bot is connected to the call of a channel, the reason for a failure is known, or `within` has passed.
    /// `None`: the channel is not the target.
    pub async fn settled(&self, guild: Snowflake, channel: Snowflake, within: Duration) -> Option<Status> {
        let deadline = Instant::now() + within;
        let mut changes = self.0.subscribe(guild)?;
        loop {
            changes.mark_unchanged();
            let status = self.status(guild).filter(|status| status.channel == channel)?;
            let is_settled = status.is_connected || status.trouble.is_some();
            if is_settled || !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                return Some(status);
            }
        }
    }
}

impl Entry {
    fn status(&mut self) -> Option<Status> {
        let Self { voice, begun, trouble, .. } = self;
        let wanted = voice.wanted(Instant::now())?;
        let begun = begun.as_ref().filter(|begun| begun.channel == wanted.channel);
        let is_connected = begun.is_some_and(|begun| begun.is_connected);
        let place = voice.place().filter(|(channel, _)| *channel == wanted.channel);
        let live = begun.and_then(|begun| begun.live.as_ref());
        Some(Status {
            channel: wanted.channel,
            is_asked_for: wanted.by == By::Command,
            is_connected,
            silence: place.map(|(_, silence)| silence).unwrap_or_default(),
            is_end_to_end: live.is_some_and(|live| live.is_end_to_end),
            is_downgraded: live.is_some_and(|live| live.is_downgraded),
            lasted: begun.and_then(|begun| begun.since).map(|since| since.elapsed()),
            people: voice.people(wanted.channel).map(|(user, present)| (user, present.clone())).collect(),
            counts: live.map(|live| live.connection.counts()).unwrap_or_default(),
            trouble: trouble.clone().filter(|_| !is_connected),
        })
    }
}

impl Shared {
    /// Registers the connection of a call.
    pub(super) fn opened(&self, guild: Snowflake, channel: Snowflake, connection: Arc<VoiceConnection>) {
        if let Some(begun) = self.guilds.lock().get_mut(&guild).and_then(|entry| entry.call_in(channel)) {
            begun.live = Some(Live { connection, is_end_to_end: false, is_downgraded: false });
        }
    }

    pub(super) fn set_end_to_end(&self, guild: Snowflake, channel: Snowflake, is_on: bool) {
        let mut guilds = self.guilds.lock();
        let begun = guilds.get_mut(&guild).and_then(|entry| entry.call_in(channel));
        if let Some(live) = begun.and_then(|begun| begun.live.as_mut()) {
            live.is_downgraded = !is_on && (live.is_end_to_end || live.is_downgraded);
            if live.is_downgraded && live.is_end_to_end {
                tracing::warn!(%guild, %channel, "a call is not encrypted end to end any more: Discord has turned it off");
            }
            live.is_end_to_end = is_on;
        }
    }
}
