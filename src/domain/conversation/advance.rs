//! What a conversation decides to put on record next.

use super::super::budget::Use;
use super::super::event::{Decided, Evaluated};
use super::super::gate::{Check, Waiting};
use super::super::id::PersonId;
use super::super::message::{Message, Role};
use super::*;

impl Conversation {
    /// An event from outside is taken in; one that was taken in before is passed over.
    pub(super) fn hear(&mut self, recorded: Recorded, world: &mut World<'_>, out: &mut Vec<Output>) {
        if recorded.seq <= self.handled && recorded.seq != Seq::NONE {
            return;
        }
        self.clock = self.clock.max(recorded.at);
        self.fire_due_before(self.clock);
        let mut told = Vec::new();
        if let Event::Said { message, .. } = &recorded.event {
            self.make_room(message, world, &mut told);
        }
        let was_owed = self.floor.is_some();
        self.apply(recorded.at, recorded.seq, &recorded.event, world, &mut told);
        if was_owed && self.floor.is_none() && !matches!(recorded.event, Event::Said { .. }) {
            world.ledger.give_back_statement();
        }
        if let Event::Said { message, .. } = &recorded.event {
            self.count_address(recorded.seq, message, world, &mut told);
        }
        // On record, room was made before the message was taken in; to be told, it cancelled the timer first.
        let (cancelled, rest): (Vec<_>, Vec<_>) =
            told.into_iter().partition(|output| matches!(output, Output::LullCancelled { .. }));
        out.extend(cancelled.into_iter().chain(rest));
    }

    /// An address counts when it is heard, once, however many it names.
    fn count_address(&mut self, seq: Seq, message: &Message, world: &mut World<'_>, out: &mut Vec<Output>) {
        let is_heard = |(companion, gate): (&CompanionId, &Gate)| message.address.includes(companion) && !gate.paused;
        if message.from.role == Role::Companion || !self.gates.iter().any(is_heard) {
            return;
        }
        let person = PersonId::from(&*message.from.id);
        let address = Use::Address { person: &person, channel: world.channel, message: seq };
        if world.ledger.allows(address, self.clock, world.policy) {
            world.ledger.count(address, self.clock);
        } else {
            self.make(Event::AddressRefused { message: seq }, world, out);
        }
    }

    /// Goes on as far as the way is free: everyone's triggers, in the order of ids; then the summary.
    pub(super) fn advance(&mut self, by_deadline: bool, world: &mut World<'_>, out: &mut Vec<Output>) {
        self.tidy(world, out);
        let companions: Vec<_> = self.gates.keys().cloned().collect();
        self.settle_paused(world, out);
        for companion in &companions {
            self.draw_first_interval(companion, world, out);
            self.end_back_off(companion, by_deadline, world, out);
            self.proceed(companion, by_deadline, world, out);
        }
        self.refresh_summary(world, out);
    }

    pub(super) fn wake(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        let now = self.clock;
        self.fire_due(|due| due <= now);
        self.tidy(world, out);
    }

    /// A question was answered. An answer that nobody waits for is passed over.
    pub(super) fn conclude(
        &mut self,
        ticket: Ticket,
        verdict: Verdict,
        why: Option<Arc<str>>,
        call: Option<Box<Call>>,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        let Some((companion, evaluation)) = self.asked(ticket) else { return };
        if let Some(call) = &call {
            world.ledger.count(Use::Tokens(call.input_tokens + call.output_tokens), self.clock);
        }
        let answered = Answered { ticket: Some(ticket), why, call };
        match verdict {
            Verdict::Yes if !world.ledger.allows(Use::Statement, self.clock, world.policy) => {
                self.decline(&companion, evaluation.trigger, Reason::Budget, evaluation.upto, answered, world, out);
            }
            Verdict::Yes => {
                let yes = self.decided(&companion, evaluation.trigger, Decision::Yes, Reason::ModelYes, Seq::NONE, answered);
                self.make(Event::Decided(yes), world, out);
                self.take_floor(companion, evaluation.trigger, world, out);
            }
            Verdict::No => self.decline(&companion, evaluation.trigger, Reason::ModelNo, evaluation.upto, answered, world, out),
            Verdict::Unreadable => {
                self.decline(&companion, evaluation.trigger, Reason::Unreadable, evaluation.upto, answered, world, out);
            }
        }
    }

