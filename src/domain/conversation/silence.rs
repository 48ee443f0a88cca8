//! Silence-initiated starts: a companion may begin a conversation after a long silence (docs/design/gate.md G-37 to G-39).

use super::super::gate::{Check, Waiting};
use super::step::Due;
use super::*;

impl Conversation {
    /// Restarts every silence after a message or an event. After a human message every companion may start a conversation once more.
    pub(super) fn restart_silence(&mut self, is_human: bool, world: &World<'_>) {
        let now = self.position.clock;
        for (companion, gate) in self.gates.iter_mut() {
            gate.may_start |= is_human;
            gate.waiting = gate.waiting.filter(|waiting| waiting.trigger.needs_a_message());
            let may_start = gate.may_start && !gate.is_silent();
            let policy = world.policies.get(companion).filter(|_| may_start);
            gate.silence_at = policy.and_then(|policy| policy.starts_after).map(|silence| now + silence);
        }
    }

    /// Handles the end of these companions' silences. A companion that may not start conversations any more considers nothing. If a companion still
    /// has unsettled messages, its silence restarts.
    pub(super) fn apply_silence_fired(&mut self, companions: &[CompanionId], world: &World<'_>) {
        let message = self.window.entries().next_back().map_or(self.position.handled, |newest| newest.seq);
        for companion in companions {
            let Some(gate) = self.gates.get_mut(companion) else { continue };
            let silence = world.policies.get(companion).and_then(|policy| policy.starts_after).filter(|_| !gate.is_silent());
            let is_quiet = self.window.newest(companion, gate.cursor).is_none();
            gate.silence_at = silence.filter(|_| !is_quiet).map(|silence| self.position.clock + silence);
            gate.may_start = gate.silence_at.is_some();
            if silence.is_some() && is_quiet {
                gate.fire(Waiting { trigger: Trigger::Silence, message, check: Check::Quiet, urgent: false });
            }
        }
    }

    /// When the next companion considers starting a conversation if no message arrives before. The channel may sleep until then.
    pub fn silence_at(&self) -> Option<Moment> {
        self.gates.values().filter_map(|gate| gate.silence_at).min()
    }

    /// The whole minutes since the newest message, at least one.
    pub fn minutes_of_silence(&self) -> u64 {
        let newest = self.window.entries().next_back();
        newest.map_or(1, |newest| (self.position.clock.since(newest.at).as_secs() / 60).max(1))
    }
}

impl Step<'_, '_> {
    /// Journals the silences that are due.
    pub(super) fn fire_silences(&mut self, due: Due) {
        let now = self.state.position.clock;
        let is_due = |silence_at: Moment| silence_at < now || silence_at == now && due == Due::Now;
        let companions = self.state.gates.companions_where(|gate| gate.silence_at.is_some_and(is_due));
        if !companions.is_empty() {
            self.record(Event::SilenceFired { companions });
        }
    }
}
