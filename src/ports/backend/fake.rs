//! A small fake backend in memory. Rooms contain Aria, Ben and external companions, messages are stored, and no decisions are made.
//!
//! Four rooms have special behaviour: `boom` panics, `full` is unavailable, `slow` waits until the test lets it continue, and an export of `torn`
//! fails midway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use jiff::tz::TimeZone;
use parking_lot::{Mutex, MutexGuard};
use secrecy::SecretString;
use serde_json::{Map, json};
use tokio::sync::{Notify, broadcast, mpsc, watch};

use crate::backend::decisions::{DecisionQuery, DecisionRecord, Decisions, StoryLine, WaitingFor, Why, WhyAt, WhyQuery};
use crate::backend::guest_service::{Amount, GuestService, InvitationView, NewInvitation, Preview, PreviewedRoom, Visit};
use crate::backend::keeping::{
    BackedUp, DeadLetter, ExportForm, ExportQuery, Forget, Forgotten, Lines, Person, Quarantine, QuarantinedGuild, Readiness,
    ReadyPart, SuspendedChannel,
};
use crate::backend::live::{Lagged, LiveStream, Watched};
use crate::backend::lore_service::{BookChange, BookSummary, BookView, Books, KeptBook, LoreService};
use crate::backend::maintenance_service::MaintenanceService;
use crate::backend::memory_service::{MemoryService, Notes, NotesAbout};
use crate::backend::message_service::MessageService;
use crate::backend::messages::{
    Approver, CallView, Choice, Chosen, Drafted, Drafting, Edit, Found, Greeting, History, HistoryMessage, HistoryQuery,
    Imported, MessageFile, PromptText, RunBy, SearchQuery, Words,
};
use crate::backend::record_service::RecordService;
use crate::backend::reminder_service::{ReminderService, ReminderSet, ReminderView};
use crate::backend::room::{
    CompanionPatch, CompanionView, Companions, Deletion, Invited, NewRoom, Override, Room, RoomCompanion, RoomId, RoomPatch,
    RoomPlan, Rooms, VoiceNotes,
};
use crate::backend::room_service::RoomService;
use crate::backend::stamp::Stamp;
use crate::backend::state::{CompanionState, RoomState};
use crate::backend::usage::{
    Calls, Cap, Caps, Costs, GuestUsage, GuildReceptions, GuildUsage, PeopleTold, ReceptionBy, ReceptionQuery, Receptions,
    Safety, SafetyFigures, SafetyMonth, Speech, SpeechBy, ToolCalls, ToolsBy, Usage, UsageBy, UsageQuery, Used,
};
use crate::backend::{Detail, Refused};
use crate::call_room::{CallRooms, Description, Entrance, Line, Listener, PersonAction, SpeechService, View};
use crate::companion_setup::Revision;
use crate::domain::closing::Stage;
use crate::domain::guests;
use crate::domain::id::{CompanionId, GuildId, PersonId, Seq, Ticket};
use crate::domain::lore::Shelved;
use crate::domain::message::{Author, ImportedMessage, Role};
use crate::domain::moment::Moment;
use crate::domain::policy::zone::Zone;
use crate::domain::price::{Price, UnitPrice};
use crate::domain::reception::Reception;
use crate::domain::reminders::{NewReminder, Reading};
use crate::domain::room_words::RoomWords;
use crate::domain::service::Service;
use crate::domain::token_usage::TokenUsage;
use crate::domain::trigger::Trigger;
use crate::domain::vote::State;
use crate::inbound_events::{ChannelRef, InboundMessage, StoredFile};
use crate::settings::companion::{Interjection, QuietHours};

/// Noon of 1 May 2026, the constant time of this backend.
const NOON: Moment = Moment::from_micros(1_777_636_800_000_000);

/// The message of the round that is always open in a room with an external companion.
const ROUND: &str = "7";

/// The number of events by which a watcher may lag behind.
pub const LIVE_BUFFER: usize = 16;

/// A small fake backend in memory.
#[derive(Default)]
pub struct FakeBackend {
    rooms: Mutex<BTreeMap<RoomId, FakeRoom>>,
    /// Why the backend is not ready. `None`: it is ready.
    pub not_ready_because: Mutex<Option<String>>,
    /// Notified when a call enters the room `slow`.
    pub entered: Notify,
    /// Lets that call continue.
    pub proceed: Notify,
    probe: Mutex<Probe>,
    /// The lorebooks, each with the number of its changes.
    books: Mutex<BTreeMap<Arc<str>, (Shelved, u32)>>,
    /// While this is true, most calls wait.
    is_held: watch::Sender<bool>,
    guests: Mutex<FakeGuests>,
    guest_changes: watch::Sender<u64>,
    /// The listeners of the people who entered a call, in order.
    pub listeners: Mutex<Vec<Arc<dyn Listener>>>,
}

/// Data that a test reads, and settings with which a test controls the backend.
#[derive(Default)]
pub struct Probe {
    /// Companions that were added to channels, in order.
    pub admitted: Vec<(ChannelRef, CompanionId)>,
    /// Companions that were removed from channels, in order.
    pub dismissed: Vec<(ChannelRef, CompanionId)>,
    pub forgotten: Vec<Forget>,
    /// A person's messages, as lines of an export. Empty: one line with the request.
    pub said: Vec<String>,
    /// Rooms whose decisions or explanations were requested.
    pub queried_rooms: Vec<RoomId>,
    /// The condition that every companion waits for.
    pub waiting_for: Option<WaitingFor>,
    /// The error with which most calls are refused, if it is set.
    pub refuses: Option<Refused>,
    /// Whether most calls panic.
    pub panics: bool,
    pub models_fail: bool,
    /// Whether notes are taken, by person; the empty name is the whole guild.
    pub notes_on: BTreeMap<String, bool>,
    /// Whether notes are used in other rooms.
    pub notes_across_rooms: bool,
    pub reminders: Vec<ReminderView>,
    /// The time zones that people chose, by person.
    pub time_zones: BTreeMap<String, Arc<str>>,
    /// The sender that the next copy of the store for a process keeps.
    pub copy: Option<mpsc::Sender<()>>,
}

/// The interjection level and the quiet hours of a companion in a room, and whether it is paused.
type Overridden = (Option<Interjection>, Option<QuietHours>, bool);

