//! A whole system in memory, and helpers for tests to drive and observe it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use parking_lot::Mutex;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::actors::calls::Speech;
use crate::actors::companion::brief_writing;
use crate::actors::erasure::cleanup;
use crate::actors::membership::changes::{self, UNDO};
use crate::actors::models::Models;
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildKey};
use crate::actors::runtime::context::{ActorContext, Environment};
use crate::actors::runtime::directory::{ActorKey as Address, Directory, Registration};
use crate::actors::runtime::moderator::Moderator;
use crate::actors::runtime::root::{Root, RootMessage};
use crate::actors::runtime::startup_log;
use crate::actors::writer::requests::write_meta;
use crate::adapters::store::memory::MemoryStore;
use crate::backend::{self, loading};
use crate::domain::event::Recorded;
use crate::domain::id::{ChannelId, CompanionId, Seq, Ward};
use crate::domain::moment::Moment;
use crate::domain::question_context::{Purpose, QuestionContext};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, Reader};
use crate::ports::backend::decisions::{DecisionQuery, Why, WhyAt, WhyQuery};
use crate::ports::backend::keeping::{ExportForm, ExportQuery, Forget, Forgotten};
use crate::ports::backend::live::{Cursor, LiveStream, Watched};
use crate::ports::backend::messages::{History, HistoryQuery};
use crate::ports::backend::room::{Room, RoomId, is_of_console};
use crate::ports::backend::state::RoomState;
use crate::ports::backend::{Backend, Refused};
use crate::ports::chat_platform::{ChatPlatform, Platforms};
use crate::ports::clock::Clock;
use crate::ports::gateway::{Gateway, Gateways};
use crate::ports::language_model::{Answer, Draft, Identity, LanguageModel, NoAnswer, Request, TokenUsage, ToolCall};
use crate::ports::moderation::Moderation;
use crate::ports::store::key::{ChannelNo, Key};
use crate::ports::store::{Store, Value as Stored, Write};
use crate::ports::tools::{NoTools, Tools};
use crate::ports::voice_call::CallEffect;
use crate::ports::voice_call::fake::FakeCalls;
use crate::samples::{self, Draws, NOON, take_one};
use crate::server::speech::built_in;
use crate::settings::Settings;
use crate::settings::companion::Companion;
use crate::telemetry::fake::{SpanMemory, attribute};
use crate::telemetry::sampling::Sampling;
use crate::texts::Language;

pub(super) struct World {
    pub(super) context: ActorContext,
    pub(super) backend: Backend,
    pub(super) store: Arc<MemoryStore>,
    pub(super) side: Arc<Scripted>,
    pub(super) main: Arc<Scripted>,
    root: ActorRef<RootMessage>,
    pub(super) spans: SpanMemory,
    killed: usize,
    overlay: Value,
    surviving: Surviving,
}

/// Tools outside the system, and the tools of each companion.
type OwnTools = (Arc<dyn Tools>, Vec<Arc<str>>);

/// What survives a crash, besides the store.
#[derive(Clone, Default)]
struct Surviving {
    platforms: Platforms,
    gateways: Gateways,
    /// Time continues meanwhile.
    clock: Arc<TokioClock>,
    /// Ids continue, so that a trace after the crash is not taken for one before it.
    rng: Arc<Draws>,
    /// What was to be done in voice calls.
    calls: Arc<FakeCalls>,
    /// What hears and speaks in voice calls of its own.
    speech: Option<Speech>,
    /// The moderation service for statements.
    moderation: Option<Arc<dyn Moderation>>,
    tools: Option<OwnTools>,
}

/// Answers a question by its text. `None`: the scripted answers apply.
type Script = Box<dyn Fn(&Request) -> Option<Result<String, NoAnswer>> + Send>;

/// A model that gives the configured answers one after the other. The last one repeats.
pub(super) struct Scripted {
    identity: Identity,
    renamed: OnceLock<Identity>,
    answers: Mutex<VecDeque<Result<&'static str, NoAnswer>>>,
    pub(super) asked: Mutex<Vec<Request>>,
    delay: Mutex<Duration>,
    delays: Mutex<BTreeMap<CompanionId, Duration>>,
    /// How long it takes to write a word, and after how many words the next answers are lost.
    pace: Mutex<(Duration, VecDeque<usize>)>,
    script: Mutex<Option<Script>>,
    identity_panics: AtomicU64,
    cuts: AtomicU64,
}

