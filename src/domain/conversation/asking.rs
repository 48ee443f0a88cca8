//! Who is asked: what waits is decided without a call, or becomes a question, once the way is free (docs/design/gate.md G-16).

use super::super::budget::UsedUp;
use super::super::event::Evaluated;
use super::super::gate::{Check, Waiting};
use super::super::message::Role;
use super::advance::{Answered, Due};
use super::*;

/// Who takes part in a round, besides those who are asked.
pub(super) struct Attendance {
    /// The last speaker, where its statement opens the round and no trigger of its own waits.
    pub(super) left_out: Option<CompanionId>,
    /// Those whom something unsettled addresses.
    pub(super) called: BTreeSet<CompanionId>,
}

impl Conversation {
    pub(super) fn draw_first_interval(&mut self, companion: &CompanionId, world: &mut World<'_>, out: &mut Vec<Output>) {
        let gate = &self.gates[companion];
        let Some(policy) = world.policies.get(companion).filter(|_| gate.lacks_interval()) else { return };
        let next_interjection_at = policy.interval(0, (world.jitter)());
        self.make(Event::JitterDrawn { companion: companion.clone(), next_interjection_at }, world, out);
    }

    /// Notes whose back-off is over: its deadline was handled, or a human's address cuts it short.
    pub(super) fn note_back_offs_over(&self, occasion: Occasion, over: &mut Vec<CompanionId>) {
        let is_due = |gate: &Gate| gate.retry_at().is_some_and(|until| self.is_due(until, occasion));
        let is_over = |gate: &Gate| gate.is_back_off_cut_short() || is_due(gate);
        for (companion, _) in self.gates.iter().filter(|(_, gate)| is_over(gate)) {
            over.push(companion.clone());
        }
    }

    /// Back-offs end, all at once, so that whoever has something to ask again goes before whoever begins to wait for quiet; then what has
    /// become stale meanwhile settles.
    pub(super) fn end_back_offs(&mut self, over: &[CompanionId], world: &mut World<'_>, out: &mut Vec<Output>) {
        self.record_ends_of_back_offs(over, world, out);
        for companion in over {
            self.settle_stale(companion, None, world, out);
        }
    }

    pub(super) fn record_ends_of_back_offs(&mut self, over: &[CompanionId], world: &mut World<'_>, out: &mut Vec<Output>) {
        let is_running = |companion: &&CompanionId| self.gates.get(companion).is_some_and(Gate::is_backing_off);
        let companions: Vec<_> = over.iter().filter(is_running).cloned().collect();
        if !companions.is_empty() {
            self.make(Event::BackOffEnded { companions }, world, out);
        }
    }

    /// Whether somebody is asked when its trigger fires and the way is free.
    pub(super) fn is_ready(&self, companion: &CompanionId, gate: &Gate, world: &World<'_>) -> bool {
        !gate.is_silent() && !gate.is_backing_off() && world.policies.contains_key(companion)
    }

    /// Settles what is older than `gate.stale_after_secs`, up to an address that was not tried yet (and, after a restart, is not older than
    /// `patience`).
    pub(super) fn settle_stale(
        &mut self,
        companion: &CompanionId,
        patience: Option<Duration>,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        let gate = &self.gates[companion];
        let age = |at: Moment| self.clock.since(at);
        let stale = self
            .window
            .buffer(companion, gate.cursor)
            .take_while(|entry| {
                // A statement that names a companion makes it a turn, not an address.
                let is_address = entry.message.from.role != Role::Companion && entry.message.address.includes(companion);
                let is_untried = entry.seq > gate.tried && is_address;
                let is_owed = is_untried && patience.is_none_or(|patience| age(entry.at) < patience);
                age(entry.at) > world.rules.gate.stale_after() && !is_owed
            })
            .last()
            .map(|entry| entry.seq);
        if let Some(upto) = stale {
            // Quiet that is over at the same moment may be about some of it.
            self.fire_lulls(Due::Now, world, out);
            self.settle_unasked(companion, Reason::Stale, upto, world, out);
        }
    }

