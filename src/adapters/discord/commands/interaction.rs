//! Reads interactions: who asks what, and where.
//!
//! Discord fills them in by what was registered, yet whatever comes is read with care: what was registered may be older or newer than this.

mod told;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use secrecy::SecretString;
use serde_json::Value;

use self::told::{Channel, Given, Told};
use super::registered::{self as name, Level};
use crate::adapters::discord::names::shown;
use crate::adapters::discord::permissions::{self, Need, Permissions};
use crate::adapters::discord::snowflake::Snowflake;
use crate::adapters::discord::wire;
use crate::domain::id::GuildId;
use crate::ports::inbound_events::ChannelRef;

/// As much of what somebody typed as is looked at, in characters: what Discord lets them type into an option that completes itself.
const LONGEST_TYPED: usize = 100;

/// What somebody asks for.
#[derive(Debug)]
pub(super) struct Interaction {
    pub handle: Handle,
    /// Who asks.
    pub person: Person,
    /// Where they ask.
    pub here: Where,
    pub what: What,
}

/// Somebody who uses a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Person {
    pub id: Snowflake,
    /// As people there see it, made plain.
    pub name: Arc<str>,
}

/// With what an interaction is answered.
#[derive(Debug)]
pub(super) struct Handle {
    pub id: Snowflake,
    pub application: Snowflake,
    /// Whoever has it can answer.
    pub token: SecretString,
}

#[derive(Debug)]
pub(super) enum What {
    /// They used a command.
    Command(Command),
    /// They want a companion asked about a message.
    Ask(Box<wire::Message>),
    /// They choose who is asked about a message: by the interaction that wanted it.
    Choose { question: Snowflake, companion: String },
    /// They type a companion's name.
    Typing(Typing),
    /// Nothing that is known here; this tells whether choices are waited for.
    Unknown { choices: bool },
}

/// A command, with its options.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    Status { companion: Option<String> },
    Join { companion: String, to: Option<Where> },
    Leave { companion: String, from: Option<Where> },
    Talkativeness { level: Level, companion: Option<String> },
    Pause { companion: Option<String>, on: bool },
    Why { companion: Option<String> },
    ForgetMe { sure: bool },
    IgnoreMe { on: bool },
    Say { companion: String, text: String },
    Help,
}

/// A companion's name that is not finished yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Typing {
    /// In which command.
    pub command: &'static str,
    pub typed: String,
    /// The channel that was chosen; none: this one.
    pub at: Option<Where>,
}

/// A channel, with what may be done there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Where {
    pub channel: Snowflake,
    /// None in a direct message.
    pub guild: Option<Snowflake>,
    /// What kind of channel (Discord's documentation, "Channels Resource", "Channel Types").
    pub kind: Option<u8>,
    /// The channel that a thread is in.
    pub parent: Option<Snowflake>,
    pub is_locked: bool,
    /// What whoever asks may do there.
    pub theirs: Permissions,
    /// What the bot may do there, if that was told.
    pub ours: Option<Permissions>,
}

/// Why nothing can be made of an interaction, not even an answer.
#[derive(Debug, thiserror::Error)]
#[error("an interaction cannot be read: {0}")]
pub(super) struct Unreadable(String);

/// Reads an interaction.
pub(super) fn read(text: &str) -> Result<Interaction, Unreadable> {
    // What the parser says quotes nothing: there is a token in it.
    let unreadable = |error: serde_json::Error| Unreadable(format!("{:?} in column {}", error.classify(), error.column()));
    let told: Told = serde_json::from_str(text).map_err(unreadable)?;
    let handle = Handle { id: told.id, application: told.application_id, token: told.token.clone() };
    let person = told.person().ok_or_else(|| Unreadable("nobody asks".to_owned()))?;
    let here = told.here().ok_or_else(|| Unreadable("it comes from nowhere".to_owned()))?;
    let kind = told.kind;
    let what = told.what(&here).unwrap_or(What::Unknown { choices: kind == AUTOCOMPLETE });
    Ok(Interaction { handle, person, here, what })
}

impl Command {
    /// What it is called in measurements.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Status { .. } => name::STATUS,
            Self::Join { .. } => name::JOIN,
            Self::Leave { .. } => name::LEAVE,
            Self::Talkativeness { .. } => name::TALKATIVENESS,
            Self::Pause { .. } => name::PAUSE,
            Self::Why { .. } => name::WHY,
            Self::ForgetMe { .. } => "forget_me",
            Self::IgnoreMe { .. } => "ignore_me",
            Self::Say { .. } => name::SAY,
            Self::Help => name::HELP,
        }
    }
}

impl Where {
    /// The guild that it is in, or is by itself.
    pub fn guild_id(&self) -> GuildId {
        self.guild.map_or_else(|| self.channel.direct_guild(), Snowflake::guild)
    }

    /// Where it is, for the core.
    pub fn channel_ref(&self) -> ChannelRef {
        let (guild, channel) = (self.guild_id(), self.channel.channel());
        ChannelRef { guild, channel, parent: self.parent.map(Snowflake::channel) }
    }

