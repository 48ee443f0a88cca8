//! Parses interactions: the user, the channel and the requested action.
//!
//! Discord fills in interactions according to the registered commands. Those may be older or newer than this server, so every field is checked.

mod payload;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::Value;
use twilight_model::application::command::CommandType;
use twilight_model::application::interaction::InteractionType;
use twilight_model::channel::ChannelType;
use twilight_model::guild::Permissions;

use self::payload::{GivenOption, Payload};
use super::memory::MemoryOptions;
use super::menus::{self, OwnRequest, RoleList, RoleOptions, SetupRequest};
use super::registered::{self as name, CHANNEL_TYPES, Level};
use crate::domain::id::GuildId;
use crate::outgoing::{CONFIRM_CALL, DECLINE_CALL, HELP_FOR};
use crate::permissions::{self, Need, Place};
use crate::ports::inbound_events::ChannelRef;
use crate::snowflake::Snowflake;
use crate::wire;

/// The beginning of the id of a button that cancels a reminder. Its number follows.
pub(super) const CANCEL_REMINDER: &str = "reminder:";

/// The limit of characters used of typed text, which is what Discord allows in an option with autocomplete.
const LONGEST_TYPED: usize = 100;
/// How long a button confirms the command that showed it.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(15 * 60);

#[derive(Debug)]
pub(super) struct Interaction {
    pub handle: Handle,
    pub person: Person,
    /// The channel in which the interaction was used.
    pub here: ChannelContext,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Person {
    pub id: Snowflake,
    /// The name that others in the channel see, without control characters.
    pub name: Arc<str>,
    pub roles: Vec<Snowflake>,
}

/// The ids and the token that are needed to answer an interaction.
#[derive(Debug)]
pub(super) struct Handle {
    pub id: Snowflake,
    pub application: Snowflake,
    /// A secret: anyone who has it can answer the interaction.
    pub token: SecretString,
    /// The language of the user, as Discord names it.
    pub language: String,
    /// The language of answers that all people in the channel see: the guild's, or the user's in a direct message.
    pub channel_language: String,
}

#[derive(Debug)]
pub(super) enum Action {
    Command(Command),
    /// A user wants to ask a companion about a message.
    Ask(Box<wire::Message>),
    /// A user chose the companion to ask about a message. `question` is the interaction that requested it.
    Choose {
        question: Snowflake,
        companion: String,
    },
    /// A user wants to read the help offered to `person`.
    Help {
        person: Snowflake,
    },
    /// A user types a companion's name (autocomplete).
    Typing(Typing),
    /// Not supported. `choices` is true if Discord waits for choices.
    Unknown {
        choices: bool,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    Status {
        companion: Option<String>,
    },
    Join {
        companion: String,
        to: Option<ChannelContext>,
    },
    Leave {
        companion: String,
        from: Option<ChannelContext>,
    },
    Talkativeness {
        level: Option<Level>,
        quiet_hours: Option<String>,
        companion: Option<String>,
    },
    Pause {
        companion: Option<String>,
        on: bool,
    },
    Why {
        companion: Option<String>,
    },
    Recall {
        words: String,
    },
    Memory(MemoryOptions),
    /// Lists the user's reminders, after the one with this number was cancelled.
    Reminders {
        cancel: Option<u64>,
    },
    /// Shows the user's time zone, or sets it.
    TimeZone {
        zone: Option<String>,
    },
    Companion {
        companion: Option<String>,
    },
    SetUp(SetupRequest),
    Roles(RoleOptions),
    Own(OwnRequest),
    ForgetMe {
        sure: bool,
    },
    Stop {
        companion: Option<String>,
    },
    /// Lets a companion speak next. `None`: everybody once.
    Next {
        companion: Option<String>,
    },
    Clear {
        sure: bool,
    },
    /// Replaces the newest statement of a companion. `message`: the statement that the user chose; it must be the newest.
    Again {
        message: Option<Snowflake>,
    },
    /// Makes companions ignore the user, who used the menu of a user: `is_own` if it was the user's own.
    PauseForMe {
        is_own: bool,
    },
    /// Explains what companions did about a message.
    WhyOf {
        message: Snowflake,
    },
    /// Removes a message from memory. `author`: its author, unless a webhook posted it.
    ForgetMessage {
        message: Snowflake,
        author: Option<Snowflake>,
    },
    IgnoreMe {
        on: bool,
    },
    ExportMe,
    /// Brings companions into the call of a voice channel. `None`: the user's voice channel.
    VoiceJoin {
        to: Option<ChannelContext>,
    },
    VoiceLeave,
    VoiceStatus,
    /// Whether the words of voice notes in the channel are recognised.
    VoiceNotes {
        on: bool,
    },
    Say {
        companion: String,
        text: String,
    },
    About,
    Help,
    /// Confirms or declines the call of a tool with this number.
    DecideCall {
        call: u64,
        confirm: bool,
    },
}

/// A companion's name that a user is typing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Typing {
    /// The command that has the name as an option.
    pub command: String,
    pub typed: String,
    /// The chosen channel. `None`: the channel in which the command is typed.
    pub at: Option<ChannelContext>,
}

/// A channel, with the permissions in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChannelContext {
    pub channel: Snowflake,
    /// `None` in a direct message.
    pub guild: Option<Snowflake>,
    pub kind: Option<ChannelType>,
    /// A thread's parent channel.
    pub parent: Option<Snowflake>,
    pub is_locked: bool,
    /// The permissions of the user of the command.
    pub user_permissions: Permissions,
    /// The permissions of the bot, if Discord sent them.
    pub bot_permissions: Option<Permissions>,
}

