//! What a message of Discord's is for us: whose it is, what it says in words that a model can read, whom it turns to.

mod attached;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

pub use attached::{Attachment, Forward, Poll};

use super::markup::{Mark, Piece, pieces};
use super::names::{plain, shown};
use super::snowflake::Snowflake;
use crate::domain::message::{Author, Role};

/// Characters of a message that are kept. Discord allows 4,000 and names make them longer; whoever needs more hides something.
const MOST_CHARS: usize = 8_000;
/// What stands in [`IncomingMessage::own_words`] for what was not written: no word character, so that it tears no name apart.
const NOT_WRITTEN: char = '\u{fffc}';
/// Keeps a model's `@everyone` from being one; see `said`.
pub(super) const MENTION_BREAKER: char = '\u{200b}';

const IS_VOICE_MESSAGE: u64 = 1 << 13;
const EPHEMERAL: u64 = 1 << 6;
const LOADING: u64 = 1 << 7;

/// A message as Discord tells it (documentation, "Messages Resource"). Embeds are left out: they repeat links, or are a bot's.
#[derive(Clone, Debug)]
pub struct RawMessage<'a> {
    /// Its id.
    pub id: Snowflake,
    /// Its type: 0 is a plain message, 19 a reply; most others tell of something that happened.
    pub kind: u8,
    /// Its flags.
    pub flags: u64,
    /// Where it comes from.
    pub origin: Origin<'a>,
    /// What was written.
    pub content: &'a str,
    /// The users that it mentions, as Discord found them; the author of the answered message may be among them.
    pub mentions: Vec<User<'a>>,
    /// Files.
    pub attachments: Vec<Attachment<'a>>,
    /// Names of stickers.
    pub stickers: Vec<&'a str>,
    /// A poll.
    pub poll: Option<Poll<'a>>,
    /// The message that it forwards.
    pub forward: Option<Forward<'a>>,
    /// The message that it answers.
    pub answers: Option<Answers<'a>>,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The author; of a webhook's message, the webhook under the name that it took.
    pub author: User<'a>,
    /// The webhook that posted it.
    pub webhook: Option<Snowflake>,
    /// The application that owns that webhook, or answered a command.
    pub application: Option<Snowflake>,
}

/// A user, or a webhook in the place of one.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// Its id.
    pub id: Snowflake,
    /// The name that is unique on Discord; a webhook's is whatever it likes.
    pub username: &'a str,
    /// The name that it chose for all guilds.
    pub global_name: Option<&'a str>,
    /// Its nickname in this guild.
    pub nick: Option<&'a str>,
    /// Whether it is a bot.
    pub bot: bool,
    /// Whether it is Discord itself.
    pub system: bool,
}

/// The message that another one answers.
#[derive(Clone, Copy, Debug)]
pub struct Answers<'a> {
    /// Its id.
    pub message: Snowflake,
    /// Where it came from; none if it was deleted, or Discord did not look it up.
    pub origin: Option<Origin<'a>>,
}

/// What of Discord is ours.
#[derive(Clone, Copy, Debug)]
pub struct OwnIds<'a> {
    /// The bot's user.
    pub bot: Snowflake,
    /// The application, which owns the webhooks that it made.
    pub application: Snowflake,
    /// The webhooks that we know to be ours.
    pub webhooks: &'a BTreeSet<Snowflake>,
}

/// The names of what a message may point at.
pub trait NameLookup {
    /// A user's name, if the message itself does not tell it.
    fn person(&self, id: Snowflake) -> Option<String>;
    /// A role's name.
    fn role(&self, id: Snowflake) -> Option<String>;
    /// A channel's or thread's name.
    fn channel(&self, id: Snowflake) -> Option<String>;
}

/// Nothing is known.
impl NameLookup for () {
    fn person(&self, _: Snowflake) -> Option<String> {
        None
    }

    fn role(&self, _: Snowflake) -> Option<String> {
        None
    }

    fn channel(&self, _: Snowflake) -> Option<String> {
        None
    }
}

/// Who a message is by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// One of our companions, under the name that its webhook bore; none if the bot itself spoke.
    Ours(Option<String>),
    /// Somebody else: a person, a bot, a webhook.
    Other(Author),
    /// Discord.
    System,
}

/// What a message is for us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// Somebody said something.
    Message(IncomingMessage),
    /// We said it ourselves: it is on record as a statement already.
    Ours(Option<String>),
    /// It is not taken in.
    Ignored(IgnoreReason),
}

/// IgnoreReason a message is not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreReason {
    /// It tells of something that happened: somebody joined, a message was pinned, a thread began.
    NotConversation,
    /// A bot shows that it thinks, or talks to one person alone.
    NotPublic,
    /// There is nothing to read: embeds alone, or the application lacks the Message Content intent and the message does not concern it.
    Empty,
}

/// What somebody said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingMessage {
    /// Discord's id of it.
    pub id: Snowflake,
    /// Who said it: `discord:<user>`; a foreign webhook is a bot.
    pub from: Author,
    /// What a model reads: marks made words, files and the like told in brackets. At most 8,000 characters and a few.
    pub text: String,
    /// What was really written, in which names may be looked for: a person called like a companion, an emoji, a file's name and a
    /// forwarded text are left out.
    pub own_words: String,
    /// Whom it mentions, as ids; neither roles nor everyone, nor our bot.
    pub mentions: Vec<Arc<str>>,
    /// It mentions our bot, which is nobody in particular among the companions that speak through it.
    pub mentions_bot: bool,
    /// What it answers.
    pub answers: Option<Answered>,
}

