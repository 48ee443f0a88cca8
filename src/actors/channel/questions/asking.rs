//! Asks a companion whether it wants to speak.

use super::super::channel_context::ChannelContext;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{CompanionMessage, DecisionRequest};
use crate::actors::messages::reply::{Dropped, Reply};
use crate::domain::conversation::Conversation;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::priority::Priority;
use crate::domain::prompt::PromptInput;
use crate::domain::window;

/// Hands a question to its companion, and returns the companion. `None`: the question is closed, or the companion is external. That one was
/// notified when the round was published, and the round's deadline limits how long it can take.
pub(super) fn ask(ticket: Ticket, conversation: &Conversation, channel: &ChannelContext) -> Option<CompanionId> {
    let (companion, evaluation) = conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket)?;
    conversation.gate(companion).filter(|gate| !gate.external)?;
    let tell = channel.tell();
    let lost = tell.clone();
    let arrival = Reply::new(move |arrived: Result<(), Dropped>| {
        if arrived.is_err() {
            // A question that panicked while it was asked would panic again at once.
            let asking_panicked = std::thread::panicking();
            lost(if asking_panicked {
                ChannelMessage::QuestionPanicked { ticket }
            } else {
                ChannelMessage::QuestionLost { ticket }
            });
        }
    });
    let input = channel.source(move |conversation| input(ticket, conversation));
    let modality = conversation.window().get(evaluation.message).map(|entry| entry.message.modality);
    let priority = Priority::of(evaluation.trigger, modality.unwrap_or_default());
    let asking = DecisionRequest { channel_key: channel.key.clone(), ticket, priority, input, tell, arrival };
    // If the companion is not running, the question is dropped. The drop reports it as lost, and it is asked again.
    match channel.companion(companion) {
        Some(actor) => drop(actor.cast(CompanionMessage::Evaluate(Box::new(asking)))),
        None => drop(asking),
    }
    Some(companion.clone())
}

/// What the companion decides by. `None`: the question is closed.
fn input(ticket: Ticket, conversation: &Conversation) -> Option<PromptInput> {
    let (companion, evaluation) = conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket)?;
    let gate = conversation.gate(companion)?;
    let window = conversation.window();
    // The companion's own statements after its cursor need no decision, but the prompt shows them.
    let is_shown = |entry: &&window::Entry| {
        entry.message.is_by(companion) || entry.seq <= evaluation.upto && entry.concerns_gate_of(companion)
    };
    let buffer = window.after(gate.cursor).filter(is_shown).map(window::Entry::said).collect();
    let considered: Vec<Seq> =
        conversation.buffer(companion).map(|entry| entry.seq).take_while(|seq| *seq <= evaluation.upto).collect();
    let triggered_by = window.get(evaluation.message).map(|entry| &entry.message);
    Some(PromptInput {
        trigger: evaluation.trigger,
        stage: gate.stage,
        modality: triggered_by.map(|message| message.modality).unwrap_or_default(),
        message_count: evaluation.message_count,
        minutes: conversation.minutes_of_silence(),
        speaker: triggered_by.map(|message| message.from.name.clone()),
        is_repetitive: conversation.warns_of_repetition(evaluation.trigger, &considered),
        summary: conversation.summary().text.clone(),
        recent: window.recent(gate.cursor).map(window::Entry::said).collect(),
        buffer,
    })
}