struct FakeRoom {
    title: Option<Arc<str>>,
    guild: GuildId,
    companions: BTreeMap<CompanionId, Overridden>,
    externals: BTreeMap<CompanionId, Invited>,
    paused: bool,
    quiet_hours: Option<QuietHours>,
    messages: Vec<HistoryMessage>,
    files: BTreeMap<(Seq, u64), StoredFile>,
    live: broadcast::Sender<Arc<str>>,
}

impl FakeRoom {
    fn view(&self, id: &RoomId) -> Room {
        let companion = |(id, (interjection, quiet_hours, paused)): (&CompanionId, &Overridden)| RoomCompanion {
            id: id.clone(),
            name: self.name(id),
            ai: true,
            aliases: self.externals.get(id).map(|invited| invited.aliases.clone()).unwrap_or_default(),
            external: self.externals.contains_key(id),
            interjection: interjection.unwrap_or(Interjection::Average).as_str().into(),
            quiet_hours: quiet_hours.unwrap_or_default(),
            repetition: true,
            paused: *paused,
            ..RoomCompanion::default()
        };
        Room {
            id: id.clone(),
            title: self.title.clone(),
            guild: self.guild.clone(),
            inherits_from: None,
            companions: self.companions.iter().map(companion).collect(),
            language: None,
            quiet_hours: self.quiet_hours,
            minors: false,
            voice_notes: VoiceNotes::Off,
            words: RoomWords::default(),
            paused: self.paused,
            last_at: self.messages.last().map(|message| message.at),
        }
    }

    fn name(&self, id: &CompanionId) -> Arc<str> {
        let external_name = self.externals.get(id).and_then(|invited| invited.name.clone());
        external_name.unwrap_or_else(|| builtin_name(id))
    }

    /// Checks that a vote or a statement comes from an external companion and names the open round.
    fn check_external(&self, id: &CompanionId, message_id: &str) -> Result<(), Refused> {
        match self.externals.contains_key(id) {
            false => Err(Refused::conflict(format!("{id} is not an external companion of this room"))),
            true if message_id != ROUND => Err(Refused::conflict(format!("the round is about message {ROUND}"))),
            true => Ok(()),
        }
    }

    /// The next message typed by a person.
    fn typed(&self, from: Arc<str>, text: Arc<str>) -> HistoryMessage {
        let (seq, at) = (Seq(self.messages.len() as u64 + 1), NOON.into());
        HistoryMessage { seq, from, text, at, ..HistoryMessage::default() }
    }

    fn store(&mut self, message: HistoryMessage) -> Seq {
        let _ = self.live.send(rendered(&message));
        self.messages.push(message);
        Seq(self.messages.len() as u64)
    }

    fn message(&mut self, seq: Seq) -> Result<&mut HistoryMessage, Refused> {
        self.messages
            .iter_mut()
            .find(|message| message.seq == seq)
            .ok_or_else(|| Refused::not_found(format!("there is no message {seq}")))
    }
}

fn builtin_name(id: &CompanionId) -> Arc<str> {
    if id.as_str() == "aria" { "Aria".into() } else { "Ben".into() }
}

fn rendered(message: &HistoryMessage) -> Arc<str> {
    let json = json!({ "event": "message", "seq": message.seq, "from": message.from, "text": message.text });
    json.to_string().into()
}

impl FakeBackend {
    /// A backend with the room `lobby`, which contains Aria.
    pub fn with_lobby() -> Self {
        let backend = Self::default();
        backend.add("lobby");
        backend
    }

    /// Adds a room with Aria.
    pub fn add(&self, room: &str) {
        let room = RoomId::parse(room).unwrap();
        self.rooms.lock().insert(room, new_room("home", vec!["aria".into()]));
    }

    /// Adds a channel of another platform with Aria.
    pub fn add_channel(&self, room: &str, guild: &str, title: &str) {
        let room = RoomId::parse(room).unwrap();
        self.rooms.lock().insert(room, FakeRoom { title: Some(title.into()), ..new_room(guild, vec!["aria".into()]) });
    }

    /// Sends an event to the watchers of a room.
    pub fn show(&self, room: &str, live: Arc<str>) {
        let room = RoomId::parse(room).unwrap();
        let _ = self.rooms.lock()[&room].live.send(live);
    }

    pub fn probe(&self) -> MutexGuard<'_, Probe> {
        self.probe.lock()
    }

    /// Makes callers wait until [`FakeBackend::release`].
    pub fn hold(&self) {
        self.is_held.send_replace(true);
    }

    pub fn release(&self) {
        self.is_held.send_replace(false);
    }

    /// Panics at once if the test requested that. Otherwise waits while the backend is held, then returns the error that was requested before the
    /// wait.
    pub async fn check(&self) -> Result<(), Refused> {
        if self.probe().panics {
            // Does not print the panic. On a busy machine, a backtrace of a large program takes longer than a platform waits for a response.
            std::panic::resume_unwind(Box::new("a panic that the test requested"));
        }
        let refuses = self.probe().refuses.clone();
        // The sender lives as long as the backend.
        let _ = self.is_held.subscribe().wait_for(|held| !held).await;
        refuses.map_or(Ok(()), Err)
    }

    fn with_room<T>(&self, id: &RoomId, act: impl FnOnce(&mut FakeRoom) -> Result<T, Refused>) -> Result<T, Refused> {
        if id.as_str() == "full" {
            return Err(Refused::Unavailable { detail: "the store is full".into(), retry_after: Some(Duration::from_secs(7)) });
        }
        assert_ne!(id.as_str(), "boom");
        let missing = || Refused::not_found(format!("there is no room {id}, PUT /api/rooms/{id} creates it"));
        self.rooms.lock().get_mut(id).ok_or_else(missing).and_then(act)
    }
}

fn new_room(guild: &str, companions: Vec<CompanionId>) -> FakeRoom {
    FakeRoom {
        title: None,
        guild: guild.into(),
        companions: companions.into_iter().map(|id| (id, (None, None, false))).collect(),
        externals: BTreeMap::new(),
        paused: false,
        quiet_hours: None,
        messages: Vec::new(),
        files: BTreeMap::new(),
        live: broadcast::Sender::new(LIVE_BUFFER),
    }
}

