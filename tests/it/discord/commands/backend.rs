//! A small backend for commands: rooms in memory, the companions Aria and Ben, and the messages that commands delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use serde_json::{Map, json};
use tertulia::domain::closing::Stage;
use tertulia::domain::id::{ChannelId, CompanionId, GuildId, PersonId, Seq};
use tertulia::domain::moment::Moment;
use tertulia::domain::trigger::Trigger;
use tertulia::domain::vote::State;
use tertulia::ports::backend::Refused;
use tertulia::ports::backend::decisions::{DecisionQuery, DecisionRecord, Decisions, WaitingFor, Why, WhyQuery};
use tertulia::ports::backend::keeping::{
    BackedUp, ExportQuery, Forget, Forgotten, Lines, Person, Quarantine, Readiness, ReadyPart,
};
use tertulia::ports::backend::live::{Cursor, LiveStream};
use tertulia::ports::backend::maintenance_service::MaintenanceService;
use tertulia::ports::backend::message_service::MessageService;
use tertulia::ports::backend::messages::{Edit, History, HistoryQuery, NewEvent, NewMessage, Words};
use tertulia::ports::backend::record_service::RecordService;
use tertulia::ports::backend::room::{
    CompanionView, Companions, Override, Room, RoomCompanion, RoomId, RoomPatch, RoomPlan, Rooms,
};
use tertulia::ports::backend::room_service::RoomService;
use tertulia::ports::backend::state::{CompanionState, Doing, RepetitionState, RoomState};
use tertulia::ports::backend::usage::{Usage, UsageQuery};
use tertulia::ports::call_room::{CallRooms, Description, Entrance, Line};
use tertulia::ports::chat_platform::Serves;
use tertulia::ports::inbound_events::{Acceptance, ChannelRef, InboundError, InboundEvents, InboundMessage, Missed, Reached};
use tertulia::ports::opt_out::OptOut;
use tertulia::settings::companion::ModelChoice;
use tokio::sync::watch;

/// Noon of 1 May 2026.
const NOON: Moment = Moment::from_micros(1_777_636_800_000_000);

pub struct SmallBackend {
    data: Mutex<BackendData>,
    /// While this is true, callers wait.
    is_held: watch::Sender<bool>,
}

#[derive(Default)]
pub struct BackendData {
    pub rooms: BTreeMap<RoomId, Room>,
    /// Companions that were added to channels, in order.
    pub admitted: Vec<(ChannelRef, CompanionId)>,
    /// Companions that were removed from channels, in order.
    pub dismissed: Vec<(ChannelRef, CompanionId)>,
    pub forgotten: Vec<Forget>,
    pub ignored: BTreeSet<(GuildId, PersonId)>,
    /// Messages that commands delivered, and the ids of those that were deleted again.
    pub messages: Vec<(ChannelRef, InboundMessage)>,
    pub deleted: Vec<Arc<str>>,
    /// Rooms whose decisions or stories were requested.
    pub queried_rooms: Vec<RoomId>,
    /// If set, every call is refused with this.
    pub refuses: Option<Refused>,
    pub panics: bool,
    pub models_fail: bool,
    /// How many callers had to wait.
    pub waiting: usize,
}

impl Default for SmallBackend {
    fn default() -> Self {
        Self { data: Mutex::default(), is_held: watch::Sender::new(false) }
    }
}

impl SmallBackend {
    pub fn data(&self) -> MutexGuard<'_, BackendData> {
        self.data.lock().expect("nobody panicked in here")
    }

    /// Makes callers wait until [`SmallBackend::release`].
    pub fn hold(&self) {
        self.is_held.send_replace(true);
    }

    pub fn release(&self) {
        self.is_held.send_replace(false);
    }

    async fn check(&self) -> Result<(), Refused> {
        let (refuses, panics) = {
            let data = self.data();
            (data.refuses.clone(), data.panics)
        };
        if panics {
            // Nothing is printed. On a busy machine a backtrace of a large program takes longer than Discord waits for an answer.
            std::panic::resume_unwind(Box::new("a panic that the test requested"));
        }
        let mut held = self.is_held.subscribe();
        if *held.borrow() {
            self.data().waiting += 1;
        }
        // The sender lives as long as the backend.
        let _ = held.wait_for(|held| !held).await;
        refuses.map_or(Ok(()), Err)
    }
}

