//! The interface of the test double for tests.
//!
//! ```ignore
//! let discord = Counterpart::start().await;
//! let guild = discord.guild("Home");
//! let (channel, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
//! // The client under test connects: discord.api_url(), discord.token().
//! discord.sessions(1).await;
//! let asked = discord.say(ana, channel, "Hello, Mira?");
//! let post = discord.post_in(channel).await;
//! discord.cut(0);
//! ```

mod ask;
mod call;
mod inject;
mod look;
pub mod make;
mod talk;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use super::faults::Faults;
use super::journal::Journal;
use super::limits::Limits;
use super::sessions::Gateway;
use super::state::Shared;
use super::voice::VoiceServer;
use super::{Rules, State, World, server};

/// A Discord on a port of this machine, with one application. It stops when it is dropped.
pub struct Counterpart {
    shared: Arc<Shared>,
    origin: String,
    task: AbortHandle,
    voice: VoiceServer,
}

impl Counterpart {
    /// Starts one with [`Rules::quick`]. Its application has the Message Content intent.
    pub async fn start() -> Self {
        Self::with_rules(Rules::quick()).await
    }

    pub async fn with_rules(rules: Rules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let origin = server::address(&listener).to_string();
        let gateway_url = format!("ws://{origin}");
        let voice = VoiceServer::start(rules.voice.clone());
        let shared = Arc::new(Shared::new(State {
            voice: voice.shared(),
            world: World::new("tertulia", "MTA.counterpart.token", rules.behind),
            rules,
            gateway: Gateway::default(),
            limits: Limits::default(),
            faults: Faults::default(),
            journal: Journal::default(),
            files: BTreeMap::new(),
            command_creates: Vec::new(),
            resume_url: format!("{gateway_url}/resume"),
            gateway_url,
        }));
        let task = tokio::spawn(server::serve(listener, Arc::clone(&shared))).abort_handle();
        Self { shared, origin, task, voice }
    }

    /// Its address: `127.0.0.1:…`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The URL of the API, without `/api/v10`.
    pub fn api_url(&self) -> String {
        format!("http://{}", self.origin)
    }

    /// The URL of the gateway, as `/gateway/bot` returns it.
    pub fn gateway_url(&self) -> String {
        format!("ws://{}", self.origin)
    }

    pub fn token(&self) -> String {
        self.look(|state| state.world.application.token.clone())
    }

    /// Changes the state and wakes everything that waits for a change.
    pub fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        self.shared.with(act)
    }
}

impl Drop for Counterpart {
    /// # Panics
    ///
    /// A client used a feature of Discord that this test double lacks, and the test did not remove the entry from the journal.
    fn drop(&mut self) {
        self.task.abort();
        let unsupported = self.shared.with(|state| {
            let connections: Vec<usize> = state.gateway.connections.keys().copied().collect();
            for connection in connections {
                state.cut(connection);
            }
            std::mem::take(&mut state.journal.unsupported)
        });
        assert!(unsupported.is_empty() || std::thread::panicking(), "not supported by the counterpart: {unsupported:?}");
    }
}