    /// If the way is free, what waits is decided without a call; or it is given back to be asked, and counted as asked.
    pub(super) fn proceed(&mut self, companion: &CompanionId, world: &mut World<'_>, out: &mut Vec<Output>) -> Option<Waiting> {
        loop {
            let gate = &self.gates[companion];
            if self.is_busy() || !self.is_ready(companion, gate, world) {
                return None;
            }
            let waiting = gate.waiting?;
            let Some((reason, used_up)) = self.spares_the_call(companion, waiting, world) else { return Some(waiting) };
            let spared = Answered { used_up, ..Answered::default() };
            self.decline(companion, waiting.trigger, reason, self.handled, spared, world, out);
        }
    }

    /// Why it is decided without a call; none: it is asked, and counted as asked.
    fn spares_the_call(
        &self,
        companion: &CompanionId,
        waiting: Waiting,
        world: &mut World<'_>,
    ) -> Option<(Reason, Option<UsedUp>)> {
        if self.tally.streak >= world.rules.turn_taking.max_companion_streak {
            return Some((Reason::LoopGuard, None));
        }
        let is_for_others = match waiting.trigger {
            _ if !world.rules.gate.skip_when_other_addressed => false,
            Trigger::Lull => self.buffer(companion).all(|entry| entry.message.address.is_elsewhere(companion)),
            Trigger::Turn => self.buffer(companion).all(|entry| !entry.audience().includes(companion)),
            Trigger::DirectAddress | Trigger::Interjection => false,
        };
        if is_for_others {
            return Some((Reason::OtherAddressed, None));
        }
        if world.is_unpostable {
            return Some((Reason::Unpostable, None));
        }
        let of_guild = world.no_more_statements(self.clock);
        let used_up = match waiting.trigger {
            Trigger::DirectAddress => of_guild,
            _ => world.ledger.take_evaluation(world.channel, companion, self.clock, world.rules.gate, of_guild).err(),
        }?;
        Some((Reason::Budget, Some(used_up)))
    }

    /// Everyone else who takes part in the round and has something unsettled is asked too, as if after a lull.
    pub(super) fn add_listeners(
        &self,
        asked: &mut Vec<(CompanionId, Waiting)>,
        left_out: Option<&CompanionId>,
        world: &World<'_>,
    ) {
        for (companion, gate) in self.gates.iter() {
            let takes_part = left_out != Some(companion) && asked.iter().all(|(other, _)| other != companion);
            let newest = self.window.newest(companion, gate.cursor).map(|entry| entry.seq);
            if let Some(message) = newest.filter(|_| takes_part && self.is_ready(companion, gate, world)) {
                let waiting = Waiting { trigger: Trigger::Lull, message, check: Check::Unsettled, urgent: false };
                asked.push((companion.clone(), waiting));
            }
        }
        asked.sort_by(|(one, _), (other, _)| one.cmp(other));
    }

    /// Asks those whose triggers fired together: in a round, or one that is alone without.
    pub(super) fn ask(
        &mut self,
        asked: Vec<(CompanionId, Waiting)>,
        attendance: &Attendance,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        if asked.is_empty() {
            return;
        }
        if self.holds_rounds() {
            self.open_round(asked.iter().map(|(companion, _)| companion.clone()).collect(), attendance, world, out);
        }
        for (companion, waiting) in asked {
            let gate = &self.gates[&companion];
            let messages = self.unsettled(&companion, gate, self.handled);
            let evaluated = Evaluated {
                ticket: Ticket(self.tickets.0 + 1),
                trigger: waiting.trigger,
                message: waiting.message,
                upto: messages.last().copied().unwrap_or(gate.cursor),
                messages,
                message_count: gate.message_counter,
                check_count: gate.check_count,
                threshold: gate.next_interjection_at,
                companion,
            };
            self.make(Event::Evaluated(evaluated), world, out);
        }
    }
}
