//! Applies events to a conversation. A step and a fold of the journal use the same code.

use super::super::event::{Decided, Evaluated};
use super::super::gate::{Check, Evaluation, Waiting, Wish};
use super::super::message::{Modality, Role};
use super::super::round::listening;
use super::super::trigger::Counters;
use super::super::turn::HeldVote;
use super::super::window::Entry;
use super::*;

impl Conversation {
    /// Applies one event. `notes` receives the timers that were armed or cancelled, the replies that were dropped, and the questions and replies to
    /// cancel.
    pub(super) fn apply(
        &mut self,
        at: Moment,
        seq: Seq,
        turn: Option<TurnId>,
        event: &Event,
        world: &World<'_>,
        notes: &mut Vec<Output>,
    ) {
        self.position.clock = self.position.clock.max(at);
        if event.is_inbound() {
            self.note_inbound(seq, event);
        }
        match event {
            Event::Said { message, reply_to, reply, said_at } => {
                // Former versions are only on record.
                let mut message = message.clone();
                message.versions = None;
                let entry = Entry::new(seq, self.when_said(*said_at), Arc::new(message));
                let entry = Entry { reply_to: *reply_to, ..entry };
                self.apply_said(entry, *reply, world, notes);
            }
            Event::Edited { message, text, captions, .. } => {
                self.window.edit(*message, text, captions);
                self.filtered.forget(&[*message]);
                self.noting.change(&[*message]);
                self.closing.edit_recent_statement(*message, text);
                if captions.is_empty() {
                    self.calls.edit(*message, self.position.clock);
                }
            }
            Event::Deleted { messages, unnamed, again, continues, .. } => {
                self.forget_talk();
                self.forget_named(unnamed);
                self.filtered.forget(messages);
                self.noting.change(messages);
                self.reminders.delete(messages);
                self.calls.spoil(messages);
                self.apply_deleted(messages, *again, *continues, notes);
            }
            Event::Joined { companion, external } => {
                self.gates.get_or_insert(companion, Gate::new(self.position.handled)).external = *external;
            }
            Event::Left { companion } => {
                let was_about_to = self.turns.is_about_to_acknowledge(companion);
                self.cancel_activity(Some(companion), notes);
                let owes = |gate: &&Gate| was_about_to || gate.owes_acknowledgement();
                let orphaned = self.gates.get(companion).filter(owes).map(|gate| gate.cursor);
                self.gates.remove(companion);
                self.closing.opened_again.remove(companion);
                self.turns.rounds.iter_mut().for_each(|round| round.withdraw(companion));
                self.fire_remaining_events(orphaned.as_slice(), notes);
            }
            Event::Chosen { companions, everybody, .. } => self.apply_chosen(companions, *everybody),
            Event::Paused { companion, paused } => self.apply_paused(companion.as_ref(), *paused, notes),
            Event::Cleared { anew } => {
                self.forget_talk();
                self.cancel_activity(None, notes);
                self.closing.episode = None;
                self.voice.call.clear();
                self.awaited_notes.clear();
                self.closing.opened_again.clear();
                self.acknowledgements.release();
                (self.replaceable, self.by_hand) = (None, ByHand::default());
                self.calls.clear();
                // Prompts do not show earlier messages any more.
                if *anew {
                    self.window.entries().for_each(|entry| self.summary.count(entry));
                    self.summary.begin_anew(seq);
                } else {
                    self.summary.clear(seq);
                    self.noting.clear(seq);
                }
                self.window.drop_below(seq);
                self.filtered.clear();
                for gate in self.gates.values_mut() {
                    *gate = Gate { paused: gate.paused, external: gate.external, ..Gate::new(self.position.handled) };
                }
            }
            Event::CaughtUp { .. } | Event::Disclosed(_) | Event::Reacted { .. } => {}
            Event::RemindersCancelled { reminders, .. } => reminders.iter().for_each(|number| self.reminders.remove(*number)),
            Event::ReminderSet(reminder) => self.reminders.set(reminder),
            Event::VoiceJoined { from } => self.voice.call.join(seq, from),
            Event::VoiceLeft { from } => self.voice.call.leave(from),
            Event::Segment(segment) => self.voice.call.keep(seq, segment),
            Event::VoiceQuiet { companions } => self.apply_lull_fired(companions),
            Event::JitterDrawn { companion, next_interjection_at } => {
                if let Some(gate) = self.gates.get_mut(companion) {
                    gate.next_interjection_at = Some(*next_interjection_at);
                    // If the process crashed before this event was journaled, the counter may already be past the threshold.
                    let newest = self.window.newest(companion, gate.cursor).filter(|_| gate.is_interjection_due());
                    if let Some(message) = newest.map(|newest| newest.seq) {
                        gate.fire(Waiting { trigger: Trigger::Interjection, message, check: Check::Counter, urgent: false });
                    }
                }
            }
            Event::LullFired { companions } => self.apply_lull_fired(companions),
            Event::SilenceFired { companions } => self.apply_silence_fired(companions, world),
            Event::EventsDeferred { until } => self.acknowledgements.defer(*until),
            Event::EventsReleased => {
                let is_any_owed = self.gates.values().any(Gate::owes_acknowledgement);
                self.acknowledgements.free(is_any_owed);
            }
            Event::BackOffEnded { companions } => self.apply_back_off_ended(companions, world, notes),
            Event::DeadlinesExtended { round, floor: due, questions } => {
                for evaluation in self.gates.values_mut().filter_map(|gate| gate.evaluation.as_mut()) {
                    evaluation.due_at = evaluation.due_at.and(*questions);
                }
                if let Some(deadline) = round {
                    self.turns.rounds.iter_mut().for_each(|round| round.deadline = *deadline);
                }
                if let (Some(floor), Some(due_at)) = (&mut self.turns.floor, due) {
                    floor.due_at = Some(*due_at);
                }
            }
            // A refusal is journaled just before its message is applied. Older versions also refused messages that had been applied before a restart.
            Event::AddressRefused { message } if *message > self.position.handled => self.announced.refused = Some(*message),
            Event::AddressRefused { message } => self.apply_late_refusal(*message),
            Event::RoundOpened(opened) => self.apply_round_opened(opened, turn),
            Event::RoundClosed(closed) => self.apply_round_closed(closed),
            Event::StageChanged { companion, to, cause, .. } => {
                self.closing.opened_again.remove(companion);
                self.apply_stage(companion, *to, *cause, notes);
            }
            Event::RepetitionAsked { ticket, .. } => {
                self.position.tickets = self.position.tickets.max(*ticket);
                self.turns.judge(Judgement::Asked(*ticket));
            }
            Event::RepetitionJudged { score, detections, forced, exempt, .. } => {
                self.apply_judged(*score, *detections, *forced, exempt);
            }
            Event::Evaluated(evaluated) => self.apply_evaluated(evaluated, turn),
            Event::Decided(decided) => self.apply_decided(decided, turn, notes),
            Event::Unanswered { companion, ticket, back_off, .. } => self.apply_unanswered(companion, *ticket, *back_off),
            Event::ReplyOwed {
                companion,
                ticket,
                trigger,
                messages,
                upto,
                next_interjection_at,
                due_at,
                expires_at,
                is_farewell,
                is_unjudged,
                message,
                modality,
                again,
                continues,
            } => {
                let tries = again.map_or(0, |_| self.begin_replacement());
                self.position.tickets = self.position.tickets.max(*ticket);
                self.by_hand.note_owed(companion);
                if *trigger == Trigger::Silence {
                    self.gates.apply_started();
                }
                let wish = self.gates.get_mut(companion).and_then(|gate| gate.wish.take());
                let (why, selection) = match self.turns.selected.take() {
                    Some(turn) => (turn.candidate.why, turn.selection),
                    None => {
                        let opened = wish.as_ref().map_or(self.position.handled, |wish| wish.upto);
                        (
                            wish.and_then(|wish| wish.why),
                            Selection { opened, selected_at: self.position.handled, turn, ..Selection::default() },
                        )
                    }
                };
                self.turns.floor = Some(Box::new(OwedReply {
                    companion: companion.clone(),
                    ticket: *ticket,
                    trigger: *trigger,
                    messages: messages.clone(),
                    upto: *upto,
                    why,
                    selection,
                    due_at: *due_at,
                    began_at: self.position.clock,
                    expires_at: *expires_at,
                    tries,
                    again: *again,
                    continues: *continues,
                    is_farewell: *is_farewell,
                    is_unjudged: *is_unjudged,
                    forced: self.closing.tally.forced,
                    message: *message,
                    modality: *modality,
                    ..OwedReply::default()
                }));
                self.settle_by_reply(event, notes);
                if let Some(gate) = self.gates.get_mut(companion) {
                    gate.reset(0, *next_interjection_at);
                }
            }
            Event::Replanning { ticket, until, .. } => self.turns.stop_attempt(*ticket, *until),
            Event::Replanned { .. } | Event::ReplyExtended { .. } => self.apply_replanned(event, notes),
            Event::SentenceStarting { ticket, sentence, text, .. } => self.turns.start_sentence(*ticket, *sentence, text),
            Event::SentencePlayed { ticket, sentence, heard, .. } => self.turns.note_heard(*ticket, *sentence, *heard),
            // This event has no effect on the state. `SentencePlayed` and `Said` do.
            Event::Interrupted { .. } => {}
            Event::Cancelled { companion, ticket, message, .. } => self.apply_cancelled(companion, *ticket, *message),
            Event::FloorExpired { ticket, .. } => self.turns.expire_floor(*ticket),
            Event::FloorTaken { ticket, .. } => self.turns.take_floor(*ticket),
            Event::HeldSelected { selected, others } => self.apply_held_selected(selected, others),
            Event::ReplyFailed { ticket, error, .. } => self.apply_reply_failed(*ticket, error),
            Event::ToolCalled(called) => {
                self.position.tickets = self.position.tickets.max(called.call);
                let is_owed = |ticket| self.turns.owed_reply(ticket).is_some();
                self.calls.apply_called(called, (turn, self.position.handled), self.position.clock, is_owed);
            }
            Event::ToolConfirmed(confirmed) => self.calls.apply_confirmed(confirmed),
            Event::ToolAnswered(answered) => self.calls.apply_answered(answered),
            Event::Summarised { upto, text, messages } => {
                self.summary.apply(*upto, text, *messages);
                self.filtered.forget(&[Seq::NONE]);
            }
            Event::Filtered(finding) => self.filtered.apply(finding),
            Event::Noted(_) => {}
            Event::NotesTaken(taken) => self.noting.apply(taken),
        }
        self.update_waiting(world, notes);
    }

