//! The requests that are made, each with what it is counted under.

use std::fmt;

use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::super::limits::{Account, Route};
use super::super::snowflake::Snowflake;
use super::super::webhooks::Webhook;

/// A request.
pub struct Request {
    pub(super) method: Method,
    /// Below the address of the API. A webhook's holds its token.
    pub(super) path: String,
    pub(super) route: Route,
    pub(super) body: Option<Value>,
    /// Whether the bot's token goes with it.
    pub(super) by_bot: bool,
}

impl Request {
    /// Something that is read: named with the names of ids in their places, and counted under this resource.
    pub fn get(name: &'static str, resource: impl fmt::Display, path: String) -> Self {
        Self::new(Method::GET, name, resource, path)
    }

    /// Which application the token is for.
    pub fn application() -> Self {
        Self::new(Method::GET, "GET /applications/@me", "", "/applications/@me".to_owned())
    }

    /// Where the gateway is, how many connections there should be, and how many may begin.
    pub fn gateway() -> Self {
        Self::new(Method::GET, "GET /gateway/bot", "", "/gateway/bot".to_owned())
    }

    /// The commands that the application has everywhere.
    pub fn commands(application: Snowflake) -> Self {
        Self::new(Method::GET, "GET /applications/{application}/commands", "", format!("/applications/{application}/commands"))
    }

    /// A command that is there everywhere, in place of the one of its name.
    pub fn put_command(application: Snowflake, command: Value) -> Self {
        let path = format!("/applications/{application}/commands");
        Self { body: Some(command), ..Self::new(Method::POST, "POST /applications/{application}/commands", "", path) }
    }

    /// The first answer to an interaction.
    pub fn answer(interaction: Snowflake, token: &SecretString, body: Value) -> Self {
        let path = format!("/interactions/{interaction}/{}/callback", token.expose_secret());
        Self::of_interaction(Method::POST, "POST /interactions/{interaction}/{token}/callback", interaction, path, body)
    }

    /// What an answer says at last.
    pub fn edit_answer(application: Snowflake, interaction: Snowflake, token: &SecretString, body: Value) -> Self {
        let path = format!("/webhooks/{application}/{}/messages/@original", token.expose_secret());
        let name = "PATCH /webhooks/{application}/{token}/messages/@original";
        Self::of_interaction(Method::PATCH, name, interaction, path, body)
    }

    /// What an answer is, or will be: a message with an id of its own.
    pub fn original_answer(application: Snowflake, interaction: Snowflake, token: &SecretString) -> Self {
        let path = format!("/webhooks/{application}/{}/messages/@original", token.expose_secret());
        let name = "GET /webhooks/{application}/{token}/messages/@original";
        Self { body: None, ..Self::of_interaction(Method::GET, name, interaction, path, Value::Null) }
    }

    // Each interaction counts for itself, and none for the bot as a whole (Discord's documentation, "Receiving and Responding",
    // "Endpoints"). Its token, a secret, stands in the path; its id is as good to count by.
    fn of_interaction(method: Method, name: &'static str, interaction: Snowflake, path: String, body: Value) -> Self {
        let route = Route { name, resource: interaction.to_string(), account: Account::None };
        Self { method, path, route, body: Some(body), by_bot: false }
    }

    /// A channel or thread.
    pub fn channel(channel: Snowflake) -> Self {
        Self::new(Method::GET, "GET /channels/{channel}", channel, format!("/channels/{channel}"))
    }

    /// The webhooks of a channel.
    pub fn webhooks(channel: Snowflake) -> Self {
        Self::new(Method::GET, "GET /channels/{channel}/webhooks", channel, format!("/channels/{channel}/webhooks"))
    }

    /// A new webhook for a channel.
    pub fn create_webhook(channel: Snowflake, name: &str) -> Self {
        let made = Self::new(Method::POST, "POST /channels/{channel}/webhooks", channel, format!("/channels/{channel}/webhooks"));
        Self { body: Some(json!({ "name": name })), ..made }
    }