/// An interaction that cannot be answered, because a required field is missing or invalid.
#[derive(Debug, thiserror::Error)]
#[error("an interaction cannot be parsed: {0}")]
pub(super) struct InvalidInteraction(String);

pub(super) fn read(text: &str) -> Result<Interaction, InvalidInteraction> {
    // The error must not quote the text, because it contains a token.
    let invalid = |error: serde_json::Error| InvalidInteraction(format!("{:?} in column {}", error.classify(), error.column()));
    let payload: Payload = serde_json::from_str(text).map_err(invalid)?;
    let handle = Handle {
        id: payload.id,
        application: payload.application_id,
        token: payload.token.clone(),
        language: payload.locale.clone(),
        channel_language: payload.guild_locale.clone().unwrap_or_else(|| payload.locale.clone()),
    };
    let person = payload.person().ok_or_else(|| InvalidInteraction("it has no user".to_owned()))?;
    let here = payload.here().ok_or_else(|| InvalidInteraction("it has no channel".to_owned()))?;
    let kind = InteractionType::try_from(payload.kind).ok();
    let unknown = Action::Unknown { choices: kind == Some(InteractionType::ApplicationCommandAutocomplete) };
    let action = kind.and_then(|kind| payload.action(kind, &here)).unwrap_or(unknown);
    Ok(Interaction { handle, person, here, action })
}

impl Command {
    /// The label in metrics.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Status { .. } => name::STATUS,
            Self::Join { .. } => name::JOIN,
            Self::Leave { .. } => name::LEAVE,
            Self::Talkativeness { .. } => name::TALKATIVENESS,
            Self::Pause { .. } => name::PAUSE,
            Self::Why { .. } => name::WHY,
            Self::Recall { .. } => name::RECALL,
            Self::Memory(_) => name::MEMORY,
            Self::Reminders { .. } => name::REMINDERS,
            Self::TimeZone { .. } => name::TIME_ZONE,
            Self::Companion { .. } => name::PROFILE,
            Self::SetUp(_) => name::SETUP,
            Self::Roles(_) => name::ROLES,
            Self::Own(_) => name::OWN,
            Self::ForgetMe { .. } => "forget_me",
            Self::Next { .. } => name::NEXT,
            Self::Stop { .. } => name::STOP,
            Self::Clear { .. } => name::CLEAR,
            Self::Again { .. } => name::AGAIN,
            Self::PauseForMe { .. } => "pause_for_me",
            Self::WhyOf { .. } => "why_of",
            Self::ForgetMessage { .. } => "forget_message",
            Self::IgnoreMe { .. } => "ignore_me",
            Self::ExportMe => "export_me",
            Self::VoiceJoin { .. } => "voice_join",
            Self::VoiceLeave => "voice_leave",
            Self::VoiceStatus => "voice_status",
            Self::VoiceNotes { .. } => "voice_notes",
            Self::Say { .. } => name::SAY,
            Self::About => name::ABOUT,
            Self::Help => name::HELP,
            Self::DecideCall { .. } => "call",
        }
    }
}

