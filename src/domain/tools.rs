//! Tools that companions may call: whose right counts for a call, and what is on record of it (docs/design/tools.md).

pub mod arguments;
pub mod built_in;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::built_in::{BuiltIn, Poll};
use super::id::{CompanionId, GuildId, PersonId, Seq, Ticket, TurnId};
use super::message::{Message, Role, Sender};
use super::moment::Moment;
use super::named::named;
use super::trigger::Trigger;

/// How long a proposed call can be confirmed (docs/design/tools.md X-14).
pub const CONFIRMED_WITHIN: Duration = Duration::from_secs(120);
/// The kind of the event that a confirmed call has ended (docs/design/tools.md X-16).
pub const CONFIRMED_CALL: &str = "tool";
/// The longest arguments of a call, in bytes.
pub const MOST_ARGUMENTS: usize = 8 * 1024;
/// The longest arguments of a call that can be confirmed, in bytes. Whoever confirms it is shown all of them.
pub const MOST_PROPOSED: usize = 1_500;
/// The longest answer of a tool that is kept, in bytes.
pub const MOST_ANSWER: usize = 8 * 1024;

named! {
    /// What a call of a tool can change.
    pub enum Effect {
        /// Nothing, so that it may be repeated.
        ReadOnly = "read_only",
        /// The journal of the channel, in the batch with the call's answer. Without an answer on record, it changed nothing.
        Journal = "journal",
        /// Something outside this server. It is never repeated.
        Outside = "outside",
    }
}

named! {
    /// Who may cause a call.
    pub enum Allow {
        Everyone = "everyone",
        /// People with one of the roles, and operators.
        Roles = "roles",
        Operators = "operators",
        Nobody = "nobody",
    }
}

named! {
    /// Whether a person must confirm a call.
    pub enum Confirm {
        Never = "never",
        Always = "always",
    }
}

/// The right to a tool, as the operator sets it. Absent keys have defaults by what the tool can change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RightSetting {
    pub allow: Option<Allow>,
    /// The ids of the roles for `allow = "roles"`.
    pub roles: Vec<Arc<str>>,
    /// Who may confirm: ids of roles, and `cause` for the person who is the cause. Operators always may. Absent: `cause`.
    pub approvers: Option<Vec<Arc<str>>>,
    pub confirm: Option<Confirm>,
    /// The guilds in which it is offered. Absent: all.
    pub guilds: Option<BTreeSet<GuildId>>,
}

/// Whose right a call of a tool is, by the settings `tools.rights`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ToolRight")]
pub struct Right {
    /// Who may cause a call: `everyone`, `roles`, `operators` or `nobody`.
    #[schemars(with = "String")]
    pub allow: Allow,
    /// The ids of roles, if `allow` is `roles`.
    pub roles: Vec<Arc<str>>,
    /// Whether a person must confirm each call: `never` or `always`.
    #[schemars(with = "String")]
    pub confirm: Confirm,
    /// Who confirms it besides operators: ids of roles, and `cause` for the person who asked.
    #[serde(default)]
    pub approvers: Vec<Arc<str>>,
    /// The ids of the guilds in which it is offered. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guilds: Option<BTreeSet<GuildId>>,
}

/// The approver that stands for the cause of the reply.
pub const CAUSE: &str = "cause";

impl RightSetting {
    /// The right to a tool, where `usual` are the defaults.
    pub fn or(&self, (allow, confirm): (Allow, Confirm)) -> Right {
        Right {
            allow: self.allow.unwrap_or(allow),
            roles: self.roles.clone(),
            approvers: self.approvers.clone().unwrap_or_else(|| vec![CAUSE.into()]),
            confirm: self.confirm.unwrap_or(confirm),
            guilds: self.guilds.clone(),
        }
    }
}

impl Right {
    /// Whether the tool is offered in a guild.
    pub fn is_in(&self, guild: &GuildId) -> bool {
        self.guilds.as_ref().is_none_or(|guilds| guilds.contains(guild))
    }
}

