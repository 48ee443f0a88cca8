//! Sends the question of a decision to the pool, and builds its prompt.

use std::sync::Arc;

use super::scene::scene;
use super::vote_format::vote_format;
use super::{asker, brief_writing, character, demanding, history, in_force, repeated, search, together};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{DecisionRequest, Source};
use crate::actors::models;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::filter::Asked;
use crate::domain::id::{CompanionId, GuildId, Seq, Ticket};
use crate::domain::message::Modality;
use crate::domain::prompt::{self, Extra, PromptInput, Scene};
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{LazyRequest, ModelRole, Request};
use crate::settings;
use crate::settings::companion::Companion as Settings;

/// Sends a question to the pool, which sends the answer to the channel. `settings` are those of the first companion that is
/// asked.
pub(super) fn ask(asking: DecisionRequest, settings: &Settings, context: Arc<ActorContext>) {
    let DecisionRequest { channel_key, asked, priority, deadline, is_repeat, input, tell, arrival } = asking;
    let pool = context.pool.clone();
    let tickets: Vec<Ticket> = asked.iter().map(|(_, ticket)| *ticket).collect();
    let request = match &tickets[..] {
        [_] => lazy_request(input, settings, channel_key, context),
        _ => together::lazy_request(input, asked.len(), &settings.model, channel_key, context),
    };
    let request = if is_repeat { repeated(request, prompt::REPEAT_JSON) } else { request };
    let asked = request.clone();
    let reply_to = move |outcome| {
        let outcome = Box::new(outcome);
        tell(match tickets[..] {
            [ticket] => ChannelMessage::Answered { ticket, asked, outcome },
            _ => ChannelMessage::AnsweredTogether { tickets, asked, outcome },
        });
    };
    let call = pool.ask(models::Question { request, priority, deadline, drafts: None, reply_to: Box::new(reply_to) });
    arrival.send(Ok(call));
}

/// A question whose prompt is built when the pool starts it.
fn lazy_request(
    input: Source<Vec<(CompanionId, PromptInput)>>,
    settings: &Settings,
    channel_key: ChannelKey,
    context: Arc<ActorContext>,
) -> Arc<LazyRequest> {
    let base_request = Arc::new(base_request(settings, channel_key.guild.clone(), &context.settings.prompt));
    let asked = (settings.id.clone(), settings.model.clone());
    let search = search(Asked::Decision, &base_request, &context);
    LazyRequest::searching((*base_request).clone(), Some(search.clone()), move || {
        let (input, (companion, model), base) = (input(), asked.clone(), base_request.clone());
        let search = search.clone();
        let (channel_key, context) = (channel_key.clone(), context.clone());
        async move {
            let (_, mut input) = input.await?.pop()?;
            let new_from = input.buffer.first().map_or(Seq::NONE, |said| said.seq);
            search.lock().leave_out(&mut input, &companion, new_from);
            history::quote(&mut input, &companion, |seq| search.lock().shows(seq), &context, &channel_key).await;
            let settings = in_force(&context, &channel_key, &companion, &model)?;
            let _at_work = at_work(Address::Channel(channel_key.channel.clone()));
            let brief = brief_writing::brief_of(&context, &settings);
            let scene = scene(&context, &channel_key, &[&companion], input.modality == Modality::Voice);
            let in_force = context.in_force();
            let words = context.pool.fitting(&in_force.prompt, &base, 1);
            Some(request(input, &settings, &scene, channel_key.guild.clone(), brief.as_deref(), &words))
        }
    })
}

/// The same question with a stricter demand, after an unreadable answer.
pub fn once_more(request: Request) -> Request {
    demanding(request, prompt::REPEAT_JSON)
}

/// A question with its prompt.
pub fn request(
    mut input: PromptInput,
    settings: &Settings,
    scene: &Scene,
    guild: GuildId,
    brief: Option<&str>,
    words: &settings::prompt::Prompt,
) -> Request {
    input.is_repetitive &= settings.repetition;
    let prompt = prompt::vote(character(settings, brief), scene, &input, words);
    let context = question_context(&input);
    let base_request = base_request(settings, guild, words);
    Request { format: vote_format(input.extra(scene.is_call), words), shown: Some(input.shown()), ..base_request.asking(prompt) }
        .with(context)
}

/// The context of the question to one companion.
pub(super) fn question_context(input: &PromptInput) -> QuestionContext {
    let shown = input.recent.iter().chain(&input.buffer).map(|said| &*said.message);
    QuestionContext { purpose: Purpose::Vote { trigger: input.trigger }, newest: Line::newest_of(shown) }
}

/// A question without its prompt.
fn base_request(settings: &Settings, guild: GuildId, words: &settings::prompt::Prompt) -> Request {
    Request {
        model: settings.model.side.clone(),
        companion: Some(asker(settings)),
        format: vote_format(Extra::default(), words),
        ..Request::new(ModelRole::Side, guild, words.max_side_answer_tokens)
    }
}