impl ChannelContext {
    /// The channel's guild. A direct message is a guild of its own.
    pub fn guild_id(&self) -> GuildId {
        self.guild.map_or_else(|| self.channel.direct_guild(), Snowflake::guild)
    }

    pub fn channel_ref(&self) -> ChannelRef {
        let (guild, channel) = (self.guild_id(), self.channel.channel());
        ChannelRef { guild, channel, parent: self.parent.map(Snowflake::channel) }
    }

    pub const fn is_direct(&self) -> bool {
        self.guild.is_none()
    }

    pub fn is_thread(&self) -> bool {
        self.kind.is_some_and(ChannelType::is_thread)
    }

    /// Whether the channel has calls.
    pub fn is_voice(&self) -> bool {
        self.kind.is_some_and(permissions::is_voice)
    }

    pub const fn is_stage(&self) -> bool {
        matches!(self.kind, Some(ChannelType::GuildStageVoice))
    }

    /// The first permission that the bot lacks for the channel's call. `None` if it lacks none, or its permissions are unknown.
    pub fn missing_in_call(&self) -> Option<Need> {
        permissions::missing_in_call(self.bot_permissions?, self.is_stage())
    }

    /// Whether the thread is private, so the bot may see it only after being added to it.
    pub fn is_hidden(&self) -> bool {
        let sees_all = Permissions::MANAGE_THREADS | Permissions::ADMINISTRATOR;
        self.kind == Some(ChannelType::PrivateThread)
            && !self.bot_permissions.is_some_and(|permissions| permissions.intersects(sees_all))
    }

    /// Whether messages in the channel are written in posts.
    pub const fn is_forum(&self) -> bool {
        matches!(self.kind, Some(ChannelType::GuildForum | ChannelType::GuildMedia))
    }

    /// Whether companions can be members of the channel. They cannot be members of categories, for example.
    pub fn can_have_members(&self) -> bool {
        self.kind.is_none_or(|kind| kind == ChannelType::Private || CHANNEL_TYPES.contains(&kind))
    }

    /// Whether the user has this permission. In a direct message, users have all permissions.
    const fn user_may(&self, permission: Permissions) -> bool {
        self.is_direct() || self.user_permissions.intersects(Permissions::ADMINISTRATOR.union(permission))
    }

    /// Whether the user may read earlier messages.
    pub const fn user_may_read_history(&self) -> bool {
        self.user_may(Permissions::READ_MESSAGE_HISTORY)
    }

    /// Whether the user may change the members of the channel.
    pub const fn user_may_change(&self) -> bool {
        self.user_may(Permissions::MANAGE_CHANNELS)
    }

    /// Whether the user may delete others' messages.
    pub const fn user_may_manage_messages(&self) -> bool {
        !self.is_direct() && self.user_may(Permissions::MANAGE_MESSAGES)
    }

    /// Whether the user may manage the server.
    pub const fn user_may_manage_server(&self) -> bool {
        self.user_may(Permissions::MANAGE_GUILD)
    }

    /// Whether the user sees the channel.
    pub const fn user_may_see(&self) -> bool {
        self.user_may(Permissions::VIEW_CHANNEL)
    }

    /// Whether the user may write messages in the channel. `/tertulia say` requires it.
    pub fn user_may_write(&self) -> bool {
        self.user_may(if self.is_thread() { Permissions::SEND_MESSAGES_IN_THREADS } else { Permissions::SEND_MESSAGES })
    }

    /// The permissions that the bot lacks in the channel. `None` if they are unknown.
    pub fn missing(&self) -> Option<Vec<Need>> {
        if self.is_direct() {
            return Some(Vec::new());
        }
        let bot_permissions = self.bot_permissions?;
        let place = match self.is_thread() {
            true => Place::Thread { is_locked: self.is_locked },
            false if self.is_voice() => Place::Voice,
            false => Place::Text,
        };
        Some(permissions::missing(bot_permissions, place))
    }
}

