//! Decides which event a conversation journals next.

use super::super::budget::{MINUTE, Use, UsedUp};
use super::super::event::Decided;
use super::super::gate::Waiting;
use super::super::id::PersonId;
use super::super::message::{Message, Modality, Role};
use super::super::vote::USUAL_IMPORTANCE;
use super::asking::Attendance;
use super::ending::reopening_cause;
use super::inbound::is_too_late;
use super::replanning::Stops;
use super::*;

/// The error code of a reply that was not made because all messages that it would have answered were deleted.
pub const DELETED: &str = "deleted";

/// Which deadlines are due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Deadlines before this moment.
    Before,
    /// Deadlines at this moment, too.
    Now,
}

/// The back-off of a companion that is about to leave.
const LEAVING: Duration = Duration::from_secs(10);
/// The first back-off of a question about spoken words (docs/design/voice.md A-45).
const FIRST_SPOKEN_BACK_OFF: Duration = Duration::from_secs(1);

impl Conversation {
    /// Handles an inbound event. Events that were handled before are ignored.
    pub(super) fn handle_inbound(&mut self, recorded: Recorded, step: &mut Step<'_, '_>) {
        if recorded.seq <= self.handled && recorded.seq != Seq::NONE {
            return;
        }
        self.end_unwanted_reply(&recorded.event, step);
        let first = step.out.len();
        let heard = voice::call_event(&recorded);
        let (mut refused, mut is_late) = (None, false);
        let (mut when_said, mut stops) = (None, Stops::default());
        let changed = match &recorded.event {
            Event::Said { message, said_at, .. } if !message.is_backchannel() => {
                stops = self.stop_replies(recorded.seq, message, step);
                if !stops.are_all(message) {
                    refused = self.refuse_address(recorded.seq, message, *said_at, step);
                }
                self.settle_full_buffers(message, refused.is_some(), step);
                self.note_settled(&mut stops, recorded.seq, message);
                is_late = said_at.is_some();
                when_said = Some(self.when_said(*said_at));
                Vec::new()
            }
            Event::Edited { message, .. } => vec![*message],
            Event::Deleted { messages, .. } => messages.clone(),
            _ => Vec::new(),
        };
        let answers = self.turns.answers_to(&changed);
        count_statement(&recorded, step.world);
        let seq = recorded.seq;
        self.apply_inbound(recorded, step.world, &mut step.out);
        // A statement that was owed is made now, and must not count twice.
        step.world.ledger.promise_statements(step.world.channel, self.turns.expected_statements());
        // In the journal, the overflow comes before the message. In the outputs, the cancelled timers come first.
        step.out[first..].sort_by_key(|output| !matches!(output, Output::LullCancelled { .. }));
        if !self.opened_again.is_empty() {
            let cancelled = step.out[first..].partition_point(|output| matches!(output, Output::LullCancelled { .. }));
            let rest = step.out.split_off(first + cancelled);
            self.record_reopened(step);
            step.out.extend(rest);
        }
        if let Some(used_up) = refused {
            self.decline_address(seq, used_up, step);
        }
        if let Some(heard) = heard {
            self.handle_call_event(heard, step);
        }
        let said = self.window.get(seq).map(|entry| entry.message.clone());
        self.settle_backchannel(step);
        if let Some((message, said_at)) = said.zip(when_said) {
            if refused.is_none() {
                self.replan_for_message(seq, &message, said_at, step);
            }
            self.settle_stopped(stops, seq, &message, step);
        }
        self.replan_for_change(seq, &answers, step);
        if is_late {
            self.settle_late(step);
        }
    }

    /// Journals the companions whose stage a message set back to none.
    pub(super) fn record_reopened(&mut self, step: &mut Step<'_, '_>) {
        for (companion, (from, cause)) in self.opened_again.clone() {
            self.record(Event::StageChanged { companion, from, to: Stage::None, cause }, step);
        }
    }

