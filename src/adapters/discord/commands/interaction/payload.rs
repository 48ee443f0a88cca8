//! The fields of an interaction (Discord's documentation, "Receiving and Responding", "Interaction Object").

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use twilight_model::application::command::CommandType;
use twilight_model::guild::Permissions;

use crate::snowflake::Snowflake;
use crate::wire::{self, Channel, User, maybe};

/// The limit of characters in a text of a form (Discord's documentation, "Component Reference", "Text Input").
const LONGEST_TEXT: usize = 4_000;

#[derive(Deserialize)]
pub struct Payload {
    pub id: Snowflake,
    pub application_id: Snowflake,
    pub token: SecretString,
    #[serde(rename = "type")]
    pub kind: u8,
    pub data: Option<Data>,
    pub guild_id: Option<Snowflake>,
    pub channel_id: Option<Snowflake>,
    pub channel: Option<Channel>,
    pub member: Option<Member>,
    pub user: Option<User>,
    /// The language of the user.
    #[serde(default, deserialize_with = "maybe")]
    pub locale: String,
    /// The preferred language of the guild.
    #[serde(default, deserialize_with = "maybe")]
    pub guild_locale: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    pub app_permissions: Option<Permissions>,
}

#[derive(Deserialize)]
pub struct Data {
    #[serde(default)]
    pub name: String,
    #[serde(default, rename = "type")]
    pub kind: Option<CommandType>,
    #[serde(default)]
    pub options: Vec<GivenOption>,
    /// For a command in the menu of a message or user: the message or user.
    #[serde(default, deserialize_with = "maybe")]
    pub target_id: Option<Snowflake>,
    /// The id of the component, for interactions with components.
    #[serde(default)]
    pub custom_id: String,
    #[serde(default, deserialize_with = "maybe")]
    pub values: Option<Vec<String>>,
    #[serde(default, deserialize_with = "maybe")]
    pub resolved: Option<Resolved>,
    /// The rows of a form that was filled in.
    #[serde(default, deserialize_with = "maybe")]
    pub components: Vec<FormRow>,
}

#[derive(Deserialize)]
pub struct FormRow {
    #[serde(default, deserialize_with = "maybe")]
    pub components: Vec<FormText>,
}

#[derive(Default, Deserialize)]
pub struct FormText {
    #[serde(default)]
    pub custom_id: String,
    #[serde(default)]
    pub value: String,
}

impl Data {
    /// A text of the form that was filled in. Empty if there is no such text.
    pub fn typed(&self, name: &str) -> String {
        let texts = self.components.iter().flat_map(|row| &row.components);
        let text = texts.filter(|text| text.custom_id == name).map(|text| text.value.chars().take(LONGEST_TEXT)).next();
        text.map(Iterator::collect).unwrap_or_default()
    }
}

#[derive(Deserialize)]
pub struct Resolved {
    #[serde(default)]
    pub channels: BTreeMap<Snowflake, Channel>,
    #[serde(default, deserialize_with = "maybe")]
    pub messages: Option<BTreeMap<Snowflake, wire::Message>>,
}

/// An option that the user filled in, a subcommand, or a group of subcommands.
#[derive(Deserialize)]
pub struct GivenOption {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub value: Value,
    #[serde(default)]
    pub options: Vec<GivenOption>,
    #[serde(default)]
    pub focused: bool,
}

#[derive(Deserialize)]
pub struct Member {
    pub user: Option<User>,
    #[serde(default, deserialize_with = "maybe")]
    pub nick: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    pub roles: Vec<Snowflake>,
    #[serde(default, deserialize_with = "maybe")]
    pub permissions: Option<Permissions>,
}
