//! What people and other bots do.

use serde_json::Value;

use super::super::changes::Said;
use super::super::channels::Kind;
use super::super::id::Id;
use super::super::messages::{Author, Mentions, Reference, named};
use super::super::permissions::{MENTION_EVERYONE, SEND_MESSAGES, SEND_MESSAGES_IN_THREADS, VIEW_CHANNEL};
use super::super::state::State;
use super::Counterpart;

impl Counterpart {
    /// Somebody says something. `<@id>`, `<@&id>` and, where that is permitted, `@everyone` mention.
    ///
    /// # Panics
    ///
    /// Discord would not let them.
    pub fn say(&self, user: Id, channel: Id, text: &str) -> Id {
        self.say_with(user, channel, text, |_| {})
    }

    /// Somebody says something with more to it: attachments, stickers, embeds.
    ///
    /// # Panics
    ///
    /// Discord would not let them.
    pub fn say_with(&self, user: Id, channel: Id, text: &str, more: impl FnOnce(&mut Said)) -> Id {
        self.with(|state| {
            let mentions = state.heard_by(user, channel, text);
            let mut said = Said { mentions, ..Said::new(channel, Author::User(user), text) };
            more(&mut said);
            state.say(said)
        })
    }

    /// Somebody answers a message, telling its author or not.
    ///
    /// # Panics
    ///
    /// Discord would not let them.
    pub fn reply(&self, user: Id, channel: Id, to: Id, text: &str, tells: bool) -> Id {
        let author = self.look(|state| state.world.message(channel, to).map(|message| message.author.clone()));
        self.say_with(user, channel, text, |said| {
            said.reply_to = Some(to);
            if let (true, Some(Author::User(author))) = (tells, author) {
                said.mentions.users.push(author);
            }
        })
    }

    /// Somebody forwards a message to a channel.
    ///
    /// # Panics
    ///
    /// Discord would not let them, or there is no such message.
    pub fn forward(&self, user: Id, from: Id, message: Id, to: Id) -> Id {
        let (snapshot, guild) = self.look(|state| {
            let original = state.world.message(from, message).expect("a message");
            (original.snapshot_json(&state.world), state.world.guild_of(from).map(|guild| guild.id))
        });
        self.say_with(user, to, "", |said| {
            said.stands_for = Some(Reference { message, channel: from, guild });
            said.forwarded = Some(snapshot);
        })
    }

    /// Somebody writes to the bot directly. Returns channel and message.
    pub fn direct(&self, person: Id, text: &str) -> (Id, Id) {
        let channel = self.with(|state| state.world.open_direct(person));
        (channel, self.say(person, channel, text))
    }

    /// A webhook says something, by whatever name.
    pub fn say_by_webhook(&self, webhook: Id, name: &str, text: &str) -> Id {
        self.with(|state| {
            let known = state.world.webhooks[&webhook].clone();
            let author = Author::Webhook { webhook, username: name.to_owned(), avatar_url: None, application: known.application };
            state.say(Said::new(known.channel, author, text))
        })
    }

    /// Somebody opens a post in a forum. Returns the thread; its first message has the same id.
    pub fn open_post(&self, user: Id, forum: Id, title: &str, text: &str) -> Id {
        let thread = self.thread(forum, Kind::PublicThread, title, user);
        self.say(user, thread, text);
        thread
    }

    /// Somebody changes what they said.
    pub fn edit(&self, channel: Id, message: Id, text: &str) {
        self.with(|state| {
            state.edit(channel, message, |message| {
                message.mentions = Mentions { everyone: false, ..named(text) };
                text.clone_into(&mut message.content);
            });
        });
    }

    /// Discord shows what a link in a message leads to: an update without an edit.
    pub fn unfold(&self, channel: Id, message: Id, embed: Value) {
        self.with(|state| state.unfold(channel, message, embed));
    }

    /// A message goes.
    pub fn delete(&self, channel: Id, message: Id) {
        self.with(|state| state.delete(channel, &[message], false));
    }

    /// Messages go at once.
    pub fn delete_bulk(&self, channel: Id, messages: &[Id]) {
        self.with(|state| state.delete(channel, messages, true));
    }

    /// Somebody types.
    pub fn type_in(&self, user: Id, channel: Id) {
        self.with(|state| state.type_in(channel, user));
    }

    /// A channel or thread goes.
    pub fn remove_channel(&self, channel: Id) {
        self.with(|state| state.remove_channel(channel));
    }

    /// A webhook goes.
    pub fn remove_webhook(&self, webhook: Id) {
        self.with(|state| state.remove_webhook(webhook));
    }

    /// The bot is thrown out of a guild.
    pub fn expel_bot(&self, guild: Id) {
        self.with(|state| state.expel_bot(guild));
    }

    /// Discord begins or ends to have trouble with a guild.
    pub fn set_outage(&self, guild: Id, outage: bool) {
        self.with(|state| state.set_outage(guild, outage));
    }

    /// Somebody takes no direct messages any more.
    pub fn close_directs(&self, person: Id) {
        self.with(|state| state.world.closed_directs.insert(person));
    }
}

impl State {
    /// Whom somebody tells with a text in a channel.
    fn heard_by(&self, user: Id, channel: Id, text: &str) -> Mentions {
        let there = &self.world.channels[&channel];
        let permissions = self.world.permissions(there, user);
        let sending = if there.kind.is_thread() { SEND_MESSAGES_IN_THREADS } else { SEND_MESSAGES };
        let needed = VIEW_CHANNEL | sending;
        assert!(there.kind.takes_messages(), "{} takes no messages", there.name);
        assert_eq!(permissions & needed, needed, "{user} may not speak in {}", there.name);
        let guild = self.world.guild_of(channel);
        assert!(guild.is_none_or(|guild| !guild.outage), "nobody can speak during an outage");
        let named = named(text);
        let everyone = permissions & MENTION_EVERYONE != 0;
        let mentionable = |id: &Id| guild.and_then(|guild| guild.roles.get(id)).is_some_and(|role| role.mentionable || everyone);
        Mentions {
            users: named.users.into_iter().filter(|id| self.world.users.contains_key(id)).collect(),
            roles: named.roles.into_iter().filter(mentionable).collect(),
            everyone: named.everyone && everyone,
        }
    }
}
