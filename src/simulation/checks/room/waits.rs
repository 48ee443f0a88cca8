//! Checks how long things wait: questions for quiet, for the end of a back-off, or not at all; statements for their turn and their words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::super::plan::{EXTERNAL, lull_timeout};
use super::super::times::Lateness;
use super::{Record, Seat};
use crate::domain::event::{Evaluated, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::{Address, Message, Role};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;

/// The longest wait of an address of a companion that has nothing in progress: for the disk, and for reading the record. Less than any lull.
pub(super) const AT_ONCE: Duration = Duration::from_secs(5);
/// The window of the budget of acknowledgements.
const MINUTE: Duration = Duration::from_secs(60);
const SHORTEST_BACK_OFF: Duration = Duration::from_secs(1);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(600);
/// The time that the pool may take after its deadline.
pub(super) const POOLS_OWN: f64 = 5.0;

/// When the events of a room were really on disk, and what held them up.
pub(in super::super) struct Watch<'a> {
    pub(in super::super) when: BTreeMap<Seq, Duration>,
    /// When parts of statements were posted on another platform.
    pub(in super::super) sent: Vec<Duration>,
    /// Who sent each message, also if it was deleted later.
    pub(in super::super) authors: BTreeMap<Seq, Arc<str>>,
    pub(in super::super) lateness: &'a Lateness,
}

/// A message, as far as its addressees and time matter.
pub(super) struct RoomMessage {
    pub(super) at: Moment,
    pub(super) address: Address,
    pub(super) role: Role,
    pub(super) author: Arc<str>,
    pub(super) asks_to_stop: bool,
    /// It was sent well before it arrived.
    pub(super) is_late: bool,
    /// It is an event that must be acknowledged.
    pub(super) is_event: bool,
    pub(super) is_deleted: bool,
}

impl RoomMessage {
    /// Whether it may cut a back-off of this companion short. An event may have to be acknowledged by anybody.
    fn is_urgent_for(&self, companion: &CompanionId) -> bool {
        self.is_event || self.role == Role::Person && self.address.includes(companion)
    }
}

/// A back-off after a question without an answer.
#[derive(Clone, Copy)]
pub(super) struct Pause {
    pub(super) until: Moment,
    /// By the time of the run.
    pub(super) due: Duration,
    /// Its end is on record.
    is_over: bool,
}

impl Seat {
    pub(super) fn is_silent(&self) -> bool {
        self.paused || self.stage == super::Closing::Terminal
    }
}

