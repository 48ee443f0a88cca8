//! What a conversation decides to put on record next.

use super::super::budget::{MINUTE, Use, UsedUp};
use super::super::event::Decided;
use super::super::id::PersonId;
use super::super::message::{Message, Role};
use super::super::vote::USUAL_IMPORTANCE;
use super::asking::Attendance;
use super::ending::opens_again;
use super::heard::is_too_late;
use super::*;

/// Why no statement was made where all that it would have answered was taken back.
pub const DELETED: &str = "taken_back";

/// Which deadlines are due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Those before this moment.
    Before,
    /// Those at it, too.
    Now,
}

/// How long somebody is not asked again who is about to leave.
const LEAVING: Duration = Duration::from_secs(10);

impl Conversation {
    /// An event from outside is taken in, which leaves everything tidy; one that was taken in before is passed over.
    pub(super) fn hear(&mut self, recorded: Recorded, world: &mut World<'_>, out: &mut Vec<Output>) {
        if recorded.seq <= self.handled && recorded.seq != Seq::NONE {
            return;
        }
        let first = out.len();
        let (mut refused, mut is_late) = (None, false);
        if let Event::Said { message, said_at, .. } = &recorded.event {
            refused = self.refuse_address(recorded.seq, message, *said_at, world, out);
            self.make_room(message, refused.is_some(), world, out);
            is_late = said_at.is_some();
        }
        count_statement(&recorded, world);
        let seq = recorded.seq;
        self.take_in(recorded, world, out);
        // On record, room was made before the message was taken in; to be told, it cancelled the timer first.
        out[first..].sort_by_key(|output| !matches!(output, Output::LullCancelled { .. }));
        if !self.opened_again.is_empty() {
            let cancelled = out[first..].partition_point(|output| matches!(output, Output::LullCancelled { .. }));
            let rest = out.split_off(first + cancelled);
            self.tell_opened_again(world, out);
            out.extend(rest);
        }
        if let Some(used_up) = refused {
            self.decline_address(seq, used_up, world, out);
        }
        if is_late {
            self.settle_late(world, out);
        }
    }

    /// Puts on record whose stage a message took back to none.
    pub(super) fn tell_opened_again(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        for (companion, (from, cause)) in self.opened_again.clone() {
            self.make(Event::StageChanged { companion, from, to: Stage::None, cause }, world, out);
        }
    }

    /// Whether a statement is going to be made: somebody has the floor, was selected, or will be.
    pub(super) fn owes_statement(&self) -> bool {
        self.floor.is_some() || self.turn.is_some() || self.round.as_ref().is_some_and(Round::has_wishes)
    }

    /// An address counts when it is heard, once, however many it names. Gives the budget, if it is used up: whoever is addressed then declines
    /// this message by itself, and nothing else changes for them.
    fn refuse_address(
        &mut self,
        seq: Seq,
        message: &Message,
        said_at: Option<Moment>,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) -> Option<UsedUp> {
        let address = &message.address;
        if address.companions.is_empty() || message.from.role == Role::Companion {
            return None;
        }
        let now = self.clock;
        let begins_episode = self.begins_episode(now, world.rules);
        let is_heard = |(companion, gate): (&CompanionId, &Gate)| {
            let is_open = !gate.is_closed() || opens_again(companion, gate, message, begins_episode, world.rules).is_some();
            address.includes(companion) && !gate.paused && is_open
        };
        if is_too_late(now, self.when_said(said_at), true, &world.rules) || !self.gates.iter().any(is_heard) {
            return None;
        }
        self.use_address(seq, &PersonId::from(&*message.from.id), now, world, out)
    }

    /// Puts on record who declines an address over the budget.
    fn decline_address(&mut self, seq: Seq, used_up: UsedUp, world: &mut World<'_>, out: &mut Vec<Output>) {
        let declined_by = self.window.get(seq).map(|entry| entry.declined_by.clone()).unwrap_or_default();
        let used_up = UsedUp::last_of(world.no_more_statements(self.clock).into_iter().chain([used_up]));
        for companion in declined_by {
            let answered = Answered { used_up, ..Answered::default() };
            let mut record = self.decided(&companion, Trigger::DirectAddress, Decision::No, Reason::Budget, Seq::NONE, answered);
            record.messages = vec![seq];
            self.make(Event::Decided(record), world, out);
        }
    }

