//! Checks the record of a room against the rules, event by event. The reference shares nothing with the domain except its events.

mod events;
mod floor;
mod reasons;
mod replanning;
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
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use events::Acknowledgements;
use floor::{Floor, HeldVote};
use replanning::Cancel;
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
    /// The newest event that settled.
    cursor: Seq,
    /// Messages that a person cancelled. As addresses, they are no reason to ask.
    cancelled: BTreeSet<Seq>,
    /// Messages that their author took back while the companion was asked about them. They are declined alone, and it is asked again about the rest.
    declined: BTreeSet<Seq>,
    is_asked_again: bool,
    /// The open question, and the newest message that it is about.
    asked: Option<(Ticket, Seq)>,
    /// The messages that the newest question is about, without settled and deleted ones.
    about: Vec<Seq>,
    /// The message that it was asked for, and the round of the question.
    message: Seq,
    round: Option<Seq>,
    /// It became terminal when the address that it is asked about had settled. The question may have been withdrawn.
    may_be_withdrawn: bool,
    /// It said YES in a round, and neither got the floor nor lost it.
    has_wish: bool,
    /// The newest YES was to start a conversation.
    wants_to_start: bool,
    /// The newest message of a question without an answer; the back-off after it, and the length of the last back-off.
    tried: Seq,
    pause: Option<Pause>,
    back_off: Option<Duration>,
    /// Its lull timer has fired, and nothing has happened since that could arm it again.
    has_fired: bool,
    /// A message was deleted since it last settled everything. Its pending lull may have changed with that.
    is_unsure: bool,
    /// The events that it had to acknowledge, settled ones too, and since when it could do that at once.
    events: BTreeSet<Seq>,
    acknowledges_since: Option<Duration>,
    /// It does not start a conversation until a human message follows this one.
    started_after: Seq,
    /// Since when nobody has said anything, if it may start a conversation, and whether that has lasted for long enough.
    silent_since: Option<Duration>,
    is_silence_over: bool,
}

/// An open round, and its voters.
struct Round {
    message: Seq,
    deadline: Moment,
    /// Something else was in progress when it opened.
    is_besides: bool,
    asked: BTreeSet<CompanionId>,
    voters: BTreeSet<CompanionId>,
    /// Voters that must listen: they were paused or closed, or their question has no messages left.
    listeners: BTreeSet<CompanionId>,
}