pub fn room_id(channel: &str) -> RoomId {
    RoomId::parse(channel).expect("a room's id")
}

fn member(id: &CompanionId) -> RoomCompanion {
    let name = if id.as_str() == "aria" { "Aria" } else { "Ben" };
    let interjection = if id.as_str() == "aria" { "average" } else { "eager" };
    RoomCompanion {
        id: id.clone(),
        name: name.into(),
        aliases: vec![],
        external: false,
        interjection: interjection.into(),
        starts_after: None,
        max_turns: None,
        repetition: true,
        model: ModelChoice::default(),
        paused: false,
    }
}

#[async_trait]
impl OptOut for SmallBackend {
    fn is_ignored(&self, guild: &GuildId, person: &PersonId) -> bool {
        self.data().ignored.contains(&(guild.clone(), person.clone()))
    }

    async fn ignore(&self, guild: &GuildId, person: &PersonId, ignored: bool) -> Result<bool, Refused> {
        self.check().await?;
        let (mut data, key) = (self.data(), (guild.clone(), person.clone()));
        Ok(if ignored { data.ignored.insert(key) } else { data.ignored.remove(&key) })
    }
}

#[async_trait]
impl InboundEvents for SmallBackend {
    fn listens(&self, _: &ChannelRef) -> bool {
        true
    }

    async fn reached(&self, _: &ChannelRef) -> Result<Option<Reached>, InboundError> {
        Ok(None)
    }

    async fn said(&self, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Result<Acceptance, InboundError> {
        let mut data = self.data();
        data.messages.push((channel_ref.clone(), inbound_message));
        Ok(Acceptance::New(Seq(data.messages.len() as u64)))
    }

    async fn edited(&self, _: &ChannelRef, _: &str, _: Arc<str>) -> Result<(), InboundError> {
        Ok(())
    }

    async fn deleted(&self, _: &ChannelRef, ids: &[Arc<str>]) -> Result<(), InboundError> {
        self.data().deleted.extend_from_slice(ids);
        Ok(())
    }

    async fn caught_up(&self, _: &ChannelRef, _: u32, _: Option<Missed>) -> Result<(), InboundError> {
        Ok(())
    }

    async fn channel_gone(&self, _: &GuildId, _: &ChannelId) -> Result<(), InboundError> {
        Ok(())
    }

    async fn guild_gone(&self, _: &GuildId) -> Result<(), InboundError> {
        Ok(())
    }

    fn guilds(&self, _: Serves) -> Vec<GuildId> {
        Vec::new()
    }
}

/// The answer to calls that no command makes.
fn never<T>() -> Result<T, Refused> {
    Err(Refused::NotYet("a command made a call that no command needs".into()))
}

#[async_trait]
impl CallRooms for SmallBackend {
    async fn describe(&self, _: &RoomId) -> Result<Description, Refused> {
        never()
    }

    async fn admits(&self, _: &RoomId, _: &str) -> Result<(), Refused> {
        never()
    }

    async fn enter(&self, _: &RoomId, _: Entrance) -> Result<Arc<dyn Line>, Refused> {
        never()
    }
}

#[async_trait]
impl RoomService for SmallBackend {
    async fn list(&self) -> Result<Rooms, Refused> {
        never()
    }

    async fn get(&self, room: &RoomId) -> Result<Room, Refused> {
        self.check().await?;
        self.data().rooms.get(room).cloned().ok_or_else(|| Refused::NotFound(format!("there is no room {room}")))
    }

    async fn put(&self, _: &RoomId, _: RoomPlan) -> Result<(Room, bool), Refused> {
        never()
    }

