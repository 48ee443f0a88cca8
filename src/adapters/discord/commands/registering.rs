//! Registers with Discord those commands that are missing or different.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::CommandHandler;
use super::registered;
use crate::rest::{Failed, Request};
use crate::wire::Application;

/// The wait after the first failure. It doubles with each failure.
const SHORTEST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
impl CommandHandler {
    /// Starts the registration. If one is waiting to retry, it retries at once.
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
            // Both the timeout and the notification start the next attempt.
            let _ = timeout(wait, self.register_again.notified()).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Sets the bot's profile text to say that it is AI, unless the operator has written one.
    async fn describe(&self) {
        match self.discord.rest().send(&Request::describe_application(self.discord.about())).await {
            Ok(_) => tracing::info!("the profile of the bot was empty, and says now that it is AI"),
            Err(error) => tracing::warn!(%error, "the profile of the bot is empty: write in the Developer Portal what it is"),
        }
    }

    /// Registers missing and different commands. Returns whether there were any.
    async fn register_once(&self) -> Result<bool, Failed> {
        let rest = self.discord.rest();
        let Application { id: application, description, .. } = rest.ask(Request::application()).await?;
        if description.is_some_and(|description| description.trim().is_empty()) {
            self.describe().await;
        }
        let listed: Vec<Value> = rest.ask(Request::commands(application)).await?;
        let missing = registered::to_register(&listed);
        let has_registered = !missing.is_empty();
        for command in missing {
            // Replaces the command of the same name. The application's other commands stay.
            rest.send(&Request::put_command(application, command)).await?;
        }
        Ok(has_registered)
    }
}