type Condition = Box<dyn Fn() -> bool + Send>;

/// The machine's clock, which a test may set.
struct TokioClock {
    began: tokio::time::Instant,
    /// The first reader of the clock after this holds panics.
    panics: Mutex<Option<Condition>>,
    /// By how many seconds it was set.
    offset: AtomicI64,
}

impl Default for TokioClock {
    fn default() -> Self {
        Self { began: tokio::time::Instant::now(), panics: Mutex::default(), offset: AtomicI64::new(0) }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        let panics = self.panics.lock().take_if(|holds| holds());
        assert!(panics.is_none(), "as the test planned");
        let now = NOON + self.began.elapsed();
        Moment::from_micros(now.as_micros().saturating_add_signed(self.offset.load(Ordering::Relaxed) * 1_000_000))
    }
}

impl Scripted {
    fn new(first: &'static str) -> Arc<Self> {
        Arc::new(Self {
            identity: Identity { provider: "scripted".into(), model: "scripted".into(), endpoint: "scripted".into() },
            renamed: OnceLock::new(),
            answers: Mutex::new(VecDeque::from([Ok(first)])),
            asked: Mutex::default(),
            delay: Mutex::new(Duration::from_secs(1)),
            delays: Mutex::default(),
            pace: Mutex::default(),
            script: Mutex::default(),
            identity_panics: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
        })
    }

    /// Sets the next answers.
    pub(super) fn answers(&self, answers: impl IntoIterator<Item = Result<&'static str, NoAnswer>>) {
        *self.answers.lock() = answers.into_iter().collect();
    }

    /// Is another model from now on.
    pub(super) fn rename(&self, model: &str) {
        self.renamed.set(Identity { model: model.into(), ..self.identity.clone() }).expect("renamed once");
    }

    /// The number of next answers that end at their limit of tokens.
    pub(super) fn cut(&self, answers: u64) {
        self.cuts.store(answers, Ordering::Relaxed);
    }

    /// The number of next callers that panic when they read the model's identity.
    pub(super) fn panic_on_identity(&self, asking: u64) {
        self.identity_panics.store(asking, Ordering::Relaxed);
    }

    /// Answers by the question, from now on.
    pub(super) fn answer_by(&self, script: impl Fn(&Request) -> Option<Result<String, NoAnswer>> + Send + 'static) {
        *self.script.lock() = Some(Box::new(script));
    }

    /// Sets the delay of answers to this companion.
    pub(super) fn set_delay_for(&self, companion: &str, delay: Duration) {
        self.delays.lock().insert(companion.into(), delay);
    }

    /// How often it was asked for this companion.
    pub(super) fn asked_for(&self, companion: &str) -> usize {
        let is_by_companion = |request: &&Request| asking_companion(request) == companion;
        self.asked.lock().iter().filter(is_by_companion).count()
    }

    /// Writes word by word from now on. The next answers are lost after so many words.
    pub(super) fn write_at(&self, per_word: Duration, lost_after: impl IntoIterator<Item = usize>) {
        *self.pace.lock() = (per_word, lost_after.into_iter().collect());
    }

    /// Sets the delay of answers.
    pub(super) fn set_delay(&self, delay: Duration) {
        *self.delay.lock() = delay;
    }
}