    /// Applies a new inbound event. Takes ownership, so that the message is not cloned.
    pub(super) fn apply_inbound(&mut self, recorded: Recorded, world: &World<'_>, notes: &mut Vec<Output>) {
        let Recorded { seq, at, turn, event, .. } = recorded;
        if matches!(event, Event::Said { .. }) {
            self.note_inbound(seq, &event);
        }
        let Event::Said { message, reply_to, reply, said_at } = event else {
            return self.apply(at, seq, turn, &event, world, notes);
        };
        let entry = Entry { reply_to, ..Entry::new(seq, self.when_said(said_at), Arc::new(message)) };
        self.apply_said(entry, reply, world, notes);
        self.update_waiting(world, notes);
    }

    /// Updates the number of the newest inbound event. A statement posted before an event with words no longer opens a round, unless the side model
    /// still judges it.
    fn note_inbound(&mut self, seq: Seq, event: &Event) {
        self.position.handled = self.position.handled.max(seq);
        if !leaves_statements_alone(event) {
            self.turns.forget_posted();
        }
    }

    /// Fires the lull timers of these companions. Each considers its newest unsettled message, if it has one.
    fn apply_lull_fired(&mut self, companions: &[CompanionId]) {
        for companion in companions {
            let Some(gate) = self.gates.get_mut(companion) else { continue };
            gate.lull_at = None;
            if let Some(newest) = self.window.newest(companion, gate.cursor) {
                let message = newest.seq;
                // A trigger that does not count any more does not replace the lull.
                gate.recheck(Some(message));
                gate.fire(Waiting { trigger: Trigger::Lull, message, check: Check::Quiet, urgent: false });
            }
        }
    }

