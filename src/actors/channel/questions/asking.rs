//! Asks a companion whether it wants to speak.

use tokio::time::Instant;

use super::super::channel_context::ChannelContext;
use super::Call;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::DecisionRequest;
use crate::actors::messages::models::CallId;
use crate::actors::messages::reply::{Dropped, Reply};
use crate::actors::runtime::actor_keys::CompanionKey;
use crate::domain::conversation::Conversation;
use crate::domain::id::{Seq, Ticket};
use crate::domain::priority::Priority;
use crate::domain::prompt::PromptInput;
use crate::domain::window;

/// Hands a question to its companion, and returns its call. `None`: the question is closed, or the companion is external. That one was
/// notified when the round was published, and the round's deadline limits how long it can take.
pub(super) fn ask(
    ticket: Ticket,
    deadline: Instant,
    is_repeat: bool,
    conversation: &Conversation,
    channel: &ChannelContext,
) -> Option<Call> {
    let (companion, evaluation) = conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket)?;
    conversation.gate(companion).filter(|gate| !gate.external)?;
    let tell = channel.tell();
    let (call, lost) = (Call::default(), tell.clone());
    let arrived = call.clone();
    let arrival = Reply::new(move |asked: Result<CallId, Dropped>| match asked {
        Ok(call) => drop(arrived.set(call)),
        Err(Dropped) => lost(ChannelMessage::Lost { ticket }),
    });
    let input = channel.source(move |conversation| input(ticket, conversation));
    let modality = conversation.window().get(evaluation.message).map(|entry| entry.message.modality);
    let priority = Priority::of(evaluation.trigger, modality.unwrap_or_default());
    let channel_key = channel.key.clone();
    let companion = CompanionKey(channel_key.guild.clone(), companion.clone());
    let asking = DecisionRequest { channel_key, ticket, priority, deadline, is_repeat, input, tell, arrival };
    // If the companion is not running, the question is dropped. The drop reports it as lost, and it is asked again.
    match channel.context.directory.find(&companion) {
        Some(actor) => drop(actor.cast(asking)),
        None => drop(asking),
    }
    Some(call)
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
