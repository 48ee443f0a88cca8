//! Applies inbound events to a conversation: messages, statements, deletions, and companions that join, leave or are paused.

use super::super::audience::Audience;
use super::super::gate::{Check, Waiting};
use super::super::message::{Message, Modality, Role, Standing};
use super::super::policy::gate::{Gate as GateRules, PreGate};
use super::super::relevance::Heard;
use super::super::settlement::are_all_deleted;
use super::super::tools::CONFIRMED_CALL;
use super::super::window::Entry;
use super::apply::{arm_lull, cancel_lull};
use super::ending::reopening_cause;
use super::*;

impl Conversation {
    /// The time when a message was said: `said_at` if that is set, which means that it was accepted much later, otherwise now.
    pub(super) fn when_said(&self, said_at: Option<Moment>) -> Moment {
        said_at.unwrap_or(self.position.clock).min(self.position.clock)
    }

    /// Applies a message. A statement may fulfil an owed reply.
    pub(super) fn apply_said(&mut self, mut entry: Entry, reply: Option<Ticket>, world: &World<'_>, notes: &mut Vec<Output>) {
        self.reminders.apply_said(entry.seq, &entry.message);
        if entry.message.background {
            self.replaceable = None;
            drop(self.push_declined(entry, world));
            return;
        }
        if entry.message.is_event() {
            if entry.message.kind.as_deref() == Some(CONFIRMED_CALL) {
                self.calls.note_event(&entry.message);
            }
            return self.apply_event(entry, world, notes);
        }
        if let Some(speech) = &entry.message.speech {
            self.voice.call.hand_over(&speech.segments);
            if speech.is_backchannel {
                return self.apply_backchannel(entry, world);
            }
        }
        if entry.message.awaits_words() {
            self.awaited_notes.insert(entry.seq);
            drop(self.push_declined(entry, world));
            return;
        }
        if let Some(note) = entry.message.replaced_note() {
            self.awaited_notes.remove(&note);
            self.window.delete(&[note]);
        }
        let in_call = self.voice.call.is_connected();
        let (seq, said_at, message) = (entry.seq, entry.at, &entry.message);
        #[cfg(any(test, feature = "samples"))]
        poison::check_applied(message);
        let now = self.position.clock;
        let is_statement = message.from.role == Role::Companion;
        let begins_episode = self.closing.begins_episode(now, world.rules);
        for companion in self.gates.companions_where(|gate| gate.stage != Stage::None) {
            let gate = &self.gates[&companion];
            if let Some(cause) = reopening_cause(&companion, gate, message, begins_episode, world.rules) {
                let from = gate.stage;
                self.apply_stage(&companion, Stage::None, cause, notes);
                self.closing.opened_again.insert(companion, (from, cause));
            }
        }
        if begins_episode {
            self.begin_episode();
        }
        self.gates.lift_minimum_of_called(message);
        let began_at = self.closing.episode.filter(|_| !begins_episode).map_or(now, |episode| episode.began_at);
        self.closing.episode = Some(Episode { began_at, last_at: now });
        self.replaceable = None;
        if message.from.role == Role::Person {
            self.closing.tally.streak = 0;
            self.closing.tally.newest_human = seq;
            self.by_hand.note_person();
        }
        self.restart_silence(message.from.role == Role::Person, world);
        self.remember_talk(message, world.rules.gate);
        self.noting.count(seq, now, world.notes);
        let is_refused = self.announced.refused.take() == Some(seq);
        let stopped = self.announced.stopped.take().filter(|(message, _)| *message == seq).map(|(_, companions)| companions);
        let retracted_alone = std::mem::take(&mut self.announced.retracted_alone);
        let mut declined_by: Vec<_> = retracted_alone.into_iter().filter(|_| stopped.is_some()).collect();
        if message.cut.is_some() {
            self.by_hand.stop();
        }
        let answers = is_statement.then(|| Box::new(self.apply_statement(seq, message.clone(), reply)));
        for (companion, gate) in self.gates.iter_mut().filter(|(companion, _)| !message.is_by(companion)) {
            if gate.is_closed() && message.from.role == Role::Person {
                gate.heard_closed += 1;
            }
            if gate.is_silent() || is_too_late(now, said_at, message.address.includes(companion), &world.rules) {
                continue;
            }
            let is_stopped = stopped.as_ref().is_some_and(|stopped| stopped.contains(companion));
            if is_refused && message.address.includes(companion) && !is_stopped {
                declined_by.push(companion.clone());
                continue;
            }
            if is_stopped || stopped.is_some() && !message.address.includes(companion) {
                // The message counts and cancels the lull timer, but triggers no question.
                gate.cancelled.extend(is_stopped.then_some(seq));
                cancel_lull(companion, gate, notes);
                gate.message_counter += 1;
                continue;
            }
            cancel_lull(companion, gate, notes);
            let Some(policy) = world.policies.get(companion) else { continue };
            if message.address.standing == Standing::NeverAnswered {
                // The message takes no row and counts nothing. Alone, it settles at the next lull.
                continue;
            }
            if is_statement {
                let check = Check::Unsettled;
                gate.fire(Waiting { trigger: Trigger::Turn, message: seq, check, urgent: false });
            } else {
                match_triggers(companion, gate, seq, message, now, policy, in_call, notes);
            }
        }
        entry.answers = answers;
        entry.declined_by = declined_by.clone().into();
        self.push(entry, world);
        self.settle_declined(&declined_by, seq);
    }