#[async_trait]
impl LanguageModel for Scripted {
    async fn ask(&self, request: &Request, drafts: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let own_delay = self.delays.lock().get(&CompanionId::from(asking_companion(request))).copied();
        let delay = own_delay.unwrap_or(*self.delay.lock());
        self.asked.lock().push(request.clone());
        tokio::time::sleep(delay).await;
        let scripted = self.script.lock().as_ref().and_then(|script| script(request));
        let answer = if let Some(scripted) = scripted {
            Some(scripted)
        } else {
            let mut answers = self.answers.lock();
            let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
            next.map(|answer| answer.map(str::to_owned))
        };
        let text = answer.unwrap_or(Ok("NO".to_owned()))?;
        // A line `CALL name {…}` is a call of a tool.
        let call = |line: &str| {
            let (name, arguments) = line.strip_prefix("CALL ")?.split_once(' ')?;
            Some(ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() })
        };
        let tool_calls: Vec<_> = text.lines().filter_map(call).collect();
        let text = if tool_calls.is_empty() { text } else { text.lines().filter(|line| call(line).is_none()).collect() };
        let (per_word, lost_after) = {
            let mut pace = self.pace.lock();
            (pace.0, pace.1.pop_front())
        };
        let pieces: Vec<_> = if per_word.is_zero() { vec![&*text] } else { text.split_inclusive(' ').collect() };
        for (number, piece) in pieces.into_iter().enumerate() {
            tokio::time::sleep(per_word).await;
            if lost_after == Some(number) {
                let detail = "as the test planned".to_owned();
                return Err(NoAnswer::Unreachable { endpoint: self.identity.endpoint.clone(), detail });
            }
            drop(drafts.map(|drafts| drafts.send(Draft::More(piece.to_owned()))));
        }
        let usage = TokenUsage::new(10, 2);
        let finish_reason = take_one(&self.cuts).then(|| "length".to_owned());
        Ok(Answer { finish_reason, tool_calls, ..Answer::of_text(text, usage) })
    }

    fn identity(&self) -> &Identity {
        assert!(!take_one(&self.identity_panics), "as the test planned");
        self.renamed.get().unwrap_or(&self.identity)
    }
}

impl World {
    /// A system with Aria and Bruno, who are members of no room yet.
    pub(super) async fn new() -> Self {
        Self::with_store(Arc::new(MemoryStore::new())).await
    }

    /// A system with the room `lobby` of the guild `home`, with Aria as its member.
    pub(super) async fn with_lobby() -> Self {
        let world = Self::new().await;
        world.open("lobby", &["aria"]).await;
        world
    }

    /// The same. Aria says YES whenever she is asked.
    pub(super) async fn with_willing_lobby() -> Self {
        let world = Self::with_lobby().await;
        world.side.answers([Ok("Me.\nYES")]);
        world
    }

    /// The same with other settings.
    pub(super) async fn with_lobby_settings(overlay: Value) -> Self {
        let world = Self::build(Arc::new(MemoryStore::new()), overlay, Surviving::default()).await;
        world.open("lobby", &["aria"]).await;
        world
    }

    /// A system with other settings and the room `salon` of the guild `home`, with Aria, Bruno and Cleo as its members.
    pub(super) async fn with_salon(overlay: Value) -> Self {
        let world = Self::build(Arc::new(MemoryStore::new()), overlay, Surviving::default()).await;
        world.open("salon", &["aria", "bruno", "cleo"]).await;
        world
    }

    /// A system that carries audio, with other settings and the room `lobby` of the guild `home`, with Aria as its member.
    pub(super) async fn with_speech(speech: Speech, overlay: Value) -> Self {
        let surviving = Surviving { speech: Some(speech), ..Surviving::default() };
        let world = Self::build(Arc::new(MemoryStore::new()), overlay, surviving).await;
        world.open("lobby", &["aria"]).await;
        world
    }

    /// A system whose statements are examined, with other settings and the room `lobby` of the guild `home`, with Aria as its member.
    pub(super) async fn with_moderation(moderation: Arc<dyn Moderation>, overlay: Value) -> Self {
        let surviving = Surviving { moderation: Some(moderation), ..Surviving::default() };
        let world = Self::build(Arc::new(MemoryStore::new()), overlay, surviving).await;
        world.open("lobby", &["aria"]).await;
        world
    }

    /// A system with tools and other settings, and the room `lobby` of the guild `home`, with Aria as its member. She says YES whenever she is asked.
    pub(super) async fn with_tools(tools: Arc<dyn Tools>, names: &[&str], overlay: Value) -> Self {
        let tools = Some((tools, names.iter().map(|name| Arc::from(*name)).collect()));
        let world = Self::build(Arc::new(MemoryStore::new()), overlay, Surviving { tools, ..Surviving::default() }).await;
        world.open("lobby", &["aria"]).await;
        world.side.answers([Ok("Me.\nYES")]);
        world
    }

