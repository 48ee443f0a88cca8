//! Checks the floor: who has it and for how long, who writes late, whose votes are held, and that nothing is posted without it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::super::plan::EXTERNAL;
use super::waits::{AT_ONCE, POOLS_OWN};
use super::{Closing, Record, Seat};
use crate::domain::conversation::CLOSED;
use crate::domain::event::{Event, Outvoted, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Message;
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::domain::vote::{Stance, State};

/// A vote to speak that arrived while the floor was taken.
pub(super) struct HeldVote {
    pub(super) state: State,
    /// The message that the companion was asked for.
    pub(super) message: Seq,
    /// It would start a conversation.
    pub(super) is_for_silence: bool,
    /// Since when it is held.
    pub(super) since: Duration,
}

impl HeldVote {
    /// The vote of a companion that was asked alone, before others joined.
    pub(super) fn without_vote(companion: &CompanionId, trigger: Trigger, message: Seq, since: Duration) -> Self {
        let (from, selected) = (companion.clone(), trigger == Trigger::DirectAddress);
        let state = State {
            from,
            message_id: String::new(),
            state: Stance::Speak,
            importance: 5.0,
            selected,
            closing: Closing::None,
            mood: 0.0,
        };
        Self { state, message, is_for_silence: trigger == Trigger::Silence, since }
    }
}

/// An owed reply, with the floor or late.
pub(super) struct Floor {
    pub(super) companion: CompanionId,
    pub(super) ticket: Ticket,
    pub(super) selected_at: Seq,
    /// The messages that it answers, without deleted ones.
    pub(super) messages: Vec<Seq>,
    /// The newest event that settled with it.
    pub(super) upto: Seq,
    /// It acknowledges an event, so the loop guard does not apply.
    pub(super) acknowledges: bool,
    /// When companions were selected for events while it was written late: their statements come first, whatever the loop guard says.
    pub(super) overtaken_by: Vec<Seq>,
    /// The other candidates of its selection.
    pub(super) others: Vec<CompanionId>,
    /// When the first attempt began, by the channel's clock and by the time of the run. The companion loses the floor later.
    pub(super) began_at: Moment,
    pub(super) began: Duration,
    pub(super) expires_at: Option<Moment>,
    pub(super) has_expired: bool,
    /// Since when its present attempt is being made, or since when a late text has the floor.
    pub(super) since: Duration,
    pub(super) replans: u32,
    /// When the next attempt begins, and since when that is on record.
    pub(super) replanning: Option<(Moment, Duration)>,
    /// The edits and deletions of messages that it answers.
    pub(super) changes: BTreeMap<Seq, Moment>,
    /// What people said since, so that it must begin again, and since when that is on record.
    pub(super) to_take_in: Option<(Seq, Duration)>,
}

impl Record<'_> {
    /// Whether a companion has the floor or is about to get it.
    pub(super) fn is_floor_taken(&self) -> bool {
        self.floor.is_some() || !self.due.is_empty()
    }

    /// The same, if that is certain.
    pub(super) fn is_surely_taken(&self) -> bool {
        self.floor.is_some() || !self.due.is_empty() && !self.is_due_unsure
    }

    /// Whether the record shows who is selected.
    pub(super) fn is_certain(&self) -> bool {
        self.skipped.is_empty() && !self.is_due_unsure
    }

    /// One of these speaks next.
    pub(super) fn set_due(&mut self, due: Vec<CompanionId>) {
        (self.due, self.is_due_unsure) = (due, false);
    }

    /// The statements in a row, also those that are written late.
    pub(super) fn streak(&self) -> u32 {
        self.streak + self.late_since(self.newest_human_maybe)
    }

    /// The same, with everything that may count.
    pub(super) fn longest_streak(&self) -> u32 {
        self.longest_streak + self.late_since(self.newest_human)
    }

    fn late_since(&self, human: Seq) -> u32 {
        self.late.iter().filter(|late| late.selected_at >= human).count() as u32
    }

    pub(super) fn is_late(&self, companion: &CompanionId) -> bool {
        self.late.iter().any(|late| late.companion == *companion)
    }

    /// Nothing is changed once a part of the statement is on the platform.
    pub(super) fn check_unsent(&self, recorded: &Recorded, since: Duration) {
        let now = self.when(recorded.seq);
        let since = since.max(self.dropped_until);
        if self.dropped.is_empty() && self.watch.sent.iter().any(|at| since < *at && *at < now) {
            self.violate(format_args!("a part of the statement is posted already: {recorded:?}"));
        }
    }

    pub(super) fn spoken(&mut self, seq: Seq, message: &Message, ticket: Ticket) {
        let companion = CompanionId::from(&*message.from.id);
        self.spoke.insert(companion.clone(), seq);
        match self.floor.take_if(|floor| floor.ticket == ticket && floor.companion == companion) {
            Some(floor) => {
                self.fulfilled(seq, &companion, floor.since);
                self.check_taken_in(seq, &floor);
                if floor.replanning.is_some() {
                    self.violate(format_args!("{companion} posts {seq} although the attempt {ticket} was stopped"));
                }
                if floor.has_expired {
                    self.stage.reach("late statement");
                }
                self.candidates.clear();
                self.streak += u32::from(floor.selected_at >= self.newest_human_maybe);
                self.longest_streak += u32::from(floor.selected_at >= self.newest_human);
                let overtaken = floor.overtaken_by.iter().filter(|selected_at| **selected_at >= self.newest_human_maybe).count();
                if self.streak() > self.stage.plan.rules.streak + overtaken as u32 && !floor.acknowledges {
                    self.violate(format_args!("{} statements in a row without a human: {seq} by {companion}", self.streak()));
                }
            }
            None if self.dropped.remove(&ticket) => {
                self.dropped_until = self.when(seq);
                self.longest_streak += 1;
                self.stage.reach("posted although dropped");
            }
            None => self.violate(format_args!("{companion} posts {seq} for reply {ticket}, for which it has no floor")),
        }
    }

    /// What people said while it was being made is part of it.
    fn check_taken_in(&self, seq: Seq, floor: &Floor) {
        let Some((message, since)) = floor.to_take_in else { return };
        let now = self.when(seq);
        if self.is_here() && self.keeps_time() && self.watch.lateness.undisturbed(self.channel_key, since, now) > AT_ONCE {
            self.violate(format_args!("{} does not begin {} again for {message}: {seq}", floor.companion, floor.ticket));
        }
    }

    /// A companion loses the floor in time. One for another platform also waits for that platform.
    pub(super) fn check_expiry(&self, now: Duration) {
        let Some(floor) = self.floor.as_ref().filter(|floor| !floor.has_expired && self.is_here() && self.keeps_time()) else {
            return;
        };
        let longest = floor.expires_at.map(|expires_at| expires_at.since(floor.began_at));
        if let Some(longest) = longest.filter(|longest| self.watch.lateness.is_late(self.channel_key, floor.began, now, *longest))
        {
            let held = (now - floor.began).as_secs_f64();
            self.violate(format_args!("{} has the floor for {held:.1} s, not {longest:?}", floor.companion));
        }
    }

    pub(super) fn floor_expired(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket) {
        self.stage.reach("floor expired");
        let Some(mut floor) = self.floor.take_if(|floor| floor.ticket == ticket && floor.companion == *companion) else {
            return self.violate(format_args!("{companion} does not have the floor: {recorded:?}"));
        };
        if floor.replanning.is_some() || floor.expires_at.is_none_or(|expires_at| recorded.at < expires_at) {
            self.violate(format_args!("{companion} has the floor until {:?}: {recorded:?}", floor.expires_at));
        }
        if !floor.has_expired {
            self.check_unsent(recorded, floor.began);
            self.check_taken_in(recorded.seq, &floor);
        }
        // Nobody takes the place of a late companion.
        self.candidates.clear();
        (floor.has_expired, floor.to_take_in) = (true, None);
        self.late.push(floor);
    }

    /// A late text is there. It waits for nothing but the floor.
    pub(super) fn floor_taken(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket) {
        self.stage.reach("floor taken by a late text");
        if self.is_surely_taken() || self.is_being_judged {
            self.violate(format_args!("the floor is not free: {recorded:?}"));
        }
        self.set_due(Vec::new());
        if self.seats.get(companion).is_none_or(Seat::is_silent) {
            self.violate(format_args!("{companion} is silent: {recorded:?}"));
        }
        match self.late.iter().position(|late| late.ticket == ticket && late.companion == *companion) {
            Some(index) => {
                let late = self.late.remove(index);
                self.fulfilled(recorded.seq, companion, late.since.max(self.free_since));
                self.floor = Some(Floor { since: self.when(recorded.seq), ..late });
            }
            None => self.violate(format_args!("{companion} does not write late: {recorded:?}")),
        }
    }

    /// The floor is free. The companions whose votes are held are ranked as in a round.
    pub(super) fn held_selected(&mut self, recorded: &Recorded, selected: &CompanionId, others: &[Outvoted]) {
        self.stage.reach("held vote selected");
        if self.is_surely_taken() || self.is_being_judged {
            self.violate(format_args!("the floor is not free: {recorded:?}"));
        }
        if self.streak() >= self.stage.plan.rules.streak {
            self.violate(format_args!("{selected} is selected after {} statements in a row: {recorded:?}", self.streak()));
        }
        let candidates: Vec<_> = [selected].into_iter().chain(others.iter().map(|other| &other.companion)).cloned().collect();
        let ranking = self.held_ranking();
        self.held.clear();
        let is_right = match self.skipped.is_empty() {
            true => candidates == ranking,
            // A message that the votes were about may not have been handled.
            false => candidates.iter().all(|candidate| ranking.contains(candidate)),
        };
        if !is_right {
            self.violate(format_args!("the order is {candidates:?}, not {ranking:?}: {recorded:?}"));
        }
        for companion in &candidates {
            self.seats.entry(companion.clone()).and_modify(|seat| seat.has_wish = false);
        }
        self.set_due(vec![selected.clone()]);
        self.speak_at = None;
        (self.candidates, self.has_failed) = (candidates, false);
        self.selected_at = recorded.handled;
    }

    /// The companions that were called upon come first, those of the round with the earliest address before the others. Then as in a round.
    fn held_ranking(&self) -> Vec<CompanionId> {
        let called_at = |round: &str| {
            let of_round = self.held.iter().filter(|(_, held)| held.state.selected && held.state.message_id == round);
            let addresses = of_round.map(|(companion, held)| {
                let includes = |seq: &&Seq| self.received.get(seq).is_some_and(|received| received.address.includes(companion));
                let address = self.seats.get(companion).and_then(|seat| seat.unsettled.iter().find(includes));
                // If its address was deleted, the round tells.
                address.copied().unwrap_or_else(|| round.parse().map_or(held.message, Seq))
            });
            addresses.min()
        };
        let mut ranking = self.ranking(self.held.values().map(|held| &held.state));
        ranking.sort_by_key(|companion| {
            let state = self.held.get(companion).map(|held| &held.state).filter(|state| state.selected);
            state.map_or((true, None), |state| (false, called_at(&state.message_id)))
        });
        ranking
    }

    /// Whether nobody may be asked or selected, because the last statement that `max_turns` allows may be written late.
    pub(super) fn may_await_last(&self) -> bool {
        self.stage.plan.rules.limits_turns && !self.late.is_empty()
    }

    /// Whether held votes wait for something.
    pub(super) fn is_floor_awaited(&self) -> bool {
        self.is_floor_taken() || self.is_being_judged || self.may_await_last()
    }

    /// Held votes are dropped when their messages settle. They do not wait when the floor is free.
    pub(super) fn drop_settled_held(&mut self) {
        let Self { held, seats, stage, .. } = self;
        held.retain(|companion, held| {
            let Some(seat) = seats.get_mut(companion) else { return false };
            let is_settled = held.message <= seat.cursor || held.is_for_silence;
            if is_settled {
                stage.reach("held vote dropped");
                seat.has_wish = false;
            }
            !is_settled
        });
    }

    pub(super) fn check_held(&self, now: Duration) {
        let is_free = !self.is_floor_awaited() && self.keeps_time();
        let Some(since) = self.held.values().map(|held| held.since.max(self.free_since)).min().filter(|_| is_free) else {
            return;
        };
        if self.watch.lateness.is_late(self.channel_key, since, now, Duration::ZERO) {
            let waited = (now - since).as_secs_f64();
            self.violate(format_args!("the votes of {:?} are held for {waited:.1} s", self.held.keys()));
        }
    }

    /// A statement was not made. One more candidate takes over, if the message that it wanted to speak about is unsettled.
    pub(super) fn failed(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket, error: &str) {
        self.stage.reach("statement failed");
        if let Some(index) = self.late.iter().position(|late| late.ticket == ticket && late.companion == *companion) {
            let late = self.late.remove(index);
            self.fulfilled(recorded.seq, companion, late.since.max(self.free_since));
            let is_gone = self.seats.get(companion).is_none_or(Seat::is_silent);
            self.stage.reach(if is_gone { "late reply dropped: closed" } else { "late reply failed" });
            if is_gone != (error == CLOSED) {
                self.violate(format_args!("{companion} writes late: {recorded:?}"));
            }
            return;
        }
        if error == CLOSED {
            self.violate(format_args!("only a late reply fails for this reason: {recorded:?}"));
        }
        match self.floor.take_if(|floor| floor.ticket == ticket && floor.companion == *companion) {
            Some(floor) => {
                self.fulfilled(recorded.seq, companion, floor.since);
                if floor.replanning.is_some() {
                    self.violate(format_args!("the attempt was stopped, and fails: {recorded:?}"));
                }
            }
            None => self.violate(format_args!("nobody owes {ticket}: {recorded:?}")),
        }
        if std::mem::replace(&mut self.has_failed, true) {
            self.candidates.clear();
        }
        let is_able = |candidate: &CompanionId| {
            let seat = self.seats.get(candidate);
            seat.is_some_and(|seat| {
                !seat.is_silent()
                    && !seat.is_unsure
                    // It was asked again meanwhile: it is not selected for the question before.
                    && seat.asked.is_none()
                    && !seat.has_wish
                    && seat.unsettled.contains(&seat.message)
                    && !seat.cancelled.contains(&seat.message)
            })
        };
        let due = if self.candidates.iter().any(is_able) { self.candidates.clone() } else { Vec::new() };
        self.set_due(due);
        self.selected_at = recorded.handled;
    }

    /// The times to wait for the words of an external companion, and until a companion loses the floor to others.
    fn check_deadlines(&self, recorded: &Recorded, companion: &CompanionId, due_at: Option<Moment>, expires_at: Option<Moment>) {
        let (patience, floors) = (self.stage.plan.rules.external_patience, self.stage.plan.rules.floor_timeouts);
        let is_its = |at: Moment| (patience.least..=patience.most).contains(&at.since(recorded.at).as_secs_f64());
        let is_external = self.seats.get(companion).is_some_and(|seat| seat.is_external);
        if due_at.is_some() != is_external || !due_at.is_none_or(is_its) {
            self.violate(format_args!("invalid deadline for {companion}: {recorded:?}"));
        }
        let may_lose_it = !is_external && self.holds_rounds();
        let is_its = |at: Moment| (floors.least..=floors.most).contains(&at.since(recorded.at).as_secs_f64());
        if expires_at.is_some() != may_lose_it || !expires_at.is_none_or(is_its) {
            self.violate(format_args!("invalid end of the floor of {companion}: {recorded:?}"));
        }
    }

    pub(super) fn owed(
        &mut self,
        recorded: &Recorded,
        companion: &CompanionId,
        ticket: Ticket,
        messages: &[Seq],
        (due_at, expires_at): (Option<Moment>, Option<Moment>),
    ) {
        self.new_ticket(ticket);
        self.check_deadlines(recorded, companion, due_at, expires_at);
        if self.floor.is_some() || self.is_late(companion) {
            self.violate(format_args!("the floor is not free, or {companion} writes late: {recorded:?}"));
        }
        if !self.due.is_empty() && !self.due.contains(companion) && !self.is_due_unsure {
            self.violate(format_args!("{:?} is to speak: {recorded:?}", self.due));
        }
        self.set_due(Vec::new());
        self.check_time_to_speak(recorded);
        let selected_at = match self.alone.take() {
            Some(alone) if alone == *companion => recorded.handled,
            _ => {
                match self.candidates.iter().position(|candidate| candidate == companion) {
                    Some(rank) => {
                        if self.has_failed {
                            self.stage.reach("next candidate speaks");
                        }
                        drop(self.candidates.drain(..=rank));
                    }
                    None => self.violate(format_args!("nobody selected {companion}, or it has spoken already: {recorded:?}")),
                }
                self.selected_at
            }
        };
        let since = self.when(recorded.seq);
        let Some(seat) = self.seats.get_mut(companion) else {
            return self.violate(format_args!("{companion} is not present: {recorded:?}"));
        };
        let unsettled = seat.settle_all(recorded.handled);
        if seat.stage == Closing::Terminal || seat.paused {
            self.violate(format_args!("{companion} speaks although it is silent: {recorded:?}"));
        }
        if self.without_skipped(&unsettled) != self.without_skipped(messages) {
            self.violate(format_args!("{companion} answers other messages than {unsettled:?}: {recorded:?}"));
        }
        self.floor = Some(Floor {
            companion: companion.clone(),
            ticket,
            selected_at,
            messages: messages.to_vec(),
            upto: recorded.handled,
            acknowledges: matches!(recorded.event, Event::ReplyOwed { trigger: Trigger::Event, .. }),
            overtaken_by: Vec::new(),
            others: self.candidates.clone(),
            began_at: recorded.at,
            began: since,
            expires_at,
            has_expired: false,
            since,
            replans: 0,
            replanning: None,
            changes: BTreeMap::new(),
            to_take_in: None,
        });
    }

    /// An owed statement is made in time, or given up. One for another platform also waits for that platform.
    pub(super) fn fulfilled(&self, seq: Seq, companion: &CompanionId, since: Duration) {
        let rules = &self.stage.plan.rules;
        let most =
            if companion.as_str() == EXTERNAL { rules.external_patience.most } else { rules.main_timeouts.most + POOLS_OWN };
        let now = self.when(seq);
        if self.is_here()
            && self.keeps_time()
            && self.watch.lateness.is_late(self.channel_key, since, now, Duration::from_secs_f64(most))
        {
            self.violate(format_args!("{companion} owed {seq} for {:.1} s", (now - since).as_secs_f64()));
        }
    }

    /// A wish, a turn or a reply ends when all its messages are deleted. A question continues with what it has read.
    pub(super) fn deleted(&mut self, gone: &[Seq]) {
        self.calls.clear();
        self.lulls_may_be_armed();
        for seq in gone {
            self.received.entry(*seq).and_modify(|message| message.is_deleted = true);
        }
        let lose_last = |about: &mut Vec<Seq>| {
            let before = about.len();
            about.retain(|seq| !gone.contains(seq));
            about.is_empty() && before > 0
        };
        for (companion, seat) in &mut self.seats {
            let (before, may_be_about_nothing) = (seat.unsettled.len(), seat.about.iter().all(|seq| self.skipped.contains(seq)));
            seat.unsettled.retain(|seq| !gone.contains(seq));
            seat.is_unsure = !seat.unsettled.is_empty() && (seat.is_unsure || seat.unsettled.len() < before);
            let lost_last = lose_last(&mut seat.about);
            let is_certain = lost_last && !may_be_about_nothing;
            if self.floor.is_none() && !seat.has_wish && self.due.first() == Some(companion) {
                let is_of_turn = |seq: &Seq| seat.cursor < *seq && *seq <= self.opened;
                if is_certain && seat.asked.is_none() {
                    self.stage.reach("turn dropped: all messages deleted");
                    self.candidates.clear();
                    (self.due, self.speak_at, self.is_due_unsure) = (Vec::new(), None, false);
                    self.rounds.iter_mut().for_each(|round| round.listeners.extend([companion.clone()]));
                } else if gone.iter().any(is_of_turn) && !seat.unsettled.iter().any(is_of_turn) {
                    // After a crash the deletion is applied again. Then a turn about nothing is dropped, and so is one about dead letters, sooner
                    // or later.
                    self.is_due_unsure = true;
                }
            } else if !is_certain {
                continue;
            } else if seat.asked.is_some() {
                self.stage.reach("question about deleted messages");
            } else if std::mem::take(&mut seat.has_wish) {
                self.held.remove(companion);
                self.rounds.iter_mut().for_each(|round| round.listeners.extend([companion.clone()]));
            }
        }
        if let Some(floor) = self.floor.take_if(|floor| lose_last(&mut floor.messages)) {
            self.stage.reach("reply dropped: all messages deleted");
            self.candidates.clear();
            self.dropped.insert(floor.ticket);
        }
        self.late.retain_mut(|late| !lose_last(&mut late.messages));
    }
}

impl Seat {
    /// Settles everything up to `upto`. Returns what was unsettled.
    pub(super) fn settle_all(&mut self, upto: Seq) -> Vec<Seq> {
        self.about.clear();
        (self.is_unsure, self.has_wish) = (false, false);
        self.cursor = self.cursor.max(upto);
        std::mem::take(&mut self.unsettled)
    }
}
