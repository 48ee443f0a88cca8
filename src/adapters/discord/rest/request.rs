//! The requests to Discord, each with the route under which rate limits count it.

use std::fmt;
use std::sync::Arc;

use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::super::limits::{Account, Route};
use super::super::snowflake::Snowflake;
use super::super::webhooks::Webhook;
use crate::ports::backend::stamp::Stamp;

/// A JSON file to attach to a message.
#[derive(Clone)]
pub struct File {
    pub name: &'static str,
    pub text: Arc<str>,
}

pub struct Request {
    pub(super) method: Method,
    /// Relative to the API's address. A webhook's path contains its token.
    pub(super) path: String,
    pub(super) route: Route,
    pub(super) body: Option<Value>,
    /// A file to send with the body.
    pub(super) file: Option<File>,
    /// Whether the request carries the bot's token.
    pub(super) with_bot_token: bool,
}

impl Request {
    /// A GET request. `name` is the method and the path with placeholders for ids; rate limits are counted under `resource`.
    pub fn get(name: &'static str, resource: impl fmt::Display, path: String) -> Self {
        Self::new(Method::GET, name, resource, path)
    }

    /// The application that the token belongs to.
    pub fn application() -> Self {
        Self::new(Method::GET, "GET /applications/@me", "", "/applications/@me".to_owned())
    }

    /// Sets the profile text of the bot.
    pub fn describe_application(description: &str) -> Self {
        let body = json!({ "description": description });
        Self::new(Method::PATCH, "PATCH /applications/@me", "", "/applications/@me".to_owned()).with_body(body)
    }

    /// The gateway's address, the recommended number of shards, and how many sessions may still be started.
    pub fn gateway() -> Self {
        Self::new(Method::GET, "GET /gateway/bot", "", "/gateway/bot".to_owned())
    }

    /// The application's global commands, with their translations.
    pub fn commands(application: Snowflake) -> Self {
        let path = format!("/applications/{application}/commands?with_localizations=true");
        Self::new(Method::GET, "GET /applications/{application}/commands", "", path)
    }

    /// Registers a global command, replacing the one with the same name.
    pub fn put_command(application: Snowflake, command: Value) -> Self {
        let path = format!("/applications/{application}/commands");
        Self::new(Method::POST, "POST /applications/{application}/commands", "", path).with_body(command)
    }

    /// The first answer to an interaction.
    pub fn answer(interaction: Snowflake, token: &SecretString, body: Value) -> Self {
        let path = format!("/interactions/{interaction}/{}/callback", token.expose_secret());
        Self::for_interaction(Method::POST, "POST /interactions/{interaction}/{token}/callback", interaction, path, body)
    }

    /// Replaces the first answer to an interaction, including its files.
    pub fn edit_answer(
        application: Snowflake,
        interaction: Snowflake,
        token: &SecretString,
        mut body: Value,
        file: Option<File>,
    ) -> Self {
        let path = format!("/webhooks/{application}/{}/messages/@original", token.expose_secret());
        let name = "PATCH /webhooks/{application}/{token}/messages/@original";
        if let Some(file) = &file {
            body["attachments"] = json!([{ "id": 0, "filename": file.name }]);
        }
        Self { file, ..Self::for_interaction(Method::PATCH, name, interaction, path, body) }
    }

    /// The message that shows the answer to an interaction, now or later.
    pub fn original_answer(application: Snowflake, interaction: Snowflake, token: &SecretString) -> Self {
        let path = format!("/webhooks/{application}/{}/messages/@original", token.expose_secret());
        let name = "GET /webhooks/{application}/{token}/messages/@original";
        Self { body: None, ..Self::for_interaction(Method::GET, name, interaction, path, Value::Null) }
    }

    // Each interaction has its own limit, and none counts towards the bot's global limit (Discord's documentation, "Receiving and
    // Responding", "Endpoints"). The path contains the secret token, so the route uses the interaction's id.
    fn for_interaction(method: Method, name: &'static str, interaction: Snowflake, path: String, body: Value) -> Self {
        let route = Route { name, resource: interaction.to_string(), account: Account::None };
        Self { method, path, route, body: Some(body), file: None, with_bot_token: false }
    }