    /// A system with a platform in the place of the console, and the room `lobby` of the guild `home`, with Aria as its member.
    pub(super) async fn with_platform(platform: Arc<dyn ChatPlatform>) -> Self {
        Self::with_platform_settings(platform, json!({})).await
    }

    /// The same with other settings.
    pub(super) async fn with_platform_settings(platform: Arc<dyn ChatPlatform>, overlay: Value) -> Self {
        let surviving = Surviving { platforms: Platforms::default().with(platform), ..Surviving::default() };
        let world = Self::build(Arc::new(MemoryStore::new()), overlay, surviving).await;
        world.open("lobby", &["aria"]).await;
        world
    }

    /// A system with a platform beside the console, which recognises speech.
    pub(super) async fn with_platform_and_speech(platform: Arc<dyn ChatPlatform>, speech: Speech, overlay: Value) -> Self {
        let platforms = Platforms::default().with(platform);
        let surviving = Surviving { platforms, speech: Some(speech), ..Surviving::default() };
        Self::build(Arc::new(MemoryStore::new()), overlay, surviving).await
    }

    /// A system with connections to a platform. Aria and Bruno are members of no room yet.
    pub(super) async fn with_gateway(gateway: Arc<dyn Gateway>) -> Self {
        let surviving = Surviving { gateways: Gateways::default().with(gateway), ..Surviving::default() };
        Self::build(Arc::new(MemoryStore::new()), json!({}), surviving).await
    }

    /// A system with other settings.
    pub(super) async fn with_overlay(overlay: Value) -> Self {
        Self::build(Arc::new(MemoryStore::new()), overlay, Surviving::default()).await
    }

    /// A system that continues from a store.
    pub(super) async fn with_store(store: Arc<MemoryStore>) -> Self {
        Self::build(store, json!({}), Surviving::default()).await
    }

    async fn build(store: Arc<MemoryStore>, overlay: Value, surviving: Surviving) -> Self {
        let settings = Arc::new(samples::settings(overlay.clone()));
        let (side, main) = (Scripted::new("No.\nNO"), Scripted::new("Hello!"));
        let (spans, telemetry) = (SpanMemory::new(), &settings.telemetry);
        let mut companions = cast(&settings);
        let mut tools: Arc<dyn Tools> = Arc::new(NoTools);
        if let Some((own, names)) = &surviving.tools {
            tools = own.clone();
            companions.values_mut().for_each(|companion| companion.tools = Some(names.clone()));
        }
        let context = ActorContext {
            tools,
            platforms: surviving.platforms.clone(),
            gateways: surviving.gateways.clone(),
            voice_calls: surviving.calls.clone(),
            moderation: surviving.moderation.clone().map(Moderator::new).map(Arc::new),
            store_failed: Arc::new(|detail| panic!("the store failed: {detail}")),
            ..ActorContext::new(Environment {
                store: store.clone(),
                clock: surviving.clock.clone(),
                rng: surviving.rng.clone(),
                models: Models::new(side.clone(), main.clone()),
                speech: surviving.speech.clone().unwrap_or_else(built_in),
                recorder: spans.sampled(Sampling::share(telemetry.sample_ratio, telemetry.span_queue), telemetry.capture_content),
                companions,
                settings: settings.clone(),
            })
        };
        let context = match &surviving.speech {
            Some(_) => ActorContext { voice_calls: Arc::new(context.calls.clone()), ..context },
            None => context,
        };
        let (root, _) = Root::spawn(None, Root, context.clone()).await.unwrap();
        loading::load_rooms(&context, &[], false).await.unwrap();
        changes::resume_deletions(&context).await;
        brief_writing::load(&context).await.unwrap();
        startup_log::record_start(&context).await;
        cleanup::clean_up(&context).await;
        root.cast(RootMessage::WakePending).unwrap();
        let backend = backend::backend(context.clone(), store.clone());
        Self { context, backend, store, side, main, root, spans, killed: 0, overlay, surviving }
    }

    /// Ends this system as a crash would, and starts another with what is stored.
    pub(super) async fn crash(mut self) -> Self {
        self.root.kill();
        self.rest().await;
        self.store.reopen();
        self.killed = usize::MAX;
        Self::build(self.store.clone(), self.overlay.clone(), self.surviving.clone()).await
    }

