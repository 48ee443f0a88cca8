//! What people and other bots do.

use serde_json::Value;

use super::super::messages::named;
use super::super::{Author, Id, Mentions, Message, Permissions, Reference, State};
use super::Counterpart;

impl Counterpart {
    /// A person sends a message. `<@id>`, `<@&id>` and, where that is permitted, `@everyone` are mentions.
    ///
    /// # Panics
    ///
    /// The person lacks a permission.
    pub fn say(&self, user: Id, channel: Id, text: &str) -> Id {
        self.say_with(user, channel, text, |_| {})
    }

    /// A person sends a message with attachments, stickers or embeds.
    ///
    /// # Panics
    ///
    /// The person lacks a permission.
    pub fn say_with(&self, user: Id, channel: Id, text: &str, more: impl FnOnce(&mut Message)) -> Id {
        self.with(|state| {
            let mentions = state.mentions_in(user, channel, text);
            let mut new = Message { mentions, ..Message::new(channel, Author::User(user), text) };
            more(&mut new);
            state.say(new)
        })
    }

    /// A person replies to a message, and notifies its author or not.
    ///
    /// # Panics
    ///
    /// The person lacks a permission.
    pub fn reply(&self, user: Id, channel: Id, to: Id, text: &str, notifies: bool) -> Id {
        let (author, guild) = self.look(|state| {
            let author = state.world.message(channel, to).map(|message| message.author.clone());
            (author, state.world.guild_of(channel).map(|guild| guild.id))
        });
        self.say_with(user, channel, text, |new| {
            new.reply_to(to, guild);
            if let (true, Some(Author::User(author))) = (notifies, author) {
                new.mentions.users.push(author);
            }
        })
    }

    /// A person forwards a message to a channel.
    ///
    /// # Panics
    ///
    /// The person lacks a permission, or there is no such message.
    pub fn forward(&self, user: Id, from: Id, message: Id, to: Id) -> Id {
        let (snapshot, guild) = self.look(|state| {
            let original = state.world.message(from, message).expect("a message");
            (original.snapshot_json(&state.world), state.world.guild_of(from).map(|guild| guild.id))
        });
        self.say_with(user, to, "", |new| {
            new.reference = Some(Reference { message, channel: from, guild });
            new.forwarded = Some(snapshot);
        })
    }

    /// A person sends the bot a direct message. Returns channel and message.
    pub fn direct(&self, person: Id, text: &str) -> (Id, Id) {
        let channel = self.with(|state| state.world.open_direct(person));
        (channel, self.say(person, channel, text))
    }

    /// A webhook posts a message under a name.
    pub fn say_by_webhook(&self, webhook: Id, name: &str, text: &str) -> Id {
        self.with(|state| {
            let sender = state.world.webhooks[&webhook].clone();
            let author =
                Author::Webhook { webhook, username: name.to_owned(), avatar_url: None, application: sender.application };
            state.say(Message::new(sender.channel, author, text))
        })
    }

    /// A person opens a post in a forum. Returns the thread.
    pub fn open_post(&self, user: Id, forum: Id, title: &str, text: &str) -> Id {
        let thread = self.thread(forum, title, user);
        self.say(user, thread, text);
        thread
    }

    /// Replaces the text of a message, as its author does.
    pub fn edit(&self, channel: Id, message: Id, text: &str) {
        self.with(|state| {
            state.edit(channel, message, |message| {
                message.mentions = Mentions { everyone: false, ..named(text) };
                text.clone_into(&mut message.content);
            });
        });
    }

    /// A person reacts to a message, or takes the reaction back.
    pub fn react(&self, user: Id, channel: Id, message: Id, emoji: &str, adds: bool) {
        self.with(|state| state.change_reaction(channel, message, user, emoji, adds));
    }

    /// A moderator removes all reactions from a message.
    pub fn clear_reactions(&self, channel: Id, message: Id) {
        self.with(|state| state.clear_reactions(channel, message));
    }

    /// Adds the preview of a link to a message: an update without an edit.
    pub fn unfold(&self, channel: Id, message: Id, embed: Value) {
        self.with(|state| state.unfold(channel, message, embed));
    }

    pub fn delete(&self, channel: Id, message: Id) {
        self.with(|state| state.delete(channel, &[message], false));
    }

    /// Deletes messages in bulk, with a single event.
    pub fn delete_bulk(&self, channel: Id, messages: &[Id]) {
        self.with(|state| state.delete(channel, messages, true));
    }

    /// Deletes a channel or a thread.
    pub fn remove_channel(&self, channel: Id) {
        self.with(|state| state.remove_channel(channel));
    }

    pub fn remove_webhook(&self, webhook: Id) {
        self.with(|state| state.remove_webhook(webhook));
    }

    /// Removes the bot from a guild.
    pub fn expel_bot(&self, guild: Id) {
        self.with(|state| state.expel_bot(guild));
    }

    /// Begins or ends an outage of a guild.
    pub fn set_outage(&self, guild: Id, outage: bool) {
        self.with(|state| state.set_outage(guild, outage));
    }

    /// A person stops accepting direct messages.
    pub fn close_directs(&self, person: Id) {
        self.with(|state| state.world.closed_directs.insert(person));
    }
}

impl State {
    /// Whom a person's text in a channel notifies.
    fn mentions_in(&self, user: Id, channel: Id, text: &str) -> Mentions {
        let target_channel = &self.world.channels[&channel];
        let permissions = self.world.permissions(target_channel, user);
        let sending =
            if target_channel.kind.is_thread() { Permissions::SEND_MESSAGES_IN_THREADS } else { Permissions::SEND_MESSAGES };
        let needed = Permissions::VIEW_CHANNEL | sending;
        assert!(target_channel.kind.takes_messages(), "{} takes no messages", target_channel.name);
        assert!(permissions.contains(needed), "{user} may not speak in {}", target_channel.name);
        let guild = self.world.guild_of(channel);
        assert!(guild.is_none_or(|guild| !guild.outage), "nobody can speak during an outage");
        let named = named(text);
        let everyone = permissions.contains(Permissions::MENTION_EVERYONE);
        let mentionable = |id: &Id| guild.and_then(|guild| guild.roles.get(id)).is_some_and(|role| role.mentionable || everyone);
        Mentions {
            users: named.users.into_iter().filter(|id| self.world.users.contains_key(id)).collect(),
            roles: named.roles.into_iter().filter(mentionable).collect(),
            everyone: named.everyone && everyone,
        }
    }
}
