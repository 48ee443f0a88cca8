//! The gates of a channel, its floor and its episode together.
//!
//! A pure state machine: `state × input × now → outputs`. Its state changes only in [`apply`](Conversation::fold), by what is on
//! record; [`step`](Conversation::step) decides what goes on record next. So a fold of the journal gives the same state as having
//! lived through it, and [`resume`](Conversation::resume) goes on from there.

mod advance;
mod apply;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use view::{Doing, View};

pub use super::answer::Verdict;
use super::budget::{Ledger, Use};
use super::decision::{Decision, Reason};
use super::event::{Call, Event, Recorded};
use super::gate::{Gate, Temper};
use super::id::{ChannelId, CompanionId, Seq, Ticket};
use super::moment::Moment;
use super::trigger::Trigger;
use super::window::Window;
use crate::settings::gate::Gate as Policy;

/// Something that the conversation has to take in.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An event from outside, accepted and numbered. They come in the order of their numbers.
    Heard(Recorded),
    /// A question was answered.
    Answered {
        /// Which question.
        ticket: Ticket,
        /// What the answer says.
        verdict: Verdict,
        /// What the companion gave as its reason.
        why: Option<Arc<str>>,
        /// The call that gave it.
        call: Option<Box<Call>>,
    },
    /// A question got no answer. That is not a NO.
    Unanswered {
        /// Which question.
        ticket: Ticket,
        /// A stable code.
        error: Arc<str>,
    },
    /// The words of a reply are written.
    Written {
        /// Which reply.
        ticket: Ticket,
        /// The words.
        text: Arc<str>,
    },
    /// A reply failed for good.
    ReplyFailed {
        /// Which reply.
        ticket: Ticket,
        /// A stable code.
        error: Arc<str>,
    },
    /// A summary was written, or not.
    Summarised {
        /// The newest event that it covers.
        upto: Seq,
        /// The summary.
        text: Option<Arc<str>>,
    },
    /// A deadline is due.
    Woken,
}

/// What the conversation wants done. In the order in which it happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// This goes on record; what follows from it is done once it is committed: `Evaluated` asks the side model, `ReplyOwed` starts a reply.
    Made {
        /// The newest event from outside that was handled.
        handled: Seq,
        /// What happened.
        event: Event,
    },
    /// A lull timer was armed.
    LullArmed {
        /// Whose.
        companion: CompanionId,
        /// When it is due.
        lull_at: Moment,
    },
    /// A lull timer was cancelled.
    LullCancelled {
        /// Whose.
        companion: CompanionId,
    },
    /// Nobody wants the answer to this question or this reply any more.
    Cancel {
        /// Its number.
        ticket: Ticket,
    },
    /// The words of a reply are to be posted; once posted they come back as `Said` with this ticket.
    Post {
        /// Who says them.
        companion: CompanionId,
        /// Which reply.
        ticket: Ticket,
        /// The words.
        text: Arc<str>,
    },
    /// The rolling summary should be refreshed with what followed `after`, up to `upto`.
    Summarise {
        /// The newest event that the present summary covers.
        after: Seq,
        /// The newest event that the new one should cover.
        upto: Seq,
    },
}

/// What a step needs from outside.
pub struct World<'a> {
    /// Where it happens.
    pub channel: &'a ChannelId,
    /// The rules.
    pub policy: &'a Policy,
    /// How patient each companion is here. One that is missing is not evaluated.
    pub tempers: &'a BTreeMap<CompanionId, Temper>,
    /// Draws a jitter of −2 to 2.
    pub jitter: &'a mut dyn FnMut() -> i8,
    /// What the guild has used.
    pub ledger: &'a mut Ledger,
    /// Settled messages after which the rolling summary is refreshed; none: never.
    pub summary_after: Option<u64>,
    /// Tokens that the guild may use in a day; none: without a limit.
    pub tokens_per_day: Option<u64>,
    /// Quiet after which the next message begins a new episode.
    pub episode_idle: Duration,
}

/// The right to speak, and the reply that it is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// Who has it.
    pub companion: CompanionId,
    /// The reply's number.
    pub ticket: Ticket,
    /// What it answers to.
    pub trigger: Trigger,
    /// The snapshot that it answers.
    pub messages: Vec<Seq>,
    /// The newest event that settled with it.
    pub upto: Seq,
    /// What the companion gave as its reason to speak.
    pub why: Option<Arc<str>>,
    /// The words are written and on their way. Not on record: after a restart they are written again, unless they arrived.
    #[serde(skip)]
    pub is_posting: bool,
}

/// One conversation in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// When its first message was said.
    pub began_at: Moment,
    /// When its last one was.
    pub last_at: Moment,
}

/// What is known of a channel's past beyond its window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The rolling summary.
    pub text: Option<Arc<str>>,
    /// The newest event that it covers.
    pub upto: Seq,
    /// Messages that settled since, up to `counted`.
    pub behind: u64,
    counted: Seq,
    #[serde(skip)]
    is_being_written: bool,
    /// Something that the one being written may hold was taken back.
    #[serde(skip)]
    is_spoilt: bool,
}