fn decision(room: &str) -> DecisionRecord {
    DecisionRecord {
        seq: Seq(2),
        at: NOON.into(),
        room: room.into(),
        companion: "aria".into(),
        trigger: Trigger::Lull,
        decision: "NO".into(),
        reason: "model_no".into(),
        more: Map::from_iter([
            ("message_count".to_owned(), 1.into()),
            ("why".to_owned(), format!("nothing for me in {room}").into()),
        ]),
    }
}

#[async_trait]
impl CallRooms for FakeBackend {
    async fn describe(&self, _: &RoomId) -> Result<Description, Refused> {
        let recognition = vec![SpeechService { provider: "deepgram", host: Some("ears.example".into()) }];
        let synthesis = vec![SpeechService { provider: "rehearsal", host: None }];
        Ok(Description { recognition, recognises_words: true, synthesis, people: Vec::new(), troubles: Vec::new() })
    }

    async fn admits(&self, _: &RoomId, _: &str) -> Result<(), Refused> {
        Ok(())
    }

    async fn enter(&self, _: &RoomId, entrance: Entrance) -> Result<Arc<dyn Line>, Refused> {
        self.listeners.lock().push(entrance.listener.clone());
        Ok(Arc::new(FakeLine(entrance)))
    }
}

/// A line that shows the reports it receives as captions.
struct FakeLine(Entrance);

impl FakeLine {
    fn show(&self, text: String) {
        let user = PersonId::from(&*self.0.author.id);
        self.0.listener.show(&View::Caption { user, text: text.into(), kind: None });
    }
}

impl Line for FakeLine {
    fn push_packet(&self, number: u32, _: &[u8]) {
        self.show(format!("packet {number}"));
    }

    fn report(&self, action: PersonAction) {
        self.show(format!("{action:?}"));
    }
}

#[async_trait]
impl GuestService for FakeBackend {
    async fn invite(&self, id: &RoomId, new: NewInvitation) -> Result<(InvitationView, SecretString), Refused> {
        let from = self.with_room(id, |room| Ok(room.messages.last().map_or(Seq::NONE, |message| message.seq)))?;
        let mut guests = self.guests.lock();
        guests.made += 1;
        let secret = format!("secret-{}", guests.made);
        let (key, hashed) = (Arc::<str>::from(format!("i{}", guests.made)), Arc::from(&*secret));
        let (channel, most_guests) = (id.channel(), new.most_guests);
        let new = guests::InvitationPlan {
            guild: "home".into(),
            channel,
            secret: hashed,
            from,
            ends_at: None,
            most_guests,
            knows_before: true,
        };
        assert!(guests.all.add(key.clone(), new, NOON));
        Ok((guests.view(&key), secret.into()))
    }

    async fn invitations(&self, id: &RoomId) -> Result<Vec<InvitationView>, Refused> {
        let guests = self.guests.lock();
        Ok(guests.all.of_room(&id.channel()).iter().map(|(key, _)| guests.view(key)).collect())
    }

    async fn revoke(&self, room: &RoomId, id: &str) -> Result<(), Refused> {
        let is_known = self.guests.lock().all.revoke(&room.channel(), id, NOON);
        self.guest_changes.send_modify(|edition| *edition += 1);
        if is_known { Ok(()) } else { Err(Refused::not_found(format!("there is no invitation {id}"))) }
    }

    async fn remove_guest(&self, room: &RoomId, id: &str, name: &str) -> Result<(), Refused> {
        let is_known = self.guests.lock().all.remove_guest(&room.channel(), id, name, NOON);
        self.guest_changes.send_modify(|edition| *edition += 1);
        if is_known { Ok(()) } else { Err(Refused::not_found(format!("there is no guest {name}"))) }
    }

    async fn look(&self, secret: &str, _: &[String]) -> Result<Preview, Refused> {
        let guests = self.guests.lock();
        let (_, invitation) = guests.all.with_secret(secret, NOON).ok_or_else(not_open)?;
        let id = RoomId::of(&invitation.channel).ok_or_else(not_open)?;
        Ok(Preview {
            room: PreviewedRoom { id, title: None, companions: Vec::new() },
            ends_at: None,
            name: None,
            name_is_fixed: false,
            run_by: RunBy::default(),
            takes_notes: false,
        })
    }

    async fn join(&self, secret: &str, name: Arc<str>, _: &[String]) -> Result<(Visit, SecretString), Refused> {
        let mut guests = self.guests.lock();
        guests.made += 1;
        // The cookie is as long as a real one.
        let cookie = format!("{:064x}", guests.made);
        let newcomer = guests::Newcomer { name, cookie: Arc::from(&*cookie), former: Vec::new() };
        let visit = guests.all.join(secret, newcomer, NOON).map_err(|_| not_open())?;
        Ok((visit, cookie.into()))
    }

    fn is_guests_name(&self, _: &RoomId, name: &str) -> bool {
        self.guests.lock().all.is_taken(&"home".into(), name, &[])
    }

    fn visit(&self, cookie: &str) -> Option<Visit> {
        self.guests.lock().all.visit(cookie, NOON)
    }

    fn is_open(&self, visit: &Visit) -> bool {
        GuestService::visit(self, &visit.cookie).is_some()
    }

    fn was_removed(&self, _cookies: &[String]) -> bool {
        false
    }

    async fn leave(&self, visit: &Visit) -> Result<(), Refused> {
        self.guests.lock().all.leave(&visit.cookie, NOON);
        self.guest_changes.send_modify(|edition| *edition += 1);
        Ok(())
    }

    async fn consume_quota(&self, _: &Visit, _: Amount) -> Result<(), Refused> {
        Ok(())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.guest_changes.subscribe()
    }
}

/// Invitations with unhashed secrets.
#[derive(Default)]
struct FakeGuests {
    all: guests::Invitations,
    /// The number of invitations and cookies that were created.
    made: u64,
}

impl FakeGuests {
    fn view(&self, id: &Arc<str>) -> InvitationView {
        InvitationView::of(id, self.all.get(id).unwrap(), NOON)
    }
}

fn not_open() -> Refused {
    Refused::not_found("this invitation does not exist, has ended or was revoked; ask for a new one")
}