    /// Runs after every event. Checks waiting triggers again where no question is in flight, and arms lull timers where no trigger is waiting.
    pub(super) fn update_waiting(&mut self, world: &World<'_>, notes: &mut Vec<Output>) {
        if !self.turns.held.is_empty() {
            self.drop_settled_held();
        }
        self.drop_unable();
        if !self.is_busy() {
            let is_any_next = self.recheck_waiting(world);
            self.arm_lulls(!is_any_next, world, notes);
        }
        self.drop_settled();
    }

    /// Checks waiting triggers again. Returns whether any of them is about to be handled.
    fn recheck_waiting(&mut self, world: &World<'_>) -> bool {
        let mut is_any_next = false;
        let (late, are_events_deferred) = (&self.turns.late, self.acknowledgements.deferred_until.is_some());
        for (companion, gate) in self.gates.iter_mut().filter(|(_, gate)| gate.waiting.is_some() && !gate.is_silent()) {
            let is_backing_off = gate.is_backing_off();
            if !is_backing_off {
                gate.recheck(self.window.newest(companion, gate.cursor).map(|entry| entry.seq));
            }
            let is_next = gate.waiting.is_some_and(|waiting| waiting.urgent || !is_backing_off);
            let is_writing = late.iter().any(|late| late.companion == *companion);
            // A deferred event does not make other companions wait.
            let is_deferred = are_events_deferred && gate.owes_acknowledgement();
            is_any_next |= is_next && !is_writing && !is_deferred && world.policies.contains_key(companion);
        }
        is_any_next
    }

