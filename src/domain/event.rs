//! What happens in a channel, as its journal keeps it.
//!
//! Two kinds share one numbering. What comes from outside ([`Event::is_heard`]) is handled in the order of its numbers. What the
//! channel makes itself names the newest event from outside that it had handled by then; a fold in that order, see
//! [`order_of_handling`], gives the conversation again.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::UsedUp;
use super::closing::{Cause, Stage};
use super::decision::{Decision, Reason};
use super::id::{CompanionId, Seq, Ticket, TurnId};
use super::message::Message;
use super::moment::Moment;
use super::trigger::Trigger;
use super::vote::State;

/// An event with its place in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its number in the channel.
    pub seq: Seq,
    /// When it happened.
    pub at: Moment,
    /// The newest event from outside that the channel had handled when it made this one; of one from outside: its own number.
    pub handled: Seq,
    /// The turn that it belongs to; none of what belongs to no turn, such as what people say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// An event that a channel made and that is to be appended to its journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The newest event from outside that was handled.
    pub handled: Seq,
    /// The turn that it belongs to.
    pub turn: Option<TurnId>,
    /// What happened.
    pub event: Event,
}

/// Something that happened in a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Somebody said something; or a companion's statement was posted.
    Said {
        /// What was said.
        message: Message,
        /// The message that it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<Seq>,
        /// Of a companion's statement: the reply that it fulfils.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply: Option<Ticket>,
        /// When it was said, where it was accepted only well after.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said_at: Option<Moment>,
    },
    /// A message was changed.
    Edited {
        /// Which one.
        message: Seq,
        /// What it says now.
        text: Arc<str>,
    },
    /// Messages were taken back.
    Deleted {
        /// Which ones.
        messages: Vec<Seq>,
    },
    /// A companion is present from now on.
    Joined {
        /// Who.
        companion: CompanionId,
        /// A program outside plays it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        external: bool,
    },
    /// A companion is gone.
    Left {
        /// Who.
        companion: CompanionId,
    },
    /// An operator silenced companions, or let them speak again.
    Paused {
        /// Who; absent: everyone present.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        companion: Option<CompanionId>,
        /// Silenced, or free.
        paused: bool,
    },
    /// What was going on was dropped (unsubscribe, docs/design/gate.md G-25); the history stays.
    Cleared,
    /// What was said while nobody listened was read: it stands before this, and what is missing of it is missing for good.
    CaughtUp {
        /// How many messages were read.
        read: u32,
        /// What was left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missed: Option<Gap>,
    },

    /// The first interval of a gate was drawn.
    JitterDrawn {
        /// Whose gate.
        companion: CompanionId,
        /// Message count of the first interjection check.
        next_interjection_at: u64,
    },
    /// Lull timers of companions fired: nothing was said for as long as they wait.
    LullFired {
        /// Whose timers, by id.
        companions: Vec<CompanionId>,
    },
    /// Back-offs are over: their time has come, or a person's address cuts them short.
    BackOffEnded {
        /// Whose, by id.
        companions: Vec<CompanionId>,
    },
    /// After a restart, answers and words are waited for anew.
    DeadlinesExtended {
        /// Of the round that is open: when its States are waited for no longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<Moment>,
        /// Of the external companion that has the floor: when its words are waited for no longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        floor: Option<Moment>,
    },
    /// Somebody addressed companions more often than `gate.addresses_per_minute` allows: nobody will be asked about this message. It is
    /// on record before the message is handled; after it only where the message was on record before a restart.
    AddressRefused {
        /// The message.
        message: Seq,
    },
    /// A round is held: the States of some are known, others are asked, each with an `Evaluated`.
    RoundOpened(RoundOpened),
    /// A companion is asked whether it wants to speak.
    Evaluated(Evaluated),
    /// It was decided whether companions speak.
    Decided(Decided),
    /// A question got no answer; it will be asked again.
    Unanswered {
        /// Who was asked.
        companion: CompanionId,
        /// Which question.
        ticket: Ticket,
        /// Why it was asked.
        trigger: Trigger,
        /// A stable code: `timeout`, `unreachable`, `left_alone`, `overloaded`, `refused`, `unworded`, `cancelled`.
        error: Arc<str>,
        /// How long it is waited before it is asked again.
        back_off: Duration,
    },
    /// A companion came closer to the end of the conversation, or back.
    StageChanged {
        /// Who.
        companion: CompanionId,
        /// Where it was.
        from: Stage,
        /// Where it is.
        to: Stage,
        /// Why.
        cause: Cause,
    },
    /// A round is over: one companion was selected, or nobody.
    RoundClosed(RoundClosed),
    /// The side model is asked how much the last messages repeat each other.
    RepetitionAsked {
        /// The question's number.
        ticket: Ticket,
        /// The newest of the messages.
        message: Seq,
    },
    /// It was judged how much the last messages repeat each other.
    RepetitionJudged {
        /// The newest of the messages.
        message: Seq,
        /// From 0 (all different) to 1 (the same again and again).
        score: f64,
        /// How many judgements in a row found repetition, this one included.
        detections: u32,
        /// The call that judged, if one was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
    },
    /// A companion got the floor and owes a statement.
    ReplyOwed {
        /// Who.
        companion: CompanionId,
        /// The reply's number.
        ticket: Ticket,
        /// What it answers to.
        trigger: Trigger,
        /// The snapshot: all that was unsettled, and settles with this.
        messages: Vec<Seq>,
        /// The newest event that settles.
        upto: Seq,
        /// Message count of the next interjection check, after the reset.
        next_interjection_at: u64,
        /// Of an external companion: when its words are waited for no longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due_at: Option<Moment>,
    },
    /// A statement was not made.
    ReplyFailed {
        /// Who owed it.
        companion: CompanionId,
        /// The reply's number.
        ticket: Ticket,
        /// What it was to answer.
        trigger: Trigger,
        /// A stable code, as for `Unanswered`, or `empty`.
        error: Arc<str>,
    },
    /// The rolling summary was refreshed.
    Summarised {
        /// The newest event that it covers.
        upto: Seq,
        /// The summary.
        text: Arc<str>,
    },
}