    pub fn channel(channel: Snowflake) -> Self {
        Self::new(Method::GET, "GET /channels/{channel}", channel, format!("/channels/{channel}"))
    }

    pub fn webhooks(channel: Snowflake) -> Self {
        Self::new(Method::GET, "GET /channels/{channel}/webhooks", channel, format!("/channels/{channel}/webhooks"))
    }

    pub fn create_webhook(channel: Snowflake, name: &str) -> Self {
        let path = format!("/channels/{channel}/webhooks");
        Self::new(Method::POST, "POST /channels/{channel}/webhooks", channel, path).with_body(json!({ "name": name }))
    }

    /// Posts through a webhook, optionally in a thread of its channel. The response is the message.
    pub fn execute(webhook: &Webhook, thread: Option<Snowflake>, body: Value) -> Self {
        let thread = thread.map(|thread| format!("&thread_id={thread}")).unwrap_or_default();
        let path = format!("/webhooks/{}/{}?wait=true{thread}", webhook.id, webhook.token.expose_secret());
        Self::new(Method::POST, "POST /webhooks/{webhook}/{token}", webhook.id, path).with_webhook_token().with_body(body)
    }

    /// Edits a message that was posted by a webhook. Deletes it if `edited` is `None`.
    pub fn change_webhook_message(
        webhook: &Webhook,
        thread: Option<Snowflake>,
        message: Snowflake,
        edited: Option<Value>,
    ) -> Self {
        let thread = thread.map(|thread| format!("?thread_id={thread}")).unwrap_or_default();
        let path = format!("/webhooks/{}/{}/messages/{message}{thread}", webhook.id, webhook.token.expose_secret());
        let (method, name) = match &edited {
            Some(_) => (Method::PATCH, "PATCH /webhooks/{webhook}/{token}/messages/{message}"),
            None => (Method::DELETE, "DELETE /webhooks/{webhook}/{token}/messages/{message}"),
        };
        Self { body: edited, ..Self::new(method, name, webhook.id, path).with_webhook_token() }
    }

    /// Edits a message that was posted by the bot. Deletes it if `edited` is `None`.
    pub fn change_message(channel: Snowflake, message: Snowflake, edited: Option<Value>) -> Self {
        let path = format!("/channels/{channel}/messages/{message}");
        let (method, name) = match &edited {
            Some(_) => (Method::PATCH, "PATCH /channels/{channel}/messages/{message}"),
            None => (Method::DELETE, "DELETE /channels/{channel}/messages/{message}"),
        };
        Self { body: edited, ..Self::new(method, name, channel, path) }
    }

    /// A message posted by a webhook, with its content. Discord may withhold the content from the bot's token.
    pub fn webhook_message(webhook: &Webhook, thread: Option<Snowflake>, message: Snowflake) -> Self {
        let thread = thread.map(|thread| format!("?thread_id={thread}")).unwrap_or_default();
        let path = format!("/webhooks/{}/{}/messages/{message}{thread}", webhook.id, webhook.token.expose_secret());
        let name = "GET /webhooks/{webhook}/{token}/messages/{message}";
        Self::new(Method::GET, name, webhook.id, path).with_webhook_token()
    }

    /// The oldest messages after `after`, up to 100.
    pub fn messages(channel: Snowflake, after: Snowflake) -> Self {
        let path = format!("/channels/{channel}/messages?after={after}&limit=100");
        Self::new(Method::GET, "GET /channels/{channel}/messages", channel, path)
    }

    /// The newest messages before `before`. `limit` is 1 to 100.
    pub fn messages_before(channel: Snowflake, before: Snowflake, limit: u32) -> Self {
        let path = format!("/channels/{channel}/messages?before={before}&limit={limit}");
        Self::new(Method::GET, "GET /channels/{channel}/messages", channel, path)
    }

    /// A guild with its name, roles and emojis.
    pub fn guild(guild: Snowflake) -> Self {
        Self::new(Method::GET, "GET /guilds/{guild}", guild, format!("/guilds/{guild}"))
    }

