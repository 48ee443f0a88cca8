//! Inbound events of Discord: the real intake, fed by a bare connection to the test double, in front of a core that stores what it accepts.

mod catching_up;
mod core;
mod live;
mod queueing;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tertulia::adapters::discord::dispatch::{Dispatch, Fate, Intake as _, Receipt};
use tertulia::adapters::discord::intake::{Dependencies, Intake, SharedIntake};
use tertulia::adapters::discord::platform::Discord;
use tertulia::adapters::system::SystemClock;
use tertulia::ports::gateway::Shard;
use tertulia::settings::Settings;
use tertulia::settings::discord::Discord as Section;
use tertulia::telemetry::instruments::Instruments;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use self::core::Core;
use super::counterpart::Counterpart;
use super::counterpart::intents::{DIRECT_MESSAGES, GUILD_MESSAGES, GUILD_WEBHOOKS, GUILDS, MESSAGE_CONTENT};
use super::counterpart::rules::Rules;
use crate::harness::PATIENCE;

const INTENTS: u64 = GUILDS | GUILD_MESSAGES | DIRECT_MESSAGES | GUILD_WEBHOOKS | MESSAGE_CONTENT;
/// The interval that the test double announces ([`Rules::quick`]).
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(200);

/// A test double whose limits no test reaches. It accepts one session right after another.
async fn counterpart() -> Counterpart {
    Counterpart::with_rules(Rules { identify_window: Duration::ZERO, ..Rules::roomy() }).await
}

/// The intake and the client of one process. Their caches end with it. What the core has on record outlives it.
struct Process {
    shared: Arc<SharedIntake>,
    discord: Arc<Discord>,
}

impl Process {
    fn new(counterpart: &Counterpart, core: &Arc<Core>) -> Self {
        Self::with_settings(counterpart, core, |_| {})
    }

    fn with_settings(counterpart: &Counterpart, core: &Arc<Core>, change: impl FnOnce(&mut Section)) -> Self {
        let defaults = Settings::defaults().expect("the default settings are valid");
        let mut settings: Section = defaults["discord"].clone().try_into().expect("the section is valid");
        settings.api_url = format!("{}/api", counterpart.api_url());
        settings.backfill_calls_per_second = 50;
        change(&mut settings);
        let discord = Discord::new(&settings, counterpart.token().into(), Arc::new(SystemClock)).expect("the settings are valid");
        let discord = Arc::new(discord);
        let shared = SharedIntake::new(Dependencies {
            discord: Arc::clone(&discord),
            inbound_events: Arc::<Core>::clone(core),
            notes: Arc::<Core>::clone(core),
            clock: Arc::new(SystemClock),
            settings,
            instruments: Instruments::noop(),
            interactions: Arc::new(|_| {}),
        });
        Self { shared, discord }
    }

    /// Starts a new session.
    async fn connect(&self, counterpart: &Counterpart) -> Connection {
        self.connect_with(counterpart, INTENTS, None).await
    }

    /// Resumes a session.
    async fn resume(&self, counterpart: &Counterpart, session: &Session) -> Connection {
        self.connect_with(counterpart, INTENTS, Some(session)).await
    }

    async fn connect_with(&self, counterpart: &Counterpart, intents: u64, resumes: Option<&Session>) -> Connection {
        let url = format!("{}/?v=10&encoding=json", counterpart.gateway_url());
        let (socket, _) =
            timeout(PATIENCE, tokio_tungstenite::connect_async(url)).await.expect("it connects in time").expect("a socket");
        let (mut sink, stream) = socket.split();
        let token = counterpart.token();
        let first_payload = match resumes {
            None => {
                let properties = json!({ "os": "linux", "browser": "bare", "device": "bare" });
                json!({ "op": 2, "d": { "token": token, "intents": intents, "shard": [0, 1], "properties": properties } })
            }
            Some(session) => json!({ "op": 6, "d": { "token": token, "session_id": session.id, "seq": session.sequence } }),
        };
        sink.send(Message::text(first_payload.to_string())).await.expect("an open connection");
        let (session_sender, session) = watch::channel(resumes.cloned().unwrap_or_default());
        let shard = Shard { number: 0, of: NonZeroU32::MIN };
        let intake = Intake::new(&self.shared, shard);
        let heartbeats = tokio::spawn(send_heartbeats(sink, session.clone()));
        let feed = tokio::spawn(feed(intake, Box::pin(stream), session_sender));
        Connection { feed, heartbeats, session }
    }
}

