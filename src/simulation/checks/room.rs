//! A room as its record tells it, held to the rules, event by event, by a reference that shares nothing with the domain but its events.

mod rounds;

use std::collections::{BTreeMap, BTreeSet};

use super::super::stage::Stage;
use crate::domain::closing::{Cause, Stage as Closing};
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Evaluated, Event, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::{Message, Role};
use crate::journal::place::Place;

/// What is known of one companion that is present.
#[derive(Default)]
struct Seat {
    paused: bool,
    stage: Closing,
    /// In order.
    unsettled: Vec<Seq>,
    /// Which question, and the newest message that it is about.
    asked: Option<(Ticket, Seq)>,
    /// What the newest question is about, as far as it is unsettled and there.
    about: Vec<Seq>,
}

struct Floor {
    companion: CompanionId,
    ticket: Ticket,
    selected_at: Seq,
    /// What it answers, as far as it is there.
    messages: Vec<Seq>,
}

/// A round that is open, and who votes in it.
struct Round {
    message: Seq,
    voters: BTreeSet<CompanionId>,
    /// Those of them to whom nothing is left of what they were asked about.
    about_nothing: BTreeSet<CompanionId>,
}

pub(super) struct Record<'a> {
    place: &'a Place,
    told: &'a Stage,
    /// What was set aside, and may be settled or not.
    skipped: &'a BTreeSet<Seq>,
    seats: BTreeMap<CompanionId, Seat>,
    round: Option<Round>,
    /// Who may take the floor, in this order, and since when they were selected.
    candidates: Vec<CompanionId>,
    selected_at: Seq,
    /// One of them failed.
    has_failed: bool,
    /// The lone companion that said YES.
    alone: Option<CompanionId>,
    floor: Option<Floor>,
    /// Replies that were owed and dropped: what was on its way may still be posted.
    dropped: BTreeSet<Ticket>,
    tickets: BTreeSet<Ticket>,
    spoke: BTreeMap<CompanionId, Seq>,
    newest_human: Seq,
    longest_streak: u32,
    /// The same with what was set aside, which may have been handled or not.
    newest_human_maybe: Seq,
    streak: u32,
}

impl<'a> Record<'a> {
    /// Reads a room's events, in the order in which they were handled.
    pub(super) fn read(place: &'a Place, events: &[Recorded], skipped: &'a BTreeSet<Seq>, told: &'a Stage) {
        let mut record = Self {
            place,
            told,
            skipped,
            seats: BTreeMap::new(),
            round: None,
            candidates: Vec::new(),
            selected_at: Seq::NONE,
            has_failed: false,
            alone: None,
            floor: None,
            dropped: BTreeSet::new(),
            tickets: BTreeSet::new(),
            spoke: BTreeMap::new(),
            newest_human: Seq::NONE,
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

    fn broken(&self, what: impl std::fmt::Display) {
        self.told.violate(format!("{}: {what}", self.place));
    }

    fn enter(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Said { message, reply, .. } => self.said(recorded.seq, message, *reply),
            Event::Edited { .. } | Event::CaughtUp { .. } | Event::JitterDrawn { .. } | Event::AddressRefused { .. } => {}
            Event::Deleted { messages } => self.deleted(messages),
            Event::Joined { companion, .. } => drop(self.seats.entry(companion.clone()).or_default()),
            Event::Left { companion } => self.left(companion),
            Event::Paused { companion, paused } => self.paused(companion.as_ref(), *paused),
            Event::Cleared => self.cleared(),
            Event::RoundOpened(opened) => self.opened(recorded, opened),
            Event::Evaluated(evaluated) => self.evaluated(recorded, evaluated),
            Event::Decided(decided) => self.decided(recorded, decided),
            Event::Unanswered { companion, ticket, .. } => {
                if self.seats.get_mut(companion).and_then(|seat| seat.asked.take_if(|(asked, _)| asked == ticket)).is_none() {
                    self.broken(format_args!("nobody asked {companion}: {recorded:?}"));
                }
            }
            Event::StageChanged { companion, from, to, cause } => self.stage_changed(recorded, companion, *from, *to, *cause),
            Event::RoundClosed(closed) => self.closed(recorded, closed),
            Event::RepetitionAsked { ticket, .. } => self.new_ticket(*ticket),
            Event::RepetitionJudged { call, .. } => {
                self.told.reach(if call.is_some() { "judged by a model" } else { "judged by words" });
            }
            Event::ReplyOwed { companion, ticket, messages, .. } => self.owed(recorded, companion, *ticket, messages),
            Event::ReplyFailed { companion, ticket, .. } => {
                self.told.reach("statement failed");
                let had = self.floor.take_if(|floor| floor.ticket == *ticket && floor.companion == *companion);
                if had.is_none() {
                    self.broken(format_args!("nobody owes {ticket}: {recorded:?}"));
                }
                self.selected_at = recorded.handled;
                self.has_failed = true;
            }
            Event::Summarised { .. } => self.told.reach("summary"),
        }
    }

    /// A message that was set aside. If it is a statement, it was made all the same.
    fn skip(&mut self, seq: Seq, message: &Message, reply: Option<Ticket>) {
        if message.from.role == Role::Person {
            (self.newest_human_maybe, self.streak) = (seq, 0);
        }
        if let Some(ticket) = reply {
            self.candidates.clear();
            let had = self.floor.take_if(|floor| floor.ticket == ticket && message.is_by(&floor.companion));
            if had.is_none() && !self.dropped.remove(&ticket) {
                self.broken(format_args!("{seq} is said for reply {ticket}, which is not owed (any more), and set aside"));
            }
            self.longest_streak += 1;
        }
    }

    fn said(&mut self, seq: Seq, message: &Message, reply: Option<Ticket>) {
        if message.from.role == Role::Person {
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
                self.candidates.clear();
                self.streak += u32::from(floor.selected_at >= self.newest_human_maybe);
                self.longest_streak += u32::from(floor.selected_at >= self.newest_human);
                if self.streak > self.told.plan.rules.streak {
                    self.broken(format_args!("{} statements in a row without a human: {seq} by {companion}", self.streak));
                }
            }
            None if self.dropped.remove(&ticket) => self.told.reach("posted though it was dropped"),
            None => self.broken(format_args!("{companion} says {seq} for reply {ticket}, which is not owed (any more)")),
        }
    }

