//! The backend during a compaction: it reports the progress, and refuses everything else for now.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::id::{CompanionId, Seq};
use crate::domain::vote::State;
use crate::ports::backend::decisions::{DecisionQuery, Decisions, Why, WhyQuery};
use crate::ports::backend::keeping::{BackedUp, ExportQuery, Forget, Forgotten, Lines, Person, Quarantine, Readiness, ReadyPart};
use crate::ports::backend::live::{Cursor, LiveStream};
use crate::ports::backend::messages::{Edit, History, HistoryQuery, NewEvent, NewMessage, Words};
use crate::ports::backend::room::{Companions, Room, RoomId, RoomPatch, RoomPlan, Rooms};
use crate::ports::backend::state::RoomState;
use crate::ports::backend::usage::{Usage, UsageQuery};
use crate::ports::backend::{Backend, Refused};
use crate::ports::call_room::{CallRooms, Description, Entrance, Line};
use crate::ports::model_setup::{ModelServer, ModelSetup, ModelsView, NewConnection, Trial};

/// The time after which a client should retry.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// A backend whose store is being compacted.
pub(super) struct Closed {
    /// Records copied so far.
    pub(super) copied: Arc<AtomicU64>,
}

impl Closed {
    fn detail(&self) -> String {
        format!("compacting: {} records are copied; the server is ready afterwards", self.copied.load(Ordering::Relaxed))
    }

    fn refuse<T>(&self) -> Result<T, Refused> {
        Err(Refused::Unavailable { detail: format!("the store is {}", self.detail()), retry_after: Some(RETRY_AFTER) })
    }
}

#[async_trait]
impl CallRooms for Closed {
    async fn describe(&self, _: &RoomId) -> Result<Description, Refused> {
        self.refuse()
    }

    async fn admits(&self, _: &RoomId, _: &str) -> Result<(), Refused> {
        self.refuse()
    }

    async fn enter(&self, _: &RoomId, _: Entrance) -> Result<Arc<dyn Line>, Refused> {
        self.refuse()
    }
}

#[async_trait]
impl ModelSetup for Closed {
    async fn models(&self) -> Result<ModelsView, Refused> {
        self.refuse()
    }

    async fn names(&self, _: ModelServer) -> Result<Vec<String>, Refused> {
        self.refuse()
    }

    async fn try_out(&self, _: NewConnection) -> Result<Trial, Refused> {
        self.refuse()
    }

    async fn connect(&self, _: NewConnection) -> Result<ModelsView, Refused> {
        self.refuse()
    }

    async fn disconnect(&self) -> Result<ModelsView, Refused> {
        self.refuse()
    }
}

#[async_trait]
impl Backend for Closed {
    async fn readiness(&self) -> Readiness {
        let store = ReadyPart { part: "store".into(), ready: false, detail: self.detail() };
        Readiness { ready: false, parts: vec![store], models: None }
    }

    async fn rooms(&self) -> Result<Rooms, Refused> {
        self.refuse()
    }

    async fn room(&self, _: &RoomId) -> Result<Room, Refused> {
        self.refuse()
    }

    async fn put_room(&self, _: &RoomId, _: RoomPlan) -> Result<(Room, bool), Refused> {
        self.refuse()
    }

    async fn patch_room(&self, _: &RoomId, _: RoomPatch) -> Result<Room, Refused> {
        self.refuse()
    }

    async fn delete_room(&self, _: &RoomId) -> Result<(), Refused> {
        self.refuse()
    }

    async fn stop_reply(&self, _: &RoomId, _: &CompanionId) -> Result<(), Refused> {
        self.refuse()
    }

    async fn try_again(&self, _: &RoomId, _: Seq) -> Result<(), Refused> {
        self.refuse()
    }

    async fn say(&self, _: &RoomId, _: NewMessage) -> Result<Seq, Refused> {
        self.refuse()
    }

    async fn event(&self, _: &RoomId, _: NewEvent) -> Result<Seq, Refused> {
        self.refuse()
    }

    async fn namesake(&self, _: &RoomId, _: &str) -> Result<Option<CompanionId>, Refused> {
        self.refuse()
    }

    async fn edit(&self, _: &RoomId, _: Seq, _: Edit) -> Result<Seq, Refused> {
        self.refuse()
    }

    async fn delete_message(&self, _: &RoomId, _: Seq) -> Result<Seq, Refused> {
        self.refuse()
    }

    async fn clear(&self, _: &RoomId) -> Result<(), Refused> {
        self.refuse()
    }

    async fn vote(&self, _: &RoomId, _: State) -> Result<(), Refused> {
        self.refuse()
    }

    async fn speak(&self, _: &RoomId, _: Words) -> Result<Seq, Refused> {
        self.refuse()
    }

    async fn history(&self, _: &RoomId, _: HistoryQuery) -> Result<History, Refused> {
        self.refuse()
    }

    async fn state(&self, _: &RoomId) -> Result<RoomState, Refused> {
        self.refuse()
    }

    async fn decisions(&self, _: DecisionQuery) -> Result<Decisions, Refused> {
        self.refuse()
    }

    async fn why(&self, _: WhyQuery) -> Result<Why, Refused> {
        self.refuse()
    }

    async fn usage(&self, _: UsageQuery) -> Result<Usage, Refused> {
        self.refuse()
    }

    async fn companions(&self) -> Result<Companions, Refused> {
        self.refuse()
    }

    async fn quarantine(&self) -> Result<Quarantine, Refused> {
        self.refuse()
    }

    async fn release(&self, _: &str) -> Result<(), Refused> {
        self.refuse()
    }

    async fn retry(&self, _: &str) -> Result<(), Refused> {
        self.refuse()
    }

    async fn drop_entry(&self, _: &str) -> Result<(), Refused> {
        self.refuse()
    }

    async fn export(&self, _: ExportQuery) -> Result<Lines, Refused> {
        self.refuse()
    }

    async fn export_person(&self, _: Person) -> Result<Lines, Refused> {
        self.refuse()
    }

    async fn backup(&self, _: &str) -> Result<BackedUp, Refused> {
        self.refuse()
    }

    async fn copy_for(&self, _: u32) -> Result<BackedUp, Refused> {
        self.refuse()
    }

    async fn forget(&self, _: Forget) -> Result<Forgotten, Refused> {
        self.refuse()
    }

    async fn live(&self, _: &RoomId, _: Option<Seq>) -> Result<LiveStream, Refused> {
        self.refuse()
    }

    async fn live_rooms(&self, _: Cursor) -> Result<LiveStream, Refused> {
        self.refuse()
    }
}