/// A session, and how far the intake has handled its events.
#[derive(Clone, Debug, Default)]
struct Session {
    id: String,
    /// The sequence number to resume after: every event up to it was kept.
    sequence: u64,
    /// The sequence numbers of received events that were not kept so far.
    pending: Vec<u64>,
    /// The sequence number of the newest received event.
    received: u64,
    /// Whether an event was lost. Then `sequence` no longer changes.
    is_lost: bool,
}

impl Session {
    /// Records the fate of an event. A resume must start before the first event that was not kept.
    fn record_fate(&mut self, sequence: u64, fate: Fate) {
        if fate == Fate::Lost {
            self.is_lost = true;
            return;
        }
        self.pending.retain(|pending| *pending != sequence);
        if !self.is_lost {
            self.sequence = self.pending.iter().min().map_or(self.received, |first| first - 1);
        }
    }
}

/// A connection that feeds an intake. When it is dropped, the socket closes without a close frame.
struct Connection {
    feed: JoinHandle<()>,
    heartbeats: JoinHandle<()>,
    session: watch::Receiver<Session>,
}

impl Connection {
    /// Waits until every event that was received so far is kept.
    async fn wait_until_all_kept(&mut self) {
        let all_kept = self.session.wait_for(|session| session.received > 1 && session.pending.is_empty());
        timeout(PATIENCE, all_kept).await.expect("events are kept in time").expect("the connection is open");
    }

    /// Ends the connection and returns its session, to resume it.
    async fn end(mut self) -> Session {
        self.heartbeats.abort();
        self.feed.abort();
        // The result is that of an aborted task.
        let _ = (&mut self.feed).await;
        self.session.borrow().clone()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.heartbeats.abort();
        self.feed.abort();
    }
}

type Stream = std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Send>>;

async fn send_heartbeats(
    mut sink: impl futures_util::Sink<Message, Error = tokio_tungstenite::tungstenite::Error> + Unpin,
    session: watch::Receiver<Session>,
) {
    let mut interval = tokio::time::interval(HEARTBEAT_INTERVAL);
    loop {
        interval.tick().await;
        let heartbeat = json!({ "op": 1, "d": session.borrow().received });
        if sink.send(Message::text(heartbeat.to_string())).await.is_err() {
            return;
        }
    }
}

async fn feed(mut intake: Intake, mut stream: Stream, session: watch::Sender<Session>) {
    #[derive(Deserialize)]
    struct Frame {
        op: u8,
        s: Option<u64>,
        t: Option<String>,
        d: Box<RawValue>,
    }
    #[derive(Deserialize)]
    struct Ready {
        session_id: String,
    }
    while let Some(Ok(Message::Text(text))) = stream.next().await {
        let frame: Frame = serde_json::from_str(&text).expect("a frame");
        let (Some(sequence), Some(kind)) = (frame.s, frame.t.filter(|_| frame.op == 0)) else { continue };
        if kind == "READY" {
            let ready: Ready = serde_json::from_str(frame.d.get()).expect("READY");
            session.send_modify(|session| session.id = ready.session_id);
        }
        session.send_modify(|session| {
            session.received = sequence;
            session.pending.push(sequence);
        });
        let reported = session.clone();
        let receipt = Receipt::new(move |fate| reported.send_modify(|session| session.record_fate(sequence, fate)));
        intake.take(Dispatch { kind, data: frame.d, receipt }).await;
    }
}