#[async_trait]
impl RoomService for FakeBackend {
    async fn list(&self) -> Result<Rooms, Refused> {
        Ok(Rooms { rooms: self.rooms.lock().iter().map(|(id, room)| room.view(id)).collect() })
    }

    async fn of_guild(&self, guild: &GuildId) -> Result<Rooms, Refused> {
        self.check().await?;
        let all = self.list().await?.rooms;
        Ok(Rooms { rooms: all.into_iter().filter(|room| room.guild == *guild).collect() })
    }

    async fn get(&self, id: &RoomId) -> Result<Room, Refused> {
        self.check().await?;
        self.with_room(id, |room| Ok(room.view(id)))
    }

    async fn find(&self, name: &str) -> Result<RoomId, Refused> {
        let missing = || Refused::not_found(format!("there is no room {name}"));
        let titled = |room: &&FakeRoom| room.title.as_deref() == Some(name);
        let by_title = self.rooms.lock().iter().find(|(_, room)| titled(room)).map(|(id, _)| id.clone());
        by_title.or_else(|| RoomId::parse(name)).ok_or_else(missing)
    }

    async fn create(&self, new: NewRoom) -> Result<Room, Refused> {
        let id = RoomId::of_title(&new.title, |id| self.rooms.lock().contains_key(id));
        let NewRoom { title, guild, companions, language } = new;
        self.put(&id, RoomPlan { guild, companions, language, must_be_new: true }).await?;
        self.patch(&id, RoomPatch { title: Override::Set(title), ..RoomPatch::default() }).await
    }

    async fn put(&self, id: &RoomId, plan: RoomPlan) -> Result<(Room, bool), Refused> {
        let mut rooms = self.rooms.lock();
        let is_new = !rooms.contains_key(id);
        let room = rooms.entry(id.clone()).or_insert_with(|| new_room(plan.guild.as_str(), Vec::new()));
        if room.guild != plan.guild {
            return Err(Refused::conflict(format!("room {id} belongs to guild {}", room.guild)));
        }
        room.companions = plan.companions.iter().map(|invited| (invited.id.clone(), (None, None, false))).collect();
        room.externals =
            plan.companions.into_iter().filter(|invited| invited.external).map(|invited| (invited.id.clone(), invited)).collect();
        Ok((room.view(id), is_new))
    }

    async fn patch(&self, id: &RoomId, patch: RoomPatch) -> Result<Room, Refused> {
        self.check().await?;
        self.with_room(id, |room| {
            if patch.paused != Override::Keep {
                room.paused = patch.paused == Override::Set(true);
            }
            patch.quiet_hours.apply(&mut room.quiet_hours);
            patch.title.clone().apply(&mut room.title);
            for (companion, CompanionPatch { interjection, quiet_hours, paused, .. }) in &patch.companions {
                let missing =
                    || Refused::Invalid { field: format!("companions.{companion}"), detail: "is not in the room".into() };
                let overrides = room.companions.get_mut(&CompanionId::from(&**companion)).ok_or_else(missing)?;
                interjection.apply(&mut overrides.0);
                quiet_hours.apply(&mut overrides.1);
                if *paused != Override::Keep {
                    overrides.2 = *paused == Override::Set(true);
                }
            }
            Ok(room.view(id))
        })
    }

    async fn deletion(&self, id: &RoomId) -> Result<Deletion, Refused> {
        self.with_room(id, |room| Ok(Deletion { messages: room.messages.len() as u64, deleted_at: None }))
    }

    async fn delete(&self, id: &RoomId) -> Result<Deletion, Refused> {
        let deletion = self.deletion(id).await?;
        self.rooms.lock().remove(id);
        Ok(Deletion { deleted_at: Some(NOON.into()), ..deletion })
    }

    async fn undelete(&self, id: &RoomId) -> Result<Room, Refused> {
        self.with_room(id, |_| Err(Refused::conflict(format!("room {id} is not being deleted"))))
    }

    async fn clear(&self, id: &RoomId) -> Result<(), Refused> {
        self.with_room(id, |_| Ok(()))
    }

    async fn description(&self, id: &RoomId, _: &PersonId) -> Result<Option<Arc<str>>, Refused> {
        self.with_room(id, |_| Ok(None))
    }

    async fn describe(&self, id: &RoomId, _: &PersonId, _: Option<Arc<str>>) -> Result<(), Refused> {
        self.with_room(id, |_| Ok(()))
    }

    async fn begin_anew(&self, id: &RoomId) -> Result<(), Refused> {
        self.with_room(id, |_| Ok(()))
    }

    async fn state(&self, id: &RoomId) -> Result<RoomState, Refused> {
        if id.as_str() == "slow" {
            self.entered.notify_one();
            self.proceed.notified().await;
        }
        self.check().await?;
        self.with_room(id, |room| {
            let companion = |(id, (_, quiet_hours, paused)): (&CompanionId, &Overridden)| CompanionState {
                id: id.clone(),
                name: room.name(id),
                interjection: "average".into(),
                buffer: room.messages.iter().map(|message| message.text.clone()).collect(),
                message_count: room.messages.len() as u64,
                next_interjection_at: Some(9),
                lull_secs: 10.0,
                paused: *paused,
                quiet_hours: quiet_hours.unwrap_or_default(),
                // Ben has ended every conversation.
                closing: if id.as_str() == "ben" { Stage::Terminal } else { Stage::None },
                reopen_after: 9,
                repetition: true,
                external: room.externals.contains_key(id),
                ..CompanionState::default()
            };
            let companions = room.companions.iter().map(companion).collect();
            Ok(RoomState { companions, max_companion_streak: 4, at: NOON.into(), ..RoomState::default() })
        })
    }

    async fn companions(&self) -> Result<Companions, Refused> {
        self.check().await?;
        let view = |id: &str, alias: &str| CompanionView {
            ai: true,
            id: id.into(),
            name: builtin_name(&id.into()),
            aliases: vec![alias.into()],
            interjection: "average".into(),
            chattiness: "curious".into(),
            text_lull_timeout: 10.0,
            voice_lull_timeout: 2.0,
            repetition: true,
            ..CompanionView::default()
        };
        Ok(Companions { companions: vec![view("aria", "ari"), view("ben", "benny")] })
    }

