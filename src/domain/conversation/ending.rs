//! Decides when a conversation ends: closing stages, the number of turns, and repetition (docs/design/closing.md C-1 to C-15).

use super::super::message::{Message, Role};
use super::super::repetition;
use super::apply::cancel_lull;
use super::*;
use crate::settings::repetition::Judge;

/// The number of the channel's newest messages that are judged for repetition (docs/design/closing.md C-9).
pub const JUDGED_MESSAGES: usize = 5;

/// The progress of the repetition judgement of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Judgement {
    /// In its round nobody was asked because another companion had spoken.
    NotNeeded,
    Due,
    /// The side model was asked.
    Asked(Ticket),
    Given,
}

impl Conversation {
    /// Changes the stage of a companion, if it differs. A companion that becomes terminal settles all its unsettled messages. If a human addressed it
    /// after the round opened, it is opened again at once instead.
    pub(super) fn change_stage(
        &mut self,
        companion: &CompanionId,
        to: Stage,
        cause: Cause,
        opened: Seq,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        let Some(from) = self.gates.get(companion).map(|gate| gate.stage).filter(|from| *from != to) else { return };
        self.record(Event::StageChanged { companion: companion.clone(), from, to, cause }, world, out);
        if to != Stage::Terminal {
            return;
        }
        let calls = |message: &Message| message.from.role == Role::Person && message.address.includes(companion);
        if self.buffer(companion).any(|entry| entry.seq > opened && calls(&entry.message)) {
            let (from, to) = (Stage::Terminal, Stage::None);
            self.record(Event::StageChanged { companion: companion.clone(), from, to, cause: Cause::DirectAddress }, world, out);
        } else if self.buffer(companion).next().is_some() {
            self.settle_all(vec![companion.clone()], Reason::Closed, world, out);
        }
    }

    /// A statement was posted: checks the number of turns, and judges the last messages for repetition if the statement's round requires it.
    pub(super) fn assess_statement(&mut self, world: &mut World<'_>, out: &mut Vec<Output>) {
        let Some(PostedStatement { opened, message, judgement, .. }) = self.spoken.clone() else { return };
        if matches!(judgement, Judgement::Asked(_) | Judgement::Given) {
            return;
        }
        if world.rules.turn_taking.max_turns.is_some_and(|most| self.tally.turns >= most) {
            for companion in self.gates.keys().cloned().collect::<Vec<_>>() {
                self.change_stage(&companion, Stage::Terminal, Cause::MaxTurns, opened, world, out);
            }
        }
        let texts = self.window.newest_texts(JUDGED_MESSAGES);
        if judgement == Judgement::NotNeeded || !world.rules.repetition.enabled || texts.len() < JUDGED_MESSAGES {
            return;
        }
        // While no tokens may be used, only the lexical judge runs.
        let judge = world.exhausted_token_budget(self.clock).map_or(world.rules.repetition.judge, |_| Judge::Lexical);
        let score = if judge == Judge::Model { 0.0 } else { repetition::lexical(&texts) };
        if judge == Judge::Model || judge == Judge::Both && score > repetition::THRESHOLD {
            self.record(Event::RepetitionAsked { ticket: Ticket(self.tickets.0 + 1), message }, world, out);
        } else {
            self.record_judgement(message, opened, score, None, world, out);
        }
    }

    /// The side model has judged. Returns whether the judgement was awaited.
    pub(super) fn judge(
        &mut self,
        ticket: Ticket,
        score: f64,
        mut call: Option<Box<Call>>,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) -> bool {
        let is_awaited = |spoken: &&PostedStatement| spoken.judgement == Judgement::Asked(ticket);
        let Some(PostedStatement { message, opened, is_spoilt, .. }) = self.spoken.as_ref().filter(is_awaited) else {
            return false;
        };
        let (message, opened) = (*message, *opened);
        // Words about a message that was deleted in the meantime are not stored.
        if let Some(call) = call.as_mut().filter(|_| *is_spoilt) {
            call.answer = Arc::from("");
        }
        world.count_tokens(call.as_deref(), self.clock);
        self.record_judgement(message, opened, score, call, world, out);
        true
    }

    fn record_judgement(
        &mut self,
        message: Seq,
        opened: Seq,
        score: f64,
        call: Option<Box<Call>>,
        world: &mut World<'_>,
        out: &mut Vec<Output>,
    ) {
        let detections = if score > repetition::THRESHOLD { self.tally.detections.saturating_add(1) } else { 0 };
        self.record(Event::RepetitionJudged { message, score, detections, call }, world, out);
        let forced = Stage::forced_by(detections);
        for companion in self.gates.keys().cloned().collect::<Vec<_>>() {
            if self.gates[&companion].stage < forced {
                self.change_stage(&companion, forced, Cause::Repetition, opened, world, out);
            }
        }
    }

    /// Whether a message at `now` begins a new episode.
    pub(super) fn begins_episode(&self, now: Moment, rules: Rules<'_>) -> bool {
        self.episode.is_none_or(|episode| now.since(episode.last_at) >= rules.closing.episode_idle())
    }

    pub(super) fn apply_stage(&mut self, companion: &CompanionId, to: Stage, notes: &mut Vec<Output>) {
        let Some(gate) = self.gates.get_mut(companion) else { return };
        if gate.is_closed() && to != Stage::Terminal {
            self.tally.turns = 0;
        }
        gate.stage = to;
        gate.heard_closed = 0;
        if to == Stage::Terminal {
            cancel_lull(companion, gate, notes);
        }
    }

    pub(super) fn apply_judged(&mut self, score: f64, detections: u32) {
        self.tally.detections = detections;
        self.tally.repetition = (score * 1000.0).round() as u32;
        if let Some(spoken) = &mut self.spoken {
            spoken.judgement = Judgement::Given;
        }
    }
}

/// Why a message sets the stage of a companion back to none, if it does.
pub(super) fn reopening_cause(
    companion: &CompanionId,
    gate: &Gate,
    message: &Message,
    begins_episode: bool,
    rules: Rules<'_>,
) -> Option<Cause> {
    if gate.stage != Stage::None && begins_episode {
        return Some(Cause::NewEpisode);
    }
    if !gate.is_closed() || message.from.role != Role::Person {
        return None;
    }
    if message.address.includes(companion) {
        return Some(Cause::DirectAddress);
    }
    (gate.heard_closed + 1 >= rules.closing.reopen_after).then_some(Cause::ReopenAfter)
}
