//! Messages and typing over REST.
//!
//! <https://docs.discord.com/developers/resources/message>

use serde_json::{Value, json};

use super::super::{Author, Channel, Draft, Id, Kind, Message, Permissions, Refusal, Sender, State, Unknown, World};
use super::{Call, Reply, done, ok};

/// Flags that a bot can set: suppress embeds, suppress notifications.
const FLAGS: u64 = 1 << 2 | 1 << 12;

impl State {
    pub fn messages(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        let target_channel = self.world.permitted(channel, Permissions::empty())?;
        if !target_channel.kind.takes_messages() {
            return Err(Refusal::new(400, 50008, "Cannot send messages in a non-text channel"));
        }
        let limit = match call.query.get("limit") {
            None => 50,
            Some(limit) => limit
                .parse()
                .ok()
                .filter(|limit| (1..=100).contains(limit))
                .ok_or_else(|| Refusal::field(&["limit"], "NUMBER_TYPE_MAX", "int value should be between 1 and 100."))?,
        };
        let wrong = || Refusal::field(&["message_id"], "NUMBER_TYPE_COERCE", "Value is not snowflake.");
        let at = |name: &str| call.query.get(name).map(|id| id.parse().map(Id).map_err(|_| wrong())).transpose();
        let (before, after) = (at("before")?, at("after")?);
        if before.is_some() && after.is_some() {
            return Err(Refusal::field(&["_schema"], "MUTUALLY_EXCLUSIVE", "only one of before and after may be passed"));
        }
        if !self.world.permissions(target_channel, self.world.bot()).contains(Permissions::READ_MESSAGE_HISTORY) {
            return ok(json!([]));
        }
        let all = self.world.messages(channel);
        let mut found: Vec<&Message> = if let Some(after) = after {
            all.filter(|message| message.id > after).take(limit).collect()
        } else {
            all.rev().filter(|message| before.is_none_or(|before| message.id < before)).take(limit).collect()
        };
        found.sort_by_key(|message| std::cmp::Reverse(message.id));
        ok(found.iter().map(|message| message.json(&self.world, self.world.rest_content())).collect())
    }

    pub fn message(&mut self, call: &Call) -> Reply {
        let (channel, message) = (call.id("channel"), call.id("message"));
        self.world.permitted(channel, Permissions::READ_MESSAGE_HISTORY)?;
        ok(find_message(&self.world, channel, message)?.json(&self.world, self.world.rest_content()))
    }

    /// An author edits its own messages alone.
    pub fn edit_message(&mut self, call: &Call) -> Reply {
        let (channel, message) = (call.id("channel"), call.id("message"));
        if find_message(&self.world, channel, message)?.author != Author::User(self.world.bot()) {
            return Err(Refusal::new(403, 50005, "Cannot edit a message authored by another user"));
        }
        self.edit_by(call, Sender::Bot, channel, message)?;
        self.message(call)
    }

    pub fn edit_by(&mut self, call: &Call, sender: Sender, channel: Id, message: Id) -> Result<(), Refusal> {
        let draft = Draft::read(&call.body, FLAGS)?;
        let mentions = draft.mentions(&self.world, self.world.guild_of(channel), sender);
        self.edit(channel, message, |edited| (edited.content, edited.mentions) = (draft.content, mentions));
        Ok(())
    }

    /// Those of others need the permission to manage messages.
    pub fn delete_message(&mut self, call: &Call) -> Reply {
        let (channel, message) = (call.id("channel"), call.id("message"));
        if find_message(&self.world, channel, message)?.author != Author::User(self.world.bot()) {
            self.world.permitted(channel, Permissions::MANAGE_MESSAGES)?;
        }
        self.delete(channel, &[message], false);
        done()
    }

    pub fn create_message(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        self.check_sendable(channel)?;
        let draft = Draft::read(&call.body, FLAGS)?;
        let nonce = nonce(&call.body["nonce"])?;
        if call.body["enforce_nonce"] == json!(true)
            && let Some(earlier) = nonce.as_ref().and_then(|nonce| self.recent_post(nonce))
        {
            return ok(earlier);
        }
        if draft.poll.is_some() {
            self.world.permitted(channel, Permissions::SEND_POLLS)?;
        }
        let mentions = draft.mentions(&self.world, self.world.guild_of(channel), Sender::Bot);
        let new = Message::new(channel, Author::User(self.world.bot()), &draft.content);
        let (components, poll) = (draft.components, draft.poll);
        let id = self.say(Message { mentions, components, poll, flags: draft.flags, nonce: nonce.clone(), ..new });
        let mut json = find_message(&self.world, channel, id)?.json(&self.world, self.world.rest_content());
        if let Some(nonce) = nonce {
            json["nonce"] = nonce;
        }
        ok(json)
    }

