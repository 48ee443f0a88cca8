//! A test harness: an intake between a fake core and events that a test sends.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::super::super::dispatch::{Dispatch, Fate, Intake as _, Receipt};
use super::super::super::platform::Discord;
pub use super::super::super::snowflake::id;
use super::super::{Dependencies, Intake, SharedIntake};
use crate::adapters::system::SystemClock;
use crate::domain::event::Gap;
use crate::domain::id::{ChannelId, GuildId, PersonId, Seq};
use crate::ports::chat_platform::Serves;
use crate::ports::gateway::Shard;
use crate::ports::inbound_events::{
    Acceptance, ChannelRef, InboundError, InboundEvents, InboundMessage, Reached, ReactionChange,
};
use crate::ports::notes::{NoteError, Notes};
use crate::settings::Settings;
use crate::telemetry::fake::SpanMemory;

pub const BOT: u64 = 900;
pub const APPLICATION: u64 = 901;
pub const OWN_ROLE: u64 = 902;
pub const HOME: u64 = 100;
pub const GENERAL: u64 = 200;
pub const OTHER: u64 = 201;
pub const ANA: u64 = 300;
pub const BOB: u64 = 301;

/// An address without a server.
const UNREACHABLE: &str = "http://127.0.0.1:9/api";

/// Longer than any step takes. With paused time it passes at once.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A call of the core.
#[expect(clippy::large_enum_variant, reason = "tests have few of them")]
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    Said(ChannelRef, InboundMessage),
    Edited(ChannelRef, String, String),
    Deleted(ChannelRef, Vec<String>),
    ChannelGone(String, String),
    GuildGone(String),
    CaughtUp(ChannelRef, u32, Option<Arc<str>>),
    Reacted(ChannelRef, ReactionChange),
}

/// A fake core that records its calls.
#[derive(Default)]
pub struct Core {
    /// Channels with companions.
    pub with_members: Mutex<BTreeSet<ChannelId>>,
    pub guilds: Mutex<Vec<GuildId>>,
    calls: Mutex<Vec<Call>>,
    called: Notify,
    /// Errors that the next calls for a channel return.
    answers: Mutex<BTreeMap<ChannelId, VecDeque<InboundError>>>,
    /// Channels whose calls hang until they are released.
    held: Mutex<BTreeSet<ChannelId>>,
    released: Notify,
    /// How far channels are recorded.
    pub reached: Mutex<Option<Reached>>,
    /// People who opted out.
    pub ignored: Mutex<BTreeSet<String>>,
    /// Channels and texts that cause a panic.
    pub poison: Mutex<BTreeSet<String>>,
}

impl Core {
    async fn answer(&self, channel: &ChannelId, call: Call) -> Result<(), InboundError> {
        loop {
            let released = self.released.notified();
            if !self.held.lock().contains(channel) {
                break;
            }
            released.await;
        }
        let answer = self.answers.lock().get_mut(channel).and_then(VecDeque::pop_front);
        if let Some(answer) = answer {
            return Err(answer);
        }
        self.calls.lock().push(call);
        self.called.notify_waiters();
        Ok(())
    }

    fn panics_at(&self, what: &str) {
        let is_poison = self.poison.lock().contains(what);
        assert!(!is_poison, "poison");
    }

    /// Lets calls for a channel hang until it is released.
    pub fn hold(&self, channel: u64) {
        self.held.lock().insert(id(channel).channel());
    }

    pub fn release(&self, channel: u64) {
        self.held.lock().remove(&id(channel).channel());
        self.released.notify_waiters();
    }

    pub fn answer_next(&self, channel: u64, answer: InboundError) {
        self.answers.lock().entry(id(channel).channel()).or_default().push_back(answer);
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().clone()
    }

    /// The texts of the messages of a channel so far.
    pub fn texts(&self, channel: u64) -> Vec<String> {
        let channel = id(channel).channel();
        let text = |call: Call| match call {
            Call::Said(channel_ref, inbound_message) if channel_ref.channel == channel => Some(inbound_message.text.to_string()),
            _ => None,
        };
        self.calls().into_iter().filter_map(text).collect()
    }

    /// Waits for this number of calls.
    pub async fn wait_for_calls(&self, count: usize) -> Vec<Call> {
        let enough_calls = async {
            loop {
                let called = self.called.notified();
                let calls = self.calls();
                if calls.len() >= count {
                    return calls;
                }
                called.await;
            }
        };
        timeout(TIMEOUT, enough_calls).await.expect("the calls come in time")
    }
}

#[async_trait]
impl InboundEvents for Core {
    fn listens(&self, channel_ref: &ChannelRef) -> bool {
        self.panics_at(channel_ref.channel.as_str());
        let with_members = self.with_members.lock();
        let is_direct = channel_ref.guild.as_str().starts_with("dm:");
        is_direct
            || with_members.contains(&channel_ref.channel)
            || channel_ref.parent.as_ref().is_some_and(|parent| with_members.contains(parent))
    }

