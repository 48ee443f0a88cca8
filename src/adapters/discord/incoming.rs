//! Classifies a Discord message: finds its sender, its text in a form for models, and its addressees.

pub(super) mod attached;

#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use twilight_model::channel::message::{MessageFlags, MessageType};

use super::markup::{Mark, Piece, pieces};
use super::names::plain;
use super::outgoing::without_notice;
use super::snowflake::Snowflake;
use super::wire::{Bot, Message, Origin};
use crate::domain::message::{Author, Quoted, Role};
use crate::domain::text::shortened_with;
use crate::ports::inbound_events::{Answered, InboundMessage, ReplyTo};

/// The length limit of a message's text, in characters. Discord allows 4,000, but names in place of ids make a text longer.
const MAX_CHARS: usize = 8_000;
/// Replaces markup in [`InboundMessage::own_words`]. It is not a word character, so it does not become part of a name.
const MARKUP_PLACEHOLDER: char = '\u{fffc}';
/// A zero width space that breaks a mention such as `@everyone`. `outgoing` inserts it.
pub(super) const MENTION_BREAKER: char = '\u{200b}';

/// Looks up the names of users, roles and channels in a message's markup.
pub trait NameLookup {
    /// The name of a user. Called only for users that the message itself does not list.
    fn person(&self, _: Snowflake) -> Option<String> {
        None
    }

    fn role(&self, _: Snowflake) -> Option<String> {
        None
    }

    /// The name of a channel or thread.
    fn channel(&self, _: Snowflake) -> Option<String> {
        None
    }
}

/// A lookup that finds no names.
impl NameLookup for () {}

/// The sender of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// One of our companions, with the name that its webhook used. `None`: the bot itself.
    Ours(Option<String>),
    /// A person, another bot or another webhook.
    Other(Author),
    /// Discord itself.
    System,
}

/// How to handle a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A message from a person or another bot. A webhook that is not ours counts as a bot.
    ///
    /// The text has names in place of markup, and descriptions of attachments in brackets. It has at most about 8,000 characters. The own words
    /// contain no markup and no attachments, because a companion must not be addressed by a mentioned person's name, an emoji, a file or a
    /// forwarded text. The mentions are users, without roles, everyone and our bot. If a message mentions our bot, it addresses all companions,
    /// because the bot represents no particular one.
    Message(Box<InboundMessage>),
    /// Our own message. It is already on record as a statement.
    Ours(Option<String>),
    Ignored(IgnoreReason),
}

/// Why a message is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreReason {
    /// The message reports an event, such as a new member, a pinned message or a new thread, or Discord itself is the sender.
    NotConversation,
    /// A bot shows that it is thinking, or answers only one person.
    NotPublic,
    /// The message has no readable content. It has only embeds, or Discord withholds the content because the application lacks the Message Content
    /// intent.
    Empty,
}

/// Classifies a message. Edited messages are classified the same way.
pub fn classify(message: &Message, bot: Bot, names: &impl NameLookup) -> Incoming {
    if message.flags.is_some_and(|flags| flags.intersects(MessageFlags::EPHEMERAL | MessageFlags::LOADING)) {
        return Incoming::Ignored(IgnoreReason::NotPublic);
    }
    if !is_conversation(message.kind) {
        return Incoming::Ignored(IgnoreReason::NotConversation);
    }
    let from = match sender(&message.origin(), bot) {
        Sender::Ours(name) => return Incoming::Ours(name),
        Sender::System => return Incoming::Ignored(IgnoreReason::NotConversation),
        Sender::Other(author) => author,
    };
    let Some((text, own_words)) = readable_text(message, names) else { return Incoming::Ignored(IgnoreReason::Empty) };
    let mut mentions: Vec<Arc<str>> =
        message.mentions.iter().filter(|user| user.id != bot.user).map(|user| user.id.person().as_str().into()).collect();
    mentions.sort();
    mentions.dedup();
    let reply_to = message.answers().map(|(id, replied)| {
        let sender = replied.map(|replied| sender(&replied.origin(), bot));
        let quoted = replied.zip(sender.as_ref()).and_then(|(replied, sender)| quoted(replied, sender, names));
        ReplyTo::Foreign { id: id.to_string().into(), by: sender.and_then(answered), quoted }
    });
    Incoming::Message(Box::new(InboundMessage {
        id: Some(message.id.to_string().into()),
        own_words: Some(own_words.into()),
        mentions,
        to_all: message.mentions.iter().any(|user| user.id == bot.user),
        reply_to,
        voice_note: attached::recording(message).map(|recording| attached::length(recording).unwrap_or_default()),
        ..InboundMessage::new(from, text.into())
    }))
}

/// The beginning of a message that is replied to. `None` if it has no readable text or no known sender.
fn quoted(message: &Message, sender: &Sender, names: &impl NameLookup) -> Option<Quoted> {
    let from = match sender {
        Sender::Ours(name) => Author { id: "".into(), name: name.as_deref()?.into(), role: Role::Companion },
        Sender::Other(author) => author.clone(),
        Sender::System => return None,
    };
    is_conversation(message.kind).then(|| readable_text(message, names))?.map(|(text, _)| Quoted::new(from, &text))
}

fn answered(sender: Sender) -> Option<Answered> {
    match sender {
        Sender::Ours(name) => Some(Answered::Ours(name.map(Arc::from))),
        Sender::Other(author) => Some(Answered::Other(author.id, author.role)),
        Sender::System => None,
    }
}