    async fn admit(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<(Room, bool), Refused> {
        self.check().await?;
        self.probe().admitted.push((channel_ref.clone(), companion.clone()));
        let id = RoomId::of(&channel_ref.channel).expect("a room's id");
        let mut rooms = self.rooms.lock();
        let room = rooms.entry(id.clone()).or_insert_with(|| new_room(channel_ref.guild.as_str(), Vec::new()));
        let is_new = !room.companions.contains_key(companion);
        room.companions.entry(companion.clone()).or_default();
        Ok((room.view(&id), is_new))
    }

    async fn dismiss(&self, channel_ref: &ChannelRef, companion: &CompanionId) -> Result<bool, Refused> {
        self.check().await?;
        self.probe().dismissed.push((channel_ref.clone(), companion.clone()));
        let id = RoomId::of(&channel_ref.channel).expect("a room's id");
        Ok(self.rooms.lock().get_mut(&id).is_some_and(|room| room.companions.remove(companion).is_some()))
    }

    async fn live(&self, watched: Watched) -> Result<LiveStream, Refused> {
        let (id, after) = match watched {
            Watched::Room(id, after) => (id, after),
            Watched::All(after) => {
                let hello = json!({ "event": "hello", "last": 3 }).to_string().into();
                return Ok(stream::iter([Ok(hello), Err(Lagged { after: after.to_string().into() })]).boxed());
            }
        };
        self.with_room(&id, |room| {
            let is_missed = |seq: Seq| after.is_some_and(|after| seq > after);
            let missed: Vec<_> =
                room.messages.iter().filter(|message| is_missed(message.seq)).map(|stored| Ok(rendered(stored))).collect();
            let upcoming = stream::unfold(Some((room.live.subscribe(), json!(after))), |receiver| async move {
                let (mut receiver, after) = receiver?;
                match receiver.recv().await {
                    Ok(live) => {
                        let event: serde_json::Value = serde_json::from_str(&live).unwrap();
                        Some((Ok(live), Some((receiver, event["seq"].clone()))))
                    }
                    Err(broadcast::error::RecvError::Lagged(_)) => Some((Err(Lagged { after }), None)),
                    Err(broadcast::error::RecvError::Closed) => None,
                }
            });
            Ok(stream::iter(missed).chain(upcoming).boxed())
        })
    }
}

#[async_trait]
impl MessageService for FakeBackend {
    async fn say(&self, id: &RoomId, message: InboundMessage) -> Result<Seq, Refused> {
        self.with_room(id, |room| {
            if let Some(existing) = room.messages.iter().find(|existing| message.id.is_some() && existing.id == message.id) {
                return Ok(existing.seq);
            }
            let InboundMessage { id, from, text, modality, kind, reply_to, attachments, files, .. } = message;
            let reply_to = reply_to.and_then(|reply_to| reply_to.recorded());
            let listed = attachments.iter().filter_map(MessageFile::of).collect();
            let said = HistoryMessage { id, modality, kind, reply_to, files: listed, ..room.typed(from.name, text) };
            for (file, number) in files.into_iter().zip(0..) {
                room.files.insert((said.seq, number), file);
            }
            Ok(room.store(said))
        })
    }

    async fn namesake(&self, id: &RoomId, name: &str) -> Result<Option<CompanionId>, Refused> {
        self.with_room(id, |room| Ok(room.companions.keys().find(|id| *room.name(id) == *name).cloned()))
    }

    async fn edit(&self, id: &RoomId, seq: Seq, edit: Edit) -> Result<Seq, Refused> {
        self.with_room(id, |room| room.message(seq).map(|message| message.text = edit.text))?;
        Ok(seq)
    }

    async fn delete(&self, id: &RoomId, seq: Seq) -> Result<Seq, Refused> {
        self.with_room(id, |room| {
            room.message(seq)?;
            room.messages.retain(|message| message.seq != seq);
            Ok(seq)
        })
    }

    async fn stop_reply(&self, id: &RoomId, companion: &CompanionId) -> Result<(), Refused> {
        self.with_room(id, |room| match room.companions.contains_key(companion) {
            true => Err(Refused::conflict(format!("{companion} is not writing here"))),
            false => Err(Refused::not_found(format!("{companion} is not in room {id}"))),
        })
    }

    async fn answer_again(&self, id: &RoomId, statement: Seq, _: bool, _: Option<&PersonId>) -> Result<(), Refused> {
        self.with_room(id, |room| room.message(statement).map(drop))
    }

    async fn call(&self, id: &RoomId, call: Ticket, _: Approver) -> Result<CallView, Refused> {
        self.with_room(id, |_| Err(Refused::not_found(format!("there is no call {call} in room {id}"))))
    }

    async fn decide_call(&self, id: &RoomId, call: Ticket, _: Approver, _: bool) -> Result<(), Refused> {
        self.with_room(id, |_| Err(Refused::not_found(format!("there is no call {call} in room {id}"))))
    }

    async fn stand(&self, id: &RoomId, statement: Seq, _: usize) -> Result<(), Refused> {
        self.with_room(id, |room| room.message(statement).map(drop))
    }

    async fn choose(&self, id: &RoomId, choice: Choice) -> Result<Chosen, Refused> {
        self.with_room(id, |room| match choice.companion {
            Some(companion) if !room.companions.contains_key(&companion) => {
                Err(Refused::not_found(format!("{companion} is not in room {id}")))
            }
            Some(companion) => Ok(Chosen { seq: Seq(1), companions: vec![companion], left_out: Vec::new() }),
            None => Ok(Chosen { seq: Seq(1), companions: room.companions.keys().cloned().collect(), left_out: Vec::new() }),
        })
    }

    async fn draft(&self, id: &RoomId, drafting: Drafting, _: Option<&Visit>) -> Result<Drafted, Refused> {
        self.with_room(id, |room| match room.companions.contains_key(&drafting.companion) {
            true => Ok(Drafted { text: format!("{} could say this.", drafting.from).into() }),
            false => Err(Refused::not_found(format!("{} is not in room {id}", drafting.companion))),
        })
    }