    /// Counts an address, once, however many companions it names. Returns the budget if it is used up: then the addressed companions decline this
    /// message alone, and nothing else changes for them.
    fn refuse_address(
        &mut self,
        seq: Seq,
        message: &Message,
        said_at: Option<Moment>,
        step: &mut Step<'_, '_>,
    ) -> Option<UsedUp> {
        let address = &message.address;
        if address.companions.is_empty() || message.from.role == Role::Companion || message.is_event() {
            return None;
        }
        let now = self.clock;
        let begins_episode = self.begins_episode(now, step.world.rules);
        let receives_it = |(companion, gate): (&CompanionId, &Gate)| {
            let is_open =
                !gate.is_closed() || reopening_cause(companion, gate, message, begins_episode, step.world.rules).is_some();
            address.includes(companion) && !gate.paused && is_open
        };
        if is_too_late(now, self.when_said(said_at), true, &step.world.rules) || !self.gates.iter().any(receives_it) {
            return None;
        }
        self.use_address(seq, &PersonId::from(&*message.from.id), now, step)
    }

    /// Journals which companions decline an address over the budget.
    fn decline_address(&mut self, seq: Seq, used_up: UsedUp, step: &mut Step<'_, '_>) {
        let declined_by = self.window.get(seq).map(|entry| entry.declined_by.clone()).unwrap_or_default();
        let used_up = UsedUp::last_of(step.world.exhausted_statement_budget(self.clock).into_iter().chain([used_up]));
        // What a stop phrase ends has a decision of its own.
        let is_stopped = |companion: &CompanionId| self.gates.get(companion).is_some_and(|gate| gate.stopped_by == Some(seq));
        for companion in declined_by.iter().filter(|companion| !is_stopped(companion)).cloned().collect::<Vec<_>>() {
            let answered = AnswerRecord { used_up, ..AnswerRecord::default() };
            let mut record = self.decided(&companion, Trigger::DirectAddress, Decision::No, Reason::Budget, Seq::NONE, answered);
            record.messages = vec![seq];
            self.record(Event::Decided(record), step);
        }
    }

    /// Counts the addresses that wait after a restart. They were on record before the channel handled them, so each counts from the time when it was
    /// said, unless it is already counted. Earlier messages that lead to the same question do not count in addition.
    pub(super) fn count_addresses_after_restart(&mut self, step: &mut Step<'_, '_>) {
        let mut counted = BTreeSet::new();
        // If an address is refused, an earlier one may wait in its place.
        while let Some(seq) = self.waiting_address(&counted) {
            counted.insert(seq);
            let Some(entry) = self.window.get(seq).filter(|entry| self.clock.since(entry.at) < MINUTE) else { continue };
            let (person, said_at) = (PersonId::from(&*entry.message.from.id), entry.at);
            if entry.message.from.role != Role::Companion
                && !step.world.ledger.knows_address(&person, step.world.channel, seq)
                && let Some(used_up) = self.use_address(seq, &person, said_at, step)
            {
                self.decline_address(seq, used_up, step);
            }
        }
    }

    fn waiting_address(&self, counted: &BTreeSet<Seq>) -> Option<Seq> {
        let waiting = self.gates.values().filter_map(|gate| gate.waiting);
        let addresses = waiting.filter(|waiting| waiting.trigger == Trigger::DirectAddress).map(|waiting| waiting.message);
        addresses.filter(|seq| !counted.contains(seq)).min()
    }

    /// Counts an address. If it is over the budget, journals that and returns the budget.
    fn use_address(&mut self, seq: Seq, person: &PersonId, at: Moment, step: &mut Step<'_, '_>) -> Option<UsedUp> {
        let used_up = step.world.ledger.refuses_address(person, at, step.world.rules.gate);
        if used_up.is_some() {
            self.record(Event::AddressRefused { message: seq }, step);
        } else {
            let used = Use::Address { person, channel: step.world.channel, message: seq };
            step.world.ledger.count(used, at, step.world.rules.gate);
        }
        used_up
    }

