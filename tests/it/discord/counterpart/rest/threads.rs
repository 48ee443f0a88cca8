//! Threads over REST.
//!
//! <https://docs.discord.com/developers/resources/channel#start-thread-from-message>, <https://docs.discord.com/developers/topics/threads>

use serde_json::{Value, json};

use super::super::messages::THREAD_STARTER;
use super::super::{Author, Channel, Draft, Id, Kind, Message, Permissions, Reference, Refusal, Sender, State};
use super::messages::find_message;
use super::{Call, Reply, done, ok};

impl State {
    pub fn thread_from_message(&mut self, call: &Call) -> Reply {
        let (channel, message) = (call.id("channel"), call.id("message"));
        let target_channel = self.world.permitted(channel, Permissions::CREATE_PUBLIC_THREADS)?.clone();
        let Some(kind) = target_channel.kind.public_thread().filter(|_| target_channel.kind.takes_messages()) else {
            return Err(Refusal::new(400, 50024, "Cannot execute action on this channel type"));
        };
        find_message(&self.world, channel, message)?;
        if self.world.channels.contains_key(&message) {
            return Err(Refusal::new(400, 160_004, "A thread has already been created for this message"));
        }
        // The thread has the message's id.
        let mut thread = Channel::new_thread(message, kind, &target_channel, &name(&call.body)?, self.world.bot());
        set_archive(&mut thread, &call.body)?;
        self.add_thread(thread);
        // The first message of the thread refers to the one that it was started from.
        let reference = Some(Reference { message, channel, guild: target_channel.guild });
        let bot = Author::User(self.world.bot());
        self.say(Message { reference, kind: THREAD_STARTER, ..Message::new(message, bot, "") });
        self.created(message, None)
    }

    pub fn start_thread(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        let target_channel = self.world.permitted(channel, Permissions::empty())?.clone();
        if target_channel.kind == Kind::Forum {
            return self.start_post(&target_channel, call);
        }
        let kind = match call.body["type"].as_u64().unwrap_or(12) {
            10 => Kind::AnnouncementThread,
            11 => Kind::PublicThread,
            12 => Kind::PrivateThread,
            _ => return Err(Refusal::field(&["type"], "BASE_TYPE_CHOICES", "Value must be one of {10, 11, 12}.")),
        };
        let fits = if kind == Kind::PrivateThread {
            target_channel.kind == Kind::Text
        } else {
            target_channel.kind.public_thread() == Some(kind)
        };
        if !fits {
            return Err(Refusal::new(400, 50024, "Cannot execute action on this channel type"));
        }
        let needed =
            if kind == Kind::PrivateThread { Permissions::CREATE_PRIVATE_THREADS } else { Permissions::CREATE_PUBLIC_THREADS };
        self.world.permitted(channel, needed)?;
        let id = self.world.new_id();
        let mut thread = Channel::new_thread(id, kind, &target_channel, &name(&call.body)?, self.world.bot());
        set_archive(&mut thread, &call.body)?;
        self.add_thread(thread);
        self.created(id, None)
    }

    /// A post of a forum: a thread and its first message.
    fn start_post(&mut self, forum: &Channel, call: &Call) -> Reply {
        self.world.permitted(forum.id, Permissions::SEND_MESSAGES)?;
        let draft = Draft::read(&call.body["message"], 1 << 2 | 1 << 12)?;
        let mentions = draft.mentions(&self.world, self.world.guild_of(forum.id), Sender::Bot, None);
        let id = self.world.new_id();
        let mut thread = Channel::new_thread(id, Kind::PublicThread, forum, &name(&call.body)?, self.world.bot());
        set_archive(&mut thread, &call.body)?;
        self.add_thread(thread);
        let bot = Author::User(self.world.bot());
        let message = self.say(Message { mentions, embeds: draft.embeds, ..Message::new(id, bot, &draft.content) });
        self.created(id, Some(message))
    }

    fn created(&self, thread: Id, message: Option<Id>) -> Reply {
        let mut json = self.world.channel_json(&self.world.channels[&thread]);
        if let Some(message) = message {
            json["message"] = find_message(&self.world, thread, message)?.json(&self.world, self.world.rest_content());
        }
        Ok((201, Some(json)))
    }

    pub fn active_threads(&mut self, call: &Call) -> Reply {
        let guild = call.id("guild");
        self.world.joined_guild(guild)?;
        ok(self.world.threads_json(self.world.active_threads(guild)))
    }

    pub fn archived_threads(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        self.world.permitted(channel, Permissions::READ_MESSAGE_HISTORY)?;
        let archived = |thread: &&Channel| thread.thread.as_ref().is_some_and(|thread| thread.archived);
        let threads = self.world.channels.values().filter(|thread| thread.parent == Some(channel)).filter(archived);
        let mut json = self.world.threads_json(threads.filter(|thread| thread.kind != Kind::PrivateThread));
        json["has_more"] = json!(false);
        ok(json)
    }

    pub fn join_thread_as_bot(&mut self, call: &Call) -> Reply {
        let thread = call.id("channel");
        let target_channel = self.world.permitted(thread, Permissions::empty())?;
        match &target_channel.thread {
            None => return Err(Refusal::new(400, 50024, "Cannot execute action on this channel type")),
            Some(thread) if thread.archived => return Err(Refusal::new(400, 50083, "Thread is archived")),
            Some(_) => {}
        }
        self.join_thread(thread, self.world.bot());
        done()
    }
}

/// Reads a thread's name: 1 to 100 characters.
fn name(body: &Value) -> Result<String, Refusal> {
    let name = body["name"].as_str().ok_or_else(|| Refusal::missing(&["name"]))?;
    if (1..=100).contains(&name.chars().count()) { Ok(name.to_owned()) } else { Err(Refusal::length(&["name"], 1, 100)) }
}

fn set_archive(thread: &mut Channel, body: &Value) -> Result<(), Refusal> {
    let minutes = body["auto_archive_duration"].as_u64();
    if minutes.is_some_and(|minutes| ![60, 1_440, 4_320, 10_080].contains(&minutes)) {
        let message = "Value must be one of (60, 1440, 4320, 10080).";
        return Err(Refusal::field(&["auto_archive_duration"], "BASE_TYPE_CHOICES", message));
    }
    if let (Some(thread), Some(minutes)) = (&mut thread.thread, minutes) {
        thread.auto_archive = minutes;
    }
    Ok(())
}