    async fn greet(&self, id: &RoomId, greeting: Greeting) -> Result<Seq, Refused> {
        self.with_room(id, |room| match room.companions.contains_key(&greeting.companion) {
            true if room.messages.is_empty() => {
                let (from, role) = (Arc::from(greeting.companion.as_str()), Role::Companion);
                Ok(room.store(HistoryMessage {
                    name: Some(room.name(&greeting.companion)),
                    role,
                    ..room.typed(from, greeting.text)
                }))
            }
            true => Err(Refused::conflict(format!("something was said in {id} already"))),
            false => Err(Refused::not_found(format!("{} is not in room {id}", greeting.companion))),
        })
    }

    async fn set_scene(&self, id: &RoomId, from: Author, text: Arc<str>) -> Result<Seq, Refused> {
        self.with_room(id, |room| {
            let message = HistoryMessage { kind: Some("scene".into()), ..room.typed(from.name, text) };
            Ok(room.store(message))
        })
    }

    async fn import(&self, id: &RoomId, chat: Vec<ImportedMessage>, _: &str) -> Result<Imported, Refused> {
        self.with_room(id, |_| Ok(Imported { messages: chat.len(), ..Imported::default() }))
    }

    async fn vote(&self, id: &RoomId, state: State) -> Result<(), Refused> {
        self.with_room(id, |room| room.check_external(&state.from, &state.message_id))
    }

    async fn speak(&self, id: &RoomId, words: Words) -> Result<Seq, Refused> {
        self.with_room(id, |room| {
            room.check_external(&words.from, &words.message_id)?;
            let from: Arc<str> = words.from.as_str().into();
            let (name, role) = (Some(from.clone()), Role::Companion);
            Ok(room.store(HistoryMessage { name, role, ai: true, ..room.typed(from, words.text) }))
        })
    }
}

#[async_trait]
impl MemoryService for FakeBackend {
    async fn notes(&self, id: &RoomId) -> Result<Notes, Refused> {
        let on = self.probe().notes_on.get("").copied();
        let across_rooms = self.probe().notes_across_rooms;
        self.with_room(id, |room| {
            Ok(Notes { guild: room.guild.as_str().into(), on, across_rooms, allowed: true, ..Notes::default() })
        })
    }

    async fn notes_about(&self, person: Person) -> Result<NotesAbout, Refused> {
        self.check().await?;
        Ok(NotesAbout { on: self.probe().notes_on.get(&*person.id).copied() != Some(false), notes: Vec::new() })
    }

    async fn correct_note(&self, id: &RoomId, note: Seq, _: Arc<str>) -> Result<(), Refused> {
        self.erase_note(id, note).await
    }

    async fn erase_note(&self, id: &RoomId, note: Seq) -> Result<(), Refused> {
        self.with_room(id, |_| if note == Seq(1) { Ok(()) } else { Err(Refused::not_found(format!("there is no note {note}"))) })
    }

    async fn switch_notes(&self, _: GuildId, person: Option<PersonId>, on: bool) -> Result<(), Refused> {
        self.check().await?;
        self.probe().notes_on.insert(person.map_or_else(String::new, |person| person.to_string()), on);
        Ok(())
    }

    async fn use_notes_across_rooms(&self, _: GuildId, across_rooms: bool) -> Result<(), Refused> {
        self.check().await?;
        self.probe().notes_across_rooms = across_rooms;
        Ok(())
    }
}

#[async_trait]
impl ReminderService for FakeBackend {
    async fn reminders(&self, id: &RoomId, person: Option<&PersonId>) -> Result<Vec<ReminderView>, Refused> {
        self.with_room(id, |_| Ok(()))?;
        let mut reminders = self.probe().reminders.clone();
        reminders.retain(|reminder| person.is_none_or(|person| *reminder.from == *person.as_str()));
        Ok(reminders)
    }

    async fn remind(&self, id: &RoomId, new: NewReminder) -> Result<ReminderSet, Refused> {
        self.with_room(id, |_| Ok(()))?;
        let due = NOON + Duration::from_secs_f64(new.in_minutes.unwrap_or(60.0) * 60.0);
        let mut probe = self.probe();
        let id = probe.reminders.last().map_or(1, |newest| newest.id + 1);
        let local = due.zoned(&TimeZone::UTC).strftime("%Y-%m-%d %H:%M").to_string().into();
        // A person is named by the id, as on the console.
        let NewReminder { of, text, companion, .. } = new;
        let reminder = ReminderView { id, from: of.id, text, due: due.into(), local, companion };
        probe.reminders.push(reminder.clone());
        Ok(ReminderSet { reminder, reading: Reading::Plain })
    }

    async fn cancel_reminder(&self, id: &RoomId, number: u64, by: Option<&PersonId>) -> Result<(), Refused> {
        if !self.reminders(id, by).await?.iter().any(|reminder| reminder.id == number) {
            return Err(Refused::not_found(Detail::of("refusals.no_reminder", json!({ "number": number }))));
        }
        self.probe().reminders.retain(|reminder| reminder.id != number);
        Ok(())
    }

    async fn erase_reminders(&self, _: &GuildId, _: Option<&RoomId>, person: &PersonId) -> Result<u64, Refused> {
        let mut probe = self.probe();
        let before = probe.reminders.len();
        probe.reminders.retain(|reminder| *reminder.from != *person.as_str());
        Ok((before - probe.reminders.len()) as u64)
    }

    async fn time_zone(&self, _: &GuildId, person: &PersonId) -> Result<Arc<str>, Refused> {
        self.check().await?;
        Ok(self.probe().time_zones.get(person.as_str()).cloned().unwrap_or_else(|| "UTC".into()))
    }

    async fn set_time_zone(&self, _: &GuildId, person: &PersonId, zone: Option<&str>) -> Result<(), Refused> {
        self.check().await?;
        match zone.map(|zone| Zone::parse(zone).map(|_| Arc::from(zone))) {
            Some(None) => return Err(Refused::Invalid { field: "zone".into(), detail: Detail::key("refusals.no_time_zone") }),
            Some(Some(zone)) => drop(self.probe().time_zones.insert(person.to_string(), zone)),
            None => drop(self.probe().time_zones.remove(person.as_str())),
        }
        Ok(())
    }
}

#[async_trait]
impl LoreService for FakeBackend {
    async fn books(&self) -> Result<Books, Refused> {
        self.check().await?;
        let summary = |(id, (shelved, _)): (&Arc<str>, &(Shelved, u32))| BookSummary {
            id: id.clone(),
            name: shelved.book.name.clone(),
            kept: KeptBook::Store,
            entries: shelved.book.entries.len(),
            companions: shelved.companions.clone(),
            rooms: shelved.rooms.clone(),
        };
        Ok(Books { books: self.books.lock().iter().map(summary).collect() })
    }

