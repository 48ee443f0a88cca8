//! A companion of a guild: holds its settings in force, builds the prompts of its questions, and tracks its calls in flight.
//!
//! A channel sends it questions. It queues them in the pool. When the pool takes a question up, the prompt is built from what the channel
//! knows by then. A [`reply`] asks for statements; it gets the settings here. If a companion dies, its questions are cancelled. The drop of
//! [`DecisionRequest::arrival`](super::messages::companion::DecisionRequest) notifies their channels, which ask again.
//!
//! A question that panics when it is asked must not kill the companion again and again, and with it the guild. So it fails alone. A question
//! whose prompt cannot be built fails alone too, in the pool.

pub mod brief_writing;
pub mod briefs;
mod drafts;
pub mod history;
mod pending_calls;
mod question;
pub mod reply;
mod scene;
mod settings_cache;
mod speaking;
pub mod trial;
mod writing;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::actors::messages::companion::{CompanionMessage, DecisionRequest};
use crate::actors::runtime::actor_keys::CompanionKey;
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::directory::Address;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
use crate::domain::prompt::{Character, tokens};
use crate::ports::language_model::{Asker, LazyRequest, Message, Request, Role};
use crate::settings::companion::Companion as Settings;
use crate::telemetry::plain::Plain;
use pending_calls::PendingCalls;
use question::Question;
use settings_cache::SettingsCache;

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
    settings_cache: SettingsCache,
    pending_calls: PendingCalls,
    _registration: Registered,
}

impl Actor for Companion {
    type Msg = CompanionMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<CompanionMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { guild, companion, context } = arguments;
        Ok(State {
            settings_cache: SettingsCache::default(),
            pending_calls: PendingCalls::new(context.pool.clone()),
            _registration: context.register(&CompanionKey(guild.clone(), companion.clone()), &myself),
            guild,
            companion,
            context,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<CompanionMessage>,
        message: CompanionMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let _at_work = at_work(Address::Companion(state.guild.clone(), state.companion.clone()));
        match message {
            CompanionMessage::Evaluate(asking) => {
                // A panic leaves no state here half changed.
                if catch_unwind(AssertUnwindSafe(|| state.ask(*asking))).is_err() {
                    let (guild, companion) = (Plain(state.guild.as_str()), Plain(state.companion.as_str()));
                    tracing::error!(%guild, %companion, "asking a question panicked; it is asked again after growing back-offs");
                }
            }
            CompanionMessage::Cancel { channel, ticket } => state.pending_calls.cancel(&channel, ticket),
            CompanionMessage::SettingsIn { channel, settings } => {
                // The reply may have been cancelled.
                drop(state.settings_in(&channel).map(|in_force| settings.send(in_force)));
            }
        }
        Ok(())
    }
}

impl State {
    /// Its settings in this channel. `None`: it is no longer configured.
    fn settings_in(&mut self, channel: &ChannelId) -> Option<Arc<Settings>> {
        self.settings_cache.of(channel, &self.companion, &self.context.memberships)
    }

    fn ask(&mut self, asking: DecisionRequest) {
        let Some(settings) = self.settings_in(&asking.channel_key.channel) else {
            // The channel learns that the companion left, and then needs no answer.
            asking.arrival.send(Ok(()));
            return;
        };
        brief_writing::write_if_missing(&self.context, &settings, &asking);
        Question::new(asking, settings, self.context.clone()).ask(&mut self.pending_calls);
    }
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

/// The same request, with a stricter demand for the form of the answer at its end (docs/design/gate.md G-29).
fn repeated(asked: Arc<LazyRequest>, demand: &'static str) -> Arc<LazyRequest> {
    LazyRequest::later(asked.base().clone(), move || {
        let asked = asked.clone();
        async move {
            let mut repeated = Request::clone(&*asked.build().await?);
            repeated.messages.push(Message::text(Role::User, demand.to_owned()));
            repeated.sizes.push(("repeat", tokens(demand)));
            Some(repeated)
        }
    })
}

/// The companion as the author of a request to a model.
pub(super) fn asker(settings: &Settings) -> Asker {
    Asker { id: settings.id.clone(), name: settings.name.clone() }
}
