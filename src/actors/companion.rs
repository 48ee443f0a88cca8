//! A companion of a guild: queues its questions in the pool.
//!
//! A channel sends questions to the companion. When the pool starts a question, the prompt is built from the channel's state and the settings in
//! force at that time. A [`reply`] requests statements in the same way. A companion that dies loses the questions in its mailbox. The drop of
//! [`DecisionRequest::arrival`] notifies their channels, which ask again. Questions in the pool are answered even if the companion died.

pub mod answer_or_pass;
pub mod brief_writing;
pub mod briefs;
mod drafts;
pub mod elsewhere;
pub mod files;
pub mod history;
pub mod lore;
pub mod pictures;
pub mod question;
pub mod reply;
mod scene;
mod speaking;
mod together;
pub mod tools;
pub mod trial;
mod vote_format;
mod writing;

use std::sync::Arc;

use parking_lot::Mutex;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::actors::messages::companion::DecisionRequest;
use crate::actors::runtime::actor_keys::CompanionKey;
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::filter::{Asked, Search};
use crate::domain::id::{CompanionId, GuildId};
use crate::domain::prompt::{Character, tokens};
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{Asker, LazyRequest, Message, Request, Role};
use crate::settings::companion::{Companion as Settings, ModelChoice};

pub struct Companion;

pub struct Arguments {
    pub guild: GuildId,
    pub companion: CompanionId,
    pub context: Arc<ActorContext>,
}

pub struct State {
    guild: GuildId,
    companion: CompanionId,
    context: Arc<ActorContext>,
    _registration: Registered,
}

impl Actor for Companion {
    type Msg = DecisionRequest;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<DecisionRequest>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { guild, companion, context } = arguments;
        let _registration = context.register(&CompanionKey(guild.clone(), companion.clone()), &myself);
        Ok(State { guild, companion, context, _registration })
    }

    async fn handle(
        &self,
        _: ActorRef<DecisionRequest>,
        asking: DecisionRequest,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let _at_work = at_work(Address::Companion(state.guild.clone(), state.companion.clone()));
        // A companion that is no longer configured drops its questions. Their channels are informed that it left, and close them.
        let settings_of = |companion| state.context.memberships.companion(&asking.channel_key.channel, companion);
        let asked: Vec<Settings> = asking.asked.iter().filter_map(|(companion, _)| settings_of(companion)).collect();
        asked.iter().for_each(|settings| brief_writing::write_if_missing(&state.context, settings, &asking));
        if let Some(first) = asked.first() {
            question::ask(asking, first, state.context.clone());
        }
        Ok(())
    }
}

/// The companion's settings in force, with the model that received its question.
fn in_force(context: &ActorContext, channel_key: &ChannelKey, companion: &CompanionId, model: &ModelChoice) -> Option<Settings> {
    let settings = context.memberships.companion(&channel_key.channel, companion)?;
    Some(Settings { model: model.clone(), ..settings })
}

/// The companion as its prompts show it, with this brief of its persona.
pub(super) fn character<'a>(settings: &'a Settings, brief: Option<&'a str>) -> Character<'a> {
    Character {
        id: &settings.id,
        name: &settings.name,
        persona: &settings.persona,
        brief,
        chattiness: &settings.chattiness,
        tier: settings.interjection.as_str(),
        tone: settings.tone.as_deref().unwrap_or_default(),
    }
}

/// The same request with a stricter demand for the answer format at its end (docs/design/gate.md G-29).
fn repeated(asked: Arc<LazyRequest>, demand: &'static str) -> Arc<LazyRequest> {
    LazyRequest::searching(asked.base().clone(), asked.search().cloned(), move || {
        let asked = asked.clone();
        async move { Some(demanding(Request::clone(&*asked.build().await?), demand)) }
    })
}

/// A search for the texts that the filter of the request's model refuses.
fn search(asked: Asked, request: &Request, context: &ActorContext) -> Arc<Mutex<Search>> {
    Arc::new(Mutex::new(Search::new(asked, context.pool.filter_key(request))))
}

fn demanding(mut request: Request, demand: &'static str) -> Request {
    request.tools.clear();
    request.messages.push(Message::text(Role::User, demand.to_owned()));
    request.sizes.push(("repeat", tokens(demand)));
    request
}

/// The companion as the author of a request to a model.
pub(super) fn asker(settings: &Settings) -> Asker {
    Asker { id: settings.id.clone(), name: settings.name.clone() }
}
