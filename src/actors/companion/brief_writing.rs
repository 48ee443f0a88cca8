//! Makes the side model write the briefs of long personas, and stores them (docs/design/gate.md G-32).
//!
//! A brief is requested with the first decision that needs it, in a task of its own, so no decision waits for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::asker;
use super::briefs::Attempt;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{DecisionRequest, Tell};
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::id::{GuildId, Ward};
use crate::domain::priority::Priority;
use crate::domain::prompt;
use crate::domain::prompt::room::{decision_room, tokens};
use crate::domain::prose::clean_brief;
use crate::domain::question_context::{Purpose, QuestionContext};
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::{BriefRecord, encode};
use crate::ports::language_model::{LazyRequest, ModelRole, Request};
use crate::ports::store::Write;
use crate::ports::store::key::Key;
use crate::settings::companion::{Companion as Settings, MAX_BRIEF_BYTES};
use crate::telemetry::plain::Plain;

/// The configured brief of a companion, or else the one that the side model wrote, if the companion needs one and it exists.
pub(super) fn brief_of(context: &ActorContext, companion: &Settings) -> Option<Arc<str>> {
    let made = || needs_brief(companion, context).then(|| context.briefs.of(companion.persona.trim())).flatten();
    companion.brief.clone().or_else(made)
}

/// Requests the brief of a companion that needs one, unless it exists, is being written, or failed too recently.
pub(super) fn write_if_missing(context: &Arc<ActorContext>, companion: &Settings, asking: &DecisionRequest) {
    if !needs_brief(companion, context) {
        return;
    }
    let Some(attempt) = context.briefs.begin(companion.persona.trim()) else { return };
    let (context, companion) = (context.clone(), companion.clone());
    let (guild, tell) = (asking.channel_key.guild.clone(), asking.tell.clone());
    tokio::spawn(async move {
        let Some(text) = ask(&context, &companion, guild, &tell).await else {
            let companion = Plain(companion.id.as_str());
            tracing::warn!(%companion, "the side model made no brief of a long persona; decisions see its beginning, and it is asked again after a back-off");
            return;
        };
        if keep(&context, attempt, text).await {
            tracing::info!(companion = %Plain(companion.id.as_str()), "the side model made the brief of a long persona");
        }
    });
}

/// Reads the stored briefs, and removes those that no companion needs any more. Requires a running writer.
///
/// # Errors
/// Returns an error if the briefs cannot be read.
pub async fn load(context: &ActorContext) -> Result<(), ReadError> {
    let stored = Reader::new(&*context.store).briefs().await?;
    let needed = needed(context);
    let unneeded: Vec<Key> = stored.keys().filter(|key| !needed.contains(key)).cloned().collect();
    for (key, record) in stored {
        if let Some(record) = record.filter(|_| needed.contains(&key)) {
            context.briefs.put(key, record.text);
        }
    }
    context.briefs.retain(|key| needed.contains(key));
    if !unneeded.is_empty() && write_meta(context, Ward(0), unneeded.into_iter().map(Write::Remove).collect()).await.is_err() {
        tracing::warn!("briefs of former personas could not be removed; it is tried again at the next start or reload");
    }
    Ok(())
}

/// Whether no brief is configured, decisions cannot show the whole persona, and the side model has an endpoint.
fn needs_brief(companion: &Settings, context: &ActorContext) -> bool {
    companion.brief.is_none()
        && tokens(companion.persona.trim()) > decision_room(&context.in_force().prompt).persona
        && context.pool.settings().served(ModelRole::Side, &companion.model.side).endpoint.is_some()
}

/// The keys of the briefs that the configured companions need.
fn needed(context: &ActorContext) -> BTreeSet<Key> {
    let companions = context.memberships.companions();
    let needing = companions.values().filter(|companion| needs_brief(companion, context));
    needing.map(|companion| key::brief(companion.persona.trim())).collect()
}

/// Requests the brief from the companion's side model. The channel whose question needs the brief counts the usage.
async fn ask(context: &ActorContext, companion: &Settings, guild: GuildId, tell: &Tell) -> Option<String> {
    let _permit = context.pool.summary_permit(&guild, context.recorder.instruments()).await?;
    let templates = &context.settings.prompt;
    let prompt = prompt::brief(&companion.persona, templates);
    let request = Request {
        model: companion.model.side.clone(),
        companion: Some(asker(companion)),
        ..Request::new(ModelRole::Side, guild, templates.max_side_answer_tokens)
    };
    let context_of_question = QuestionContext { purpose: Purpose::Brief, newest: Vec::new() };
    let asked = Arc::new(LazyRequest::from(request.asking(prompt).with(context_of_question)));
    let outcome = context.pool.answer(asked.clone(), Priority::Summary, context.pool.deadline(ModelRole::Side), None).await;
    let text = outcome.result.as_ref().ok().and_then(|answer| clean_brief(&answer.text(), MAX_BRIEF_BYTES));
    tell(ChannelMessage::Unclaimed { asked, outcome: Box::new(outcome) });
    text
}

/// Stores a new brief, unless the persona has changed in the meantime. Returns whether it was stored in memory.
async fn keep(context: &ActorContext, attempt: Attempt, text: String) -> bool {
    if !needed(context).contains(&attempt.key) {
        return false;
    }
    let text: Arc<str> = text.into();
    let record = BriefRecord { text: text.clone(), at: context.clock.now() };
    let put = Write::Put(attempt.key.clone(), encode(&record));
    attempt.finish(text);
    if write_meta(context, Ward(0), vec![put]).await.is_err() {
        tracing::warn!("the brief of a persona could not be stored; it is made again after the next start");
    }
    true
}
