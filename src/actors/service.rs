//! The backend: answers what the console asks, from the record, from the actors, and from who lives where.
//!
//! * [`rooms`]: which rooms there are, who is in them, and what is changed about them at run time.
//! * `company`: companions that are let into channels of other platforms, one at a time.
//! * `messages`: what is said, changed, taken back and cleared.
//! * `external`: what programs outside submit for the companions that they play.
//! * `reading`: history and decisions, from the record.
//! * `telling`: an event of the record as the objects that are shown of it.
//! * `live`: a room's events as they happen.
//! * `state`: how a room stands at this moment.
//! * `why`: the story of a decision.
//! * `usage`: what guilds used, and what it cost.
//! * `quarantine`: guilds that are kept away, channels that are left alone, and messages set aside.
//! * `export`: what is kept, read out line by line.
//! * `forget`: taking words out of the record.
//! * `known`: what there is, for whoever asked for something that there is not.
//! * `desk`: how all of these reach the writer and the guilds.

mod desk;
mod export;
mod external;
mod forget;
mod inbound_events;
mod known;
mod live;
mod membership;
mod messages;
pub mod notes;
mod quarantine;
mod reading;
pub mod rooms;
mod state;
mod telling;
mod usage;
mod why;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::actors::inbound::Inbound;
use crate::actors::runtime::actor_keys::WriterKey;
use crate::actors::runtime::context::ActorContext;
use crate::domain::id::Seq;
use crate::domain::vote::State;
use crate::ports::backend::decisions::{DecisionQuery, Decisions, Why, WhyQuery};
use crate::ports::backend::keeping::{
    BackedUp, ExportQuery, Forget, Forgotten, Lines, Person, Quarantine, Readiness, ReadyModel, ReadyModels, ReadyPart,
};
use crate::ports::backend::live::LiveStream;
use crate::ports::backend::messages::{Edit, History, HistoryQuery, NewMessage, Words};
use crate::ports::backend::room::{Companions, Room, RoomId, RoomPatch, RoomPlan, Rooms};
use crate::ports::backend::state::RoomState;
use crate::ports::backend::usage::{Usage, UsageQuery};
use crate::ports::backend::{Backend, Refused};
use crate::ports::gateway::Condition;
use crate::ports::language_model::ModelRole;
use crate::ports::store::maintenance::{MaintenanceError, StoreMaintenance, is_backup_name};

/// The backend of one system of actors.
pub struct ActorBackend {
    context: ActorContext,
    inbound: Inbound,
    maintenance: Arc<dyn StoreMaintenance>,
    /// Held while what was used is counted.
    counting: Mutex<()>,
}

impl ActorBackend {
    /// The backend of this system, whose store is kept by `maintenance`.
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
        self.make_room(room, plan).await
    }

    async fn patch_room(&self, room: &RoomId, patch: RoomPatch) -> Result<Room, Refused> {
        self.change_room(room, patch).await
    }

    async fn delete_room(&self, room: &RoomId) -> Result<(), Refused> {
        self.close_room(room).await
    }

    async fn say(&self, room: &RoomId, message: NewMessage) -> Result<Seq, Refused> {
        self.take_in(room, message).await
    }

    async fn edit(&self, room: &RoomId, seq: Seq, edit: Edit) -> Result<Seq, Refused> {
        self.replace_words(room, seq, edit.text).await
    }

    async fn delete_message(&self, room: &RoomId, seq: Seq) -> Result<Seq, Refused> {
        self.delete_in(room, seq).await
    }

    async fn clear(&self, room: &RoomId) -> Result<(), Refused> {
        self.drop_what_goes_on(room).await
    }

    async fn vote(&self, room: &RoomId, state: State) -> Result<(), Refused> {
        self.take_vote(room, state).await
    }

    async fn speak(&self, room: &RoomId, words: Words) -> Result<Seq, Refused> {
        self.take_words(room, words).await
    }

    async fn history(&self, room: &RoomId, query: HistoryQuery) -> Result<History, Refused> {
        self.read_history(room, query).await
    }

    async fn state(&self, room: &RoomId) -> Result<RoomState, Refused> {
        self.look_into(room).await
    }

    async fn decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused> {
        self.read_decisions(query).await
    }

    async fn why(&self, query: WhyQuery) -> Result<Why, Refused> {
        self.tell_why(query).await
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
        self.give_up_entry(entry).await
    }

    async fn export(&self, query: ExportQuery) -> Result<Lines, Refused> {
        self.read_out(query).await
    }

    async fn export_person(&self, person: Person) -> Result<Lines, Refused> {
        self.read_out_person(&person).await
    }

    async fn backup(&self, to: &str) -> Result<BackedUp, Refused> {
        if !Path::new(to).is_absolute() {
            // It would begin where the server was started, of which whoever asks knows nothing.
            return Err(desk::invalid(
                "to",
                format!("{to} is no whole path: name a new file on the server's machine, such as /backups/a.backup"),
            ));
        }
        if !is_backup_name(Path::new(to)) {
            // Whoever clears away old backups finds them by it.
            let detail =
                format!("{to} is no name of a backup, which ends in .backup: name a new file such as /backups/monday.backup");
            return Err(desk::invalid("to", detail));
        }
        let entries = self.maintenance.clone().backup(Path::new(to)).await.map_err(not_copied)?;
        Ok(BackedUp { to: to.to_owned(), entries })
    }

    async fn copy_for(&self, process: u32) -> Result<BackedUp, Refused> {
        let (to, entries) = self.maintenance.clone().copy_for(process).await.map_err(not_copied)?;
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
        let troubles =
            pool.as_ref().map(|pool| pool.troubles.iter().map(|trouble| trouble.detail.as_str()).collect::<Vec<_>>().join("; "));
        let models_detail = troubles.as_deref().unwrap_or("no model can be asked at the moment");
        let mut parts = vec![
            part("store", self.context.directory.find(&WriterKey()).is_some(), "what is heard cannot be stored at the moment"),
            part("models", models_detail.is_empty(), models_detail),
        ];
        let mut is_held_up = false;
        for gateway in self.context.gateways.iter() {
            let Condition { ready, detail, blocks_readiness } = gateway.condition();
            is_held_up |= blocks_readiness;
            parts.push(ReadyPart { part: gateway.name().into(), ready, detail });
        }
        // What is said is accepted without a model, too; companions answer when there is one. So is what the console hears without a
        // platform, unless the settings want one.
        let ready = !is_held_up && parts.iter().filter(|part| &*part.part == "store").all(|part| part.ready);
        let models = ReadyModels { side: model(ModelRole::Side), main: model(ModelRole::Main) };
        Readiness { ready, parts, models: Some(models) }
    }

    async fn live(&self, room: &RoomId, after: Option<Seq>) -> Result<LiveStream, Refused> {
        self.watch(room, after).await
    }
}

fn not_copied(error: MaintenanceError) -> Refused {
    match error {
        MaintenanceError::Exists(detail) => Refused::Conflict(detail),
        MaintenanceError::Target(detail) => Refused::Invalid { field: "to".into(), detail },
        MaintenanceError::Damaged(detail) => desk::damaged(detail),
        MaintenanceError::Failed(detail) => desk::broken(&detail),
    }
}