    /// Updates the pre-gate's statistics about the talk in the channel.
    fn remember_talk(&mut self, message: &Message, rules: &GateRules) {
        for (companion, gate) in self.gates.iter_mut() {
            match rules.pre_gate {
                PreGate::Off => gate.relevance = None,
                PreGate::Skip if message.is_event() => {}
                PreGate::Skip => {
                    let relevance = gate.relevance.get_or_insert_default();
                    if message.is_by(companion) {
                        relevance.speak(&message.from.name, &message.text);
                    } else {
                        relevance.record_message(&Heard::of(companion, message));
                    }
                }
            }
        }
    }

    /// Resets the pre-gate's statistics, because part of the talk was deleted or does not count any more.
    pub(super) fn forget_talk(&mut self) {
        self.gates.iter_mut().for_each(|(_, gate)| gate.relevance = None);
    }

    /// Applies a backchannel message. It fires and counts nothing, and all companions settle it at once.
    fn apply_backchannel(&mut self, entry: Entry, world: &World<'_>) {
        let seq = entry.seq;
        let companions = self.push_declined(entry, world);
        if !companions.is_empty() {
            self.voice.overheard.insert(seq, companions.into());
        }
    }

    /// Adds a message that fires and counts nothing. All companions decline it; they are returned.
    fn push_declined(&mut self, mut entry: Entry, world: &World<'_>) -> Vec<CompanionId> {
        let companions: Vec<_> = self.gates.keys().cloned().collect();
        let seq = entry.seq;
        entry.declined_by = companions.clone().into();
        self.push(entry, world);
        self.settle_declined(&companions, seq);
        companions
    }

    /// Moves the cursor past a declined message for companions that have no other unsettled messages.
    fn settle_declined(&mut self, companions: &[CompanionId], declined: Seq) {
        for companion in companions {
            if let Some(gate) = self.gates.get_mut(companion)
                && self.window.buffer(companion, gate.cursor).next().is_none()
            {
                gate.settle(declined);
            }
        }
    }

    /// Adds a message to the window. If the window has reached the size of a buffer, first drops declined messages, except those that another
    /// companion must still settle or a reply in progress answers.
    pub(super) fn push(&mut self, entry: Entry, world: &World<'_>) {
        if self.window.len() >= world.rules.gate.max_buffer {
            let Self { window, gates, turns, .. } = self;
            let is_answered = |seq| turns.owed_replies().any(|reply| reply.messages.contains(&seq));
            let is_unsettled = |entry: &Entry| {
                gates.iter().any(|(companion, gate)| entry.seq > gate.cursor && entry.concerns_gate_of(companion))
            };
            window.drop_declined(|entry| is_unsettled(entry) || is_answered(entry.seq));
        }
        self.window.push(entry);
    }

