//! The core as the console and the HTTP API call it: eight services, and the voice calls of rooms.
//!
//! An operation has the same name here and in its HTTP handler.
//!
//! The caller has limited the length of every text and checked every name ([`RoomId`](room::RoomId) and the limits given at the fields). The core
//! rejects values that only it can check: unknown rooms and companions, and values outside a closed list. Every list is ordered from oldest to
//! newest, unless its documentation gives another order. Every method returns committed data.

pub mod decisions;
pub mod guest_service;
pub mod keeping;
pub mod live;
pub mod lore_service;
pub mod maintenance_service;
pub mod memory_service;
pub mod message_service;
pub mod messages;
pub mod record_service;
pub mod refused;
pub mod reminder_service;
pub mod room;
pub mod room_service;
pub mod stamp;
pub mod state;
pub mod usage;

#[cfg(any(test, feature = "samples"))]
pub mod fake;

use std::sync::Arc;

use self::guest_service::GuestService;
use self::lore_service::LoreService;
use self::maintenance_service::MaintenanceService;
use self::memory_service::MemoryService;
use self::message_service::MessageService;
use self::record_service::RecordService;
use self::reminder_service::ReminderService;
use self::room_service::RoomService;
use super::call_room::CallRooms;
pub use refused::{Detail, Refused, Why};

/// The core, as the console sees it. Cheap to clone.
#[derive(Clone)]
pub struct Backend {
    /// Rooms, their members and settings, and their events as they happen.
    pub rooms: Arc<dyn RoomService>,
    pub messages: Arc<dyn MessageService>,
    /// Messages, decisions and usage on record.
    pub records: Arc<dyn RecordService>,
    /// Notes about people and rooms.
    pub memory: Arc<dyn MemoryService>,
    pub lore: Arc<dyn LoreService>,
    /// Reminders, and the time zones of people.
    pub reminders: Arc<dyn ReminderService>,
    /// The tasks of operators.
    pub maintenance: Arc<dyn MaintenanceService>,
    /// The voice calls of rooms.
    pub calls: Arc<dyn CallRooms>,
    /// Invitations and guests.
    pub guests: Arc<dyn GuestService>,
}

impl Backend {
    /// The services of one object that implements all of them.
    pub fn of(
        core: Arc<
            impl RoomService
            + MessageService
            + RecordService
            + MemoryService
            + LoreService
            + ReminderService
            + MaintenanceService
            + CallRooms
            + GuestService,
        >,
    ) -> Self {
        Self {
            rooms: core.clone(),
            messages: core.clone(),
            records: core.clone(),
            memory: core.clone(),
            lore: core.clone(),
            reminders: core.clone(),
            maintenance: core.clone(),
            calls: core.clone(),
            guests: core,
        }
    }
}

/// The problem type (RFC 9457) for damaged stored data, for programs that check it.
pub const DAMAGED: &str = "urn:tertulia:damaged";