    /// Continues as far as possible. First whatever has ended is closed. Then every companion's trigger is handled, in the order of ids. Then the
    /// summary is refreshed. The back-offs in `ended_back_offs` are known to have ended; the others are checked.
    pub(super) fn advance(&mut self, occasion: Occasion, mut ended_back_offs: Vec<CompanionId>, step: &mut Step<'_, '_>) {
        #[cfg(test)]
        poison::check_unsettled(self);
        self.settle_silenced(step);
        self.end_overdue_questions(occasion, step);
        self.close_rounds(occasion, step);
        self.fail_late_words(occasion, step);
        self.replan_due(occasion, step);
        self.expire_floor(occasion, step);
        self.begin_turn_at_once(step);
        if occasion.after_statement {
            self.assess_statement(step);
            // Companions that became terminal withdrew their States.
            self.close_rounds(occasion, step);
        }
        self.close_newcomers(step);
        self.answer_again(step);
        self.use_free_floor(step);
        let speaker = self.turns.posted.as_ref().filter(|_| occasion.after_statement).map(|spoken| &spoken.companion);
        let left_out = speaker.filter(|speaker| self.gates.get(speaker).is_none_or(|gate| gate.waiting.is_none())).cloned();
        for companion in &self.gates.companions_where(Gate::lacks_interval) {
            self.draw_first_interval(companion, step);
        }
        self.collect_ended_back_offs(occasion, &mut ended_back_offs);
        ended_back_offs.sort();
        ended_back_offs.dedup();
        ended_back_offs.retain(|companion| self.gates.contains_key(companion));
        self.end_back_offs(&ended_back_offs, step);
        self.acknowledge_events(step);
        self.ask_waiting(left_out, step);
        self.await_voice_lull(step);
        self.refresh_summary(step);
    }