/// What an utterance answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The message.
    pub message: Snowflake,
    /// Its author; none if it is gone.
    pub by: Option<Sender>,
}

/// What a message is for us. An edited one is read in the same way.
pub fn classify(told: &RawMessage<'_>, us: &OwnIds<'_>, known: &impl NameLookup) -> Incoming {
    if told.flags & (EPHEMERAL | LOADING) != 0 {
        return Incoming::Ignored(IgnoreReason::NotPublic);
    }
    if !is_conversation(told.kind) {
        return Incoming::Ignored(IgnoreReason::NotConversation);
    }
    let from = match sender(&told.origin, us) {
        Sender::Ours(name) => return Incoming::Ours(name),
        Sender::System => return Incoming::Ignored(IgnoreReason::NotConversation),
        Sender::Other(author) => author,
    };
    let Some((text, own_words)) = readable_text(told, known) else { return Incoming::Ignored(IgnoreReason::Empty) };
    let mut mentions: Vec<Arc<str>> =
        told.mentions.iter().filter(|user| user.id != us.bot).map(|user| user.id.person().as_str().into()).collect();
    mentions.sort();
    mentions.dedup();
    Incoming::Message(IncomingMessage {
        id: told.id,
        from,
        text,
        own_words,
        mentions,
        mentions_bot: told.mentions.iter().any(|user| user.id == us.bot),
        answers: told
            .answers
            .as_ref()
            .map(|answers| Answered { message: answers.message, by: answers.origin.as_ref().map(|origin| sender(origin, us)) }),
    })
}

/// What a message says, whoever it is by: what a model reads, and what of it was really written; none: there is nothing to read.
pub fn readable_text(told: &RawMessage<'_>, known: &impl NameLookup) -> Option<(String, String)> {
    let reader = Reader { mentions: &told.mentions, known };
    let (written, own_words) = reader.read(told.content.trim());
    let mut lines = vec![written];
    lines.extend(attached::lines(told, |content| reader.read(content).0));
    lines.retain(|line| !line.trim().is_empty());
    (!lines.is_empty()).then(|| (cut(&lines.join("\n"), MOST_CHARS), cut(&own_words, MOST_CHARS)))
}

/// Whether messages of this type are talk: plain ones, replies, and what a bot answers to a command.
///
/// A thread's first message (21) repeats one that was heard where it was said; a forum post's is a plain one.
pub const fn is_conversation(kind: u8) -> bool {
    matches!(kind, 0 | 19 | 20 | 23)
}

/// Whose a message is.
///
/// A webhook's author is no user, whatever name and picture it took; a webhook that our application owns is ours even if we forgot it.
pub fn sender(origin: &Origin<'_>, us: &OwnIds<'_>) -> Sender {
    let author = &origin.author;
    if author.id == us.bot {
        return Sender::Ours(None);
    }
    if let Some(webhook) = origin.webhook
        && (us.webhooks.contains(&webhook) || origin.application == Some(us.application))
    {
        return Sender::Ours(Some(author.username.to_owned()));
    }
    if author.system {
        return Sender::System;
    }
    let role = if author.bot || origin.webhook.is_some() { Role::Bot } else { Role::Person };
    Sender::Other(Author { id: author.id.person().as_str().into(), name: author.shown().into(), role })
}

impl User<'_> {
    /// The name that people in this guild see, made plain.
    pub fn shown(&self) -> String {
        shown([self.nick, self.global_name, Some(self.username)].into_iter().flatten(), self.id)
    }
}

/// Makes marks words.
struct Reader<'a, K> {
    mentions: &'a [User<'a>],
    known: &'a K,
}

impl<K: NameLookup> Reader<'_, K> {
    /// The text to read, and what of it was written.
    fn read(&self, content: &str) -> (String, String) {
        let mut text = String::with_capacity(content.len());
        let mut own = String::with_capacity(content.len());
        for piece in pieces(content) {
            match piece {
                Piece::Mark(raw, mark) => {
                    text.push_str(&self.words(raw, &mark));
                    own.push(NOT_WRITTEN);
                }
                other => {
                    text.push_str(other.text());
                    own.push_str(other.text());
                }
            }
        }
        (undefused(&text), undefused(&own))
    }

    fn words(&self, raw: &str, mark: &Mark<'_>) -> String {
        match mark {
            Mark::User(id) => {
                let told = self.mentions.iter().find(|user| user.id == *id).map(User::shown);
                format!("@{}", told.or_else(|| self.known.person(*id).and_then(seen)).as_deref().unwrap_or("unknown-user"))
            }
            Mark::Role(id) => {
                let name = self.known.role(*id).and_then(seen);
                // Discord's own role for all is called so, with its sign.
                format!("@{}", name.as_deref().map_or("unknown-role", |name| name.trim_start_matches('@')))
            }
            Mark::Channel(id) => format!("#{}", self.known.channel(*id).and_then(seen).as_deref().unwrap_or("unknown")),
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

/// A name that is known, made plain, if that leaves anything.
fn seen(name: String) -> Option<String> {
    Some(plain(&name)).filter(|name| !name.is_empty())
}

/// A moment in UTC, as exact as its style; none if it lies outside of the calendar.
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

/// Without what `said` puts into words that would call everybody.
fn undefused(written: &str) -> String {
    written.replace(&format!("@{MENTION_BREAKER}"), "@").replace(&format!("<{MENTION_BREAKER}"), "<")
}

/// The beginning of a text, and a sign that it goes on.
fn cut(text: &str, most_chars: usize) -> String {
    match text.char_indices().nth(most_chars) {
        Some((end, _)) => format!("{} […]", &text[..end]),
        None => text.to_owned(),
    }
}
