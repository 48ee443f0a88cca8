//! The slash command `/tertulia`: the real adapter against the test double, with a small backend behind it.

mod answering;
pub mod backend;
mod end_to_end;
mod languages;
mod managing;
mod on_page;
mod own;
mod registering;
mod reporting;
mod rights;
mod setup;
mod speaking;
mod voice;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tertulia::adapters::discord::commands::Commands;
use tertulia::adapters::discord::platform::Discord;
use tertulia::ports::backend::Backend;
use tertulia::telemetry::metrics::Metrics;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use self::backend::SmallBackend;
use super::counterpart::journal::Answer;
use super::counterpart::tests::client::{INTENTS, Socket};
use super::counterpart::{Counterpart, Id, Permissions, Rules};
use super::home::{Home, adapter, section, section_at};
use crate::harness::PATIENCE;

/// A guild with one channel, the registered commands, two people and a running adapter.
struct Scene {
    /// Ana may use commands, and manage nothing.
    home: Home,
    /// A member who may manage channels.
    kim: Id,
    backend: Arc<SmallBackend>,
    commands: Commands,
    /// The adapter that companions speak through.
    platform: Arc<Discord>,
    metrics: Metrics,
    interaction_target: Arc<Mutex<InteractionTarget>>,
    receiver: AbortHandle,
}

/// Where inbound interactions go.
enum InteractionTarget {
    Commands(Commands),
    Test(UnboundedSender<Value>),
}

impl Deref for Scene {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.home
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.receiver.abort();
    }
}

/// Limits that no test reaches by accident, and a session that needs no heartbeats.
pub fn rules() -> Rules {
    let long = Duration::from_secs(600);
    // A machine that is busy with other tests must not miss a deadline.
    Rules { heartbeat_tolerance: long, interaction_deadline: long, ..Rules::roomy() }
}

impl Scene {
    async fn new() -> Self {
        Self::with_rules(rules()).await
    }

    async fn with_rules(rules: Rules) -> Self {
        let home = Home::with_rules(rules).await;
        let discord = &home.discord;
        let kim = discord.member_with(home.guild, "Kim", Permissions::MANAGE_CHANNELS);
        let backend = Arc::new(SmallBackend::default());
        let (platform, metrics) = (platform(discord), Metrics::local());
        let commands = commands(&platform, &backend, &metrics);
        commands.ready();
        discord.wait_for("the commands", |state| state.world.commands.len() == 6).await;
        let interaction_target = Arc::new(Mutex::new(InteractionTarget::Commands(commands.clone())));
        let receiver = forward_interactions(discord, Arc::clone(&interaction_target)).await;
        Self { home, kim, backend, commands, platform, metrics, interaction_target, receiver }
    }

    /// From now on inbound interactions go to the test.
    fn intercept(&self) -> UnboundedReceiver<Value> {
        let (sender, interactions) = unbounded_channel();
        self.send_interactions_to(InteractionTarget::Test(sender));
        interactions
    }

    fn send_interactions_to(&self, target: InteractionTarget) {
        *self.interaction_target.lock() = target;
    }

    /// A person uses `/tertulia` in a channel. Returns the first answer.
    async fn ask(&self, user: Id, channel: Id, options: Value) -> Answer {
        let interaction = self.discord.command(user, channel, options);
        self.discord.answer_to(interaction).await
    }

    /// A person uses a subcommand in a channel. Returns the text of the final answer.
    async fn final_answer(&self, user: Id, channel: Id, options: Value) -> String {
        final_answer(&self.discord, user, channel, options).await
    }

    /// A person uses a subcommand in the guild's channel, and presses the button of the answer. Returns the text of the final answer.
    async fn confirmed(&self, user: Id, options: Value) -> String {
        let question = self.ask(user, self.general, options).await;
        let button = question.data["components"][0]["components"][0]["custom_id"].as_str().expect("a button");
        let interaction = self.discord.press(user, self.general, button);
        assert!(self.discord.answer_to(interaction).await.ephemeral);
        self.discord.final_answer(interaction).await.content
    }

