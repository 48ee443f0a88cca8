//! People use commands.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::id::Id;
use super::super::intents;
use super::super::interactions::{APPLICATION_COMMAND, AUTOCOMPLETE, Answered, Interaction};
use super::super::messages::image_hash;
use super::super::permissions::{ADMINISTRATOR, USE_APPLICATION_COMMANDS, in_guild};
use super::super::sessions::{Event, Place};
use super::super::state::State;
use super::Counterpart;

/// The kind of an option that takes a channel.
const CHANNEL: u64 = 7;

impl Counterpart {
    /// Somebody uses a command. The options are those of the interaction's data, subcommands and all.
    ///
    /// # Errors
    ///
    /// Discord would not show them the command: the reason.
    pub fn invoke(&self, user: Id, channel: Id, command: &str, options: Value) -> Result<Id, &'static str> {
        self.with(|state| state.interact(APPLICATION_COMMAND, user, channel, command, options))
    }

    /// Somebody types into an option that completes itself: the one with `"focused": true`.
    ///
    /// # Errors
    ///
    /// Discord would not show them the command: the reason.
    pub fn complete(&self, user: Id, channel: Id, command: &str, options: Value) -> Result<Id, &'static str> {
        self.with(|state| state.interact(AUTOCOMPLETE, user, channel, command, options))
    }
}

impl State {
    fn interact(&mut self, kind: u64, user: Id, channel: Id, name: &str, options: Value) -> Result<Id, &'static str> {
        let there = self.world.channels.get(&channel).ok_or("there is no such channel")?.clone();
        let permissions = self.world.permissions(&there, user);
        let command = self.world.commands.iter().find(|command| command.name() == name && command.is_for(there.guild));
        let is_let_in = there.guild.is_none_or(|guild| !self.world.without_commands.contains(&guild));
        let command = command.filter(|_| is_let_in).ok_or("there is no such command here")?;
        if permissions & USE_APPLICATION_COMMANDS == 0 {
            return Err("they may use no commands here");
        }
        let guild = there.guild.and_then(|guild| self.world.guilds.get(&guild));
        let in_guild = guild.map_or(0, |guild| in_guild(guild, user));
        // An empty set is for administrators alone.
        let needed = command.needs().map(|needed| if needed == 0 { ADMINISTRATOR } else { needed });
        if guild.is_some() && needed.is_some_and(|needed| in_guild & needed != needed) {
            return Err("the command is not for them");
        }
        known_options(&command.data["options"], &options, kind)?;
        let mut data = json!({ "id": command.id, "name": name, "type": command.kind(), "options": options });
        let mut chosen = Vec::new();
        channels_in(&options, &mut chosen);
        if !chosen.is_empty() {
            data["resolved"] = json!({ "channels": self.resolved(user, there.guild, &chosen)? });
        }
        if let Some(guild) = command.guild {
            data["guild_id"] = json!(guild);
        }
        let app_permissions = self.world.permissions(&there, self.world.bot());
        let person = self.world.users[&user].json();
        let mut event = json!({
            "application_id": self.world.application.id,
            "type": kind,
            "data": data,
            "channel_id": channel,
            "channel": self.world.channel_json(&there),
            "version": 1,
            "app_permissions": app_permissions.to_string(),
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": { "0": guild.map_or_else(|| "0".to_owned(), |guild| guild.id.to_string()) },
            "context": if guild.is_some() { 0 } else { 1 },
            "attachment_size_limit": 10_485_760,
        });
        event["channel"]["permissions"] = json!(permissions.to_string());
        if let Some(guild) = guild {
            event["guild_id"] = json!(guild.id);
            event["guild"] = json!({ "id": guild.id, "locale": "en-US", "features": [] });
            event["guild_locale"] = json!("en-US");
            event["member"] = guild.members[&user].json(&self.world.users[&user]);
            event["member"]["permissions"] = json!(permissions.to_string());
        } else {
            event["user"] = person;
        }
        let id = self.world.new_id();
        let token = format!("interaction-{}", image_hash(&id.to_string()));
        event["id"] = json!(id);
        event["token"] = json!(token);
        let place = there.guild.map_or(Place::Elsewhere, Place::Guild);
        let interaction = Interaction {
            id,
            token,
            kind,
            channel,
            user,
            asked_at: Instant::now(),
            answered: Answered::Not,
            original: None,
            followups: Vec::new(),
        };
        self.world.interactions.insert(id, interaction);
        let bare = None;
        self.tell(&Event { bare, channel: Some(channel), ..Event::new("INTERACTION_CREATE", place, intents::NONE, event) });
        Ok(id)
    }
}

