//! What is heard on Discord: the real intake, fed by a bare connection to the counterpart, in front of a core that keeps a record.

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
/// As often as the counterpart wants it.
const HEARTBEATS: Duration = Duration::from_millis(200);

/// A Discord with room for every request, and for sessions in quick succession.
async fn counterpart() -> Counterpart {
    Counterpart::with_rules(Rules { identify_window: Duration::ZERO, ..Rules::roomy() }).await
}

/// One process's hearing: what it knows ends with it, what the core has on record does not.
struct Process {
    shared: Arc<SharedIntake>,
    discord: Arc<Discord>,
}

impl Process {
    fn new(counterpart: &Counterpart, core: &Arc<Core>) -> Self {
        Self::with(counterpart, core, |_| {})
    }

    fn with(counterpart: &Counterpart, core: &Arc<Core>, change: impl FnOnce(&mut Section)) -> Self {
        let defaults = Settings::defaults().expect("the defaults");
        let mut settings: Section = defaults["discord"].clone().try_into().expect("the section");
        settings.api_url = format!("{}/api", counterpart.api_url());
        settings.backfill_calls_per_second = 50;
        change(&mut settings);
        let discord = Discord::new(&settings, counterpart.token().into(), Arc::new(SystemClock)).expect("an adapter");
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

    /// Begins a session.
    async fn connect(&self, counterpart: &Counterpart) -> Connection {
        self.connect_with(counterpart, INTENTS, None).await
    }

    /// Goes on with a session.
    async fn resume(&self, counterpart: &Counterpart, session: &Session) -> Connection {
        self.connect_with(counterpart, INTENTS, Some(session)).await
    }

    async fn connect_with(&self, counterpart: &Counterpart, intents: u64, resumed: Option<&Session>) -> Connection {
        let url = format!("{}/?v=10&encoding=json", counterpart.gateway_url());
        let (socket, _) = timeout(PATIENCE, tokio_tungstenite::connect_async(url)).await.expect("in time").expect("a socket");
        let (mut sink, stream) = socket.split();
        let token = counterpart.token();
        let first = match resumed {
            None => {
                let properties = json!({ "os": "linux", "browser": "bare", "device": "bare" });
                json!({ "op": 2, "d": { "token": token, "intents": intents, "shard": [0, 1], "properties": properties } })
            }
            Some(session) => json!({ "op": 6, "d": { "token": token, "session_id": session.id, "seq": session.sequence } }),
        };
        sink.send(Message::text(first.to_string())).await.expect("an open connection");
        let (session, seen) = watch::channel(resumed.cloned().unwrap_or_default());
        let shard = Shard { number: 0, of: NonZeroU32::MIN };
        let intake = Intake::new(&self.shared, shard);
        let heartbeats = tokio::spawn(heartbeats(sink, seen.clone()));
        let pump = tokio::spawn(pump(intake, Box::pin(stream), session));
        Connection { pump, heartbeats, seen }
    }
}

/// How far a session was accepted.
#[derive(Clone, Debug, Default)]
struct Session {
    id: String,
    sequence: u64,
    /// Events that were told and not kept yet.
    open: Vec<u64>,
    told: u64,
    lost: bool,
}

impl Session {
    /// An event met its fate: what is before the first one that is not kept is accepted.
    fn met(&mut self, sequence: u64, fate: Fate) {
        if fate == Fate::Lost {
            self.lost = true;
            return;
        }
        self.open.retain(|open| *open != sequence);
        if !self.lost {
            self.sequence = self.open.iter().min().map_or(self.told, |first| first - 1);
        }
    }
}

/// A connection that feeds an intake. Dropped, it ends without a word.
struct Connection {
    pump: JoinHandle<()>,
    heartbeats: JoinHandle<()>,
    seen: watch::Receiver<Session>,
}

impl Connection {
    /// Waits until all that was told so far is kept.
    async fn settled(&mut self) {
        let settled = self.seen.wait_for(|session| session.told > 1 && session.open.is_empty());
        timeout(PATIENCE, settled).await.expect("in time").expect("it is still there");
    }

    /// Ends, and says from where to go on.
    async fn end(mut self) -> Session {
        self.heartbeats.abort();
        self.pump.abort();
        // It was told to end.
        let _ = (&mut self.pump).await;
        self.seen.borrow().clone()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.heartbeats.abort();
        self.pump.abort();
    }
}

type Stream = std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Send>>;

async fn heartbeats(
    mut sink: impl futures_util::Sink<Message, Error = tokio_tungstenite::tungstenite::Error> + Unpin,
    seen: watch::Receiver<Session>,
) {
    let mut times = tokio::time::interval(HEARTBEATS);
    loop {
        times.tick().await;
        let heartbeat = json!({ "op": 1, "d": seen.borrow().told });
        if sink.send(Message::text(heartbeat.to_string())).await.is_err() {
            return;
        }
    }
}

async fn pump(mut intake: Intake, mut stream: Stream, session: watch::Sender<Session>) {
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
            session.told = sequence;
            session.open.push(sequence);
        });
        let tell = session.clone();
        let receipt = Receipt::new(move |fate| tell.send_modify(|session| session.met(sequence, fate)));
        intake.take(Dispatch { kind, data: frame.d, receipt }).await;
    }
}