    /// The same. The other system has this platform in the place of the console, or no platform there.
    pub(super) async fn crash_with_platform(mut self, platform: Option<Arc<dyn ChatPlatform>>) -> Self {
        let without = || Platforms::default().with_disabled(is_of_console);
        self.surviving.platforms = platform.map_or_else(without, |platform| Platforms::default().with(platform));
        self.crash().await
    }

    /// Configures only these companions, as a reload would.
    pub(super) async fn reload_companions(&self, ids: &[&str]) {
        let mut cast = cast(&self.context.settings);
        cast.retain(|id, _| ids.contains(&id.as_str()));
        loading::reload_companions(&self.context, cast).unwrap();
        self.rest().await;
    }

    pub(super) async fn open(&self, id: &str, companions: &[&str]) -> Room {
        self.open_with(id, json!(companions)).await
    }

    /// Opens rooms in a guild, each with Aria as its member.
    pub(super) async fn open_in(&self, guild: &str, ids: impl IntoIterator<Item = String>) {
        for id in ids {
            self.put_room(&id, json!({ "guild": guild, "companions": ["aria"] })).await.unwrap();
        }
        self.rest().await;
    }

    /// Sets the machine's clock, forward or back.
    pub(super) fn set_clock(&self, secs: i64) {
        self.surviving.clock.offset.fetch_add(secs, Ordering::Relaxed);
    }

