//! A companion of a guild: puts its questions to the pool, which has them worded when their turn comes.
//!
//! It keeps nothing. A question that dies with it is asked again by the channel, which is told by [`Asking`]'s drop. One that it cannot ask
//! must not take it along, again and again, and with it the guild: it fails alone; and so does one that cannot be worded, in the pool.

pub mod reply;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{CompanionMessage, Evaluate, Matter};
use crate::actors::messages::turn_taking_manager::ManagerMessage;
use crate::actors::models::{Priority, Question, Wording};
use crate::actors::runtime::directory::{Address, Registration, Sort};
use crate::actors::runtime::kit::Kit;
use crate::actors::runtime::places::{CompanionPlace, TurnTakingManagerPlace};
use crate::actors::runtime::watchdog::at_work;
use crate::domain::id::{CompanionId, GuildId};
use crate::domain::message::Message;
use crate::domain::prompt::{self, Character, DecisionParts, Prompt};
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::journal::place::Place;
use crate::ports::language_model::{self, AnswerFormat, Asker, ModelRole, Request};
use crate::settings;
use crate::settings::companion::Companion as Settings;
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::plain::Plain;

/// The actor.
pub struct Companion;

/// Who it is and what it works with.
pub struct Arguments {
    /// Whose companion.
    pub guild: GuildId,
    /// Which one.
    pub companion: CompanionId,
    /// What it works with.
    pub kit: Arc<Kit>,
}

/// What a companion keeps: only who it is, where it stands in the directory, and that it counts.
pub struct State {
    guild: GuildId,
    companion: CompanionId,
    kit: Arc<Kit>,
    _registration: Registration,
    _counted: Counted,
}

impl Actor for Companion {
    type Msg = CompanionMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<CompanionMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { guild, companion, kit } = arguments;
        let registration = kit.directory.register(&CompanionPlace(guild.clone(), companion.clone()), &myself);
        let counted = kit.recorder.instruments().actors.one([Sort::Companion.as_str()]);
        Ok(State { guild, companion, kit, _registration: registration, _counted: counted })
    }

    async fn handle(
        &self,
        _: ActorRef<CompanionMessage>,
        message: CompanionMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            CompanionMessage::Evaluate(evaluate) => {
                let _at_work = at_work(Address::Companion(state.guild.clone(), state.companion.clone()));
                // Nothing here could be left half done.
                if catch_unwind(AssertUnwindSafe(|| ask(*evaluate, &state.kit))).is_err() {
                    let (guild, companion) = (Plain(state.guild.as_str()), Plain(state.companion.as_str()));
                    tracing::error!(%guild, %companion, "a question could not be asked; it is asked again, later and later");
                }
            }
        }
        Ok(())
    }
}

fn ask(evaluate: Evaluate, kit: &Arc<Kit>) {
    let Evaluate { mut asking, matter } = evaluate;
    let (ticket, priority, is_vote) = (asking.ticket, Priority::of(matter.trigger, matter.modality), matter.is_vote);
    let request = wording(matter, asking.place.clone(), kit.clone());
    let asked = request.clone();
    let answered = {
        let (at, tell, kit) = (TurnTakingManagerPlace(asking.place.channel.clone()), asking.teller(), kit.clone());
        Box::new(move |outcome| {
            let outcome = Box::new(outcome);
            match kit.directory.find(&at).filter(|_| is_vote) {
                // One that dies with it is replaced, and has it asked again.
                Some(manager) => drop(manager.cast(ManagerMessage::Answered { ticket, asked, outcome })),
                None => tell(ChannelMessage::Answered { ticket, asked, outcome, vote: None }),
            }
        })
    };
    let call = kit.pool.ask(Question {
        request,
        priority,
        deadline: kit.pool.deadline(ModelRole::Side),
        drafts: None,
        reply_to: answered,
    });
    asking.arrived();
    asking.tell(ChannelMessage::Asked { ticket, call });
}

/// Words a question when its turn comes.
fn wording(matter: Matter, place: Place, kit: Arc<Kit>) -> Arc<Wording> {
    let unworded = Request {
        model: matter.settings.model.side.clone(),
        companion: Some(asker(&matter.settings)),
        format: if matter.is_vote { AnswerFormat::JsonObject } else { AnswerFormat::Text },
        ..Request::new(ModelRole::Side, place.guild.clone(), kit.settings.prompt.max_side_answer_tokens)
    };
    Wording::later(unworded, move |unworded| {
        let companion = &matter.settings.id;
        let _at_work = at_work(Address::Companion(place.guild.clone(), companion.clone())).about(&place, companion);
        worded(unworded, &matter, &kit.settings.prompt)
    })
}

fn worded(unworded: Request, matter: &Matter, words: &settings::prompt::Prompt) -> Request {
    let recent: Vec<&Message> = matter.recent.iter().map(|message| &**message).collect();
    let buffer: Vec<&Message> = matter.buffer.iter().map(|message| &**message).collect();
    let parts = DecisionParts {
        character: character(&matter.settings),
        trigger: matter.trigger,
        message_count: matter.message_count,
        speaker: matter.speaker.as_deref(),
        summary: matter.summary.as_deref(),
        recent: &recent,
        buffer: &buffer,
        notes: &repetition_note(matter.is_repetitive, words).into_iter().collect::<Vec<_>>(),
    };
    let Prompt { system, user, sizes } =
        if matter.is_vote { prompt::vote(&parts, words) } else { prompt::decision(&parts, words) };
    let trigger = matter.trigger;
    let context = QuestionContext {
        purpose: if matter.is_vote { Purpose::Vote { trigger } } else { Purpose::Decision { trigger } },
        chattiness: matter.settings.chattiness.clone(),
        newest: Line::newest_of(recent.iter().chain(&buffer).copied()),
    };
    Request { messages: language_model::Message::prompt(system, user), sizes, ..unworded }.with(context)
}

/// The warning that the last messages repeat each other, where they do.
pub(super) fn repetition_note(is_repetitive: bool, words: &settings::prompt::Prompt) -> Option<&str> {
    Some(words.repetition.as_str()).filter(|warning| is_repetitive && !warning.is_empty())
}

/// A companion as its prompts show it.
pub(super) fn character(settings: &Settings) -> Character<'_> {
    Character {
        id: &settings.id,
        name: &settings.name,
        persona: &settings.persona,
        chattiness: &settings.chattiness,
        tier: settings.interjection.as_str(),
    }
}

/// A companion as whoever asks a model.
pub(super) fn asker(settings: &Settings) -> Asker {
    Asker { id: settings.id.clone(), name: settings.name.clone() }
}
