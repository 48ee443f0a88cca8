//! Decides which event a conversation journals next.

use super::super::budget::{MINUTE, Use, UsedUp};
use super::super::event::{Decided, Failure};
use super::super::filter::FILTERED;
use super::super::gate::{Evaluation, Waiting};
use super::super::id::PersonId;
use super::super::message::{Message, Modality, Role};
use super::super::relevance::Estimate;
use super::super::trigger::Counters;
use super::super::vote::USUAL_IMPORTANCE;
use super::again::Again;
use super::asking::Attendance;
use super::ending::reopening_cause;
use super::inbound::is_too_late;
use super::replanning::Stops;
use super::step::Due;
use super::*;

/// The error code of a reply that was not made because all messages that it would have answered were deleted.
pub const DELETED: &str = "deleted";

/// The back-off of a companion without configuration, which is about to leave.
const LEAVING: Duration = Duration::from_secs(10);
/// The first back-off of a question about spoken words (docs/design/voice.md A-45).
const FIRST_SPOKEN_BACK_OFF: Duration = Duration::from_secs(1);

impl Conversation {
    /// The trigger of a decision without a question: an event if the companion must acknowledge one, a turn if the newest message is a statement,
    /// otherwise a lull.
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
}

impl Step<'_, '_> {
    /// Handles an inbound event. Events that were handled before are ignored.
    pub(super) fn handle_inbound(&mut self, recorded: Recorded) {
        if recorded.seq <= self.state.position.handled && recorded.seq != Seq::NONE {
            return;
        }
        self.end_unwanted_reply(&recorded.event);
        if let Event::Chosen { by: Some(person), .. } = &recorded.event {
            // A choice counts as an address. The caller refuses one over the budget.
            let used = Use::Address { person, channel: self.world.channel, message: recorded.seq };
            self.world.ledger.count(used, recorded.at, self.world.rules.gate);
        }
        let first = self.out.len();
        let heard = voice::call_event(&recorded);
        let (mut refused, mut is_late) = (None, false);
        let (mut when_said, mut stops) = (None, Stops::default());
        #[expect(clippy::wildcard_enum_match_arm, reason = "the other events change no message")]
        let changed = match &recorded.event {
            Event::Said { message, said_at, .. } if !message.passes_no_row() => {
                stops = self.stop_replies(recorded.seq, message);
                if !stops.are_all(message) {
                    refused = self.refuse_address(recorded.seq, message, *said_at);
                }
                self.settle_full_buffers(message, refused.is_some());
                self.note_settled(&mut stops, recorded.seq, message);
                is_late = said_at.is_some();
                when_said = Some(self.state.when_said(*said_at));
                Vec::new()
            }
            Event::Edited { message, .. } => vec![*message],
            Event::Deleted { messages, .. } => messages.clone(),
            _ => Vec::new(),
        };
        let answers = self.state.turns.answers_to(&changed);
        let ledger = &self.world.ledger;
        let is_counted = self.catches_up && ledger.knows_statement(self.world.channel, recorded.seq, recorded.at);
        if !is_counted {
            count_statement(&recorded, self.world);
        }
        let seq = recorded.seq;
        self.state.apply_inbound(recorded, self.world, &mut self.out);
        // The owed statement was made, and must not count twice.
        self.world.ledger.promise_statements(self.world.channel, self.state.turns.expected_statements());
        // In the journal, the overflow precedes the message. In the outputs, the cancelled timers come first.
        self.out[first..].sort_by_key(|output| !matches!(output, Output::LullCancelled { .. }));
        if !self.state.closing.opened_again.is_empty() {
            let cancelled = self.out[first..].partition_point(|output| matches!(output, Output::LullCancelled { .. }));
            let rest = self.out.split_off(first + cancelled);
            self.record_reopened();
            self.out.extend(rest);
        }
        if let Some(used_up) = refused {
            self.decline_address(seq, used_up);
        }
        // After a restart, the live state of the call starts only after all journaled events were handled.
        if let Some(heard) = heard.filter(|_| !self.catches_up) {
            self.handle_call_event(heard);
        }
        let said = self.state.window.get(seq).map(|entry| entry.message.clone());
        self.settle_backchannel();
        if let Some((message, said_at)) = said.zip(when_said) {
            if refused.is_none() {
                self.replan_for_message(seq, &message, said_at);
            }
            self.settle_stopped(stops, seq, &message);
            self.note_remember_request(seq, &message, said_at);
        }
        self.replan_for_change(seq, &answers);
        if is_late {
            self.settle_late();
        }
    }