/// The conversation of one channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    window: Window,
    gates: BTreeMap<CompanionId, Gate>,
    floor: Option<Floor>,
    episode: Option<Episode>,
    summary: Summary,
    /// The newest event from outside that was handled.
    handled: Seq,
    /// The newest moment that was seen; time never goes back behind it.
    clock: Moment,
    /// The last ticket that was given out.
    tickets: Ticket,
}

impl Conversation {
    /// Takes something in and says what follows, in order.
    ///
    /// `now` may lie behind what the conversation has seen already; then the newest moment seen counts.
    pub fn step(&mut self, now: Moment, input: Input, world: &mut World<'_>) -> Vec<Output> {
        let mut out = Vec::new();
        let now = self.clock.max(now);
        let by_deadline = matches!(input, Input::Woken);
        match input {
            Input::Heard(recorded) => self.hear(recorded, world, &mut out),
            Input::Answered { ticket, verdict, why, call } => {
                self.clock = now;
                self.fire_due_before(now);
                self.conclude(ticket, verdict, why, call, world, &mut out);
            }
            Input::Unanswered { ticket, error } => {
                self.clock = now;
                self.fire_due_before(now);
                self.go_unanswered(ticket, error, world, &mut out);
            }
            Input::Written { ticket, text } => {
                self.clock = now;
                self.fire_due_before(now);
                self.post(ticket, text, &mut out);
            }
            Input::ReplyFailed { ticket, error } => {
                self.clock = now;
                self.fire_due_before(now);
                self.fail_reply(ticket, error, world, &mut out);
            }
            Input::Summarised { upto, text } => self.take_summary(upto, text, world, &mut out),
            Input::Woken => {
                self.clock = now;
                self.wake(world, &mut out);
            }
        }
        self.advance(by_deadline, world, &mut out);
        out
    }

    /// Takes in what is on record: nothing is decided, nothing follows.
    pub fn fold(&mut self, recorded: &Recorded, world: &mut World<'_>) {
        self.clock = self.clock.max(recorded.at);
        let now = self.clock;
        if recorded.event.follows_timers() {
            self.fire_due(|due| due <= now);
        }
        self.apply(recorded.at, recorded.seq, &recorded.event, world, &mut Vec::new());
    }

    /// Takes in how an event that was folded long ago reads now that its words were taken out. Nothing else changes.
    pub fn forget_words(&mut self, bare: &Recorded) {
        match &bare.event {
            Event::Said { message, .. } => self.window.replace(bare.seq, message),
            Event::Summarised { upto, text } if *upto == self.summary.upto => {
                self.summary.text = Some(text.clone()).filter(|text| !text.is_empty());
            }
            Event::Decided(decided) => {
                for companion in &decided.companions {
                    if let Some(wish) = self.gates.get_mut(companion).and_then(|gate| gate.wish.as_mut()) {
                        wish.why = None;
                    }
                }
                if let Some(floor) = self.floor.as_mut().filter(|floor| decided.companions.contains(&floor.companion)) {
                    floor.why = None;
                }
            }
            _ => {}
        }
    }

    /// Passes over an event from outside that must not be handled, because handling it kills.
    pub fn pass_over(&mut self, seq: Seq) {
        self.handled = self.handled.max(seq);
    }

    /// Goes on after a restart: what the record leaves open is computed again. Questions in flight and replies owed are told by
    /// [`open_questions`](Self::open_questions) and [`floor`](Self::floor); the shell asks and makes them again.
    pub fn resume(&mut self, now: Moment, world: &mut World<'_>) -> Vec<Output> {
        let mut out = Vec::new();
        self.clock = self.clock.max(now);
        if self.floor.is_some() {
            world.ledger.count(Use::Statement, self.clock);
        }
        self.settle_stale_after_restart(world, &mut out);
        self.wake(world, &mut out);
        self.advance(true, world, &mut out);
        out
    }

    /// When the conversation wants to be woken next.
    pub fn wake_at(&self) -> Option<Moment> {
        // A retry that is due while the way is not free waits for that, not for the clock.
        let is_free = |gate: &Gate| self.floor.is_none() && !gate.is_engaged();
        let retry_at = |gate: &Gate| gate.retry_at().filter(|until| *until > self.clock || is_free(gate));
        self.gates.values().flat_map(|gate| [gate.lull_at, retry_at(gate)]).flatten().min()
    }

    /// Whether nothing is unsettled, armed, in flight or owed: the channel may sleep.
    pub fn is_at_rest(&self) -> bool {
        self.floor.is_none()
            && self.wake_at().is_none()
            && self.gates.iter().all(|(companion, gate)| {
                !gate.is_engaged() && gate.waiting.is_none() && self.window.buffer(companion, gate.cursor).next().is_none()
            })
    }
}
#[cfg(test)]
mod tests;
