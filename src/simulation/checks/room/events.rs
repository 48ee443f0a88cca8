//! Checks events and long silences: who acknowledges an event, when, and how often; and when a companion may start a conversation.

use std::time::Duration;

use super::super::super::plan::starts_after;
use super::{Record, Seat};
use crate::domain::decision::Reason;
use crate::domain::event::{Decided, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Message, Role};
use crate::domain::moment::Moment;

/// The window of the budget of acknowledgements.
const MINUTE: Duration = Duration::from_secs(60);
/// With these reasons a companion declines an event that it must acknowledge.
const DECLINES_EVENTS: [Reason; 6] =
    [Reason::Paused, Reason::Budget, Reason::Unpostable, Reason::Overflow, Reason::Stale, Reason::Cancelled];

/// The statements that acknowledge events, and what they wait for.
#[derive(Default)]
pub(super) struct Acknowledgements {
    /// When a companion was selected last.
    selected_at: Option<Moment>,
    /// The time until which events wait, and since when that is on record.
    deferred: Option<(Moment, Duration)>,
    /// Events had to wait, so that the next statement acknowledges all of them.
    are_merged: bool,
    /// An event was deleted, or a companion left that may have had to acknowledge one: others may have to do that now.
    are_unsure: bool,
    /// The companion that was selected, and the newest event that was handled then.
    newest: Option<(CompanionId, Seq)>,
}

impl Acknowledgements {
    /// Nothing waits any more. What was used of the budget stays used.
    pub(super) fn clear(&mut self) {
        *self = Self { selected_at: self.selected_at, ..Self::default() };
    }
}

impl Seat {
    /// Whether it must acknowledge an event that is unsettled.
    pub(super) fn owes_acknowledgement(&self) -> bool {
        self.unsettled.iter().any(|seq| self.events.contains(seq) && !self.cancelled.contains(seq))
    }

    /// The same, up to this message.
    fn owes_acknowledgement_upto(&self, upto: Seq) -> bool {
        self.unsettled.iter().any(|seq| *seq <= upto && self.events.contains(seq) && !self.cancelled.contains(seq))
    }
}

