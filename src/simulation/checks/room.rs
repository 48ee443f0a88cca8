//! Checks the record of a room against the rules, event by event. The reference shares nothing with the domain except its events.

mod reasons;
mod rounds;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::stage::Stage;
use crate::domain::closing::{Cause, Stage as Closing};
use crate::domain::event::{Decided, Evaluated, Event, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket, TurnId};
use crate::domain::message::{Message, Role};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
pub(super) use waits::Watch;
use waits::{Pause, RoomMessage};

/// The state of one companion that is a member.
#[derive(Default)]
struct Seat {
    paused: bool,
    /// A program outside plays it.
    is_external: bool,
    stage: Closing,
    /// In order.
    unsettled: Vec<Seq>,
    /// The open question, and the newest message that it is about.
    asked: Option<(Ticket, Seq)>,
    /// The messages that the newest question is about, without settled and deleted ones.
    about: Vec<Seq>,
    /// The message that it was asked for.
    message: Seq,
    /// The newest message of a question without an answer; the back-off after it, and the length of the last back-off.
    tried: Seq,
    pause: Option<Pause>,
    back_off: Option<Duration>,
    /// Its lull timer has fired, and nothing has happened since that could arm it again.
    has_fired: bool,
    /// A message was deleted since it last settled everything. Its pending lull may have changed with that.
    is_unsure: bool,
}

struct Floor {
    companion: CompanionId,
    ticket: Ticket,
    selected_at: Seq,
    /// The messages that it answers, without deleted ones.
    messages: Vec<Seq>,
    /// It acknowledges an event, so the loop guard does not apply.
    acknowledges: bool,
    since: Duration,
}

/// An open round, and its voters.
struct Round {
    message: Seq,
    deadline: Moment,
    voters: BTreeSet<CompanionId>,
    /// Voters whose question has no messages left.
    about_nothing: BTreeSet<CompanionId>,
}

pub(super) struct Record<'a> {
    channel_key: &'a ChannelKey,
    stage: &'a Stage,
    /// Dead letters: they may be settled or not.
    skipped: &'a BTreeSet<Seq>,
    watch: &'a Watch<'a>,
    /// The channel's own time, and when the newest event was on disk.
    clock: Moment,
    since: Duration,
    received: BTreeMap<Seq, RoomMessage>,
    /// Companions that were addressed while nothing else was in progress: by which message, and when.
    calls: Vec<(CompanionId, Seq, Duration)>,
    seats: BTreeMap<CompanionId, Seat>,
    round: Option<Round>,
    /// The companions that may take the floor, in this order, and the event at which they were selected.
    candidates: Vec<CompanionId>,
    selected_at: Seq,
    /// When the selected companion speaks, and since when that is known.
    speak_at: Option<(Moment, Duration)>,
    /// One of these must owe a reply next.
    due: Vec<CompanionId>,
    is_being_judged: bool,
    /// One of the candidates failed.
    has_failed: bool,
    /// The lone companion that said YES.
    alone: Option<CompanionId>,
    floor: Option<Floor>,
    /// Replies that were owed and dropped. A part in flight may still be posted.
    dropped: BTreeSet<Ticket>,
    tickets: BTreeSet<Ticket>,
    /// The turn of each question and each reply.
    turns: BTreeMap<Ticket, TurnId>,
    spoke: BTreeMap<CompanionId, Seq>,
    newest_human: Seq,
    /// The newest human message when the silence of a companion was last over.
    silences: BTreeMap<CompanionId, Seq>,
    longest_streak: u32,
    /// The same with dead letters, which may have been handled or not.
    newest_human_maybe: Seq,
    streak: u32,
}

impl<'a> Record<'a> {
    /// Reads a room's events, in the order in which they were handled.
    pub(super) fn read(
        channel_key: &'a ChannelKey,
        events: &[Recorded],
        skipped: &'a BTreeSet<Seq>,
        stage: &'a Stage,
        watch: &'a Watch<'a>,
    ) {
        let mut record = Self {
            channel_key,
            stage,
            skipped,
            watch,
            clock: Moment::ZERO,
            since: Duration::ZERO,
            received: BTreeMap::new(),
            calls: Vec::new(),
            seats: BTreeMap::new(),
            round: None,
            candidates: Vec::new(),
            selected_at: Seq::NONE,
            speak_at: None,
            due: Vec::new(),
            is_being_judged: false,
            has_failed: false,
            alone: None,
            floor: None,
            dropped: BTreeSet::new(),
            tickets: BTreeSet::new(),
            turns: BTreeMap::new(),
            spoke: BTreeMap::new(),
            newest_human: Seq::NONE,
            silences: BTreeMap::new(),
            longest_streak: 0,
            newest_human_maybe: Seq::NONE,
            streak: 0,
        };
        for recorded in events {
            match &recorded.event {
                _ if !skipped.contains(&recorded.seq) => record.enter(recorded),
                Event::Said { message, reply, .. } => record.skip(recorded.seq, message, *reply),
                _ => {}
            }
        }
        record.end();
    }