    /// The voice state of a user.
    pub fn voice_state(guild: Snowflake, user: Snowflake) -> Self {
        let path = format!("/guilds/{guild}/voice-states/{user}");
        Self::new(Method::GET, "GET /guilds/{guild}/voice-states/{user}", guild, path)
    }

    /// A member of a guild, with its roles.
    pub fn member(guild: Snowflake, user: Snowflake) -> Self {
        Self::get("GET /guilds/{guild}/members/{user}", guild, format!("/guilds/{guild}/members/{user}"))
    }

    /// Asks to speak on a stage where the bot is in the audience.
    pub fn speak_on_stage(guild: Snowflake, channel: Snowflake, at: &Stamp) -> Self {
        let path = format!("/guilds/{guild}/voice-states/@me");
        let body = json!({ "channel_id": channel, "request_to_speak_timestamp": at });
        Self::new(Method::PATCH, "PATCH /guilds/{guild}/voice-states/@me", guild, path).with_body(body)
    }

    /// The channels of a guild, without threads.
    pub fn guild_channels(guild: Snowflake) -> Self {
        Self::new(Method::GET, "GET /guilds/{guild}/channels", guild, format!("/guilds/{guild}/channels"))
    }

    /// A single message. Unlike the list, Discord refuses this request if the bot may not read the history.
    pub fn message(channel: Snowflake, message: Snowflake) -> Self {
        let path = format!("/channels/{channel}/messages/{message}");
        Self::new(Method::GET, "GET /channels/{channel}/messages/{message}", channel, path)
    }

    pub fn create_message(channel: Snowflake, body: Value) -> Self {
        let path = format!("/channels/{channel}/messages");
        Self::new(Method::POST, "POST /channels/{channel}/messages", channel, path).with_body(body)
    }

    /// Adds a reaction of the bot. `emoji` is percent-encoded.
    pub fn react(channel: Snowflake, message: Snowflake, emoji: &str) -> Self {
        let path = format!("/channels/{channel}/messages/{message}/reactions/{emoji}/@me");
        Self::new(Method::PUT, "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me", channel, path)
    }

    pub fn typing(channel: Snowflake) -> Self {
        Self::new(Method::POST, "POST /channels/{channel}/typing", channel, format!("/channels/{channel}/typing"))
    }

    /// The media type and the form for a body with a file (Discord's documentation, "API Reference", "Uploading Files").
    pub(super) fn form(body: &Value, file: &File) -> (&'static str, String) {
        let File { name, text } = file;
        // Both parts are JSON, so none of their lines can begin with the boundary.
        let form = format!(
            "--tertulia-file\r\ncontent-disposition: form-data; name=\"payload_json\"\r\ncontent-type: application/json\r\n\r\n{body}\r\n\
             --tertulia-file\r\ncontent-disposition: form-data; name=\"files[0]\"; filename=\"{name}\"\r\ncontent-type: application/json\r\n\r\n\
             {text}\r\n--tertulia-file--\r\n"
        );
        ("multipart/form-data; boundary=tertulia-file", form)
    }

    fn with_body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    // Requests without the bot's token are counted for the sender's IP address.
    fn with_webhook_token(self) -> Self {
        Self { with_bot_token: false, route: Route { account: Account::Address, ..self.route }, ..self }
    }

    fn new(method: Method, name: &'static str, resource: impl fmt::Display, path: String) -> Self {
        let route = Route { name, resource: resource.to_string(), account: Account::Bot };
        Self { method, path, route, body: None, file: None, with_bot_token: true }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(&self.route.name).field(&self.route.resource).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_a_webhook_token_count_against_the_address() {
        let id = Snowflake::new(1).unwrap();
        let webhook = Webhook { id, token: "t".into() };

        for request in [
            Request::execute(&webhook, None, Value::Null),
            Request::change_webhook_message(&webhook, None, id, None),
            Request::webhook_message(&webhook, None, id),
        ] {
            assert_eq!((request.with_bot_token, request.route.account), (false, Account::Address), "{request:?}");
        }
    }
}
