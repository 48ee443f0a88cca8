//! Hands things over to the core, again and again until they are taken.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::sleep;

use super::super::platform::Bot;
use super::super::rest::Failed;
use super::super::snowflake::Snowflake;
use super::SharedIntake;
use super::lanes::Work;
use crate::ports::inbound_events::InboundError;
use crate::telemetry::instruments::NONE;

/// The shortest and the longest wait before something is handed over again.
const SOONEST: Duration = Duration::from_millis(50);
const LATEST: Duration = Duration::from_secs(60);
/// How long it takes until Discord is asked again who we are.
const ASKED_AGAIN: Duration = Duration::from_secs(5);

/// Hands something over until it is taken. None: it never will be, which is told and counted.
pub(super) async fn until_accepted<'a, T>(
    shared: &SharedIntake,
    channel: Snowflake,
    act: impl Fn() -> BoxFuture<'a, Result<T, InboundError>> + Send,
) -> Option<T> {
    let mut is_logged = false;
    loop {
        match act().await {
            Ok(done) => return Some(done),
            Err(InboundError::Later { after, detail }) => {
                if !is_logged {
                    tracing::debug!(%channel, %detail, "what was heard cannot be put on record yet; it is tried again");
                    is_logged = true;
                }
                sleep(after.clamp(SOONEST, LATEST)).await;
            }
            Err(InboundError::Broken(detail)) => {
                shared.instruments.discord_broken.add(1, NONE);
                tracing::error!(%channel, %detail, "what was heard cannot be put on record; it is left out");
                return None;
            }
        }
    }
}

impl SharedIntake {
    /// Does something that may panic. None: it did. What panics is left out, since it would again, and would end every connection on which
    /// it is told.
    pub(super) async fn catch_panic<T>(&self, channel: Snowflake, act: impl Future<Output = T> + Send) -> Option<T> {
        let done = AssertUnwindSafe(act).catch_unwind().await.ok();
        if done.is_none() {
            self.panicked(channel);
        }
        done
    }

    /// Something was left out, since it made this program panic.
    pub(super) fn panicked(&self, of: impl std::fmt::Display) {
        self.instruments.discord_broken.add(1, NONE);
        tracing::error!(%of, "what was heard makes this program panic; it is left out");
    }

    /// Does what follows from an event. False: it has to be told again.
    pub(super) async fn carry_out(self: &Arc<Self>, work: Work) -> bool {
        match work {
            Work::Message(received) => {
                self.message(&received).await;
            }
            Work::Deleted { guild, channel, messages } => {
                let channel_ref = self.discord.cache().channel_ref(guild, channel);
                until_accepted(self, channel, || self.inbound_events.deleted(&channel_ref, &messages)).await;
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

    /// Who we are. Waits until that is known.
    pub(super) async fn who(&self) -> Bot {
        let mut is_logged = false;
        loop {
            let failed = match self.discord.bot().await {
                Ok(bot) => return bot,
                Err(failed) => failed,
            };
            if !is_logged {
                tracing::warn!(error = %failed, "Discord does not say who the bot is; what is heard waits");
                is_logged = true;
            }
            let after = if let Failed::NotNow { after: Some(after), .. } = failed { after } else { ASKED_AGAIN };
            sleep(after.clamp(SOONEST, LATEST)).await;
        }
    }
}