    fn violate(&self, what: impl std::fmt::Display) {
        self.stage.violate(format!("{}: {what}", self.channel_key));
    }

    fn enter(&mut self, recorded: &Recorded) {
        let now = self.when(recorded.seq);
        self.pass(now);
        let is_timer = matches!(
            recorded.event,
            Event::LullFired { .. }
                | Event::SilenceFired { .. }
                | Event::EventsDeferred { .. }
                | Event::EventsReleased
                | Event::BackOffEnded { .. }
        );
        if !is_timer {
            // Timer events give nobody a reason to wait again.
            self.since = self.since.max(now);
        }
        self.clock = self.clock.max(recorded.at);
        self.check_turn(recorded);
        match &recorded.event {
            Event::Said { message, reply, said_at, .. } => {
                self.note_received(recorded.seq, message, *said_at);
                self.said(recorded.seq, message, *reply);
            }
            Event::Edited { .. } | Event::CaughtUp { .. } | Event::JitterDrawn { .. } | Event::AddressRefused { .. } => {}
            Event::LullFired { companions } => self.lull_fired(recorded, companions),
            Event::SilenceFired { companions } => self.silence_fired(recorded, companions),
            Event::EventsDeferred { .. } => self.stage.reach("events deferred"),
            Event::EventsReleased => {}
            Event::BackOffEnded { companions } => self.back_off_ended(recorded, companions),
            Event::DeadlinesExtended { round, floor } => self.extended(recorded, *round, *floor),
            Event::Deleted { messages } => self.deleted(messages),
            Event::Joined { companion, external } => self.seats.entry(companion.clone()).or_default().is_external = *external,
            Event::Left { companion } => self.left(companion),
            Event::Paused { companion, paused } => self.paused(companion.as_ref(), *paused),
            Event::Cleared => self.cleared(),
            Event::RoundOpened(opened) => self.opened(recorded, opened),
            Event::Evaluated(evaluated) => self.evaluated(recorded, evaluated),
            Event::Decided(decided) => self.decided(recorded, decided),
            Event::Unanswered { companion, ticket, back_off, .. } => self.unanswered(recorded, companion, *ticket, *back_off),
            Event::StageChanged { companion, from, to, cause } => self.stage_changed(recorded, companion, *from, *to, *cause),
            Event::RoundClosed(closed) => self.closed(recorded, closed),
            Event::RepetitionAsked { ticket, .. } => {
                self.new_ticket(*ticket);
                self.is_being_judged = true;
            }
            Event::RepetitionJudged { call, .. } => {
                self.is_being_judged = false;
                self.stage.reach(if call.is_some() { "judged by a model" } else { "judged by words" });
            }
            Event::ReplyOwed { companion, ticket, messages, due_at, .. } => {
                self.owed(recorded, companion, *ticket, messages, *due_at);
            }
            Event::Replanning { .. } | Event::Replanned { .. } | Event::Cancelled { .. } => {}
            Event::FloorExpired { .. } | Event::FloorTaken { .. } | Event::HeldSelected { .. } => {}
            Event::ReplyFailed { companion, ticket, .. } => self.failed(recorded, companion, *ticket),
            Event::Summarised { .. } => self.stage.reach("summary"),
        }
    }

