//! What happens in a channel, as its journal keeps it.
//!
//! Two kinds share one numbering. What comes from outside ([`Event::is_heard`]) is handled in the order of its numbers. What the
//! channel makes itself names the newest event from outside that it had handled by then; a fold in that order, see
//! [`order_of_handling`], gives the conversation again.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::decision::{Decision, Reason};
use super::id::{CompanionId, Seq, Ticket};
use super::message::Message;
use super::moment::Moment;
use super::trigger::Trigger;

/// An event with its place in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its number in the channel.
    pub seq: Seq,
    /// When it happened.
    pub at: Moment,
    /// The newest event from outside that the channel had handled when it made this one; of one from outside: its own number.
    pub handled: Seq,
    /// What happened.
    #[serde(flatten)]
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
    /// What was going on was dropped (seed 004: unsubscribe); the history stays.
    Cleared,

    /// The first interval of a gate was drawn.
    JitterDrawn {
        /// Whose gate.
        companion: CompanionId,
        /// Message count of the first interjection check.
        next_interjection_at: u64,
    },
    /// Somebody addressed companions more often than `gate.addresses_per_minute` allows: nobody will be asked about this message.
    AddressRefused {
        /// The message.
        message: Seq,
    },
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
        /// A stable code: `timeout`, `unreachable`, `overloaded`, `refused`, `cancelled`.
        error: Arc<str>,
        /// How long it is waited before it is asked again.
        back_off: Duration,
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
    /// Message count at which the next interjection check is due.
    pub threshold: u64,
    /// It is asked because a deadline was due: every timer that was due at the same moment had fired.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_deadline: bool,
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
    /// The newest event that settles; of a YES: `Seq::NONE`, what settles is the snapshot of the reply.
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
    /// What the companion gave as its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
    /// The call that gave the answer, if one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Call>>,
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

impl Event {
    /// Whether it comes from outside: accepted first, then handled in the order of its number.
    pub const fn is_heard(&self) -> bool {
        matches!(
            self,
            Self::Said { .. }
                | Self::Edited { .. }
                | Self::Deleted { .. }
                | Self::Joined { .. }
                | Self::Left { .. }
                | Self::Paused { .. }
                | Self::Cleared
        )
    }
}

impl Event {
    /// Whether a lull timer that was due at its moment had fired before it was made.
    pub(super) fn follows_timers(&self) -> bool {
        match self {
            Self::Evaluated(evaluated) => evaluated.by_deadline || evaluated.trigger == Trigger::Lull,
            Self::Decided(decided) => {
                decided.trigger == Trigger::Lull && decided.ticket.is_none() && !decided.reason.leaves_counters_alone()
            }
            _ => false,
        }
    }
}

/// Sorts events of one channel into the order in which the channel handled them.
pub fn order_of_handling(events: &mut [Recorded]) {
    events.sort_by_key(|recorded| (recorded.handled, !recorded.event.is_heard(), recorded.seq));
}