    pub(super) fn go_unanswered(&mut self, ticket: Ticket, error: Arc<str>, world: &mut World<'_>, out: &mut Vec<Output>) {
        let Some((companion, evaluation)) = self.asked(ticket) else { return };
        let Some(temper) = world.tempers.get(&companion) else { return };
        let last = self.gates[&companion].back_off.map(|back_off| back_off.pause);
        let back_off = temper.back_off(last);
        self.make(Event::Unanswered { companion, ticket, trigger: evaluation.trigger, error, back_off }, world, out);
    }

    pub(super) fn post(&mut self, ticket: Ticket, text: Arc<str>, out: &mut Vec<Output>) {
        if let Some(floor) = self.floor.as_mut().filter(|floor| floor.ticket == ticket && !floor.is_posting) {
            floor.is_posting = true;
            out.push(Output::Post { companion: floor.companion.clone(), ticket, text });
        }
    }

    pub(super) fn fail_reply(&mut self, ticket: Ticket, error: Arc<str>, world: &mut World<'_>, out: &mut Vec<Output>) {
        if let Some(floor) = self.floor.as_ref().filter(|floor| floor.ticket == ticket) {
            let (companion, trigger) = (floor.companion.clone(), floor.trigger);
            world.ledger.give_back_statement();
            self.make(Event::ReplyFailed { companion, ticket, trigger, error }, world, out);
        }
    }

    pub(super) fn take_summary(&mut self, upto: Seq, text: Option<Arc<str>>, world: &World<'_>, out: &mut Vec<Output>) {
        let is_spoilt = std::mem::take(&mut self.summary.is_spoilt);
        match text {
            // What is left to be summarised is asked for anew.
            Some(_) if is_spoilt => self.summary.is_being_written = false,
            Some(text) => self.make(Event::Summarised { upto, text }, world, out),
            None => {
                // Tried again when as much has settled once more.
                self.summary.behind = 0;
                self.summary.is_being_written = false;
            }
        }
    }

    /// After a restart, what is too old is not answered; an address may be older than the rest.
    pub(super) fn settle_stale_after_restart(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        let patience = world.policy.stale_address_after();
        for companion in self.gates.keys().cloned().collect::<Vec<_>>() {
            self.settle_stale(&companion, Some(patience), world, out);
        }
    }

    /// Puts an event on record and changes the state by it.
    fn make(&mut self, event: Event, world: &World<'_>, out: &mut Vec<Output>) {
        let place = out.len();
        self.apply(self.clock, Seq::NONE, &event, world, out);
        out.insert(place, Output::Made { handled: self.handled, event });
    }

    /// The buffer holds so many messages; before one more comes, the oldest settle.
    fn make_room(&mut self, message: &Message, world: &mut World<'_>, out: &mut Vec<Output>) {
        for companion in self.gates.keys().cloned().collect::<Vec<_>>() {
            let gate = &self.gates[&companion];
            let most = world.policy.max_buffer;
            if message.is_by(&companion) || gate.paused || self.window.count_after(gate.cursor) < most {
                continue;
            }
            let surplus = (self.window.buffer(&companion, gate.cursor).count() + 1).saturating_sub(most);
            if let Some(upto) = surplus.checked_sub(1).and_then(|last| self.window.buffer(&companion, gate.cursor).nth(last)) {
                let upto = upto.seq;
                self.set_aside(&companion, Reason::Overflow, upto, world, out);
            }
        }
    }

    fn settle_paused(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        let mut by_rest: BTreeMap<Vec<Seq>, Vec<CompanionId>> = BTreeMap::new();
        for (companion, gate) in self.gates.iter().filter(|(_, gate)| gate.paused) {
            let rest: Vec<_> = self.window.buffer(companion, gate.cursor).map(|entry| entry.seq).collect();
            if !rest.is_empty() {
                by_rest.entry(rest).or_default().push(companion.clone());
            }
        }
        for companions in by_rest.into_values() {
            let trigger = self.trigger_of_rest(&companions[0], self.handled);
            let mut record =
                self.decided(&companions[0], trigger, Decision::No, Reason::Paused, self.handled, Answered::default());
            record.companions = companions;
            self.make(Event::Decided(record), world, out);
        }
    }