    /// Arms the lull timers of companions without a waiting trigger, if `may_wait`.
    fn arm_lulls(&mut self, may_wait: bool, world: &World<'_>, notes: &mut Vec<Output>) {
        let now = self.position.clock;
        let in_call = self.voice.call.is_connected();
        for (companion, gate) in self.gates.iter_mut() {
            if gate.is_silent() || gate.waiting.is_some() || gate.is_backing_off() {
                continue;
            }
            match self.window.newest(companion, gate.cursor) {
                // The companion has no unsettled messages, so it needs no timer.
                None => cancel_lull(companion, gate, notes),
                Some(last) if may_wait && gate.lull_at.is_none() => {
                    if let Some(timeout) = world.policies.get(companion).and_then(|policy| lull_timeout(last, policy, in_call)) {
                        arm_lull(companion, gate, now.max(last.at + timeout), notes);
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Ends back-offs. For a companion without a question to ask again, the lull timeout starts at the end of its back-off, even if the step runs
    /// later.
    fn apply_back_off_ended(&mut self, companions: &[CompanionId], world: &World<'_>, notes: &mut Vec<Output>) {
        let (now, is_busy) = (self.position.clock, self.is_busy());
        let in_call = self.voice.call.is_connected();
        for companion in companions {
            let Some(gate) = self.gates.get_mut(companion) else { continue };
            let until = gate.retry_at();
            gate.end_back_off();
            let Some(until) = until.filter(|until| *until < now && !is_busy && !gate.is_silent()) else { continue };
            let newest = self.window.newest(companion, gate.cursor);
            gate.recheck(newest.map(|entry| entry.seq));
            if let (Some(last), Some(policy)) = (newest, world.policies.get(companion))
                && gate.waiting.is_none()
                && gate.lull_at.is_none()
                && let Some(timeout) = lull_timeout(last, policy, in_call)
            {
                arm_lull(companion, gate, until.max(last.at + timeout), notes);
            }
        }
    }

    /// Settles the messages that a reply answers.
    pub(super) fn settle_by_reply(&mut self, event: &Event, notes: &mut Vec<Output>) {
        let Some(owed) = event.owed() else { return };
        if let Some(gate) = self.gates.get_mut(owed.companion) {
            gate.settle(owed.upto);
            cancel_lull(owed.companion, gate, notes);
        }
    }

    fn apply_unanswered(&mut self, companion: &CompanionId, ticket: Ticket, back_off: Duration) {
        let now = self.position.clock;
        let Some(gate) = self.gates.get_mut(companion) else { return };
        let Some(evaluation) = gate.evaluation.take_if(|evaluation| evaluation.ticket == ticket) else { return };
        // If the message of the question was deleted, the question is dropped. The other unsettled messages wait for a lull.
        let is_message_present = self.window.get(evaluation.message).is_some();
        gate.retry(evaluation, is_message_present, back_off, now);
        self.submit_listening(companion);
    }

    fn apply_evaluated(&mut self, evaluated: &Evaluated, turn: Option<TurnId>) {
        self.position.tickets = self.position.tickets.max(evaluated.ticket);
        let now = self.position.clock;
        let is_called = self.is_called(&evaluated.companion);
        if let Some(gate) = self.gates.get_mut(&evaluated.companion) {
            gate.waiting = None;
            // The companion is asked again, so the open round continues without its vote.
            if gate.wish.take().is_some() {
                for round in self.turns.rounds.iter_mut().filter(|round| !round.awaits(&evaluated.companion)) {
                    round.overrule(listening(&evaluated.companion, round.message, is_called, gate.stage));
                }
            }
            // The question also covers a lull that ends at this moment.
            gate.lull_at = gate.lull_at.filter(|due| *due > now);
            gate.evaluation = Some(Evaluation {
                ticket: evaluated.ticket,
                trigger: evaluated.trigger,
                message: evaluated.message,
                upto: evaluated.upto,
                message_count: evaluated.message_count,
                due_at: evaluated.due_at,
                is_spoilt: false,
                turn,
            });
            gate.end_back_off();
        }
    }

    fn apply_decided(&mut self, decided: &Decided, turn: Option<TurnId>, notes: &mut Vec<Output>) {
        if let Some(state) = &decided.vote {
            // Only the round that the State is for accepts it.
            self.turns.rounds.iter_mut().for_each(|round| round.submit(state.clone()));
        }
        if let Some(message) = decided.at_risk {
            self.note_at_risk(message);
        }
        if decided.reason == Reason::Backchannel {
            self.voice.overheard.retain(|seq, _| !decided.messages.contains(seq));
        }
        if decided.reason == Reason::Event {
            return self.apply_acknowledging(decided, turn);
        }
        // An event may settle before a later address.
        let mut bereft = Vec::new();
        let is_cancelled = decided.reason == Reason::Cancelled;
        let mut retracted = Vec::new();
        for companion in &decided.companions {
            let Some(gate) = self.gates.get_mut(companion) else { continue };
            // Whether the question in flight is about others' messages, so that it continues.
            let is_beside = is_cancelled && gate.considered().is_some_and(|considered| !decided.retracts(considered));
            let mut answered = None;
            match decided.ticket {
                Some(ticket) => {
                    answered = gate.evaluation.take_if(|evaluation| evaluation.ticket == ticket);
                    if !is_cancelled {
                        gate.back_off = None;
                        gate.mood = decided.mood;
                    }
                }
                None if decided.settles_by_cursor() && !decided.reason.leaves_counters_alone() => {
                    gate.waiting = gate.waiting.filter(|waiting| waiting.message > decided.upto);
                    gate.end_back_off();
                }
                None => {}
            }
            let Some(settled) = decided.settled() else {
                let (message, upto) = answered.map_or((Seq::NONE, Seq::NONE), |asked| (asked.message, asked.upto));
                let why = decided.why.clone().filter(|_| decided.reason != Reason::Unreadable);
                gate.wish = Some(Wish { trigger: decided.trigger, message, upto, why, turn });
                // The companion was asked outside a round. Another companion that joined since may speak or write late. Then the vote is held, and
                // the loop guard is checked again.
                if decided.vote.is_none()
                    && (self.turns.floor.is_some() || self.turns.selected.is_some() || !self.turns.late.is_empty())
                {
                    self.turns.hold(HeldVote::without_state(companion, decided.trigger, upto));
                }
                continue;
            };
            // A cancelled decision ends the wish to answer these messages. For companions that were neither asked nor wanted to speak, a stop phrase
            // settles like any other NO.
            let wish = gate.wish.take_if(|_| is_cancelled && !is_beside);
            let wanted = wish.map(|wish| (wish.message, wish.upto));
            let asked = answered.map(|asked| (asked.message, asked.upto)).or(wanted);
            if is_beside || is_cancelled && asked.is_some() {
                retracted.push((companion.clone(), asked));
            }
            let owed = gate.owes_acknowledgement();
            gate.settle(settled.upto);
            bereft.extend((owed && gate.waiting.is_none()).then(|| companion.clone()));
            let cursor = gate.cursor;
            if decided.reason == Reason::Stale && gate.evaluation.take_if(|evaluation| evaluation.upto <= cursor).is_some() {
                self.submit_listening(companion);
                continue;
            }
            let Some(next) = decided.next_interjection_at else { continue };
            match decided.trigger.counters() {
                Counters::NextInterval => gate.decline_interjection(next),
                Counters::Reset => {
                    let stragglers = self
                        .window
                        .buffer(companion, gate.cursor)
                        .filter(|entry| entry.message.from.role != Role::Companion && !entry.message.is_event())
                        .count();
                    gate.reset(stragglers as u64, next);
                    cancel_lull(companion, gate, notes);
                }
                Counters::Unchanged => {}
            }
        }
        for companion in &bereft {
            self.forget_event_of(companion);
        }
        for (companion, asked) in &retracted {
            self.apply_retracted(companion, decided, *asked);
        }
    }

    /// Drops the messages that every companion has settled from the window, and counts them towards the next summary.
    fn drop_settled(&mut self) {
        let settled = self.gates.values().map(|gate| gate.cursor).min().unwrap_or(self.position.handled);
        // A reply in progress still needs the messages that it answers.
        let answered = self.turns.owed_replies().filter_map(|floor| floor.messages.first()).min();
        let settled = answered.map_or(settled, |first| settled.min(Seq(first.0.saturating_sub(1))));
        let Self { window, summary, .. } = self;
        window.trim(settled, |entry| summary.count(entry));
    }
}

/// Whether a statement may still open a round after this inbound event, because the event contains no message.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other inbound event ends a statement's claim to a round")]
fn leaves_statements_alone(event: &Event) -> bool {
    match event {
        Event::CaughtUp { .. }
        | Event::Chosen { .. }
        | Event::Disclosed(_)
        | Event::Reacted { .. }
        | Event::RemindersCancelled { .. }
        | Event::VoiceJoined { .. }
        | Event::VoiceLeft { .. }
        | Event::Segment(_) => true,
        Event::Said { message, .. } => message.awaits_words() || message.background,
        Event::Edited { captions, .. } => !captions.is_empty(),
        _ => false,
    }
}

/// How long a companion waits for a lull after this unsettled message. None: it waits for the end of the voice lull (docs/design/voice.md A-12).
fn lull_timeout(last: &Entry, policy: &InterjectionPolicy, in_call: bool) -> Option<Duration> {
    match &last.message.speech {
        _ if in_call && last.message.modality == Modality::Voice => None,
        Some(_) => Some(policy.voice_lull_timeout),
        None => Some(policy.text_lull_timeout),
    }
}

pub(super) fn arm_lull(companion: &CompanionId, gate: &mut Gate, lull_at: Moment, notes: &mut Vec<Output>) {
    gate.lull_at = Some(lull_at);
    notes.push(Output::LullArmed { companion: companion.clone(), lull_at });
}

pub(super) fn cancel_lull(companion: &CompanionId, gate: &mut Gate, notes: &mut Vec<Output>) {
    if gate.lull_at.take().is_some() {
        notes.push(Output::LullCancelled { companion: companion.clone() });
    }
}
