//! Checks what people say while a statement is being made: when it begins again, and what a stop phrase cancels.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::super::plan::EXTERNAL;
use super::waits::{AT_ONCE, RoomMessage};
use super::{Floor, Record};
use crate::domain::event::{Decided, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::settings::reply::REPLAN_PAUSE;

/// What a stop phrase cancelled.
pub(super) struct Cancel {
    companion: CompanionId,
    /// The messages that it would have answered, and the other candidates of its selection.
    answered: Vec<Seq>,
    others: Vec<CompanionId>,
    /// The companions for which the phrase must settle, and since when.
    to_settle: BTreeSet<CompanionId>,
    since: Duration,
}

impl Record<'_> {
    /// Whether a message is about a companion that answers these: it addresses the companion, or its author wrote one of them and speaks to nobody
    /// else. An event is no message by its person.
    fn concerns(&self, seq: Seq, companion: &CompanionId, answered: &[Seq]) -> bool {
        let is_by_person = |message: &&RoomMessage| message.role == Role::Person && !message.is_event;
        let Some(message) = self.received.get(&seq).filter(is_by_person) else { return false };
        let is_author = |answered: &Seq| {
            let other = self.received.get(answered);
            self.skipped.contains(answered) || other.filter(is_by_person).is_some_and(|other| other.author == message.author)
        };
        message.address.includes(companion) || !message.address.is_elsewhere(companion) && answered.iter().any(is_author)
    }

    /// Whether a message adds to a statement that answers these: it concerns the companion, and either addresses it, or no other person wrote any of
    /// them.
    fn adds_to(&self, seq: Seq, companion: &CompanionId, answered: &[Seq]) -> bool {
        let Some(message) = self.received.get(&seq).filter(|_| self.concerns(seq, companion, answered)) else { return false };
        let is_by_other = |answered: &Seq| {
            let other = self.received.get(answered).filter(|other| other.role == Role::Person && !other.is_event);
            other.is_some_and(|other| other.author != message.author)
        };
        message.address.includes(companion) || !answered.iter().any(is_by_other)
    }

    /// A message arrived. If it adds to statements in progress, these must begin again, as often as they may.
    pub(super) fn note_follow_up(&mut self, seq: Seq) {
        let (now, rules) = (self.when(seq), &self.stage.plan.rules);
        let is_prompt = self.received.get(&seq).is_some_and(|message| !message.is_late && !message.asks_to_stop);
        if !is_prompt || !self.is_undisturbed() || self.stage.plan.slow.is_some() || self.refused.contains(&seq) {
            return;
        }
        let must_begin_again = |floor: &&Floor| {
            let may = floor.companion.as_str() != EXTERNAL && floor.replans < rules.least_replans;
            may && self.adds_to(seq, &floor.companion, &floor.messages)
        };
        let tickets: Vec<_> = self.floor.iter().chain(&self.late).filter(must_begin_again).map(|floor| floor.ticket).collect();
        for floor in self.floor.iter_mut().chain(&mut self.late).filter(|floor| tickets.contains(&floor.ticket)) {
            floor.to_take_in.get_or_insert((seq, now));
        }
    }

    /// An edit or a deletion. What statements in progress answer may have changed.
    pub(super) fn note_change(&mut self, seq: Seq, at: Moment, messages: &[Seq]) {
        let answers = |floor: &&mut Floor| messages.iter().any(|seq| floor.messages.contains(seq));
        for floor in self.floor.iter_mut().chain(&mut self.late).filter(answers) {
            floor.changes.insert(seq, at);
        }
    }

    /// The attempt is stopped, and the next one waits until people have said everything.
    pub(super) fn replanning(
        &mut self,
        recorded: &Recorded,
        companion: &CompanionId,
        ticket: Ticket,
        message: Seq,
        until: Moment,
    ) {
        let Some((mut floor, is_late)) = self.take_owed(companion, ticket) else {
            return self.violate(format_args!("{companion} owes no such reply: {recorded:?}"));
        };
        let rules = &self.stage.plan.rules;
        let is_said = self.received.contains_key(&message);
        self.stage.reach(match (floor.replanning.is_some(), is_said) {
            (false, true) => "attempt stopped: more was said",
            (false, false) => "attempt stopped: edit or deletion",
            (true, _) => "stopped attempt waits longer",
        });
        // When a dead letter was said is not known here.
        let is_dead = self.skipped.contains(&message);
        let changed_at = floor.changes.get(&message).copied().unwrap_or(recorded.at);
        let said_at = self.received.get(&message).map_or(changed_at, |message| message.at);
        let is_concerned = match self.received.get(&message) {
            Some(said) => !said.asks_to_stop && self.adds_to(message, companion, &floor.messages),
            None => floor.changes.contains_key(&message) || is_dead,
        };
        let is_longer = floor.replanning.is_none_or(|(before, _)| before < until);
        let is_external = self.seats.get(companion).is_none_or(|seat| seat.is_external);
        if !is_concerned || is_external || floor.replans >= rules.most_replans {
            self.violate(format_args!("{companion} has no reason to begin again: {recorded:?}"));
        }
        let is_right = until == said_at + REPLAN_PAUSE || is_dead;
        if !is_right || !is_longer {
            self.violate(format_args!("the next attempt begins at a wrong time: {recorded:?}"));
        }
        if floor.replanning.is_none() && !is_late {
            self.check_unsent(recorded, floor.since);
        }
        if is_late {
            self.stage.reach("attempt stopped: late");
        }
        (floor.replanning, floor.to_take_in) = (Some((until, self.when(recorded.seq))), None);
        self.put_back(floor, is_late);
    }

    /// The next attempt begins. It answers everything that is unsettled by now, too.
    pub(super) fn replanned(
        &mut self,
        recorded: &Recorded,
        companion: &CompanionId,
        (ticket, next): (Ticket, Ticket),
        messages: &[Seq],
    ) {
        self.new_ticket(next);
        let (now, clock) = (self.when(recorded.seq), recorded.at);
        let Some((mut floor, is_late)) = self.take_owed(companion, ticket) else {
            return self.violate(format_args!("{companion} owes no such reply: {recorded:?}"));
        };
        match floor.replanning.take() {
            Some((until, since)) => {
                if clock < until {
                    self.violate(format_args!("the next attempt begins at {until:?}: {recorded:?}"));
                }
                if self.keeps_time() && self.watch.lateness.is_late(self.channel_key, since, now, REPLAN_PAUSE) {
                    self.violate(format_args!("the next attempt waited {:.1} s: {recorded:?}", (now - since).as_secs_f64()));
                }
            }
            None => self.violate(format_args!("the attempt was not stopped: {recorded:?}")),
        }
        let unsettled = self.seats.get_mut(companion).map(|seat| seat.settle_all(recorded.handled)).unwrap_or_default();
        let expected: Vec<_> = floor.messages.iter().chain(&unsettled).copied().collect();
        if self.without_skipped(&expected) != self.without_skipped(messages) {
            self.violate(format_args!("{companion} must answer {expected:?}: {recorded:?}"));
        }
        floor.replans += 1;
        self.stage.reach(if floor.replans > 1 { "begun again twice" } else { "begun again" });
        (floor.ticket, floor.messages, floor.upto) = (next, messages.to_vec(), recorded.handled);
        (floor.since, floor.to_take_in) = (now, None);
        self.calls.retain(|(who, ..)| who != companion);
        self.put_back(floor, is_late);
    }

    /// Takes an owed reply out, and says whether it is late.
    fn take_owed(&mut self, companion: &CompanionId, ticket: Ticket) -> Option<(Floor, bool)> {
        let is_late = self.late.iter().position(|late| late.ticket == ticket && late.companion == *companion);
        match is_late {
            Some(index) => Some((self.late.remove(index), true)),
            None => self.take_floor(companion, ticket).map(|floor| (floor, false)),
        }
    }

    fn put_back(&mut self, floor: Floor, is_late: bool) {
        if is_late {
            self.late.push(floor);
        } else {
            self.floor = Some(floor);
        }
    }

    fn take_floor(&mut self, companion: &CompanionId, ticket: Ticket) -> Option<Floor> {
        self.floor.take_if(|floor| floor.ticket == ticket && floor.companion == *companion)
    }

    /// Somebody asks to stop: no statement follows, and nobody takes the place. The phrase itself may be handled after that.
    pub(super) fn cancelled(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Option<Ticket>, message: Seq) {
        let (mut answered, mut others, mut upto, mut selected_at) = (Vec::new(), Vec::new(), Seq::NONE, self.selected_at);
        match ticket {
            Some(ticket) => {
                let owed = self.take_owed(companion, ticket);
                let is_late = owed.as_ref().is_some_and(|(_, is_late)| *is_late);
                self.stage.reach(if is_late { "cancelled: late" } else { "cancelled: being made" });
                match owed {
                    Some((floor, _)) => {
                        if !is_late {
                            self.candidates.clear();
                            self.check_unsent(recorded, floor.since);
                        }
                        (upto, selected_at) = (floor.upto, floor.selected_at);
                        (answered, others) = (floor.messages, floor.others);
                    }
                    None => self.violate(format_args!("{companion} owes no such reply: {recorded:?}")),
                }
            }
            None => {
                self.stage.reach("cancelled: selected");
                if self.due.first() != Some(companion) || self.speak_at.is_none() {
                    self.violate(format_args!("{companion} was not selected: {recorded:?}"));
                }
                answered = self.answered_by_selected(companion, message);
                self.seats.entry(companion.clone()).and_modify(|seat| seat.cancelled.extend(&answered));
                self.set_due(Vec::new());
                (self.speak_at, upto) = (None, self.selected_at);
                others.extend(std::mem::take(&mut self.candidates).into_iter().filter(|candidate| candidate != companion));
            }
        }
        if message <= upto {
            self.violate(format_args!("{message} came before what it cancels: {recorded:?}"));
        }
        // The triggers that lost this floor do not follow.
        let received = &self.received;
        for other in &others {
            // A companion that was asked again meanwhile has another trigger.
            let Some(seat) = self.seats.get_mut(other).filter(|seat| seat.asked.is_none() && !seat.has_wish) else { continue };
            seat.cancelled.extend(answered.iter().filter(|answered| **answered <= selected_at));
            // Its trigger is its newest address, which has taken the place of the ones before.
            let is_call = |seq: &&Seq| {
                let received = received.get(seq).filter(|received| received.role != Role::Companion && !received.is_event);
                received.is_some_and(|received| received.address.includes(other))
            };
            let calls: Vec<_> = seat.unsettled.iter().filter(is_call).copied().collect();
            if calls.last().is_some_and(|newest| seat.cancelled.contains(newest)) {
                seat.cancelled.extend(calls);
            }
        }
        let (to_settle, since) = (BTreeSet::new(), self.when(recorded.seq));
        let cancel = Cancel { companion: companion.clone(), answered, others, to_settle, since };
        self.cancels.entry(message).or_default().push(cancel);
        if message <= recorded.handled {
            self.violate(format_args!("{message} was handled before what it cancels: {recorded:?}"));
        }
    }

    /// What a selected companion would answer before a message: everything that was said until it was selected, and what the same people said since.
    fn answered_by_selected(&self, companion: &CompanionId, before: Seq) -> Vec<Seq> {
        // A dead letter may have been handled before.
        let unsettled = self.seats.get(companion).into_iter().flat_map(|seat| &seat.unsettled).chain(self.skipped).copied();
        let (asked, later): (Vec<_>, Vec<_>) = unsettled.filter(|seq| *seq < before).partition(|seq| *seq <= self.selected_at);
        // Nobody has written an event.
        let is_written = |message: &&RoomMessage| message.role == Role::Person && !message.is_event;
        let author = |seq: &Seq| self.received.get(seq).filter(is_written).map(|message| &message.author);
        let is_elsewhere = |seq: &Seq| self.received.get(seq).is_some_and(|message| message.address.is_elsewhere(companion));
        let authors: BTreeSet<_> = asked.iter().filter_map(author).collect();
        let is_more = |seq: &Seq| !is_elsewhere(seq) && author(seq).is_some_and(|author| authors.contains(author));
        let more: Vec<_> = later.into_iter().filter(is_more).collect();
        asked.into_iter().chain(more).collect()
    }

    /// A message arrived. If it cancelled replies, it asks to stop and concerns them.
    pub(super) fn note_stop(&mut self, seq: Seq) {
        if !self.cancels.contains_key(&seq) {
            return;
        }
        self.check_stop(seq);
        let to_settle = self.settled_by_stop(seq);
        if let Some(cancel) = self.cancels.get_mut(&seq).and_then(|cancels| cancels.first_mut()) {
            cancel.to_settle = to_settle;
        }
    }

    fn check_stop(&mut self, seq: Seq) {
        let cancels = self.cancels.get(&seq).into_iter().flatten();
        let stopped: Vec<_> = cancels.map(|cancel| (cancel.companion.clone(), cancel.answered.clone())).collect();
        let asks_to_stop = self.received.get(&seq).is_some_and(|message| message.asks_to_stop);
        for (companion, answered) in stopped {
            if !(self.skipped.contains(&seq) || asks_to_stop && self.concerns(seq, &companion, &answered)) {
                self.violate(format_args!("{seq} does not ask {companion} to stop"));
            }
            self.calls.retain(|(who, call, _)| *who != companion || *call != seq);
            self.seats.entry(companion).and_modify(|seat| seat.cancelled.extend([seq]));
        }
    }

    /// A person takes back what a companion is asked about, or wants to answer. The phrase may be handled after that.
    pub(super) fn retracted(&mut self, recorded: &Recorded, decided: &Decided, companion: &CompanionId, is_beside: bool) {
        let Some((phrase, answered)) = decided.messages.split_last() else { return };
        self.stage.reach(match decided.ticket {
            Some(_) => "question retracted",
            None if is_beside => "retracted beside a question",
            None => "wish retracted",
        });
        let (answered, others, to_settle) = (answered.to_vec(), Vec::new(), BTreeSet::new());
        let cancel = Cancel { companion: companion.clone(), answered, others, to_settle, since: self.when(recorded.seq) };
        self.cancels.entry(*phrase).or_default().push(cancel);
        if !is_beside {
            self.held.remove(companion);
            self.rounds.iter_mut().for_each(|round| round.listeners.extend([companion.clone()]));
        }
        if *phrase <= recorded.handled {
            self.check_stop(*phrase);
        }
        if let Some(seat) = self.seats.get_mut(companion) {
            seat.has_wish &= is_beside;
            if !decided.settles_by_cursor() {
                self.stage.reach("retracted beside others' messages");
                seat.is_asked_again |= !is_beside;
                seat.declined.extend(&decided.messages);
            }
        }
    }

    /// Whether a decision without a question settles nothing but a stop phrase and what it cancelled, for a companion that was concerned or was not
    /// addressed.
    pub(super) fn is_settled_by_stop(&self, decided: &Decided, companion: &CompanionId) -> bool {
        let Some(cancels) = self.cancels.get(&decided.upto) else { return false };
        let is_cancelled = |seq: &Seq| {
            *seq == decided.upto || self.skipped.contains(seq) || cancels.iter().any(|cancel| cancel.answered.contains(seq))
        };
        let includes = |seq: &Seq| self.received.get(seq).is_some_and(|message| message.address.includes(companion));
        let trigger = if includes(&decided.upto) { Trigger::DirectAddress } else { Trigger::Lull };
        decided.messages.iter().all(is_cancelled) && decided.trigger == trigger && self.loses_by_stop(decided.upto, companion)
    }

    /// Whether a decision without a question is about an address that waited, and that its author took back.
    pub(super) fn is_taken_back(&self, decided: &Decided, companion: &CompanionId) -> bool {
        let said: Option<Vec<_>> = decided.messages.iter().map(|seq| self.received.get(seq)).collect();
        let said = said.unwrap_or_default();
        let Some((phrase, before)) = said.split_last() else { return false };
        decided.ticket.is_none()
            && decided.trigger == Trigger::DirectAddress
            && phrase.asks_to_stop
            && phrase.role == Role::Person
            && before.iter().any(|message| message.address.includes(companion))
            && said.iter().all(|message| message.author == phrase.author && !message.address.is_elsewhere(companion))
    }

    /// Whether a companion would have spoken, or was addressed neither by the stop phrase nor by an unsettled message.
    fn loses_by_stop(&self, seq: Seq, companion: &CompanionId) -> bool {
        let cancels = || self.cancels.get(&seq).into_iter().flatten();
        let includes = |seq: &Seq| self.received.get(seq).is_some_and(|message| message.address.includes(companion));
        cancels().any(|cancel| cancel.companion == *companion || cancel.others.contains(companion))
            || !includes(&seq) && !self.seats.get(companion).is_some_and(|seat| seat.unsettled.iter().any(includes))
    }

    /// The companions for which the phrase settles: they have nothing else in progress, and nothing else unsettled.
    fn settled_by_stop(&self, seq: Seq) -> BTreeSet<CompanionId> {
        let cancels = || self.cancels.get(&seq).into_iter().flatten();
        let is_cancelled = |other: &Seq| {
            *other == seq || cancels().any(|cancel| cancel.answered.contains(other)) || self.skipped.contains(other)
        };
        let is_late = self.received.get(&seq).is_some_and(|message| message.is_late);
        let settles = self.seats.iter().filter(|(companion, seat)| {
            let is_idle = seat.asked.is_none() && !seat.has_wish && !seat.is_silent() && !seat.is_unsure;
            let owes = self.floor.iter().chain(&self.late).any(|floor| floor.companion == **companion);
            is_idle && !owes && !is_late && seat.unsettled.iter().all(is_cancelled) && self.loses_by_stop(seq, companion)
        });
        settles.map(|(companion, _)| companion.clone()).collect()
    }

    /// What a stop phrase settles, settles at once.
    pub(super) fn check_settled_by_stop(&self, now: Duration) {
        if !self.is_undisturbed() {
            return;
        }
        for (seq, cancels) in &self.cancels {
            for cancel in cancels {
                let is_left = |companion: &&CompanionId| {
                    self.seats.get(companion).is_some_and(|seat| !seat.is_silent() && seat.unsettled.contains(seq))
                };
                if let Some(companion) = cancel.to_settle.iter().find(is_left)
                    && self.watch.lateness.undisturbed(self.channel_key, cancel.since, now) > AT_ONCE
                {
                    self.violate(format_args!("{seq} cancelled what {companion} heard, and does not settle"));
                }
            }
        }
    }
}
