//! People use commands.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::interactions::{
    APPLICATION_COMMAND, AUTOCOMPLETE, CHANNEL_MENU, MESSAGE_COMPONENT, MODAL_SUBMIT, ROLE_MENU, TEXT_MENU, components_in,
    guild_install,
};
use super::super::messages::image_hash;
use super::super::permissions::in_guild;
use super::super::{Answered, Command, Content, Event, Id, Intents, Interaction, Permissions, Place, State};
use super::Counterpart;

/// The kind of an option that takes a channel.
const CHANNEL: u64 = 7;

impl Counterpart {
    /// A person uses a command. The options are those of the interaction's data, including subcommands.
    ///
    /// # Errors
    ///
    /// The reason why Discord would not offer the command to the person.
    pub fn invoke(&self, user: Id, channel: Id, command: &str, options: Value) -> Result<Id, &'static str> {
        self.with(|state| state.interact(APPLICATION_COMMAND, user, channel, command, options))
    }

    /// A person uses `/tertulia`.
    ///
    /// # Panics
    ///
    /// Discord would not offer the command to the person.
    pub fn command(&self, user: Id, channel: Id, options: Value) -> Id {
        self.invoke(user, channel, "tertulia", options).expect("the command is offered")
    }

    /// A person types into an option with autocomplete: the one with `"focused": true`.
    ///
    /// # Errors
    ///
    /// The reason why Discord would not offer the command to the person.
    pub fn complete(&self, user: Id, channel: Id, command: &str, options: Value) -> Result<Id, &'static str> {
        self.with(|state| state.interact(AUTOCOMPLETE, user, channel, command, options))
    }

    /// A person chooses a command in the menu of a message.
    ///
    /// # Errors
    ///
    /// The reason why Discord would not show the command or the message to the person.
    pub fn invoke_on(&self, user: Id, channel: Id, command: &str, message: Id) -> Result<Id, &'static str> {
        self.with(|state| state.interact_on(user, channel, command, message))
    }

    /// A person chooses a command in the menu of a user.
    ///
    /// # Errors
    ///
    /// The reason why Discord would not show the command to the person.
    pub fn invoke_on_user(&self, user: Id, channel: Id, command: &str, target: Id) -> Result<Id, &'static str> {
        self.with(|state| {
            let command = state.offered(user, channel, command, 2)?;
            let resolved = json!({ "users": { target.to_string(): state.world.users[&target].json() } });
            let data = json!({ "id": command.id, "name": command.name(), "type": 2, "target_id": target, "resolved": resolved });
            Ok(state.send_interaction(APPLICATION_COMMAND, user, channel, data, None))
        })
    }

    /// A user presses the newest button of this id. Without such a button, the interaction names no message.
    pub fn press(&self, user: Id, channel: Id, button: &str) -> Id {
        let data = json!({ "id": 2, "custom_id": button, "component_type": 2 });
        self.with(|state| {
            let message = state.world.message_with(channel, button);
            let shown = message.map(|message| message.json(&state.world, Content::All));
            let message = message.map(|message| message.id);
            let id = state.send_interaction(MESSAGE_COMPONENT, user, channel, data, shown);
            message.into_iter().for_each(|message| state.set_component(id, message));
            id
        })
    }

    /// A person uses the button or the menu whose id begins with this, in a message. `chosen`: the values that are chosen in a menu.
    ///
    /// # Errors
    ///
    /// The reason why the person cannot do that.
    pub fn use_component(&self, user: Id, channel: Id, message: Id, id: &str, chosen: &[String]) -> Result<Id, &'static str> {
        self.with(|state| state.use_component(user, channel, message, id, chosen))
    }

    /// The person who was shown a modal submits it, with these texts.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be submitted.
    pub fn submit(&self, interaction: Id, texts: &[(&str, &str)]) -> Result<Id, &'static str> {
        self.with(|state| state.submit(interaction, texts))
    }

    /// The person who used a command chooses an option from the select menu in its answer.
    ///
    /// # Errors
    ///
    /// The reason why there is no such menu or option.
    pub fn choose(&self, interaction: Id, value: &str) -> Result<Id, &'static str> {
        self.with(|state| state.choose(interaction, value))
    }
}

