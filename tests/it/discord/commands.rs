//! `/tertulia` on Discord: the real adapter against the counterpart, with a small backend behind it.

mod answering;
pub mod backend;
mod doing;
mod registering;
mod saying;
mod telling;
mod whole;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tertulia::adapters::discord::commands::Commands;
use tertulia::adapters::discord::platform::Discord;
use tertulia::adapters::discord::snowflake::Snowflake;
use tertulia::adapters::system::SystemClock;
use tertulia::settings::Settings;
use tertulia::settings::discord::Discord as Section;
use tertulia::telemetry::metrics::Metrics;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use self::backend::SmallHouse;
use super::counterpart::Counterpart;
use super::counterpart::id::Id;
use super::counterpart::journal::Answer;
use super::counterpart::messages::LOADING;
use super::counterpart::permissions::MANAGE_CHANNELS;
use super::counterpart::rules::Rules;
use super::counterpart::state::State;
use super::counterpart::tests::client::{INTENTS, Socket};
use crate::harness::PATIENCE;

/// A guild with one channel, the command in it, and somebody to answer.
struct Scene {
    discord: Counterpart,
    guild: Id,
    general: Id,
    /// She may use commands, and manage nothing.
    ana: Id,
    /// He may manage channels.
    kim: Id,
    backend: Arc<SmallHouse>,
    commands: Commands,
    /// The adapter that companions speak through.
    platform: Arc<Discord>,
    metrics: Metrics,
    /// Whoever takes what is heard of interactions.
    taker: Arc<Mutex<Taker>>,
    ears: AbortHandle,
}

/// Whoever takes what is heard of interactions.
enum Taker {
    Commands(Commands),
    Test(UnboundedSender<Value>),
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.ears.abort();
    }
}

/// Limits that are in nobody's way, and a session that lasts without heartbeats.
pub fn rules() -> Rules {
    let long = Duration::from_secs(600);
    // A machine that is busy with other tests is no reason to be late.
    Rules { heartbeat_tolerance: long, interaction_deadline: long, ..Rules::roomy() }
}

impl Scene {
    async fn new() -> Self {
        Self::with_rules(rules()).await
    }

    async fn with_rules(rules: Rules) -> Self {
        let discord = Counterpart::with_rules(rules).await;
        let guild = discord.guild("Home");
        let general = discord.channel(guild, "general");
        let (ana, kim) = (discord.member(guild, "Ana"), discord.member(guild, "Kim"));
        discord.give_role(guild, kim, discord.role(guild, "Keepers", MANAGE_CHANNELS));
        let backend = Arc::new(SmallHouse::default());
        let (platform, metrics) = (platform(&discord), Metrics::local());
        let commands = commands(&platform, &backend, &metrics);
        commands.ready();
        discord.until("the commands", |state| (state.world.commands.len() == 2).then_some(())).await;
        let taker = Arc::new(Mutex::new(Taker::Commands(commands.clone())));
        let ears = hear(&discord, Arc::clone(&taker)).await;
        Self { discord, guild, general, ana, kim, backend, commands, platform, metrics, taker, ears }
    }

    /// From now on the test takes what is heard of interactions.
    fn overhear(&self) -> UnboundedReceiver<Value> {
        let (sender, heard) = unbounded_channel();
        self.hand_over(Taker::Test(sender));
        heard
    }

    fn hand_over(&self, taker: Taker) {
        *self.taker.lock().expect("nobody panicked") = taker;
    }

    /// Somebody uses `/tertulia` in a channel. Returns the first answer.
    async fn ask(&self, user: Id, channel: Id, options: Value) -> Answer {
        let asked = self.discord.invoke(user, channel, "tertulia", options).expect("it is there");
        self.discord.answer_to(asked).await
    }

    /// What somebody is told who uses a subcommand in a channel, at last.
    async fn told(&self, user: Id, channel: Id, options: Value) -> String {
        told(&self.discord, user, channel, options).await
    }