/// The prefix of a list's `custom_id`. The id of the interaction follows.
const QUESTION: &str = "ask:";

/// The `custom_id` of the list from which the user chooses a companion for this question.
pub(super) fn list_of(question: Snowflake) -> String {
    format!("{QUESTION}{question}")
}

impl Payload {
    fn person(&self) -> Option<Person> {
        let member = self.member.as_ref();
        let user = member.and_then(|member| member.user.as_ref()).or(self.user.as_ref())?;
        let roles = member.map(|member| member.roles.clone()).unwrap_or_default();
        Some(Person { id: user.id, name: user.shown(member.and_then(|member| member.nick.as_deref())).into(), roles })
    }

    fn here(&self) -> Option<ChannelContext> {
        let channel_payload = self.channel.as_ref();
        let channel = self.channel_id.or(channel_payload.map(|channel| channel.id))?;
        let user_permissions = self.member.as_ref().and_then(|member| member.permissions);
        let of_payload = |channel: &wire::Channel| ChannelContext::of(channel, self.guild_id);
        let context = channel_payload.map(of_payload).unwrap_or(ChannelContext {
            channel,
            guild: self.guild_id,
            kind: None,
            parent: None,
            is_locked: false,
            user_permissions: Permissions::empty(),
            bot_permissions: None,
        });
        Some(ChannelContext {
            channel,
            user_permissions: user_permissions.unwrap_or(Permissions::empty()),
            bot_permissions: self.app_permissions,
            ..context
        })
    }

    /// The requested action. `None` if it is not supported.
    fn action(mut self, kind: InteractionType, here: &ChannelContext) -> Option<Action> {
        // Bots cannot be in groups.
        if here.kind == Some(ChannelType::Group) {
            return None;
        }
        let data = self.data.as_mut()?;
        if kind == InteractionType::ModalSubmit {
            let request = menus::read_form(&data.custom_id, |name| data.typed(name))?;
            return Some(Action::Command(Command::Own(request)));
        }
        if kind == InteractionType::MessageComponent {
            if let Some(person) = data.custom_id.strip_prefix(HELP_FOR) {
                return Some(Action::Help { person: Snowflake::of_person(person)? });
            }
            for (prefix, confirm) in [(CONFIRM_CALL, true), (DECLINE_CALL, false)] {
                if let Some(call) = data.custom_id.strip_prefix(prefix) {
                    return Some(Action::Command(Command::DecideCall { call: call.parse().ok()?, confirm }));
                }
            }
            // A question that is too old is asked again.
            let is_fresh = |question: &str| {
                question.parse().is_ok_and(|question: Snowflake| self.id.time().since(question.time()) < CONFIRMED_WITHIN)
            };
            if let Some(question) = data.custom_id.strip_prefix(name::SURE_FORGET) {
                return Some(Action::Command(Command::ForgetMe { sure: is_fresh(question) }));
            }
            if let Some(question) = data.custom_id.strip_prefix(name::SURE_CLEAR) {
                return Some(Action::Command(Command::Clear { sure: is_fresh(question) }));
            }
            if let Some(number) = data.custom_id.strip_prefix(CANCEL_REMINDER) {
                return Some(Action::Command(Command::Reminders { cancel: Some(number.parse().ok()?) }));
            }
            if let Some(request) = menus::read(&data.custom_id, data.values.as_deref().unwrap_or_default(), self.id.time()) {
                return Some(Action::Command(Command::SetUp(request)));
            }
            if let Some(request) = menus::read_removal(&data.custom_id, self.id.time()) {
                return Some(Action::Command(Command::Own(request)));
            }
            let question = data.custom_id.strip_prefix(QUESTION)?.parse().ok()?;
            let [companion] = data.values.as_deref()? else { return None };
            return Some(Action::Choose { question, companion: cut(companion) });
        }
        if data.kind == Some(CommandType::Message) && kind == InteractionType::ApplicationCommand {
            let message = data.resolved.as_mut()?.messages.as_mut()?.remove(&data.target_id?)?;
            return match data.name.as_str() {
                name::ASK => Some(Action::Ask(Box::new(message))),
                name::WHY_OF => Some(Action::Command(Command::WhyOf { message: message.id })),
                name::ANSWER_AGAIN => Some(Action::Command(Command::Again { message: Some(message.id) })),
                name::FORGET_MESSAGE => {
                    let author = message.webhook_id.is_none().then_some(message.author.id);
                    Some(Action::Command(Command::ForgetMessage { message: message.id, author }))
                }
                _ => None,
            };
        }
        let data = self.data.as_ref()?;
        if data.kind == Some(CommandType::User) && kind == InteractionType::ApplicationCommand {
            let is_own = data.target_id? == self.person()?.id;
            return (data.name == name::PAUSE_FOR_ME).then_some(Action::Command(Command::PauseForMe { is_own }));
        }
        if data.name != name::TERTULIA || data.kind.is_some_and(|kind| kind != CommandType::ChatInput) {
            return None;
        }
        let (path, options) = subcommand(&data.options);
        let chosen = |name: &str| self.chosen(&Options(options), name);
        match kind {
            InteractionType::ApplicationCommand => parse_command(&path, &Options(options), chosen).map(Action::Command),
            InteractionType::ApplicationCommandAutocomplete => {
                let focused = options.iter().find(|option| option.focused && option.name == name::COMPANION)?;
                let typed = cut(focused.value.as_str().unwrap_or_default());
                let command = (*path.first()?).to_owned();
                Some(Action::Typing(Typing { command, typed, at: chosen(name::WHERE).ok().flatten() }))
            }
            _ => None,
        }
    }

