//! The conversation of a channel: its gates, its round, its floor and its episode.
//!
//! A pure state machine: `state × input × now → outputs`. Only events change its state, in `apply`. [`step`](Conversation::step) decides which event
//! comes next and applies it. [`fold`](Conversation::fold) applies the events of a journal. Both produce the same state, and
//! [`resume`](Conversation::resume) continues from it. Transitions that depend on the clock are events, too: timers that fire, back-offs that end.

#![warn(clippy::wildcard_enum_match_arm)]

mod advance;
mod again;
mod alone;
mod aloud;
mod apply;
mod asking;
mod by_hand;
mod calls;
mod closing;
mod ending;
mod events;
mod floor;
mod gates;
mod inbound;
mod noting;
mod parts;
mod prompt_input;
mod reminding;
mod replanning;
mod retracting;
mod risk;
mod rounds;
mod silence;
mod step;
mod summary;
mod turns;
mod view;
mod voice;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

pub use advance::DELETED;
pub use again::NotAgain;
use again::Replaceable;
pub use aloud::{INTERRUPTED, SpokenStatement, UNVOICED};
use by_hand::ByHand;
pub use by_hand::NotChosen;
use calls::Calls;
pub use calls::{EVENT_ID, Offer, ReplyCalls, WantedCall, WantedCalls};
use closing::ClosingState;
pub use closing::{Episode, Tally};
use events::Acknowledgements;
pub use floor::CLOSED;
use gates::Gates;
pub use noting::NoteRules;
use noting::Noting;
use parts::{Announced, Position};
use step::Step;
pub use summary::{Summary, SummaryLimits};
pub use view::{Doing, View};
pub use voice::VoiceState;

pub use super::answer::Verdict;
use super::budget::{Ledger, Use, UsedUp};
pub use super::call::{Aloud, CallEffect, Notice};
use super::closing::{Cause, Stage};
use super::decision::{Decision, Reason};
use super::event::{Call, Event, Failure, Made, NotesTaken, Recorded};
use super::filter::{Filtered, Finding};
use super::gate::{Gate, InterjectionPolicy};
use super::id::{ChannelId, CompanionId, PersonId, Seq, Ticket, TurnId};
use super::moment::Moment;
use super::note::Note;
use super::reminders::{Reminder, Reminders};
use super::tools::CallAnswer;
use super::trigger::Trigger;
use super::turn::{Candidate, Judgement, OwedReply, PostedStatement, Selected, Selection, Turns};
use super::voice::interruption;
use super::voice::words::WordLists;
use super::vote::{State, Vote};
use super::window::Window;
use crate::policy::closing::Closing;
use crate::policy::gate::Gate as Policy;
use crate::policy::quiet_hours::QuietHours;
use crate::policy::repetition::Repetition;
use crate::policy::reply::Reply;
use crate::policy::turn_taking::TurnTaking;
use crate::policy::voice::Voice;

/// How long a text lull waits at most for the end of the voice lull (docs/design/voice.md A-19).
const TEXT_LULL_HELD: Duration = Duration::from_secs(10);

