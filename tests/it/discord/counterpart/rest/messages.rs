//! Messages, typing and direct messages over REST.
//!
//! <https://docs.discord.com/developers/resources/message>

use serde_json::{Value, json};

use super::super::messages::{DEFAULT, REPLY};
use super::super::{
    Author, Channel, Content, Draft, Id, Kind, Message, Permissions, Refusal, Sender, State, Unknown, World, now_ms,
};
use super::{Call, Reply, done, ok};

/// Flags that a bot can set: suppress embeds, suppress notifications.
const FLAGS: u64 = 1 << 2 | 1 << 12;
/// Messages older than this cannot be deleted in bulk.
const TWO_WEEKS_MS: u64 = 14 * 24 * 3_600 * 1_000;

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
        let (around, before, after) = (at("around")?, at("before")?, at("after")?);
        if [around, before, after].iter().flatten().count() > 1 {
            return Err(Refusal::field(&["_schema"], "MUTUALLY_EXCLUSIVE", "only one of before, after and around may be passed"));
        }
        if !self.world.permissions(target_channel, self.world.bot()).contains(Permissions::READ_MESSAGE_HISTORY) {
            return ok(json!([]));
        }
        let all = self.world.messages(channel);
        let mut found: Vec<&Message> = if let Some(after) = after {
            all.filter(|message| message.id > after).take(limit).collect()
        } else if let Some(around) = around {
            let before = self.world.messages(channel).rev().filter(|message| message.id <= around).take(limit / 2 + 1);
            before.chain(all.filter(|message| message.id > around).take(limit - limit / 2 - 1)).collect()
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

    pub fn create_message(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        let target_channel = self.sendable(channel)?.clone();
        let draft = Draft::read(&call.body, FLAGS)?;
        let nonce = nonce(&call.body["nonce"])?;
        if draft.tts && !self.world.permissions(&target_channel, self.world.bot()).contains(Permissions::SEND_TTS_MESSAGES) {
            return Err(Refusal::missing_permissions());
        }
        if call.body["enforce_nonce"] == json!(true)
            && let Some(earlier) = nonce.as_ref().and_then(|nonce| self.recent_post(nonce))
        {
            self.journal.repeated_nonces += 1;
            return ok(earlier);
        }
        let reply_to = self.replied(&target_channel, &call.body["message_reference"])?;
        let replied = reply_to.and_then(|id| match &self.world.message(channel, id)?.author {
            Author::User(author) => Some(*author),
            Author::Webhook { .. } => None,
        });
        let mentions = draft.mentions(&self.world, self.world.guild_of(channel), Sender::Bot, replied);
        let mut message = Message {
            mentions,
            embeds: draft.embeds,
            flags: draft.flags,
            tts: draft.tts,
            nonce: nonce.clone(),
            ..Message::new(channel, Author::User(self.world.bot()), &draft.content)
        };
        if let Some(reply_to) = reply_to {
            message.reply_to(reply_to, target_channel.guild);
        }
        let id = self.say(message);
        let mut json = find_message(&self.world, channel, id)?.json(&self.world, self.world.rest_content());
        if let Some(nonce) = nonce {
            json["nonce"] = nonce;
        }
        ok(json)
    }

    /// A channel in which the bot can send messages.
    fn sendable(&self, channel: Id) -> Result<&Channel, Refusal> {
        let target_channel = self.world.channels.get(&channel).ok_or_else(|| Refusal::unknown(Unknown::Channel))?;
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
        Ok(target_channel)
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

    /// The message that is replied to.
    fn replied(&self, target_channel: &Channel, reference: &Value) -> Result<Option<Id>, Refusal> {
        if reference.is_null() {
            return Ok(None);
        }
        let wrong = |code, message| Refusal::field(&["message_reference"], code, message);
        let id = Id::read(&reference["message_id"]).ok_or_else(|| Refusal::missing(&["message_reference", "message_id"]))?;
        if reference["type"].as_u64().unwrap_or_default() != 0 {
            return Err(Refusal::new(501, 0, "the counterpart forwards no messages"));
        }
        if Id::read(&reference["channel_id"]).is_some_and(|channel| channel != target_channel.id) {
            let message = "Cannot reply to a message in a different channel";
            return Err(wrong("REPLIES_CANNOT_REPLY_TO_MESSAGE_IN_DIFFERENT_CHANNEL", message));
        }
        if !self.world.permissions(target_channel, self.world.bot()).contains(Permissions::READ_MESSAGE_HISTORY) {
            return Err(Refusal::new(400, 160_002, "Cannot reply without permission to read message history"));
        }
        match self.world.message(target_channel.id, id) {
            None if reference["fail_if_not_exists"] == json!(false) => Ok(None),
            None => Err(wrong("REPLIES_UNKNOWN_MESSAGE", "Unknown message")),
            Some(message) if message.kind != DEFAULT && message.kind != REPLY && message.kind != 20 => {
                Err(wrong("REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message"))
            }
            Some(_) => Ok(Some(id)),
        }
    }

    pub fn edit_message(&mut self, call: &Call) -> Reply {
        let (channel, message) = (call.id("channel"), call.id("message"));
        let target_channel = self.world.permitted(channel, Permissions::empty())?;
        let edited_message = find_message(&self.world, channel, message)?;
        if edited_message.author != Author::User(self.world.bot()) {
            return Err(Refusal::new(403, 50005, "Cannot edit a message authored by another user"));
        }
        if target_channel.thread.as_ref().is_some_and(|thread| thread.archived) {
            return Err(Refusal::new(400, 50083, "Thread is archived"));
        }
        self.rewrite(channel, message, call, Sender::Bot)
    }

    /// Edits a message, and answers with the result.
    pub(super) fn rewrite(&mut self, channel: Id, message: Id, call: &Call, sender: Sender) -> Reply {
        let draft = Draft::read_edit(&call.body, 1 << 2)?;
        let mentions = draft.mentions(&self.world, self.world.guild_of(channel), sender, None);
        let (has_content, has_embeds) = (call.body.get("content").is_some(), call.body.get("embeds").is_some());
        let before = find_message(&self.world, channel, message)?;
        let empty = (has_content && draft.content.is_empty() || before.content.is_empty() && !has_content)
            && (has_embeds && draft.embeds.is_empty() || before.embeds.is_empty() && !has_embeds);
        if empty && before.attachments.is_empty() {
            return Err(Refusal::new(400, 50006, "Cannot send an empty message"));
        }
        self.edit(channel, message, |edited| {
            if has_content {
                edited.content = draft.content;
                edited.mentions = mentions;
            }
            if has_embeds {
                edited.embeds = draft.embeds;
            }
        });
        // A webhook's token shows the text of the webhook's messages.
        let content = if sender == Sender::Webhook { Content::All } else { self.world.rest_content() };
        ok(find_message(&self.world, channel, message)?.json(&self.world, content))
    }

    pub fn delete_message(&mut self, call: &Call) -> Reply {
        let (channel, message) = (call.id("channel"), call.id("message"));
        let direct = self.world.permitted(channel, Permissions::empty())?.guild.is_none();
        let own = find_message(&self.world, channel, message)?.author == Author::User(self.world.bot());
        if !own && direct {
            return Err(Refusal::new(403, 50003, "Cannot execute action on a DM channel"));
        }
        if !own {
            self.world.permitted(channel, Permissions::MANAGE_MESSAGES)?;
        }
        self.delete(channel, &[message], false);
        done()
    }

    pub fn bulk_delete(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        if self.world.permitted(channel, Permissions::MANAGE_MESSAGES)?.guild.is_none() {
            return Err(Refusal::new(403, 50003, "Cannot execute action on a DM channel"));
        }
        let ids: Vec<Id> = call.body["messages"].as_array().into_iter().flatten().filter_map(Id::read).collect();
        if !(2..=100).contains(&ids.len()) {
            return Err(Refusal::new(
                400,
                50016,
                "Provided too few or too many messages to delete. Must provide at least 2 and fewer than 100 messages to delete",
            ));
        }
        if ids.iter().any(|id| id.made_at_ms() + TWO_WEEKS_MS < now_ms()) {
            return Err(Refusal::new(400, 50034, "A message provided was too old to bulk delete"));
        }
        self.delete(channel, &ids, true);
        done()
    }

    pub fn typing(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        self.sendable(channel)?;
        self.journal.typing.push((tokio::time::Instant::now(), channel));
        self.type_in(channel, self.world.bot());
        done()
    }

    pub fn create_direct(&mut self, call: &Call) -> Reply {
        let person = Id::read(&call.body["recipient_id"]).ok_or_else(|| Refusal::missing(&["recipient_id"]))?;
        let Some(user) = self.world.users.get(&person) else {
            return Err(Refusal::new(400, 50033, "Invalid Recipient(s)"));
        };
        if user.bot {
            return Err(Refusal::new(400, 50007, "Cannot send messages to this user"));
        }
        let channel = self.world.open_direct(person);
        ok(self.world.channel_json(&self.world.channels[&channel]))
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