    /// The channel chosen in an option, if any.
    fn chosen(&self, options: &Options<'_>, name: &str) -> Result<Option<ChannelContext>, Unsupported> {
        let Some(value) = options.value(name) else { return Ok(None) };
        let id: Snowflake = value.as_str().and_then(|id| id.parse().ok()).ok_or(Unsupported)?;
        let resolved = self.data.as_ref().and_then(|data| data.resolved.as_ref());
        // Discord resolves every chosen channel, and only channels that the user can see.
        let channel =
            resolved.and_then(|resolved| resolved.channels.get(&id)).filter(|channel| channel.id == id).ok_or(Unsupported)?;
        let guild = self.guild_id.ok_or(Unsupported)?;
        Ok(Some(ChannelContext::of(channel, Some(guild))))
    }
}

/// The interaction is not supported.
struct Unsupported;

struct Options<'a>(&'a [GivenOption]);

impl<'a> Options<'a> {
    fn value(&self, name: &str) -> Option<&'a Value> {
        self.0.iter().find(|option| option.name == name).map(|option| &option.value)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value(name).and_then(Value::as_str).map(cut)
    }

    /// The named companion. An empty text counts as none.
    fn companion(&self) -> Option<String> {
        self.text(name::COMPANION).filter(|typed| !typed.is_empty())
    }

    /// The value of the switch, on by default. `None` if the value is invalid.
    fn switch(&self) -> Option<bool> {
        self.on_or_off(name::SWITCH).map(|on| on.unwrap_or(true))
    }

    /// The value of an option that is on or off, if it is given. `None` if the value is invalid.
    fn on_or_off(&self, name: &str) -> Option<Option<bool>> {
        match self.value(name).map(Value::as_str) {
            None => Some(None),
            Some(Some(name::ON)) => Some(Some(true)),
            Some(Some(name::OFF)) => Some(Some(false)),
            _ => None,
        }
    }
}

/// The names of a subcommand, after that of its group, and its options. Only options have values.
fn subcommand(mut options: &[GivenOption]) -> (Vec<&str>, &[GivenOption]) {
    let mut path = Vec::new();
    while let [inner] = options
        && inner.value.is_null()
    {
        path.push(inner.name.as_str());
        options = &inner.options;
    }
    (path, options)
}

