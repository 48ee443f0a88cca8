//! Messages: their authors, their mentions, and their JSON.
//!
//! <https://docs.discord.com/developers/resources/message>

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

use super::{Id, User, World, iso8601};

pub const DEFAULT: u8 = 0;
pub const REPLY: u8 = 19;
pub const CHAT_INPUT_COMMAND: u8 = 20;

/// The message is visible only to the person who used the command.
pub const EPHEMERAL: u64 = 1 << 6;
/// The message is a deferred answer to an interaction that is not there yet.
pub const LOADING: u64 = 1 << 7;

#[derive(Clone, Debug)]
pub struct Message {
    pub id: Id,
    pub channel: Id,
    pub author: Author,
    pub kind: u8,
    pub content: String,
    pub edited_ms: Option<u64>,
    pub mentions: Mentions,
    pub attachments: Vec<Value>,
    pub embeds: Vec<Value>,
    /// Its rows of buttons and menus.
    pub components: Vec<Value>,
    pub stickers: Vec<Value>,
    pub poll: Option<Value>,
    pub reference: Option<Reference>,
    /// A snapshot of the message that it forwards. The reference names the original.
    pub forwarded: Option<Value>,
    pub flags: u64,
    /// Who reacted with which emoji.
    pub reactions: BTreeSet<(Id, String)>,
    /// The metadata of the interaction that it answers.
    pub interaction: Option<Value>,
    /// As it was sent: a text or a number. Only MESSAGE_CREATE contains it.
    pub nonce: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Author {
    User(Id),
    Webhook {
        webhook: Id,
        username: String,
        avatar_url: Option<String>,
        /// The application that created the webhook.
        application: Option<Id>,
    },
}

/// The message that another one replies to, refers to or forwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    pub message: Id,
    pub channel: Id,
    pub guild: Option<Id>,
}

/// Whom a message notifies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mentions {
    pub users: Vec<Id>,
    pub roles: Vec<Id>,
    pub everyone: bool,
}

/// Which content of messages an application may read.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Everything.
    All,
    /// Without MESSAGE_CONTENT: only messages by its bot, messages that mention the bot, and direct messages. The text of its own webhooks is
    /// withheld as well, except from requests with their tokens.
    ///
    /// <https://github.com/discord/discord-api-docs/issues/5411>
    Own,
}

/// The mentions in the markup of a text.
///
/// <https://docs.discord.com/developers/reference#message-formatting>
pub fn named(text: &str) -> Mentions {
    let mut named = Mentions { everyone: text.contains("@everyone") || text.contains("@here"), ..Mentions::default() };
    for piece in text.split("<@").skip(1) {
        let Some((inside, _)) = piece.split_once('>') else { continue };
        let (to, digits) = match inside.strip_prefix('&') {
            Some(role) => (&mut named.roles, role),
            None => (&mut named.users, inside.strip_prefix('!').unwrap_or(inside)),
        };
        if let Some(id) = Id::parse(digits).filter(|id| !to.contains(id)) {
            to.push(id);
        }
    }
    named
}

impl Message {
    /// A message that is about to be created.
    pub fn new(channel: Id, author: Author, content: &str) -> Self {
        Self {
            id: Id(0),
            channel,
            author,
            kind: DEFAULT,
            content: content.to_owned(),
            edited_ms: None,
            mentions: Mentions::default(),
            attachments: Vec::new(),
            embeds: Vec::new(),
            components: Vec::new(),
            stickers: Vec::new(),
            poll: None,
            reference: None,
            forwarded: None,
            flags: 0,
            reactions: BTreeSet::new(),
            interaction: None,
            nonce: None,
        }
    }

    /// Makes it a reply to a message of the same channel.
    pub fn reply_to(&mut self, message: Id, guild: Option<Id>) {
        self.kind = REPLY;
        self.reference = Some(Reference { message, channel: self.channel, guild });
    }

    pub fn is_ephemeral(&self) -> bool {
        self.flags & EPHEMERAL != 0
    }

    /// Whether the application sent it, as its bot or by its webhooks.
    pub fn sent_by(&self, world: &World) -> bool {
        match &self.author {
            Author::User(user) => *user == world.bot(),
            Author::Webhook { application, .. } => *application == Some(world.application.id),
        }
    }

    /// Whether the application may read it without MESSAGE_CONTENT. A reply to its bot is readable if it mentions the bot. A reply to one of its
    /// webhooks mentions nobody.
    ///
    /// <https://docs.discord.com/developers/gateway/you-might-not-need-a-privileged-intent#message-content-intent>
    fn is_open(&self, world: &World) -> bool {
        let direct = world.channels.get(&self.channel).is_none_or(|channel| channel.guild.is_none());
        let by_bot = match &self.author {
            Author::User(user) => *user == world.bot(),
            // Answers to interactions are sent by the application's own webhook.
            Author::Webhook { webhook, .. } => *webhook == world.application.id,
        };
        direct || by_bot || self.mentions.users.contains(&world.bot())
    }

    /// The message in a REST response.
    pub fn json(&self, world: &World, content: Content) -> Value {
        let mut json = self.plain_json(world, content);
        if let Some(reference) = self.reference.as_ref().filter(|_| self.forwarded.is_none()) {
            let referenced = world.message(reference.channel, reference.message);
            json["referenced_message"] = referenced.map_or(Value::Null, |message| message.plain_json(world, content));
        }
        json
    }