    /// Journals the reset of the closing stages that a message caused.
    pub(super) fn record_reopened(&mut self) {
        for (companion, (from, cause)) in self.state.closing.opened_again.clone() {
            self.record(Event::StageChanged { companion, from, to: Stage::None, cause });
        }
    }

    /// Counts an address once, however many companions it names. Returns the budget if it is used up. Then the addressed companions decline only this
    /// message, and it changes nothing else for them.
    fn refuse_address(&mut self, seq: Seq, message: &Message, said_at: Option<Moment>) -> Option<UsedUp> {
        let address = &message.address;
        // A message that was redacted before it was handled has no known author.
        let is_counted = !address.companions.is_empty() && message.from.role != Role::Companion && !message.from.id.is_empty();
        if !is_counted || message.is_event() {
            return None;
        }
        let now = self.state.position.clock;
        let begins_episode = self.state.closing.begins_episode(now, self.world.rules);
        let receives_it = |(companion, gate): (&CompanionId, &Gate)| {
            let is_open =
                !gate.is_closed() || reopening_cause(companion, gate, message, begins_episode, self.world.rules).is_some();
            address.includes(companion) && !gate.paused && is_open
        };
        if is_too_late(now, self.state.when_said(said_at), true, &self.world.rules) || !self.state.gates.iter().any(receives_it) {
            return None;
        }
        self.use_address(seq, &PersonId::from(&*message.from.id), now)
    }

    /// Journals which companions decline an address over the budget.
    fn decline_address(&mut self, seq: Seq, used_up: UsedUp) {
        let declined_by = self.state.window.get(seq).map(|entry| entry.declined_by.clone()).unwrap_or_default();
        let used_up =
            UsedUp::last_of(self.world.exhausted_statement_budget(self.state.position.clock).into_iter().chain([used_up]));
        // Companions that a stop phrase concerns have a decision of their own.
        let is_stopped =
            |companion: &CompanionId| self.state.gates.get(companion).is_some_and(|gate| gate.cancelled.contains(&seq));
        for companion in declined_by.iter().filter(|companion| !is_stopped(companion)).cloned().collect::<Vec<_>>() {
            let answered = AnswerRecord { used_up, ..AnswerRecord::default() };
            let mut record = self.decided(&companion, Trigger::DirectAddress, Decision::No, Reason::Budget, Seq::NONE, answered);
            record.messages = vec![seq];
            self.record(Event::Decided(record));
        }
    }

    /// Counts an address, unless it was counted before a restart. If it is over the budget, journals that and returns the budget.
    fn use_address(&mut self, seq: Seq, person: &PersonId, at: Moment) -> Option<UsedUp> {
        if self.catches_up && self.world.ledger.knows_address(person, self.world.channel, seq) {
            return None;
        }
        let used_up = self.world.ledger.refuses_address(person, at, self.world.rules.gate);
        if used_up.is_some() {
            self.record(Event::AddressRefused { message: seq });
        } else {
            let used = Use::Address { person, channel: self.world.channel, message: seq };
            self.world.ledger.count(used, at, self.world.rules.gate);
        }
        used_up
    }