fn parse_command(
    path: &[&str],
    options: &Options<'_>,
    chosen: impl Fn(&str) -> Result<Option<ChannelContext>, Unsupported>,
) -> Option<Command> {
    let companion = options.companion();
    Some(match path {
        [name::STATUS] => Command::Status { companion },
        [name::JOIN] => Command::Join { companion: companion?, to: chosen(name::WHERE).ok()? },
        [name::LEAVE] => Command::Leave { companion: companion?, from: chosen(name::WHERE).ok()? },
        [name::TALKATIVENESS] => {
            let level = match options.value(name::LEVEL) {
                Some(level) => Some(Level::named(level.as_str()?)?),
                None => None,
            };
            let quiet_hours = options.value(name::QUIET_HOURS).and_then(Value::as_str).map(str::to_owned);
            Command::Talkativeness { level, quiet_hours, companion }
        }
        [name::PAUSE] => Command::Pause { companion, on: options.switch()? },
        [name::WHY] => Command::Why { companion },
        [name::RECALL] => Command::Recall { words: options.value(name::WORDS)?.as_str()?.trim().to_owned() },
        [name::MEMORY] => Command::Memory(MemoryOptions {
            note: options.value(name::NOTE).and_then(Value::as_u64),
            text: options.value(name::TEXT).and_then(Value::as_str).map(str::to_owned),
            me: options.on_or_off(name::ME)?,
            server: options.on_or_off(name::SERVER)?,
            across: options.on_or_off(name::ACROSS)?,
        }),
        [name::REMINDERS] => Command::Reminders { cancel: None },
        [name::TIME_ZONE] => Command::TimeZone { zone: options.text(name::ZONE).filter(|zone| !zone.is_empty()) },
        [name::PROFILE] => Command::Companion { companion },
        [name::SETUP] => Command::SetUp(SetupRequest::Begin),
        [name::ROLES] => Command::Roles(RoleOptions {
            list: match options.value(name::LIST).map(Value::as_str) {
                None => None,
                Some(Some(name::MAY_ADDRESS)) => Some(RoleList::MayAddress),
                Some(Some(name::NEVER_ANSWERED)) => Some(RoleList::NeverAnswered),
                Some(_) => return None,
            },
            role: match options.value(name::ROLE) {
                None => None,
                Some(role) => Some(role.as_str()?.parse().ok()?),
            },
            on: options.switch()?,
        }),
        [name::FORGET, name::ME] => Command::ForgetMe { sure: false },
        [name::NEXT] => Command::Next { companion },
        [name::STOP] => Command::Stop { companion },
        [name::CLEAR] => Command::Clear { sure: false },
        [name::AGAIN] => Command::Again { message: None },
        [name::IGNORE, name::ME] => Command::IgnoreMe { on: options.switch()? },
        [name::VOICE, name::JOIN] => Command::VoiceJoin { to: chosen(name::WHERE).ok()? },
        [name::VOICE, name::LEAVE] => Command::VoiceLeave,
        [name::VOICE, name::STATUS] => Command::VoiceStatus,
        [name::VOICE, name::NOTES] => Command::VoiceNotes { on: options.on_or_off(name::SWITCH)?? },
        [name::OWN, name::MAKE] => Command::Own(OwnRequest::Make),
        [name::OWN, name::CHANGE] => Command::Own(OwnRequest::Change { companion: companion? }),
        [name::OWN, name::REMOVE] => Command::Own(OwnRequest::Remove { companion: companion?, sure: false }),
        [name::EXPORT_ME] => Command::ExportMe,
        [name::SAY] => {
            let text = options.value(name::TEXT)?.as_str()?.trim();
            let text = text.chars().take(name::LONGEST_SAID.into()).collect();
            Command::Say { companion: companion?, text }
        }
        [name::ABOUT] => Command::About,
        [name::HELP] => Command::Help,
        _ => return None,
    })
}

impl ChannelContext {
    fn of(channel: &wire::Channel, guild: Option<Snowflake>) -> Self {
        Self {
            channel: channel.id,
            guild,
            kind: channel.kind,
            parent: channel.parent(),
            is_locked: channel.is_locked(),
            user_permissions: channel.permissions.unwrap_or(Permissions::empty()),
            bot_permissions: channel.app_permissions,
        }
    }
}

fn cut(text: &str) -> String {
    text.trim().chars().take(LONGEST_TYPED).collect()
}