impl State {
    /// The channels that were chosen, with what whoever chose them and the bot may do there.
    ///
    /// <https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-object-resolved-data-structure>
    fn resolved(&self, user: Id, guild: Option<Id>, chosen: &[Id]) -> Result<Value, &'static str> {
        const TOLD: [&str; 12] = [
            "id",
            "name",
            "type",
            "last_message_id",
            "last_pin_timestamp",
            "nsfw",
            "parent_id",
            "guild_id",
            "flags",
            "rate_limit_per_user",
            "topic",
            "position",
        ];
        let mut channels = serde_json::Map::new();
        for id in chosen {
            let channel = self.world.channels.get(id).filter(|channel| channel.guild == guild);
            let channel = channel.ok_or("there is no such channel to choose")?;
            if !self.world.may_view(channel, user) {
                return Err("they do not see that channel");
            }
            let mut json = self.world.channel_json(channel);
            json.as_object_mut()
                .expect("an object")
                .retain(|field, _| TOLD.contains(&field.as_str()) || field == "thread_metadata");
            json["permissions"] = json!(self.world.permissions(channel, user).to_string());
            json["app_permissions"] = json!(self.world.permissions(channel, self.world.bot()).to_string());
            channels.insert(id.to_string(), json);
        }
        Ok(Value::Object(channels))
    }
}

/// The channels that are chosen in options.
fn channels_in(options: &Value, chosen: &mut Vec<Id>) {
    for option in options.as_array().into_iter().flatten() {
        if option["type"] == json!(CHANNEL) {
            chosen.extend(Id::read(&option["value"]));
        }
        channels_in(&option["options"], chosen);
    }
}

/// Whether a command has these options, and can have them so. A person cannot give others.
fn known_options(registered: &Value, given: &Value, kind: u64) -> Result<(), &'static str> {
    let registered = registered.as_array().map_or(&[][..], Vec::as_slice);
    let given = given.as_array().map_or(&[][..], Vec::as_slice);
    let is_nested = |option: &Value| matches!(option["type"].as_u64(), Some(1 | 2));
    if registered.iter().any(is_nested) && given.len() != 1 {
        return Err("a command with subcommands is used by one of them");
    }
    for option in given {
        let known = registered.iter().find(|known| known["name"] == option["name"] && known["type"] == option["type"]);
        let known = known.ok_or("the command has no such option")?;
        if option["focused"] == json!(true) && known["autocomplete"] != json!(true) {
            return Err("the option does not complete itself");
        }
        let choices = known["choices"].as_array().map_or(&[][..], Vec::as_slice);
        if !choices.is_empty() && !choices.iter().any(|choice| choice["value"] == option["value"]) {
            return Err("the option has no such choice");
        }
        known_options(&known["options"], &option["options"], kind)?;
    }
    let is_given = |known: &Value| given.iter().any(|option| option["name"] == known["name"]);
    let is_missing = |known: &&Value| known["required"] == json!(true) && !is_given(known);
    // Whoever still types has not given everything.
    if kind == APPLICATION_COMMAND && registered.iter().any(|known| is_missing(&known)) {
        return Err("a required option is missing");
    }
    Ok(())
}