    /// Decides waiting triggers without a call or asks about them, in the order of ids.
    pub(super) fn ask_waiting(&mut self, left_out: Option<CompanionId>) {
        let is_ready_after_lull = |(companion, gate): (&CompanionId, &Gate)| {
            let is_lull = gate.waiting.is_some_and(|waiting| waiting.trigger == Trigger::Lull);
            is_lull && self.is_ready(companion, gate)
        };
        if !self.state.is_busy() && self.state.gates.iter().any(is_ready_after_lull) {
            // Companions whose lull ends at the same moment are asked together.
            self.fire_lulls(Due::Now);
        }
        let waiting_companions = self.state.gates.companions_where(|gate| gate.waiting.is_some());
        if waiting_companions.is_empty() {
            return;
        }
        // A decision without a call settles the messages at once. The called companions are therefore determined before.
        let called = if self.state.gates.holds_rounds() { self.state.called() } else { BTreeSet::new() };
        let mut asked = Vec::with_capacity(waiting_companions.len());
        for companion in waiting_companions {
            if let Some(waiting) = self.proceed(&companion) {
                asked.push((companion, waiting));
            }
        }
        if !asked.is_empty() && !self.state.is_busy() {
            let is_retry = asked.iter().any(|(companion, _)| self.state.gates[companion].back_off.is_some());
            asked.extend(self.retry_addresses(is_retry));
            asked.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        self.ask(asked, &Attendance { left_out, called });
    }

    /// Ends the back-offs of addressed companions when others are about to be asked, so that no other companion answers in their place. A companion
    /// whose back-off is longer than a minute joins only others that are asked again. So the room need not wait for it each time.
    fn retry_addresses(&mut self, is_retry: bool) -> Vec<(CompanionId, Waiting)> {
        let (now, stale_after) = (self.state.position.clock, self.world.rules.gate.stale_after());
        // An address that is too old by now settles when the back-off ends.
        let is_recent = |message: Seq| self.state.window.get(message).is_some_and(|entry| now.since(entry.at) <= stale_after);
        let is_address = |waiting: Waiting| waiting.trigger == Trigger::DirectAddress && is_recent(waiting.message);
        let addressed = self.state.gates.companions_where(|gate| {
            let joins = gate.back_off.is_some_and(|back_off| is_retry || back_off.pause <= MINUTE);
            joins && gate.is_backing_off() && gate.waiting.is_some_and(is_address)
        });
        self.end_back_offs(&addressed);
        let mut asked = Vec::new();
        for companion in addressed {
            let waiting = self.proceed(&companion);
            asked.extend(waiting.map(|waiting| (companion, waiting)));
        }
        asked
    }

    /// Fires the lull timers that are due.
    pub(super) fn fire_lulls(&mut self, due: Due) {
        let now = self.state.position.clock;
        let is_due = |at: Moment| at < now || at == now && due == Due::Now;
        let mut companions = self.state.gates.companions_where(|gate| gate.lull_at.is_some_and(is_due));
        if !companions.is_empty() && self.state.voice.hold_text_lulls() {
            companions = self.state.gates.companions_where(|gate| gate.lull_at.is_some_and(|at| is_due(at + TEXT_LULL_HELD)));
        }
        if !companions.is_empty() {
            self.record(Event::LullFired { companions });
        }
    }

    /// Handles the answer to a question. Ignores it if the question is not in flight any more.
    pub(super) fn on_answer(&mut self, ticket: Ticket, vote: Vote, mut call: Option<Box<Call>>) {
        let Some((companion, evaluation)) = self.state.gates.question(ticket) else { return };
        self.world.count_tokens(call.as_deref(), self.state.position.clock);
        // Text about a message that was deleted in the meantime is not stored.
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
            // An addressed companion answers, even if its side model is too weak to give a readable answer.
            Vote { verdict: Verdict::Yes, importance: USUAL_IMPORTANCE, selected: true, closing: Stage::None, ..vote }
        } else {
            vote
        };
        self.conclude(companion, &evaluation, &vote, reason, answered);
    }

    pub(super) fn conclude(
        &mut self,
        companion: CompanionId,
        evaluation: &Evaluation,
        vote: &Vote,
        reason: Reason,
        mut answered: AnswerRecord,
    ) {
        answered.at_risk = answered.at_risk.or_else(|| self.at_risk(&companion, evaluation, Some(vote)));
        let no = Vote::no(None);
        let (vote, reason) = if answered.at_risk.is_some() {
            // The reason given by the model is not stored.
            answered.why = None;
            (&no, Reason::Risk)
        } else {
            (vote, reason)
        };
        if self.state.turns.round_awaiting(&companion).is_some() {
            self.conclude_vote(&companion, vote, reason, answered);
        } else {
            self.conclude_alone(companion, evaluation, vote, reason, answered);
        }
    }

