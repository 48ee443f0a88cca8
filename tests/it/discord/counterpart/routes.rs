//! All routes: their names, their parameters, and whether they need the bot's token.

use super::id::Id;
use super::refusal::Refusal;

/// A request's route with the parameters of its path.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    Gateway,
    GatewayBot,
    CurrentUser,
    User(Id),
    CurrentUserGuilds,
    LeaveGuild(Id),
    CreateDirect,
    CurrentApplication,
    Guild(Id),
    GuildChannels(Id),
    GuildRoles(Id),
    GuildMember(Id, Id),
    ActiveThreads(Id),
    GuildWebhooks(Id),
    Channel(Id),
    Messages(Id),
    Message(Id, Id),
    CreateMessage(Id),
    EditMessage(Id, Id),
    DeleteMessage(Id, Id),
    BulkDelete(Id),
    Typing(Id),
    ThreadFromMessage(Id, Id),
    StartThread(Id),
    JoinThread(Id),
    ArchivedThreads(Id),
    ChannelWebhooks(Id),
    CreateWebhook(Id),
    Webhook(Id),
    ModifyWebhook(Id),
    DeleteWebhook(Id),
    /// With the webhook's token in the path, so no authorization is needed.
    TokenWebhook(Id, String),
    DeleteTokenWebhook(Id, String),
    ExecuteWebhook(Id, String),
    WebhookMessage(Id, String, MessageOf),
    EditWebhookMessage(Id, String, MessageOf),
    DeleteWebhookMessage(Id, String, MessageOf),
    InteractionCallback(Id, String),
    Commands(Id, Option<Id>),
    CreateCommand(Id, Option<Id>),
    OverwriteCommands(Id, Option<Id>),
    DeleteCommand(Id, Option<Id>, Id),
}

/// A message of a webhook, or the first answer to an interaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MessageOf {
    Id(Id),
    Original,
}

impl Route {
    ///
    /// # Errors
    ///
    /// 404 for an unknown path, 405 for a path that has other methods, 400 for another version of the API.
    pub fn find(method: &str, path: &str) -> Result<Self, Refusal> {
        let path = path.strip_prefix("/api/").ok_or_else(Refusal::no_such_route)?;
        let (version, path) = path.split_once('/').ok_or_else(Refusal::no_such_route)?;
        if version != "v10" {
            return Err(Refusal::new(400, 50041, "Invalid API version provided"));
        }
        let parts: Vec<&str> = path.split('/').collect();
        let found = Self::of(method, &parts);
        let other = || ["GET", "POST", "PUT", "PATCH", "DELETE"].iter().any(|method| Self::of(method, &parts).is_some());
        found.ok_or_else(|| if other() { Refusal::method_not_allowed() } else { Refusal::no_such_route() })
    }

    fn of(method: &str, parts: &[&str]) -> Option<Self> {
        Some(match (method, parts) {
            ("GET", ["gateway"]) => Self::Gateway,
            ("GET", ["gateway", "bot"]) => Self::GatewayBot,
            ("GET", ["users", "@me"]) => Self::CurrentUser,
            ("GET", ["users", "@me", "guilds"]) => Self::CurrentUserGuilds,
            ("DELETE", ["users", "@me", "guilds", guild]) => Self::LeaveGuild(Id::parse(guild)?),
            ("POST", ["users", "@me", "channels"]) => Self::CreateDirect,
            ("GET", ["users", user]) => Self::User(Id::parse(user)?),
            ("GET", ["applications", "@me"]) => Self::CurrentApplication,
            ("GET", ["guilds", guild]) => Self::Guild(Id::parse(guild)?),
            ("GET", ["guilds", guild, "channels"]) => Self::GuildChannels(Id::parse(guild)?),
            ("GET", ["guilds", guild, "roles"]) => Self::GuildRoles(Id::parse(guild)?),
            ("GET", ["guilds", guild, "members", user]) => Self::GuildMember(Id::parse(guild)?, Id::parse(user)?),
            ("GET", ["guilds", guild, "threads", "active"]) => Self::ActiveThreads(Id::parse(guild)?),
            ("GET", ["guilds", guild, "webhooks"]) => Self::GuildWebhooks(Id::parse(guild)?),
            (_, ["channels", channel, rest @ ..]) => Self::of_channel(method, Id::parse(channel)?, rest)?,
            (_, ["webhooks", webhook, rest @ ..]) => Self::of_webhook(method, Id::parse(webhook)?, rest)?,
            ("POST", ["interactions", interaction, token, "callback"]) => {
                Self::InteractionCallback(Id::parse(interaction)?, (*token).to_owned())
            }
            (_, ["applications", application, "guilds", guild, "commands", rest @ ..]) => {
                Self::of_commands(method, Id::parse(application)?, Some(Id::parse(guild)?), rest)?
            }
            (_, ["applications", application, "commands", rest @ ..]) => {
                Self::of_commands(method, Id::parse(application)?, None, rest)?
            }
            _ => return None,
        })
    }