    /// Nothing comes of a wish, a turn or a reply of which nothing is left. A question goes on with what it has read.
    fn deleted(&mut self, gone: &[Seq]) {
        let lose_last = |about: &mut Vec<Seq>| {
            let before = about.len();
            about.retain(|seq| !gone.contains(seq));
            about.is_empty() && before > 0
        };
        for (companion, seat) in &mut self.seats {
            seat.unsettled.retain(|seq| !gone.contains(seq));
            if !lose_last(&mut seat.about) {
                continue;
            }
            if seat.asked.is_some() {
                self.told.reach("asked about what was taken back");
                continue;
            }
            match &mut self.round {
                Some(round) => drop(round.about_nothing.insert(companion.clone())),
                None if self.floor.is_none() && self.candidates.first() == Some(companion) => {
                    self.told.reach("turn dropped: all was taken back");
                    self.candidates.clear();
                }
                None => {}
            }
        }
        if let Some(floor) = self.floor.take_if(|floor| lose_last(&mut floor.messages)) {
            self.told.reach("reply dropped: all was taken back");
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
        self.dropped.extend(self.floor.take_if(|floor| floor.companion == *companion).map(|floor| floor.ticket));
    }

    fn paused(&mut self, whom: Option<&CompanionId>, paused: bool) {
        for (_, seat) in self.seats.iter_mut().filter(|(companion, _)| whom.is_none_or(|whom| whom == *companion)) {
            seat.paused = paused;
            if paused {
                seat.asked = None;
            }
        }
        self.alone = None;
    }

    fn cleared(&mut self) {
        for seat in self.seats.values_mut() {
            *seat = Seat { paused: seat.paused, ..Seat::default() };
        }
        self.round = None;
        self.candidates.clear();
        self.alone = None;
        (self.streak, self.longest_streak) = (0, 0);
        self.dropped.extend(self.floor.take().map(|floor| floor.ticket));
    }

    fn new_ticket(&mut self, ticket: Ticket) {
        if !self.tickets.insert(ticket) {
            self.broken(format_args!("ticket {ticket} is given out twice"));
        }
    }

    fn evaluated(&mut self, recorded: &Recorded, evaluated: &Evaluated) {
        self.told.reach(match evaluated.trigger.as_str() {
            "direct_address" => "asked: direct address",
            "interjection" => "asked: interjection",
            "turn" => "asked: turn",
            _ => "asked: lull",
        });
        self.new_ticket(evaluated.ticket);
        let Some(seat) = self.seats.get_mut(&evaluated.companion) else {
            return self.broken(format_args!("{} is not present: {recorded:?}", evaluated.companion));
        };
        let before = seat.asked.replace((evaluated.ticket, evaluated.upto));
        seat.about.clone_from(&evaluated.messages);
        let (is_silent, unsettled) = (seat.paused || seat.stage == Closing::Terminal, seat.unsettled.clone());
        if before.is_some() {
            self.broken(format_args!("{} is asked twice at once: {recorded:?}", evaluated.companion));
        }
        if is_silent {
            self.broken(format_args!("{} is asked though it is silent: {recorded:?}", evaluated.companion));
        }
        if self.without_skipped(&unsettled) != self.without_skipped(&evaluated.messages) {
            self.broken(format_args!("{} is asked about something else than {unsettled:?}: {recorded:?}", evaluated.companion));
        }
        if unsettled.len() > self.told.plan.rules.max_buffer {
            self.broken(format_args!("{} messages are unsettled for {}: {recorded:?}", unsettled.len(), evaluated.companion));
        }
    }

    fn decided(&mut self, recorded: &Recorded, decided: &Decided) {
        self.reach_reason(decided.reason);
        let least_streak = self.told.plan.rules.least_streak;
        if decided.reason == Reason::LoopGuard && self.longest_streak < least_streak {
            self.broken(format_args!("the loop guard trips after {} of {least_streak}: {recorded:?}", self.longest_streak));
        }
        for companion in &decided.companions {
            let Some(seat) = self.seats.get_mut(companion) else {
                self.broken(format_args!("{companion} is not present: {recorded:?}"));
                continue;
            };
            if let Some(ticket) = decided.ticket {
                match seat.asked.take_if(|(asked, _)| *asked == ticket) {
                    // Whatever came after the question was read by nobody.
                    Some((_, upto)) if decided.upto > upto => {
                        self.broken(format_args!("{companion} settles what it was not asked about: {recorded:?}"));
                        continue;
                    }
                    Some(_) => {}
                    None => {
                        self.broken(format_args!("{companion} was not asked, or has decided already: {recorded:?}"));
                        continue;
                    }
                }
            }
            if decided.decision == Decision::Yes {
                if self.round.is_none() {
                    self.alone = Some(companion.clone());
                }
                continue;
            }
            let settles: Vec<Seq> = seat.unsettled.iter().copied().take_while(|seq| *seq <= decided.upto).collect();
            seat.unsettled.retain(|seq| *seq > decided.upto);
            seat.about.retain(|seq| *seq > decided.upto);
            if decided.reason == Reason::Stale {
                // A question about nothing but what is stale is over with it.
                seat.asked.take_if(|(_, upto)| *upto <= decided.upto);
            }
            let is_wrong = match decided.reason {
                Reason::Paused => !seat.paused,
                Reason::Budget => decided.used_up.is_none(),
                _ => false,
            };
            if is_wrong {
                self.broken(format_args!("{companion} has no reason for {}: {recorded:?}", decided.reason));
            }
            if self.without_skipped(&settles) != self.without_skipped(&decided.messages) {
                self.broken(format_args!("for {companion} {settles:?} had to settle: {recorded:?}"));
            }
        }
    }

    fn stage_changed(&mut self, recorded: &Recorded, companion: &CompanionId, from: Closing, to: Closing, cause: Cause) {
        self.told.reach(match cause {
            Cause::State => "stage: by vote",
            Cause::MaxTurns => "stage: max turns",
            Cause::Repetition => "stage: repetition",
            Cause::DirectAddress => "stage: opened by address",
            Cause::ReopenAfter => "stage: opened by messages",
            Cause::NewEpisode => "stage: new episode",
        });
        match self.seats.get_mut(companion) {
            Some(seat) if seat.stage == from => seat.stage = to,
            seat => {
                let known = seat.map(|seat| seat.stage);
                self.broken(format_args!("{companion} was {known:?}: {recorded:?}"));
            }
        }
    }

    fn without_skipped(&self, messages: &[Seq]) -> Vec<Seq> {
        messages.iter().copied().filter(|seq| !self.skipped.contains(seq)).collect()
    }

    /// At rest nothing is open, owed or unsettled.
    fn end(&self) {
        if let Some(round) = &self.round {
            self.broken(format_args!("the round about {} is open for ever", round.message));
        }
        if let Some(floor) = &self.floor {
            self.broken(format_args!("{} owes {} for ever", floor.companion, floor.ticket));
        }
        for (companion, seat) in &self.seats {
            let unsettled = self.without_skipped(&seat.unsettled);
            if !unsettled.is_empty() {
                self.broken(format_args!("{unsettled:?} never settled for {companion}"));
            }
            if let Some((ticket, _)) = seat.asked {
                self.broken(format_args!("{companion} was asked {ticket}, and nothing came of it"));
            }
        }
    }

    fn reach_reason(&self, reason: Reason) {
        self.told.reach(match reason {
            Reason::ModelYes => "decided: YES",
            Reason::ModelNo => "decided: NO",
            Reason::Unreadable => "decided: unreadable",
            Reason::External => "decided: external",
            Reason::OtherAddressed => "decided: other addressed",
            Reason::Budget => "decided: budget",
            Reason::LoopGuard => "decided: loop guard",
            Reason::Closed => "decided: closed",
            Reason::Paused => "decided: paused",
            Reason::Overflow => "decided: overflow",
            Reason::Stale => "decided: stale",
        });
    }
}
