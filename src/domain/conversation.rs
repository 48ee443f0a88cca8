//! The gates of a channel, its floor and its episode together.
//!
//! A pure state machine: `state × input × now → outputs`. Its state changes only by events, in `apply`: [`step`](Conversation::step)
//! decides which event comes next and applies it, [`fold`](Conversation::fold) applies the events of a journal. So both give the same
//! state, and [`resume`](Conversation::resume) goes on from there. What only a clock could tell is an event, too: timers that fire,
//! back-offs that end.

mod advance;
mod apply;
mod asking;
mod ending;
mod gates;
mod heard;
mod parts;
mod rounds;
mod turns;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use advance::DELETED;
pub use ending::JUDGED_MESSAGES;
use ending::Judgement;
use gates::Gates;
use parts::Spoken;
pub use parts::{Candidate, Episode, Floor, Selection, Summary, Tally, Turn};
use turns::name_turn_that_begins;
pub use view::{Doing, View};

pub use super::answer::Verdict;
use super::budget::{Ledger, Use, UsedUp};
use super::closing::{Cause, Stage};
use super::decision::{Decision, Reason};
use super::event::{Call, Event, Made, Recorded};
use super::gate::{Gate, InterjectionPolicy};
use super::id::{ChannelId, CompanionId, Seq, Ticket, TurnId};
use super::moment::Moment;
use super::round::Round;
use super::trigger::Trigger;
use super::vote::{State, Vote};
use super::window::Window;
use crate::settings::Settings;
use crate::settings::closing::Closing;
use crate::settings::gate::Gate as Policy;
use crate::settings::repetition::Repetition;
use crate::settings::turn_taking::TurnTaking;

/// What most steps have to tell at the most: that a timer was cancelled and armed, or a question, or a decision and what follows.
const USUALLY_TOLD: usize = 4;

/// Something that the conversation has to take in.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An event from outside, accepted and numbered. They come in the order of their numbers.
    Heard(Box<Recorded>),
    /// A question was answered.
    Answered {
        /// Which question.
        ticket: Ticket,
        /// What the answer says; without a round only its decision counts.
        vote: Vote,
        /// The call that gave it.
        call: Option<Box<Call>>,
    },
    /// An external companion voted. A State that nobody waits for is passed over.
    Voted(State),
    /// It was judged how much the last messages repeat each other; a judgement that failed counts as 0.
    Judged {
        /// Which question.
        ticket: Ticket,
        /// From 0 (all different) to 1 (the same again and again).
        score: f64,
        /// The call that judged.
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
    Made(Box<Made>),
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
    /// All that a companion wanted to speak about or was to answer was taken back: nothing comes of it.
    Dropped {
        /// Whose.
        companion: CompanionId,
        /// The number of its reply; none: it waited for the floor, or for its turn.
        ticket: Option<Ticket>,
    },
    /// The words of a reply are to be posted; once posted they come back as `Said` with this ticket.
    Post(Box<Posting>),
    /// The rolling summary should be refreshed with what followed `after`, up to `upto`.
    Summarise {
        /// The newest event that the present summary covers.
        after: Seq,
        /// The newest event that the new one should cover.
        upto: Seq,
    },
}

/// Words that are to be posted.
#[derive(Clone, Debug, PartialEq)]
pub struct Posting {
    /// Who says them.
    pub companion: CompanionId,
    /// Which reply they fulfil.
    pub ticket: Ticket,
    /// The words.
    pub text: Arc<str>,
}

/// What a step needs from outside.
pub struct World<'a> {
    /// Where it happens.
    pub channel: &'a ChannelId,
    /// The rules.
    pub rules: Rules<'a>,
    /// How patient each companion is here. One that is missing is not evaluated.
    pub policies: &'a BTreeMap<CompanionId, InterjectionPolicy>,
    /// Draws a jitter of −2 to 2.
    pub jitter: &'a mut dyn FnMut() -> i8,
    /// Draws the id of a turn that begins.
    pub turn: &'a mut dyn FnMut() -> TurnId,
    /// What the guild has used.
    pub ledger: &'a mut Ledger,
    /// Settled messages after which the rolling summary is refreshed; none: never.
    pub summary_after: Option<u64>,
    /// Tokens that the guild may use in a day; none: without a limit.
    pub tokens_per_day: Option<u64>,
    /// Nothing can be posted in the channel at the moment, so that asking would be for nothing.
    pub is_unpostable: bool,
}

impl World<'_> {
    /// The budget for which nothing more may be said in the guild, if there is one.
    fn no_more_statements(&mut self, now: Moment) -> Option<UsedUp> {
        let statements = self.ledger.refuses_statement(now, self.rules.gate);
        UsedUp::last_of(statements.into_iter().chain(self.no_more_tokens(now)))
    }

    fn count_tokens(&mut self, call: Option<&Call>, now: Moment) {
        if let Some(call) = call {
            self.ledger.count_tokens(call.tokens(), now, self.tokens_per_day);
        }
    }

    fn no_more_tokens(&mut self, now: Moment) -> Option<UsedUp> {
        self.ledger.refuses_tokens(now, self.tokens_per_day)
    }
}

