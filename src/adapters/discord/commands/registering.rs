//! Registers the command with Discord, once, and only if it is not there as it should be.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::Desk;
use super::registered::{self, TERTULIA, is_same};
use crate::adapters::discord::rest::{Failed, Request};
use crate::adapters::discord::snowflake::Snowflake;

/// After the first failure; doubled with each.
const SHORTEST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// Whether the application may read what is said (Discord's documentation, "Application Resource", "Application Flags"): for all bots, and for
/// those in few guilds.
const MAY_READ: u64 = 1 << 18 | 1 << 19;

/// The application, as Discord tells of it.
#[derive(Deserialize)]
struct Application {
    id: Snowflake,
    #[serde(default)]
    flags: u64,
}

impl Desk {
    /// Begins, unless it was begun before. If it waits for another try, it does not any more.
    pub(super) fn register(desk: &Arc<Self>) {
        if desk.is_registering.swap(true, Ordering::Relaxed) {
            desk.register_again.notify_one();
        } else {
            tokio::spawn(Arc::clone(desk).keep_registering());
        }
    }

    async fn keep_registering(self: Arc<Self>) {
        let mut wait = SHORTEST_WAIT;
        loop {
            match self.register_once().await {
                Ok(true) => return tracing::info!("the slash command /tertulia is registered; Discord shows it within a minute"),
                Ok(false) => return tracing::debug!("the slash command /tertulia is registered already"),
                Err(why) => {
                    let minutes = wait.as_secs() / 60;
                    tracing::warn!(%why, "the slash command /tertulia cannot be registered; it is tried again in {minutes} min, everything else works");
                }
            }
            // Either is the time for another try.
            let _ = timeout(wait, self.register_again.notified()).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// True if it was not there as it should be.
    async fn register_once(&self) -> Result<bool, Failed> {
        let rest = self.discord.rest();
        let application: Application = rest.ask(Request::application()).await?;
        // It is the same one whenever it is asked for.
        let _ = self.may_read.set(application.flags & MAY_READ != 0);
        let wanted = registered::command();
        let known: Vec<Value> = rest.ask(Request::commands(application.id)).await?;
        let own = known.iter().find(|command| command["name"] == TERTULIA && matches!(command["type"].as_u64(), None | Some(1)));
        if own.is_some_and(|own| is_same(own, &wanted)) {
            return Ok(false);
        }
        // It takes the place of the one of its name. What else the application has is left alone.
        rest.tell(&Request::put_command(application.id, wanted)).await?;
        Ok(true)
    }
}
