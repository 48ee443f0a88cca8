//! The real gateway connections to the test double: with notes in memory, and an inbox that records events or another intake.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use tertulia::adapters::discord::dispatch::{Dispatch, Intake, Receipt};
use tertulia::adapters::discord::gateway::{Gateway, MakeIntake, Parts, Times};
use tertulia::adapters::discord::platform::Discord;
use tertulia::adapters::system::SystemClock;
use tertulia::domain::id::GuildId;
use tertulia::ports::gateway::{Disconnected, Gateway as _, Shard};
use tertulia::ports::notes::{NoteError, Notes};
use tertulia::ports::rng::Rng;
use tertulia::settings::discord::Discord as Section;
use tertulia::telemetry::fake::SpanMemory;
use tertulia::telemetry::gateway::GatewayRecorder;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::counterpart::{Counterpart, Rules};
use super::home::{adapter, section};
use crate::harness::PATIENCE;

/// Notes in memory that outlive a client.
#[derive(Debug, Default)]
pub struct Notepad(watch::Sender<BTreeMap<String, Vec<u8>>>);

impl Notepad {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Waits until the notes contain a session of the shard that the closure accepts.
    pub async fn until_session(&self, shard: u32, look: impl Fn(&Value) -> bool) -> Value {
        let mut notes = self.0.subscribe();
        let is_noted = |notes: &BTreeMap<String, Vec<u8>>| session_in(notes, shard).is_some_and(|session| look(&session));
        let found = timeout(PATIENCE, notes.wait_for(is_noted)).await.expect("a note in time").expect("notes").clone();
        session_in(&found, shard).expect("a session")
    }

    /// Waits until a note with this name is accepted by the closure.
    pub async fn until_note(&self, name: &str, look: impl Fn(&[u8]) -> bool) {
        let mut notes = self.0.subscribe();
        let is_noted = notes.wait_for(|notes| notes.get(name).is_some_and(|note| look(note)));
        timeout(PATIENCE, is_noted).await.expect("a note in time").expect("notes");
    }

    /// Writes a note as another process might have left it.
    pub fn store(&self, name: &str, bytes: &[u8]) {
        self.0.send_modify(|notes| drop(notes.insert(name.to_owned(), bytes.to_vec())));
    }
}

fn session_in(notes: &BTreeMap<String, Vec<u8>>, shard: u32) -> Option<Value> {
    serde_json::from_slice(notes.get(&format!("discord/session/{shard}"))?).ok()
}

#[async_trait]
impl Notes for Notepad {
    async fn read(&self, _: Option<&GuildId>, name: &str) -> Result<Option<Vec<u8>>, NoteError> {
        Ok(self.0.borrow().get(name).cloned())
    }

    async fn all(&self, _: Option<&GuildId>, beginning: &str) -> Result<Vec<(String, Vec<u8>)>, NoteError> {
        let notes = self.0.borrow();
        Ok(notes
            .iter()
            .filter(|(name, _)| name.starts_with(beginning))
            .map(|(name, bytes)| (name.clone(), bytes.clone()))
            .collect())
    }

    async fn write(&self, _: Option<&GuildId>, written: Vec<(String, Option<Vec<u8>>)>) -> Result<(), NoteError> {
        self.0.send_modify(|notes| {
            for (name, bytes) in written {
                match bytes {
                    Some(bytes) => drop(notes.insert(name, bytes)),
                    None => drop(notes.remove(&name)),
                }
            }
        });
        Ok(())
    }
}

/// All received events of all connections, how the intake handles events, and the receipts that it holds.
#[derive(Clone, Default)]
pub struct Inbox {
    events: Arc<watch::Sender<Vec<ReceivedEvent>>>,
    handling: Arc<watch::Sender<Handling>>,
    held: Arc<Mutex<Vec<Receipt>>>,
}

/// An event that the intake took.
#[derive(Clone, Debug)]
pub struct ReceivedEvent {
    pub shard: u32,
    pub kind: String,
    pub data: Value,
}

/// How the intake handles events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Handling {
    /// Acknowledges each event at once.
    #[default]
    Acknowledges,
    /// Holds the receipts until [`Inbox::acknowledge_held`].
    Holds,
    /// Drops the receipts of messages with this text, and acknowledges other events.
    Drops(&'static str),
    /// Takes no events.
    Blocks,
}

impl Inbox {
    pub fn set(&self, handling: Handling) {
        self.handling.send_replace(handling);
    }

    /// Acknowledges the events whose receipts are held.
    pub fn acknowledge_held(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        held.into_iter().for_each(Receipt::kept);
    }

    pub fn events(&self) -> Vec<ReceivedEvent> {
        self.events.borrow().clone()
    }