    /// What calls somebody wakes a channel, and was on record before anybody heard it here: it counts from when it was said, unless it counts
    /// already. What was said before it, and leads to the same question, does not count besides.
    pub(super) fn count_addresses_after_restart(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        let mut counted = BTreeSet::new();
        // Where one is refused, an earlier one may wait instead.
        while let Some(seq) = self.waiting_address(&counted) {
            counted.insert(seq);
            let Some(entry) = self.window.get(seq).filter(|entry| self.clock.since(entry.at) < MINUTE) else { continue };
            let (person, said_at) = (PersonId::from(&*entry.message.from.id), entry.at);
            if entry.message.from.role != Role::Companion
                && !world.ledger.knows_address(&person, world.channel, seq)
                && let Some(used_up) = self.use_address(seq, &person, said_at, world, out)
            {
                self.decline_address(seq, used_up, world, out);
            }
        }
    }

    fn waiting_address(&self, counted: &BTreeSet<Seq>) -> Option<Seq> {
        let waiting = self.gates.values().filter_map(|gate| gate.waiting);
        let addresses = waiting.filter(|waiting| waiting.trigger == Trigger::DirectAddress).map(|waiting| waiting.message);
        addresses.filter(|seq| !counted.contains(seq)).min()
    }

    /// Counts an address, or puts on record that it is over the budget, and gives that.
    fn use_address(
        &mut self,
        seq: Seq,
        person: &PersonId,
        at: Moment,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) -> Option<UsedUp> {
        let used_up = world.ledger.refuses_address(person, at, world.rules.gate);
        if used_up.is_some() {
            self.make(Event::AddressRefused { message: seq }, world, out);
        } else {
            let used = Use::Address { person, channel: world.channel, message: seq };
            world.ledger.count(used, at, world.rules.gate);
        }
        used_up
    }

    /// Goes on as far as the way is free: what is over is closed; then everyone's triggers, in the order of ids; then the summary.
    /// The back-offs of `over` are known to have come to their end; the others are looked at.
    pub(super) fn advance(
        &mut self,
        occasion: Occasion,
        mut over: Vec<CompanionId>,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        #[cfg(test)]
        poison::is_there(poison::GONE_ON, self);
        self.settle_silenced(world, out);
        self.close_round(occasion, world, out);
        self.give_up_words(occasion, world, out);
        self.begin_turn_at_once(world, out);
        if occasion.after_statement {
            self.assess_statement(world, out);
        }
        let speaker = self.spoken.as_ref().filter(|_| occasion.after_statement).map(|spoken| &spoken.companion);
        let left_out = speaker.filter(|speaker| self.gates.get(speaker).is_none_or(|gate| gate.waiting.is_none())).cloned();
        for companion in &self.gates.whose(Gate::lacks_interval) {
            self.draw_first_interval(companion, world, out);
        }
        self.note_back_offs_over(occasion, &mut over);
        over.sort();
        over.dedup();
        over.retain(|companion| self.gates.contains_key(companion));
        self.end_back_offs(&over, world, out);
        self.ask_who_waits(left_out, world, out);
        self.refresh_summary(world, out);
    }

    /// What waits is decided without a call, or asked, in the order of ids.
    fn ask_who_waits(&mut self, left_out: Option<CompanionId>, world: &mut World<'_>, out: &mut Vec<Output>) {
        let is_after_quiet = |(companion, gate): (&CompanionId, &Gate)| {
            let is_lull = gate.waiting.is_some_and(|waiting| waiting.trigger == Trigger::Lull);
            is_lull && self.is_ready(companion, gate, world)
        };
        if !self.is_busy() && self.gates.iter().any(is_after_quiet) {
            // Whose quiet is over at the same moment is asked together with it.
            self.fire_lulls(Due::Now, world, out);
        }
        let who_waits = self.gates.whose(|gate| gate.waiting.is_some());
        if who_waits.is_empty() {
            return;
        }
        // What is decided without a call settles at once, but whoever was called upon still was.
        let called = if self.holds_rounds() { self.called() } else { BTreeSet::new() };
        let mut asked = Vec::with_capacity(who_waits.len());
        for companion in who_waits {
            if let Some(waiting) = self.proceed(&companion, world, out) {
                asked.push((companion, waiting));
            }
        }
        if world.rules.asks_everyone && !asked.is_empty() {
            self.add_listeners(&mut asked, left_out.as_ref(), world);
        }
        self.ask(asked, &Attendance { left_out, called }, world, out);
    }

    pub(super) fn wake(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        #[cfg(test)]
        poison::is_there(poison::WOKEN, self);
        self.fire_lulls(Due::Now, world, out);
    }