    pub(super) fn on_unanswered(&mut self, ticket: Ticket, error: Arc<str>) {
        let Some((companion, evaluation)) = self.state.gates.question(ticket) else { return };
        let answered = AnswerRecord { ticket: Some(ticket), ..AnswerRecord::default() };
        let at_risk = self.at_risk(&companion, &evaluation, None);
        if at_risk.is_some() {
            return self.conclude(companion, &evaluation, &Vote::no(None), Reason::Risk, AnswerRecord { at_risk, ..answered });
        }
        if &*error == FILTERED {
            // The filter would refuse the same prompt again.
            return self.conclude(companion, &evaluation, &Vote::no(None), Reason::Filtered, answered);
        }
        let last = self.state.gates[&companion].back_off.map(|back_off| back_off.pause);
        // A companion without configuration is about to leave. Until it has left, others do not wait for it.
        let first = if self.state.window.is_spoken(evaluation.message) { Some(FIRST_SPOKEN_BACK_OFF) } else { None };
        let back_off = self.world.policies.get(&companion).map_or(LEAVING, |policy| match first.filter(|_| last.is_none()) {
            Some(first) => first,
            None => policy.back_off(last),
        });
        self.record(Event::Unanswered { companion, ticket, trigger: evaluation.trigger, error, back_off });
    }

    /// Ends overdue questions about transcribed speech. The questions of a round end with the round.
    pub(super) fn end_overdue_questions(&mut self) {
        let is_overdue = |gate: &Gate| {
            let due_at = gate.evaluation.and_then(|evaluation| evaluation.due_at);
            due_at.is_some_and(|due_at| self.is_due(due_at))
        };
        for companion in self.state.gates.companions_where(is_overdue) {
            let Some(ticket) = self.state.gates[&companion].evaluation.map(|evaluation| evaluation.ticket) else { continue };
            self.on_unanswered(ticket, "timeout".into());
            self.out.push(Output::Cancel { ticket });
        }
    }

    pub(super) fn fail_reply(&mut self, ticket: Ticket, error: Failure) {
        if let Some(floor) = self.state.turns.owed_reply(ticket) {
            let (companion, trigger) = (floor.companion.clone(), floor.trigger);
            let Failure { code: error, category } = error;
            self.record(Event::ReplyFailed { companion, ticket, trigger, error, category });
        }
    }

    pub(super) fn accept_summary(&mut self, upto: Seq, messages: u64, text: Option<Arc<str>>) {
        // If a covered message was deleted in the meantime, the summary of the remaining messages is requested again.
        let is_usable = self.state.summary.end(text.is_some(), self.world.summary);
        if let Some(text) = text.filter(|_| is_usable) {
            self.record(Event::Summarised { upto, text, messages });
        }
    }

    /// Settles messages that arrived too late to be answered. A companion with a question in flight answers first, because its question may be about
    /// a message that is not too late.
    fn settle_late(&mut self) {
        let now = self.state.position.clock;
        if self.state.window.entries().next_back().is_none_or(|entry| now.since(entry.at) <= self.world.rules.gate.stale_after())
        {
            return;
        }
        let patience = self.world.rules.gate.stale_address_after();
        for companion in &self.state.gates.companions_where(|gate| !gate.is_silent() && !gate.is_engaged()) {
            self.settle_stale(companion, Some(patience));
        }
    }

    /// Settles messages that became too old while no process ran. Addresses have a longer limit.
    pub(super) fn settle_what_became_stale(&mut self) {
        let patience = self.world.rules.gate.stale_address_after();
        for companion in self.state.gates.keys().cloned().collect::<Vec<_>>() {
            self.settle_stale(&companion, Some(patience));
        }
    }

    /// Settles the oldest messages of full buffers before one more message arrives.
    fn settle_full_buffers(&mut self, message: &Message, is_refused: bool) {
        if self.state.window.len() < self.world.rules.gate.max_buffer {
            return;
        }
        let adds_nothing =
            |companion: &CompanionId| message.is_by(companion) || is_refused && message.address.includes(companion);
        let receivers: Vec<_> = self.state.gates.keys().filter(|companion| !adds_nothing(companion)).cloned().collect();
        self.settle_overflow(receivers, 1);
    }

    /// Settles the oldest messages of these companions, until there is room for `more`.
    fn settle_overflow(&mut self, companions: Vec<CompanionId>, more: usize) {
        let most = self.world.rules.gate.max_buffer;
        for companion in companions {
            let gate = &self.state.gates[&companion];
            if gate.is_silent() || self.state.window.count_after(gate.cursor) + more <= most {
                continue;
            }
            let surplus = (self.state.window.buffer(&companion, gate.cursor).count() + more).saturating_sub(most);
            if let Some(upto) =
                surplus.checked_sub(1).and_then(|last| self.state.window.buffer(&companion, gate.cursor).nth(last))
            {
                let upto = upto.seq;
                self.settle_unasked(&companion, Reason::Overflow, upto);
            }
        }
    }