impl State {
    fn interact(&mut self, kind: u64, user: Id, channel: Id, name: &str, options: Value) -> Result<Id, &'static str> {
        let command = self.offered(user, channel, name, 1)?;
        check_given_options(&command.data["options"], &options, kind)?;
        let mut data = json!({ "id": command.id, "name": name, "type": 1, "options": options });
        let mut chosen = Vec::new();
        channels_in(&options, &mut chosen);
        if !chosen.is_empty() {
            let guild = self.world.guild_of(channel).map(|guild| guild.id);
            data["resolved"] = json!({ "channels": self.resolved(user, guild, &chosen)? });
        }
        Ok(self.send_interaction(kind, user, channel, data, None))
    }

    /// <https://docs.discord.com/developers/interactions/application-commands#message-commands>
    fn interact_on(&mut self, user: Id, channel: Id, name: &str, message: Id) -> Result<Id, &'static str> {
        let command = self.offered(user, channel, name, 3)?;
        let target_channel = self.world.channels.get(&channel).filter(|target_channel| self.world.may_view(target_channel, user));
        let target = target_channel.and_then(|_| self.world.message(channel, message)).ok_or("they see no such message")?;
        // The application receives the whole message, whatever its intents are.
        let shown = target.json(&self.world, Content::All);
        let resolved = json!({ "messages": { message.to_string(): shown } });
        let data = json!({ "id": command.id, "name": name, "type": 3, "target_id": message, "resolved": resolved });
        Ok(self.send_interaction(APPLICATION_COMMAND, user, channel, data, None))
    }

    /// <https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-object-message-component-data-structure>
    fn choose(&mut self, interaction: Id, value: &str) -> Result<Id, &'static str> {
        let answer = self.journal.answers.iter().find(|answer| answer.interaction == interaction).ok_or("it was not answered")?;
        let list = answer.data["components"][0]["components"][0].clone();
        let mut options = list["options"].as_array().into_iter().flatten();
        if !options.any(|option| option["value"] == value) {
            return Err("there is no such option to choose");
        }
        let Interaction { user, channel, original, .. } = self.world.interactions[&interaction].clone();
        let message = original.and_then(|original| self.world.message(channel, original)).ok_or("there is no list")?;
        let message = message.json(&self.world, Content::All);
        let data = json!({ "id": 1, "custom_id": list["custom_id"], "component_type": 3, "values": [value] });
        Ok(self.send_interaction(MESSAGE_COMPONENT, user, channel, data, Some(message)))
    }

    /// <https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-object-message-component-data-structure>
    fn use_component(&mut self, user: Id, channel: Id, message: Id, id: &str, chosen: &[String]) -> Result<Id, &'static str> {
        let shown = self.world.message(channel, message).ok_or("there is no such message")?;
        if shown.is_ephemeral() {
            let is_for = |interaction: &Interaction| interaction.original == Some(message) && interaction.user == user;
            if !self.world.interactions.values().any(is_for) {
                return Err("only another person sees the message");
            }
        }
        let begins = |component: &&Value| component["custom_id"].as_str().is_some_and(|custom| custom.starts_with(id));
        let component = components_in(&shown.components).find(begins).cloned().ok_or("there is no such component")?;
        let shown = shown.json(&self.world, Content::All);
        let kind = component["type"].as_u64().unwrap_or_default();
        let limits = (component["min_values"].as_u64().unwrap_or(1), component["max_values"].as_u64().unwrap_or(1));
        let mut data = json!({ "id": 1, "custom_id": component["custom_id"], "component_type": kind });
        if matches!(kind, TEXT_MENU | ROLE_MENU | CHANNEL_MENU) {
            if !(limits.0..=limits.1).contains(&(chosen.len() as u64)) {
                return Err("so many cannot be chosen");
            }
            data["values"] = json!(chosen);
        } else if !chosen.is_empty() {
            return Err("nothing can be chosen");
        }
        let guild = self.world.guild_of(channel);
        let ids: Vec<Id> = chosen.iter().filter_map(|value| Id::parse(value)).collect();
        match kind {
            TEXT_MENU => {
                let mut options = component["options"].as_array().into_iter().flatten().map(|option| &option["value"]);
                let values: Vec<_> = options.by_ref().collect();
                if !chosen.iter().all(|value| values.contains(&&json!(value))) {
                    return Err("there is no such option to choose");
                }
            }
            ROLE_MENU if !ids.iter().all(|role| guild.is_some_and(|guild| guild.roles.contains_key(role))) => {
                return Err("there is no such role");
            }
            CHANNEL_MENU => data["resolved"] = json!({ "channels": self.resolved(user, guild.map(|guild| guild.id), &ids)? }),
            _ => {}
        }
        let id = self.send_interaction(MESSAGE_COMPONENT, user, channel, data, Some(shown));
        self.set_component(id, message);
        Ok(id)
    }

    fn set_component(&mut self, interaction: Id, message: Id) {
        if let Some(interaction) = self.world.interactions.get_mut(&interaction) {
            interaction.component_of = Some(message);
        }
    }

    /// <https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-object-modal-submit-data-structure>
    fn submit(&mut self, interaction: Id, texts: &[(&str, &str)]) -> Result<Id, &'static str> {
        let answers = self.journal.answers.iter().find(|answer| answer.interaction == interaction && answer.kind == 9);
        let modal = answers.ok_or("no modal was shown")?.data.clone();
        let mut rows = Vec::new();
        for input in components_in(modal["components"].as_array().ok_or("it has no inputs")?) {
            let text = texts.iter().find(|(id, _)| input["custom_id"] == *id).map(|(_, text)| (*text).to_owned());
            // A text that is not changed is submitted as it was shown.
            let text = text.unwrap_or_else(|| input["value"].as_str().unwrap_or_default().to_owned());
            let length = text.chars().count() as u64;
            let is_required = input["required"].as_bool().unwrap_or(true);
            if length > input["max_length"].as_u64().unwrap_or(4_000) || is_required && length == 0 {
                return Err("a text is too long, or missing");
            }
            rows.push(json!({ "type": 1, "components": [{ "type": 4, "custom_id": input["custom_id"], "value": text }] }));
        }
        let Interaction { user, channel, component_of, .. } = self.world.interactions[&interaction].clone();
        let data = json!({ "custom_id": modal["custom_id"], "components": rows });
        let message = component_of.and_then(|message| self.world.message(channel, message));
        let message = message.map(|message| message.json(&self.world, Content::All));
        let id = self.send_interaction(MODAL_SUBMIT, user, channel, data, message);
        if let Some(message) = component_of {
            self.set_component(id, message);
        }
        Ok(id)
    }

    /// A command that Discord offers to a user in a channel, or the reason why there is none.
    fn offered(&self, user: Id, channel: Id, name: &str, kind: u64) -> Result<Command, &'static str> {
        let target_channel = self.world.channels.get(&channel).ok_or("there is no such channel")?;
        let matches =
            |command: &&Command| command.name() == name && command.kind() == kind && command.is_for(target_channel.guild);
        let command = self.world.commands.iter().find(matches);
        let has_commands = target_channel.guild.is_none_or(|guild| !self.world.without_commands.contains(&guild));
        let command = command.filter(|_| has_commands).ok_or("there is no such command here")?;
        if !self.world.permissions(target_channel, user).contains(Permissions::USE_SLASH_COMMANDS) {
            return Err("they may use no commands here");
        }
        let in_guild = target_channel.guild.and_then(|guild| self.world.guilds.get(&guild)).map(|guild| in_guild(guild, user));
        // With an empty set of permissions, only administrators may use it.
        let needed = command.needs().map(|needed| if needed.is_empty() { Permissions::ADMINISTRATOR } else { needed });
        if needed.is_some_and(|needed| in_guild.is_some_and(|held| !held.contains(needed))) {
            return Err("the command is not for them");
        }
        Ok(command.clone())
    }

    fn send_interaction(&mut self, kind: u64, user: Id, channel: Id, data: Value, message: Option<Value>) -> Id {
        let target_channel = self.world.channels[&channel].clone();
        let permissions = self.world.permissions(&target_channel, user);
        let guild = target_channel.guild.and_then(|guild| self.world.guilds.get(&guild));
        let app_permissions = self.world.permissions(&target_channel, self.world.bot());
        let person = self.world.users[&user].json();
        let mut event = json!({
            "application_id": self.world.application.id,
            "type": kind,
            "data": data,
            "channel_id": channel,
            "channel": self.world.channel_json(&target_channel),
            "version": 1,
            "app_permissions": app_permissions,
            "locale": self.world.language(user),
            "entitlements": [],
            "authorizing_integration_owners": guild_install(guild),
            "context": if guild.is_some() { 0 } else { 1 },
            "attachment_size_limit": 10_485_760,
        });
        event["channel"]["permissions"] = json!(permissions);
        if let Some(guild) = guild {
            event["guild_id"] = json!(guild.id);
            let locale = self.world.language(guild.id);
            event["guild"] = json!({ "id": guild.id, "locale": locale, "features": [] });
            event["guild_locale"] = json!(locale);
            event["member"] = guild.members[&user].json(&self.world.users[&user]);
            event["member"]["permissions"] = json!(permissions);
        } else {
            event["user"] = person;
        }
        if let Some(message) = message {
            event["message"] = message;
        }
        let id = self.world.new_id();
        let token = format!("interaction-{}", image_hash(&id.to_string()));
        event["id"] = json!(id);
        event["token"] = json!(token);
        let place = target_channel.guild.map_or(Place::Elsewhere, Place::Guild);
        let (asked_at, answered, original, component_of) = (Instant::now(), Answered::Not, None, None);
        let interaction = Interaction { id, token, kind, channel, user, asked_at, answered, original, component_of };
        self.world.interactions.insert(id, interaction);
        self.send_event(&Event::new("INTERACTION_CREATE", place, Intents::empty(), event));
        id
    }
}

