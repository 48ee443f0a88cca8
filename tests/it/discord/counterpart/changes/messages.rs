//! Messages are created, edited and deleted.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::journal::Post;
use super::super::{Author, Content, Event, Id, Intents, Kind, Message, Place, State, now_ms};

impl State {
    /// Creates a message, and returns its id. This unarchives an archived thread, and makes the author a member of the thread.
    pub fn say(&mut self, mut message: Message) -> Id {
        let id = self.world.new_id();
        message.id = id;
        // Answers to interactions are recorded as answers, not as posts.
        let is_answer = matches!(message.author, Author::Webhook { webhook, .. } if webhook == self.world.application.id);
        if message.sent_by(&self.world) && !is_answer {
            self.journal.posts.push(Post {
                at: Instant::now(),
                message: id,
                channel: message.channel,
                author: message.author.clone(),
                content: message.content.clone(),
                mentions: message.mentions.clone(),
                nonce: message.nonce.clone(),
                agent: String::new(),
            });
        }
        self.enter_thread(&message);
        self.world.put_message(message.clone());
        if !message.is_ephemeral() {
            self.send_message_event("MESSAGE_CREATE", &message);
        }
        id
    }

    fn enter_thread(&mut self, message: &Message) {
        let archived = |state: &Self| {
            let thread = state.world.channels.get(&message.channel).and_then(|channel| channel.thread.as_ref());
            thread.is_some_and(|thread| thread.archived)
        };
        if archived(self) {
            self.change_thread(message.channel, |thread| thread.archived = false);
        }
        let thread = self.world.channels.get_mut(&message.channel).and_then(|channel| channel.thread.as_mut());
        if let (Some(thread), Author::User(author)) = (thread, &message.author) {
            thread.members.insert(*author);
        }
    }

    pub fn edit(&mut self, channel: Id, message: Id, change: impl FnOnce(&mut Message)) {
        let Some(edited) = self.world.message_mut(channel, message) else { return };
        change(edited);
        edited.edited_ms = Some(now_ms());
        edited.nonce = None;
        let edited = edited.clone();
        if !edited.is_ephemeral() {
            self.send_message_event("MESSAGE_UPDATE", &edited);
        }
    }

    /// Adds the preview of a link to a message: an update without an edit.
    pub fn unfold(&mut self, channel: Id, message: Id, embed: Value) {
        let Some(unfolded) = self.world.message_mut(channel, message) else { return };
        unfolded.embeds.push(embed);
        let unfolded = unfolded.clone();
        self.send_message_event("MESSAGE_UPDATE", &unfolded);
    }

    /// Sends a message again, as if it were new: events "may be sent up to N times".
    ///
    /// <https://docs.discord.com/developers/reference#consistency>
    pub fn repeat(&mut self, channel: Id, message: Id) {
        if let Some(message) = self.world.message(channel, message).cloned() {
            self.send_message_event("MESSAGE_CREATE", &message);
        }
    }

    /// Deletes messages: with one event each, or in bulk with a single event.
    pub fn delete(&mut self, channel: Id, messages: &[Id], bulk: bool) {
        let gone: Vec<Message> = messages.iter().filter_map(|id| self.world.remove_message(channel, *id)).collect();
        let gone: Vec<Id> = gone.iter().filter(|message| !message.is_ephemeral()).map(|message| message.id).collect();
        if bulk && !gone.is_empty() {
            self.send_event_in_channel("MESSAGE_DELETE_BULK", channel, None, json!({ "ids": gone }));
        } else {
            for id in gone {
                self.send_event_in_channel("MESSAGE_DELETE", channel, Some(id), json!({ "id": id }));
            }
        }
    }

    /// Adds or removes a reaction. Nothing happens if it is there already, or is not there.
    pub fn change_reaction(&mut self, channel: Id, message: Id, user: Id, emoji: &str, adds: bool) {
        let Some(changed) = self.world.message_mut(channel, message) else { return };
        let reaction = (user, emoji.to_owned());
        if adds != if adds { changed.reactions.insert(reaction) } else { !changed.reactions.remove(&reaction) } {
            return;
        }
        let mut data =
            json!({ "user_id": user, "message_id": message, "emoji": { "id": null, "name": emoji }, "burst": false, "type": 0 });
        // A removal does not name the member.
        if adds && let Some(member) = self.member_json(channel, user) {
            data["member"] = member;
        }
        let name = if adds { "MESSAGE_REACTION_ADD" } else { "MESSAGE_REACTION_REMOVE" };
        self.send_event_in_channel(name, channel, None, data);
    }

    /// A moderator removes all reactions from a message.
    pub fn clear_reactions(&mut self, channel: Id, message: Id) {
        let Some(changed) = self.world.message_mut(channel, message) else { return };
        changed.reactions.clear();
        self.send_event_in_channel("MESSAGE_REACTION_REMOVE_ALL", channel, None, json!({ "message_id": message }));
    }

    /// Sends a typing event.
    pub fn type_in(&mut self, channel: Id, person: Id) {
        let mut data = json!({ "user_id": person, "timestamp": now_ms() / 1_000 });
        if let Some(member) = self.member_json(channel, person) {
            data["member"] = member;
        }
        self.send_event_in_channel("TYPING_START", channel, None, data);
    }

    /// The member of the channel's guild, if it has one and the user is in it.
    fn member_json(&self, channel: Id, user: Id) -> Option<Value> {
        Some(self.world.guild_of(channel)?.members.get(&user)?.json(&self.world.users[&user]))
    }

    fn send_message_event(&mut self, name: &'static str, message: &Message) {
        let mut data = message.event_json(&self.world, Content::All);
        let mut bare = message.event_json(&self.world, Content::Own);
        if let Some(nonce) = message.nonce.as_ref().filter(|_| name == "MESSAGE_CREATE") {
            data["nonce"] = nonce.clone();
            bare["nonce"] = nonce.clone();
        }
        let event =
            Event { bare: Some(bare), message: Some(message.id), ..Event::new(name, Place::Elsewhere, Intents::empty(), data) };
        self.send_event_to_viewers(message.channel, event);
    }

    fn send_event_in_channel(&mut self, name: &'static str, channel: Id, message: Option<Id>, mut data: Value) {
        data["channel_id"] = json!(channel);
        if let Some(guild) = self.world.guild_of(channel) {
            data["guild_id"] = json!(guild.id);
        }
        self.send_event_to_viewers(channel, Event { message, ..Event::new(name, Place::Elsewhere, Intents::empty(), data) });
    }

    /// Sends an event of a channel, if the bot may view the channel.
    fn send_event_to_viewers(&mut self, channel: Id, event: Event) {
        let Some(target_channel) = self.world.channels.get(&channel) else { return };
        if !self.world.may_view(target_channel, self.world.bot()) && target_channel.kind != Kind::Direct {
            return;
        }
        let (in_guild, directly) = match event.name {
            "TYPING_START" => (Intents::GUILD_MESSAGE_TYPING, Intents::DIRECT_MESSAGE_TYPING),
            name if name.starts_with("MESSAGE_REACTION") => (Intents::GUILD_MESSAGE_REACTIONS, Intents::DIRECT_MESSAGE_REACTIONS),
            _ => (Intents::GUILD_MESSAGES, Intents::DIRECT_MESSAGES),
        };
        let (place, intent) = match target_channel.guild {
            Some(guild) => (Place::Guild(guild), in_guild),
            None => (Place::Elsewhere, directly),
        };
        self.send_event(&Event { place, intent, ..event });
    }
}