    pub const fn is_direct(&self) -> bool {
        self.guild.is_none()
    }

    pub const fn is_thread(&self) -> bool {
        matches!(self.kind, Some(10..=12))
    }

    /// Whether only those who were called into it see it.
    const fn is_private_thread(&self) -> bool {
        matches!(self.kind, Some(12))
    }

    /// Whether the bot may have to be called into it to see it.
    pub fn is_hidden(&self) -> bool {
        let sees = |ours: Permissions| ours.contains(Permissions::MANAGE_THREADS) || ours.contains(Permissions::ADMINISTRATOR);
        self.is_private_thread() && !self.ours.is_some_and(sees)
    }

    /// Whether its talk is in posts.
    pub const fn is_forum(&self) -> bool {
        matches!(self.kind, Some(15 | 16))
    }

    /// Whether companions can live there at all: not in categories, and the like.
    pub const fn holds_talk(&self) -> bool {
        matches!(self.kind, None | Some(0..=2 | 5 | 10..=13 | 15 | 16))
    }

    /// Whether whoever asks may say who lives there, and how. In a direct message that is theirs to say.
    pub const fn is_theirs_to_change(&self) -> bool {
        self.is_direct() || self.theirs.contains(Permissions::ADMINISTRATOR) || self.theirs.contains(Permissions::MANAGE_CHANNELS)
    }

    /// Whether whoever asks may write messages there: only then they may say something by a command.
    pub const fn is_theirs_to_write_in(&self) -> bool {
        let needed = if self.is_thread() { Permissions::SEND_MESSAGES_IN_THREADS } else { Permissions::SEND_MESSAGES };
        self.is_direct() || self.theirs.contains(Permissions::ADMINISTRATOR) || self.theirs.contains(needed)
    }

    /// What the bot needs there and does not have; none: that is not known.
    pub fn missing(&self) -> Option<Vec<Need>> {
        if self.is_direct() {
            return Some(Vec::new());
        }
        let ours = self.ours?;
        let ours = if ours.contains(Permissions::ADMINISTRATOR) { Permissions::ALL } else { ours };
        let thread = self.is_thread().then(|| permissions::Thread {
            is_private: self.is_private_thread(),
            is_member: true,
            is_locked: self.is_locked,
        });
        let channel = permissions::Channel { overwrites: &[], is_voice: matches!(self.kind, Some(2 | 13)), thread };
        // Whoever asks uses a command.
        Some(permissions::missing(ours, &channel, true))
    }
}

const APPLICATION_COMMAND: u8 = 2;
const MESSAGE_COMPONENT: u8 = 3;
const AUTOCOMPLETE: u8 = 4;
/// What the list is called in which somebody chooses who is asked about a message; the number of that interaction follows.
const QUESTION: &str = "ask:";

/// The name of the list in which somebody chooses who is asked, for this interaction.
pub(super) fn list_of(question: Snowflake) -> String {
    format!("{QUESTION}{question}")
}

impl Told {
    fn person(&self) -> Option<Person> {
        let member = self.member.as_ref();
        let user = member.and_then(|member| member.user.as_ref()).or(self.user.as_ref())?;
        let names = [member.and_then(|member| member.nick.as_deref()), user.global_name.as_deref(), user.username.as_deref()];
        Some(Person { id: user.id, name: shown(names.into_iter().flatten(), user.id).into() })
    }

    fn here(&self) -> Option<Where> {
        let told = self.channel.as_ref();
        let channel = self.channel_id.or(told.map(|channel| channel.id))?;
        let theirs = self.member.as_ref().and_then(|member| member.permissions.as_ref());
        let of_kind = |channel: &Channel| Where::of(channel, self.guild_id);
        let known = told.map(of_kind).unwrap_or(Where {
            channel,
            guild: self.guild_id,
            kind: None,
            parent: None,
            is_locked: false,
            theirs: Permissions::NONE,
            ours: None,
        });
        Some(Where {
            channel,
            theirs: theirs.map_or(Permissions::NONE, |bits| bits.0),
            ours: self.app_permissions.as_ref().map(|bits| bits.0),
            ..known
        })
    }