    /// Settles at once the messages of paused or closed companions. Companions with the same messages share one event.
    pub(super) fn settle_silenced(&mut self) {
        if !self.state.gates.values().any(Gate::is_silent) {
            return;
        }
        let mut by_messages: BTreeMap<(Vec<Seq>, Reason, bool), Vec<CompanionId>> = BTreeMap::new();
        for (companion, gate) in self.state.gates.iter().filter(|(_, gate)| gate.is_silent()) {
            let messages: Vec<_> = self.state.window.buffer(companion, gate.cursor).map(|entry| entry.seq).collect();
            if !messages.is_empty() {
                let reason = if gate.paused { Reason::Paused } else { Reason::Closed };
                by_messages.entry((messages, reason, gate.owes_acknowledgement())).or_default().push(companion.clone());
            }
        }
        for ((_, reason, _), companions) in by_messages {
            self.settle_all(companions, reason);
        }
    }

    /// Settles all unsettled messages of these companions, which must have the same ones.
    pub(super) fn settle_all(&mut self, companions: Vec<CompanionId>, reason: Reason) {
        let trigger = self.state.trigger_without_question(&companions[0], self.state.position.handled);
        let mut record =
            self.decided(&companions[0], trigger, Decision::No, reason, self.state.position.handled, AnswerRecord::default());
        record.companions = companions;
        self.record(Event::Decided(record));
    }

    /// Gives the floor to a candidate. It then owes a statement that answers all its unsettled messages.
    pub(super) fn give_floor(&mut self, candidate: &Candidate) {
        let messages = self.state.window.unsettled(
            &candidate.companion,
            &self.state.gates[&candidate.companion],
            self.state.position.handled,
        );
        self.owe_reply(candidate, messages, None);
    }

    /// Gives the floor to a candidate. It then owes a statement that answers these messages, and replaces the statement `again` if that is given.
    pub(super) fn owe_reply(&mut self, candidate: &Candidate, messages: Vec<Seq>, again: Option<Again>) {
        let companion = &candidate.companion;
        let next_interjection_at = self.world.policies.get(companion).map(|policy| policy.interval(0, (self.world.jitter)()));
        let gate = &self.state.gates[companion];
        let is_external = gate.external;
        let answered = candidate.message.or_else(|| self.state.window.newest_event(&messages));
        // An answer in the place of another one is written as that one was.
        let modality = if is_external || again.is_some() { Modality::Text } else { self.modality_of_reply(answered) };
        // A spoken reply has deadlines of its own. If there is only one companion, no other could use the floor.
        let may_expire = !is_external && self.state.gates.holds_rounds() && modality.is_text();
        let owed = Event::ReplyOwed {
            ticket: Ticket(self.state.position.tickets.0 + 1),
            trigger: candidate.trigger,
            messages,
            upto: self.state.position.handled,
            next_interjection_at: next_interjection_at.or(gate.next_interjection_at).unwrap_or_default(),
            due_at: is_external.then(|| self.state.position.clock + self.world.rules.turn_taking.external_statement_timeout()),
            expires_at: may_expire.then(|| self.state.position.clock + self.world.rules.turn_taking.floor_timeout()),
            is_farewell: candidate.is_farewell,
            is_unjudged: self.world.policies.get(companion).is_some_and(|policy| !policy.repetition),
            message: candidate.message,
            modality,
            again: again.map(|again| again.statement),
            continues: again.is_some_and(|again| again.continues),
            companion: companion.clone(),
        };
        self.record(owed);
        // A reply to a long silence answers no message.
        let is_empty = |floor: &OwedReply| floor.messages.is_empty() && floor.trigger.needs_a_message();
        let has_no_messages = self.state.turns.floor.as_deref().is_some_and(is_empty);
        // For other replies, the budget was checked with the votes.
        let is_by_hand = candidate.trigger == Trigger::Chosen;
        let is_over_budget =
            (again.is_some() || is_by_hand) && self.world.exhausted_statement_budget(self.state.position.clock).is_some();
        let is_at_risk = self.state.turns.floor.as_deref().is_some_and(|floor| {
            let message = floor.message.unwrap_or_default();
            self.state.at_risk_among(floor.trigger, message, floor.messages.iter().copied()).is_some()
        }) || is_by_hand && self.world.rules.helps_at_risk && self.state.is_newest_at_risk();
        if has_no_messages || is_over_budget || is_at_risk {
            let error = match has_no_messages {
                true => DELETED,
                false if is_at_risk => Reason::Risk.as_str(),
                false => Reason::Budget.as_str(),
            };
            self.fail_reply(self.state.position.tickets, error.into());
        } else {
            self.begin_statement(companion);
            let is_called = candidate.trigger == Trigger::DirectAddress;
            self.begin_aloud(if is_called { Duration::ZERO } else { self.world.rules.voice.turn_delay() });
        }
    }

