//! Decides when a conversation ends: closing stages, the number of turns, and repetition (docs/design/closing.md C-1 to C-15).

use super::super::message::{Message, Role};
use super::super::repetition;
use super::apply::cancel_lull;
use super::*;
use crate::settings::repetition::Judge;

/// The progress of the repetition judgement of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Judgement {
    /// Older snapshots may say that none is needed.
    #[serde(alias = "NotNeeded")]
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

    /// A statement was posted: checks the number of turns, and judges the last statements for repetition.
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
        if !world.rules.repetition.enabled || self.recent_texts().len() < repetition::LEAST_STATEMENTS {
            return;
        }
        // While no tokens may be used, only the lexical judge runs.
        let judge = world.exhausted_token_budget(self.clock).map_or(world.rules.repetition.judge, |_| Judge::Lexical);
        let score = if judge == Judge::Model { 0.0 } else { repetition::lexical(&self.recent_texts()) };
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
        // While the side model judged, the conversation may have reopened. Then the statements before do not count.
        let is_detection = score > repetition::THRESHOLD && !self.recent_statements.is_empty();
        let detections = if is_detection { self.tally.detections.saturating_add(1) } else { 0 };
        let most = if self.did_person_interrupt(call.is_some()) { Stage::Closing } else { Stage::Terminal };
        self.record(Event::RepetitionJudged { message, score, detections, call }, world, out);
        let forced = Stage::forced_by(detections).min(most);
        // A companion that is alone states no stage, so it could not leave a forced one by itself.
        let is_released = detections == 0 && !self.holds_rounds();
        for companion in self.gates.keys().cloned().collect::<Vec<_>>() {
            let stage = self.gates[&companion].stage;
            if stage < forced {
                self.change_stage(&companion, forced, Cause::Repetition, opened, world, out);
            } else if is_released && stage < Stage::Terminal {
                self.change_stage(&companion, Stage::None, Cause::Repetition, opened, world, out);
            }
        }
    }

    /// Whether a person spoke between the statements that were judged. The side model judges all of them, the words a window of them.
    fn did_person_interrupt(&self, is_by_model: bool) -> bool {
        let texts = self.recent_texts();
        let window = if is_by_model { texts.len() } else { repetition::newest(&texts).window };
        self.recent_statements.iter().rev().take(window.saturating_sub(1)).any(|statement| statement.follows_person)
    }

    /// The texts of the newest statements, oldest first.
    fn recent_texts(&self) -> Vec<&str> {
        self.recent_statements.iter().map(|statement| &*statement.message.text).filter(|text| !text.is_empty()).collect()
    }

    /// Adds a statement to those that the next judgement considers.
    pub(super) fn remember_statement(&mut self, seq: Seq, message: Arc<Message>) {
        let follows_person = self.recent_statements.last().is_some_and(|last| last.seq < self.tally.newest_human);
        if self.recent_statements.len() == repetition::MOST_STATEMENTS {
            self.recent_statements.remove(0);
        }
        self.recent_statements.reserve_exact(1);
        self.recent_statements.push(RecentStatement { seq, message, follows_person });
    }

    pub(super) fn edit_recent_statement(&mut self, seq: Seq, text: &Arc<str>) {
        if let Some(statement) = self.recent_statements.iter_mut().find(|statement| statement.seq == seq) {
            Arc::make_mut(&mut statement.message).text = text.clone();
        }
    }

    pub(super) fn replace_recent_statement(&mut self, seq: Seq, message: &Message) {
        if let Some(statement) = self.recent_statements.iter_mut().find(|statement| statement.seq == seq) {
            statement.message = Arc::new(message.clone());
        }
    }

    /// Drops deleted statements. If a person spoke before one of them, that person spoke before the next one.
    pub(super) fn delete_recent_statements(&mut self, deleted: &[Seq]) {
        let mut follows_person = false;
        self.recent_statements.retain_mut(|statement| {
            statement.follows_person |= follows_person;
            let is_deleted = deleted.contains(&statement.seq);
            follows_person = is_deleted && statement.follows_person;
            !is_deleted
        });
    }

    /// The conversation begins anew: earlier statements and detections do not count any more.
    pub(super) fn forget_repetition(&mut self) {
        self.recent_statements.clear();
        self.tally.detections = 0;
    }

    /// Whether a message at `now` begins a new episode.
    pub(super) fn begins_episode(&self, now: Moment, rules: Rules<'_>) -> bool {
        self.episode.is_none_or(|episode| now.since(episode.last_at) >= rules.closing.episode_idle())
    }

    pub(super) fn apply_stage(&mut self, companion: &CompanionId, to: Stage, notes: &mut Vec<Output>) {
        let Some(gate) = self.gates.get_mut(companion) else { return };
        if gate.is_closed() && to != Stage::Terminal {
            (self.tally.turns, self.tally.opened) = (0, self.handled);
            self.tally.detections = 0;
            self.recent_statements.clear();
        }
        gate.stage = to;
        gate.heard_closed = 0;
        if to == Stage::Terminal {
            cancel_lull(companion, gate, notes);
            // It had not begun to speak.
            self.turn.take_if(|turn| turn.candidate.companion == *companion);
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