    /// What they ask for; none: it is not known here.
    fn what(mut self, here: &Where) -> Option<What> {
        if here.kind == Some(GROUP_DIRECT) {
            return None;
        }
        let data = self.data.as_mut()?;
        if self.kind == MESSAGE_COMPONENT {
            let question = data.custom_id.strip_prefix(QUESTION)?.parse().ok()?;
            let [companion] = data.values.as_deref()? else { return None };
            return Some(What::Choose { question, companion: cut(companion) });
        }
        if data.name == name::ASK && data.kind == Some(name::MESSAGE) && self.kind == APPLICATION_COMMAND {
            let message = data.resolved.as_mut()?.messages.as_mut()?.remove(&data.target_id?)?;
            return Some(What::Ask(Box::new(message)));
        }
        let data = self.data.as_ref()?;
        if data.name != name::TERTULIA || data.kind.is_some_and(|kind| kind != name::CHAT_INPUT) {
            return None;
        }
        let (command, options) = one_of(&data.options)?;
        let chosen = |name: &str| self.chosen(&Options(options), name);
        match self.kind {
            APPLICATION_COMMAND => command_of(command, &Options(options), chosen).map(What::Command),
            AUTOCOMPLETE => {
                let focused = options.iter().find(|option| option.focused && option.name == name::COMPANION)?;
                let typed = cut(focused.value.as_str().unwrap_or_default());
                let command = name::SUBCOMMANDS.iter().find(|known| **known == command)?;
                Some(What::Typing(Typing { command, typed, at: chosen(name::WHERE).ok().flatten() }))
            }
            _ => None,
        }
    }

    /// The channel that was chosen in an option; none: none was.
    fn chosen(&self, options: &Options<'_>, name: &str) -> Result<Option<Where>, NotKnown> {
        let Some(value) = options.value(name) else { return Ok(None) };
        let id: Snowflake = value.as_str().and_then(|id| id.parse().ok()).ok_or(NotKnown)?;
        let resolved = self.data.as_ref().and_then(|data| data.resolved.as_ref());
        // Discord tells of every channel that was chosen, and of none that whoever asks has no business with.
        let channel =
            resolved.and_then(|resolved| resolved.channels.get(&id)).filter(|channel| channel.id == id).ok_or(NotKnown)?;
        let guild = self.guild_id.ok_or(NotKnown)?;
        Ok(Some(Where::of(channel, Some(guild))))
    }
}

/// A direct message between several people, where there is no bot.
const GROUP_DIRECT: u8 = 3;

/// What was asked for is not what is known here.
struct NotKnown;

struct Options<'a>(&'a [Given]);

impl<'a> Options<'a> {
    fn value(&self, name: &str) -> Option<&'a Value> {
        self.0.iter().find(|option| option.name == name).map(|option| &option.value)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value(name).and_then(Value::as_str).map(cut)
    }

    /// A companion that is named; nothing typed names none.
    fn companion(&self) -> Option<String> {
        self.text(name::COMPANION).filter(|typed| !typed.is_empty())
    }

    /// Whether something is switched on, which it is if nothing is said; none: it says something else.
    fn switch(&self) -> Option<bool> {
        match self.value(name::SWITCH).map(Value::as_str) {
            None | Some(Some(name::ON)) => Some(true),
            Some(Some(name::OFF)) => Some(false),
            _ => None,
        }
    }
}

/// The only subcommand, `forget me` as one, and its options.
fn one_of(options: &[Given]) -> Option<(&str, &[Given])> {
    let [chosen] = options else { return None };
    match chosen.name.as_str() {
        group @ (name::FORGET | name::IGNORE) => match chosen.options.as_slice() {
            [me] if me.name == name::ME => Some((group, &me.options)),
            _ => None,
        },
        name => Some((name, &chosen.options)),
    }
}

fn command_of(command: &str, options: &Options<'_>, chosen: impl Fn(&str) -> Result<Option<Where>, NotKnown>) -> Option<Command> {
    let companion = options.companion();
    Some(match command {
        name::STATUS => Command::Status { companion },
        name::JOIN => Command::Join { companion: companion?, to: chosen(name::WHERE).ok()? },
        name::LEAVE => Command::Leave { companion: companion?, from: chosen(name::WHERE).ok()? },
        name::TALKATIVENESS => Command::Talkativeness { level: Level::named(options.value(name::LEVEL)?.as_str()?)?, companion },
        name::PAUSE => Command::Pause { companion, on: options.switch()? },
        name::WHY => Command::Why { companion },
        name::FORGET => Command::ForgetMe { sure: options.value(name::SURE).and_then(Value::as_bool).unwrap_or_default() },
        name::IGNORE => Command::IgnoreMe { on: options.switch()? },
        name::SAY => {
            let text = options.value(name::TEXT)?.as_str()?.trim();
            let text = text.chars().take(name::LONGEST_SAID).collect();
            Command::Say { companion: companion?, text }
        }
        name::HELP => Command::Help,
        _ => return None,
    })
}

impl Where {
    fn of(channel: &Channel, guild: Option<Snowflake>) -> Self {
        let is_thread = matches!(channel.kind, Some(10..=12));
        Self {
            channel: channel.id,
            guild,
            kind: channel.kind,
            // Any other channel's parent is a category.
            parent: channel.parent_id.filter(|_| is_thread),
            is_locked: channel.thread_metadata.as_ref().is_some_and(|thread| thread.locked),
            theirs: channel.permissions.as_ref().map_or(Permissions::NONE, |bits| bits.0),
            ours: channel.app_permissions.as_ref().map(|bits| bits.0),
        }
    }
}

fn cut(text: &str) -> String {
    text.trim().chars().take(LONGEST_TYPED).collect()
}