impl State {
    /// The chosen channels, with the permissions of the user and of the bot in each.
    ///
    /// <https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-object-resolved-data-structure>
    fn resolved(&self, user: Id, guild: Option<Id>, chosen: &[Id]) -> Result<Value, &'static str> {
        const FIELDS: [&str; 12] = [
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
                .retain(|field, _| FIELDS.contains(&field.as_str()) || field == "thread_metadata");
            json["permissions"] = json!(self.world.permissions(channel, user));
            json["app_permissions"] = json!(self.world.permissions(channel, self.world.bot()));
            channels.insert(id.to_string(), json);
        }
        Ok(Value::Object(channels))
    }
}

/// Collects the channels that are chosen in options, also in nested ones.
fn channels_in(options: &Value, chosen: &mut Vec<Id>) {
    for option in options.as_array().into_iter().flatten() {
        if option["type"] == json!(CHANNEL) {
            chosen.extend(Id::read(&option["value"]));
        }
        channels_in(&option["options"], chosen);
    }
}

/// Checks that a command has these options and that their values are possible. A person cannot send others.
fn check_given_options(registered: &Value, given: &Value, kind: u64) -> Result<(), &'static str> {
    let registered = registered.as_array().map_or(&[][..], Vec::as_slice);
    let given = given.as_array().map_or(&[][..], Vec::as_slice);
    let is_nested = |option: &Value| matches!(option["type"].as_u64(), Some(1 | 2));
    if registered.iter().any(is_nested) && given.len() != 1 {
        return Err("a command with subcommands is used by one of them");
    }
    for option in given {
        let registered_option = registered
            .iter()
            .find(|registered_option| registered_option["name"] == option["name"] && registered_option["type"] == option["type"]);
        let registered_option = registered_option.ok_or("the command has no such option")?;
        if option["focused"] == json!(true) && registered_option["autocomplete"] != json!(true) {
            return Err("the option has no autocomplete");
        }
        let choices = registered_option["choices"].as_array().map_or(&[][..], Vec::as_slice);
        if !choices.is_empty() && !choices.iter().any(|choice| choice["value"] == option["value"]) {
            return Err("the option has no such choice");
        }
        check_given_options(&registered_option["options"], &option["options"], kind)?;
    }
    let is_given = |registered_option: &Value| given.iter().any(|option| option["name"] == registered_option["name"]);
    let is_missing = |registered_option: &&Value| registered_option["required"] == json!(true) && !is_given(registered_option);
    // During autocomplete, required options may still be missing.
    if kind == APPLICATION_COMMAND && registered.iter().any(|registered_option| is_missing(&registered_option)) {
        return Err("a required option is missing");
    }
    Ok(())
}