    fn draw_first_interval(&mut self, companion: &CompanionId, world: &mut World<'_>, out: &mut Vec<Output>) {
        let gate = &self.gates[companion];
        let Some(temper) = world.tempers.get(companion).filter(|_| gate.lacks_interval()) else { return };
        let next_interjection_at = temper.interval(0, (world.jitter)());
        self.make(Event::JitterDrawn { companion: companion.clone(), next_interjection_at }, world, out);
        // After a crash before this was on record, the counter may be past it already.
        let newest = self.window.buffer(companion, self.gates[companion].cursor).next_back().map(|entry| entry.seq);
        if let (Some(gate), Some(message)) = (self.gates.get_mut(companion), newest)
            && gate.is_interjection_due()
        {
            gate.fire(Waiting {
                trigger: Trigger::Interjection,
                message,
                check: Check::Counter,
                urgent: false,
                is_refused: false,
            });
        }
    }

    /// A back-off is over when its deadline was handled, or a human's address cuts it short: what has become stale settles first.
    fn end_back_off(&mut self, companion: &CompanionId, by_deadline: bool, world: &mut World<'_>, out: &mut Vec<Output>) {
        let gate = &self.gates[companion];
        let is_free = self.floor.is_none() && !gate.is_engaged();
        if !is_free || gate.retry_at().is_none() || self.is_backing_off(gate, by_deadline) {
            return;
        }
        self.settle_stale(companion, None, world, out);
        if let Some(gate) = self.gates.get_mut(companion).filter(|gate| gate.waiting.is_none()) {
            gate.end_back_off();
            self.tidy(world, out);
        }
    }

    fn is_backing_off(&self, gate: &Gate, by_deadline: bool) -> bool {
        let is_urgent = gate.waiting.is_some_and(|waiting| waiting.urgent);
        let is_before = |until| until > self.clock || until == self.clock && !by_deadline;
        !is_urgent && gate.retry_at().is_some_and(is_before)
    }

