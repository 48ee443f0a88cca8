//! Drafts a message for a person, who edits and sends it (docs/design/speaking.md S-23).

use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;

use super::reply::{MODERATION_TIMEOUT, Source, lazy_request};
use crate::actors::messages::companion::Statement;
use crate::actors::messages::models::Outcome;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Address;
use crate::domain::event::MODERATED;
use crate::domain::id::CompanionId;
use crate::domain::priority::Priority;
use crate::domain::raw_answer::{self, Nothing, Speakers};
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{LazyRequest, ModelRole};
use crate::settings::safety::ModerationFails;

/// Asks the main model of a companion. Returns the request, its outcome, and the text or a stable error code. `None`: the companion is not there.
pub async fn draft(
    statement: Statement,
    person: &Arc<str>,
    companion: &CompanionId,
    channel_key: &ChannelKey,
    context: &Arc<ActorContext>,
) -> Option<(Arc<LazyRequest>, Outcome, Result<String, Arc<str>>)> {
    let (memberships, channel) = (&context.memberships, &channel_key.channel);
    let settings = memberships.companion(channel, companion)?;
    let present = memberships.present(channel).into_keys().filter_map(|id| memberships.companion(channel, &id));
    let speakers = Speakers::new(person, present.map(|companion| companion.name));
    let source = Source {
        channel_key: channel_key.clone(),
        at_work: Address::Channel(channel.clone()),
        statement: Arc::new(move || {
            let statement = statement.clone();
            Box::pin(async move { Some(statement) }) as Pin<Box<dyn Future<Output = Option<Statement>> + Send>>
        }),
        context: context.clone(),
    };
    let request = lazy_request(&source, &settings, Arc::new(Mutex::new(Speakers::new(&settings.name, []))), "");
    let pool = &context.pool;
    let outcome = pool.answer(request.clone(), Priority::DirectAddress, pool.deadline(ModelRole::Main), None).await;
    let text = match &outcome.result {
        Ok(answer) => raw_answer::statement(&answer.text(), speakers).words.map_err(Nothing::code),
        Err(error) => Err(error.code()),
    };
    let text = match (text, &context.moderation) {
        (Ok(words), Some(moderation)) => match moderation.refusal_of(&words, MODERATION_TIMEOUT).await {
            Ok(None) => Ok(words),
            Err(_) if matches!(context.in_force().safety.moderation_fails, ModerationFails::Open) => Ok(words),
            _ => Err(MODERATED),
        },
        (text, _) => text,
    };
    Some((request, outcome, text.map_err(Arc::from)))
}
