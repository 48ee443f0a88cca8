//! Catches up with a channel: reads missed messages, records the gap of messages that were not read, and hands the messages over.

use std::time::Duration;

use tokio::time::sleep;

use super::super::backfill::{self, Filled, Left};
use super::super::rest::Failed;
use super::super::snowflake::Snowflake;
use super::SharedIntake;
use super::handover::until_accepted;
use super::lanes::{Behind, ReceivedMessage};
use super::reader;
use crate::domain::event::Gap;
use crate::ports::inbound_events::ChannelRef;
use crate::telemetry::instruments::NONE;

/// The limit of attempts to request the newest message of a direct message channel, and the first wait between them. The wait doubles each time.
const MAX_ATTEMPTS: u32 = 4;
const FIRST_RETRY: Duration = Duration::from_secs(1);

impl SharedIntake {
    /// Catches up with a channel. Returns false if the reader has ended, so Discord must send the event again.
    pub(super) async fn catch_up(&self, behind: Behind) -> bool {
        let Behind { guild, channel, .. } = behind;
        let (channel_ref, reading) = match self.missed_range(behind).await {
            Ok(Some(missing)) => missing,
            Ok(None) => return true,
            Err(ReaderGone) => return false,
        };
        let Some((filled, permit)) = self.reader.read(reading).await else { return false };
        self.hand_over(&channel_ref, guild, filled).await;
        drop(permit);
        self.marks.mark(&channel_ref.guild, channel, reading.newest);
        true
    }

    /// The range of missed messages. `None` if there is none.
    async fn missed_range(&self, behind: Behind) -> Result<Option<(ChannelRef, backfill::Behind)>, ReaderGone> {
        let Behind { guild, channel, newest } = behind;
        let newest = match newest {
            Some(newest) => newest,
            None => match self.newest_message(channel).await? {
                Some(newest) => newest,
                None => return Ok(None),
            },
        };
        let _permit = self.lookup_permits.acquire().await.map_err(|_| ReaderGone)?;
        let channel_ref = self.discord.cache().channel_ref(guild, channel);
        if !self.inbound_events.listens(&channel_ref) {
            return Ok(None);
        }
        let Some(Some(reached)) = until_accepted(self, channel, || self.inbound_events.reached(&channel_ref)).await else {
            return Ok(None);
        };
        let on_record = reached.newest.and_then(|newest| newest.parse().ok());
        let marked = self.marks.read(&channel_ref.guild, channel).await;
        // Messages sent before the bot's latest invitation are ignored.
        let joined = guild.and_then(|guild| self.discord.cache().joined_at(guild));
        let since = Snowflake::at(joined.map_or(reached.since, |joined| joined.max(reached.since)));
        let accepted = on_record.max(marked).map_or(since, |accepted| accepted.max(since));
        let reading = backfill::Behind { channel, guild, newest, accepted };
        Ok((newest > accepted).then_some((channel_ref, reading)))
    }

    /// Requests the newest message of a channel. `None` if the channel has none, or Discord refuses the request.
    async fn newest_message(&self, channel: Snowflake) -> Result<Option<Snowflake>, ReaderGone> {
        for tries in 0..MAX_ATTEMPTS {
            match self.reader.newest(channel).await.ok_or(ReaderGone)? {
                Ok(newest) => return Ok(newest),
                Err(Failed::Refused(refusal)) => {
                    tracing::info!(%channel, %refusal, "missed direct messages cannot be read");
                    return Ok(None);
                }
                Err(error) => {
                    tracing::debug!(%channel, %error, "a channel's newest message cannot be requested");
                    sleep(FIRST_RETRY * 2_u32.pow(tries)).await;
                }
            }
        }
        // As a fallback, assume that a message was just sent. Then the channel is read, and a failure is recorded as a gap.
        Ok(Some(self.reader.newest_by_now()))
    }

    /// Records the gap and hands over the messages, oldest first. The gap is older than the messages, so it is recorded first. If the catch-up is
    /// interrupted, it continues after the gap.
    async fn hand_over(&self, channel_ref: &ChannelRef, guild: Option<Snowflake>, filled: Filled<reader::RawMessage>) {
        let Filled { channel, messages, gap } = filled;
        let missed = gap.map_or("nothing", |gap| code(gap.why));
        self.instruments.discord_backfills.add(1, [gap.map_or("whole", |gap| code(gap.why))]);
        self.instruments.discord_backfilled.add(messages.len() as u64, NONE);
        if messages.is_empty() && gap.is_none() {
            return;
        }
        if let Some(gap) = gap {
            let missed =
                Gap { after: gap.after.to_string().into(), before: gap.before.to_string().into(), why: code(gap.why).into() };
            until_accepted(self, channel, || self.inbound_events.caught_up(channel_ref, 0, Some(missed.clone()))).await;
            self.marks.mark(&channel_ref.guild, channel, gap.before.previous());
        }
        let mut read = 0;
        for (message, data) in messages {
            let received = ReceivedMessage { guild, channel, message, data, is_edit: false, is_first: message == channel };
            read += u32::from(self.message(&received).await);
            self.discord.cache().message_seen(channel, message);
        }
        tracing::info!(%channel, read, missed, "read missed messages");
        if read > 0 {
            until_accepted(self, channel, || self.inbound_events.caught_up(channel_ref, read, None)).await;
        }
    }
}

/// The reader has ended, because the server is stopping.
struct ReaderGone;

/// The stable code for the reason of a gap.
const fn code(left: Left) -> &'static str {
    match left {
        Left::TooMany => "too_many",
        Left::TooOld => "too_old",
        Left::Refused => "refused",
        Left::NothingShown => "nothing_shown",
        Left::Unreachable => "unreachable",
    }
}