impl Record<'_> {
    pub(super) fn when(&self, seq: Seq) -> Duration {
        self.watch.when.get(&seq).copied().unwrap_or(self.since)
    }

    /// Whether triggers follow from the record alone: the companions do not change, and there is no dead letter.
    pub(super) fn is_undisturbed(&self) -> bool {
        self.skipped.is_empty()
            && !self.stage.plan.changes_companions()
            && !self.stage.plan.is_poisoned(self.channel_key.guild.as_str())
    }

    /// Whether deadlines follow from it, too.
    pub(super) fn keeps_time(&self) -> bool {
        self.is_undisturbed() && !self.stage.plan.weather.has_jumps
    }

    /// Whether statements are posted here, not on another platform.
    pub(super) fn is_here(&self) -> bool {
        !self.channel_key.channel.as_str().starts_with("sim:")
    }

    /// Whether questions are asked in rounds.
    pub(super) fn holds_rounds(&self) -> bool {
        self.seats.len() > 1 || self.seats.values().any(|seat| seat.is_external)
    }

    /// Nothing is in progress that a companion would have to wait for.
    pub(super) fn is_free(&self) -> bool {
        let is_engaged = self.seats.values().any(|seat| seat.asked.is_some() || seat.has_wish);
        self.rounds.is_empty() && !self.is_floor_taken() && !self.is_being_judged && !is_engaged
    }

    /// Whether this companion is asked at once if a person addresses it.
    fn may_be_asked(&self, companion: &CompanionId, seat: &Seat) -> bool {
        let is_writing = self.floor.iter().chain(&self.late).any(|floor| floor.companion == *companion);
        !is_writing && seat.asked.is_none() && !seat.has_wish && !self.due.contains(companion)
    }

    /// While nothing is in progress, unsettled messages lead to a question once it has been quiet for long enough and no back-off is left.
    pub(super) fn pass(&self, now: Duration) {
        self.check_expiry(now);
        self.check_held(now);
        self.check_settled_by_stop(now);
        self.check_acknowledged(now);
        self.check_silences(now);
        if !self.keeps_time() || !self.is_free() || self.may_await_last() {
            return;
        }
        let waits = |(companion, seat): &(&CompanionId, &Seat)| {
            !seat.is_silent() && !seat.unsettled.is_empty() && !self.is_late(companion)
        };
        for (companion, seat) in self.seats.iter().filter(waits) {
            let Some(quiet) = lull_timeout(companion.as_str()) else { continue };
            // Over their budget, events wait.
            let deferral = if seat.unsettled.iter().any(|seq| self.is_event(*seq)) { MINUTE } else { Duration::ZERO };
            let due = seat.pause.map_or(self.since, |pause| pause.due.max(self.since)) + quiet + deferral;
            if self.watch.lateness.is_late(self.channel_key, self.since, now, due - self.since) {
                let waited = (now - self.since).as_secs_f64();
                self.violate(format_args!("{companion} was not asked about {:?} for {waited:.1} s", seat.unsettled));
            }
        }
    }

    /// A message arrives. An addressed companion that has nothing in progress itself is asked at once. A bot's address waits for others.
    pub(super) fn note_received(&mut self, seq: Seq, message: &Message, said_at: Option<Moment>) {
        let at = said_at.unwrap_or(self.clock).min(self.clock);
        let author = self.watch.authors.get(&seq).unwrap_or(&message.from.id).clone();
        let address = message.address.clone();
        let (role, asks_to_stop, is_late) = (message.from.role, message.asks_to_stop, said_at.is_some());
        let is_event = message.is_event();
        let received = RoomMessage { at, address, role, author, asks_to_stop, is_late, is_event, is_deleted: false };
        let is_free = self.is_free() || role == Role::Person && self.holds_rounds();
        let is_call = role != Role::Companion && !is_event && !is_late;
        if is_call && is_free && !self.may_await_last() && self.keeps_time() && self.stage.plan.slow.is_none() {
            let now = self.when(seq);
            // Only a person cuts a back-off short.
            let is_free = |seat: &Seat| !seat.is_silent() && (seat.pause.is_none() || role == Role::Person);
            let called = |(companion, seat): &(&CompanionId, &Seat)| {
                // An event that it must acknowledge makes it speak without a question, once the floor is free.
                is_free(seat)
                    && !seat.owes_acknowledgement()
                    && self.may_be_asked(companion, seat)
                    && received.address.includes(companion)
            };
            let called: Vec<_> = self.seats.iter().filter(called).map(|(companion, _)| (companion.clone(), seq, now)).collect();
            self.calls.extend(called);
        }
        self.received.insert(seq, received);
    }

    /// A decision covers all that a companion has not settled, up to `upto`. With an address among it, it is a direct address and does not wait.
    pub(super) fn check_addresses(&mut self, recorded: &Recorded, companion: &CompanionId, upto: Seq, trigger: Trigger) {
        let now = self.when(recorded.seq);
        let (calls, others) =
            std::mem::take(&mut self.calls).into_iter().partition(|(who, seq, _)| who == companion && *seq <= upto);
        self.calls = others;
        let calls: Vec<(CompanionId, Seq, Duration)> = calls;
        for (_, seq, since) in calls {
            if self.watch.lateness.undisturbed(self.channel_key, since, now) > AT_ONCE {
                let waited = (now - since).as_secs_f64();
                self.violate(format_args!("{seq} addresses {companion}, which is asked after {waited:.1} s: {recorded:?}"));
            }
        }
        if matches!(trigger, Trigger::DirectAddress | Trigger::Event) || !self.is_undisturbed() {
            return;
        }
        let Some(seat) = self.seats.get(companion).filter(|seat| !seat.is_unsure) else { return };
        let calls = |seq: &&Seq| {
            let is_call = |received: &&RoomMessage| received.role != Role::Companion && !received.is_late && !received.is_event;
            **seq <= upto
                && !seat.cancelled.contains(seq)
                && self.received.get(seq).filter(is_call).is_some_and(|received| received.address.includes(companion))
        };
        if let Some(call) = seat.unsettled.iter().find(calls) {
            self.violate(format_args!("{companion} was addressed by {call}, but that is not the trigger: {recorded:?}"));
        }
    }

    /// No question is asked before its lull timeout is over, nor before the end of the last back-off.
    pub(super) fn check_time_to_ask(&self, recorded: &Recorded, evaluated: &Evaluated) {
        if !self.is_undisturbed() {
            return;
        }
        let companion = &evaluated.companion;
        let (Some(seat), Some(quiet)) = (self.seats.get(companion), lull_timeout(companion.as_str())) else { return };
        if evaluated.trigger == Trigger::Lull
            && !seat.is_asked_again
            && let Some(received) = self.received.get(&evaluated.message)
            && recorded.at < received.at + quiet
        {
            self.violate(format_args!("{companion} is asked before it was quiet for {} s: {recorded:?}", quiet.as_secs()));
        }
        // One that was addressed is asked along with others.
        let is_asked_along =
            evaluated.trigger == Trigger::DirectAddress && self.rounds.last().is_some_and(|round| round.asked.len() > 1);
        if let Some(pause) = seat.pause.filter(|pause| recorded.at < pause.until)
            && !seat.is_unsure
            && !is_asked_along
            && !self.was_called_since(seat.tried, companion)
        {
            self.violate(format_args!("{companion} is asked again before {:?}: {recorded:?}", pause.until));
        }
    }

    /// Whether something came after a message that cuts a back-off of this companion short, even if it settled before a question was possible.
    fn was_called_since(&self, tried: Seq, companion: &CompanionId) -> bool {
        self.received.iter().any(|(seq, received)| *seq > tried && received.is_urgent_for(companion))
    }

    /// A lull timer fires for a member, not before it was quiet for long enough, and once.
    pub(super) fn lull_fired(&mut self, recorded: &Recorded, companions: &[CompanionId]) {
        self.stage.reach("lull fired");
        for companion in companions {
            let Some(seat) = self.seats.get(companion) else {
                self.violate(format_args!("{companion} is not present: {recorded:?}"));
                continue;
            };
            let newest = seat.unsettled.last().and_then(|seq| self.received.get(seq));
            if let (Some(received), Some(quiet)) = (newest, lull_timeout(companion.as_str()))
                && self.is_undisturbed()
                && recorded.at < received.at + quiet
            {
                self.violate(format_args!("{companion} was not quiet for {} s: {recorded:?}", quiet.as_secs()));
            }
            if seat.has_fired {
                self.violate(format_args!("nothing happened since the last lull of {companion}: {recorded:?}"));
            }
            self.seats.entry(companion.clone()).and_modify(|seat| seat.has_fired = true);
        }
    }

    /// A message arrives or is deleted: lull timers may be armed again.
    pub(super) fn lulls_may_be_armed(&mut self) {
        self.seats.values_mut().for_each(|seat| seat.has_fired = false);
    }

    /// A back-off ends in time, or because a person addresses the waiting companion, and once.
    pub(super) fn back_off_ended(&mut self, recorded: &Recorded, companions: &[CompanionId]) {
        for companion in companions {
            let Some(seat) = self.seats.get(companion) else {
                self.violate(format_args!("{companion} is not present: {recorded:?}"));
                continue;
            };
            let is_urgent = |seq: &Seq| {
                let received = self.received.get(seq);
                let is_address =
                    |received: &RoomMessage| received.role != Role::Companion && received.address.includes(companion);
                received.is_some_and(|received| received.is_urgent_for(companion) || is_address(received))
            };
            match seat.pause {
                Some(Pause { is_over: true, .. }) => {
                    self.violate(format_args!("{companion} does not wait any more: {recorded:?}"))
                }
                Some(pause) if recorded.at >= pause.until => self.stage.reach("back-off ended in time"),
                Some(_)
                    if seat.unsettled.iter().any(is_urgent)
                        || self.was_called_since(seat.tried, companion)
                        || seat.is_unsure
                        || !self.is_undisturbed() =>
                {
                    self.stage.reach("back-off cut short");
                }
                Some(pause) => self.violate(format_args!("{companion} was to wait until {:?}: {recorded:?}", pause.until)),
                None => self.violate(format_args!("{companion} waited for nothing: {recorded:?}")),
            }
            self.seats.entry(companion.clone()).and_modify(|seat| {
                if let Some(pause) = &mut seat.pause {
                    pause.is_over = true;
                }
            });
        }
    }

    /// After a restart, the deadlines of a round and of an external companion with the floor are extended.
    pub(super) fn extended(&mut self, recorded: &Recorded, round: Option<Moment>, floor: Option<Moment>) {
        self.stage.reach("deadlines extended after a restart");
        if round.is_some() == self.rounds.is_empty() || self.floor.is_none() && floor.is_some() {
            self.violate(format_args!("there is nothing to wait for, or a round is not extended: {recorded:?}"));
        }
        for (open, deadline) in self.rounds.iter_mut().zip(round.into_iter().cycle()) {
            if deadline < open.deadline {
                self.stage.violate(format!("{}: a deadline moved to an earlier time: {recorded:?}", self.channel_key));
            }
            open.deadline = deadline;
        }
    }

    /// A question was not answered: the back-off is twice the one before it.
    pub(super) fn unanswered(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket, back_off: Duration) {
        let (now, until, is_undisturbed) = (self.when(recorded.seq), self.clock + back_off, self.is_undisturbed());
        let seat = self.seats.get_mut(companion);
        let Some((seat, (_, upto))) = seat.and_then(|seat| {
            let asked = seat.asked.take_if(|(asked, _)| *asked == ticket)?;
            Some((seat, asked))
        }) else {
            return self.violate(format_args!("nobody asked {companion}: {recorded:?}"));
        };
        seat.tried = seat.tried.max(upto);
        seat.pause = Some(Pause { until, due: now + back_off, is_over: false });
        let before = seat.back_off.replace(back_off);
        let first = lull_timeout(companion.as_str()).map(|quiet| quiet.max(SHORTEST_BACK_OFF));
        let expected = before.map(|before| before * 2).or(first).map(|pause| pause.min(LONGEST_BACK_OFF));
        if is_undisturbed && companion.as_str() != EXTERNAL && expected != Some(back_off) {
            self.violate(format_args!("after {before:?} a back-off of {expected:?} was expected: {recorded:?}"));
        }
    }

    /// The selected companion speaks when its turn has come, and not long after.
    pub(super) fn check_time_to_speak(&mut self, recorded: &Recorded) {
        let Some((speak_at, since)) = self.speak_at.take() else { return };
        if recorded.at < speak_at {
            self.violate(format_args!("it may speak only at {speak_at:?}: {recorded:?}"));
        }
        let longest = Duration::from_secs_f64(self.stage.plan.rules.turn_delays.most);
        let now = self.when(recorded.seq);
        if self.keeps_time() && self.watch.lateness.is_late(self.channel_key, since, now, longest) {
            self.violate(format_args!("it was due to speak {:.1} s ago: {recorded:?}", (now - since).as_secs_f64()));
        }
    }
}