    /// Checks that the bot can send messages in a channel.
    fn check_sendable(&self, channel: Id) -> Result<(), Refusal> {
        let target_channel: &Channel = self.world.channels.get(&channel).ok_or_else(|| Refusal::unknown(Unknown::Channel))?;
        let needed =
            if target_channel.kind.is_thread() { Permissions::SEND_MESSAGES_IN_THREADS } else { Permissions::SEND_MESSAGES };
        self.world.permitted(channel, needed)?;
        let manages = self.world.permissions(target_channel, self.world.bot()).contains(Permissions::MANAGE_THREADS);
        if target_channel.kind == Kind::Forum {
            return Err(Refusal::new(400, 40058, "Cannot send messages in a forum channel"));
        }
        if !target_channel.kind.takes_messages() {
            return Err(Refusal::new(400, 50008, "Cannot send messages in a non-text channel"));
        }
        if target_channel.thread.as_ref().is_some_and(|thread| thread.locked) && !manages {
            return Err(Refusal::new(400, 160_005, "Thread is locked"));
        }
        if let Some(recipient) = target_channel.recipient {
            self.check_recipient(recipient)?;
        }
        Ok(())
    }

    /// Checks that a person accepts direct messages from the bot.
    fn check_recipient(&self, person: Id) -> Result<(), Refusal> {
        if self.world.closed_directs.contains(&person) {
            return Err(Refusal::new(403, 50007, "Cannot send messages to this user"));
        }
        if !self.world.joined().any(|guild| guild.members.contains_key(&person)) {
            return Err(Refusal::new(403, 50278, "Cannot send messages to this user due to having no mutual guilds"));
        }
        Ok(())
    }

    /// A message of the bot with this nonce from the past few minutes, in any channel.
    fn recent_post(&self, nonce: &Value) -> Option<Value> {
        let is_recent = |post: &&super::super::journal::Post| post.at.elapsed() < self.rules.nonce_window;
        let mut posts = self.journal.posts.iter().rev().take_while(is_recent);
        let post = posts.find(|post| post.nonce.as_ref() == Some(nonce) && matches!(post.author, Author::User(_)))?;
        let mut json = self.world.message(post.channel, post.message)?.json(&self.world, self.world.rest_content());
        json["nonce"] = nonce.clone();
        Some(json)
    }

    /// Only the first reaction with an emoji needs the permission to add reactions.
    ///
    /// <https://docs.discord.com/developers/resources/message#create-reaction>
    pub fn react(&mut self, call: &Call) -> Reply {
        let (channel, message) = (call.id("channel"), call.id("message"));
        let emoji = call.found.emoji.clone().unwrap_or_default();
        let reacted = find_message(&self.world, channel, message)?;
        if emoji.is_ascii() {
            return Err(Refusal::new(400, 10014, "Unknown Emoji"));
        }
        let is_first = reacted.reactions.iter().all(|(_, other)| *other != emoji);
        let needed = if is_first { Permissions::ADD_REACTIONS } else { Permissions::empty() };
        self.world.permitted(channel, needed | Permissions::READ_MESSAGE_HISTORY)?;
        self.change_reaction(channel, message, self.world.bot(), &emoji, true);
        done()
    }

    pub fn typing(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        self.check_sendable(channel)?;
        self.journal.typing.push((tokio::time::Instant::now(), channel));
        self.type_in(channel, self.world.bot());
        done()
    }
}

fn nonce(nonce: &Value) -> Result<Option<Value>, Refusal> {
    match nonce {
        Value::Null => Ok(None),
        Value::Number(_) => Ok(Some(nonce.clone())),
        Value::String(text) if text.chars().count() <= 25 => Ok(Some(nonce.clone())),
        _ => Err(Refusal::field(&["nonce"], "NONCE_TYPE_TOO_LONG", "Nonce must be 25 or fewer in length.")),
    }
}

pub(super) fn find_message(world: &World, channel: Id, message: Id) -> Result<&Message, Refusal> {
    world.message(channel, message).ok_or_else(|| Refusal::unknown(Unknown::Message))
}