    async fn book(&self, id: &str) -> Result<BookView, Refused> {
        self.check().await?;
        let books = self.books.lock();
        let (id, (book, changes)) = books.get_key_value(id).ok_or_else(|| Refused::not_found("there is no such lorebook"))?;
        let revision = Revision(changes.to_string());
        Ok(BookView { id: id.clone(), revision, kept: KeptBook::Store, book: book.clone(), unusable: Vec::new() })
    }

    async fn create_book(&self, new: Shelved) -> Result<BookView, Refused> {
        let id: Arc<str> = format!("book-{}", self.books.lock().len()).into();
        self.books.lock().insert(id.clone(), (new, 0));
        self.book(&id).await
    }

    async fn change_book(&self, id: &str, change: BookChange) -> Result<BookView, Refused> {
        let before = self.book(id).await?;
        if before.revision != change.revision {
            return Err(Refused::conflict("it was changed meanwhile"));
        }
        if let Some(kept) = self.books.lock().get_mut(id) {
            *kept = (change.book, kept.1 + 1);
        }
        self.book(id).await
    }

    async fn delete_book(&self, id: &str, _: Revision) -> Result<(), Refused> {
        self.book(id).await?;
        self.books.lock().remove(id);
        Ok(())
    }
}

#[async_trait]
impl RecordService for FakeBackend {
    async fn history(&self, id: &RoomId, query: HistoryQuery) -> Result<History, Refused> {
        self.with_room(id, |room| {
            let is_in_range =
                |seq: Seq| query.after.is_none_or(|after| seq > after) && query.before.is_none_or(|before| seq < before);
            let selected: Vec<_> = room.messages.iter().filter(|message| is_in_range(message.seq)).cloned().collect();
            let skipped = if query.after.is_some() { 0 } else { selected.len().saturating_sub(query.limit) };
            let messages = selected.into_iter().skip(skipped).take(query.limit).collect();
            Ok(History { messages, deleted: Vec::new() })
        })
    }

    async fn file(&self, id: &RoomId, seq: Seq, file: u64) -> Result<StoredFile, Refused> {
        let stored = self.with_room(id, |room| Ok(room.files.get(&(seq, file)).cloned()))?;
        stored.ok_or_else(|| Refused::not_found("there is no such file"))
    }

    async fn search(&self, id: &RoomId, query: SearchQuery) -> Result<Found, Refused> {
        self.with_room(id, |room| {
            let found: Vec<_> =
                room.messages.iter().rev().filter(|message| message.text.contains(&query.words)).cloned().collect();
            let count = found.len();
            Ok(Found { messages: found.into_iter().take(query.limit).collect(), count })
        })
    }

    async fn decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused> {
        self.check().await?;
        self.probe().queried_rooms.extend(query.room.clone());
        let decision = decision(query.room.as_ref().map_or("lobby", RoomId::as_str));
        let decisions = if query.after.is_some_and(|after| after >= decision.seq) { Vec::new() } else { vec![decision] };
        Ok(Decisions { decisions, unreadable: Vec::new() })
    }

    async fn why(&self, query: WhyQuery) -> Result<Why, Refused> {
        self.check().await?;
        self.probe().queried_rooms.push(query.room.clone());
        self.with_room(&query.room, |_| Ok(()))?;
        let text = match query.at {
            None => "nothing yet".to_owned(),
            Some(WhyAt::Event(seq)) => format!("event {seq}"),
            Some(WhyAt::Moment(moment)) => format!("moment {}", moment.as_micros()),
            Some(WhyAt::Message(id)) => format!("message {id} of {}", query.companion.as_deref().unwrap_or("everybody")),
        };
        let story = vec![StoryLine { at: NOON.into(), seq: None, event: "message".into(), text, setting: None }];
        let waiting_for = self.probe().waiting_for.clone();
        Ok(Why { room: query.room.as_str().into(), story, waiting_for, ..Why::default() })
    }

    async fn prompt(&self, id: &RoomId, _: Seq) -> Result<PromptText, Refused> {
        self.with_room(id, |_| Err(Refused::not_found("the prompt of this message is not kept")))
    }

    async fn author(&self, id: &RoomId, message: &str) -> Result<Option<Author>, Refused> {
        self.with_room(id, |room| {
            let found = room.messages.iter().find(|known| known.id.as_deref() == Some(message));
            Ok(found.map(|found| Author { id: found.from.clone(), name: found.from.clone(), role: found.role }))
        })
    }

    async fn usage(&self, query: UsageQuery) -> Result<Usage, Refused> {
        let to = query.to.unwrap_or(NOON);
        let from = query.from.unwrap_or(to - Duration::from_secs(86_400));
        if from >= to {
            return Err(Refused::Invalid { field: "from".into(), detail: "must be before to".into() });
        }
        if let Some(guild) = query.guild.filter(|guild| guild.as_str() != "home") {
            return Err(Refused::not_found(format!("there is no guild {guild}")));
        }
        let usage = TokenUsage { cache_read_tokens: Some(400), ..TokenUsage::new(1_000, 200) };
        let calls = Calls {
            calls: 3,
            failed_calls: 1,
            usage,
            costs: Costs { cost: Some(Price::per_million(1.0, 2.0, "USD").of(usage)), ..Costs::default() },
            ..Calls::default()
        };
        let speech = Speech {
            recognised_ms: 1_500,
            characters: 0,
            costs: Costs { cost: Some(UnitPrice::per_minute(0.6, "USD").of(1_500)), ..Costs::default() },
        };
        let tools =
            ToolCalls { calls: 2, costs: Costs { cost: Some(UnitPrice::per_call(0.005, "USD").of(2)), ..Costs::default() } };
        let tools_by = vec![ToolsBy { companion: "aria".into(), tool: "search".into(), calls: tools.clone() }];
        let used = Used { statements: 1, evaluations: 1, addresses: 1, calls: calls.clone(), speech: speech.clone(), tools };
        let by = UsageBy { companion: None, model: "m".into(), provider: "p".into(), role: "side".into(), calls };
        let caps = Caps {
            tokens: Cap { used: 1_200, limit: None, free_at: None },
            statements: Cap { used: 1, limit: Some(1), free_at: Some((NOON + Duration::from_secs(60)).into()) },
            tool_calls: Some(Cap { used: 2, limit: Some(1_000), free_at: None }),
            recognised_secs: Some(Cap { used: 1, limit: Some(600), free_at: None }),
            spoken_characters: None,
        };
        let (service, provider) = (Service::SpeechRecognition, "p".into());
        let speech_by = vec![SpeechBy { service, companion: None, provider, speech }];
        let guests = vec![GuestUsage { name: "Ben".into(), messages: 3, voice_secs: 60, tokens: 1_200 }];
        let guild = GuildUsage { guild: "home".into(), used: used.clone(), by: vec![by], speech_by, tools_by, guests, caps };
        Ok(Usage { from: from.into(), to: to.into(), currency: "USD".into(), guilds: vec![guild], total: used })
    }