    /// Decides waiting triggers without a call, or asks about them, in the order of ids.
    fn ask_waiting(&mut self, left_out: Option<CompanionId>, step: &mut Step<'_, '_>) {
        let is_ready_after_lull = |(companion, gate): (&CompanionId, &Gate)| {
            let is_lull = gate.waiting.is_some_and(|waiting| waiting.trigger == Trigger::Lull);
            is_lull && self.is_ready(companion, gate, step.world)
        };
        if !self.is_busy() && self.gates.iter().any(is_ready_after_lull) {
            // Companions whose lull ends at the same moment are asked together.
            self.fire_lulls(Due::Now, step);
        }
        let waiting_companions = self.gates.companions_where(|gate| gate.waiting.is_some());
        if waiting_companions.is_empty() {
            return;
        }
        // A decision without a call settles the messages at once. Who was called upon is therefore determined before.
        let called = if self.holds_rounds() { self.called() } else { BTreeSet::new() };
        let mut asked = Vec::with_capacity(waiting_companions.len());
        for companion in waiting_companions {
            if let Some(waiting) = self.proceed(&companion, step) {
                asked.push((companion, waiting));
            }
        }
        if step.world.rules.asks_everyone && !asked.is_empty() {
            self.add_listeners(&mut asked, left_out.as_ref(), step.world);
        }
        if !asked.is_empty() && !self.is_busy() {
            let is_retry = asked.iter().any(|(companion, _)| self.gates[companion].back_off.is_some());
            asked.extend(self.retry_addresses(is_retry, step));
            asked.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        self.ask(asked, &Attendance { left_out, called }, step);
    }

    /// Ends the back-offs of companions that were addressed, because others are about to be asked: nobody else should answer in their place. One whose
    /// model has failed for longer joins only others that are asked again, so that the room need not wait for it each time.
    fn retry_addresses(&mut self, is_retry: bool, step: &mut Step<'_, '_>) -> Vec<(CompanionId, Waiting)> {
        let (now, stale_after) = (self.clock, step.world.rules.gate.stale_after());
        // One that is too old by now settles when its back-off ends.
        let is_recent = |message: Seq| self.window.get(message).is_some_and(|entry| now.since(entry.at) <= stale_after);
        let is_address = |waiting: Waiting| waiting.trigger == Trigger::DirectAddress && is_recent(waiting.message);
        let addressed = self.gates.companions_where(|gate| {
            let joins = gate.back_off.is_some_and(|back_off| is_retry || back_off.pause <= MINUTE);
            joins && gate.is_backing_off() && gate.waiting.is_some_and(is_address)
        });
        self.end_back_offs(&addressed, step);
        let mut asked = Vec::new();
        for companion in addressed {
            let waiting = self.proceed(&companion, step);
            asked.extend(waiting.map(|waiting| (companion, waiting)));
        }
        asked
    }

    pub(super) fn wake(&mut self, step: &mut Step<'_, '_>) {
        self.advance_voice(Due::Now, step);
        self.fire_lulls(Due::Now, step);
        self.fire_silences(Due::Now, step);
        self.release_events(Due::Now, step);
    }

    /// Advances the time: ends the back-offs that were due before `at`, and fires the lull timers that were due before it, however late that is
    /// noticed. Deadlines at `at` itself come after the inbound events of that moment.
    pub(super) fn advance_to(&mut self, at: Moment, step: &mut Step<'_, '_>) {
        self.clock = self.clock.max(at);
        let now = self.clock;
        let ended_back_offs = self.gates.companions_where(|gate| gate.retry_at().is_some_and(|until| until < now));
        self.end_back_offs(&ended_back_offs, step);
        self.advance_voice(Due::Before, step);
        self.fire_lulls(Due::Before, step);
        self.fire_silences(Due::Before, step);
        self.release_events(Due::Before, step);
    }

    /// Fires the lull timers that are due.
    pub(super) fn fire_lulls(&mut self, due: Due, step: &mut Step<'_, '_>) {
        let now = self.clock;
        let is_due = |lull_at: Moment| lull_at < now || lull_at == now && due == Due::Now;
        let companions = self.gates.companions_where(|gate| gate.lull_at.is_some_and(is_due));
        if !companions.is_empty() && !self.hold_text_lulls() {
            self.record(Event::LullFired { companions }, step);
        }
    }

    /// A question was answered. An answer that nobody waits for is ignored.
    pub(super) fn on_answer(&mut self, ticket: Ticket, vote: Vote, mut call: Option<Box<Call>>, step: &mut Step<'_, '_>) {
        let Some((companion, evaluation)) = self.question(ticket) else { return };
        step.world.count_tokens(call.as_deref(), self.clock);
        // Words about a message that was deleted in the meantime are not stored.
        let why = vote.why.as_deref().filter(|_| !evaluation.is_spoilt).map(Into::into);
        if let Some(call) = call.as_mut().filter(|_| evaluation.is_spoilt) {
            call.answer = Arc::from("");
        }
        let answered = AnswerRecord { ticket: Some(ticket), why, mood: vote.mood, call, ..AnswerRecord::default() };
        let reason = match vote.verdict {
            Verdict::Yes => Reason::ModelYes,
            Verdict::No => Reason::ModelNo,
            Verdict::Unreadable => Reason::Unreadable,
        };
        let vote = if vote.verdict == Verdict::Unreadable && evaluation.trigger == Trigger::DirectAddress {
            // Who is called by name answers, also where the side model is too weak to say so.
            Vote { verdict: Verdict::Yes, importance: USUAL_IMPORTANCE, selected: true, closing: Stage::None, ..vote }
        } else {
            vote
        };
        if self.turns.round_awaiting(&companion).is_some() {
            self.conclude_vote(&companion, &vote, reason, answered, step);
            return;
        }
        self.conclude_alone(companion, &evaluation, &vote, reason, answered, step);
    }

    pub(super) fn on_unanswered(&mut self, ticket: Ticket, error: Arc<str>, step: &mut Step<'_, '_>) {
        let Some((companion, evaluation)) = self.question(ticket) else { return };
        let last = self.gates[&companion].back_off.map(|back_off| back_off.pause);
        // A companion without configuration is about to leave. Until that is on record, nobody waits for it.
        let first = if self.is_spoken(evaluation.message) { Some(FIRST_SPOKEN_BACK_OFF) } else { None };
        let back_off = step.world.policies.get(&companion).map_or(LEAVING, |policy| match first.filter(|_| last.is_none()) {
            Some(first) => first,
            None => policy.back_off(last),
        });
        self.record(Event::Unanswered { companion, ticket, trigger: evaluation.trigger, error, back_off }, step);
    }

    /// Ends questions about spoken words that were not answered in time. Those of a round end with it.
    pub(super) fn end_overdue_questions(&mut self, occasion: Occasion, step: &mut Step<'_, '_>) {
        let is_overdue = |gate: &Gate| {
            let due_at = gate.evaluation.and_then(|evaluation| evaluation.due_at);
            due_at.is_some_and(|due_at| self.is_due(due_at, occasion))
        };
        for companion in self.gates.companions_where(is_overdue) {
            let Some(ticket) = self.gates[&companion].evaluation.map(|evaluation| evaluation.ticket) else { continue };
            self.on_unanswered(ticket, "timeout".into(), step);
            step.out.push(Output::Cancel { ticket });
        }
    }

    pub(super) fn fail_reply(&mut self, ticket: Ticket, error: Arc<str>, step: &mut Step<'_, '_>) {
        if let Some(floor) = self.turns.owed_reply(ticket) {
            let (companion, trigger) = (floor.companion.clone(), floor.trigger);
            self.record(Event::ReplyFailed { companion, ticket, trigger, error }, step);
        }
    }

    pub(super) fn accept_summary(&mut self, upto: Seq, messages: u64, text: Option<Arc<str>>, step: &mut Step<'_, '_>) {
        // If a message was deleted in the meantime, the summary of the rest is requested again.
        let is_usable = self.summary.end(text.is_some(), step.world.summary);
        if let Some(text) = text.filter(|_| is_usable) {
            self.record(Event::Summarised { upto, text, messages }, step);
        }
    }

    /// Settles messages that arrived too late to be answered. A companion that is being asked answers first: its question may be about a message that
    /// is not too late.
    fn settle_late(&mut self, step: &mut Step<'_, '_>) {
        let now = self.clock;
        if self.window.entries().next_back().is_none_or(|entry| now.since(entry.at) <= step.world.rules.gate.stale_after()) {
            return;
        }
        let patience = step.world.rules.gate.stale_address_after();
        for companion in &self.gates.companions_where(|gate| !gate.is_silent() && !gate.is_engaged()) {
            self.settle_stale(companion, Some(patience), step);
        }
    }

    /// After a restart, settles messages that are too old to be answered. Addresses may be older than the rest.
    pub(super) fn settle_stale_after_restart(&mut self, step: &mut Step<'_, '_>) {
        let patience = step.world.rules.gate.stale_address_after();
        for companion in self.gates.keys().cloned().collect::<Vec<_>>() {
            self.settle_stale(&companion, Some(patience), step);
        }
    }

    /// Journals an event and applies it.
    pub(super) fn record(&mut self, event: Event, step: &mut Step<'_, '_>) {
        let turn = self.turn_of(&event, step.world);
        let index = step.out.len();
        self.apply(self.clock, Seq::NONE, turn, &event, step.world, &mut step.out);
        step.out.insert(index, Output::Made(Box::new(Made { handled: self.handled, turn, event })));
    }

    /// Settles the oldest messages of full buffers before one more message arrives.
    fn settle_full_buffers(&mut self, message: &Message, is_refused: bool, step: &mut Step<'_, '_>) {
        if self.window.len() < step.world.rules.gate.max_buffer {
            return;
        }
        let adds_nothing =
            |companion: &CompanionId| message.is_by(companion) || is_refused && message.address.includes(companion);
        let receivers: Vec<_> = self.gates.keys().filter(|companion| !adds_nothing(companion)).cloned().collect();
        self.settle_overflow(receivers, 1, step);
    }

    /// After a restart, settles the oldest messages of buffers that exceed their size: more may have been accepted than a buffer holds.
    pub(super) fn settle_overflow_after_restart(&mut self, step: &mut Step<'_, '_>) {
        self.settle_overflow(self.gates.keys().cloned().collect(), 0, step);
    }

    /// Settles the oldest messages, until there is room for `more`.
    fn settle_overflow(&mut self, companions: Vec<CompanionId>, more: usize, step: &mut Step<'_, '_>) {
        let most = step.world.rules.gate.max_buffer;
        for companion in companions {
            let gate = &self.gates[&companion];
            if gate.is_silent() || self.window.count_after(gate.cursor) + more <= most {
                continue;
            }
            let surplus = (self.window.buffer(&companion, gate.cursor).count() + more).saturating_sub(most);
            if let Some(upto) = surplus.checked_sub(1).and_then(|last| self.window.buffer(&companion, gate.cursor).nth(last)) {
                let upto = upto.seq;
                self.settle_unasked(&companion, Reason::Overflow, upto, step);
            }
        }
    }

    /// Settles at once what companions receive while they are paused or closed, with one record for all that received the same.
    fn settle_silenced(&mut self, step: &mut Step<'_, '_>) {
        if !self.gates.values().any(Gate::is_silent) {
            return;
        }
        let mut by_messages: BTreeMap<(Vec<Seq>, Reason, bool), Vec<CompanionId>> = BTreeMap::new();
        for (companion, gate) in self.gates.iter().filter(|(_, gate)| gate.is_silent()) {
            let messages: Vec<_> = self.window.buffer(companion, gate.cursor).map(|entry| entry.seq).collect();
            if !messages.is_empty() {
                let reason = if gate.paused { Reason::Paused } else { Reason::Closed };
                by_messages.entry((messages, reason, gate.owes_acknowledgement())).or_default().push(companion.clone());
            }
        }
        for ((_, reason, _), companions) in by_messages {
            self.settle_all(companions, reason, step);
        }
    }

    /// Settles all unsettled messages of these companions, which must be the same for each of them.
    pub(super) fn settle_all(&mut self, companions: Vec<CompanionId>, reason: Reason, step: &mut Step<'_, '_>) {
        let trigger = self.trigger_without_question(&companions[0], self.handled);
        let mut record = self.decided(&companions[0], trigger, Decision::No, reason, self.handled, AnswerRecord::default());
        record.companions = companions;
        self.record(Event::Decided(record), step);
    }

    /// Gives the floor to a candidate, which then owes a statement that answers all its unsettled messages.
    pub(super) fn give_floor(&mut self, candidate: &Candidate, step: &mut Step<'_, '_>) {
        let messages = self.unsettled(&candidate.companion, &self.gates[&candidate.companion], self.handled);
        self.owe_reply(candidate, messages, None, step);
    }

    /// Gives the floor to a candidate, which then owes a statement that answers these messages, in the place of `again` if that is given.
    pub(super) fn owe_reply(&mut self, candidate: &Candidate, messages: Vec<Seq>, again: Option<Seq>, step: &mut Step<'_, '_>) {
        let companion = &candidate.companion;
        let next_interjection_at = step.world.policies.get(companion).map(|policy| policy.interval(0, (step.world.jitter)()));
        let gate = &self.gates[companion];
        let is_external = gate.external;
        let answered = candidate.message.or_else(|| self.newest_event(&messages));
        let modality = if is_external { Modality::Text } else { self.modality_of_reply(answered, step.world) };
        // A spoken reply has deadlines of its own, and nobody else could use the floor of a companion that is alone.
        let may_expire = !is_external && self.holds_rounds() && modality.is_text();
        let owed = Event::ReplyOwed {
            ticket: Ticket(self.tickets.0 + 1),
            trigger: candidate.trigger,
            messages,
            upto: self.handled,
            next_interjection_at: next_interjection_at.or(gate.next_interjection_at).unwrap_or_default(),
            due_at: is_external.then(|| self.clock + step.world.rules.turn_taking.external_statement_timeout()),
            expires_at: may_expire.then(|| self.clock + step.world.rules.turn_taking.floor_timeout()),
            is_farewell: candidate.is_farewell,
            is_unjudged: step.world.policies.get(companion).is_some_and(|policy| !policy.repetition),
            message: candidate.message,
            modality,
            again,
            companion: companion.clone(),
        };
        self.record(owed, step);
        // A long silence is about no message.
        let is_empty = |floor: &OwedReply| floor.messages.is_empty() && floor.trigger != Trigger::Silence;
        let has_no_messages = self.turns.floor.as_deref().is_some_and(is_empty);
        // The budget of the others was checked with their votes.
        let is_over_budget = again.is_some() && step.world.exhausted_statement_budget(self.clock).is_some();
        if has_no_messages || is_over_budget {
            let error = if has_no_messages { DELETED } else { Reason::Budget.as_str() };
            self.fail_reply(self.tickets, error.into(), step);
        } else {
            self.begin_statement(companion, step);
            let is_called = candidate.trigger == Trigger::DirectAddress;
            self.begin_aloud(if is_called { Duration::ZERO } else { step.world.rules.voice.turn_delay() }, step);
        }
    }

    /// Journals a YES.
    pub(super) fn agree(
        &mut self,
        companion: &CompanionId,
        trigger: Trigger,
        reason: Reason,
        answered: AnswerRecord,
        step: &mut Step<'_, '_>,
    ) {
        let yes = self.decided(companion, trigger, Decision::Yes, reason, Seq::NONE, answered);
        self.record(Event::Decided(yes), step);
    }

    /// Journals a NO, from a model or without one. The considered messages settle, and the counters change by the trigger.
    pub(super) fn decline(
        &mut self,
        companion: &CompanionId,
        trigger: Trigger,
        reason: Reason,
        upto: Seq,
        answered: AnswerRecord,
        step: &mut Step<'_, '_>,
    ) {
        let mut record = self.decided(companion, trigger, Decision::No, reason, upto, answered);
        let gate = &self.gates[companion];
        if let Some(policy) = step.world.policies.get(companion).filter(|_| !reason.leaves_counters_alone()) {
            record.next_interjection_at = match trigger {
                Trigger::DirectAddress => Some(policy.interval(0, (step.world.jitter)())),
                Trigger::Interjection => Some(gate.after_declining(policy.interval(gate.check_count + 1, (step.world.jitter)()))),
                Trigger::Silence | Trigger::Lull | Trigger::Turn | Trigger::Event => None,
            };
        }
        self.record(Event::Decided(record), step);
    }

    /// Journals a NO that leaves the counters alone.
    pub(super) fn settle_unasked(&mut self, companion: &CompanionId, reason: Reason, upto: Seq, step: &mut Step<'_, '_>) {
        let trigger = self.trigger_without_question(companion, upto);
        let record = self.decided(companion, trigger, Decision::No, reason, upto, AnswerRecord::default());
        self.record(Event::Decided(record), step);
    }

    pub(super) fn decided(
        &self,
        companion: &CompanionId,
        trigger: Trigger,
        decision: Decision,
        reason: Reason,
        upto: Seq,
        answered: AnswerRecord,
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
            speak_at: None,
            vote: answered.vote,
            mood: answered.mood,
            used_up: answered.used_up,
            why: answered.why,
            call: answered.call,
            trace: None,
        }
    }

