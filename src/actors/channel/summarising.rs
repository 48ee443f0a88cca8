//! Makes the side model refresh the rolling summary, in a task of its own, at the lowest priority (docs/design/gate.md G-31).

use std::sync::Arc;

use parking_lot::Mutex;
use ractor::ActorStatus;

use super::channel_context::ChannelContext;
use super::traces;
use crate::actors::companion::history;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::HistoryRange;
use crate::actors::messages::models::Outcome;
use crate::domain::answer_end::ENDLESS;
use crate::domain::conversation::SummaryLimits;
use crate::domain::filter::{Asked, Filtered, Search};
use crate::domain::id::Seq;
use crate::domain::priority::Priority;
use crate::domain::prompt::{self, Said};
use crate::domain::prose::clean_summary;
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{LazyRequest, ModelRole, Request};
use crate::settings::prompt::Prompt;

/// When the rolling summary is due: after `prompt.summary_after` messages, or when the messages take a quarter of a statement's prompt. `room` is the
/// size of that prompt that the models of the channel allow.
pub(super) fn summary_limits(prompt: &Prompt, room: Option<usize>) -> SummaryLimits {
    let statement = room.map_or(prompt.statement_tokens, |room| prompt.statement_tokens.min(room));
    SummaryLimits { messages: prompt.summary_after, tokens: statement as u64 / 4 }
}

/// The result of a summary request.
struct Written {
    upto: Seq,
    messages: Vec<Said>,
    outcome: Option<Box<Outcome>>,
    is_partial: bool,
}

/// Requests a summary of the events after one number and up to another. The result is [`ChannelMessage::Summarised`].
pub(super) fn summarise(after: Seq, upto: Seq, channel: &ChannelContext) {
    let channel = channel.clone();
    tokio::spawn(async move {
        let permit = channel.context.pool.summary_permit(&channel.key.guild, channel.context.recorder.instruments()).await;
        // A channel that has stopped summarises again when it restarts.
        if channel.actor.get_status() >= ActorStatus::Stopping {
            return;
        }
        let range = HistoryRange { after, before: upto.next() };
        // Boxed, so that the tasks that still wait for a permit do not reserve memory for this future.
        let written = match permit {
            Some(_) => Box::pin(ask_for_summary(range, &channel)).await,
            None => None,
        };
        let nothing = Written { upto, messages: Vec::new(), outcome: None, is_partial: false };
        let Written { upto, messages, outcome, is_partial } = written.unwrap_or(nothing);
        let answer = outcome.as_ref().and_then(|outcome| outcome.result.as_ref().ok());
        let answer = answer.filter(|answer| !is_partial && answer.finish_reason.as_deref() != Some(ENDLESS));
        let talk = messages.iter().map(|said| &*said.message);
        let text = answer.and_then(|answer| clean_summary(&answer.text(), talk)).map(Arc::from);
        let messages = messages.len() as u64;
        let _ = channel.actor.cast(ChannelMessage::Summarised { upto, messages, text, outcome });
    });
}

/// Requests a summary of as many of the oldest messages as fit into the prompt. `None` if the messages cannot be read, or are being redacted.
async fn ask_for_summary(range: HistoryRange, channel: &ChannelContext) -> Option<Written> {
    let ChannelContext { key: channel_key, context, .. } = channel;
    let (pool, templates) = (&context.pool, &context.settings.prompt);
    let base = Request::new(ModelRole::Side, channel_key.guild.clone(), templates.max_side_answer_tokens);
    let covered = Arc::new(Mutex::new(None));
    let search = Arc::new(Mutex::new(Search::new(Asked::Summary, pool.filter_key(&base))));
    let request = LazyRequest::searching(base.clone(), Some(search.clone()), {
        let (channel, covered) = (channel.clone(), covered.clone());
        move || {
            let (channel, covered, search) = (channel.clone(), covered.clone(), search.clone());
            let (range, base) = (range.clone(), base.clone());
            async move {
                let words = channel.context.pool.fitting(&channel.context.settings.prompt, &base, 1);
                let (mut messages, upto, mut previous, filtered) = read(&range, words.summary_tokens, &channel).await?;
                *covered.lock() = Some((upto, messages.clone()));
                search.lock().leave_out_of_summary(&mut messages, &mut previous, &filtered);
                Some(summary_request(&messages, previous.as_deref(), &channel.key, &words))
            }
        }
    });
    // While the journal is being redacted, the request does not occupy the model.
    drop(history::lock(context, channel_key).await?);
    let outcome = pool.answer(request.clone(), Priority::Summary, pool.deadline(ModelRole::Side), None).await;
    let (upto, messages) = covered.lock().take()?;
    // The call belongs to no turn, because it covers all messages that settled since the last summary.
    traces::record_call(None, &request.newest(), &outcome, channel);
    let finding = request.finding(&outcome.result);
    // The prompt lacked messages that may be harmless, so the summary is requested again.
    let is_partial = finding.as_ref().is_some_and(|finding| !finding.doubtful.is_empty());
    if let Some(finding) = finding {
        let _ = channel.actor.cast(ChannelMessage::Filtered(Box::new(finding)));
    }
    Some(Written { upto, messages, outcome: Some(Box::new(outcome)), is_partial })
}

/// The messages to summarise, the last event that they cover, the previous summary, and the filtered texts.
async fn read(
    range: &HistoryRange,
    prompt_tokens: usize,
    channel: &ChannelContext,
) -> Option<(Vec<Said>, Seq, Option<Arc<str>>, Filtered)> {
    let ChannelContext { key: channel_key, context, .. } = channel;
    let _lock = history::lock(context, channel_key).await?;
    let source = channel.source(|conversation| Some((conversation.summary().text.clone(), conversation.filtered().clone())));
    let (previous, filtered) = source().await?;
    // Half of the prompt. The rest is for the frame of each message, the previous summary and the instructions.
    let max_tokens = prompt_tokens / 2;
    let (messages, upto) = history::read_oldest(context, channel_key, range, max_tokens).await?;
    Some((messages, upto, previous, filtered))
}

fn summary_request(messages: &[Said], previous: Option<&str>, channel_key: &ChannelKey, templates: &Prompt) -> Request {
    let prompt = prompt::summary(previous, messages, templates.zone_of(&channel_key.guild), templates);
    let newest = Line::newest_of(messages.iter().map(|said| &*said.message));
    let request = Request::new(ModelRole::Side, channel_key.guild.clone(), templates.max_side_answer_tokens);
    request.asking(prompt).with(QuestionContext { purpose: Purpose::Summary, newest })
}
