//! The question to several companions in one call (docs/design/turn-taking.md T-23).

use std::sync::Arc;

use super::question::question_context;
use super::scene::scene;
use super::vote_format::votes_format;
use super::{brief_writing, character, history, in_force};
use crate::actors::messages::companion::Source;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::id::CompanionId;
use crate::domain::message::Modality;
use crate::domain::prompt::{self, Asked, Extra, PromptInput};
use crate::domain::question_context::{Purpose, QuestionContext};
use crate::domain::vote::together::Voter;
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{LazyRequest, ModelRole, Request};
use crate::settings::companion::{Companion as Settings, ModelChoice};

/// A question to this number of companions. Its prompt is built when the pool starts it, for the companions whose questions are
/// still open.
pub(super) fn lazy_request(
    input: Source<Vec<(CompanionId, PromptInput)>>,
    asked: usize,
    model: &ModelChoice,
    channel_key: ChannelKey,
    context: Arc<ActorContext>,
) -> Arc<LazyRequest> {
    let most = context.settings.prompt.max_side_answer_tokens.saturating_mul(u32::try_from(asked).unwrap_or(u32::MAX));
    let base = Request { model: model.side.clone(), ..Request::new(ModelRole::Side, channel_key.guild.clone(), most) };
    let (base_request, model) = (base.clone(), model.clone());
    LazyRequest::later(base, move || {
        let (input, base_request, model) = (input(), base_request.clone(), model.clone());
        let (channel_key, context) = (channel_key.clone(), context.clone());
        async move {
            let mut inputs = input.await?;
            for (companion, input) in &mut inputs {
                history::quote(input, companion, |_| true, &context, &channel_key).await;
            }
            let inputs = inputs.into_iter();
            let asked: Vec<(Settings, PromptInput)> = inputs
                .filter_map(|(companion, mut input)| {
                    let settings = in_force(&context, &channel_key, &companion, &model)?;
                    input.is_repetitive &= settings.repetition;
                    Some((settings, input))
                })
                .collect();
            let _at_work = at_work(Address::Channel(channel_key.channel.clone()));
            (!asked.is_empty()).then(|| request(&asked, &channel_key, &context, base_request))
        }
    })
}

fn request(
    asked: &[(Settings, PromptInput)],
    channel_key: &ChannelKey,
    context: &ActorContext,
    base_request: Request,
) -> Request {
    let in_force = context.in_force();
    let words = &*context.pool.fitting(&in_force.prompt, &base_request, asked.len());
    let ids: Vec<&CompanionId> = asked.iter().map(|(settings, _)| &settings.id).collect();
    let is_call = asked.iter().any(|(_, input)| input.modality == Modality::Voice);
    let briefs: Vec<_> = asked.iter().map(|(settings, _)| brief_writing::brief_of(context, settings)).collect();
    let voters = asked
        .iter()
        .zip(&briefs)
        .map(|((settings, input), brief)| Asked { character: character(settings, brief.as_deref()), input });
    let prompt = prompt::votes(&voters.collect::<Vec<_>>(), &scene(context, channel_key, &ids, is_call), words);
    let shown = asked.iter().map(|(_, input)| input.shown());
    let shown = shown.reduce(|(first, last), (other_first, other_last)| (first.min(other_first), last.max(other_last)));
    let of = asked.iter().map(|(settings, input)| {
        let voter = Voter { id: settings.id.clone(), name: settings.name.clone() };
        (voter, question_context(input))
    });
    let question_context = QuestionContext { purpose: Purpose::Votes { of: of.collect() }, newest: Vec::new() };
    let format = votes_format(
        ids.iter().map(|id| id.as_str()),
        Extra { is_call, about_risk: asked.iter().any(|(_, input)| input.about_risk) },
        words,
    );
    Request { format, shown, ..base_request.asking(prompt) }.with(question_context)
}