impl Effect {
    /// The defaults of a right: read-only tools are for everyone, and so are built-in ones; others for operators, who confirm each call.
    pub const fn usual_right(self) -> (Allow, Confirm) {
        match self {
            Self::ReadOnly => (Allow::Everyone, Confirm::Never),
            Self::Journal | Self::Outside => (Allow::Operators, Confirm::Always),
        }
    }
}

/// A person whose message a reply answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Who {
    pub person: PersonId,
    /// For the console: who sent the message under this name. `None`: the name is only a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<Sender>,
}

/// The cause of a reply: whose right counts for its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The author of the address; otherwise the one person by whom all is that the reply answers. `None`: there is no such person.
    pub by: Option<Who>,
    /// The authors of all that it answers. `None` stands for companions, bots, and events.
    pub authors: BTreeSet<Option<Who>>,
}

impl Cause {
    /// The cause of a reply with this trigger to `message`, which answers these messages. A message that is not at hand is nobody's.
    pub fn of<'a>(trigger: Trigger, message: Option<Seq>, answered: impl Iterator<Item = (Seq, Option<&'a Message>)>) -> Self {
        let (mut authors, mut addressed) = (BTreeSet::new(), None);
        for (seq, answered) in answered {
            let who = answered.and_then(author_of);
            if trigger == Trigger::DirectAddress && message == Some(seq) {
                addressed.clone_from(&who);
            }
            authors.insert(who);
        }
        let only = authors.first().cloned().flatten().filter(|_| authors.len() == 1);
        Self { by: addressed.or(only), authors }
    }

    /// The people whose rights may count.
    pub fn people(&self) -> BTreeSet<&Who> {
        self.by.iter().chain(self.authors.iter().flatten()).collect()
    }

    /// The cause of a reply that nobody's right counts for.
    pub fn nobody() -> Self {
        Self { by: None, authors: [None].into() }
    }

    /// The cause with no more right than it and the other one have.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.by = self.by.filter(|by| other.by.as_ref() == Some(by));
        self.authors.extend(other.authors.iter().cloned());
        self
    }
}

fn author_of(message: &Message) -> Option<Who> {
    let is_person = message.from.role == Role::Person && !message.is_event() && !message.from.id.is_empty();
    is_person.then(|| Who { person: PersonId::from(&*message.from.id), sender: message.sender })
}

/// What a person may do, as found at the moment of use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub is_operator: bool,
    /// The ids of the person's roles. `None`: they are unknown, which counts as none.
    pub roles: Option<BTreeSet<Arc<str>>>,
}

impl Standing {
    fn has_one_of(&self, roles: &[Arc<str>]) -> bool {
        self.roles.as_ref().is_some_and(|own| roles.iter().any(|role| own.contains(role)))
    }

    /// The standing in a word, for the record.
    pub const fn found(&self) -> Found {
        match (self.is_operator, &self.roles) {
            (true, _) => Found::Operator,
            (false, Some(_)) => Found::Member,
            (false, None) => Found::Unknown,
        }
    }
}

named! {
    /// What was found about the cause of a call.
    pub enum Found {
        Operator = "operator",
        /// A person whose roles are known.
        Member = "member",
        /// A person of whom no roles are known.
        Unknown = "unknown",
    }
}

/// A tool of the settings in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    pub name: Arc<str>,
    pub effect: Effect,
    /// Whether its answers come from outside this server.
    pub is_external: bool,
    pub right: Right,
    /// A hash of its description and schema.
    pub version: Arc<str>,
}