    async fn patch(&self, id: &RoomId, patch: RoomPatch) -> Result<Room, Refused> {
        self.check().await?;
        let mut data = self.data();
        let room = data.rooms.get_mut(id).ok_or_else(|| Refused::NotFound("no room".into()))?;
        match patch.paused {
            Override::Keep => {}
            Override::Reset => room.paused = false,
            Override::Set(paused) => room.paused = paused,
        }
        for (id, patch) in &patch.companions {
            let one = room.companions.iter_mut().find(|one| one.id.as_str() == &**id).expect("a companion of the room");
            match &patch.interjection {
                Override::Keep => {}
                Override::Reset => one.interjection = member(&one.id).interjection,
                Override::Set(tier) => one.interjection = tier.clone(),
            }
            match patch.paused {
                Override::Keep => {}
                Override::Reset => one.paused = false,
                Override::Set(paused) => one.paused = paused,
            }
        }
        Ok(room.clone())
    }

    async fn delete(&self, _: &RoomId) -> Result<(), Refused> {
        never()
    }

    async fn clear(&self, _: &RoomId) -> Result<(), Refused> {
        never()
    }

    async fn state(&self, room: &RoomId) -> Result<RoomState, Refused> {
        let companions = self.get(room).await?.companions;
        let state = |one: &RoomCompanion| CompanionState {
            id: one.id.clone(),
            name: one.name.clone(),
            interjection: one.interjection.clone(),
            buffer: vec![],
            message_count: 0,
            check_count: 0,
            next_interjection_at: None,
            lull_at: None,
            lull_secs: 10.0,
            doing: Doing::Listening,
            trigger: None,
            since: None,
            retry_at: None,
            paused: one.paused,
            closing: if one.id.as_str() == "ben" { Stage::Terminal } else { Stage::None },
            heard_closed: 0,
            reopen_after: 9,
            turns: 0,
            max_turns: None,
            repetition: true,
            model: ModelChoice::default(),
            external: false,
        };
        Ok(RoomState {
            companions: companions.iter().map(state).collect(),
            floor: None,
            late: Vec::new(),
            rounds: Vec::new(),
            turn: None,
            streak: 0,
            max_companion_streak: 4,
            turns: 0,
            max_turns: None,
            repetition: RepetitionState::default(),
            episode: None,
            kept_away: None,
            at: NOON.into(),
        })
    }

    async fn companions(&self) -> Result<Companions, Refused> {
        self.check().await?;
        let view = |id: &str, alias: &str| {
            let one = member(&id.into());
            CompanionView {
                id: one.id,
                name: one.name,
                aliases: vec![alias.into()],
                interjection: one.interjection,
                chattiness: "".into(),
                text_lull_timeout: 10.0,
                voice_lull_timeout: 5.0,
                starts_after: None,
                max_turns: None,
                repetition: true,
                model: ModelChoice::default(),
            }
        };
        Ok(Companions { companions: vec![view("aria", "ari"), view("ben", "benny")] })
    }