    /// The message in an event: with the guild, and with the members that it mentions.
    pub fn event_json(&self, world: &World, content: Content) -> Value {
        let mut json = self.json(world, content);
        let guild = world.guild_of(self.channel);
        let member = |user: &Id| guild.and_then(|guild| guild.members.get(user)).map(super::guilds::Member::partial_json);
        if let Some(guild) = guild {
            json["guild_id"] = json!(guild.id);
        }
        if let Author::User(author) = &self.author
            && let Some(member) = member(author)
        {
            json["member"] = member;
        }
        for (user, mention) in self.mentions.users.iter().zip(json["mentions"].as_array_mut().into_iter().flatten()) {
            if let Some(member) = member(user) {
                mention["member"] = member;
            }
        }
        json
    }

    /// The snapshot of this message that a forwarding message contains.
    ///
    /// <https://docs.discord.com/developers/resources/message#message-snapshot-object>
    pub fn snapshot_json(&self, world: &World) -> Value {
        let full = self.plain_json(world, Content::All);
        let fields = [
            "type",
            "content",
            "embeds",
            "attachments",
            "timestamp",
            "edited_timestamp",
            "flags",
            "mentions",
            "mention_roles",
            "components",
        ];
        let mut snapshot: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), full[field].clone())).collect();
        if !self.stickers.is_empty() {
            snapshot.insert("sticker_items".to_owned(), json!(self.stickers));
        }
        Value::Object(snapshot)
    }

    fn plain_json(&self, world: &World, content: Content) -> Value {
        let open = matches!(content, Content::All) || self.is_open(world);
        let user = |id: &Id| world.users.get(id).map(User::json);
        let mut json = json!({
            "id": self.id,
            "channel_id": self.channel,
            "type": self.kind,
            "author": self.author.json(world),
            "content": if open { self.content.as_str() } else { "" },
            "timestamp": iso8601(self.id.made_at_ms()),
            "edited_timestamp": self.edited_ms.map(iso8601),
            "tts": false,
            "mention_everyone": self.mentions.everyone,
            "mentions": self.mentions.users.iter().filter_map(user).collect::<Vec<_>>(),
            "mention_roles": self.mentions.roles,
            "attachments": if open { self.attachments.as_slice() } else { &[] },
            "embeds": if open { self.embeds.as_slice() } else { &[] },
            "components": self.components,
            "pinned": false,
            "flags": self.flags,
        });
        if !self.stickers.is_empty() {
            json["sticker_items"] = json!(self.stickers);
        }
        // Without MESSAGE_CONTENT, a poll is omitted.
        if let Some(poll) = self.poll.as_ref().filter(|_| open) {
            json["poll"] = poll.clone();
        }
        if !self.reactions.is_empty() {
            json["reactions"] = self.reactions_json(world.bot());
        }
        if let Some(interaction) = &self.interaction {
            json["interaction_metadata"] = interaction.clone();
        }
        if let Author::Webhook { webhook, application, .. } = &self.author {
            json["webhook_id"] = json!(webhook);
            if let Some(application) = application {
                json["application_id"] = json!(application);
            }
        }
        if let Some(reference) = &self.reference {
            let kind = i32::from(self.forwarded.is_some());
            json["message_reference"] = json!({ "type": kind, "message_id": reference.message, "channel_id": reference.channel });
            if let Some(guild) = reference.guild {
                json["message_reference"]["guild_id"] = json!(guild);
            }
        }
        if let Some(forwarded) = &self.forwarded {
            let mut snapshot = forwarded.clone();
            if !open {
                snapshot["content"] = json!("");
                snapshot["embeds"] = json!([]);
                snapshot["attachments"] = json!([]);
            }
            json["message_snapshots"] = json!([{ "message": snapshot }]);
        }
        if let Some(thread) = world.channels.get(&self.id).filter(|channel| channel.kind.is_thread()) {
            json["thread"] = thread.json();
        }
        json
    }

    /// <https://docs.discord.com/developers/resources/message#reaction-object>
    fn reactions_json(&self, bot: Id) -> Value {
        let emojis: BTreeSet<&String> = self.reactions.iter().map(|(_, emoji)| emoji).collect();
        let reaction = |emoji: &String| {
            let count = self.reactions.iter().filter(|(_, other)| other == emoji).count();
            json!({
                "count": count,
                "count_details": { "burst": 0, "normal": count },
                "me": self.reactions.contains(&(bot, emoji.clone())),
                "me_burst": false,
                "emoji": { "id": null, "name": emoji },
                "burst_colors": [],
            })
        };
        emojis.into_iter().map(reaction).collect()
    }
}

impl Author {
    /// The user, or the pseudo-user that Discord shows for a webhook.
    fn json(&self, world: &World) -> Value {
        match self {
            Self::User(id) => world.users.get(id).map_or(Value::Null, User::json),
            Self::Webhook { webhook, username, avatar_url, .. } => json!({
                "id": webhook,
                "username": username,
                "discriminator": "0000",
                "global_name": null,
                "avatar": avatar_url.as_deref().map(image_hash),
                "bot": true,
                "public_flags": 0,
                "flags": 0,
            }),
        }
    }
}

/// A stand-in for Discord's hash of a picture: 32 hexadecimal digits.
pub fn image_hash(source: &str) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, source).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}