    /// The choices that autocomplete offers to a person.
    async fn offered(&self, user: Id, channel: Id, options: Value) -> Vec<String> {
        let interaction = self.discord.complete(user, channel, "tertulia", options).expect("the command is offered");
        let answer = self.discord.answer_to(interaction).await;
        assert_eq!(answer.kind, 8);
        let choices = answer.data["choices"].as_array().expect("choices").clone();
        choices.iter().map(|choice| choice["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// How many interactions with a command had this outcome.
    fn counted(&self, command: &str, outcome: &str) -> f64 {
        let labels = [("discord_command", command), ("discord_command_outcome", outcome)];
        self.metrics.total("tertulia_discord_commands_total", &labels)
    }

    /// A second guild, with a channel and a person who may manage channels there.
    fn elsewhere(&self) -> (Id, Id, Id) {
        let guild = self.discord.guild("Away");
        let channel = self.discord.channel(guild, "general");
        (guild, channel, self.discord.member_with(guild, "Zoe", Permissions::MANAGE_CHANNELS))
    }
}

pub fn platform(discord: &Counterpart) -> Arc<Discord> {
    Arc::new(adapter(&section(discord), &discord.token()))
}

pub(crate) fn commands(platform: &Arc<Discord>, backend: &Arc<SmallBackend>, metrics: &Metrics) -> Commands {
    let section = section_at("");
    let (opt_outs, inbound_events) = (Arc::clone(backend), Arc::clone(&backend.core));
    Commands::new(
        Arc::clone(platform),
        Backend::of(Arc::clone(&backend.services)),
        opt_outs,
        inbound_events,
        None,
        &section,
        metrics.instruments(),
    )
}

/// Connects a session and forwards its interactions to the target, as a gateway connection does.
async fn forward_interactions(discord: &Counterpart, target: Arc<Mutex<InteractionTarget>>) -> AbortHandle {
    let (mut socket, _) = Socket::ready(discord, INTENTS).await;
    let forwarding = async move {
        while let Some(mut payload) = socket.next().await {
            if payload["t"] == "INTERACTION_CREATE" {
                match &*target.lock() {
                    InteractionTarget::Commands(commands) => commands.handle_interaction(raw(&payload["d"])),
                    // At the end of a test the receiver may be gone.
                    InteractionTarget::Test(test) => drop(test.send(payload["d"].take())),
                }
            }
        }
    };
    tokio::spawn(forwarding).abort_handle()
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("JSON")
}

/// A person uses a subcommand in a channel. Returns the text of the final answer, which must be ephemeral.
pub(super) async fn final_answer(discord: &Counterpart, user: Id, channel: Id, options: Value) -> String {
    let interaction = discord.command(user, channel, options);
    let answer = discord.answer_to(interaction).await;
    assert!(answer.ephemeral, "{answer:?}");
    discord.final_answer(interaction).await.content
}

/// Evaluates the condition again and again until it holds. Panics when that takes too long.
async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let polling = async { while !condition().await {} };
    assert!(timeout(PATIENCE, polling).await.is_ok(), "timed out waiting for {what}");
}

pub(super) fn sub(name: &str, options: Value) -> Value {
    json!([{ "type": 1, "name": name, "options": options }])
}

/// The subcommand `me` of a group: `forget me` or `ignore me`.
fn me(group: &str, options: Value) -> Value {
    json!([{ "type": 2, "name": group, "options": sub("me", options) }])
}

pub(super) fn companion(name: &str) -> Value {
    json!({ "type": 3, "name": "companion", "value": name })
}

fn at(channel: Id) -> Value {
    json!({ "type": 7, "name": "where", "value": channel })
}

fn switch(to: &str) -> Value {
    json!({ "type": 3, "name": "switch", "value": to })
}
