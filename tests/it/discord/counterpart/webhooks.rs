//! Webhooks and their JSON.
//!
//! <https://docs.discord.com/developers/resources/webhook>

use serde_json::{Value, json};

use super::{Id, Refusal, User, World};

/// How many a channel can have.
pub const PER_CHANNEL: usize = 15;

#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: Id,
    pub channel: Id,
    pub name: String,
    pub avatar: Option<String>,
    pub token: String,
    /// The application that created it. None if a person created it.
    pub application: Option<Id>,
    pub creator: Id,
}

impl Webhook {
    /// The webhook as the bot sees it. Requests with only its token do not see its creator.
    ///
    /// The token of another application's webhook is never shown.
    pub fn json(&self, world: &World, with_creator: bool) -> Value {
        let mut json = json!({
            "id": self.id,
            "type": 1,
            "guild_id": world.guild_of(self.channel).map(|guild| guild.id),
            "channel_id": self.channel,
            "name": self.name,
            "avatar": self.avatar,
            "application_id": self.application,
        });
        if self.application.is_none_or(|application| application == world.application.id) {
            json["token"] = json!(self.token);
        }
        if with_creator {
            json["user"] = world.users.get(&self.creator).map_or(Value::Null, User::json);
        }
        json
    }
}

/// Checks and normalises the name of a webhook.
///
/// <https://docs.discord.com/developers/resources/webhook#create-webhook>, <https://docs.discord.com/developers/resources/user#usernames-and-nicknames>
///
/// # Errors
///
/// The name is longer than 80 characters, empty after trimming, or contains a reserved word.
pub fn name(field: &str, name: &Value) -> Result<String, Refusal> {
    let name = name.as_str().ok_or_else(|| Refusal::missing(&[field]))?;
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    if !(1..=80).contains(&name.chars().count()) {
        return Err(Refusal::length(&[field], 1, 80));
    }
    let lower = name.to_lowercase();
    if let Some(word) = ["clyde", "discord"].into_iter().find(|word| lower.contains(word)) {
        let message = format!("Username cannot contain \"{word}\"");
        return Err(Refusal::field(&[field], "USERNAME_INVALID_CONTAINS", &message));
    }
    Ok(name)
}

/// Checks the URL of a picture.
///
/// # Errors
///
/// The scheme is not http or https, or the URL is too long.
pub fn avatar_url(url: &Value) -> Result<Option<String>, Refusal> {
    let Some(url) = url.as_str().filter(|url| !url.is_empty()) else { return Ok(None) };
    if !url.starts_with("https://") && !url.starts_with("http://") {
        let message = format!(
            "Scheme \"{}\" is not supported. Scheme must be one of ('http', 'https').",
            url.split(':').next().unwrap_or_default()
        );
        return Err(Refusal::field(&["avatar_url"], "URL_TYPE_INVALID_SCHEME", &message));
    }
    if url.len() > 2_048 {
        return Err(Refusal::field(&["avatar_url"], "BASE_TYPE_MAX_LENGTH", "Must be 2048 or fewer in length."));
    }
    Ok(Some(url.to_owned()))
}
