//! Has the side model describe pictures that people post, once, in a task of its own (docs/design/models.md M-27).

use std::sync::Arc;

use super::channel_context::ChannelContext;
use crate::actors::companion::files::content;
use crate::actors::companion::history;
use crate::actors::erasure::deletion::{Change, change_message};
use crate::actors::messages::channel::ChannelMessage;
use crate::domain::attachment::{Attachment, Caption, DESCRIPTION_CHARS, MOST_FILES, inline};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::message::{Message, Role};
use crate::domain::priority::Priority;
use crate::domain::prompt;
use crate::domain::question_context::{Purpose, QuestionContext};
use crate::ports::language_model::{LazyRequest, ModelRole, Part, Request};
use crate::telemetry::plain::Plain;

/// Begins with the pictures of a new message of a person that nobody described, if that is turned on. Pictures that are not described when the server stops stay without a description.
pub(super) fn describe(recorded: &Recorded, channel: &ChannelContext) {
    let Event::Said { message, .. } = &recorded.event else { return };
    let context = &channel.context;
    let pictures: Vec<_> = message.attachments.iter().filter(|file| file.needs_caption()).take(MOST_FILES).cloned().collect();
    let base = Request::new(ModelRole::Side, channel.key.guild.clone(), context.settings.prompt.max_side_answer_tokens);
    if pictures.is_empty()
        || !context.settings.models.captions
        || message.from.role != Role::Person
        || context.memberships.present(&channel.key.channel).is_empty()
        || !context.pool.is_sent_pictures(&base)
    {
        return;
    }
    let (seq, message, channel) = (recorded.seq, message.clone(), channel.clone());
    tokio::spawn(async move {
        let mut captions = Vec::new();
        for picture in &pictures {
            if let Some(text) = caption(seq, &message, picture, base.clone(), &channel).await {
                captions.push(Caption { file: picture.id.clone(), text });
            }
        }
        if captions.is_empty() || !history::is_heard(&message.from, &channel.context, &channel.key.guild) {
            return;
        }
        let (shown, count) = (Plain(channel.key.channel.as_str()), captions.len());
        match change_message(&channel.context, &channel.key, seq, Change::Captions(captions)).await {
            Ok(_) => tracing::info!(channel = %shown, message = %seq, pictures = count, "pictures of a message were described"),
            Err(error) => tracing::warn!(channel = %shown, %error, "descriptions of pictures could not be kept"),
        }
    });
}

/// The side model's description of a picture, in one line. `None` if it cannot be read, or was not described.
async fn caption(seq: Seq, message: &Message, picture: &Attachment, base: Request, channel: &ChannelContext) -> Option<Arc<str>> {
    let context = &channel.context;
    let _permit = context.pool.summary_permit(&channel.key.guild, context.recorder.instruments()).await?;
    let content = content(seq, message, picture, context, &channel.key).await?;
    let question = QuestionContext { purpose: Purpose::Caption, newest: Vec::new() };
    let request = base.asking(prompt::caption(&message.text)).ending_with([Part::Image(content.into())]).with(question);
    let asked = Arc::new(LazyRequest::from(request));
    let outcome = context.pool.answer(asked.clone(), Priority::Summary, context.pool.deadline(ModelRole::Side), None).await;
    let text = outcome.result.as_ref().ok().map(|answer| inline(&answer.text(), DESCRIPTION_CHARS));
    let _ = channel.actor.cast(ChannelMessage::Unclaimed { asked, outcome: Box::new(outcome) });
    text.filter(|text| !text.is_empty()).map(Arc::from)
}