named! {
    /// Why a call is not made.
    pub enum Refusal {
        /// The tool does not exist, is held back, or is not on the companion's list.
        NotOffered = "not_offered",
        /// Somebody whose right counts has none.
        NotAllowed = "not_allowed",
        /// The reply has no cause, and the tool is not read-only or not for everyone.
        NoCause = "no_cause",
        /// An earlier answer in the same reply came from outside.
        AfterOutside = "after_outside",
        /// The reply has made all its calls.
        TooMany = "too_many",
        /// The arguments are no JSON object, are too long, have a key twice, or have hidden characters.
        BadArguments = "bad_arguments",
        /// The same call is on record under this turn, and was made.
        Repeated = "repeated",
        /// The guild, or the person who is the cause, has made all calls of a day.
        UsedUp = "used_up",
    }
}

/// Decides whether a reply with this cause may call a tool (docs/design/tools.md ). `Ok(true)`: once it is confirmed.
///
/// # Errors
/// Returns why it may not.
pub fn permission(
    offered: &Offered,
    cause: &Cause,
    has_external_answer: bool,
    standing: impl Fn(&Who) -> Standing,
) -> Result<bool, Refusal> {
    let Offered { effect, right, .. } = offered;
    let changes = *effect != Effect::ReadOnly;
    if right.allow == Allow::Nobody {
        return Err(Refusal::NotAllowed);
    }
    if changes && has_external_answer {
        return Err(Refusal::AfterOutside);
    }
    if cause.by.is_none() && (changes || right.allow != Allow::Everyone) {
        return Err(Refusal::NoCause);
    }
    let may = |who: &Option<Who>| match (right.allow, who) {
        (Allow::Everyone, _) => true,
        (Allow::Nobody, _) | (_, None) => false,
        (Allow::Roles, Some(who)) => {
            let standing = standing(who);
            standing.is_operator || standing.has_one_of(&right.roles)
        }
        (Allow::Operators, Some(who)) => standing(who).is_operator,
    };
    let is_confirmed = right.confirm == Confirm::Always;
    let is_allowed = may(&cause.by) && (is_confirmed || cause.authors.iter().all(may));
    if is_allowed { Ok(is_confirmed) } else { Err(Refusal::NotAllowed) }
}

/// Whether a person may confirm or decline a call of this cause.
pub fn may_confirm(right: &Right, cause: Option<&Who>, by: &Who, standing: &Standing) -> bool {
    let is_approver = |approver: &Arc<str>| {
        if **approver == *CAUSE { cause == Some(by) } else { standing.has_one_of(std::slice::from_ref(approver)) }
    };
    standing.is_operator || right.approvers.iter().any(is_approver)
}

/// The content of the event that a model asked for a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCalled {
    pub companion: CompanionId,
    /// The number of the reply.
    pub ticket: Ticket,
    /// The number of the call.
    pub call: Ticket,
    pub tool: Arc<str>,
    /// A JSON object, or what the model wrote instead. Empty after a deletion.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub arguments: Arc<str>,
    pub effect: Effect,
    /// Whether the answer comes from outside this server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_external: bool,
    /// The person who is the cause. `None`: the reply has none, or the person was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Who>,
    /// What was found about the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// The range of messages that the model was shown, from the first number to the second. `None`: it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<(Seq, Seq)>,
    /// Until when it can be confirmed. `None`: it needs no confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// Why it is not made. `None`: it is made after this event, or once it is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
    /// The version of the tool that was offered. Empty: it is unknown.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub version: Arc<str>,
}

impl ToolCalled {
    /// Whether the model was shown one of these messages, as far as is known.
    pub fn was_shown(&self, messages: &BTreeSet<Seq>) -> bool {
        self.shown.is_none_or(|(first, last)| first <= last && messages.range(first..=last).next().is_some())
    }
}

/// A call of a statement, in its message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementCall {
    pub call: Ticket,
    pub tool: Arc<str>,
    /// Whether the answer came from outside this server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_external: bool,
    /// How it had ended. `None`: it waited for a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
    /// Until when it can be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// The poll that stands below the statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll: Option<Box<Poll>>,
}

/// The content of the event that a person confirmed or declined a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolConfirmed {
    pub companion: CompanionId,
    pub ticket: Ticket,
    pub call: Ticket,
    /// The person. `None`: an operator without a name, or the person was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<PersonId>,
    pub is_confirmed: bool,
}