    /// Time goes on: back-offs that were to end before this moment do, and lull timers that were due before it fire, however late that is
    /// noticed. What is due at the moment itself comes after what is heard at it.
    pub(super) fn advance_to(&mut self, at: Moment, world: &mut World<'_>, out: &mut Vec<Output>) {
        self.clock = self.clock.max(at);
        let now = self.clock;
        let over = self.gates.whose(|gate| gate.retry_at().is_some_and(|until| until < now));
        self.end_back_offs(&over, world, out);
        self.fire_lulls(Due::Before, world, out);
    }

    /// Fires the lull timers that are due.
    pub(super) fn fire_lulls(&mut self, due: Due, world: &mut World<'_>, out: &mut Vec<Output>) {
        let now = self.clock;
        let is_due = |lull_at: Moment| lull_at < now || lull_at == now && due == Due::Now;
        let companions = self.gates.whose(|gate| gate.lull_at.is_some_and(is_due));
        if !companions.is_empty() {
            self.make(Event::LullFired { companions }, world, out);
        }
    }

    /// A question was answered. An answer that nobody waits for is passed over.
    pub(super) fn conclude(
        &mut self,
        ticket: Ticket,
        vote: Vote,
        mut call: Option<Box<Call>>,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        let Some((companion, evaluation)) = self.asked(ticket) else { return };
        world.count_tokens(call.as_deref(), self.clock);
        // Words about what was taken back meanwhile are not kept.
        let why = vote.why.as_deref().filter(|_| !evaluation.is_spoilt).map(Into::into);
        if let Some(call) = call.as_mut().filter(|_| evaluation.is_spoilt) {
            call.answer = Arc::from("");
        }
        let mut answered = Answered { ticket: Some(ticket), why, call, ..Answered::default() };
        let reason = match vote.verdict {
            Verdict::Yes => Reason::ModelYes,
            Verdict::No => Reason::ModelNo,
            Verdict::Unreadable => Reason::Unreadable,
        };
        let vote = if vote.verdict == Verdict::Unreadable && evaluation.trigger == Trigger::DirectAddress {
            // Who is called by name answers, also where the side model is too weak to say so.
            Vote { verdict: Verdict::Yes, why: vote.why, importance: USUAL_IMPORTANCE, selected: true, closing: Stage::None }
        } else {
            vote
        };
        if self.is_awaited(&companion) {
            self.conclude_vote(&companion, &vote, reason, answered, world, out);
            return;
        }
        let upto = evaluation.upto;
        if vote.verdict == Verdict::Yes {
            answered.used_up = world.no_more_statements(self.clock);
        }
        match vote.verdict {
            Verdict::Yes if answered.used_up.is_some() => {
                self.decline(&companion, evaluation.trigger, Reason::Budget, upto, answered, world, out);
            }
            Verdict::Yes => {
                let candidate = Candidate { companion, trigger: evaluation.trigger, why: answered.why.clone() };
                self.agree(&candidate.companion, evaluation.trigger, reason, answered, world, out);
                self.take_floor(&candidate, world, out);
            }
            Verdict::No | Verdict::Unreadable => {
                self.decline(&companion, evaluation.trigger, reason, upto, answered, world, out);
            }
        }
    }

    pub(super) fn go_unanswered(&mut self, ticket: Ticket, error: Arc<str>, world: &mut World<'_>, out: &mut Vec<Output>) {
        let Some((companion, evaluation)) = self.asked(ticket) else { return };
        let last = self.gates[&companion].back_off.map(|back_off| back_off.pause);
        // One that is configured no more is about to leave. Until that is on record, nobody waits for it.
        let back_off = world.policies.get(&companion).map_or(LEAVING, |policy| policy.back_off(last));
        self.make(Event::Unanswered { companion, ticket, trigger: evaluation.trigger, error, back_off }, world, out);
    }

    pub(super) fn post(&mut self, ticket: Ticket, text: Arc<str>, out: &mut Vec<Output>) {
        if let Some(floor) = self.floor.as_mut().filter(|floor| floor.ticket == ticket && !floor.is_posting) {
            floor.is_posting = true;
            out.push(Output::Post(Box::new(Posting { companion: floor.companion.clone(), ticket, text })));
        }
    }

    pub(super) fn fail_reply(&mut self, ticket: Ticket, error: Arc<str>, world: &mut World<'_>, out: &mut Vec<Output>) {
        if let Some(floor) = self.floor.as_ref().filter(|floor| floor.ticket == ticket) {
            let (companion, trigger) = (floor.companion.clone(), floor.trigger);
            self.make(Event::ReplyFailed { companion, ticket, trigger, error }, world, out);
        }
    }