    /// The numbers of a companion's unsettled messages, up to `upto`.
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

    /// The trigger of a decision that no trigger led to: an event that must be acknowledged, else a turn if the newest message is a statement, else a lull.
    fn trigger_without_question(&self, companion: &CompanionId, upto: Seq) -> Trigger {
        let gate = &self.gates[companion];
        if gate.owes_acknowledgement() && gate.waiting.is_some_and(|waiting| waiting.message <= upto) {
            return Trigger::Event;
        }
        let messages = self.window.buffer(companion, gate.cursor).take_while(|entry| entry.seq <= upto);
        match messages.last() {
            Some(newest) if newest.message.from.role == Role::Companion => Trigger::Turn,
            _ => Trigger::Lull,
        }
    }

    fn refresh_summary(&mut self, step: &mut Step<'_, '_>) {
        let due = step.world.summary.and_then(|limits| self.summary.due(limits));
        // It waits while no tokens may be used, or nothing can be posted.
        if let Some((after, upto)) = due.filter(|_| !step.world.is_unpostable)
            && step.world.exhausted_token_budget(self.clock).is_none()
        {
            self.summary.begin();
            step.out.push(Output::Summarise { after, upto });
        }
    }

    pub(super) fn question(&self, ticket: Ticket) -> Option<(CompanionId, super::super::gate::Evaluation)> {
        self.gates.iter().find_map(|(companion, gate)| {
            let evaluation = gate.evaluation.filter(|evaluation| evaluation.ticket == ticket)?;
            Some((companion.clone(), evaluation))
        })
    }
}

/// The parts of an answer that are journaled.
#[derive(Default)]
pub(super) struct AnswerRecord {
    pub(super) ticket: Option<Ticket>,
    /// The used-up budget that refuses it.
    pub(super) used_up: Option<UsedUp>,
    pub(super) vote: Option<State>,
    pub(super) mood: f64,
    pub(super) why: Option<Arc<str>>,
    pub(super) call: Option<Box<Call>>,
}
