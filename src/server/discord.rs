//! Wires the Discord adapter: outbound statements, inbound events and slash commands.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_websockets::Connector;

use crate::actors::inbound::Inbound;
use crate::actors::membership::opt_out::OptOutService;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::platforms::replace_platforms;
use crate::adapters::discord::calls::{self, Calls};
use crate::adapters::discord::commands::Commands;
use crate::adapters::discord::dispatch::{Dispatch, Intake as TakesEvents};
use crate::adapters::discord::gateway::{Gateway, Parts, Times};
use crate::adapters::discord::intake::{Dependencies, Intake, SharedIntake};
use crate::adapters::discord::platform::Discord;
use crate::adapters::discord::roles::Roles;
use crate::adapters::discord::snowflake::Snowflake;
use crate::adapters::discord::voice;
use crate::backend;
use crate::backend::notes::StoredNotes;
use crate::ports::chat_platform::{Platforms, notice};
use crate::ports::gateway::{Gateway as GatewayPort, Gateways};
use crate::ports::notes::Notes;
use crate::ports::store::maintenance::StoreMaintenance;
use crate::settings::{Problem, Settings};
use crate::telemetry::gateway::GatewayRecorder;
use crate::texts::Language;

/// Discord, or its absence.
pub struct Joined {
    platforms: Platforms,
    gateways: Gateways,
    /// The handler of its commands, if there is a token.
    pub commands: Option<Commands>,
}

impl Joined {
    /// Uses it from the start.
    pub fn begin(&self, context: &ActorContext) {
        context.platforms.replace(&self.platforms);
        context.gateways.replace(&self.gateways);
    }

    /// Uses it from now on, in the place of what was used until now.
    pub fn put_in_force(self, context: &ActorContext) {
        tracing::info!(is_on = self.commands.is_some(), "the settings of Discord were changed");
        replace_platforms(&self.platforms, &self.gateways, context);
    }
}

/// Sets Discord up, if the settings have a token. Without a token its channels are not started. Must be called within a runtime. It sends nothing to
/// Discord yet.
///
/// # Errors
/// Returns an error if the token or an address cannot be used.
pub fn join(
    context: &ActorContext,
    Settings { discord: settings, safety, .. }: &Settings,
    maintenance: &Arc<dyn StoreMaintenance>,
) -> Result<Joined, Problem> {
    let (platforms, gateways) = (Platforms::default(), Gateways::default());
    let Some(token) = settings.token()? else {
        return Ok(Joined { platforms: platforms.with_disabled(Snowflake::is_of_discord), gateways, commands: None });
    };
    let instruments = context.recorder.instruments().clone();
    let about = notice(safety, false, Language::English.code());
    let discord = Discord::new(settings, token.clone(), context.clock.clone(), context.lease.clone())?;
    let notes: Arc<dyn Notes> = Arc::new(StoredNotes::new(context.clone()));
    let discord = discord.measured(instruments.clone()).introduced(about, safety);
    let discord = Arc::new(discord.with_roles(Roles::new(notes.clone())));
    let platforms = platforms.with(discord.clone());
    let backend = backend::backend(context.clone(), maintenance.clone());
    let opt_outs = Arc::new(OptOutService::new(context.clone()));
    let inbound_events = Arc::new(Inbound::new(context.clone()));
    let connector =
        Arc::new(Connector::new().map_err(|error| {
            Problem::new("token", format!("voice needs root certificates ({error}); install ca-certificates"))
        })?);
    let calls = Calls::new(calls::Dependencies {
        discord: discord.clone(),
        calls: backend::platform_calls(context.clone(), maintenance.clone()),
        backend: backend.clone(),
        audio: context.speech.audio.clone(),
        notes: notes.clone(),
        options: voice::Options { connector, is_plain: settings.api()?.scheme() == "http", instruments: instruments.clone() },
        automatic: settings.voice_channels.iter().filter_map(|id| id.parse().ok()).collect(),
        tells_people: settings.voice_notice,
    });
    let commands = Commands::new(
        discord.clone(),
        backend,
        opt_outs,
        inbound_events.clone(),
        Some(calls.clone()),
        settings,
        instruments.clone(),
    );
    let (interactions, handler) = (commands.clone(), commands.clone());
    let shared = SharedIntake::new(Dependencies {
        calls: Some(calls.clone()),
        discord: discord.clone(),
        inbound_events,
        notes: notes.clone(),
        clock: context.clock.clone(),
        settings: settings.clone(),
        instruments,
        interactions: Arc::new(move |interaction| interactions.handle_interaction(interaction)),
    });
    let parts = Parts {
        discord,
        notes,
        clock: context.clock.clone(),
        rng: context.rng.clone(),
        recorder: GatewayRecorder::new(context.recorder.clone()),
        make_intake: Arc::new(move |shard| {
            Box::new(Registering { commands: commands.clone(), intake: Intake::new(&shared, shard) })
        }),
        times: Times::default(),
    };
    let gateway: Arc<dyn GatewayPort> = Arc::new(Gateway::new(settings, &token, parts)?);
    calls.set_gateway(gateway.clone());
    Ok(Joined { platforms, gateways: gateways.with(gateway), commands: Some(handler) })
}

/// Registers the commands when a session is ready, so that they exist only once they can be handled.
struct Registering {
    commands: Commands,
    intake: Intake,
}

#[async_trait]
impl TakesEvents for Registering {
    async fn handle_dispatch(&mut self, dispatch: Dispatch) {
        if matches!(&*dispatch.kind, "READY" | "RESUMED") {
            self.commands.ready();
        }
        self.intake.handle_dispatch(dispatch).await;
    }
}