    fn opted_out(&self, _: &ChannelRef) -> HashSet<PersonId> {
        self.ignored.lock().iter().map(|person| PersonId::from(person.as_str())).collect()
    }

    async fn reached(&self, _: &ChannelRef) -> Result<Option<Reached>, InboundError> {
        Ok(self.reached.lock().clone())
    }

    async fn said(&self, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Result<Acceptance, InboundError> {
        self.panics_at(&inbound_message.text);
        let is_ignored = self.ignored.lock().contains(&*inbound_message.from.id);
        self.answer(&channel_ref.channel, Call::Said(channel_ref.clone(), inbound_message)).await?;
        Ok(if is_ignored { Acceptance::Ignored } else { Acceptance::New(Seq(1)) })
    }

    async fn edited(&self, channel_ref: &ChannelRef, id: &str, text: Arc<str>) -> Result<(), InboundError> {
        self.answer(&channel_ref.channel, Call::Edited(channel_ref.clone(), id.to_owned(), text.to_string())).await
    }

    async fn deleted(&self, channel_ref: &ChannelRef, ids: &[Arc<str>]) -> Result<(), InboundError> {
        let ids = ids.iter().map(ToString::to_string).collect();
        self.answer(&channel_ref.channel, Call::Deleted(channel_ref.clone(), ids)).await
    }

    async fn reacted(&self, channel_ref: &ChannelRef, change: ReactionChange) -> Result<(), InboundError> {
        self.answer(&channel_ref.channel, Call::Reacted(channel_ref.clone(), change)).await
    }

    async fn caught_up(&self, channel_ref: &ChannelRef, read: u32, missed: Option<Gap>) -> Result<(), InboundError> {
        self.answer(&channel_ref.channel, Call::CaughtUp(channel_ref.clone(), read, missed.map(|missed| missed.why))).await
    }

    async fn channel_gone(&self, guild: &GuildId, channel: &ChannelId) -> Result<(), InboundError> {
        self.answer(channel, Call::ChannelGone(guild.to_string(), channel.to_string())).await
    }

    async fn guild_gone(&self, guild: &GuildId) -> Result<(), InboundError> {
        self.answer(&ChannelId::from(guild.as_str()), Call::GuildGone(guild.to_string())).await
    }

    fn guilds(&self, _: Serves) -> Vec<GuildId> {
        self.guilds.lock().clone()
    }
}

/// Notes in memory.
#[derive(Default)]
pub struct Pad {
    pub notes: Mutex<BTreeMap<(String, String), String>>,
    pub written: Notify,
    pub fails: Mutex<u32>,
}

#[async_trait]
impl Notes for Pad {
    async fn read(&self, guild: Option<&GuildId>, name: &str) -> Result<Option<Vec<u8>>, NoteError> {
        let key = (guild.map(ToString::to_string).unwrap_or_default(), name.to_owned());
        Ok(self.notes.lock().get(&key).map(|note| note.clone().into_bytes()))
    }

    async fn all(&self, _: Option<&GuildId>, _: &str) -> Result<Vec<(String, Vec<u8>)>, NoteError> {
        Ok(Vec::new())
    }

    async fn write(&self, guild: Option<&GuildId>, notes: Vec<(String, Option<Vec<u8>>)>) -> Result<(), NoteError> {
        {
            let mut fails = self.fails.lock();
            if *fails > 0 {
                *fails -= 1;
                return Err(NoteError("for a test".to_owned()));
            }
        }
        let guild = guild.map(ToString::to_string).unwrap_or_default();
        for (name, note) in notes {
            let key = (guild.clone(), name);
            match note {
                Some(note) => self.notes.lock().insert(key, String::from_utf8(note).unwrap()),
                None => self.notes.lock().remove(&key),
            };
        }
        self.written.notify_waiters();
        Ok(())
    }
}

/// An intake with its dependencies.
pub struct World {
    pub core: Arc<Core>,
    pub pad: Arc<Pad>,
    pub discord: Arc<Discord>,
    pub measured: SpanMemory,
    pub shared: Arc<SharedIntake>,
    pub intake: Intake,
}

/// Receives the fate of an event's receipt.
pub type FateReceiver = oneshot::Receiver<Fate>;

impl World {
    /// A new session in one guild with two channels. One of them has companions.
    pub async fn new() -> Self {
        Self::with_settings(|_| {}).await
    }

    /// The same with other settings.
    pub async fn with_settings(change: impl FnOnce(&mut crate::settings::discord::Discord)) -> Self {
        let mut world = Self::unready_with(Shard { number: 0, of: NonZeroU32::MIN }, change);
        world.core.with_members.lock().insert(id(GENERAL).channel());
        world.core.guilds.lock().push(id(HOME).guild());
        world.kept("READY", ready(&[HOME])).await;
        world.kept("GUILD_CREATE", home()).await;
        world
    }