    /// The texts of messages, in order.
    pub fn texts(&self) -> Vec<String> {
        let events = self.events.borrow();
        let messages = events.iter().filter(|event| event.kind == "MESSAGE_CREATE");
        messages.map(|event| event.data["content"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until the received events meet a condition.
    pub async fn until(&self, look: impl Fn(&[ReceivedEvent]) -> bool) -> Vec<ReceivedEvent> {
        let mut events = self.events.subscribe();
        let result = timeout(PATIENCE, events.wait_for(|events| look(events))).await;
        match result {
            Ok(found) => found.expect("an inbox").clone(),
            Err(_) => panic!("timed out; received only: {:?}", kinds(&self.events())),
        }
    }

    pub async fn until_kind(&self, kind: &str, count: usize) {
        self.until(|events| events.iter().filter(|event| event.kind == kind).count() >= count).await;
    }

    pub async fn until_text(&self, text: &str) {
        let is_it = |event: &ReceivedEvent| event.kind == "MESSAGE_CREATE" && event.data["content"] == text;
        // The newest first: with many events, this is evaluated often.
        self.until(|events| events.iter().rev().any(is_it)).await;
    }
}

fn kinds(events: &[ReceivedEvent]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// The intake of one connection.
struct InboxIntake {
    inbox: Inbox,
    shard: u32,
}

#[async_trait]
impl Intake for InboxIntake {
    async fn handle_dispatch(&mut self, dispatch: Dispatch) {
        let mut handling = self.inbox.handling.subscribe();
        let handling = handling.wait_for(|handling| *handling != Handling::Blocks).await.expect("an inbox").clone();
        let data: Value = serde_json::from_str(dispatch.data.get()).unwrap_or_default();
        let receipt = match handling {
            Handling::Drops(text) if data["content"] == text => Some(dispatch.receipt),
            Handling::Holds => {
                self.inbox.held.lock().push(dispatch.receipt);
                None
            }
            _ => {
                dispatch.receipt.kept();
                None
            }
        };
        self.inbox.events.send_modify(|events| events.push(ReceivedEvent { shard: self.shard, kind: dispatch.kind, data }));
        drop(receipt);
    }
}

/// Random numbers that are always the same.
pub struct FixedRng(f64);

impl Rng for FixedRng {
    fn jitter(&self) -> i8 {
        0
    }

    fn fraction(&self) -> f64 {
        self.0
    }

    fn id(&self) -> u128 {
        7
    }
}

/// A gateway with its own platform, as in a process of its own.
pub struct Client {
    pub gateway: Arc<Gateway>,
    pub platform: Arc<Discord>,
    pub inbox: Inbox,
    pub recorded: SpanMemory,
    connections: Vec<JoinHandle<Disconnected>>,
}

/// The parts of a client that tests change.
pub struct Options {
    pub section: Section,
    pub times: Times,
    pub token: String,
    /// The fixed random number, from 0 to 1.
    pub rng: f64,
}

impl Client {
    pub fn new(discord: &Counterpart, notes: &Arc<Notepad>) -> Self {
        Self::with(discord, notes, |_| {})
    }

    /// A client that connects.
    pub async fn connected(discord: &Counterpart, notes: &Arc<Notepad>) -> Self {
        let mut client = Self::new(discord, notes);
        client.connect().await;
        client
    }

    pub fn with(discord: &Counterpart, notes: &Arc<Notepad>, change: impl FnOnce(&mut Options)) -> Self {
        let inbox = Inbox::default();
        let received = inbox.clone();
        let make_intake =
            move |shard: Shard| Box::new(InboxIntake { inbox: received.clone(), shard: shard.number }) as Box<dyn Intake>;
        let mut client = Self::with_intake(discord, notes, change, |_, _| Arc::new(make_intake));
        client.inbox = inbox;
        client
    }

    /// A client with another intake than its inbox.
    pub fn with_intake(
        discord: &Counterpart,
        notes: &Arc<Notepad>,
        change: impl FnOnce(&mut Options),
        intake: impl FnOnce(&Arc<Discord>, &Section) -> MakeIntake,
    ) -> Self {
        // Without an installed provider, the first TLS configuration panics.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut options = Options { section: section(discord), times: quick(), token: discord.token(), rng: 0.5 };
        change(&mut options);
        let Options { section, times, token, rng } = options;
        let platform = Arc::new(adapter(&section, &token));
        let recorded = SpanMemory::new();
        let parts = Parts {
            discord: platform.clone(),
            notes: notes.clone(),
            clock: Arc::new(SystemClock),
            rng: Arc::new(FixedRng(rng)),
            recorder: GatewayRecorder::new(recorded.recorder(false)),
            make_intake: intake(&platform, &section),
            times,
        };
        let gateway = Gateway::new(&section, &token.into(), parts).expect("a gateway");
        Self { gateway: Arc::new(gateway), platform, inbox: Inbox::default(), recorded, connections: Vec::new() }
    }

    /// Asks for the number of connections and starts them.
    pub async fn connect(&mut self) {
        let shards = timeout(PATIENCE, self.gateway.shards()).await.expect("in time").expect("a number of shards");
        for number in 0..shards.get() {
            self.start_connection(number, shards.get());
        }
    }

    /// Starts a connection.
    pub fn start_connection(&mut self, number: u32, of: u32) {
        let (gateway, of) = (self.gateway.clone(), NonZeroU32::new(of).expect("not zero"));
        self.connections.push(tokio::spawn(async move { gateway.live(Shard { number, of }).await }));
    }

    /// Waits for the end of the first connection.
    pub async fn ended(&mut self) -> Disconnected {
        timeout(PATIENCE, self.connections.remove(0)).await.expect("an end in time").expect("no panic")
    }

    /// Stops at once, as a process that ends.
    pub async fn stop(&mut self) {
        for connection in self.connections.drain(..) {
            connection.abort();
            assert!(connection.await.is_err_and(|error| error.is_cancelled()), "the connection had ended before");
        }
    }

    /// The value of a counter or gauge.
    pub fn total(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.recorded.metrics().total(name, labels)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connections.iter().for_each(JoinHandle::abort);
    }
}

/// Short pauses that a test can afford, and long timeouts. A test that waits for a timeout shortens it.
pub fn quick() -> Times {
    Times {
        apart: Duration::from_millis(120),
        pauses: 0.01,
        notes: Duration::from_millis(1),
        lasting: Duration::ZERO,
        hello: PATIENCE,
        session: PATIENCE,
        receipts: PATIENCE,
        stuck: PATIENCE,
    }
}

/// Limits that no test reaches, and a tolerance with which no test misses a heartbeat.
pub fn rules() -> Rules {
    Rules { heartbeat_tolerance: PATIENCE, ..Rules::roomy() }
}
