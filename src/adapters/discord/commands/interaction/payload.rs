//! The fields of an interaction (Discord's documentation, "Receiving and Responding", "Interaction Object").

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

use crate::adapters::discord::permissions::Permissions;
use crate::adapters::discord::snowflake::Snowflake;
use crate::adapters::discord::wire::{self, maybe};

#[derive(Deserialize)]
pub struct Payload {
    pub id: Snowflake,
    pub application_id: Snowflake,
    pub token: SecretString,
    #[serde(rename = "type")]
    pub kind: u8,
    #[serde(default)]
    pub data: Option<Data>,
    #[serde(default)]
    pub guild_id: Option<Snowflake>,
    #[serde(default)]
    pub channel_id: Option<Snowflake>,
    #[serde(default)]
    pub channel: Option<Channel>,
    #[serde(default)]
    pub member: Option<Member>,
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default, deserialize_with = "maybe")]
    pub app_permissions: Option<Bits>,
}

#[derive(Deserialize)]
pub struct Data {
    #[serde(default)]
    pub name: String,
    #[serde(default, rename = "type")]
    pub kind: Option<u8>,
    #[serde(default)]
    pub options: Vec<GivenOption>,
    /// The message in whose menu a command was chosen.
    #[serde(default, deserialize_with = "maybe")]
    pub target_id: Option<Snowflake>,
    /// The id of the component, for interactions with components. `values` has the chosen values.
    #[serde(default)]
    pub custom_id: String,
    #[serde(default, deserialize_with = "maybe")]
    pub values: Option<Vec<String>>,
    #[serde(default, deserialize_with = "maybe")]
    pub resolved: Option<Resolved>,
}

#[derive(Deserialize)]
pub struct Resolved {
    #[serde(default)]
    pub channels: BTreeMap<Snowflake, Channel>,
    #[serde(default, deserialize_with = "maybe")]
    pub messages: Option<BTreeMap<Snowflake, wire::Message>>,
}

/// An option that was used, a subcommand, or a group of subcommands.
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
pub struct Channel {
    pub id: Snowflake,
    #[serde(default, rename = "type")]
    pub kind: Option<u8>,
    #[serde(default)]
    pub parent_id: Option<Snowflake>,
    #[serde(default, deserialize_with = "maybe")]
    pub thread_metadata: Option<ThreadMetadata>,
    #[serde(default, deserialize_with = "maybe")]
    pub permissions: Option<Bits>,
    #[serde(default, deserialize_with = "maybe")]
    pub app_permissions: Option<Bits>,
}

#[derive(Deserialize)]
pub struct ThreadMetadata {
    #[serde(default)]
    pub locked: bool,
}

#[derive(Deserialize)]
pub struct Member {
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default, deserialize_with = "maybe")]
    pub nick: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    pub permissions: Option<Bits>,
}

#[derive(Deserialize)]
pub struct User {
    pub id: Snowflake,
    #[serde(default, deserialize_with = "maybe")]
    pub username: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    pub global_name: Option<String>,
}

/// Permissions, which Discord sends as a number in a string.
pub struct Bits(pub Permissions);

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(|bits| Self(Permissions(bits))).map_err(serde::de::Error::custom)
    }
}
