//! Messages: who wrote them, whom they mention, and how they look on the wire.
//!
//! <https://docs.discord.com/developers/resources/message>

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

use super::guilds::User;
use super::id::Id;
use super::moment::iso8601;
use super::world::World;

pub const DEFAULT: u8 = 0;
pub const REPLY: u8 = 19;
pub const CHAT_INPUT_COMMAND: u8 = 20;
pub const THREAD_STARTER: u8 = 21;

/// Only the one who used the command sees it.
pub const EPHEMERAL: u64 = 1 << 6;
/// The answer to an interaction is still being made.
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
    pub stickers: Vec<Value>,
    pub poll: Option<Value>,
    pub reference: Option<Reference>,
    /// What it forwards, as that was then; the reference says where it was.
    pub forwarded: Option<Value>,
    pub flags: u64,
    pub tts: bool,
    /// As it was sent: a text or a number. It is told in MESSAGE_CREATE alone.
    pub nonce: Option<Value>,
}

/// Who wrote a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Author {
    User(Id),
    Webhook {
        webhook: Id,
        username: String,
        avatar_url: Option<String>,
        /// The application that made the webhook.
        application: Option<Id>,
    },
}

/// The message that is replied to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    pub message: Id,
    pub channel: Id,
    pub guild: Option<Id>,
}

/// Who is told of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mentions {
    pub users: Vec<Id>,
    pub roles: Vec<Id>,
    pub everyone: bool,
}

/// What an application may read of messages.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Everything.
    All,
    /// What its bot wrote, what mentions it, and direct messages: it lacks MESSAGE_CONTENT. What its webhooks wrote is withheld, too, from
    /// all but their own tokens.
    ///
    /// <https://github.com/discord/discord-api-docs/issues/5411>
    Own,
}

/// Whom a text names, by its markup alone.
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
    pub fn is_ephemeral(&self) -> bool {
        self.flags & EPHEMERAL != 0
    }

    /// The application that sent it.
    pub fn sent_by(&self, world: &World) -> bool {
        match &self.author {
            Author::User(user) => *user == world.bot(),
            Author::Webhook { application, .. } => *application == Some(world.application.id),
        }
    }

    /// Whether the application may read it without MESSAGE_CONTENT. A reply to its bot does so by mentioning it; a reply to one of its webhooks
    /// mentions nobody.
    ///
    /// <https://docs.discord.com/developers/gateway/you-might-not-need-a-privileged-intent#message-content-intent>
    fn is_open(&self, world: &World) -> bool {
        let direct = world.channels.get(&self.channel).is_none_or(|channel| channel.guild.is_none());
        let by_bot = match &self.author {
            Author::User(user) => *user == world.bot(),
            // Answers to interactions.
            Author::Webhook { webhook, .. } => *webhook == world.application.id,
        };
        direct || by_bot || self.mentions.users.contains(&world.bot())
    }

    /// As it stands in an answer.
    pub fn json(&self, world: &World, content: Content) -> Value {
        let mut json = self.plain_json(world, content);
        if let Some(reference) = self.reference.as_ref().filter(|_| self.forwarded.is_none()) {
            let referenced = world.message(reference.channel, reference.message);
            json["referenced_message"] = referenced.map_or(Value::Null, |message| message.plain_json(world, content));
        }
        json
    }

    /// As it stands in an event: with the guild, and the members of those it names.
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

    /// What a message that forwards this one shows of it.
    ///
    /// <https://docs.discord.com/developers/resources/message#message-snapshot-object>
    pub fn snapshot_json(&self, world: &World) -> Value {
        let whole = self.plain_json(world, Content::All);
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
            fields.iter().map(|field| ((*field).to_owned(), whole[field].clone())).collect();
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
            "tts": self.tts,
            "mention_everyone": self.mentions.everyone,
            "mentions": self.mentions.users.iter().filter_map(user).collect::<Vec<_>>(),
            "mention_roles": self.mentions.roles,
            "attachments": if open { self.attachments.as_slice() } else { &[] },
            "embeds": if open { self.embeds.as_slice() } else { &[] },
            "components": [],
            "pinned": false,
            "flags": self.flags,
        });
        if !self.stickers.is_empty() {
            json["sticker_items"] = json!(self.stickers);
        }
        // Without MESSAGE_CONTENT it is left out.
        if let Some(poll) = self.poll.as_ref().filter(|_| open) {
            json["poll"] = poll.clone();
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
}

impl Author {
    /// A user, or what looks like one for a webhook.
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

/// What Discord calls a picture that it has fetched: 32 hexadecimal digits.
pub fn image_hash(of: &str) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, of).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}