/// An input of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An inbound event, accepted and numbered. Inbound events arrive in the order of their numbers.
    Inbound(Box<Recorded>),
    /// The messages of a hand-over, accepted and numbered in one batch. They are the result of [`Output::HandOver`]. All of them are applied before
    /// any decision.
    HandedOver(Vec<Recorded>),
    /// A change in the voice call that is not journaled. Joins, leaves and final results with words are inbound events instead.
    Voice(Notice),
    /// A question was answered.
    Answered {
        ticket: Ticket,
        /// The parsed answer. Outside a round only its decision counts.
        vote: Vote,
        /// The model call that returned it.
        call: Option<Box<Call>>,
    },
    /// An external companion voted. A State that no round waits for is ignored.
    Voted(State),
    /// The repetition of the last statements was judged. A failed judgement has the score 0.
    Judged {
        ticket: Ticket,
        /// From 0 (all different) to 1 (repetition).
        score: f64,
        /// The model call that judged, if there was one.
        call: Option<Box<Call>>,
    },
    /// A question failed or timed out. This is not a NO.
    Unanswered {
        ticket: Ticket,
        /// A stable error code, as in `Event::Unanswered`.
        error: Arc<str>,
    },
    /// The model has written one sentence of a spoken reply; more may follow. Sentences arrive in their order.
    SentenceWritten {
        ticket: Ticket,
        /// The sentence as it is spoken, with its leading white space.
        text: Arc<str>,
    },
    /// The text of a reply is complete. If the reply was sent in sentences, all of them arrived before.
    Written { ticket: Ticket, text: Arc<str> },
    /// A reply failed and is not retried.
    ReplyFailed { ticket: Ticket, error: Failure },
    /// The model that writes a reply asks for calls of tools.
    CallsWanted(WantedCalls),
    /// A person who may do so confirmed or declined a call. Has no effect if it is too late.
    CallConfirmed { call: Ticket, by: Option<PersonId>, is_confirmed: bool },
    /// A call has ended. `effects` are the events that it makes.
    CallEnded { call: Ticket, answer: CallAnswer, effects: Vec<Event> },
    /// A user pressed Stop for the reply of a companion. Has no effect if the companion has no reply, or if the reply is being posted.
    StopPressed {
        /// The companion that writes or speaks.
        companion: CompanionId,
    },
    /// A summary was written, or failed.
    Summarised {
        /// The newest event that the summary covers.
        upto: Seq,
        /// The number of messages that this summary covers and the previous one does not.
        messages: u64,
        /// The summary. None if it failed.
        text: Option<Arc<str>>,
    },
    /// The side model was asked for notes. None: it failed.
    NotesTaken(Option<(Vec<Note>, NotesTaken)>),
    /// A person sets a reminder, which has the next number.
    Remind(Box<Reminder>),
    /// The filter of a model's endpoint refused a prompt. The search for the cause ended with this finding.
    Filtered(Finding),
    /// The models were replaced. Back-offs end at once, because they belong to the previous models.
    ModelsReplaced,
    /// A deadline is due; see [`wake_at`](Conversation::wake_at).
    Woken,
}

impl Input {
    /// For inbound events: when they were accepted.
    fn inbound_at(&self) -> Option<Moment> {
        if let Self::HandedOver(batch) = self {
            return batch.first().map(|recorded| recorded.at);
        }
        if let Self::Inbound(recorded) = self { Some(recorded.at) } else { None }
    }
}

/// An output of the conversation. Outputs are in the order in which they happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// An event to journal. Its effect is carried out after the commit: `Evaluated` asks the side model, `ReplyOwed` starts a reply.
    Made(Box<Made>),
    /// A lull timer was armed.
    LullArmed {
        /// The companion whose timer it is.
        companion: CompanionId,
        /// When the timer fires.
        lull_at: Moment,
    },
    /// A lull timer was cancelled.
    LullCancelled {
        /// The companion whose timer it was.
        companion: CompanionId,
    },
    /// The channel must cancel this question or reply, because its result is not needed any more.
    Cancel {
        /// The number of the question or the reply.
        ticket: Ticket,
    },
    /// All messages that a companion wanted to speak about or had to answer were deleted. It makes no statement.
    Dropped {
        /// The companion that will not speak.
        companion: CompanionId,
        /// The number of its reply. None if the companion waited for the floor, or was selected without having begun.
        ticket: Option<Ticket>,
    },
    /// Transcribed speech as messages. They are journaled in one batch, and return as [`Input::HandedOver`].
    HandOver(Vec<Event>),
    /// An effect to carry out in the voice call.
    Call(Box<CallEffect>),
    /// This person has lost the connection to the call for too long, and counts as having left.
    HasLeft { user: PersonId },
    /// Delete this person's speech in the call that was not handed over.
    RedactSpeech { user: PersonId },
    /// A text to post. After posting it returns as `Said` with this ticket.
    Post(Box<Posting>),
    /// The rolling summary is due for the messages after `after`, up to `upto`.
    Summarise {
        /// The newest event that the current summary covers.
        after: Seq,
        /// The newest event that the new summary should cover.
        upto: Seq,
    },
    /// Notes are due about the messages after `after`, up to `upto`.
    TakeNotes { after: Seq, upto: Seq },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Posting {
    pub companion: CompanionId,
    /// The number of the reply that it fulfils.
    pub ticket: Ticket,
    /// The text, not yet split into parts.
    pub text: Arc<str>,
    /// How a spoken reply ended. None if the reply was not spoken: the whole text must be posted.
    pub spoken: Option<SpokenStatement>,
}

