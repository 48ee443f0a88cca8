//! Read access to the state of a conversation.

use super::super::gate::Evaluation;
use super::super::message::Message;
use super::super::repetition;
use super::super::window::Entry;
use super::*;

/// What a companion is doing, as shown to people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It reads the messages.
    #[default]
    Listening,
    /// A question whether it wants to speak is in flight.
    Asked,
    /// It wants to speak, and waits for the votes of others or for the floor.
    WantsToSpeak,
    /// It was selected, and waits for `turn_delay`.
    WaitingItsTurn,
    /// It has the floor, or writes a late statement.
    Speaking,
    /// It is about to end the conversation.
    Closing,
    /// It has ended the conversation.
    Closed,
    /// An operator paused it.
    Paused,
    /// Its question got no answer, and is asked again later.
    BackOff,
}

/// The state of one companion in a conversation.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub companion: &'a CompanionId,
    /// Its gate in this channel.
    pub gate: &'a Gate,
    /// Its activity, as shown to people.
    pub doing: Doing,
}

impl Conversation {
    /// The companions in the channel, by id.
    pub fn companions(&self) -> impl Iterator<Item = View<'_>> {
        self.gates.iter().map(|(companion, gate)| View { companion, gate, doing: self.doing(companion, gate) })
    }

    /// The gate of one companion, if it is in the channel.
    pub fn gate(&self, companion: &CompanionId) -> Option<&Gate> {
        self.gates.get(companion)
    }

    /// The messages that one companion has not settled, oldest first.
    pub fn buffer<'a>(&'a self, companion: &'a CompanionId) -> impl DoubleEndedIterator<Item = &'a Entry> {
        let cursor = self.gates.get(companion).map_or(self.position.handled, |gate| gate.cursor);
        self.window.buffer(companion, cursor)
    }

    /// The texts that filters of endpoints refuse. Prompts omit them.
    pub const fn filtered(&self) -> &Filtered {
        &self.filtered
    }

    /// The channel's newest messages.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The voice call.
    pub fn voice(&self) -> &VoiceState {
        &self.voice
    }

    /// The turns in progress.
    pub fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The counters that limit endless conversations.
    pub fn tally(&self) -> Tally {
        self.closing.tally
    }

    /// Whether a prompt for this trigger and these messages warns of repetition (docs/design/closing.md C-15).
    pub fn warns_of_repetition(&self, trigger: Trigger, messages: &[Seq]) -> bool {
        self.closing.tally.detections > 0 && !self.window.answers_person(trigger, messages)
    }

    /// The closing stage that a prompt for this trigger and these messages shows. A stage that repetition forced is not shown if the companion
    /// answers a person.
    pub fn stage_in_prompt(&self, companion: &CompanionId, trigger: Trigger, messages: &[Seq]) -> Stage {
        let stage = self.gate(companion).map(|gate| gate.stage).unwrap_or_default();
        let is_named = stage > self.closing.tally.forced || !self.window.answers_person(trigger, messages);
        if is_named { stage } else { Stage::None }
    }

    /// The messages that a question of this companion is about.
    pub(super) fn considered(&self, companion: &CompanionId, evaluation: &Evaluation) -> Vec<Seq> {
        self.buffer(companion).map(|entry| entry.seq).take_while(|seq| *seq <= evaluation.upto).collect()
    }

    /// The statements of the repetition question in flight, with their numbers, oldest first. Deleted ones are left out.
    pub fn judged_statements(&self) -> impl DoubleEndedIterator<Item = (Seq, &Arc<Message>)> {
        let newest = self.turns.open_judgement().map_or(Seq::NONE, |(_, newest)| newest);
        let statements = &self.closing.recent_statements;
        let upto = statements.partition_point(|statement| statement.seq <= newest);
        let judged = &statements[upto.saturating_sub(repetition::MOST_STATEMENTS)..upto];
        judged.iter().map(|statement| (statement.seq, &statement.message))
    }

    /// The current episode; none before the first message.
    pub fn episode(&self) -> Option<Episode> {
        self.closing.episode
    }

    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The number of the newest inbound event that was handled.
    pub fn handled(&self) -> Seq {
        self.position.handled
    }

    /// The newest moment that the conversation has seen.
    pub fn clock(&self) -> Moment {
        self.position.clock
    }

    /// The questions in flight, by the id of their companion.
    pub fn open_questions(&self) -> impl Iterator<Item = (&CompanionId, &super::super::gate::Evaluation)> {
        self.gates.iter().filter_map(|(companion, gate)| Some((companion, gate.evaluation.as_ref()?)))
    }

    fn doing(&self, companion: &CompanionId, gate: &Gate) -> Doing {
        if self.turns.owed_replies().any(|floor| floor.companion == *companion) {
            Doing::Speaking
        } else if self.turns.is_selected(companion) {
            Doing::WaitingItsTurn
        } else if gate.paused {
            Doing::Paused
        } else if gate.evaluation.is_some() {
            Doing::Asked
        } else if gate.wish.is_some() {
            Doing::WantsToSpeak
        } else if gate.retry_at().is_some() {
            Doing::BackOff
        } else if gate.is_closed() {
            Doing::Closed
        } else if gate.stage != Stage::None {
            Doing::Closing
        } else {
            Doing::Listening
        }
    }
}