/// The text of a message for models, and the text that its author typed. `None`: the message has no readable content.
pub fn readable_text(message: &Message, names: &impl NameLookup) -> Option<(String, String)> {
    let reader = Reader { message: Some(message), names };
    let content = message.content().trim();
    // The server's notice below a companion's statement is not part of the statement.
    let is_of_program = message.webhook_id.is_some() || message.author.bot == Some(true);
    let (text, own_words) = reader.read(if is_of_program { without_notice(content) } else { content });
    let mut lines = vec![text];
    lines.extend(attached::lines(message, |content| reader.read(content).0));
    lines.retain(|line| !line.trim().is_empty());
    (!lines.is_empty()).then(|| (cut(&lines.join("\n"), MAX_CHARS), cut(&own_words, MAX_CHARS)))
}

/// A typed text for models. `None`: it has no readable content.
pub fn readable_words(typed: &str, names: &impl NameLookup) -> Option<String> {
    let (text, _) = Reader { message: None, names }.read(typed.trim());
    (!text.trim().is_empty()).then(|| cut(&text, MAX_CHARS))
}

/// Whether messages of this type belong to the conversation: plain messages, replies, and bots' answers to commands.
///
/// The first message of a thread (`ThreadStarterMessage`) repeats a message of the parent channel, so it does not count. The first message of a
/// forum post is a plain one.
pub const fn is_conversation(kind: MessageType) -> bool {
    use MessageType::{ChatInputCommand, ContextMenuCommand, Regular, Reply};
    matches!(kind, Regular | Reply | ChatInputCommand | ContextMenuCommand)
}

/// Finds the sender of a message.
///
/// A webhook is not a user, whatever name and picture it uses. A webhook of our application is ours: for messages of webhooks that an application
/// created, Discord reports the application.
pub fn sender(origin: &Origin<'_>, bot: Bot) -> Sender {
    let author = origin.author;
    if author.id == bot.user {
        return Sender::Ours(None);
    }
    if origin.webhook.is_some() && origin.application == Some(bot.application) {
        return Sender::Ours(Some(author.username.clone()));
    }
    if author.system == Some(true) {
        return Sender::System;
    }
    let role = if author.bot == Some(true) || origin.webhook.is_some() { Role::Bot } else { Role::Person };
    Sender::Other(Author { id: author.id.person().as_str().into(), name: author.shown(origin.nick).into(), role })
}

/// Replaces markup by names.
struct Reader<'a, K> {
    message: Option<&'a Message>,
    names: &'a K,
}

impl<K: NameLookup> Reader<'_, K> {
    /// The text for models, and the text as typed.
    fn read(&self, content: &str) -> (String, String) {
        let mut text = String::with_capacity(content.len());
        let mut own = String::with_capacity(content.len());
        for piece in pieces(content) {
            match piece {
                Piece::Mark(raw, mark) => {
                    text.push_str(&self.name_of(raw, &mark));
                    own.push(MARKUP_PLACEHOLDER);
                }
                other => {
                    text.push_str(other.text());
                    own.push_str(other.text());
                }
            }
        }
        (without_mention_breakers(&text), without_mention_breakers(&own))
    }

    fn name_of(&self, raw: &str, mark: &Mark<'_>) -> String {
        match mark {
            Mark::User(id) => {
                let listed = self.message.and_then(|message| message.mentioned(*id));
                format!("@{}", listed.or_else(|| self.names.person(*id).and_then(cleaned)).as_deref().unwrap_or("unknown-user"))
            }
            Mark::Role(id) => {
                let name = self.names.role(*id).and_then(cleaned);
                // The name of Discord's role for everyone already contains the `@`.
                format!("@{}", name.as_deref().map_or("unknown-role", |name| name.trim_start_matches('@')))
            }
            Mark::Channel(id) => format!("#{}", self.names.channel(*id).and_then(cleaned).as_deref().unwrap_or("unknown")),
            Mark::Emoji { name, .. } => format!(":{name}:"),
            Mark::Time { secs, style } => time(*secs, *style).unwrap_or_else(|| raw.to_owned()),
            Mark::Command(name) => format!("/{name}"),
            Mark::Page(page) => match page.split(':').next() {
                Some("customize") => "[Channels & Roles]".to_owned(),
                Some("browse") => "[Browse Channels]".to_owned(),
                Some("guide") => "[Server Guide]".to_owned(),
                Some("linked-roles") => "[Linked Roles]".to_owned(),
                _ => raw.to_owned(),
            },
        }
    }
}

/// The cleaned name. `None` if nothing visible is left.
fn cleaned(name: String) -> Option<String> {
    Some(plain(&name)).filter(|name| !name.is_empty())
}

/// A time in UTC, with the precision of its style. `None` if it is outside the calendar's range.
fn time(secs: i64, style: char) -> Option<String> {
    let at = Timestamp::from_second(secs).ok()?;
    let format = match style {
        't' => "%H:%M UTC",
        'T' => "%H:%M:%S UTC",
        'd' | 'D' => "%Y-%m-%d",
        _ => "%Y-%m-%d %H:%M UTC",
    };
    Some(at.strftime(format).to_string())
}

/// Removes the characters that `outgoing` inserts to disarm mentions.
fn without_mention_breakers(text: &str) -> String {
    text.replace(&format!("@{MENTION_BREAKER}"), "@").replace(&format!("<{MENTION_BREAKER}"), "<")
}

/// Cuts a text to a length, and marks that it was cut.
fn cut(text: &str, most_chars: usize) -> String {
    shortened_with(text, most_chars, " […]").into_owned()
}
