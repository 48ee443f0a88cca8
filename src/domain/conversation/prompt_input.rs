//! The input of a decision prompt.

use super::Conversation;
use crate::id::Ticket;
use crate::prompt::{PromptInput, Said};
use crate::window;

impl Conversation {
    /// The input for the prompt of an open question. `None`: the question is closed.
    pub fn prompt_input(&self, ticket: Ticket) -> Option<PromptInput> {
        let (companion, evaluation) = self.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket)?;
        let gate = self.gate(companion)?;
        let window = self.window();
        // The companion's own statements after its cursor need no decision, but the prompt shows them.
        let is_shown = |entry: &&window::Entry| {
            entry.message.is_by(companion) || entry.seq <= evaluation.upto && entry.concerns_gate_of(companion)
        };
        let buffer = window.after(gate.cursor).filter(is_shown).map(|entry| self.said(entry)).collect();
        let considered = self.considered(companion, evaluation);
        let triggered_by = window.get(evaluation.message).map(|entry| &entry.message);
        Some(PromptInput {
            trigger: evaluation.trigger,
            stage: self.stage_in_prompt(companion, evaluation.trigger, &considered),
            modality: triggered_by.map(|message| message.modality).unwrap_or_default(),
            message_count: evaluation.message_count,
            minutes: self.minutes_of_silence(),
            speaker: triggered_by.map(|message| message.from.name.clone()),
            is_repetitive: self.warns_of_repetition(evaluation.trigger, &considered),
            summary: self.summary().text.clone(),
            recent: window.recent(gate.cursor).map(window::Entry::said).collect(),
            buffer,
            filtered: self.filtered.clone(),
            about_risk: self.may_be_at_risk(companion, evaluation.upto),
        })
    }

    /// A new message as prompts show it. It has no `reply_to` if the message that it replies to was cleared or has expired.
    pub fn said(&self, entry: &window::Entry) -> Said {
        let said = entry.said();
        Said { reply_to: said.reply_to.filter(|seq| *seq > self.summary().begins_after()), ..said }
    }
}
