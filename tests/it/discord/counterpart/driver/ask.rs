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
        known_options(&command.data["options"], &options)?;
        let mut data = json!({ "id": command.id, "name": name, "type": command.kind(), "options": options });
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

/// Whether a command has these options. A person cannot give others.
fn known_options(registered: &Value, given: &Value) -> Result<(), &'static str> {
    let registered = registered.as_array().map_or(&[][..], Vec::as_slice);
    for option in given.as_array().into_iter().flatten() {
        let known = registered.iter().find(|known| known["name"] == option["name"] && known["type"] == option["type"]);
        known_options(&known.ok_or("the command has no such option")?["options"], &option["options"])?;
    }
    Ok(())
}
