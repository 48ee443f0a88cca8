//! Registers the commands with Discord, once, and only those that are not there as they should be.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::Desk;
use super::registered;
use crate::adapters::discord::rest::{Failed, Request};

/// After the first failure; doubled with each.
const SHORTEST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
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
        let application = self.discord.bot().await?.application;
        let known: Vec<Value> = rest.ask(Request::commands(application)).await?;
        let missing = registered::to_register(&known);
        let is_new = !missing.is_empty();
        for command in missing {
            // It takes the place of the one of its name. What else the application has is left alone.
            rest.send(&Request::put_command(application, command)).await?;
        }
        Ok(is_new)
    }
}