    fn of_channel(method: &str, channel: Id, rest: &[&str]) -> Option<Self> {
        Some(match (method, rest) {
            ("GET", []) => Self::Channel(channel),
            ("GET", ["messages"]) => Self::Messages(channel),
            ("POST", ["messages"]) => Self::CreateMessage(channel),
            ("POST", ["messages", "bulk-delete"]) => Self::BulkDelete(channel),
            ("GET", ["messages", message]) => Self::Message(channel, Id::parse(message)?),
            ("PATCH", ["messages", message]) => Self::EditMessage(channel, Id::parse(message)?),
            ("DELETE", ["messages", message]) => Self::DeleteMessage(channel, Id::parse(message)?),
            ("POST", ["messages", message, "threads"]) => Self::ThreadFromMessage(channel, Id::parse(message)?),
            ("POST", ["threads"]) => Self::StartThread(channel),
            ("GET", ["threads", "archived", "public"]) => Self::ArchivedThreads(channel),
            ("PUT", ["thread-members", "@me"]) => Self::JoinThread(channel),
            ("POST", ["typing"]) => Self::Typing(channel),
            ("GET", ["webhooks"]) => Self::ChannelWebhooks(channel),
            ("POST", ["webhooks"]) => Self::CreateWebhook(channel),
            _ => return None,
        })
    }