    /// Applies a refusal that an older version journaled after the refused address had fired its triggers. An earlier waiting address takes its
    /// place.
    pub(super) fn apply_late_refusal(&mut self, refused: Seq) {
        let Some(message) = self.window.get(refused).map(|entry| entry.message.clone()) else { return };
        let declined_by = self.gates.companions_where(|gate| refused > gate.cursor && !gate.is_silent());
        let declined_by: Vec<_> = declined_by.into_iter().filter(|companion| message.address.includes(companion)).collect();
        for companion in &declined_by {
            self.window.decline_alone(&[refused], companion);
        }
        for companion in &declined_by {
            let Some(gate) = self.gates.get_mut(companion) else { continue };
            if gate.waiting.take_if(|waiting| waiting.message == refused).is_none() {
                continue;
            }
            let considered = gate.considered();
            self.wait_for_address(companion, |seq| Some(seq) > considered);
        }
        self.settle_declined(&declined_by, refused);
    }

    /// Sets the waiting trigger of a companion to its newest address among the unsettled messages that `counts` accepts, or to none.
    pub(super) fn wait_for_address(&mut self, companion: &CompanionId, counts: impl Fn(Seq) -> bool) {
        let address = self.newest_address(companion, counts);
        if let Some(gate) = self.gates.get_mut(companion) {
            gate.waiting = address;
        }
    }

    /// The trigger for a companion's newest address among the unsettled messages that `counts` accepts.
    pub(super) fn newest_address(&self, companion: &CompanionId, counts: impl Fn(Seq) -> bool) -> Option<Waiting> {
        let gate = self.gates.get(companion)?;
        let is_address = |entry: &&Entry| {
            entry.message.from.role != Role::Companion
                && !gate.cancelled.contains(&entry.seq)
                && !entry.message.is_event()
                && entry.message.address.includes(companion)
                && counts(entry.seq)
        };
        self.buffer(companion).rev().find(is_address).map(|entry| Waiting {
            trigger: Trigger::DirectAddress,
            message: entry.seq,
            check: Check::Unsettled,
            urgent: entry.message.from.role == Role::Person,
        })
    }

    /// Applies a posted statement. Returns its audience, computed from the messages that it answers.
    fn apply_statement(&mut self, seq: Seq, message: Arc<Message>, reply: Option<Ticket>) -> Audience {
        let companion = CompanionId::from(&*message.from.id);
        let floor = self.turns.floor.take_if(|floor| Some(floor.ticket) == reply);
        let snapshot = floor.iter().flat_map(|floor| &floor.messages).filter_map(|seq| self.window.get(*seq));
        let answers = Audience::of_answer(snapshot);
        self.replaceable = floor.as_deref().map(|floor| Replaceable::new(seq, floor));
        floor.iter().for_each(|floor| self.reminders.acknowledge(&floor.messages));
        if let Some(floor) = &floor {
            self.calls.post(floor, seq, self.position.clock);
        }
        if floor.as_ref().is_some_and(|floor| floor.again.is_some()) {
            self.uncount_replaced(&companion);
        }
        let (is_farewell, is_unjudged, forced) =
            floor.as_ref().map_or_else(Default::default, |floor| (floor.is_farewell, floor.is_unjudged, floor.forced));
        // A statement for an event is not judged. A statement that answers a person is not part of a loop, so earlier statements do not count any
        // more.
        let is_unjudged = is_unjudged || floor.as_ref().is_some_and(|floor| floor.trigger.acknowledges_events());
        if floor.as_ref().is_some_and(|floor| self.window.answers_person(floor.trigger, &floor.messages)) {
            self.restart_repetition();
            self.closing.tally.is_asked_for = true;
        }
        let selection = floor.map(|floor| floor.selection).unwrap_or_default();
        if selection.selected_at >= self.closing.tally.newest_human {
            self.closing.tally.streak += 1;
        }
        // A statement that was selected before the conversation was opened again belongs to the previous conversation.
        let is_of_before = selection.selected_at < self.closing.tally.opened;
        self.count_turn(&companion, forced, is_of_before);
        self.spoke.insert(companion.clone(), seq);
        if !is_unjudged {
            self.closing.remember_statement(seq, message);
        }
        let Selection { opened, turn, .. } = selection;
        let judgement = Judgement::Due;
        let posted =
            PostedStatement { companion, message: seq, opened, judgement, turn, is_farewell, is_unjudged, is_spoilt: false };
        self.turns.post(posted);
        answers
    }