    /// The first reader of the clock panics once an actor has this key.
    pub(super) fn panic_on_clock_once<P: Address + Send + 'static>(&self, channel_key: P) {
        let directory = self.context.directory.clone();
        *self.surviving.clock.panics.lock() = Some(Box::new(move || directory.find(&channel_key).is_some()));
    }

    /// What was to be done in the voice calls so far.
    pub(super) fn call_effects(&self) -> Vec<CallEffect> {
        self.surviving.calls.carried_out().into_iter().map(|(_, effect)| effect).collect()
    }

    /// A player for the voice calls, which survives crashes.
    pub(super) fn play_calls_by(&self, player: mpsc::UnboundedSender<(ChannelId, CallEffect)>) {
        self.surviving.calls.play_by(player);
    }

    /// Calls to models in flight.
    pub(super) async fn calls(&self) -> usize {
        self.context.pool.report().await.unwrap().lanes.iter().map(|lane| lane.running).sum()
    }

    /// The number of next draws that panic.
    pub(super) fn panic_on_draws(&self, draws: u64) {
        self.surviving.rng.panics(draws);
    }

    /// Opens a room for companions as the API writes them.
    pub(super) async fn open_with(&self, id: &str, companions: Value) -> Room {
        let made = self.put_room(id, json!({ "guild": "home", "companions": companions })).await.unwrap();
        self.rest().await;
        made
    }

    /// Asks for a room as the API would.
    pub(super) async fn put_room(&self, id: &str, plan: Value) -> Result<Room, Refused> {
        self.backend.rooms.put(&room(id), of_json(plan)).await.map(|(room, _)| room)
    }

    /// Changes a room as the API would.
    pub(super) async fn patch(&self, id: &str, patch: Value) -> Result<Room, Refused> {
        let patched = self.backend.rooms.patch(&room(id), of_json(patch)).await;
        self.rest().await;
        patched
    }

    /// Deletes a room for good.
    pub(super) async fn delete_room(&self, id: &str) {
        self.backend.rooms.delete(&room(id)).await.unwrap();
        self.pass(UNDO.as_secs_f64()).await;
        self.rest().await;
    }

    pub(super) async fn state(&self, id: &str) -> RoomState {
        self.backend.rooms.state(&room(id)).await.unwrap()
    }

    /// The companions that are members of a room.
    pub(super) async fn present(&self, id: &str) -> Vec<String> {
        let found = self.backend.rooms.get(&room(id)).await.unwrap();
        found.companions.iter().map(|companion| companion.id.to_string()).collect()
    }

    /// Ana says something.
    pub(super) async fn say(&self, id: &str, text: &str) -> Seq {
        self.say_with(id, json!({ "from": "Ana", "text": text })).await
    }

    /// Ana says something, and then this number of seconds pass.
    pub(super) async fn say_then_pass(&self, id: &str, text: &str, secs: f64) -> Seq {
        let seq = self.say(id, text).await;
        self.pass(secs).await;
        seq
    }

    pub(super) async fn say_with(&self, id: &str, message: Value) -> Seq {
        self.try_say(id, message).await.unwrap()
    }

    pub(super) async fn try_say(&self, id: &str, message: Value) -> Result<Seq, Refused> {
        self.backend.messages.say(&room(id), of_json(message)).await
    }

    /// Votes as a program does that plays a companion.
    pub(super) async fn vote(&self, id: &str, state: Value) -> Result<(), Refused> {
        self.backend.messages.vote(&room(id), of_json(state)).await
    }

    /// Speaks as a program does that plays a companion.
    pub(super) async fn speak(&self, id: &str, words: Value) -> Result<Seq, Refused> {
        self.backend.messages.speak(&room(id), of_json(words)).await
    }

    /// From now on actors may die, and their deaths are not counted.
    pub(super) const fn expect_deaths(&mut self) {
        self.killed = usize::MAX;
    }

    pub(super) fn root(&self) -> ractor::ActorCell {
        self.root.get_cell()
    }

    /// Lets every task finish that needs no time.
    pub(super) async fn rest(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    pub(super) async fn pass(&self, secs: f64) {
        tokio::time::sleep(Duration::from_secs_f64(secs)).await;
    }

    /// Senders and texts, oldest first.
    pub(super) async fn history(&self, id: &str) -> Vec<(String, String)> {
        let history = self.try_history(id).await.unwrap();
        history.messages.iter().map(|message| (message.from.to_string(), message.text.to_string())).collect()
    }

    pub(super) async fn try_history(&self, id: &str) -> Result<History, Refused> {
        let query = HistoryQuery { after: None, before: None, limit: 1_000 };
        self.backend.records.history(&room(id), query).await
    }

    /// The events of a room with this name that are on record, oldest first.
    pub(super) async fn recorded(&self, id: &str, name: &str) -> Vec<Value> {
        let mut seen = self.watch(id, Some(0)).await.seen().await;
        seen.retain(|event| !event["seq"].is_null() && event["event"] == name);
        seen
    }

    /// The decisions of a room as JSON.
    pub(super) async fn decisions(&self, id: &str) -> Vec<Value> {
        let query = DecisionQuery { room: Some(room(id)), companion: None, after: None, limit: 1_000 };
        let decisions = self.backend.records.decisions(query).await.unwrap();
        decisions.decisions.iter().map(|decision| serde_json::to_value(decision).unwrap()).collect()
    }

    /// The export of a room, line by line.
    pub(super) async fn export(&self, id: &str, form: ExportForm) -> Vec<String> {
        let lines =
            self.backend.records.export(ExportQuery { room: Some(room(id)), form, language: Language::English }).await.unwrap();
        lines.map(|line| line.unwrap()).collect().await
    }

    /// The outcomes of the turns that have ended.
    pub(super) fn turn_outcomes(&self) -> Vec<String> {
        self.spans.named("conversation.turn").iter().filter_map(|turn| attribute(turn, "turn.outcome")).collect()
    }

    /// The sum of the series with this name and all of these labels.
    pub(super) fn total(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        self.spans.metrics().total(name, labels) as u64
    }

    pub(super) fn reader(&self) -> Reader<'_> {
        Reader::new(&*self.store)
    }

    /// Writes into the store, past all that watches over what is written.
    pub(super) async fn write(&self, ward: Ward, writes: Vec<Write>) {
        write_meta(&self.context, ward, writes).await.unwrap();
    }

    /// The key of a value of a channel.
    pub(super) async fn key(&self, channel_key: &ChannelKey, key: impl FnOnce(Ward, ChannelNo) -> Key) -> Key {
        let no = self.reader().channel_no(channel_key).await.unwrap().expect("the channel has a number");
        key(channel_key.ward(), no)
    }

    /// Stores a value of a channel, and returns the one in whose place it is.
    pub(super) async fn put(
        &self,
        channel_key: &ChannelKey,
        key: impl FnOnce(Ward, ChannelNo) -> Key,
        value: impl Into<Stored>,
    ) -> Option<Stored> {
        let key = self.key(channel_key, key).await;
        let before = self.store.get(key.clone()).await.unwrap();
        self.write(channel_key.ward(), vec![Write::Put(key, value.into())]).await;
        before
    }

    /// Makes a value of a channel unreadable.
    pub(super) async fn damage(&self, channel_key: &ChannelKey, key: impl FnOnce(Ward, ChannelNo) -> Key) {
        self.store.damage(self.key(channel_key, key).await);
    }

    pub(super) async fn everything(&self) -> Vec<(Key, Stored)> {
        self.store.scan(Key::from_bytes(&[0]), Key::from_bytes(&[0xff; 300]), false, usize::MAX).await.unwrap()
    }

    /// Everything that is on record of a channel, oldest first.
    pub(super) async fn journal(&self, channel_key: &ChannelKey) -> Vec<Recorded> {
        let all = Range { after: Seq::NONE, before: None, limit: usize::MAX, newest_first: false };
        self.reader().events(channel_key, all).await.unwrap()
    }

    /// Replaces a configured companion, as a reload would.
    pub(super) fn reload_companion(&self, file: Value) {
        let companion = samples::companion(file, &self.context.settings);
        let mut companions = (*self.context.memberships.companions()).clone();
        companions.insert(companion.id.clone(), companion);
        loading::reload_companions(&self.context, companions).unwrap();
    }

    /// Forgets a person of the guild `home`, with the answers to the person or without.
    pub(super) async fn forget(&self, person: &str, answers: bool) -> Result<Forgotten, Refused> {
        self.forget_in("home", person, answers).await
    }

    pub(super) async fn forget_in(&self, guild: &str, person: &str, answers: bool) -> Result<Forgotten, Refused> {
        self.backend.maintenance.forget(Forget { guild: guild.into(), person: person.into(), answers }).await
    }

    /// Explains a decision in a room.
    pub(super) async fn why(&self, id: &str, companion: Option<&str>, at: Option<WhyAt>) -> Result<Why, Refused> {
        self.backend
            .records
            .why(WhyQuery { room: room(id), companion: companion.map(Into::into), at, language: Language::English })
            .await
    }

    pub(super) async fn watch(&self, id: &str, after: Option<u64>) -> Watching {
        Watching { stream: self.backend.rooms.live(Watched::Room(room(id), after.map(Seq))).await.unwrap(), is_over: false }
    }

    pub(super) async fn watch_rooms(&self, after: &str) -> Watching {
        let cursor = if after.is_empty() { Cursor::default() } else { Cursor::parse(after).unwrap() };
        Watching { stream: self.backend.rooms.live(Watched::All(cursor)).await.unwrap(), is_over: false }
    }

    /// Puts an actor in the place of the one with this key. It hangs with the first message, or ignores every one.
    pub(super) async fn replace<K: Address + Send + Sync + 'static>(&self, key: K, hangs: bool) -> ActorRef<K::Message> {
        Actor::spawn(None, Stub { key, hangs }, self.context.directory.clone()).await.unwrap().0
    }

    /// Kills a channel of the guild `home` whenever it runs, until the guild is in quarantine. Returns the last actor of the guild.
    pub(super) async fn kill_until_quarantine(&self, id: &str) -> Option<ractor::ActorId> {
        let mut last = None;
        for _ in 0..2_000 {
            let guild = self.context.directory.find(&GuildKey("home".into())).map(|guild| guild.get_id());
            last = guild.or(last);
            if let Some(channel) = self.context.directory.find(&ChannelActorKey(room(id).channel())) {
                channel.kill();
            }
            self.pass(0.1).await;
            if guild.is_none() && !self.backend.maintenance.quarantine().await.unwrap().guilds.is_empty() {
                break;
            }
        }
        last
    }

    /// Lets the store commit so many groups of what a task writes, or all of it.
    pub(super) async fn commit_groups<T>(&self, groups: u32, task: &JoinHandle<T>) {
        let mut written = 0;
        while written < groups && !task.is_finished() {
            self.pass(0.001).await;
            written += u32::from(self.store.commit_next());
        }
    }

    /// Kills the actor with this key. A test must say so, because no other actor may die.
    pub(super) async fn kill<P: Address>(&mut self, channel_key: &P) {
        self.context.directory.find(channel_key).expect("the actor is running").kill();
        self.killed = self.killed.saturating_add(1);
        self.rest().await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.root.kill();
        if !std::thread::panicking() && self.killed != usize::MAX {
            let died = self.spans.named("actor.restart").len();
            assert_eq!(died, self.killed, "the number of restarts differs from the number of actors that the test killed");
        }
    }
}