    /// The names that are offered to somebody who types.
    async fn offered(&self, user: Id, channel: Id, options: Value) -> Vec<String> {
        let asked = self.discord.complete(user, channel, "tertulia", options).expect("it is there");
        let answer = self.discord.answer_to(asked).await;
        assert_eq!(answer.kind, 8);
        let choices = answer.data["choices"].as_array().expect("choices").clone();
        choices.iter().map(|choice| choice["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// How many interactions came to this.
    fn counted(&self, command: &str, outcome: &str) -> f64 {
        let labels = [("discord_command", command), ("discord_command_outcome", outcome)];
        self.metrics.total("tertulia_discord_commands_total", &labels)
    }

    /// A second guild, with a channel and somebody who may do anything there.
    fn elsewhere(&self) -> (Id, Id, Id) {
        let guild = self.discord.guild("Away");
        let channel = self.discord.channel(guild, "general");
        let zoe = self.discord.member(guild, "Zoe");
        self.discord.give_role(guild, zoe, self.discord.role(guild, "Keepers", MANAGE_CHANNELS));
        (guild, channel, zoe)
    }
}

pub fn platform(discord: &Counterpart) -> Arc<Discord> {
    let defaults = Settings::defaults().expect("the defaults");
    let mut section: Section = defaults["discord"].clone().try_into().expect("the section");
    section.api_url = format!("{}/api", discord.api_url());
    Arc::new(Discord::new(&section, discord.token().into(), Arc::new(SystemClock)).expect("an adapter"))
}

pub fn commands(platform: &Arc<Discord>, backend: &Arc<SmallHouse>, metrics: &Metrics) -> Commands {
    let defaults = Settings::defaults().expect("the defaults");
    let section: Section = defaults["discord"].clone().try_into().expect("the section");
    let (company, ignoring, inbound_events) = (Arc::clone(backend), Arc::clone(backend), Arc::clone(backend));
    Commands::new(Arc::clone(platform), backend.clone(), company, ignoring, inbound_events, &section, metrics.instruments())
}

/// Hands over what a session hears of interactions, as a connection does.
async fn hear(discord: &Counterpart, taker: Arc<Mutex<Taker>>) -> AbortHandle {
    let (mut socket, _) = Socket::ready(discord, INTENTS).await;
    let inbound_events = async move {
        while let Some(mut payload) = socket.next().await {
            if payload["t"] == "INTERACTION_CREATE" {
                match &*taker.lock().expect("nobody panicked") {
                    Taker::Commands(commands) => commands.take(raw(&payload["d"])),
                    // Nobody asks for it any more at a test's end.
                    Taker::Test(test) => drop(test.send(payload["d"].take())),
                }
            }
        }
    };
    tokio::spawn(inbound_events).abort_handle()
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("JSON")
}

fn snowflake(id: Id) -> Snowflake {
    Snowflake::new(id.0).expect("an id")
}

/// What somebody is told who uses a subcommand in a channel, at last. Nobody else sees it.
async fn told(discord: &Counterpart, user: Id, channel: Id, options: Value) -> String {
    let asked = discord.invoke(user, channel, "tertulia", options).expect("it is there");
    let answer = discord.answer_to(asked).await;
    assert!(answer.ephemeral, "{answer:?}");
    let words = |state: &State| {
        let interaction = &state.world.interactions[&asked];
        let message = interaction.original.and_then(|id| state.world.message(interaction.channel, id))?;
        (message.flags & LOADING == 0).then(|| message.content.clone())
    };
    discord.until("the words", words).await
}

/// Asks until it is so.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let asking = async { while !is_so().await {} };
    assert!(timeout(PATIENCE, asking).await.is_ok(), "{what} did not come");
}

/// A subcommand with its options.
fn sub(name: &str, options: Value) -> Value {
    json!([{ "type": 1, "name": name, "options": options }])
}

/// `forget me` and `ignore me`.
fn me(group: &str, options: Value) -> Value {
    json!([{ "type": 2, "name": group, "options": sub("me", options) }])
}

fn companion(name: &str) -> Value {
    json!({ "type": 3, "name": "companion", "value": name })
}

fn at(channel: Id) -> Value {
    json!({ "type": 7, "name": "where", "value": channel })
}

fn switch(to: &str) -> Value {
    json!({ "type": 3, "name": "switch", "value": to })
}