    pub(super) fn apply_deleted(&mut self, deleted: &[Seq], again: bool, continues: bool, notes: &mut Vec<Output>) {
        // Messages that were deleted before have no further effect.
        let present: Vec<_> = deleted.iter().copied().filter(|seq| self.window.get(*seq).is_some()).collect();
        self.window.delete(deleted);
        self.awaited_notes.retain(|note| !deleted.contains(note));
        self.voice.call.delete(deleted);
        self.closing.delete_recent_statements(deleted);
        // Of two requests at once, the first one counts.
        let again = again && !self.is_busy();
        self.replaceable = self.replaceable.take().and_then(|replaceable| replaceable.without(deleted, again, continues));
        self.cancel_replies_to_deleted(deleted, &present, notes);
        self.summary.delete(deleted);
        // Stored reasons are removed, too. The answers of questions in flight will be removed when they arrive.
        for companion in self.gates.keys().cloned().collect::<Vec<_>>() {
            self.forget_reason(&companion);
        }
        let is_deleted = |gate: &Gate| gate.waiting.is_some_and(|waiting| deleted.contains(&waiting.message));
        let bereft = self.gates.companions_where(|gate| gate.owes_acknowledgement() && is_deleted(gate));
        let orphaned: Vec<_> = bereft.iter().map(|companion| self.gates[companion].cursor).collect();
        for companion in &bereft {
            self.forget_event_of(companion);
        }
        for gate in self.gates.values_mut() {
            gate.waiting = gate.waiting.filter(|waiting| !deleted.contains(&waiting.message));
            if let Some(evaluation) = &mut gate.evaluation {
                evaluation.is_spoilt |= deleted.iter().any(|seq| *seq <= evaluation.upto);
            }
        }
        self.turns.spoil_judgement(deleted);
        self.fire_remaining_events(&orphaned, notes);
    }

    /// Cancels wishes, turns and replies whose messages are all deleted. A question in flight continues with the deleted messages. If nothing is left
    /// to answer after its YES, no statement follows (docs/design/gate.md G-24), and its turn continues to its end, even if more messages are
    /// deleted. `present` are the deleted messages that were in the window. A reply may answer messages that have left the window.
    fn cancel_replies_to_deleted(&mut self, deleted: &[Seq], present: &[Seq], notes: &mut Vec<Output>) {
        let Self { window, gates, turns: Turns { selected, floor, late, .. }, .. } = self;
        let has_only_deleted = |companion: &CompanionId, cursor: Seq, upto: Seq| {
            present.iter().any(|seq| *seq > cursor && *seq <= upto)
                && window.buffer(companion, cursor).next().is_none_or(|first| first.seq > upto)
        };
        let mut dropped = Vec::new();
        for (companion, gate) in gates.iter_mut() {
            let cursor = gate.cursor;
            let wish = gate.wish.take_if(|wish| has_only_deleted(companion, cursor, wish.upto));
            let selected = selected.take_if(|selected| {
                selected.candidate.companion == *companion && has_only_deleted(companion, cursor, selected.selection.opened)
            });
            if wish.is_some() || selected.is_some() {
                dropped.push((companion.clone(), None));
            }
        }
        let mut has_nothing_left = |floor: &mut OwedReply| {
            let has_nothing_left = are_all_deleted(&floor.messages, deleted);
            floor.is_spoilt |= floor.messages.iter().any(|seq| deleted.contains(seq));
            floor.messages.retain(|seq| !deleted.contains(seq));
            if has_nothing_left {
                dropped.push((floor.companion.clone(), Some(floor.ticket)));
            }
            has_nothing_left
        };
        floor.take_if(|floor| has_nothing_left(floor));
        late.retain_mut(|late| !has_nothing_left(late));
        let without_reply = dropped.iter().filter(|(_, ticket)| ticket.is_none());
        self.submit_listening_for(without_reply.map(|(companion, _)| companion));
        for (companion, ticket) in dropped {
            notes.push(Output::Dropped { companion, ticket });
            notes.extend(ticket.map(|ticket| Output::Cancel { ticket }));
        }
    }

