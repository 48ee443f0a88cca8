//! Hands inbound events over to the core, and retries until they are accepted.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::sleep;

use super::super::rest::Failed;
use super::super::snowflake::Snowflake;
use super::super::wire::Bot;
use super::SharedIntake;
use super::lanes::Work;
use crate::ports::inbound_events::InboundError;
use crate::telemetry::instruments::NONE;

/// The shortest and the longest wait before a retry.
const MIN_WAIT: Duration = Duration::from_millis(50);
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The wait before the bot's ids are requested again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Repeats a call until the core accepts the event. Returns `None` if the core never will; this is logged and counted.
pub(super) async fn until_accepted<'a, T>(
    shared: &SharedIntake,
    channel: Snowflake,
    call: impl Fn() -> BoxFuture<'a, Result<T, InboundError>> + Send,
) -> Option<T> {
    let mut is_logged = false;
    loop {
        match call().await {
            Ok(done) => return Some(done),
            Err(InboundError::Later { after, detail }) => {
                if !is_logged {
                    tracing::debug!(%channel, %detail, "an inbound event cannot be journaled yet; retrying");
                    is_logged = true;
                }
                sleep(after.clamp(MIN_WAIT, MAX_WAIT)).await;
            }
            Err(InboundError::Broken(detail)) => {
                shared.instruments.discord_broken.add(1, NONE);
                tracing::error!(%channel, %detail, "an inbound event cannot be journaled; it is dropped");
                return None;
            }
        }
    }
}

impl SharedIntake {
    /// Runs a future that may panic. Returns `None` if it panicked. The event is then dropped, because Discord would send it again, and it would
    /// panic and end the connection again.
    pub(super) async fn catch_panic<T>(&self, channel: Snowflake, work: impl Future<Output = T> + Send) -> Option<T> {
        let done = AssertUnwindSafe(work).catch_unwind().await.ok();
        if done.is_none() {
            self.panicked(channel);
        }
        done
    }

    /// Counts and logs an event that was dropped because of a panic.
    pub(super) fn panicked(&self, of: impl std::fmt::Display) {
        self.instruments.discord_broken.add(1, NONE);
        tracing::error!(%of, "an inbound event caused a panic; it is dropped");
    }

    /// Performs a piece of work. Returns false if it could not be done, so Discord must send the event again.
    pub(super) async fn carry_out(self: &Arc<Self>, work: Work) -> bool {
        match work {
            Work::Message(received) => {
                self.message(&received).await;
            }
            Work::Deleted { guild, channel, messages } => {
                let channel_ref = self.discord.cache().channel_ref(guild, channel);
                until_accepted(self, channel, || self.inbound_events.deleted(&channel_ref, &messages)).await;
            }
            Work::Reacted { guild, channel, change } => {
                let channel_ref = self.discord.cache().channel_ref(guild, channel);
                until_accepted(self, channel, || self.inbound_events.reacted(&channel_ref, change.clone())).await;
            }
            Work::ChannelGone { guild, channel } => {
                let (guild, id) = (guild.guild(), channel.channel());
                until_accepted(self, channel, || self.inbound_events.channel_gone(&guild, &id)).await;
                self.marks.forget(&guild, channel);
            }
            Work::GuildGone { guild } => {
                let id = guild.guild();
                until_accepted(self, guild, || self.inbound_events.guild_gone(&id)).await;
            }
            Work::CatchUp(behind) => return self.catch_up(behind).await,
        }
        true
    }

    /// The bot's ids. Retries until they are known.
    pub(super) async fn bot_ids(&self) -> Bot {
        let mut is_logged = false;
        loop {
            let failed = match self.discord.bot().await {
                Ok(bot) => return bot,
                Err(failed) => failed,
            };
            if !is_logged {
                tracing::warn!(error = %failed, "the bot's ids cannot be requested; inbound events wait");
                is_logged = true;
            }
            let after = if let Failed::NotNow { after: Some(after), .. } = failed { after } else { RETRY_INTERVAL };
            sleep(after.clamp(MIN_WAIT, MAX_WAIT)).await;
        }
    }
}