    fn of_webhook(method: &str, webhook: Id, rest: &[&str]) -> Option<Self> {
        Some(match (method, rest) {
            ("GET", []) => Self::Webhook(webhook),
            ("PATCH", []) => Self::ModifyWebhook(webhook),
            ("DELETE", []) => Self::DeleteWebhook(webhook),
            ("GET", [token]) => Self::TokenWebhook(webhook, (*token).to_owned()),
            ("DELETE", [token]) => Self::DeleteTokenWebhook(webhook, (*token).to_owned()),
            ("POST", [token]) => Self::ExecuteWebhook(webhook, (*token).to_owned()),
            (_, [token, "messages", message]) => {
                let message = match *message {
                    "@original" => MessageOf::Original,
                    message => MessageOf::Id(Id::parse(message)?),
                };
                let token = (*token).to_owned();
                match method {
                    "GET" => Self::WebhookMessage(webhook, token, message),
                    "PATCH" => Self::EditWebhookMessage(webhook, token, message),
                    "DELETE" => Self::DeleteWebhookMessage(webhook, token, message),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    fn of_commands(method: &str, application: Id, guild: Option<Id>, rest: &[&str]) -> Option<Self> {
        Some(match (method, rest) {
            ("GET", []) => Self::Commands(application, guild),
            ("POST", []) => Self::CreateCommand(application, guild),
            ("PUT", []) => Self::OverwriteCommands(application, guild),
            ("DELETE", [command]) => Self::DeleteCommand(application, guild, Id::parse(command)?),
            _ => return None,
        })
    }

    /// Its name in rules, faults and the journal. Routes with the same name share a bucket.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gateway | Self::GatewayBot => "gateway",
            Self::CurrentUser | Self::User(..) => "user",
            Self::CurrentUserGuilds => "guilds",
            Self::LeaveGuild(..) => "leave_guild",
            Self::CreateDirect => "create_direct",
            Self::CurrentApplication => "application",
            Self::Guild(..) => "guild",
            Self::GuildChannels(..) => "guild_channels",
            Self::GuildRoles(..) => "guild_roles",
            Self::GuildMember(..) => "guild_member",
            Self::ActiveThreads(..) | Self::ArchivedThreads(..) => "threads",
            Self::GuildWebhooks(..) | Self::ChannelWebhooks(..) => "webhooks",
            Self::Channel(..) => "channel",
            Self::Messages(..) => "messages",
            Self::Message(..) => "message",
            Self::CreateMessage(..) => "create_message",
            Self::EditMessage(..) => "edit_message",
            Self::DeleteMessage(..) => "delete_message",
            Self::BulkDelete(..) => "bulk_delete",
            Self::Typing(..) => "typing",
            Self::ThreadFromMessage(..) | Self::StartThread(..) => "start_thread",
            Self::JoinThread(..) => "join_thread",
            Self::CreateWebhook(..) => "create_webhook",
            Self::Webhook(..) | Self::TokenWebhook(..) => "webhook",
            Self::ModifyWebhook(..) => "modify_webhook",
            Self::DeleteWebhook(..) | Self::DeleteTokenWebhook(..) => "delete_webhook",
            Self::ExecuteWebhook(..) => "execute_webhook",
            Self::WebhookMessage(..) => "webhook_message",
            Self::EditWebhookMessage(..) => "edit_webhook_message",
            Self::DeleteWebhookMessage(..) => "delete_webhook_message",
            Self::InteractionCallback(..) => "interaction_callback",
            Self::Commands(..) => "commands",
            Self::CreateCommand(..) => "create_command",
            Self::OverwriteCommands(..) => "overwrite_commands",
            Self::DeleteCommand(..) => "delete_command",
        }
    }

    /// The channel in its path.
    pub fn channel(&self) -> Option<Id> {
        match self {
            Self::Channel(id)
            | Self::Messages(id)
            | Self::Message(id, _)
            | Self::CreateMessage(id)
            | Self::EditMessage(id, _)
            | Self::DeleteMessage(id, _)
            | Self::BulkDelete(id)
            | Self::Typing(id)
            | Self::ThreadFromMessage(id, _)
            | Self::StartThread(id)
            | Self::JoinThread(id)
            | Self::ArchivedThreads(id)
            | Self::ChannelWebhooks(id)
            | Self::CreateWebhook(id) => Some(*id),
            _ => None,
        }
    }

    /// The guild in its path, if that is a top-level resource.
    pub fn guild(&self) -> Option<Id> {
        match self {
            Self::Guild(id)
            | Self::GuildChannels(id)
            | Self::GuildRoles(id)
            | Self::GuildMember(id, _)
            | Self::ActiveThreads(id)
            | Self::GuildWebhooks(id) => Some(*id),
            _ => None,
        }
    }

    /// The webhook or application in its path, with its token.
    pub fn by_token(&self) -> Option<(Id, &str)> {
        match self {
            Self::TokenWebhook(id, token)
            | Self::DeleteTokenWebhook(id, token)
            | Self::ExecuteWebhook(id, token)
            | Self::WebhookMessage(id, token, _)
            | Self::EditWebhookMessage(id, token, _)
            | Self::DeleteWebhookMessage(id, token, _)
            | Self::InteractionCallback(id, token) => Some((*id, token)),
            _ => None,
        }
    }

    /// Whether it works without the bot's token.
    pub fn is_open(&self) -> bool {
        self.by_token().is_some() || *self == Self::Gateway
    }
}