    pub(super) fn take_summary(&mut self, upto: Seq, text: Option<Arc<str>>, world: &mut World<'_>, out: &mut Vec<Output>) {
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

    /// What was heard too late is not answered. Whoever is being asked answers first: its question may be about what is not too late.
    fn settle_late(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        let now = self.clock;
        if self.window.entries().next_back().is_none_or(|entry| now.since(entry.at) <= world.rules.gate.stale_after()) {
            return;
        }
        let patience = world.rules.gate.stale_address_after();
        for companion in &self.gates.whose(|gate| !gate.is_silent() && !gate.is_engaged()) {
            self.settle_stale(companion, Some(patience), world, out);
        }
    }

    /// After a restart, what is too old is not answered; an address may be older than the rest.
    pub(super) fn settle_stale_after_restart(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        let patience = world.rules.gate.stale_address_after();
        for companion in self.gates.keys().cloned().collect::<Vec<_>>() {
            self.settle_stale(&companion, Some(patience), world, out);
        }
    }

    /// Puts an event on record and changes the state by it.
    pub(super) fn make(&mut self, event: Event, world: &mut World<'_>, out: &mut Vec<Output>) {
        let turn = self.turn_of(&event, world);
        let place = out.len();
        self.apply(self.clock, Seq::NONE, turn, &event, world, out);
        out.insert(place, Output::Made(Box::new(Made { handled: self.handled, turn, event })));
    }

    /// The buffer holds so many messages; before one more comes, the oldest settle.
    fn make_room(&mut self, message: &Message, is_refused: bool, world: &mut World<'_>, out: &mut Vec<Output>) {
        if self.window.len() < world.rules.gate.max_buffer {
            return;
        }
        let adds_nothing =
            |companion: &CompanionId| message.is_by(companion) || is_refused && message.address.includes(companion);
        let hearers: Vec<_> = self.gates.keys().filter(|companion| !adds_nothing(companion)).cloned().collect();
        self.settle_overflow(hearers, 1, world, out);
    }

    /// After a restart, more may have been accepted than a buffer holds.
    pub(super) fn settle_overflow_after_restart(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        self.settle_overflow(self.gates.keys().cloned().collect(), 0, world, out);
    }

    /// The oldest settle, until there is room for so many more.
    fn settle_overflow(&mut self, companions: Vec<CompanionId>, more: usize, world: &mut World<'_>, out: &mut Vec<Output>) {
        let most = world.rules.gate.max_buffer;
        for companion in companions {
            let gate = &self.gates[&companion];
            if gate.is_silent() || self.window.count_after(gate.cursor) + more <= most {
                continue;
            }
            let surplus = (self.window.buffer(&companion, gate.cursor).count() + more).saturating_sub(most);
            if let Some(upto) = surplus.checked_sub(1).and_then(|last| self.window.buffer(&companion, gate.cursor).nth(last)) {
                let upto = upto.seq;
                self.settle_unasked(&companion, Reason::Overflow, upto, world, out);
            }
        }
    }

    /// What a companion heard while it was paused or closed settles at once; one record for all who heard the same.
    fn settle_silenced(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        if !self.gates.values().any(Gate::is_silent) {
            return;
        }
        let mut by_rest: BTreeMap<(Vec<Seq>, Reason), Vec<CompanionId>> = BTreeMap::new();
        for (companion, gate) in self.gates.iter().filter(|(_, gate)| gate.is_silent()) {
            let rest: Vec<_> = self.window.buffer(companion, gate.cursor).map(|entry| entry.seq).collect();
            if !rest.is_empty() {
                let reason = if gate.paused { Reason::Paused } else { Reason::Closed };
                by_rest.entry((rest, reason)).or_default().push(companion.clone());
            }
        }
        for ((_, reason), companions) in by_rest {
            self.settle_rest(companions, reason, world, out);
        }
    }

    /// All that is unsettled for these companions, and the same for each of them, settles.
    pub(super) fn settle_rest(
        &mut self,
        companions: Vec<CompanionId>,
        reason: Reason,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        let trigger = self.trigger_of_rest(&companions[0], self.handled);
        let mut record = self.decided(&companions[0], trigger, Decision::No, reason, self.handled, Answered::default());
        record.companions = companions;
        self.make(Event::Decided(record), world, out);
    }

    /// Whoever has the floor owes a statement that answers all that is unsettled.
    pub(super) fn take_floor(&mut self, candidate: &Candidate, world: &mut World<'_>, out: &mut Vec<Output>) {
        let companion = &candidate.companion;
        let next_interjection_at = world.policies.get(companion).map(|policy| policy.interval(0, (world.jitter)()));
        let gate = &self.gates[companion];
        let is_external = gate.external;
        let owed = Event::ReplyOwed {
            ticket: Ticket(self.tickets.0 + 1),
            trigger: candidate.trigger,
            messages: self.unsettled(companion, gate, self.handled),
            upto: self.handled,
            next_interjection_at: next_interjection_at.or(gate.next_interjection_at).unwrap_or_default(),
            due_at: is_external.then(|| self.clock + world.rules.turn_taking.external_statement_timeout()),
            companion: companion.clone(),
        };
        self.make(owed, world, out);
        let is_about_nothing = self.floor.as_deref().filter(|floor| floor.messages.is_empty()).map(|floor| floor.ticket);
        if let Some(ticket) = is_about_nothing {
            self.fail_reply(ticket, DELETED.into(), world, out);
        }
    }

    /// A YES.
    pub(super) fn agree(
        &mut self,
        companion: &CompanionId,
        trigger: Trigger,
        reason: Reason,
        answered: Answered,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        let yes = self.decided(companion, trigger, Decision::Yes, reason, Seq::NONE, answered);
        self.make(Event::Decided(yes), world, out);
    }

    /// A NO, from a model or without one: what was considered settles, and the counters change as the trigger says.
    #[expect(clippy::too_many_arguments, reason = "each says one thing of the decision")]
    pub(super) fn decline(
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
        if let Some(policy) = world.policies.get(companion).filter(|_| !reason.leaves_counters_alone()) {
            record.next_interjection_at = match trigger {
                Trigger::DirectAddress => Some(policy.interval(0, (world.jitter)())),
                Trigger::Interjection => Some(gate.after_declining(policy.interval(gate.check_count + 1, (world.jitter)()))),
                Trigger::Lull | Trigger::Turn => None,
            };
        }
        self.make(Event::Decided(record), world, out);
    }

    /// A NO that leaves the counters alone.
    pub(super) fn settle_unasked(
        &mut self,
        companion: &CompanionId,
        reason: Reason,
        upto: Seq,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
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
        Decided {
            companions: vec![companion.clone()],
            trigger,
            decision,
            reason,
            ticket: answered.ticket,
            messages: self.unsettled(companion, gate, upto),
            upto,
            message_count: gate.message_counter,
            check_count: gate.check_count,
            threshold: gate.next_interjection_at,
            next_interjection_at: None,
            vote: answered.vote,
            used_up: answered.used_up,
            why: answered.why,
            call: answered.call,
        }
    }

    /// The numbers of what a companion has not settled, up to this one.
    pub(super) fn unsettled(&self, companion: &CompanionId, gate: &Gate, upto: Seq) -> Vec<Seq> {
        let after = self.window.after(gate.cursor);
        let mut unsettled = Vec::with_capacity(after.size_hint().0);
        for entry in after.take_while(|entry| entry.seq <= upto) {
            if entry.concerns_gate_of(companion) {
                unsettled.push(entry.seq);
            }
        }
        unsettled
    }

    /// What is decided without a trigger of its own counts as a lull, or as a turn when the newest of it is a statement.
    fn trigger_of_rest(&self, companion: &CompanionId, upto: Seq) -> Trigger {
        let rest = self.window.buffer(companion, self.gates[companion].cursor).take_while(|entry| entry.seq <= upto);
        match rest.last() {
            Some(newest) if newest.message.from.role == Role::Companion => Trigger::Turn,
            _ => Trigger::Lull,
        }
    }

    fn refresh_summary(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        let is_due = world.summary_after.is_some_and(|after| self.summary.behind >= after);
        // While no tokens may be used, or nothing can be said, it waits.
        if is_due && !self.summary.is_being_written && !world.is_unpostable && world.no_more_tokens(self.clock).is_none() {
            self.summary.is_being_written = true;
            out.push(Output::Summarise { after: self.summary.upto, upto: self.summary.counted });
        }
    }

    pub(super) fn asked(&self, ticket: Ticket) -> Option<(CompanionId, super::super::gate::Evaluation)> {
        self.gates.iter().find_map(|(companion, gate)| {
            let evaluation = gate.evaluation.filter(|evaluation| evaluation.ticket == ticket)?;
            Some((companion.clone(), evaluation))
        })
    }
}

/// What goes on record of an answer.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) ticket: Option<Ticket>,
    /// The budget that stands against it.
    pub(super) used_up: Option<UsedUp>,
    pub(super) vote: Option<State>,
    pub(super) why: Option<Arc<str>>,
    pub(super) call: Option<Box<Call>>,
}