    pub(super) fn apply_paused(&mut self, target: Option<&CompanionId>, paused: bool, notes: &mut Vec<Output>) {
        for (companion, gate) in self.gates.iter_mut() {
            if target.is_some_and(|target| target != companion) {
                continue;
            }
            gate.paused = paused;
            if paused {
                cancel_lull(companion, gate, notes);
                if let Some(evaluation) = gate.evaluation.take() {
                    notes.push(Output::Cancel { ticket: evaluation.ticket });
                }
                gate.wish = None;
                gate.silence_at = None;
                // The companion declines the events that it had to acknowledge with a journaled decision.
                gate.waiting = gate.waiting.filter(|waiting| waiting.trigger.acknowledges_events());
                gate.back_off = None;
            }
        }
        // A paused companion does not vote and does not take its turn.
        let silenced: Vec<_> = self.gates.iter().filter(|(_, gate)| gate.paused).map(|(id, _)| id.clone()).collect();
        self.submit_listening_for(silenced.iter());
        let lost_turn = self.turns.selected.take_if(|turn| silenced.contains(&turn.candidate.companion));
        if let Some(turn) = lost_turn.filter(|turn| turn.candidate.trigger.acknowledges_events()) {
            self.restore_event(&turn.candidate.companion);
        }
    }

    /// Cancels the timers, questions and replies of one companion when it leaves, or of all when the channel is cleared.
    pub(super) fn cancel_activity(&mut self, target: Option<&CompanionId>, notes: &mut Vec<Output>) {
        let is_target = |companion: &CompanionId| target.is_none_or(|target| target == companion);
        for (companion, gate) in self.gates.iter_mut().filter(|(companion, _)| is_target(companion)) {
            cancel_lull(companion, gate, notes);
            if let Some(evaluation) = gate.evaluation.take() {
                notes.push(Output::Cancel { ticket: evaluation.ticket });
            }
        }
        if let Some(floor) = self.turns.floor.take_if(|floor| is_target(&floor.companion)) {
            notes.push(Output::Cancel { ticket: floor.ticket });
        }
        self.turns.selected.take_if(|turn| is_target(&turn.candidate.companion));
        if target.is_none() {
            notes.extend(self.turns.late.drain(..).map(|late| Output::Cancel { ticket: late.ticket }));
            if let Some(PostedStatement { judgement: Judgement::Asked(ticket), .. }) = self.turns.posted.take() {
                notes.push(Output::Cancel { ticket });
            }
            self.turns.rounds.clear();
            self.turns.held.clear();
            self.closing.recent_statements.clear();
            self.closing.tally =
                Tally { newest_human: self.closing.tally.newest_human, opened: self.position.handled, ..Tally::default() };
        }
    }
}

/// Whether a message is too old to be answered. Such a message fires no trigger, counts nothing, and settles as soon as it is handled.
pub(super) fn is_too_late(now: Moment, said_at: Moment, is_address: bool, rules: &Rules<'_>) -> bool {
    let age = now.since(said_at);
    // Nearly all messages have the age 0.
    !age.is_zero() && age > rules.gate.stale_after() && !(is_address && age < rules.gate.stale_address_after())
}

/// Matches a message by a person, or by an admitted foreign bot, against the table of triggers (docs/design/gate.md G-4). The first matching row
/// counts.
#[expect(clippy::too_many_arguments, reason = "each argument is one thing that a row looks at")]
fn match_triggers(
    companion: &CompanionId,
    gate: &mut Gate,
    seq: Seq,
    message: &Message,
    now: Moment,
    policy: &InterjectionPolicy,
    in_call: bool,
    notes: &mut Vec<Output>,
) {
    gate.message_counter += 1;
    let is_voice = message.modality == Modality::Voice;
    let fired = |trigger, check, urgent| Waiting { trigger, message: seq, check, urgent };
    if message.address.includes(companion) {
        gate.fire(fired(Trigger::DirectAddress, Check::Unsettled, message.from.role == Role::Person));
    } else if gate.is_interjection_due() {
        gate.fire(fired(Trigger::Interjection, Check::Counter, false));
    } else if is_voice && message.ends_lull_for(companion) {
        gate.fire(fired(Trigger::Lull, Check::Unsettled, false));
    } else if is_voice && in_call {
        // The message waits for the end of the voice lull.
    } else {
        let timeout = if is_voice { policy.voice_lull_timeout } else { policy.text_lull_timeout };
        arm_lull(companion, gate, now + timeout, notes);
    }
}