pub(super) struct Watching {
    pub(super) stream: LiveStream,
    is_over: bool,
}

impl Watching {
    /// The events that can be seen by now.
    pub(super) async fn seen(&mut self) -> Vec<Value> {
        let mut seen = Vec::new();
        while !self.is_over
            && let Ok(live) = tokio::time::timeout(Duration::from_millis(1), self.stream.next()).await
        {
            match live {
                Some(live) => seen.push(serde_json::from_str(&live.expect("a watcher that reads in time")).unwrap()),
                None => self.is_over = true,
            }
        }
        seen
    }

    /// The names of the events that can be seen by now, without notes and drafts.
    pub(super) async fn names(&mut self) -> Vec<String> {
        on_record(&self.seen().await)
    }

    /// Whether the stream has ended.
    pub(super) async fn is_over(&mut self) -> bool {
        self.seen().await;
        self.is_over
    }
}

/// An actor in the place of another, under its key. It hangs with the first message, or ignores every one.
struct Stub<K> {
    key: K,
    hangs: bool,
}

impl<K: Address + Send + Sync + 'static> Actor for Stub<K> {
    type Msg = K::Message;
    type State = Registration;
    type Arguments = Directory;

    async fn pre_start(&self, myself: ActorRef<K::Message>, directory: Directory) -> Result<Registration, ActorProcessingErr> {
        Ok(directory.register(&self.key, &myself))
    }

    async fn handle(&self, _: ActorRef<K::Message>, _: K::Message, _: &mut Registration) -> Result<(), ActorProcessingErr> {
        if self.hangs { std::future::pending().await } else { Ok(()) }
    }
}

