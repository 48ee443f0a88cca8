//! Inbound events of Discord: the real intake behind a real connection to the test double, in front of a core that stores what it accepts.

mod catching_up;
mod live;
mod queueing;

use std::sync::Arc;
use std::time::Duration;

use tertulia::adapters::discord::gateway::MakeIntake;
use tertulia::adapters::discord::intake::{Dependencies, Intake, SharedIntake};
use tertulia::adapters::discord::platform::Discord;
use tertulia::adapters::system::SystemClock;
use tertulia::ports::gateway::Shard;
use tertulia::settings::discord::Discord as Section;
use tertulia::telemetry::instruments::Instruments;

use super::client::{Client, Notepad, Options, rules};
use super::core::Core;
use super::counterpart::{Counterpart, Rules};
use super::home::Home;

/// A home that accepts one session right after another, and a core in which its channel has a companion.
async fn home() -> (Home, Arc<Core>) {
    let home = Home::with_rules(Rules { identify_window: Duration::ZERO, ..rules() }).await;
    let core = Arc::<Core>::default();
    core.add_companion(home.guild, home.general);
    (home, core)
}

/// The connection, the client and the intake of one process. Their caches end with it. What the core has on record outlives it.
struct Process {
    client: Client,
    notes: Arc<Notepad>,
}

impl Process {
    /// A process with a new session that has kept all events so far, and so has caught up.
    async fn start(discord: &Counterpart, core: &Arc<Core>) -> Self {
        let process = Self::connect(discord, core, |_| {}).await;
        process.wait_until_all_kept(discord).await;
        process
    }

    /// A process with a new session.
    async fn connect(discord: &Counterpart, core: &Arc<Core>, change: impl FnOnce(&mut Section)) -> Self {
        Self::with_notes(discord, core, &Notepad::new(), change).await
    }

    /// A process that resumes the session of an earlier one.
    async fn resume(discord: &Counterpart, core: &Arc<Core>, notes: &Arc<Notepad>) -> Self {
        Self::with_notes(discord, core, notes, |_| {}).await
    }

    async fn with_notes(
        discord: &Counterpart,
        core: &Arc<Core>,
        notes: &Arc<Notepad>,
        change: impl FnOnce(&mut Section),
    ) -> Self {
        let intake = |discord: &Arc<Discord>, settings: &Section| -> MakeIntake {
            let shared = SharedIntake::new(Dependencies {
                discord: Arc::clone(discord),
                inbound_events: Arc::<Core>::clone(core),
                notes: core.notes.clone(),
                clock: Arc::new(SystemClock),
                settings: settings.clone(),
                instruments: Instruments::noop(),
                interactions: Arc::new(|_| {}),
                calls: None,
            });
            Arc::new(move |shard: Shard| Box::new(Intake::new(&shared, shard)))
        };
        let change = |options: &mut Options| {
            options.section.backfill_calls_per_second = 50;
            change(&mut options.section);
        };
        let mut client = Client::with_intake(discord, notes, change, intake);
        client.connect().await;
        Self { client, notes: Arc::clone(notes) }
    }

    /// Ends it. Its notes are what the next process finds.
    async fn stop(mut self) -> Arc<Notepad> {
        self.client.stop().await;
        self.notes
    }

    /// Waits until every event that was sent so far is kept.
    async fn wait_until_all_kept(&self, discord: &Counterpart) {
        let all_kept = |session: &serde_json::Value| {
            let sent = discord.look(|state| Some(state.gateway.sessions.get(session["id"].as_str()?)?.sequence));
            sent.is_some_and(|sent| sent > 1 && session["accepted"] == sent)
        };
        self.notes.until_session(0, all_kept).await;
    }
}