    async fn admit(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<(Room, bool), Refused> {
        self.check().await?;
        let mut data = self.data();
        data.admitted.push((channel_ref.clone(), companion.clone()));
        let id = RoomId::of(&channel_ref.channel).expect("a room's id");
        let empty = Room {
            id: id.clone(),
            title: None,
            inherits_from: None,
            guild: channel_ref.guild.clone(),
            companions: vec![],
            paused: false,
            last_at: None,
            language: None,
        };
        let room = data.rooms.entry(id).or_insert(empty);
        let is_new = !room.companions.iter().any(|one| one.id == *companion);
        if is_new {
            room.companions.push(member(companion));
            room.companions.sort_by(|a, b| a.id.cmp(&b.id));
        }
        Ok((room.clone(), is_new))
    }

    async fn dismiss(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<bool, Refused> {
        self.check().await?;
        let id = RoomId::of(&channel_ref.channel).expect("a room's id");
        let mut data = self.data();
        data.dismissed.push((channel_ref.clone(), companion.clone()));
        let Some(room) = data.rooms.get_mut(&id) else { return Ok(false) };
        let before = room.companions.len();
        room.companions.retain(|one| one.id != *companion);
        Ok(room.companions.len() < before)
    }

    async fn live(&self, _: &RoomId, _: Option<Seq>) -> Result<LiveStream, Refused> {
        never()
    }

    async fn live_rooms(&self, _: Cursor) -> Result<LiveStream, Refused> {
        never()
    }
}

#[async_trait]
impl MessageService for SmallBackend {
    async fn say(&self, _: &RoomId, _: NewMessage) -> Result<Seq, Refused> {
        never()
    }

    async fn event(&self, _: &RoomId, _: NewEvent) -> Result<Seq, Refused> {
        never()
    }

    async fn namesake(&self, _: &RoomId, _: &str) -> Result<Option<CompanionId>, Refused> {
        never()
    }

    async fn edit(&self, _: &RoomId, _: Seq, _: Edit) -> Result<Seq, Refused> {
        never()
    }

    async fn delete(&self, _: &RoomId, _: Seq) -> Result<Seq, Refused> {
        never()
    }

    async fn stop_reply(&self, _: &RoomId, _: &CompanionId) -> Result<(), Refused> {
        never()
    }

    async fn try_again(&self, _: &RoomId, _: Seq) -> Result<(), Refused> {
        never()
    }

    async fn vote(&self, _: &RoomId, _: State) -> Result<(), Refused> {
        never()
    }

    async fn speak(&self, _: &RoomId, _: Words) -> Result<Seq, Refused> {
        never()
    }
}

#[async_trait]
impl RecordService for SmallBackend {
    async fn history(&self, _: &RoomId, _: HistoryQuery) -> Result<History, Refused> {
        never()
    }

    async fn decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused> {
        self.check().await?;
        let room = query.room.expect("decisions of one room");
        self.data().queried_rooms.push(room.clone());
        let decision = DecisionRecord {
            seq: Seq(2),
            at: NOON.into(),
            room: room.as_str().into(),
            companion: "aria".into(),
            trigger: Trigger::Lull,
            decision: "NO".into(),
            reason: "model_no".into(),
            more: Map::from_iter([("why".to_owned(), json!(format!("nothing for me in {room}")))]),
        };
        Ok(Decisions { decisions: vec![decision], unreadable: Vec::new() })
    }

    async fn why(&self, query: WhyQuery) -> Result<Why, Refused> {
        self.check().await?;
        self.data().queried_rooms.push(query.room);
        let text = "9 more messages, or its name".to_owned();
        let waiting_for = WaitingFor { text, messages: Some(9), lull_at: None, retry_at: None, unsettled: 0 };
        Ok(Why { waiting_for: Some(waiting_for), ..Why::default() })
    }

    async fn usage(&self, _: UsageQuery) -> Result<Usage, Refused> {
        never()
    }

    async fn export(&self, _: ExportQuery) -> Result<Lines, Refused> {
        never()
    }

    async fn export_person(&self, _: Person) -> Result<Lines, Refused> {
        never()
    }
}

#[async_trait]
impl MaintenanceService for SmallBackend {
    async fn quarantine(&self) -> Result<Quarantine, Refused> {
        Ok(Quarantine::default())
    }

    async fn release(&self, _: &str) -> Result<(), Refused> {
        never()
    }

    async fn retry(&self, _: &str) -> Result<(), Refused> {
        never()
    }

    async fn drop_entry(&self, _: &str) -> Result<(), Refused> {
        never()
    }

    async fn backup(&self, _: &str) -> Result<BackedUp, Refused> {
        never()
    }

    async fn copy_for(&self, _: u32) -> Result<BackedUp, Refused> {
        never()
    }

    async fn forget(&self, forget: Forget) -> Result<Forgotten, Refused> {
        self.check().await?;
        self.data().forgotten.push(forget);
        let noon = Moment::from_micros(1_777_636_800_000_000);
        Ok(Forgotten { messages: 2, decisions: 1, summaries: 0, in_file_until: Some(noon.into()) })
    }

    async fn readiness(&self) -> Readiness {
        let ready = !self.data().models_fail;
        let part = |part: &str, ready| ReadyPart { part: part.into(), ready, detail: "https://secret.example: 500".into() };
        Readiness { ready: true, parts: vec![part("store", true), part("models", ready)], models: None }
    }
}
