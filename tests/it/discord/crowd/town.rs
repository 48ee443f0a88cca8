//! Many guilds with channels and people, and the settings of a server for them.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::super::counterpart::{Counterpart, Id, Rules};
use crate::harness::Premises;

/// The share of messages that address Aria.
const ADDRESSED: f64 = 0.3;
/// The shares of messages that are edited or deleted later.
const EDITED: f64 = 0.02;
const DELETED: f64 = 0.02;

#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub guilds: usize,
    pub shards: u64,
}

/// The guilds on one Discord, and the messages of their people.
pub struct Town {
    pub discord: Counterpart,
    pub channels: Vec<Channel>,
    pub messages: Vec<PersonMessage>,
    pub size: Size,
    rng: StdRng,
}

/// A channel of which Aria is a member.
#[derive(Clone, Debug)]
pub struct Channel {
    pub id: Id,
    pub guild: Id,
    people: Vec<Id>,
}

/// A message that a person sent.
#[derive(Clone, Debug)]
pub struct PersonMessage {
    pub id: Id,
    pub channel: Id,
    /// Its current text. None: it was deleted.
    pub text: Option<String>,
    /// Whether it was neither edited nor deleted.
    pub is_unchanged: bool,
}

impl Channel {
    pub fn first_person(&self) -> Id {
        self.people[0]
    }
}

impl Town {
    /// One guild.
    pub async fn small() -> Self {
        Self::new(Size { guilds: 1, shards: 1 }, 1).await
    }

    /// Guilds without messages, on a Discord with the documented limits and with short delays.
    pub async fn new(size: Size, seed: u64) -> Self {
        Self::with_rules(size, seed, Rules::quick()).await
    }

    /// The same with other rules.
    pub async fn with_rules(size: Size, seed: u64, rules: Rules) -> Self {
        let rules = Rules {
            max_concurrency: size.shards,
            recommended_shards: Some(size.shards),
            // A silent connection is noticed after a time that depends on this interval.
            heartbeat_interval: std::time::Duration::from_secs(2),
            ..rules
        };
        let discord = Counterpart::with_rules(rules).await;
        let mut channels = Vec::new();
        for number in 0..size.guilds {
            let guild = discord.guild(&format!("Guild {number}"));
            let people: Vec<Id> = ["Ana", "Bob", "Cho"].iter().map(|name| discord.member(guild, name)).collect();
            channels.push(Channel { id: discord.channel(guild, "talk"), guild, people });
        }
        Self { discord, channels, messages: Vec::new(), size, rng: StdRng::seed_from_u64(seed) }
    }

    /// Settings of a server for these guilds. Its rehearsal answers at once, and budgets do not limit it.
    pub fn premises(&self) -> Premises {
        Premises::shipped()
            .without_limits()
            .with_companion("aria", "name = \"Aria\"\ntext_lull_timeout = 2.0\ninterjection = \"quiet\"\n")
            .with("console.rooms", "[]")
            .for_discord(&self.discord)
            .with("discord.request_timeout_secs", "2")
    }

    /// Waits for every shard, and adds Aria to every channel with the command, as a guild's owner does.
    pub async fn load_rooms(&self) {
        self.discord.sessions(usize::try_from(self.size.shards).expect("a few")).await;
        self.discord.wait_for("the commands", |state| !state.world.commands.is_empty()).await;
        let owner = self.discord.look(|state| state.world.application.owner);
        for channel in &self.channels {
            let options =
                json!([{ "name": "join", "type": 1, "options": [{ "name": "companion", "type": 3, "value": "aria" }] }]);
            let interaction = self.discord.command(owner, channel.id, options);
            self.discord.answer_to(interaction).await;
        }
    }

    /// A random person sends a message in a random channel. Now and then a recent message is edited or deleted.
    pub fn say(&mut self) {
        let channel = self.channels[self.rng.random_range(0..self.channels.len())].clone();
        if self.discord.look(|state| state.world.guilds.get(&channel.guild).is_none_or(|guild| guild.outage)) {
            return;
        }
        let author = channel.people[self.rng.random_range(0..channel.people.len())];
        let number = self.messages.len();
        let is_addressed = self.rng.random_bool(ADDRESSED);
        let text = if is_addressed { format!("Aria, what of {number}?") } else { format!("there is {number}") };
        let id = self.discord.say(author, channel.id, &text);
        self.messages.push(PersonMessage { id, channel: channel.id, text: Some(text), is_unchanged: true });
        if self.rng.random_bool(EDITED) {
            self.change(|discord, message| {
                let text = format!("it was {} after all", message.id);
                discord.edit(message.channel, message.id, &text);
                message.text = Some(text);
            });
        }
        if self.rng.random_bool(DELETED) {
            self.change(|discord, message| {
                discord.delete(message.channel, message.id);
                message.text = None;
            });
        }
    }

    /// Sends a final message in every channel. Returns channels and messages.
    pub fn final_messages(&mut self) -> Vec<(Id, Id)> {
        let say = |channel: &Channel| (channel.id, self.discord.say(channel.first_person(), channel.id, "that was all"));
        let sent: Vec<_> = self.channels.iter().map(say).collect();
        let message = |&(channel, id)| PersonMessage { id, channel, text: Some("that was all".to_owned()), is_unchanged: true };
        self.messages.extend(sent.iter().map(message));
        sent
    }

    /// Changes one of the newest messages, unless it was edited or deleted before.
    fn change(&mut self, change: impl FnOnce(&Counterpart, &mut PersonMessage)) {
        let back = self.rng.random_range(1..=20).min(self.messages.len());
        let at = self.messages.len() - back;
        let discord = &self.discord;
        let message = &mut self.messages[at];
        let is_there = discord.look(|state| state.world.message(message.channel, message.id).is_some());
        if message.is_unchanged && is_there {
            change(discord, message);
            message.is_unchanged = false;
        }
    }

    /// The messages of people, by channel.
    pub fn messages_by_channel(&self) -> BTreeMap<Id, Vec<&PersonMessage>> {
        let mut by_channel = BTreeMap::<Id, Vec<&PersonMessage>>::new();
        for message in &self.messages {
            by_channel.entry(message.channel).or_default().push(message);
        }
        by_channel
    }
}
