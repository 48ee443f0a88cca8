//! The backend: answers the console's requests from the record, from the actors and from the memberships.
//!
//! * [`rooms`]: the rooms, their members, and changes of their settings at run time.
//! * `membership`: adds companions to channels of other platforms, and removes them.
//! * `messages`: posts, edits and deletes messages, and clears rooms.
//! * `external`: votes and statements of external companions.
//! * `inbound_events`: events that other platforms report.
//! * `reading`: history and decisions, from the record.
//! * `event_view`: an event of the record as the objects of the live view.
//! * `live`: a room's events as they happen.
//! * `live_rooms`: the events of all rooms as they happen.
//! * `state`: the current state of a room.
//! * `why`: the story of a decision.
//! * `usage`: the usage of guilds, and its cost.
//! * `voice_calls`: what platforms report that connect voice calls.
//! * `quarantine`: quarantined guilds, suspended channels, and dead letters.
//! * `export`: the record, line by line.
//! * `forget`: deletes what a person said.
//! * `notes`: notes that platforms store.
//! * `suggestions`: error messages that name what exists when something was not found.
//! * `errors`: what an error means for the caller.
//! * `actor_calls`: calls to the writer, the channels and the guilds.

mod actor_calls;
mod call_rooms;
mod errors;
mod event_view;
mod export;
mod external;
mod forget;
mod inbound_events;
mod live;
mod live_rooms;
mod membership;
mod messages;
pub mod notes;
mod quarantine;
mod reading;
pub mod rooms;
mod state;
mod suggestions;
mod usage;
mod voice_calls;
mod why;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::actors::inbound::Inbound;
use crate::actors::runtime::actor_keys::WriterKey;
use crate::actors::runtime::context::ActorContext;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::vote::State;
use crate::ports::backend::decisions::{DecisionQuery, Decisions, Why, WhyQuery};
use crate::ports::backend::keeping::{
    BackedUp, ExportQuery, Forget, Forgotten, Lines, Person, Quarantine, Readiness, ReadyModel, ReadyModels, ReadyPart,
};
use crate::ports::backend::live::{Cursor, LiveStream};
use crate::ports::backend::messages::{Edit, History, HistoryQuery, NewEvent, NewMessage, Words};
use crate::ports::backend::room::{Companions, Room, RoomId, RoomPatch, RoomPlan, Rooms};
use crate::ports::backend::state::RoomState;
use crate::ports::backend::usage::{Usage, UsageQuery};
use crate::ports::backend::{Backend, Refused};
use crate::ports::gateway::Condition;
use crate::ports::language_model::ModelRole;
use crate::ports::store::maintenance::{StoreMaintenance, is_backup_name};

/// The backend of one system of actors.
pub struct ActorBackend {
    context: ActorContext,
    inbound: Inbound,
    maintenance: Arc<dyn StoreMaintenance>,
    /// Held while usage is counted.
    counting: Mutex<()>,
}

impl ActorBackend {
    /// `maintenance` makes backups of the store.
    pub fn new(context: ActorContext, maintenance: Arc<dyn StoreMaintenance>) -> Self {
        Self { inbound: Inbound::new(context.clone()), context, maintenance, counting: Mutex::new(()) }
    }
}

#[async_trait]
impl Backend for ActorBackend {
    async fn rooms(&self) -> Result<Rooms, Refused> {
        self.list_rooms().await
    }

    async fn room(&self, room: &RoomId) -> Result<Room, Refused> {
        self.view_room(room).await
    }

    async fn put_room(&self, room: &RoomId, plan: RoomPlan) -> Result<(Room, bool), Refused> {
        self.create_room(room, plan).await
    }

    async fn patch_room(&self, room: &RoomId, patch: RoomPatch) -> Result<Room, Refused> {
        self.change_room(room, patch).await
    }

    async fn delete_room(&self, room: &RoomId) -> Result<(), Refused> {
        self.close_room(room).await
    }

    async fn say(&self, room: &RoomId, message: NewMessage) -> Result<Seq, Refused> {
        self.accept_message(room, message).await
    }

    async fn event(&self, room: &RoomId, event: NewEvent) -> Result<Seq, Refused> {
        self.accept_event(room, event).await
    }

    async fn namesake(&self, room: &RoomId, name: &str) -> Result<Option<CompanionId>, Refused> {
        self.companion_named(room, name)
    }

    async fn edit(&self, room: &RoomId, seq: Seq, edit: Edit) -> Result<Seq, Refused> {
        self.edit_message(room, seq, edit.text).await
    }

    async fn delete_message(&self, room: &RoomId, seq: Seq) -> Result<Seq, Refused> {
        self.delete_one(room, seq).await
    }

    async fn clear(&self, room: &RoomId) -> Result<(), Refused> {
        self.clear_room(room).await
    }