/// The purpose of a question.
pub(super) fn purpose(request: &Request) -> &Purpose {
    &context(request).purpose
}

/// The context of a question.
pub(super) fn context(request: &Request) -> &QuestionContext {
    request.extensions.get().expect("every question has a context")
}

/// The companion that asks; empty if there is none.
pub(super) fn asking_companion(request: &Request) -> &str {
    request.companion.as_ref().map_or("", |companion| companion.id.as_str())
}

pub(super) fn room(id: &str) -> RoomId {
    RoomId::parse(id).unwrap()
}

/// A room of the guild `home`.
pub(super) fn channel_key(id: &str) -> ChannelKey {
    ChannelKey::new(&"home".into(), &room(id).channel())
}

/// What the API reads of a request's body.
pub(super) fn of_json<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// An answer of the side model in a round.
pub(super) fn ballot(decision: &str, importance: u8, closing: &str) -> String {
    json!({ "reason": "So.", "decision": decision, "importance": importance, "selected": false, "closing": closing }).to_string()
}

/// The names of these events, without notes and drafts.
pub(super) fn on_record(seen: &[Value]) -> Vec<String> {
    let on_record = seen.iter().filter(|event| !event["seq"].is_null() || event["event"] == "hello");
    on_record.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

/// The newest event with this name.
pub(super) fn newest<'a>(seen: &'a [Value], name: &str) -> &'a Value {
    seen.iter().rev().find(|event| event["event"] == name).unwrap_or_else(|| panic!("no {name} in {seen:#?}"))
}

/// A model that refuses the question.
pub(super) fn refusal() -> NoAnswer {
    NoAnswer::Refused { endpoint: "scripted".into(), detail: "no".into() }
}

pub(super) fn lines(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines.iter().map(|(from, text)| ((*from).to_owned(), (*text).to_owned())).collect()
}

fn cast(settings: &Settings) -> BTreeMap<CompanionId, Companion> {
    let companion = |id: &str, aliases: &[&str]| {
        let picture = format!("https://example.org/{id}.png");
        (id.into(), samples::companion(json!({ "id": id, "aliases": aliases, "picture": picture }), settings))
    };
    [companion("aria", &["ari"]), companion("bruno", &[]), companion("cleo", &[]), companion("twin", &["ari"])].into()
}