    /// Journals a YES.
    pub(super) fn agree(&mut self, companion: &CompanionId, trigger: Trigger, reason: Reason, answered: AnswerRecord) {
        let yes = self.decided(companion, trigger, Decision::Yes, reason, Seq::NONE, answered);
        self.record(Event::Decided(yes));
    }

    /// Journals a NO, from a model or without a call. The considered messages settle, and the trigger determines how the counters change, unless the
    /// reason leaves them alone.
    pub(super) fn decline(
        &mut self,
        companion: &CompanionId,
        trigger: Trigger,
        reason: Reason,
        upto: Seq,
        answered: AnswerRecord,
    ) {
        let mut record = self.decided(companion, trigger, Decision::No, reason, upto, answered);
        let gate = &self.state.gates[companion];
        if let Some(policy) = self.world.policies.get(companion).filter(|_| !reason.leaves_counters_alone()) {
            record.next_interjection_at = match trigger.counters() {
                Counters::Reset => Some(policy.interval(0, (self.world.jitter)())),
                Counters::NextInterval => {
                    Some(gate.after_declining(policy.interval(gate.check_count + 1, (self.world.jitter)())))
                }
                Counters::Unchanged => None,
            };
        }
        self.record(Event::Decided(record));
    }

    /// Journals a NO that does not change the counters.
    pub(super) fn settle_unasked(&mut self, companion: &CompanionId, reason: Reason, upto: Seq) {
        let trigger = self.state.trigger_without_question(companion, upto);
        let record = self.decided(companion, trigger, Decision::No, reason, upto, AnswerRecord::default());
        self.record(Event::Decided(record));
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
        let gate = &self.state.gates[companion];
        Decided {
            companions: vec![companion.clone()],
            trigger,
            decision,
            reason,
            ticket: answered.ticket,
            messages: self.state.window.unsettled(companion, gate, upto),
            upto,
            message_count: gate.message_counter,
            check_count: gate.check_count,
            threshold: gate.next_interjection_at,
            next_interjection_at: None,
            speak_at: None,
            vote: answered.vote,
            mood: answered.mood,
            used_up: answered.used_up,
            relevance: answered.relevance,
            why: answered.why,
            at_risk: answered.at_risk,
            by_role: answered.by_role,
            call: answered.call,
            trace: None,
        }
    }

    pub(super) fn refresh_summary(&mut self) {
        let due = self.world.summary.and_then(|limits| self.state.summary.due(limits));
        // The refresh waits while no tokens may be used, or the channel cannot be posted to.
        if let Some((after, upto)) = due.filter(|_| !self.world.is_unpostable)
            && self.world.exhausted_token_budget(self.state.position.clock).is_none()
        {
            self.state.summary.begin();
            self.out.push(Output::Summarise { after, upto });
        }
    }
}

/// The journaled parts of an answer.
#[derive(Default)]
pub(super) struct AnswerRecord {
    pub(super) ticket: Option<Ticket>,
    /// The used-up budget that refuses the statement.
    pub(super) used_up: Option<UsedUp>,
    /// The estimate that the companion is unlikely to speak.
    pub(super) relevance: Option<Box<Estimate>>,
    pub(super) vote: Option<State>,
    pub(super) mood: f64,
    pub(super) why: Option<Arc<str>>,
    /// The message whose author may be at risk.
    pub(super) at_risk: Option<Seq>,
    /// Whether the author of a message may not address companions.
    pub(super) by_role: bool,
    pub(super) call: Option<Box<Call>>,
}