pub(super) struct Record<'a> {
    channel_key: &'a ChannelKey,
    stage: &'a Stage,
    /// Dead letters: they may be settled or not.
    skipped: &'a BTreeSet<Seq>,
    watch: &'a Watch<'a>,
    /// The channel's own time, and when the newest event that is no timer was on disk.
    clock: Moment,
    since: Duration,
    received: BTreeMap<Seq, RoomMessage>,
    /// Companions that were addressed while they had nothing in progress: by which message, and when.
    calls: Vec<(CompanionId, Seq, Duration)>,
    seats: BTreeMap<CompanionId, Seat>,
    rounds: Vec<Round>,
    /// Votes that wait for the floor.
    held: BTreeMap<CompanionId, HeldVote>,
    /// The companions that may take the floor, in this order, and the event at which they were selected.
    candidates: Vec<CompanionId>,
    selected_at: Seq,
    /// When the selected companion speaks, and since when that is known.
    speak_at: Option<(Moment, Duration)>,
    /// One of these must owe a reply next.
    due: Vec<CompanionId>,
    /// All messages of the selected companion may have been deleted, and its turn dropped.
    is_due_unsure: bool,
    /// The round that selected it.
    opened: Seq,
    is_being_judged: bool,
    /// One of the candidates failed.
    has_failed: bool,
    /// The lone companion that said YES.
    alone: Option<CompanionId>,
    floor: Option<Floor>,
    /// Replies that are written without the floor.
    late: Vec<Floor>,
    /// Since when nobody has the floor or was selected, and no model judges.
    free_since: Duration,
    /// Addresses over a budget.
    refused: BTreeSet<Seq>,
    /// What stop phrases cancelled, by the phrase.
    cancels: BTreeMap<Seq, Vec<Cancel>>,
    /// Replies that were owed and dropped. A part in flight may still be posted.
    dropped: BTreeSet<Ticket>,
    /// Posts before this time may be parts of dropped replies.
    dropped_until: Duration,
    tickets: BTreeSet<Ticket>,
    /// The turn of each question and each reply.
    turns: BTreeMap<Ticket, TurnId>,
    spoke: BTreeMap<CompanionId, Seq>,
    newest_human: Seq,
    acknowledgements: Acknowledgements,
    longest_streak: u32,
    /// Like `newest_human` and `longest_streak`, with people's dead letters, which may have been handled or not.
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
            rounds: Vec::new(),
            held: BTreeMap::new(),
            candidates: Vec::new(),
            selected_at: Seq::NONE,
            speak_at: None,
            due: Vec::new(),
            is_due_unsure: false,
            opened: Seq::NONE,
            is_being_judged: false,
            has_failed: false,
            alone: None,
            floor: None,
            late: Vec::new(),
            free_since: Duration::ZERO,
            refused: BTreeSet::new(),
            cancels: BTreeMap::new(),
            dropped: BTreeSet::new(),
            dropped_until: Duration::ZERO,
            tickets: BTreeSet::new(),
            turns: BTreeMap::new(),
            spoke: BTreeMap::new(),
            newest_human: Seq::NONE,
            acknowledgements: Acknowledgements::default(),
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
                | Event::VoiceQuiet { .. }
                | Event::EventsDeferred { .. }
                | Event::EventsReleased
                | Event::BackOffEnded { .. }
        );
        if !is_timer {
            // Timer events give nobody a reason to wait again.
            self.since = self.since.max(now);
        }
        self.clock = self.clock.max(recorded.at);
        let was_awaited = self.is_floor_awaited();
        self.check_turn(recorded);
        match &recorded.event {
            Event::Said { message, reply, said_at, .. } => {
                self.note_received(recorded.seq, message, *said_at);
                self.said(recorded.seq, message, *reply);
                self.note_event(recorded.seq, message);
                self.restart_silences(recorded.seq);
                self.note_stop(recorded.seq);
                self.note_follow_up(recorded.seq);
            }
            Event::Edited { message, .. } => self.note_change(recorded.seq, self.clock, &[*message]),
            Event::CaughtUp { .. }
            | Event::Chosen { .. }
            | Event::Disclosed(_)
            | Event::Reacted { .. }
            | Event::JitterDrawn { .. }
            | Event::Filtered(_)
            | Event::Noted(_)
            | Event::NotesTaken(_)
            | Event::ReminderSet(_)
            | Event::RemindersCancelled { .. } => {}
            Event::ToolCalled(_) | Event::ToolConfirmed(_) | Event::ToolAnswered(_) => {
                self.violate(format_args!("no model calls tools: {recorded:?}"));
            }
            // Rooms with voice calls have their own checks.
            Event::VoiceJoined { .. } | Event::VoiceLeft { .. } | Event::Segment(_) | Event::VoiceQuiet { .. } => {}
            Event::AddressRefused { message } => drop(self.refused.insert(*message)),
            Event::LullFired { companions } => self.lull_fired(recorded, companions),
            Event::SilenceFired { companions } => self.silence_fired(recorded, companions),
            Event::EventsDeferred { until } => self.events_deferred(recorded, *until),
            Event::EventsReleased => self.events_released(recorded),
            Event::BackOffEnded { companions } => self.back_off_ended(recorded, companions),
            Event::DeadlinesExtended { round, floor, .. } => self.extended(recorded, *round, *floor),
            Event::Deleted { messages, .. } => {
                self.note_change(recorded.seq, self.clock, messages);
                if messages.iter().any(|seq| self.is_event(*seq)) {
                    self.events_may_move();
                }
                self.deleted(messages);
            }
            Event::Joined { companion, external } => {
                let started_after = self.newest_human;
                let seat = self.seats.entry(companion.clone()).or_insert_with(|| Seat { started_after, ..Seat::default() });
                seat.is_external = *external;
            }
            Event::Left { companion } => {
                self.events_may_move();
                self.left(companion);
            }
            Event::Paused { companion, paused } => self.paused(companion.as_ref(), *paused),
            Event::Cleared { .. } => self.cleared(),
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
            Event::ReplyOwed { companion, ticket, trigger, messages, due_at, expires_at, .. } => {
                self.owed(recorded, companion, *ticket, messages, (*due_at, *expires_at));
                if *trigger == Trigger::Silence {
                    self.stage.reach("conversation started");
                    self.no_starts(|_| true);
                    self.seats.values_mut().for_each(|seat| seat.is_silence_over = false);
                }
            }
            Event::Replanning { companion, ticket, message, until } => {
                self.replanning(recorded, companion, *ticket, *message, *until);
            }
            Event::Replanned { companion, ticket, next, messages, .. } => {
                self.replanned(recorded, companion, (*ticket, *next), messages);
            }
            Event::Cancelled { companion, ticket, message: Some(message), .. } => {
                self.cancelled(recorded, companion, *ticket, *message);
            }
            Event::Cancelled { .. } => self.violate(format_args!("nobody presses Stop: {recorded:?}")),
            Event::FloorExpired { companion, ticket } => self.floor_expired(recorded, companion, *ticket),
            Event::FloorTaken { companion, ticket } => self.floor_taken(recorded, companion, *ticket),
            Event::HeldSelected { selected, others } => self.held_selected(recorded, selected, others),
            Event::ReplyFailed { companion, ticket, error, .. } => self.failed(recorded, companion, *ticket, error),
            Event::ReplyExtended { .. }
            | Event::SentenceStarting { .. }
            | Event::SentencePlayed { .. }
            | Event::Interrupted { .. } => self.violate(format_args!("nobody is in a voice call: {recorded:?}")),
            Event::Summarised { .. } => self.stage.reach("summary"),
        }
        self.drop_settled_held();
        self.note_acknowledgers(now);
        if was_awaited || self.is_floor_awaited() {
            self.free_since = self.free_since.max(now);
        }
    }

    /// A question or a reply belongs to a turn, and its outcome belongs to the same turn.
    fn check_turn(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Evaluated(Evaluated { ticket, .. }) | Event::ReplyOwed { ticket, .. } => match recorded.turn {
                Some(turn) => drop(self.turns.insert(*ticket, turn)),
                None => self.violate(format_args!("a question or a reply belongs to no turn: {recorded:?}")),
            },
            Event::Replanned { ticket, next, .. } => {
                let turn = self.turns.get(ticket).copied();
                if recorded.turn.is_none() || recorded.turn != turn {
                    self.violate(format_args!("the event belongs to turn {turn:?}: {recorded:?}"));
                }
                self.turns.extend(turn.map(|turn| (*next, turn)));
            }
            Event::Decided(Decided { ticket: Some(ticket), .. })
            | Event::Unanswered { ticket, .. }
            | Event::ReplyFailed { ticket, .. }
            | Event::Replanning { ticket, .. }
            | Event::Cancelled { ticket: Some(ticket), .. }
            | Event::FloorExpired { ticket, .. }
            | Event::FloorTaken { ticket, .. }
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
            if !message.is_by(companion) && seq > seat.cursor && !seat.declined.contains(&seq) {
                seat.unsettled.push(seq);
            }
        }
    }

    fn left(&mut self, companion: &CompanionId) {
        self.seats.remove(companion);
        self.held.remove(companion);
        for round in &mut self.rounds {
            round.voters.remove(companion);
            round.asked.remove(companion);
        }
        self.candidates.retain(|candidate| candidate != companion);
        self.drop_turns_of(|due| due == companion);
        self.dropped.extend(self.floor.take_if(|floor| floor.companion == *companion).map(|floor| floor.ticket));
    }

    fn paused(&mut self, only: Option<&CompanionId>, paused: bool) {
        for (_, seat) in self.seats.iter_mut().filter(|(companion, _)| only.is_none_or(|only| only == *companion)) {
            seat.paused = paused;
            if paused {
                (seat.silent_since, seat.is_silence_over) = (None, false);
                (seat.asked, seat.pause, seat.back_off, seat.has_fired, seat.has_wish) = (None, None, None, false, false);
            }
        }
        let silenced: Vec<_> =
            self.seats.iter().filter(|(_, seat)| seat.paused).map(|(companion, _)| companion.clone()).collect();
        self.held.retain(|companion, _| !silenced.contains(companion));
        self.rounds.iter_mut().for_each(|round| round.listeners.extend(silenced.iter().cloned()));
        if paused {
            self.drop_turns_of(|due| only.is_none_or(|only| only == due));
        }
        self.alone = None;
    }

    fn cleared(&mut self) {
        let started_after = self.newest_human;
        for seat in self.seats.values_mut() {
            *seat = Seat { paused: seat.paused, is_external: seat.is_external, started_after, ..Seat::default() };
        }
        self.acknowledgements.clear();
        self.drop_turns_of(|_| true);
        self.is_being_judged = false;
        self.rounds.clear();
        self.held.clear();
        self.late.clear();
        self.candidates.clear();
        self.alone = None;
        (self.streak, self.longest_streak) = (0, 0);
        self.dropped.extend(self.floor.take().map(|floor| floor.ticket));
    }

    /// Drops the turn that is due if one of these companions was to take it, and expects no more questions for earlier addresses.
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
        if self.is_due_unsure && evaluated.trigger != Trigger::DirectAddress {
            self.set_due(Vec::new());
            self.speak_at = None;
        }
        self.check_who_is_asked(recorded, evaluated);
        if evaluated.trigger == Trigger::Silence {
            self.check_silence(recorded, &evaluated.companion, &evaluated.messages);
        }
        let round = self.rounds.iter().rev().find(|round| round.asked.contains(&evaluated.companion)).map(|round| round.message);
        let Some(seat) = self.seats.get_mut(&evaluated.companion) else {
            return self.violate(format_args!("{} is not present: {recorded:?}", evaluated.companion));
        };
        seat.round = round;
        seat.is_asked_again = false;
        if std::mem::take(&mut seat.has_wish) {
            // The rounds before go on without it.
            self.stage.reach("asked anew while it wanted to speak");
            for open in self.rounds.iter_mut().filter(|open| Some(open.message) != round) {
                open.listeners.insert(evaluated.companion.clone());
            }
        }
        let before = seat.asked.replace((evaluated.ticket, evaluated.upto));
        seat.about.clone_from(&evaluated.messages);
        (seat.message, seat.pause, seat.has_fired, seat.may_be_withdrawn) = (evaluated.message, None, false, false);
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
            Some(seat) if seat.stage == from => {
                seat.stage = to;
                if to == Closing::Terminal {
                    (seat.silent_since, seat.is_silence_over) = (None, false);
                }
            }
            seat => {
                let current = seat.map(|seat| seat.stage);
                self.violate(format_args!("{companion} was {current:?}: {recorded:?}"));
            }
        }
        if to == Closing::Terminal {
            self.withdraw(companion);
        }
        if to == Closing::Terminal && self.speak_at.is_some() && self.due.contains(companion) {
            // It had not begun to speak.
            self.stage.reach("turn dropped: closed");
            (self.due, self.speak_at) = (Vec::new(), None);
            self.candidates.clear();
        }
    }

    /// Withdraws the question or the vote of a companion that became terminal, unless the message that it was asked for is a person's address.
    fn withdraw(&mut self, companion: &CompanionId) {
        let is_call = |seq: &Seq| {
            let is_said = |received: &&RoomMessage| received.role == Role::Person && !received.is_event && !received.is_deleted;
            let received = self.received.get(seq).filter(is_said);
            received.is_some_and(|received| received.address.includes(companion))
        };
        let Some(seat) = self.seats.get_mut(companion) else { return };
        if seat.asked.is_none() && !seat.has_wish {
            return;
        }
        if is_call(&seat.message) {
            // An address that has settled in the meantime may not be known any more.
            seat.may_be_withdrawn = !seat.unsettled.contains(&seat.message);
            return;
        }
        self.stage.reach("question withdrawn: closed");
        (seat.asked, seat.has_wish) = (None, false);
        self.held.remove(companion);
        self.rounds.iter_mut().for_each(|round| round.listeners.extend([companion.clone()]));
    }

    fn without_skipped(&self, messages: &[Seq]) -> Vec<Seq> {
        messages.iter().copied().filter(|seq| !self.skipped.contains(seq)).collect()
    }

    /// At rest nothing is open, owed or unsettled.
    fn end(&self) {
        for round in &self.rounds {
            self.violate(format_args!("the round about {} is open for ever", round.message));
        }
        for floor in self.floor.iter().chain(&self.late) {
            self.violate(format_args!("{} owes {} for ever", floor.companion, floor.ticket));
        }
        if let Some((companion, held)) = self.held.first_key_value().filter(|_| self.skipped.is_empty()) {
            self.violate(format_args!("the vote of {companion} about {} is held for ever", held.message));
        }
        if !self.due.is_empty() && self.is_certain() {
            self.violate(format_args!("{:?} was to speak and never did", self.due));
        }
        for (companion, seat) in &self.seats {
            let unsettled = self.without_skipped(&seat.unsettled);
            if seat.silent_since.is_some() && self.keeps_time() {
                self.violate(format_args!("{companion} has not noticed that nobody said anything"));
            }
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