named! {
    /// How a call ended.
    pub enum CallOutcome {
        Answered = "answered",
        /// The tool says that it failed.
        Failed = "failed",
        /// It was not made, such as when the server of the tool cannot be reached.
        NotMade = "not_made",
        /// There was no answer in time. Whether it had an effect is unknown.
        TimedOut = "timeout",
        /// The connection or the process ended before the answer. Whether it had an effect is unknown.
        Unknown = "unknown",
    }
}

/// The content of the event that a call has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAnswered {
    pub companion: CompanionId,
    pub ticket: Ticket,
    pub call: Ticket,
    pub tool: Arc<str>,
    #[serde(flatten)]
    pub answer: CallAnswer,
}

/// The answer of a tool, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallAnswer {
    pub outcome: CallOutcome,
    /// The duration of the call, in milliseconds.
    pub ms: u64,
    /// The size of the whole answer.
    #[serde(default)]
    pub bytes: u64,
    /// SHA-256 of the kept text, in hexadecimal digits. Empty after a deletion.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub hash: Arc<str>,
    /// The beginning of the answer, or the cause of a failure. Untrusted text. Empty after a deletion.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub text: Arc<str>,
}

/// A call, as long as a reply may need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownCall {
    /// What was asked for. `ticket` is the newest attempt of the reply.
    pub called: ToolCalled,
    /// The turn of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Whether a person confirmed or declined it. `None`: nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<bool>,
    /// The person who confirmed or declined it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<PersonId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<CallAnswer>,
    /// The statement that its reply became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) statement: Option<Seq>,
    /// The end was in the prompt of a statement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_told: bool,
    /// The event that it was confirmed and has ended is on record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_announced: bool,
    /// A message that the model was shown has been deleted, so the texts of the call are not kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_spoilt: bool,
    /// The newest inbound event when it was asked for.
    #[serde(default)]
    pub(crate) handled: Seq,
}

impl KnownCall {
    /// The poll that it adds to its statement.
    pub(crate) fn poll(&self) -> Option<Box<Poll>> {
        let is_answered = self.answer.as_ref().is_some_and(|answer| answer.outcome == CallOutcome::Answered);
        let is_poll = is_answered && !self.called.is_external && *self.called.tool == *BuiltIn::Poll.as_str();
        let arguments = is_poll.then(|| arguments::read(&self.called.arguments)).flatten()?;
        Poll::read(&arguments).ok().map(Box::new)
    }

    /// Whether it was made, or is about to be, and has no end on record.
    pub const fn is_running(&self) -> bool {
        let is_made = self.called.until.is_none() || matches!(self.confirmed, Some(true));
        self.called.refused.is_none() && is_made && self.answer.is_none()
    }

    /// Whether it can still be confirmed at this moment.
    pub fn is_open(&self, now: Moment) -> bool {
        let is_undecided = self.called.refused.is_none() && self.confirmed.is_none() && !self.is_spoilt;
        is_undecided && self.called.until.is_some_and(|until| now < until)
    }

    /// Whether it was confirmed and has ended, and the event about that is not on record.
    pub const fn awaits_event(&self) -> bool {
        matches!(self.confirmed, Some(true)) && self.answer.is_some() && !self.is_announced
    }

    pub(crate) fn redact(&mut self) {
        (self.called.arguments, self.called.cause, self.is_spoilt) = ("".into(), None, true);
        self.by = None;
        self.answer.iter_mut().for_each(CallAnswer::redact);
    }
}

impl CallAnswer {
    /// An answer without a text.
    pub fn without_text(outcome: CallOutcome, ms: u64) -> Self {
        Self { outcome, ms, bytes: 0, hash: "".into(), text: "".into() }
    }

    /// Removes the text.
    pub fn redact(&mut self) {
        (self.hash, self.text) = ("".into(), "".into());
    }
}
