//! A decision's question on its way: builds its prompt, hands it to the pool, and asks once more if the answer cannot be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;

use super::pending_calls::{CallEnd, PendingCalls};
use super::scene::scene;
use super::{asker, brief_writing, character, repeated};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{DecisionRequest, Source, Tell};
use crate::actors::messages::models::{CallFacts, CallId, Outcome};
use crate::actors::messages::turn_taking_manager::ManagerMessage;
use crate::actors::models;
use crate::actors::runtime::actor_keys::TurnTakingManagerKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::answer::Verdict;
use crate::domain::closing::Stage;
use crate::domain::id::{GuildId, Ticket};
use crate::domain::message::Modality;
use crate::domain::priority::Priority;
use crate::domain::prompt::{self, PromptInput, Scene};
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::domain::vote::{self, MOST_IMPORTANCE, MOST_MOOD};
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{Answer, AnswerFormat, LazyRequest, ModelRole, NoAnswer, Request, Usage};
use crate::settings;
use crate::settings::companion::Companion as Settings;

/// A question before the pool has it.
pub(super) struct Question {
    asking: DecisionRequest,
    call: Call,
}

/// What every call of one question needs.
#[derive(Clone)]
struct Call {
    ticket: Ticket,
    priority: Priority,
    deadline: Instant,
    channel_key: ChannelKey,
    tell: Tell,
    context: Arc<ActorContext>,
    request: Arc<LazyRequest>,
    /// The first answer, if it could not be read.
    unreadable: Option<Answer>,
}

impl Question {
    pub(super) fn new(asking: DecisionRequest, settings: Arc<Settings>, context: Arc<ActorContext>) -> Self {
        let call = Call {
            ticket: asking.ticket,
            priority: asking.priority,
            deadline: context.pool.deadline(ModelRole::Side),
            channel_key: asking.channel_key.clone(),
            tell: asking.tell.clone(),
            request: lazy_request(asking.input.clone(), settings, asking.channel_key.clone(), context.clone()),
            context,
            unreadable: None,
        };
        Self { asking, call }
    }

    pub(super) fn ask(self, pending_calls: &mut PendingCalls) {
        let (starting_call, call_end) = pending_calls.start(self.asking);
        starting_call.called(self.call.start(call_end));
    }
}

impl Call {
    fn start(self, call_end: CallEnd) -> CallId {
        let pool = self.context.pool.clone();
        pool.ask(models::Question {
            request: self.request.clone(),
            priority: self.priority,
            deadline: self.deadline,
            drafts: None,
            reply_to: Box::new(move |outcome| self.finish(Box::new(outcome), call_end)),
        })
    }

    fn finish(self, mut outcome: Box<Outcome>, call_end: CallEnd) {
        let (ticket, asked) = (self.ticket, self.request.clone());
        if let Some(answer) = self.answer_to_repeat(&outcome)
            && call_end.is_open()
        {
            (self.tell)(ChannelMessage::Repeated { ticket, asked, outcome });
            let repeat = Self { request: repeated(self.request.clone(), prompt::REPEAT_JSON), unreadable: Some(answer), ..self };
            call_end.clone().repeated(repeat.start(call_end));
            return;
        }
        if let Some(answer) = self.unreadable.clone().filter(|_| is_refused(&outcome))
            && call_end.is_open()
        {
            // The first answer is the only one, and it is counted already.
            let facts = CallFacts { attempts: 0, usage: Usage::default(), ..outcome.facts.clone() };
            (self.tell)(ChannelMessage::Repeated { ticket, asked: asked.clone(), outcome });
            outcome = Box::new(Outcome { result: Ok(answer), facts });
        }
        if !call_end.finish() {
            (self.tell)(ChannelMessage::Unclaimed { asked, outcome });
            return;
        }
        let manager = TurnTakingManagerKey(self.channel_key.channel.clone());
        match self.context.directory.find(&manager) {
            // If the manager dies with the answer, it is replaced, and the channel asks again.
            Some(manager) => drop(manager.cast(ManagerMessage::Answered { ticket, asked, outcome })),
            None => (self.tell)(ChannelMessage::Answered { ticket, asked, outcome, vote: None }),
        }
    }

    /// The answer, if it cannot be read and no repetition was asked for.
    fn answer_to_repeat(&self, outcome: &Outcome) -> Option<Answer> {
        let words = self.context.settings.prompt.verdict_words();
        let is_unreadable = |answer: &&Answer| vote::read(&answer.text(), words).verdict == Verdict::Unreadable;
        outcome.result.as_ref().ok().filter(|_| self.unreadable.is_none()).filter(is_unreadable).cloned()
    }
}

/// Whether the endpoint does not take the request, or the model declines to answer it.
const fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome.result, Err(NoAnswer::Refused { .. } | NoAnswer::OutOfTokens { .. }))
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
    settings: Arc<Settings>,
    channel_key: ChannelKey,
    context: Arc<ActorContext>,
) -> Arc<LazyRequest> {
    let base_request = base_request(&settings, channel_key.guild.clone(), &context.settings.prompt);
    LazyRequest::later(base_request, move || {
        let (input, settings, channel_key, context) = (input(), settings.clone(), channel_key.clone(), context.clone());
        async move {
            let input = input.await?;
            let companion = &settings.id;
            let _at_work =
                at_work(Address::Companion(channel_key.guild.clone(), companion.clone())).about(&channel_key, companion);
            let brief = brief_writing::brief_of(&context, &settings);
            let scene = scene(&context, &channel_key, companion, input.modality == Modality::Voice);
            Some(request(input, &settings, &scene, channel_key.guild.clone(), brief.as_deref(), &context.settings.prompt))
        }
    })
}

/// A question with its prompt.
pub(super) fn request(
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
    Request { format: vote_format(scene.is_call, words), ..base_request.asking(prompt) }.with(context)
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