/// The environment of a step: settings, random sources and budgets.
pub struct World<'a> {
    pub channel: &'a ChannelId,
    /// The settings in force.
    pub rules: Rules<'a>,
    /// The interjection policy of each companion in this channel. A companion without one is not asked.
    pub policies: &'a BTreeMap<CompanionId, InterjectionPolicy>,
    /// Draws a jitter of −2 to 2.
    pub jitter: &'a mut dyn FnMut() -> i8,
    /// Draws a number from 0 to 1 for an interruption. None counts as 1 (docs/design/voice.md A-32).
    pub roll: &'a mut dyn FnMut() -> Option<f64>,
    /// Draws the id of a new turn.
    pub turn: &'a mut dyn FnMut() -> TurnId,
    /// The uses of the guild's budgets.
    pub ledger: &'a mut Ledger,
    /// When the rolling summary is due. None: never.
    pub summary: Option<SummaryLimits>,
    /// Whether and how notes are taken. None: none are.
    pub notes: Option<NoteRules<'a>>,
    /// The tokens that the guild may use in a day. None: no limit.
    pub tokens_per_day: Option<u64>,
    /// The channel cannot be posted to at the moment, so no question is asked.
    pub is_unpostable: bool,
}

impl World<'_> {
    /// The used-up budget that forbids further statements in the guild. None if there is budget left.
    pub fn exhausted_statement_budget(&mut self, now: Moment) -> Option<UsedUp> {
        let statements = self.ledger.refuses_statement(now, self.rules.gate);
        UsedUp::last_of(statements.into_iter().chain(self.exhausted_token_budget(now)))
    }

    fn count_tokens(&mut self, call: Option<&Call>, now: Moment) {
        if let Some(call) = call {
            self.ledger.count_tokens(call.tokens(), now, self.tokens_per_day);
        }
    }

    fn exhausted_token_budget(&mut self, now: Moment) -> Option<UsedUp> {
        self.ledger.refuses_tokens(now, self.tokens_per_day)
    }
}

/// The sections of the settings that a conversation uses.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// `gate`: whether and when companions consider speaking.
    pub gate: &'a Policy,
    /// The hours in which all companions of the guild speak only when spoken to.
    pub quiet_hours: QuietHours,
    /// Whether a person at risk is shown where to find help instead of an answer.
    pub helps_at_risk: bool,
    /// The time zone of the guild.
    pub zone: &'a TimeZone,
    /// `turn_taking`: who speaks.
    pub turn_taking: &'a TurnTaking,
    /// `closing`: when the conversation ends.
    pub closing: &'a Closing,
    /// `repetition`: when companions repeat each other.
    pub repetition: &'a Repetition,
    /// `reply`: what happens to a statement in progress when people say more.
    pub reply: &'a Reply,
    /// `voice`: when transcribed speech is handed over, and how companions speak.
    pub voice: &'a Voice,
    /// The time limit for an answer of the main model.
    pub answer_timeout: Duration,
    /// The word lists of the language spoken in the channel.
    pub words: &'a WordLists,
    /// `companion_defaults.voice_lull_timeout`: the voice lull timeout while no companion is present.
    pub voice_lull_timeout: Duration,
}

/// The conversation of one channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    window: Window,
    gates: Gates,
    #[serde(flatten)]
    turns: Turns,
    /// The newest message, if it is a companion's statement for which a user may request a replacement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaceable: Option<Box<Replaceable>>,
    /// The newest statement of each companion, including companions that have left.
    #[serde(default)]
    spoke: BTreeMap<CompanionId, Seq>,
    #[serde(flatten)]
    closing: ClosingState,
    summary: Summary,
    #[serde(default, skip_serializing_if = "Noting::is_default")]
    noting: Noting,
    #[serde(flatten)]
    filtered: Filtered,
    #[serde(default, skip_serializing_if = "Acknowledgements::is_default")]
    acknowledgements: Acknowledgements,
    #[serde(default, skip_serializing_if = "ByHand::is_default", rename = "chosen")]
    by_hand: ByHand,
    #[serde(default, skip_serializing_if = "Reminders::is_default")]
    reminders: Reminders,
    #[serde(default, skip_serializing_if = "Calls::is_empty")]
    calls: Calls,
    #[serde(flatten)]
    announced: Announced,
    /// The newest messages of people who may be at risk. No companion answers them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    at_risk: BTreeSet<Seq>,
    /// The voice notes whose words are awaited.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    awaited_notes: BTreeSet<Seq>,
    #[serde(flatten)]
    voice: VoiceState,
    #[serde(flatten)]
    position: Position,
}

