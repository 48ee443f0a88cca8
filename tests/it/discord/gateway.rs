//! Connections of the real adapter to the gateway of the test double.

mod budget;
mod connecting;
mod malformed_frames;
mod receiving;
mod reconnecting;
mod refusing;
mod resuming;
mod sending_commands;

use std::time::Duration;

use super::client::{Client, Notepad, Options, rules};
use super::counterpart::Rules;
use super::home::Home;

/// A home, and a client that is connected and has received its guild.
struct Scene {
    home: Home,
    client: Client,
}

impl Scene {
    async fn new() -> Self {
        Self::with(rules(), |_| {}).await
    }

    async fn with_fast_heartbeat() -> Self {
        Self::with(Rules { heartbeat_interval: Duration::from_millis(400), ..rules() }, |_| {}).await
    }

    async fn with(rules: Rules, change: impl FnOnce(&mut Options)) -> Self {
        let home = Home::with_rules(rules).await;
        let mut client = Client::with(&home.discord, &Notepad::new(), change);
        client.connect().await;
        client.inbox.until_kind("GUILD_CREATE", 1).await;
        Self { home, client }
    }

    /// Ana sends a message, which must be received exactly once.
    async fn assert_receives_once(&self) {
        self.home.discord.say(self.home.ana, self.home.general, "still there?");
        self.client.inbox.until_text("still there?").await;
        assert_eq!(self.client.inbox.texts(), ["still there?"]);
    }

    /// How many connections ended for this reason.
    fn ended_by(&self, cause: &str) -> f64 {
        ended_by(&self.client, cause)
    }
}

fn ended_by(client: &Client, cause: &str) -> f64 {
    client.total("tertulia_discord_reconnects_total", &[("discord_gateway_cause", cause)])
}
