//! How long things wait: questions for quiet, for the end of a pause, or not at all; statements for their turn and for their words.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::super::plan::{EXTERNAL, patience};
use super::super::times::Lateness;
use super::{Record, Seat};
use crate::domain::event::{Evaluated, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::{Address, Message, Role};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;

/// What an address waits for where the way is free: the disk, and who reads the record. Less than any lull.
const AT_ONCE: Duration = Duration::from_secs(5);
const SHORTEST_BACK_OFF: Duration = Duration::from_secs(1);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(600);
/// What the pool may take beyond its deadline.
const POOLS_OWN: f64 = 5.0;

/// When the events of a room were really on disk, and what held it up.
pub(in super::super) struct Watch<'a> {
    pub(in super::super) when: BTreeMap<Seq, Duration>,
    pub(in super::super) lateness: &'a Lateness,
}

/// A message, as far as it matters to whom it is said and when.
pub(super) struct Heard {
    pub(super) at: Moment,
    pub(super) address: Address,
    pub(super) role: Role,
    /// It was said well before it was heard.
    pub(super) is_late: bool,
}

/// A pause after a question without an answer.
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

    /// Whether triggers follow from the record alone: nobody is configured anew, and nothing was set aside.
    pub(super) fn is_plain(&self) -> bool {
        self.skipped.is_empty() && !self.told.plan.is_recast() && !self.told.plan.is_poisoned(self.channel_key.guild.as_str())
    }

    /// Whether deadlines follow from it, too.
    fn keeps_time(&self) -> bool {
        self.is_plain() && !self.told.plan.weather.has_jumps
    }

    /// Nothing goes on that anybody would have to wait for.
    fn is_free(&self) -> bool {
        let is_engaged = self.seats.values().any(|seat| seat.asked.is_some());
        self.round.is_none() && self.floor.is_none() && self.due.is_empty() && !self.is_being_judged && !is_engaged
    }

    /// Where nothing goes on, whatever is unsettled leads to something, once it has been quiet for long enough and no pause is left.
    pub(super) fn pass(&self, now: Duration) {
        if !self.keeps_time() || !self.is_free() {
            return;
        }
        for (companion, seat) in self.seats.iter().filter(|(_, seat)| !seat.is_silent() && !seat.unsettled.is_empty()) {
            let Some(quiet) = patience(companion.as_str()) else { continue };
            let due = seat.pause.map_or(self.since, |pause| pause.due.max(self.since)) + quiet;
            if self.watch.lateness.is_late(self.channel_key, self.since, now, due - self.since) {
                let waited = (now - self.since).as_secs_f64();
                self.broken(format_args!("{companion} was left alone with {:?} for {waited:.1} s", seat.unsettled));
            }
        }
    }

    /// Somebody says something; where the way is free, whoever is addressed is asked at once.
    pub(super) fn note_heard(&mut self, seq: Seq, message: &Message, said_at: Option<Moment>) {
        let at = said_at.unwrap_or(self.clock).min(self.clock);
        let heard = Heard { at, address: message.address.clone(), role: message.from.role, is_late: said_at.is_some() };
        if heard.role != Role::Companion && !heard.is_late && self.is_free() && self.keeps_time() && self.told.plan.slow.is_none()
        {
            let now = self.when(seq);
            // Nobody but a person cuts a pause short.
            let is_free = |seat: &Seat| !seat.is_silent() && (seat.pause.is_none() || heard.role == Role::Person);
            let called = |(companion, seat): &(&CompanionId, &Seat)| is_free(seat) && heard.address.includes(companion);
            let called = self.seats.iter().filter(called).map(|(companion, _)| (companion.clone(), seq, now));
            self.calls.extend(called);
        }
        self.heard.insert(seq, heard);
    }

    /// Something is decided about all that a companion has not settled, up to this: an address makes it one, and is not kept waiting.
    pub(super) fn considered(&mut self, recorded: &Recorded, companion: &CompanionId, upto: Seq, trigger: Trigger) {
        let now = self.when(recorded.seq);
        let (calls, others) =
            std::mem::take(&mut self.calls).into_iter().partition(|(who, seq, _)| who == companion && *seq <= upto);
        self.calls = others;
        let calls: Vec<(CompanionId, Seq, Duration)> = calls;
        for (_, seq, since) in calls {
            if self.watch.lateness.undisturbed(self.channel_key, since, now) > AT_ONCE {
                let waited = (now - since).as_secs_f64();
                self.broken(format_args!("{seq} addresses {companion}, which is asked after {waited:.1} s: {recorded:?}"));
            }
        }
        if trigger == Trigger::DirectAddress || !self.is_plain() {
            return;
        }
        let Some(seat) = self.seats.get(companion).filter(|seat| !seat.is_unsure) else { return };
        let calls = |seq: &&Seq| {
            let heard = self.heard.get(seq).filter(|heard| heard.role != Role::Companion && !heard.is_late);
            **seq <= upto && heard.is_some_and(|heard| heard.address.includes(companion))
        };
        if let Some(call) = seat.unsettled.iter().find(calls) {
            self.broken(format_args!("{companion} was addressed by {call}, and not for that is it considered: {recorded:?}"));
        }
    }

    /// A question is not asked before its quiet is over, nor before the pause after the one before it.
    pub(super) fn asked_in_time(&self, recorded: &Recorded, evaluated: &Evaluated) {
        if !self.is_plain() {
            return;
        }
        let companion = &evaluated.companion;
        let (Some(seat), Some(quiet)) = (self.seats.get(companion), patience(companion.as_str())) else { return };
        if evaluated.trigger == Trigger::Lull
            && let Some(heard) = self.heard.get(&evaluated.message)
            && recorded.at < heard.at + quiet
        {
            self.broken(format_args!("{companion} is asked before it was quiet for {} s: {recorded:?}", quiet.as_secs()));
        }
        // A person's address cuts it short, though it may have settled before anybody could be asked.
        let is_urgent =
            |(seq, heard): (&Seq, &Heard)| *seq > seat.tried && heard.role == Role::Person && heard.address.includes(companion);
        if let Some(pause) = seat.pause.filter(|pause| recorded.at < pause.until)
            && !seat.is_unsure
            && !self.heard.iter().any(is_urgent)
        {
            self.broken(format_args!("{companion} is asked again before {:?}: {recorded:?}", pause.until));
        }
    }

    /// A lull timer fires for somebody who is there, not before it was quiet for long enough, and once.
    pub(super) fn fires_after_quiet(&mut self, recorded: &Recorded, companions: &[CompanionId]) {
        self.told.reach("lull fired");
        for companion in companions {
            let Some(seat) = self.seats.get(companion) else {
                self.broken(format_args!("{companion} is not present: {recorded:?}"));
                continue;
            };
            let newest = seat.unsettled.last().and_then(|seq| self.heard.get(seq));
            if let (Some(heard), Some(quiet)) = (newest, patience(companion.as_str()))
                && self.is_plain()
                && recorded.at < heard.at + quiet
            {
                self.broken(format_args!("{companion} was not quiet for {} s: {recorded:?}", quiet.as_secs()));
            }
            if seat.has_fired {
                self.broken(format_args!("nothing happened since the last lull of {companion}: {recorded:?}"));
            }
            self.seats.entry(companion.clone()).and_modify(|seat| seat.has_fired = true);
        }
    }

    /// Something is said, or taken back: whoever was quiet may have to be quiet anew.
    pub(super) fn lulls_may_be_armed(&mut self) {
        self.seats.values_mut().for_each(|seat| seat.has_fired = false);
    }

    /// A back-off ends when its time has come, or because a person addresses whoever waits, and once.
    pub(super) fn ends_back_offs(&mut self, recorded: &Recorded, companions: &[CompanionId]) {
        for companion in companions {
            let Some(seat) = self.seats.get(companion) else {
                self.broken(format_args!("{companion} is not present: {recorded:?}"));
                continue;
            };
            let is_urgent = |seq: &Seq| {
                let heard = self.heard.get(seq);
                heard.is_some_and(|heard| heard.role == Role::Person && heard.address.includes(companion))
            };
            match seat.pause {
                Some(Pause { is_over: true, .. }) => self.broken(format_args!("{companion} waits no more: {recorded:?}")),
                Some(pause) if recorded.at >= pause.until => self.told.reach("back-off ended in time"),
                Some(_) if seat.unsettled.iter().any(is_urgent) || seat.is_unsure || !self.is_plain() => {
                    self.told.reach("back-off cut short");
                }
                Some(pause) => self.broken(format_args!("{companion} was to wait until {:?}: {recorded:?}", pause.until)),
                None => self.broken(format_args!("{companion} waited for nothing: {recorded:?}")),
            }
            self.seats.entry(companion.clone()).and_modify(|seat| {
                if let Some(pause) = &mut seat.pause {
                    pause.is_over = true;
                }
            });
        }
    }

    /// After a restart, a round and an external companion that has the floor are waited for anew.
    pub(super) fn extended(&mut self, recorded: &Recorded, round: Option<Moment>, floor: Option<Moment>) {
        self.told.reach("waited for anew after a restart");
        if let (Some(open), Some(deadline)) = (&mut self.round, round) {
            if deadline < open.deadline {
                self.told.violate(format!("{}: a deadline is put earlier: {recorded:?}", self.channel_key));
            }
            open.deadline = deadline;
        } else if round.is_some() || self.floor.is_none() && floor.is_some() {
            self.broken(format_args!("nobody is waited for: {recorded:?}"));
        }
    }

    /// A question went without an answer: the pause is twice the one before it.
    pub(super) fn unanswered(&mut self, recorded: &Recorded, companion: &CompanionId, ticket: Ticket, back_off: Duration) {
        let (now, until, is_plain) = (self.when(recorded.seq), self.clock + back_off, self.is_plain());
        let seat = self.seats.get_mut(companion);
        let Some((seat, (_, upto))) = seat.and_then(|seat| {
            let asked = seat.asked.take_if(|(asked, _)| *asked == ticket)?;
            Some((seat, asked))
        }) else {
            return self.broken(format_args!("nobody asked {companion}: {recorded:?}"));
        };
        seat.tried = seat.tried.max(upto);
        seat.pause = Some(Pause { until, due: now + back_off, is_over: false });
        let before = seat.back_off.replace(back_off);
        let first = patience(companion.as_str()).map(|quiet| quiet.max(SHORTEST_BACK_OFF));
        let expected = before.map(|before| before * 2).or(first).map(|pause| pause.min(LONGEST_BACK_OFF));
        if is_plain && companion.as_str() != EXTERNAL && expected != Some(back_off) {
            self.broken(format_args!("after {before:?} a pause of {expected:?} was due: {recorded:?}"));
        }
    }

    /// Whoever was selected speaks when its turn has come, and not long after.
    pub(super) fn speaks_in_time(&mut self, recorded: &Recorded) {
        let Some((speak_at, since)) = self.speak_at.take() else { return };
        if recorded.at < speak_at {
            self.broken(format_args!("its turn comes at {speak_at:?}: {recorded:?}"));
        }
        let longest = Duration::from_secs_f64(self.told.plan.rules.turn_delays.most);
        let now = self.when(recorded.seq);
        if self.keeps_time() && self.watch.lateness.is_late(self.channel_key, since, now, longest) {
            self.broken(format_args!("its turn was {:.1} s ago: {recorded:?}", (now - since).as_secs_f64()));
        }
    }

    /// Words that are owed come in time, or are given up; those for a platform wait for it, too.
    pub(super) fn fulfilled(&self, seq: Seq, companion: &CompanionId, since: Duration) {
        let rules = &self.told.plan.rules;
        let most =
            if companion.as_str() == EXTERNAL { rules.external_patience.most } else { rules.main_timeouts.most + POOLS_OWN };
        let is_here = !self.channel_key.channel.as_str().starts_with("sim:");
        let now = self.when(seq);
        if is_here
            && self.keeps_time()
            && self.watch.lateness.is_late(self.channel_key, since, now, Duration::from_secs_f64(most))
        {
            self.broken(format_args!("{companion} owed {seq} for {:.1} s", (now - since).as_secs_f64()));
        }
    }
}