impl Record<'_> {
    pub(super) fn is_event(&self, seq: Seq) -> bool {
        self.received.get(&seq).is_some_and(|received| received.is_event)
    }

    /// An event arrives, and is unsettled for everybody. One companion must acknowledge it.
    pub(super) fn note_event(&mut self, seq: Seq, message: &Message) {
        if !message.is_event() {
            return;
        }
        let names_any = self.seats.keys().any(|companion| message.address.includes(companion));
        let may_be_chosen = |companion: &CompanionId| !names_any || message.address.includes(companion);
        let order = |(companion, seat): &(&CompanionId, &Seat)| {
            let is_writing = self.floor.iter().chain(&self.late).any(|floor| floor.companion == **companion);
            let spoke = self.spoke.get(*companion).copied().unwrap_or(Seq::NONE);
            let is_about_to = seat.owes_acknowledgement() || self.is_about_to_acknowledge(companion);
            (seat.paused, !is_about_to, is_writing, spoke, (*companion).clone())
        };
        let candidates = self.seats.iter().filter(|(companion, _)| may_be_chosen(companion));
        let chosen = candidates.min_by_key(order).map(|(companion, _)| companion.clone());
        if let Some(seat) = chosen.and_then(|companion| self.seats.get_mut(&companion)) {
            seat.events.insert(seq);
        }
    }

    /// Whether it was selected to acknowledge events and does not speak yet.
    fn is_about_to_acknowledge(&self, companion: &CompanionId) -> bool {
        let newest = self.acknowledgements.newest.as_ref();
        let is_newest = newest.is_some_and(|(newest, at)| newest == companion && *at == self.selected_at);
        is_newest && self.due.first() == Some(companion)
    }

    /// Somebody else may have to acknowledge what is left of the events.
    pub(super) fn events_may_move(&mut self) {
        let has_events = self.seats.values().flat_map(|seat| &seat.unsettled).any(|seq| self.is_event(*seq));
        self.acknowledgements.are_unsure |= has_events;
    }

    /// Whether it is certain who must acknowledge which events.
    fn knows_acknowledgers(&self) -> bool {
        !self.acknowledgements.are_unsure && self.is_undisturbed() && self.is_certain()
    }

    /// A companion is selected without a question, to acknowledge events.
    pub(super) fn acknowledging(&mut self, recorded: &Recorded, decided: &Decided, companion: &CompanionId) {
        if self.is_surely_taken() || self.is_being_judged || !self.held.is_empty() && self.is_certain() {
            self.violate(format_args!("an event is acknowledged before the floor is free: {recorded:?}"));
        }
        let Some(seat) = self.seats.get(companion) else { return };
        if seat.is_silent() || seat.asked.is_some() || seat.has_wish || self.is_late(companion) {
            self.violate(format_args!("{companion} cannot acknowledge an event now: {recorded:?}"));
        }
        if !seat.owes_acknowledgement() && self.knows_acknowledgers() {
            self.violate(format_args!("{companion} need not acknowledge an event: {recorded:?}"));
        }
        let is_call = |seq: &Seq| {
            let received = self.received.get(seq).filter(|received| received.role == Role::Person && !received.is_event);
            received.is_some_and(|received| received.address.includes(companion))
        };
        // Whom a dead letter calls is not known here.
        let may_call = |seq: &Seq| self.skipped.contains(seq);
        let is_called = seat.unsettled.iter().any(is_call) || decided.messages.iter().any(may_call);
        self.check_acknowledgements(recorded, is_called);
        if self.rounds.iter().any(|round| round.asked.iter().any(|asked| asked != companion)) {
            self.stage.reach("event acknowledged during a round");
        }
        self.acknowledgements.deferred = None;
        if std::mem::take(&mut self.acknowledgements.are_merged) {
            self.stage.reach("events merged");
            // What the selected companion has settled, it does not acknowledge.
            let settled = self.seats.get(companion).map(|seat| seat.cursor).unwrap_or_default();
            let is_covered = |seat: &Seat| {
                seat.unsettled
                    .iter()
                    .find(|seq| self.received.get(seq).is_some_and(|received| received.is_event))
                    .is_none_or(|seq| *seq > settled)
            };
            for (_, other) in self.seats.iter_mut().filter(|(other, seat)| *other != companion && is_covered(seat)) {
                if other.owes_acknowledgement() {
                    self.stage.reach("event of another acknowledged");
                    // It is asked about the event after a lull.
                    other.has_fired = false;
                }
                other.events.clear();
            }
        }
        self.seats.entry(companion.clone()).and_modify(|seat| seat.about.clone_from(&decided.messages));
        self.late.iter_mut().for_each(|late| late.overtaken_by.push(recorded.handled));
        self.calls.retain(|(who, ..)| who != companion);
        self.has_failed = false;
        (self.selected_at, self.opened) = (recorded.handled, recorded.handled);
        self.acknowledgements.newest = Some((companion.clone(), recorded.handled));
        self.candidates = vec![companion.clone()];
        self.set_due(vec![companion.clone()]);
        self.speak_at = decided.speak_at.map(|at| (at, self.when(recorded.seq)));
    }

    /// At most so many statements acknowledge events in a minute, evenly spread. A person's address does not wait.
    fn check_acknowledgements(&mut self, recorded: &Recorded, is_called: bool) {
        let now = self.clock;
        let most = self.stage.plan.rules.most_acknowledgements;
        let is_too_soon = self.acknowledgements.selected_at.is_some_and(|selected| selected + MINUTE / most > now);
        let is_over = is_too_soon || self.acknowledgements.deferred.is_some();
        self.acknowledgements.selected_at = Some(now);
        if is_over && is_called {
            self.stage.reach("wait of events ended by an address");
        } else if is_over {
            self.violate(format_args!("more than {most} statements acknowledge events within a minute: {recorded:?}"));
        }
    }

    pub(super) fn events_deferred(&mut self, recorded: &Recorded, until: Moment) {
        self.stage.reach("events deferred");
        let Acknowledgements { selected_at, deferred, .. } = &self.acknowledgements;
        let rules = &self.stage.plan.rules;
        let waits = MINUTE / rules.most_acknowledgements..=MINUTE / rules.least_acknowledgements;
        let is_its = until > self.clock && selected_at.is_some_and(|selected| waits.contains(&until.since(selected)));
        if deferred.is_some() || !is_its {
            self.violate(format_args!("events need not wait after {selected_at:?}: {recorded:?}"));
        }
        self.acknowledgements.deferred = Some((until, self.when(recorded.seq)));
        self.acknowledgements.are_merged = true;
    }

    pub(super) fn events_released(&mut self, recorded: &Recorded) {
        self.stage.reach("events released");
        let is_any_owed = self.seats.values().any(Seat::owes_acknowledgement);
        self.acknowledgements.are_merged &= is_any_owed;
        match self.acknowledgements.deferred.take() {
            Some((until, _)) if recorded.at < until => self.violate(format_args!("events wait until {until:?}: {recorded:?}")),
            Some(_) => {}
            None => self.violate(format_args!("no events wait: {recorded:?}")),
        }
    }

    /// Without an answer, an event that a companion must acknowledge settles for few reasons.
    pub(super) fn check_declined_events(&self, recorded: &Recorded, decided: &Decided, companion: &CompanionId) {
        let Some(seat) = self.seats.get(companion) else { return };
        if DECLINES_EVENTS.contains(&decided.reason) || !decided.settles_by_cursor() || !self.knows_acknowledgers() {
            return;
        }
        if seat.owes_acknowledgement_upto(decided.upto) {
            self.violate(format_args!("{companion} must acknowledge an event: {recorded:?}"));
        }
    }

    /// Notes for each companion since when it could acknowledge its events at once.
    pub(super) fn note_acknowledgers(&mut self, now: Duration) {
        let must_wait = self.is_floor_awaited();
        let is_free = !must_wait && self.acknowledgements.deferred.is_none();
        let late: Vec<_> = self.late.iter().map(|late| late.companion.clone()).collect();
        let mut is_any_left = false;
        for (companion, seat) in &mut self.seats {
            let is_able = !seat.is_silent() && seat.asked.is_none() && !seat.has_wish && !late.contains(companion);
            let is_due = is_free && is_able && seat.owes_acknowledgement();
            seat.acknowledges_since = seat.acknowledges_since.or(Some(now)).filter(|_| is_due);
            is_any_left |= seat.unsettled.iter().any(|seq| self.received.get(seq).is_some_and(|received| received.is_event));
        }
        self.acknowledgements.are_unsure &= is_any_left;
    }

    /// Events wait for nothing but the floor, and over their budget for the end of the deferral.
    pub(super) fn check_acknowledged(&self, now: Duration) {
        if !self.keeps_time() || !self.knows_acknowledgers() {
            return;
        }
        for (companion, seat) in &self.seats {
            if let Some(since) = seat.acknowledges_since
                && self.watch.lateness.is_late(self.channel_key, since, now, Duration::ZERO)
            {
                let waited = (now - since).as_secs_f64();
                self.violate(format_args!("{companion} acknowledges {:?} after {waited:.1} s", seat.unsettled));
            }
        }
        if let Some((until, since)) = self.acknowledgements.deferred
            && self.watch.lateness.is_late(self.channel_key, since, now, MINUTE)
        {
            self.violate(format_args!("events wait until {until:?}, and longer"));
        }
    }

    /// Something is said: every silence begins anew. A human message lets every companion start once more.
    pub(super) fn restart_silences(&mut self, seq: Seq) {
        let (now, newest_human) = (self.when(seq), self.newest_human);
        for (companion, seat) in &mut self.seats {
            let may_start = seat.started_after < newest_human && !seat.is_silent();
            seat.is_silence_over = false;
            seat.silent_since = Some(now).filter(|_| may_start && starts_after(companion.as_str()).is_some());
        }
    }

    /// None of these starts a conversation before the next human message.
    pub(super) fn no_starts(&mut self, concerns: impl Fn(&CompanionId) -> bool) {
        for (_, seat) in self.seats.iter_mut().filter(|(companion, _)| concerns(companion)) {
            (seat.started_after, seat.silent_since) = (self.newest_human, None);
        }
    }

    /// A silence is over for a member once between two human messages, and not before it has lasted for long enough.
    pub(super) fn silence_fired(&mut self, recorded: &Recorded, companions: &[CompanionId]) {
        self.stage.reach("silence fired");
        let now = self.when(recorded.seq);
        let newest = self.received.values().next_back().map(|newest| newest.at);
        for companion in companions {
            let is_too_early =
                newest.zip(starts_after(companion.as_str())).is_none_or(|(at, silence)| recorded.at < at + silence);
            if is_too_early && self.is_undisturbed() {
                self.violate(format_args!("the silence has not lasted for long enough: {recorded:?}"));
            }
            let Some(seat) = self.seats.get_mut(companion) else {
                self.violate(format_args!("{companion} is not present: {recorded:?}"));
                continue;
            };
            let (is_silent, started_after) = (seat.is_silent(), seat.started_after);
            if seat.unsettled.iter().any(|seq| !self.skipped.contains(seq)) {
                // It is asked about that first, and the silence begins again.
                seat.silent_since = seat.silent_since.map(|_| now);
            } else {
                (seat.started_after, seat.silent_since, seat.is_silence_over) = (self.newest_human, None, true);
            }
            if is_silent && self.skipped.is_empty() {
                self.violate(format_args!("{companion} is paused or closed: {recorded:?}"));
            }
            if self.skipped.is_empty() && started_after >= self.newest_human {
                self.violate(format_args!("{companion} has considered starting since the last human message: {recorded:?}"));
            }
        }
    }

    /// A companion is asked because of a silence, or declines without a question: nothing was said since, and nothing is unsettled.
    pub(super) fn check_silence(&mut self, recorded: &Recorded, companion: &CompanionId, messages: &[Seq]) {
        let Some(seat) = self.seats.get_mut(companion) else { return };
        let is_over = std::mem::take(&mut seat.is_silence_over);
        if !messages.is_empty() || !is_over && self.skipped.is_empty() {
            self.violate(format_args!("{companion} considers no silence: {recorded:?}"));
        }
    }

    /// A silence that lasts for long enough ends in time, whether the channel sleeps or not.
    pub(super) fn check_silences(&self, now: Duration) {
        if !self.keeps_time() {
            return;
        }
        for (companion, seat) in &self.seats {
            if let Some(since) = seat.silent_since
                && let Some(silence) = starts_after(companion.as_str())
                && self.watch.lateness.is_late(self.channel_key, since, now, silence)
            {
                let waited = (now - since).as_secs_f64();
                self.violate(format_args!("{companion} has not noticed that nobody said anything for {waited:.1} s"));
            }
        }
    }
}
