//! Makes the side model judge whether companions repeat themselves (docs/design/closing.md C-13).

use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use super::super::channel_context::ChannelContext;
use super::{Call, is_judgement_open};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::models::Question;
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::conversation::Conversation;
use crate::domain::id::{Seq, Ticket};
use crate::domain::message::{Message, Modality};
use crate::domain::priority::Priority;
use crate::domain::prompt;
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::domain::trigger::Trigger;
use crate::ports::language_model::{LazyRequest, ModelRole, Request};

/// Asks how much the last statements repeat each other. `None`: the judgement is no longer needed.
pub(super) fn ask(ticket: Ticket, deadline: Instant, conversation: &Conversation, channel: &ChannelContext) -> Option<Call> {
    if !is_judgement_open(ticket, conversation) {
        return None;
    }
    let modality = conversation.judged_statements().last().map_or(Modality::Text, |(_, message)| message.modality);
    let statements = channel.source(move |conversation| {
        let is_open = is_judgement_open(ticket, conversation);
        let judged = || conversation.judged_statements().map(|(seq, message)| (seq, message.clone()));
        is_open.then(|| judged().unzip::<_, _, Vec<Seq>, Vec<Arc<Message>>>())
    });
    let (pool, most) = (&channel.context.pool, channel.context.settings.prompt.max_side_answer_tokens);
    let base_request = Request::new(ModelRole::Side, channel.key.guild.clone(), most);
    let (id, context) = (channel.key.channel.clone(), channel.context.clone());
    let base = base_request.clone();
    let request = LazyRequest::later(base, move || {
        let (statements, base_request) = (statements(), base_request.clone());
        let (id, context) = (id.clone(), context.clone());
        async move {
            let (numbers, statements) = statements.await?;
            let _at_work = at_work(Address::Channel(id));
            let prompt = prompt::judgement(&statements, &context.pool.fitting(&context.settings.prompt, &base_request, 1));
            let newest = Line::newest_of(statements.iter().map(|message| &**message));
            let context = QuestionContext { purpose: Purpose::Judgement, newest };
            let shown = numbers.first().copied().zip(numbers.last().copied());
            Some(Request { shown, ..base_request.asking(prompt) }.with(context))
        }
    });
    let (actor, asked) = (channel.actor.clone(), request.clone());
    let call = pool.ask(Question {
        request,
        // Urgent, because the next round waits for it.
        priority: Priority::of(Trigger::Turn, modality),
        deadline,
        drafts: None,
        reply_to: Box::new(move |outcome| {
            // A channel that has stopped asks again when it restarts.
            let _ = actor.cast(ChannelMessage::Answered { ticket, asked, outcome: Box::new(outcome) });
        }),
    });
    Some(Arc::new(OnceLock::from(call)))
}
