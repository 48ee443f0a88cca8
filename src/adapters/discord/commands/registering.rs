//! Registers the commands with Discord, once, and only those that are missing or different.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::CommandHandler;
use super::registered;
use crate::rest::{Failed, Request};

/// The wait after the first failure. It doubles with each failure.
const SHORTEST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
impl CommandHandler {
    /// Starts the registration unless it is in progress. If it waits for a retry, it retries at once.
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
                    tracing::warn!(%why, "the slash command /tertulia cannot be registered; it is retried in {minutes} min, everything else works");
                }
            }
            // The timeout and the notification both start the next attempt.
            let _ = timeout(wait, self.register_again.notified()).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// True if a command was missing or different.
    async fn register_once(&self) -> Result<bool, Failed> {
        let rest = self.discord.rest();
        let application = self.discord.bot().await?.application;
        let listed: Vec<Value> = rest.ask(Request::commands(application)).await?;
        let missing = registered::to_register(&listed);
        let has_registered = !missing.is_empty();
        for command in missing {
            // It replaces the command of the same name. Other commands of the application stay.
            rest.send(&Request::put_command(application, command)).await?;
        }
        Ok(has_registered)
    }
}