    /// An intake before its first event.
    pub fn unready(shard: Shard) -> Self {
        Self::unready_with(shard, |_| {})
    }

    fn unready_with(shard: Shard, change: impl FnOnce(&mut crate::settings::discord::Discord)) -> Self {
        let defaults = Settings::defaults().unwrap();
        let mut settings: crate::settings::discord::Discord = defaults["discord"].clone().try_into().unwrap();
        settings.api_url = UNREACHABLE.to_owned();
        change(&mut settings);
        let discord = Arc::new(
            Discord::new(&settings, "a.b.c".into(), Arc::new(SystemClock), Arc::new(crate::ports::lease::Unlimited)).unwrap(),
        );
        let (core, pad, measured) = (Arc::<Core>::default(), Arc::<Pad>::default(), SpanMemory::new());
        let shared = SharedIntake::new(Dependencies {
            discord: Arc::clone(&discord),
            inbound_events: Arc::<Core>::clone(&core),
            notes: Arc::<Pad>::clone(&pad),
            clock: Arc::new(SystemClock),
            settings,
            instruments: measured.recorder(false).instruments().clone(),
            interactions: Arc::new(|_| {}),
            calls: None,
        });
        let intake = Intake::new(&shared, shard);
        Self { core, pad, discord, measured, shared, intake }
    }

    /// Sends an event. Waits while too many are in flight.
    pub async fn send(&mut self, kind: &str, data: Value) -> FateReceiver {
        self.send_raw(kind, &data.to_string()).await
    }

    pub async fn send_raw(&mut self, kind: &str, data: &str) -> FateReceiver {
        let (dispatch, receiver) = dispatch(kind, data);
        self.intake.handle_dispatch(dispatch).await;
        receiver
    }

    /// Sends an event and waits until its receipt is stored.
    pub async fn kept(&mut self, kind: &str, data: Value) {
        let receiver = self.send(kind, data).await;
        assert_eq!(fate(receiver).await, Fate::Kept, "{kind}");
    }

    /// The marks that are written, by channel.
    pub async fn marked(&self, channel: u64) -> String {
        let marked = async {
            loop {
                let written = self.pad.written.notified();
                let key = (id(HOME).guild().to_string(), format!("discord/heard/{channel}"));
                if let Some(mark) = self.pad.notes.lock().get(&key) {
                    return mark.clone();
                }
                written.await;
            }
        };
        timeout(TIMEOUT, marked).await.expect("it is marked")
    }
}

pub fn dispatch(kind: &str, data: &str) -> (Dispatch, FateReceiver) {
    let (report, receiver) = oneshot::channel();
    let receipt = Receipt::new(move |fate| {
        // A test that dropped the receiver does not need the fate.
        let _ = report.send(fate);
    });
    (Dispatch { kind: kind.to_owned(), data: serde_json::from_str(data).unwrap(), receipt }, receiver)
}

pub async fn fate(receiver: FateReceiver) -> Fate {
    timeout(TIMEOUT, receiver).await.expect("in time").expect("its fate is reported")
}

pub fn ready(guilds: &[u64]) -> Value {
    let guilds: Vec<_> = guilds.iter().map(|id| json!({ "id": id.to_string(), "unavailable": true })).collect();
    json!({ "v": 10, "user": user(BOT, "Tertulia"), "application": { "id": APPLICATION.to_string(), "flags": 0 }, "guilds": guilds })
}

pub fn home() -> Value {
    json!({
        "id": HOME.to_string(),
        "name": "Home",
        "roles": [
            { "id": HOME.to_string(), "name": "@everyone" },
            { "id": OWN_ROLE.to_string(), "name": "Tertulia", "managed": true, "tags": { "bot_id": BOT.to_string() } },
        ],
        "emojis": [],
        "channels": [
            { "id": GENERAL.to_string(), "type": 0, "name": "general", "last_message_id": null },
            { "id": OTHER.to_string(), "type": 0, "name": "other", "last_message_id": null },
        ],
        "threads": [],
    })
}

pub fn user(id: u64, name: &str) -> Value {
    json!({ "id": id.to_string(), "username": name, "discriminator": "0", "global_name": null, "avatar": null })
}

/// A message from Ana.
pub fn message(message: u64, channel: u64, text: &str) -> Value {
    json!({
        "id": message.to_string(),
        "channel_id": channel.to_string(),
        "guild_id": HOME.to_string(),
        "type": 0,
        "author": user(ANA, "Ana"),
        "member": { "nick": null, "roles": [] },
        "content": text,
        "timestamp": "2026-01-01T00:00:00.000000+00:00",
        "edited_timestamp": null,
        "tts": false,
        "mention_everyone": false,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "pinned": false,
        "flags": 0,
    })
}

/// A message with some fields replaced.
pub fn with(mut message: Value, changes: Value) -> Value {
    for (field, value) in changes.as_object().unwrap() {
        message[field] = value.clone();
    }
    message
}