/// The sections of the settings that a conversation goes by.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Whether and when.
    pub gate: &'a Policy,
    /// Who.
    pub turn_taking: &'a TurnTaking,
    /// When it is over.
    pub closing: &'a Closing,
    /// When it goes in circles.
    pub repetition: &'a Repetition,
    /// In every round everyone is asked who has something unsettled, listeners too (as aikyo does, docs/design/turn-taking.md T-3). No setting
    /// turns it on: it is there to measure what it would cost.
    pub asks_everyone: bool,
}

impl<'a> From<&'a Settings> for Rules<'a> {
    fn from(settings: &'a Settings) -> Self {
        Self {
            gate: &settings.gate,
            turn_taking: &settings.turn_taking,
            closing: &settings.closing,
            repetition: &settings.repetition,
            asks_everyone: false,
        }
    }
}

/// The conversation of one channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    window: Window,
    gates: Gates,
    #[serde(default)]
    round: Option<Round>,
    #[serde(default)]
    turn: Option<Box<Turn>>,
    floor: Option<Box<Floor>>,
    #[serde(default)]
    spoken: Option<Spoken>,
    /// The newest statement of each companion, whether it is here still or not.
    #[serde(default)]
    spoke: BTreeMap<CompanionId, Seq>,
    #[serde(default)]
    tally: Tally,
    episode: Option<Episode>,
    /// Whom the newest message opened again, from which stage and why, until that is on record.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    opened_again: BTreeMap<CompanionId, (Stage, Cause)>,
    summary: Summary,
    /// The message that is handled next, where it is an address over the budget of its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<Seq>,
    /// The turn that began in this step and that nobody has been asked in yet.
    #[serde(skip)]
    begun: Option<TurnId>,
    /// The first turn that began in this step.
    #[serde(skip)]
    oldest_started: Option<TurnId>,
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
        let mut out = Vec::with_capacity(USUALLY_TOLD);
        let before = self.clock;
        let now = self.clock.max(now);
        let mut occasion = Occasion { by_deadline: matches!(input, Input::Woken), after_statement: false };
        let mut over = Vec::new();
        let heard_at = if let Input::Heard(recorded) = &input { Some(recorded.at) } else { None };
        self.advance_to(heard_at.unwrap_or(now), world, &mut out);
        self.note_back_offs_over(occasion, &mut over);
        if let Input::Heard(recorded) = &input {
            occasion.after_statement = matches!(recorded.event, Event::Said { reply: Some(_), .. });
        } else {
            // A round's own deadlines come before those of companions at the same moment.
            self.begin_turn_due(occasion, world, &mut out);
            self.close_round(occasion, world, &mut out);
        }
        match input {
            Input::Heard(recorded) => self.hear(*recorded, world, &mut out),
            Input::Answered { ticket, vote, call } => self.conclude(ticket, vote, call, world, &mut out),
            Input::Voted(state) => self.take_vote(state, world, &mut out),
            Input::Judged { ticket, score, call } => {
                occasion.after_statement = self.judge(ticket, score, call, world, &mut out);
            }
            Input::Unanswered { ticket, error } => self.go_unanswered(ticket, error, world, &mut out),
            Input::Written { ticket, text } => self.post(ticket, text, &mut out),
            Input::ReplyFailed { ticket, error } => self.fail_reply(ticket, error, world, &mut out),
            Input::Summarised { upto, text } => self.take_summary(upto, text, world, &mut out),
            Input::Woken => self.wake(world, &mut out),
        }
        self.advance(occasion, over, world, &mut out);
        if heard_at.is_none() && !out.iter().any(|output| matches!(output, Output::Made(_))) {
            // Time goes on by events alone.
            self.clock = before;
        }
        self.end_step(world, out)
    }

    /// Takes in what is on record: nothing is decided, nothing follows.
    pub fn fold(&mut self, recorded: &Recorded, world: &mut World<'_>) {
        count_statement(recorded, world);
        let Recorded { seq, at, turn, event, .. } = recorded;
        self.apply(*at, *seq, *turn, event, world, &mut Vec::new());
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
                    self.forget_reason(companion);
                }
            }
            _ => {}
        }
    }

    /// The lowest number that something here still reads: what prompts show, and with it all that is unsettled. At rest nothing is, and
    /// nothing is read any more: beyond all numbers. (What a companion said itself is after its cursor until it settles more.)
    pub fn needed_from(&self) -> Seq {
        if self.is_at_rest() {
            return Seq(u64::MAX);
        }
        self.window.entries().next().map_or(self.handled, |entry| entry.seq)
    }

    /// Lets go of what stands below a number that is [not needed](Self::needed_from): its messages, and a summary of nothing else. True: that
    /// changed something.
    pub fn let_go(&mut self, below: Seq) -> bool {
        let summary = self.summary.text.take_if(|_| self.summary.upto < below);
        self.window.let_go(below) | summary.is_some()
    }

    fn forget_reason(&mut self, companion: &CompanionId) {
        if let Some(wish) = self.gates.get_mut(companion).and_then(|gate| gate.wish.as_mut()) {
            wish.why = None;
        }
        let turn = self.turn.as_mut().map(|turn| (&mut turn.candidate, &mut turn.selection));
        let (candidate, turn_selection) = turn.unzip();
        let floor_selection = self.floor.as_mut().map(|floor| {
            if floor.companion == *companion {
                floor.why = None;
            }
            &mut floor.selection
        });
        let others = turn_selection.into_iter().chain(floor_selection).flat_map(|selection| &mut selection.others);
        for candidate in candidate.into_iter().chain(others).filter(|candidate| candidate.companion == *companion) {
            candidate.why = None;
        }
    }

    /// Passes over an event from outside that must not be handled, because handling it kills. A statement was made all the same, and is owed
    /// no more.
    pub fn pass_over(&mut self, recorded: &Recorded) {
        self.handled = self.handled.max(recorded.seq);
        if let Event::Said { reply: Some(ticket), .. } = recorded.event {
            self.floor.take_if(|floor| floor.ticket == ticket);
        }
    }

    /// Goes on after a restart: what the record leaves open is computed again. Questions in flight and replies owed are told by
    /// [`open_questions`](Self::open_questions) and [`floor`](Self::floor); the shell asks and makes them again.
    pub fn resume(&mut self, now: Moment, world: &mut World<'_>) -> Vec<Output> {
        let mut out = Vec::new();
        let before = self.clock;
        self.advance_to(now, world, &mut out);
        self.extend_deadlines(world, &mut out);
        self.tell_opened_again(world, &mut out);
        self.settle_stale_after_restart(world, &mut out);
        self.settle_overflow_after_restart(world, &mut out);
        self.count_addresses_after_restart(world, &mut out);
        self.wake(world, &mut out);
        let after_statement = self.spoken.is_some();
        self.advance(Occasion { by_deadline: true, after_statement }, Vec::new(), world, &mut out);
        if !out.iter().any(|output| matches!(output, Output::Made(_))) {
            self.clock = before;
        }
        self.end_step(world, out)
    }

    fn end_step(&mut self, world: &mut World<'_>, mut out: Vec<Output>) -> Vec<Output> {
        self.begun = None;
        if let Some(turn) = self.oldest_started.take() {
            name_turn_that_begins(turn, &mut out);
        }
        world.ledger.promise_statement(world.channel, self.owes_statement());
        out
    }

    /// When the conversation wants to be woken next.
    pub fn wake_at(&self) -> Option<Moment> {
        self.gates.values().filter_map(Gate::retry_at).chain(self.wake_at_but_for_retries()).min()
    }

    /// When it wants to be woken next for something else than asking again what was not answered.
    pub fn wake_at_but_for_retries(&self) -> Option<Moment> {
        let round = self.round.as_ref().map(|round| round.deadline);
        self.lulls_and_speakers().chain(round).min()
    }

    /// When it wants to be woken next for something else than the deadline of its round.
    pub fn wake_at_but_for_round(&self) -> Option<Moment> {
        self.gates.values().filter_map(Gate::retry_at).chain(self.lulls_and_speakers()).min()
    }

    fn lulls_and_speakers(&self) -> impl Iterator<Item = Moment> {
        let lulls = self.gates.values().filter_map(|gate| gate.lull_at);
        let turn = self.turn.as_ref().and_then(|turn| turn.speak_at);
        let floor = self.floor.as_ref().filter(|floor| !floor.is_posting).and_then(|floor| floor.due_at);
        lulls.chain(turn).chain(floor)
    }

    /// Whether nothing is unsettled, armed, in flight or owed: the channel may sleep.
    pub fn is_at_rest(&self) -> bool {
        !self.is_busy()
            && self.wake_at().is_none()
            && self
                .gates
                .iter()
                .all(|(companion, gate)| gate.waiting.is_none() && self.window.buffer(companion, gate.cursor).next().is_none())
    }

    /// Whether no question may be asked: a round is open, a companion has the floor, or a question is in flight.
    fn is_busy(&self) -> bool {
        self.round.is_some()
            || self.turn.is_some()
            || self.floor.is_some()
            || self.is_being_judged()
            || self.gates.values().any(Gate::is_engaged)
    }

    fn is_being_judged(&self) -> bool {
        self.spoken.as_ref().is_some_and(|spoken| matches!(spoken.judgement, Judgement::Asked(_)))
    }
}

/// A statement counts once it is on record, and once, whoever takes it in again.
fn count_statement(recorded: &Recorded, world: &mut World<'_>) {
    if matches!(recorded.event, Event::Said { reply: Some(_), .. }) {
        world.ledger.count(Use::Statement { channel: world.channel }, recorded.at, world.rules.gate);
    }
}

/// What a step is about, as far as what follows depends on it.
#[derive(Clone, Copy)]
struct Occasion {
    /// A deadline is due: all that are due at this moment are.
    by_deadline: bool,
    /// A statement was posted, and judged if need be: the round that it opens is due.
    after_statement: bool,
}

#[cfg(test)]
pub(crate) mod poison;
#[cfg(test)]
mod tests;