    async fn stop_reply(&self, room: &RoomId, companion: &CompanionId) -> Result<(), Refused> {
        self.press_stop(room, companion.clone()).await
    }

    async fn try_again(&self, room: &RoomId, statement: Seq) -> Result<(), Refused> {
        self.replace_statement(room, statement).await
    }

    async fn vote(&self, room: &RoomId, state: State) -> Result<(), Refused> {
        self.submit_vote(room, state).await
    }

    async fn speak(&self, room: &RoomId, words: Words) -> Result<Seq, Refused> {
        self.submit_statement(room, words).await
    }

    async fn history(&self, room: &RoomId, query: HistoryQuery) -> Result<History, Refused> {
        self.read_history(room, query).await
    }

    async fn state(&self, room: &RoomId) -> Result<RoomState, Refused> {
        self.room_state(room).await
    }

    async fn decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused> {
        self.read_decisions(query).await
    }

    async fn why(&self, query: WhyQuery) -> Result<Why, Refused> {
        self.explain(query).await
    }

    async fn usage(&self, query: UsageQuery) -> Result<Usage, Refused> {
        self.count_usage(query).await
    }

    async fn companions(&self) -> Result<Companions, Refused> {
        Ok(self.list_companions())
    }

    async fn quarantine(&self) -> Result<Quarantine, Refused> {
        self.list_quarantine().await
    }

    async fn release(&self, entry: &str) -> Result<(), Refused> {
        self.release_entry(entry).await
    }

    async fn retry(&self, entry: &str) -> Result<(), Refused> {
        self.retry_entry(entry).await
    }

    async fn drop_entry(&self, entry: &str) -> Result<(), Refused> {
        self.hide_entry(entry).await
    }

    async fn export(&self, query: ExportQuery) -> Result<Lines, Refused> {
        self.export_lines(query).await
    }

    async fn export_person(&self, person: Person) -> Result<Lines, Refused> {
        self.export_person_lines(&person).await
    }

    async fn backup(&self, to: &str) -> Result<BackedUp, Refused> {
        if !Path::new(to).is_absolute() {
            // A relative path would start at the server's working directory, which the caller does not know.
            return Err(errors::invalid(
                "to",
                format!("{to} is not an absolute path: name a new file on the server's machine, such as /backups/a.backup"),
            ));
        }
        if !is_backup_name(Path::new(to)) {
            // Old backups are found by their extension when they are deleted.
            let detail =
                format!("{to} is not a backup's name, which ends in .backup: name a new file such as /backups/monday.backup");
            return Err(errors::invalid("to", detail));
        }
        let entries = self.maintenance.clone().backup(Path::new(to)).await?;
        Ok(BackedUp { to: to.to_owned(), entries })
    }

    async fn copy_for(&self, process: u32) -> Result<BackedUp, Refused> {
        let (to, entries) = self.maintenance.clone().copy_for(process).await?;
        Ok(BackedUp { to: to.to_string_lossy().into_owned(), entries })
    }

    async fn forget(&self, forget: Forget) -> Result<Forgotten, Refused> {
        self.forget_person(forget).await
    }

    async fn readiness(&self) -> Readiness {
        let model = |role| {
            let identity = self.context.pool.identity(role);
            ReadyModel { provider: identity.provider.clone(), model: identity.model.clone() }
        };
        let part = |part: &str, ready: bool, detail: &str| ReadyPart {
            part: part.into(),
            ready,
            detail: if ready { String::new() } else { detail.to_owned() },
        };
        let pool = self.context.pool.report().await;
        let failures =
            pool.as_ref().map(|pool| pool.troubles.iter().map(|trouble| trouble.detail.as_str()).collect::<Vec<_>>().join("; "));
        let models_detail = failures.as_deref().unwrap_or("no model can be called at the moment");
        let mut parts = vec![
            part("store", self.context.directory.find(&WriterKey()).is_some(), "messages cannot be stored at the moment"),
            part("models", models_detail.is_empty(), models_detail),
        ];
        let mut is_held_up = false;
        for gateway in self.context.gateways.iter() {
            let Condition { ready, detail, blocks_readiness } = gateway.condition();
            is_held_up |= blocks_readiness;
            parts.push(ReadyPart { part: gateway.name().into(), ready, detail });
        }
        // The server accepts messages without a model, and companions answer once a model is available. Without a platform it still serves the
        // console, unless the settings require the platform.
        let ready = !is_held_up && parts.iter().filter(|part| &*part.part == "store").all(|part| part.ready);
        let models = ReadyModels { side: model(ModelRole::Side), main: model(ModelRole::Main) };
        Readiness { ready, parts, models: Some(models) }
    }

    async fn live(&self, room: &RoomId, after: Option<Seq>) -> Result<LiveStream, Refused> {
        self.watch(room, after).await
    }

    async fn live_rooms(&self, after: Cursor) -> Result<LiveStream, Refused> {
        Ok(self.watch_rooms(after))
    }
}