    /// Posts through a webhook, into a thread of its channel if one is named. It is answered with the message.
    pub fn execute(webhook: &Webhook, thread: Option<Snowflake>, body: Value) -> Self {
        let thread = thread.map(|thread| format!("&thread_id={thread}")).unwrap_or_default();
        let path = format!("/webhooks/{}/{}?wait=true{thread}", webhook.id, webhook.token.expose_secret());
        let sent = Self::new(Method::POST, "POST /webhooks/{webhook}/{token}", webhook.id, path);
        Self { body: Some(body), ..sent.by_webhook() }
    }

    /// Takes back what a webhook posted outside of threads.
    pub fn delete_message(webhook: &Webhook, message: Snowflake) -> Self {
        let path = format!("/webhooks/{}/{}/messages/{message}", webhook.id, webhook.token.expose_secret());
        let name = "DELETE /webhooks/{webhook}/{token}/messages/{message}";
        Self::new(Method::DELETE, name, webhook.id, path).by_webhook()
    }

    /// A message that a webhook posted, with its content, which Discord may withhold from the bot's own token.
    pub fn webhook_message(webhook: &Webhook, thread: Option<Snowflake>, message: Snowflake) -> Self {
        let thread = thread.map(|thread| format!("?thread_id={thread}")).unwrap_or_default();
        let path = format!("/webhooks/{}/{}/messages/{message}{thread}", webhook.id, webhook.token.expose_secret());
        let name = "GET /webhooks/{webhook}/{token}/messages/{message}";
        Self::new(Method::GET, name, webhook.id, path).by_webhook()
    }

    /// The oldest hundred messages after this one.
    pub fn messages(channel: Snowflake, after: Snowflake) -> Self {
        let path = format!("/channels/{channel}/messages?after={after}&limit=100");
        Self::new(Method::GET, "GET /channels/{channel}/messages", channel, path)
    }

    /// The newest messages before this one: 1 to 100.
    pub fn messages_before(channel: Snowflake, before: Snowflake, limit: u32) -> Self {
        let path = format!("/channels/{channel}/messages?before={before}&limit={limit}");
        Self::new(Method::GET, "GET /channels/{channel}/messages", channel, path)
    }

    /// A guild: its name, its roles, its emojis.
    pub fn guild(guild: Snowflake) -> Self {
        Self::new(Method::GET, "GET /guilds/{guild}", guild, format!("/guilds/{guild}"))
    }

    /// The channels of a guild, without threads.
    pub fn guild_channels(guild: Snowflake) -> Self {
        Self::new(Method::GET, "GET /guilds/{guild}/channels", guild, format!("/guilds/{guild}/channels"))
    }

    /// One message. Unlike the list, it is refused without the permission to read the history.
    pub fn message(channel: Snowflake, message: Snowflake) -> Self {
        let path = format!("/channels/{channel}/messages/{message}");
        Self::new(Method::GET, "GET /channels/{channel}/messages/{message}", channel, path)
    }

    /// Posts as the bot itself.
    pub fn create_message(channel: Snowflake, body: Value) -> Self {
        let sent = Self::new(Method::POST, "POST /channels/{channel}/messages", channel, format!("/channels/{channel}/messages"));
        Self { body: Some(body), ..sent }
    }

    /// Shows that the bot is typing.
    pub fn typing(channel: Snowflake) -> Self {
        Self::new(Method::POST, "POST /channels/{channel}/typing", channel, format!("/channels/{channel}/typing"))
    }

    // Without the bot's token a request counts for the address that it comes from.
    fn by_webhook(self) -> Self {
        Self { by_bot: false, route: Route { account: Account::Address, ..self.route }, ..self }
    }

    fn new(method: Method, name: &'static str, resource: impl fmt::Display, path: String) -> Self {
        let route = Route { name, resource: resource.to_string(), account: Account::Bot };
        Self { method, path, route, body: None, by_bot: true }
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
    fn requests_with_a_webhooks_token_count_for_the_address() {
        let id = Snowflake::new(1).unwrap();
        let webhook = Webhook { id, token: "t".into() };

        for request in [
            Request::execute(&webhook, None, Value::Null),
            Request::delete_message(&webhook, id),
            Request::webhook_message(&webhook, None, id),
        ] {
            assert_eq!((request.by_bot, request.route.account), (false, Account::Address), "{request:?}");
        }
    }
}
