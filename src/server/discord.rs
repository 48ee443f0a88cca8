//! Discord, put together: what is said there, what is heard, and its slash commands.

use std::sync::Arc;

use async_trait::async_trait;

use crate::actors::inbound::Inbound;
use crate::actors::membership::ignoring::KeptIgnored;
use crate::actors::runtime::kit::Kit;
use crate::actors::service::ActorBackend;
use crate::actors::service::notes::StoredNotes;
use crate::adapters::discord::commands::Commands;
use crate::adapters::discord::dispatch::{Dispatch, Intake as Takes};
use crate::adapters::discord::gateway::{Gateway, Parts, Times};
use crate::adapters::discord::intake::{Ears, Intake, Shared};
use crate::adapters::discord::platform::Discord;
use crate::adapters::discord::snowflake::Snowflake;
use crate::ports::chat_platform::Platforms;
use crate::ports::gateway::{Gateway as Port, Gateways};
use crate::ports::notes::Notes;
use crate::ports::store::keeper::Keeper;
use crate::settings::Problem;
use crate::telemetry::gateway::GatewayRecorder;

/// The system with Discord, if the settings have a token; without one its channels sleep. To be called within a runtime; nothing is asked of Discord yet.
///
/// # Errors
/// The token or an address cannot be used.
pub fn join(mut kit: Kit, keeper: &Arc<dyn Keeper>) -> Result<Kit, Problem> {
    let settings = &kit.settings.discord;
    let Some(token) = settings.token()? else {
        kit.platforms = kit.platforms.without(Snowflake::is_of_discord);
        return Ok(kit);
    };
    let instruments = kit.recorder.instruments().clone();
    let discord = Arc::new(Discord::new(settings, token.clone(), kit.clock.clone())?.measured(instruments.clone()));
    kit.platforms = Platforms::new([discord.clone() as _]);
    let notes: Arc<dyn Notes> = Arc::new(StoredNotes::new(kit.clone()));
    let backend = Arc::new(ActorBackend::new(kit.clone(), keeper.clone()));
    let ignoring = Arc::new(KeptIgnored::new(kit.clone()));
    let hearing = Arc::new(Inbound::new(kit.clone()));
    let commands =
        Commands::new(discord.clone(), backend.clone(), backend, ignoring, hearing.clone(), settings, instruments.clone());
    let asked = commands.clone();
    let ears = Ears::new(Shared {
        discord: discord.clone(),
        hearing,
        notes: notes.clone(),
        clock: kit.clock.clone(),
        settings: settings.clone(),
        instruments,
        interactions: Arc::new(move |interaction| asked.take(interaction)),
    });
    let parts = Parts {
        discord,
        notes,
        clock: kit.clock.clone(),
        chance: kit.chance.clone(),
        recorder: GatewayRecorder::new(kit.recorder.clone()),
        make_intake: Arc::new(move |shard| {
            Box::new(Registering { commands: commands.clone(), intake: Intake::new(&ears, shard) })
        }),
        times: Times::default(),
    };
    let gateway: Arc<dyn Port> = Arc::new(Gateway::new(settings, &token, parts)?);
    kit.gateways = Gateways::new([gateway]);
    Ok(kit)
}

/// Sees to it that the commands are registered once somebody is there to serve them.
struct Registering {
    commands: Commands,
    intake: Intake,
}

#[async_trait]
impl Takes for Registering {
    async fn take(&mut self, dispatch: Dispatch) {
        if matches!(&*dispatch.kind, "READY" | "RESUMED") {
            self.commands.ready();
        }
        self.intake.take(dispatch).await;
    }
}