    /// A question or a reply belongs to a turn, and its outcome belongs to the same turn.
    fn check_turn(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Evaluated(Evaluated { ticket, .. }) | Event::ReplyOwed { ticket, .. } => match recorded.turn {
                Some(turn) => drop(self.turns.insert(*ticket, turn)),
                None => self.violate(format_args!("a question or a reply belongs to no turn: {recorded:?}")),
            },
            Event::Decided(Decided { ticket: Some(ticket), .. })
            | Event::Unanswered { ticket, .. }
            | Event::ReplyFailed { ticket, .. }
            | Event::Said { reply: Some(ticket), .. } => {
                let turn = self.turns.get(ticket).copied();
                let is_posted_late = matches!(recorded.event, Event::Said { .. }) && recorded.turn.is_none();
                if recorded.turn != turn && !is_posted_late {
                    self.violate(format_args!("the event belongs to turn {turn:?}: {recorded:?}"));
                }
            }
            _ => {}
        }
    }

    /// A dead letter. If it is a statement, it was made nevertheless.
    fn skip(&mut self, seq: Seq, message: &Message, reply: Option<Ticket>) {
        self.lulls_may_be_armed();
        if message.from.role == Role::Person && !message.is_event() {
            (self.newest_human_maybe, self.streak) = (seq, 0);
        }
        if let Some(ticket) = reply {
            self.candidates.clear();
            let had = self.floor.take_if(|floor| floor.ticket == ticket && message.is_by(&floor.companion));
            if had.is_none() && !self.dropped.remove(&ticket) {
                self.violate(format_args!("{seq} is posted for reply {ticket}, which is not owed (any more), and a dead letter"));
            }
            self.longest_streak += 1;
        }
    }

    fn said(&mut self, seq: Seq, message: &Message, reply: Option<Ticket>) {
        self.lulls_may_be_armed();
        if message.from.role == Role::Person && !message.is_event() {
            (self.newest_human, self.longest_streak, self.newest_human_maybe, self.streak) = (seq, 0, seq, 0);
        }
        if let Some(ticket) = reply {
            self.spoken(seq, message, ticket);
        }
        for (companion, seat) in &mut self.seats {
            if !message.is_by(companion) {
                seat.unsettled.push(seq);
            }
        }
    }

    fn spoken(&mut self, seq: Seq, message: &Message, ticket: Ticket) {
        let companion = CompanionId::from(&*message.from.id);
        self.spoke.insert(companion.clone(), seq);
        match self.floor.take_if(|floor| floor.ticket == ticket && floor.companion == companion) {
            Some(floor) => {
                self.fulfilled(seq, &companion, floor.since);
                self.candidates.clear();
                self.streak += u32::from(floor.selected_at >= self.newest_human_maybe);
                self.longest_streak += u32::from(floor.selected_at >= self.newest_human);
                if self.streak > self.stage.plan.rules.streak && !floor.acknowledges {
                    self.violate(format_args!("{} statements in a row without a human: {seq} by {companion}", self.streak));
                }
            }
            None if self.dropped.remove(&ticket) => {
                self.longest_streak += 1;
                self.stage.reach("posted although dropped");
            }
            None => self.violate(format_args!("{companion} posts {seq} for reply {ticket}, which is not owed (any more)")),
        }
    }

    /// A wish, a turn or a reply ends when all its messages are deleted. A question continues with what it has read.
    fn deleted(&mut self, gone: &[Seq]) {
        self.calls.clear();
        self.lulls_may_be_armed();
        let lose_last = |about: &mut Vec<Seq>| {
            let before = about.len();
            about.retain(|seq| !gone.contains(seq));
            about.is_empty() && before > 0
        };
        for (companion, seat) in &mut self.seats {
            let (before, may_be_about_nothing) = (seat.unsettled.len(), seat.about.iter().all(|seq| self.skipped.contains(seq)));
            seat.unsettled.retain(|seq| !gone.contains(seq));
            seat.is_unsure = !seat.unsettled.is_empty() && (seat.is_unsure || seat.unsettled.len() < before);
            if !lose_last(&mut seat.about) || may_be_about_nothing {
                // After a crash, the deletion is applied again, and then a turn about nothing is dropped. A turn about dead
                // letters leads to no statement, sooner or later.
                if seat.about.is_empty() && self.round.is_none() && self.candidates.first() == Some(companion) {
                    (self.due, self.speak_at) = (Vec::new(), None);
                }
                continue;
            }
            if seat.asked.is_some() {
                self.stage.reach("question about deleted messages");
                continue;
            }
            match &mut self.round {
                Some(round) => drop(round.about_nothing.insert(companion.clone())),
                None if self.floor.is_none() && self.candidates.first() == Some(companion) => {
                    self.stage.reach("turn dropped: all messages deleted");
                    self.candidates.clear();
                    self.due.clear();
                    self.speak_at = None;
                }
                None => {}
            }
        }
        if let Some(floor) = self.floor.take_if(|floor| lose_last(&mut floor.messages)) {
            self.stage.reach("reply dropped: all messages deleted");
            self.candidates.clear();
            self.dropped.insert(floor.ticket);
        }
    }

    fn left(&mut self, companion: &CompanionId) {
        self.seats.remove(companion);
        if let Some(round) = &mut self.round {
            round.voters.remove(companion);
        }
        self.candidates.retain(|candidate| candidate != companion);
        self.drop_turns_of(|due| due == companion);
        self.dropped.extend(self.floor.take_if(|floor| floor.companion == *companion).map(|floor| floor.ticket));
    }

    fn paused(&mut self, only: Option<&CompanionId>, paused: bool) {
        for (_, seat) in self.seats.iter_mut().filter(|(companion, _)| only.is_none_or(|only| only == *companion)) {
            seat.paused = paused;
            if paused {
                (seat.asked, seat.pause, seat.back_off, seat.has_fired) = (None, None, None, false);
            }
        }
        if paused {
            self.drop_turns_of(|due| only.is_none_or(|only| only == due));
        }
        self.alone = None;
    }

    fn cleared(&mut self) {
        for seat in self.seats.values_mut() {
            *seat = Seat { paused: seat.paused, is_external: seat.is_external, ..Seat::default() };
        }
        self.drop_turns_of(|_| true);
        self.is_being_judged = false;
        self.round = None;
        self.candidates.clear();
        self.alone = None;
        (self.streak, self.longest_streak) = (0, 0);
        self.dropped.extend(self.floor.take().map(|floor| floor.ticket));
    }

    /// The companions concerned neither take their turn nor are asked for the message that called them.
    fn drop_turns_of(&mut self, concerns: impl Fn(&CompanionId) -> bool) {
        self.calls.clear();
        if self.due.iter().any(concerns) {
            self.due.clear();
            self.speak_at = None;
        }
    }

    fn new_ticket(&mut self, ticket: Ticket) {
        if !self.tickets.insert(ticket) {
            self.violate(format_args!("ticket {ticket} is used twice"));
        }
    }

    fn evaluated(&mut self, recorded: &Recorded, evaluated: &Evaluated) {
        self.stage.reach(match evaluated.trigger.as_str() {
            "direct_address" => "asked: direct address",
            "interjection" => "asked: interjection",
            "turn" => "asked: turn",
            "silence" => "asked: silence",
            _ => "asked: lull",
        });
        self.new_ticket(evaluated.ticket);
        self.check_time_to_ask(recorded, evaluated);
        self.check_addresses(recorded, &evaluated.companion, evaluated.upto, evaluated.trigger);
        if !self.due.is_empty() {
            self.violate(format_args!("{:?} must speak first: {recorded:?}", self.due));
        }
        let Some(seat) = self.seats.get_mut(&evaluated.companion) else {
            return self.violate(format_args!("{} is not present: {recorded:?}", evaluated.companion));
        };
        let before = seat.asked.replace((evaluated.ticket, evaluated.upto));
        seat.about.clone_from(&evaluated.messages);
        (seat.message, seat.pause, seat.has_fired) = (evaluated.message, None, false);
        let (is_silent, unsettled) = (seat.is_silent(), seat.unsettled.clone());
        if before.is_some() {
            self.violate(format_args!("{} is asked twice at once: {recorded:?}", evaluated.companion));
        }
        if is_silent {
            self.violate(format_args!("{} is asked although it is silent: {recorded:?}", evaluated.companion));
        }
        if self.without_skipped(&unsettled) != self.without_skipped(&evaluated.messages) {
            self.violate(format_args!("{} is asked about other messages than {unsettled:?}: {recorded:?}", evaluated.companion));
        }
        if unsettled.len() > self.stage.plan.rules.max_buffer {
            self.violate(format_args!("{} messages are unsettled for {}: {recorded:?}", unsettled.len(), evaluated.companion));
        }
    }

    fn stage_changed(&mut self, recorded: &Recorded, companion: &CompanionId, from: Closing, to: Closing, cause: Cause) {
        self.stage.reach(match cause {
            Cause::State => "stage: by vote",
            Cause::MaxTurns => "stage: max turns",
            Cause::Repetition => "stage: repetition",
            Cause::DirectAddress => "stage: opened by address",
            Cause::Event => "stage: opened by event",
            Cause::ReopenAfter => "stage: opened by messages",
            Cause::NewEpisode => "stage: new episode",
        });
        match self.seats.get_mut(companion) {
            Some(seat) if seat.stage == from => seat.stage = to,
            seat => {
                let current = seat.map(|seat| seat.stage);
                self.violate(format_args!("{companion} was {current:?}: {recorded:?}"));
            }
        }
    }

    fn without_skipped(&self, messages: &[Seq]) -> Vec<Seq> {
        messages.iter().copied().filter(|seq| !self.skipped.contains(seq)).collect()
    }

    /// At rest nothing is open, owed or unsettled.
    fn end(&self) {
        if let Some(round) = &self.round {
            self.violate(format_args!("the round about {} is open for ever", round.message));
        }
        if let Some(floor) = &self.floor {
            self.violate(format_args!("{} owes {} for ever", floor.companion, floor.ticket));
        }
        if !self.due.is_empty() && self.skipped.is_empty() {
            self.violate(format_args!("{:?} was to speak and never did", self.due));
        }
        for (companion, seat) in &self.seats {
            let unsettled = self.without_skipped(&seat.unsettled);
            if !unsettled.is_empty() {
                self.violate(format_args!("{unsettled:?} never settled for {companion}"));
            }
            // Of the messages of a question, some may be dead letters and the rest deleted.
            if let Some((ticket, _)) = seat.asked.filter(|_| self.skipped.is_empty()) {
                self.violate(format_args!("{companion} was asked {ticket}, and the question has no outcome"));
            }
        }
    }
}
