//! A decision's question on its way to the pool, and its prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::scene::scene;
use super::{asker, brief_writing, character, demanding, in_force, repeated};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{DecisionRequest, Source};
use crate::actors::models;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::closing::Stage;
use crate::domain::id::GuildId;
use crate::domain::message::Modality;
use crate::domain::prompt::{self, PromptInput, Scene};
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::domain::vote::{MOST_IMPORTANCE, MOST_MOOD};
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{AnswerFormat, LazyRequest, ModelRole, Request};
use crate::settings;
use crate::settings::companion::Companion as Settings;

/// Hands a question to the pool, which answers the channel.
pub(super) fn ask(asking: DecisionRequest, settings: &Settings, context: Arc<ActorContext>) {
    let DecisionRequest { channel_key, ticket, priority, deadline, is_repeat, input, tell, arrival } = asking;
    let pool = context.pool.clone();
    let request = lazy_request(input, settings, channel_key, context);
    let request = if is_repeat { repeated(request, prompt::REPEAT_JSON) } else { request };
    let asked = request.clone();
    let reply_to = move |outcome| tell(ChannelMessage::Answered { ticket, asked, outcome: Box::new(outcome) });
    let call = pool.ask(models::Question { request, priority, deadline, drafts: None, reply_to: Box::new(reply_to) });
    arrival.send(Ok(call));
}

/// One JSON object with the fields of a vote (docs/design/turn-taking.md T-5), all of them required, in the order of the prompt.
fn vote_format(is_call: bool, words: &settings::prompt::Prompt) -> AnswerFormat {
    let fields = prompt::vote_fields(is_call, words);
    let property = |field: &str| match field {
        "decision" => json!({ "type": "string", "enum": prompt::verdicts(words) }),
        "importance" => json!({ "type": "number", "minimum": 0, "maximum": MOST_IMPORTANCE }),
        "selected" => json!({ "type": "boolean" }),
        "closing" => json!({ "type": "string", "enum": Stage::ALL }),
        "mood" => json!({ "type": "number", "minimum": -MOST_MOOD, "maximum": MOST_MOOD }),
        _ => json!({ "type": "string" }),
    };
    let schema = json!({
        "type": "object",
        "properties": fields.iter().map(|field| (*field, property(field))).collect::<BTreeMap<_, _>>(),
        "required": fields,
        "additionalProperties": false,
    });
    AnswerFormat::JsonSchema { name: "vote".to_owned(), schema }
}

/// A question whose prompt is built when the pool takes it up.
fn lazy_request(
    input: Source<PromptInput>,
    settings: &Settings,
    channel_key: ChannelKey,
    context: Arc<ActorContext>,
) -> Arc<LazyRequest> {
    let base_request = base_request(settings, channel_key.guild.clone(), &context.settings.prompt);
    let asked = (settings.id.clone(), settings.model.clone());
    LazyRequest::later(base_request, move || {
        let (input, (companion, model)) = (input(), asked.clone());
        let (channel_key, context) = (channel_key.clone(), context.clone());
        async move {
            let input = input.await?;
            let settings = in_force(&context, &channel_key, &companion, &model)?;
            let _at_work = at_work(Address::Channel(channel_key.channel.clone()));
            let brief = brief_writing::brief_of(&context, &settings);
            let scene = scene(&context, &channel_key, &companion, input.modality == Modality::Voice);
            Some(request(input, &settings, &scene, channel_key.guild.clone(), brief.as_deref(), &context.settings.prompt))
        }
    })
}

/// The same question, after an answer that could not be read.
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
    let shown = input.recent.iter().chain(&input.buffer).map(|said| &*said.message);
    let context = QuestionContext {
        purpose: Purpose::Vote { trigger: input.trigger },
        chattiness: settings.chattiness.clone(),
        newest: Line::newest_of(shown),
    };
    let base_request = base_request(settings, guild, words);
    Request { format: vote_format(scene.is_call, words), shown: Some(input.shown()), ..base_request.asking(prompt) }.with(context)
}

/// A question without its prompt.
fn base_request(settings: &Settings, guild: GuildId, words: &settings::prompt::Prompt) -> Request {
    Request {
        model: settings.model.side.clone(),
        companion: Some(asker(settings)),
        format: vote_format(false, words),
        ..Request::new(ModelRole::Side, guild, words.max_side_answer_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::defaults;

    #[test]
    fn the_schema_of_a_vote_binds_what_the_prompt_asks_for() {
        let words = settings::prompt::Prompt { yes_words: vec!["ja".into(), "yes".into()], ..defaults().prompt.clone() };
        let schema = |is_call| match vote_format(is_call, &words) {
            AnswerFormat::JsonSchema { schema, .. } => schema,
            format => panic!("{format:?}"),
        };

        let (text, call) = (schema(false), schema(true));

        let properties = &text["properties"];
        assert_eq!(properties["decision"]["enum"], json!(["JA", "NO"]));
        assert_eq!((&properties["importance"]["minimum"], &properties["importance"]["maximum"]), (&json!(0), &json!(10.0)));
        assert_eq!(text["required"], json!(["reason", "decision", "importance", "selected", "closing"]));
        assert!(properties.get("mood").is_none(), "{properties}");
        assert_eq!(call["properties"]["mood"], json!({ "type": "number", "minimum": -0.2, "maximum": 0.2 }));
        assert_eq!(call["required"].as_array().map(Vec::len), call["properties"].as_object().map(serde_json::Map::len));
    }
}