impl Conversation {
    /// Handles one input and returns the outputs, in order.
    ///
    /// If `now` is earlier than the newest moment seen, that moment is used instead.
    pub fn step(&mut self, now: Moment, input: Input, world: &mut World<'_>) -> Vec<Output> {
        Step::new(self, world).handle(now, input)
    }

    /// Applies an event of the journal. It decides nothing and produces no outputs.
    pub fn fold(&mut self, recorded: &Recorded, world: &mut World<'_>) {
        if !world.ledger.knows_statement(world.channel, recorded.seq, recorded.at) {
            count_statement(recorded, world);
        }
        let Recorded { seq, at, turn, event, .. } = recorded;
        self.apply(*at, *seq, *turn, event, world, &mut Vec::new());
    }

    /// Applies the redacted form of an event that was folded before. Only texts change.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events have no words that a conversation keeps")]
    pub fn apply_redaction(&mut self, redacted: &Recorded) {
        match &redacted.event {
            Event::Said { message, .. } => {
                if message.text.is_empty() {
                    message.reminder.into_iter().for_each(|number| self.reminders.remove(number));
                }
                self.window.replace(redacted.seq, message);
                self.closing.replace_recent_statement(redacted.seq, message);
            }
            Event::Segment(segment) => self.voice.call.redact(redacted.seq, segment),
            Event::ReminderSet(reminder) => self.reminders.remove(reminder.number),
            Event::RemindersCancelled { reminders, .. } => reminders.iter().for_each(|number| self.reminders.remove(*number)),
            Event::Summarised { upto, text, .. } => self.summary.redact(*upto, text),
            Event::SentenceStarting { ticket, sentence, .. } => self.turns.redact_sentence(*ticket, *sentence),
            Event::ToolCalled(called) if called.arguments.is_empty() => self.calls.redact(called.call),
            Event::ToolAnswered(answered) => self.calls.redact(answered.call),
            Event::Decided(decided) => {
                for companion in &decided.companions {
                    self.forget_reason(companion);
                }
            }
            _ => {}
        }
    }

    /// The lowest event number that the conversation still needs for its prompts, which includes all unsettled messages. At rest it needs no events,
    /// and the result is above all numbers. (The statements of a companion stay after its cursor until it settles more.)
    pub fn needed_from(&self) -> Seq {
        if self.is_at_rest() {
            return Seq(u64::MAX);
        }
        let oldest = self.window.entries().next().map_or(self.position.handled, |entry| entry.seq);
        let oldest = self.awaited_notes.first().map_or(oldest, |note| oldest.min(*note));
        self.voice.call.oldest_segment().map_or(oldest, |segment| segment.min(oldest))
    }

    /// Drops the state below a number that is [not needed](Self::needed_from): messages, recent statements, and a summary that covers only earlier
    /// events. Returns whether anything was dropped.
    pub fn drop_below(&mut self, below: Seq) -> bool {
        let has_dropped_summary = self.summary.expire(below);
        self.filtered.drop_below(below);
        let statements = self.closing.recent_statements.len();
        self.closing.recent_statements.retain(|statement| statement.seq >= below);
        let has_dropped_calls = self.calls.drop_below(below);
        let has_dropped_statements = self.closing.recent_statements.len() < statements;
        self.window.drop_below(below) | has_dropped_summary | has_dropped_calls | has_dropped_statements
    }

    fn forget_reason(&mut self, companion: &CompanionId) {
        if let Some(wish) = self.gates.get_mut(companion).and_then(|gate| gate.wish.as_mut()) {
            wish.why = None;
        }
        self.turns.forget_reason(companion);
    }

    /// Skips an inbound event that must not be handled because handling it kills the actor. If the event is a statement, it was posted nevertheless,
    /// and its reply is not owed any more. The segments of a voice message count as handed over, so they do not become a message again.
    pub fn skip(&mut self, recorded: &Recorded) {
        self.position.handled = self.position.handled.max(recorded.seq);
        let Event::Said { message, reply, .. } = &recorded.event else { return };
        self.reminders.apply_said(recorded.seq, message);
        if let Some(speech) = &message.speech {
            self.voice.call.hand_over(&speech.segments);
        }
        if let Some(note) = message.replaced_note() {
            self.awaited_notes.remove(&note);
        }
        if let Some(ticket) = reply {
            self.turns.take_owed(*ticket);
        }
    }