    /// Settles what is older than `gate.stale_after_secs`, up to an address that was not tried yet (and, after a restart, is not older than
    /// `patience`).
    fn settle_stale(
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
                let is_untried = entry.seq > gate.tried && entry.message.address.includes(companion);
                let is_owed = is_untried && patience.is_none_or(|patience| age(entry.at) < patience);
                age(entry.at) > world.policy.stale_after() && !is_owed
            })
            .last()
            .map(|entry| entry.seq);
        if let Some(upto) = stale {
            self.set_aside(companion, Reason::Stale, upto, world, out);
        }
    }

    /// What waits is decided without a call, or asked, if the way is free.
    fn proceed(&mut self, companion: &CompanionId, by_deadline: bool, world: &mut World<'_>, out: &mut Vec<Output>) {
        loop {
            let gate = &self.gates[companion];
            if self.floor.is_some() || gate.is_engaged() || gate.paused || !world.tempers.contains_key(companion) {
                return;
            }
            let Some(waiting) = gate.waiting else { return };
            if self.is_backing_off(gate, by_deadline) {
                return;
            }
            if let Some(reason) = self.spares_the_call(companion, waiting, world) {
                self.decline(companion, waiting.trigger, reason, self.handled, Answered::default(), world, out);
            } else {
                self.ask(companion, waiting, by_deadline, world, out);
                return;
            }
        }
    }

    fn spares_the_call(&self, companion: &CompanionId, waiting: Waiting, world: &mut World<'_>) -> Option<Reason> {
        let gate = &self.gates[companion];
        let is_for_others =
            || self.window.buffer(companion, gate.cursor).all(|entry| entry.message.address.is_elsewhere(companion));
        if waiting.trigger == Trigger::Lull && world.policy.skip_when_other_addressed && is_for_others() {
            return Some(Reason::OtherAddressed);
        }
        let ledger = &mut *world.ledger;
        let is_within = ledger.allows(Use::Statement, self.clock, world.policy)
            && world.tokens_per_day.is_none_or(|most| ledger.tokens_used(self.clock) < most)
            && match waiting.trigger {
                Trigger::DirectAddress => !waiting.is_refused,
                _ => ledger.allows(Use::Evaluation { channel: world.channel, companion }, self.clock, world.policy),
            };
        (!is_within).then_some(Reason::Budget)
    }

    fn ask(
        &mut self,
        companion: &CompanionId,
        waiting: Waiting,
        by_deadline: bool,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        if waiting.trigger != Trigger::DirectAddress {
            world.ledger.count(Use::Evaluation { channel: world.channel, companion }, self.clock);
        }
        let gate = &self.gates[companion];
        let messages: Vec<_> = self.window.buffer(companion, gate.cursor).map(|entry| entry.seq).collect();
        let evaluated = Evaluated {
            companion: companion.clone(),
            ticket: Ticket(self.tickets.0 + 1),
            trigger: waiting.trigger,
            message: waiting.message,
            upto: messages.last().copied().unwrap_or(gate.cursor),
            messages,
            message_count: gate.message_counter,
            check_count: gate.check_count,
            threshold: gate.next_interjection_at.unwrap_or_default(),
            by_deadline,
        };
        self.make(Event::Evaluated(evaluated), world, out);
    }

    fn take_floor(&mut self, companion: CompanionId, trigger: Trigger, world: &mut World<'_>, out: &mut Vec<Output>) {
        let Some(temper) = world.tempers.get(&companion) else { return };
        let next_interjection_at = temper.interval(0, (world.jitter)());
        world.ledger.count(Use::Statement, self.clock);
        let owed = Event::ReplyOwed {
            ticket: Ticket(self.tickets.0 + 1),
            trigger,
            messages: self.window.buffer(&companion, self.gates[&companion].cursor).map(|entry| entry.seq).collect(),
            upto: self.handled,
            next_interjection_at,
            companion,
        };
        self.make(owed, world, out);
    }

    /// A NO, from a model or without one: what was considered settles, and the counters change as the trigger says.
    #[expect(clippy::too_many_arguments, reason = "each says one thing of the decision")]
    fn decline(
        &mut self,
        companion: &CompanionId,
        trigger: Trigger,
        reason: Reason,
        upto: Seq,
        answered: Answered,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        let mut record = self.decided(companion, trigger, Decision::No, reason, upto, answered);
        let gate = &self.gates[companion];
        if let Some(temper) = world.tempers.get(companion) {
            record.next_interjection_at = match trigger {
                Trigger::DirectAddress => Some(temper.interval(0, (world.jitter)())),
                Trigger::Interjection => Some(gate.after_declining(temper.interval(gate.check_count + 1, (world.jitter)()))),
                Trigger::Lull | Trigger::Turn => None,
            };
        }
        self.make(Event::Decided(record), world, out);
    }

    /// A NO that leaves the counters alone.
    fn set_aside(&mut self, companion: &CompanionId, reason: Reason, upto: Seq, world: &World<'_>, out: &mut Vec<Output>) {
        let trigger = self.trigger_of_rest(companion, upto);
        let record = self.decided(companion, trigger, Decision::No, reason, upto, Answered::default());
        self.make(Event::Decided(record), world, out);
    }

    fn decided(
        &self,
        companion: &CompanionId,
        trigger: Trigger,
        decision: Decision,
        reason: Reason,
        upto: Seq,
        answered: Answered,
    ) -> Decided {
        let gate = &self.gates[companion];
        let settles = self.window.buffer(companion, gate.cursor).take_while(|entry| entry.seq <= upto);
        Decided {
            companions: vec![companion.clone()],
            trigger,
            decision,
            reason,
            ticket: answered.ticket,
            messages: settles.map(|entry| entry.seq).collect(),
            upto,
            message_count: gate.message_counter,
            check_count: gate.check_count,
            threshold: gate.next_interjection_at,
            next_interjection_at: None,
            why: answered.why,
            call: answered.call,
        }
    }

    /// What is decided without a trigger of its own counts as a lull, or as a turn when the newest of it is a statement.
    fn trigger_of_rest(&self, companion: &CompanionId, upto: Seq) -> Trigger {
        let rest = self.window.buffer(companion, self.gates[companion].cursor).take_while(|entry| entry.seq <= upto);
        match rest.last() {
            Some(newest) if newest.message.from.role == Role::Companion => Trigger::Turn,
            _ => Trigger::Lull,
        }
    }

    fn refresh_summary(&mut self, world: &World<'_>, out: &mut Vec<Output>) {
        let is_due = world.summary_after.is_some_and(|after| self.summary.behind >= after);
        if is_due && !self.summary.is_being_written {
            self.summary.is_being_written = true;
            out.push(Output::Summarise { after: self.summary.upto, upto: self.summary.counted });
        }
    }

    fn asked(&self, ticket: Ticket) -> Option<(CompanionId, super::super::gate::Evaluation)> {
        self.gates.iter().find_map(|(companion, gate)| {
            let evaluation = gate.evaluation.filter(|evaluation| evaluation.ticket == ticket)?;
            Some((companion.clone(), evaluation))
        })
    }
}

/// What goes on record of an answer.
#[derive(Default)]
pub(super) struct Answered {
    ticket: Option<Ticket>,
    why: Option<Arc<str>>,
    call: Option<Box<Call>>,
}