    async fn receptions(&self, query: ReceptionQuery) -> Result<Receptions, Refused> {
        let from = query.from(NOON);
        if let Some(guild) = query.guild.filter(|guild| guild.as_str() != "home") {
            return Err(Refused::not_found(format!("there is no guild {guild}")));
        }
        let (day, trigger) = (Stamp::from(NOON).to_string()[..10].into(), Trigger::DirectAddress);
        let received = [(Reception::Answered, 3), (Reception::TalkedPast, 1)].into();
        let by = ReceptionBy { day, companion: "aria".into(), trigger, model: Some("m".into()), received };
        let guilds = vec![GuildReceptions { guild: "home".into(), by: vec![by], incomplete: false }];
        Ok(Receptions { from: from.into(), to: NOON.into(), guilds })
    }

    async fn safety_figures(&self, query: UsageQuery) -> Result<SafetyFigures, Refused> {
        let usage = self.usage(query).await?;
        let month = |at: Stamp| Arc::from(&at.to_string()[..7]);
        let sums = Safety { told: PeopleTold { first: 2, day: 1, interval: 0 }, helped: 1, refused: 0 };
        let months = vec![SafetyMonth { guild: "home".into(), month: month(usage.to), sums: sums.clone() }];
        Ok(SafetyFigures { from: month(usage.from), to: month(usage.to), months, total: sums })
    }

    async fn export(&self, query: ExportQuery) -> Result<Lines, Refused> {
        if let Some(room) = &query.room {
            self.with_room(room, |_| Ok(()))?;
        }
        if query.room.as_ref().is_some_and(|room| room.as_str() == "torn") {
            return Ok(stream::iter([Ok("{}".to_owned()), Err(Refused::broken("damaged"))]).boxed());
        }
        let form = if query.form == ExportForm::Replay { "replay" } else { "json" };
        Ok(stream::iter(["{\"n\":1}".to_owned(), format!("{{\"as\":\"{form}\"}}")]).map(Ok).boxed())
    }

    async fn export_person(&self, person: Person) -> Result<Lines, Refused> {
        let mut lines = self.probe().said.clone();
        if lines.is_empty() {
            lines.push(format!("{{\"of\":\"{}\",\"in\":\"{}\"}}", person.id, person.guild));
        }
        Ok(stream::iter(lines).map(Ok).boxed())
    }
}

#[async_trait]
impl MaintenanceService for FakeBackend {
    async fn quarantine(&self) -> Result<Quarantine, Refused> {
        let guild = QuarantinedGuild { id: "discord:1".into(), since: NOON.into(), until: NOON.into(), detail: "a bug".into() };
        let channel = SuspendedChannel {
            id: "channel:console:den".into(),
            guild: "home".into(),
            room: "den".into(),
            since: NOON.into(),
            until: NOON.into(),
            detail: "a bug".into(),
        };
        let message = DeadLetter {
            id: "a1".into(),
            guild: "home".into(),
            room: "lobby".into(),
            seq: Seq(1),
            at: NOON.into(),
            attempts: 3,
            detail: "a bug".into(),
        };
        Ok(Quarantine {
            guilds: vec![guild],
            channels: vec![channel],
            messages: vec![message],
            companions: Vec::new(),
            reload: None,
        })
    }

    async fn release(&self, entry: &str) -> Result<(), Refused> {
        match entry {
            "discord:1" | "channel:console:den" => Ok(()),
            _ => Err(Refused::not_found(format!("guild {entry} is not in quarantine"))),
        }
    }

    async fn retry(&self, entry: &str) -> Result<(), Refused> {
        if entry == "a1" { Ok(()) } else { Err(Refused::not_found(format!("there is no dead letter {entry}"))) }
    }

    async fn drop_entry(&self, entry: &str) -> Result<(), Refused> {
        self.retry(entry).await
    }

    async fn backup(&self, to: &str) -> Result<BackedUp, Refused> {
        Ok(BackedUp { to: to.to_owned(), entries: 3 })
    }

    async fn copy_for(&self, process: u32) -> Result<(BackedUp, Box<dyn Send + Sync>), Refused> {
        let file = self.probe().copy.take();
        Ok((BackedUp { to: format!("/data/verify-{process}.backup"), entries: 3 }, Box::new(file)))
    }

    async fn forgettable(&self, _: &Forget) -> Result<Forgotten, Refused> {
        Ok(Forgotten { messages: 2, decisions: 1, ..Forgotten::default() })
    }

    async fn forget(&self, forget: Forget) -> Result<Forgotten, Refused> {
        self.check().await?;
        self.probe().forgotten.push(forget);
        Ok(Forgotten { messages: 2, decisions: 1, in_file_until: Some(NOON.into()), ..Forgotten::default() })
    }

    async fn readiness(&self) -> Readiness {
        let detail = self.not_ready_because.lock().clone();
        let ready = detail.is_none();
        let store = ReadyPart { part: "store".into(), ready, detail: detail.unwrap_or_default(), ..ReadyPart::default() };
        let models = ReadyPart {
            part: "models".into(),
            ready: false,
            detail: "https://secret.example: 500".into(),
            ..ReadyPart::default()
        };
        let models = self.probe().models_fail.then_some(models);
        Readiness { ready, parts: [store].into_iter().chain(models).collect(), ..Readiness::default() }
    }
}