    /// The voice notes whose words are awaited, oldest first.
    pub const fn awaited_notes(&self) -> &BTreeSet<Seq> {
        &self.awaited_notes
    }

    /// Handles an inbound event that was journaled but not handled before a restart. [`resume`](Self::resume) makes the decisions that follow, and
    /// takes the outputs.
    pub fn catch_up(&mut self, recorded: Recorded, world: &mut World<'_>) -> Vec<Output> {
        Step::new(self, world).catch_up(recorded)
    }

    /// Continues after a restart: makes the decisions that the journal leaves open. [`open_questions`](Self::open_questions) and
    /// [`turns`](Self::turns) return the questions in flight and the owed reply; the caller starts them again. `caught_up` are the outputs of
    /// [`catch_up`](Self::catch_up).
    pub fn resume(&mut self, now: Moment, caught_up: Vec<Output>, world: &mut World<'_>) -> Vec<Output> {
        Step { out: caught_up, ..Step::new(self, world) }.resume(now)
    }

    /// The earliest deadline, at which `Input::Woken` is due.
    pub fn wake_at(&self) -> Option<Moment> {
        self.deadlines_of_work().chain(self.due_at_rest()).min()
    }

    /// The earliest deadline other than the end of a back-off.
    pub fn wake_at_except_retries(&self) -> Option<Moment> {
        let rounds = self.turns.rounds.iter().map(|round| round.deadline);
        self.lull_and_turn_deadlines().chain(rounds).chain(self.due_at_rest()).min()
    }

    /// The earliest deadline other than those of the open rounds.
    pub fn wake_at_except_rounds(&self) -> Option<Moment> {
        let retries = self.gates.values().filter_map(Gate::retry_at);
        retries.chain(self.lull_and_turn_deadlines()).chain(self.due_at_rest()).min()
    }

    /// The deadlines of work in progress: all except those of a channel at rest.
    fn deadlines_of_work(&self) -> impl Iterator<Item = Moment> {
        let rounds = self.turns.rounds.iter().map(|round| round.deadline);
        self.gates.values().filter_map(Gate::retry_at).chain(self.lull_and_turn_deadlines()).chain(rounds)
    }

    fn lull_and_turn_deadlines(&self) -> impl Iterator<Item = Moment> {
        let held = if self.voice.holds_text_lulls() { TEXT_LULL_HELD } else { Duration::ZERO };
        let lulls = self.gates.values().filter_map(move |gate| Some(gate.lull_at? + held)).chain(self.voice.live.deadline());
        let questions = self.gates.values().filter_map(|gate| gate.evaluation?.due_at);
        let lulls = lulls.chain(questions);
        lulls.chain(self.turns.deadlines()).chain(self.acknowledgements.deferred_until)
    }

    /// Whether nothing is unsettled, in flight or owed, and no timer is armed except those of a channel at rest. The channel may sleep
    /// until [`due_at_rest`](Self::due_at_rest).
    pub fn is_at_rest(&self) -> bool {
        !self.is_busy()
            && self.voice.call.is_default()
            && self.awaited_notes.is_empty()
            && self.reminders.announced().next().is_none()
            && self.deadlines_of_work().next().is_none()
            && self.turns.late.is_empty()
            && self.calls.are_at_rest()
            && self
                .gates
                .iter()
                .all(|(companion, gate)| gate.waiting.is_none() && self.window.buffer(companion, gate.cursor).next().is_none())
    }

    /// Whether a round is open, the floor is taken, a judgement is pending, or a question is in flight. Then companions are asked only about
    /// addresses by people. A late reply does not make the conversation busy.
    fn is_busy(&self) -> bool {
        !self.turns.rounds.is_empty()
            || self.turns.is_floor_taken()
            || self.turns.is_being_judged()
            || self.gates.values().any(Gate::is_engaged)
    }
}

/// Counts a journaled statement in the budgets. Counting the same event again has no effect.
fn count_statement(recorded: &Recorded, world: &mut World<'_>) {
    if matches!(recorded.event, Event::Said { reply: Some(_), .. }) {
        world.ledger.count(Use::Statement { channel: world.channel, message: recorded.seq }, recorded.at, world.rules.gate);
    }
}

#[cfg(any(test, feature = "samples"))]
pub mod check_bids;
#[cfg(any(test, feature = "samples"))]
pub mod poison;
#[cfg(test)]
mod tests;
