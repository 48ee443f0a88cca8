//! Asks companions whether they want to speak.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tokio::time::Instant;

use super::super::channel_context::ChannelContext;
use super::super::replies::statement_or_pass;
use super::Call;
use crate::actors::companion::answer_or_pass;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::DecisionRequest;
use crate::actors::messages::models::CallId;
use crate::actors::messages::reply::{Dropped, Reply};
use crate::actors::runtime::actor_keys::CompanionKey;
use crate::domain::conversation::Conversation;
use crate::domain::gate::Evaluation;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::policy::gate::DirectAddress;
use crate::domain::priority::Priority;
use crate::domain::prompt::PromptInput;
use crate::domain::trigger::Trigger;

/// The groups of questions among these that can share a call. They belong to one round, are about messages up to the same one, and their companions
/// have the same side model. Each group has two or more questions.
pub(super) fn groups(tickets: &[Ticket], conversation: &Conversation, channel: &ChannelContext) -> Vec<Vec<Ticket>> {
    let mut groups = BTreeMap::<_, Vec<Ticket>>::new();
    for (companion, evaluation) in open_questions(tickets, conversation) {
        let Some(settings) = channel.context.memberships.companion(&channel.key.channel, companion) else { continue };
        let round = conversation.turns().rounds().iter().find(|round| round.awaits(companion)).map(|round| round.message);
        groups.entry((round, evaluation.upto, settings.model.side)).or_default().push(evaluation.ticket);
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}

/// Sends a question to its companion, and returns the call. Questions that share a call go to the first of their companions. `None`: the question is
/// closed, or the companion is external. An external companion was notified when the round was published, and the round's deadline limits its time.
pub(super) fn ask(
    tickets: &[Ticket],
    deadline: Instant,
    is_repeat: bool,
    conversation: &Conversation,
    channel: &ChannelContext,
) -> Option<Call> {
    let asked: Vec<(CompanionId, Ticket)> =
        open_questions(tickets, conversation).map(|(companion, evaluation)| (companion.clone(), evaluation.ticket)).collect();
    let (first, _) = asked.first()?;
    let companion = CompanionKey(channel.key.guild.clone(), first.clone());
    let priority_of = |(_, evaluation): (&CompanionId, &Evaluation)| {
        let modality = conversation.window().get(evaluation.message).map(|entry| entry.message.modality);
        Priority::of(evaluation.trigger, modality.unwrap_or_default())
    };
    let priority = open_questions(tickets, conversation).map(priority_of).max()?;
    let tell = channel.message_sender();
    let (call, lost, lost_tickets) = (Call::default(), tell.clone(), tickets.to_vec());
    let arrived = call.clone();
    let arrival = Reply::new(move |asked: Result<CallId, Dropped>| match asked {
        Ok(call) => drop(arrived.set(call)),
        Err(Dropped) => lost_tickets.into_iter().for_each(|ticket| lost(ChannelMessage::Lost { ticket })),
    });
    let open_tickets = tickets.to_vec();
    let helps_at_risk = channel.context.in_force().safety.crisis;
    let here = channel.clone();
    let input = channel.source(move |conversation| {
        let mut inputs = inputs(&open_tickets, conversation, helps_at_risk)?;
        let (hidden, summary_from) = (here.hidden_upto(), conversation.summary().covers_after());
        inputs.iter_mut().for_each(|(_, input)| input.hide_upto(hidden, summary_from));
        Some(inputs)
    });
    let asking = DecisionRequest { channel_key: channel.key.clone(), asked, priority, deadline, is_repeat, input, tell, arrival };
    // If the companion is not running, the question is dropped. The drop reports it as lost, and it is asked again.
    match channel.context.directory.find(&companion) {
        Some(actor) => drop(actor.cast(asking)),
        None => drop(asking),
    }
    Some(call)
}

/// Makes the main model decide and speak in one call, if `gate.direct_address` says so, the only open question is about a direct address, and no
/// person may be at risk. `None`: the companion must be asked first.
pub(super) fn ask_or_pass(ticket: Ticket, conversation: &Conversation, channel: &ChannelContext) -> Option<Call> {
    let settings = channel.context.in_force();
    let tickets = [ticket];
    let (companion, evaluation) = open_questions(&tickets, conversation).next()?;
    let is_alone = conversation.open_questions().count() == 1
        && conversation.turns().rounds().iter().all(|round| !round.awaits(companion) || round.missing().count() == 1);
    let may_be_at_risk = settings.safety.crisis && conversation.may_be_at_risk(companion, evaluation.upto);
    if may_be_at_risk
        || settings.gate.direct_address != DirectAddress::AnswerOrPass
        || evaluation.trigger != Trigger::DirectAddress
        || !is_alone
    {
        return None;
    }
    let modality = conversation.window().get(evaluation.message).map(|entry| entry.message.modality);
    let here = channel.clone();
    let statement = channel.source(move |conversation| {
        let (companion, evaluation) = conversation.open_questions().find(|(_, evaluation)| evaluation.ticket == ticket)?;
        Some(statement_or_pass(companion, evaluation, conversation)?.hidden_upto(here.hidden_upto()))
    });
    let call = answer_or_pass::ask(answer_or_pass::Question {
        channel_key: channel.key.clone(),
        companion: companion.clone(),
        ticket,
        priority: Priority::of(evaluation.trigger, modality.unwrap_or_default()),
        statement,
        tell: channel.message_sender(),
        context: channel.context.clone(),
    })?;
    Some(Call::new(OnceLock::from(call)))
}

/// The open questions among these, in the order of the ids of their companions. Excludes external companions.
fn open_questions<'a>(
    tickets: &'a [Ticket],
    conversation: &'a Conversation,
) -> impl Iterator<Item = (&'a CompanionId, &'a Evaluation)> {
    let is_asked = |companion: &CompanionId| conversation.gate(companion).is_some_and(|gate| !gate.external);
    let open = conversation.open_questions();
    open.filter(move |(companion, evaluation)| tickets.contains(&evaluation.ticket) && is_asked(companion))
}

/// The prompt input of each companion whose question is open. `None`: all are closed.
fn inputs(tickets: &[Ticket], conversation: &Conversation, helps_at_risk: bool) -> Option<Vec<(CompanionId, PromptInput)>> {
    let inputs = open_questions(tickets, conversation).filter_map(|(companion, evaluation)| {
        let mut input = conversation.prompt_input(evaluation.ticket)?;
        input.about_risk &= helps_at_risk;
        Some((companion.clone(), input))
    });
    Some(inputs.collect()).filter(|inputs: &Vec<_>| !inputs.is_empty())
}