/// Messages that were said and are not on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The platform's id of the message after which something is missing.
    pub after: Arc<str>,
    /// The platform's id before which something is missing.
    pub before: Arc<str>,
    /// Why, as a stable code: `too_many`, `too_old`, `refused`, `nothing_shown`, `unreachable`.
    pub why: Arc<str>,
}

/// A round is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundOpened {
    /// The newest event from outside: what the round's States are about.
    pub message: Seq,
    /// When missing States are waited for no longer.
    pub deadline: Moment,
    /// Who is asked, by id.
    pub asked: Vec<CompanionId>,
    /// The States of those who listen without being asked, by id.
    pub listening: Vec<State>,
}

/// A round is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundClosed {
    /// What its States were about.
    pub message: Seq,
    /// The States, by id.
    pub states: Vec<State>,
    /// Whoever has the floor now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<CompanionId>,
    /// When it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speak_at: Option<Moment>,
    /// The others who wanted to speak, in the order in which they would have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Outvoted>,
}

/// A companion that wanted to speak and did not get the floor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outvoted {
    /// Who.
    pub companion: CompanionId,
    /// Message count of its next interjection check, where this changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_interjection_at: Option<u64>,
}

/// A companion is asked whether it wants to speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// Who.
    pub companion: CompanionId,
    /// The question's number.
    pub ticket: Ticket,
    /// Why.
    pub trigger: Trigger,
    /// The message that triggered it.
    pub message: Seq,
    /// The messages it is asked about: all that were unsettled.
    pub messages: Vec<Seq>,
    /// The newest of them.
    pub upto: Seq,
    /// Messages since it spoke last.
    pub message_count: u64,
    /// Interjection checks since it spoke last.
    pub check_count: u64,
    /// Message count at which the next interjection check is due, once one was drawn.
    pub threshold: Option<u64>,
}

/// It was decided whether companions speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// Whose decision; several only where one record says the same of all (`closed`, `paused`).
    pub companions: Vec<CompanionId>,
    /// Why it was considered.
    pub trigger: Trigger,
    /// YES or NO.
    pub decision: Decision,
    /// Why so.
    pub reason: Reason,
    /// The question that was asked, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// The messages that settle with it.
    pub messages: Vec<Seq>,
    /// The newest event that settles. `Seq::NONE` of a YES: what settles is the snapshot of the reply. `Seq::NONE` of a NO: an address over
    /// the budget of its author is declined by itself, which leaves everything else alone.
    pub upto: Seq,
    /// Messages since the companion spoke last, before this decision.
    pub message_count: u64,
    /// Interjection checks since it spoke last, before this decision.
    pub check_count: u64,
    /// Message count at which an interjection check was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// Message count of the next interjection check, where this decision changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_interjection_at: Option<u64>,
    /// Where the reason is `budget`: which one was used up. Absent in records from before that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_up: Option<UsedUp>,
    /// In a round: the State that it submits with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote: Option<State>,
    /// What the companion gave as its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
    /// The call that gave the answer, if one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Call>>,
}

impl Decided {
    /// Whether everything up to `upto` settles with it; else nothing but `messages` does.
    pub fn settles_by_cursor(&self) -> bool {
        self.upto != Seq::NONE
    }
}

/// What is on record of a call to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// `gen_ai.request.model`.
    pub model: Arc<str>,
    /// Waited for a place, in milliseconds.
    pub wait_ms: u64,
    /// The model took, in milliseconds, retries included.
    pub model_ms: u64,
    /// The parts of the prompt, in order, and their estimated tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompt: Vec<(Arc<str>, u64)>,
    /// What the model answered, as it came; the first 1,000 characters.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub answer: Arc<str>,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// The trace that holds its spans, as 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Arc<str>>,
}

impl Call {
    /// Tokens, read and written.
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl Event {
    /// Whether it comes from outside: accepted first, then handled in the order of its number.
    pub const fn is_heard(&self) -> bool {
        match self {
            Self::Said { .. }
            | Self::Edited { .. }
            | Self::Deleted { .. }
            | Self::Joined { .. }
            | Self::Left { .. }
            | Self::Paused { .. }
            | Self::Cleared
            | Self::CaughtUp { .. } => true,
            Self::JitterDrawn { .. }
            | Self::LullFired { .. }
            | Self::BackOffEnded { .. }
            | Self::DeadlinesExtended { .. }
            | Self::AddressRefused { .. }
            | Self::RoundOpened(_)
            | Self::Evaluated(_)
            | Self::Decided(_)
            | Self::Unanswered { .. }
            | Self::StageChanged { .. }
            | Self::RoundClosed(_)
            | Self::RepetitionAsked { .. }
            | Self::RepetitionJudged { .. }
            | Self::ReplyOwed { .. }
            | Self::ReplyFailed { .. }
            | Self::Summarised { .. } => false,
        }
    }
}

/// Sorts events of one channel into the order in which the channel handled them.
pub fn order_of_handling(events: &mut [Recorded]) {
    events.sort_by_key(|recorded| (recorded.handled, !recorded.event.is_heard(), recorded.seq));
}
