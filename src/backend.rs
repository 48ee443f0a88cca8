//! The backend: answers the console's requests from the record, from the actors and from the memberships.
//!
//! Each service of the [`Backend`] is implemented in the file of the same name:
//!
//! * `rooms`: the rooms, their members, and changes of their settings at run time, with `room_plans` (checks of requested plans), `membership`
//!   (channels of other platforms), `state` (the current state), and `live` (events as they happen, rendered by `event_view`).
//! * `messages`: posts, edits and deletes messages, with `external` (votes and statements of external companions).
//! * `records`: answers from the record, with `reading` (history and decisions), `search`, `why` (explanations of decisions), `usage` and `export`.
//! * `maintenance`: tasks of operators, with `quarantine` (quarantined guilds, suspended channels and dead letters) and `forget`.
//! * `lore`: lorebooks.
//! * `reminders`: reminders, and the time zones of people.
//! * `call_rooms`: the voice calls of rooms.
//! * `guests`: invitations to rooms, and the limits of guests.
//!
//! Other ports:
//!
//! * `inbound_events`: events from other platforms.
//! * `voice_calls`: events from platforms with voice calls.
//! * `notes`: notes that platforms store.
//!
//! Shared code:
//!
//! * [`loading`]: loads the rooms at the start.
//! * `suggestions`: error messages for missing items that list the existing ones.
//! * `actor_calls`: calls to the writer, the channels and the guilds.
//! * `errors`: conversions of internal errors for callers.

mod actor_calls;
mod call_rooms;
mod calls_of_tools;
mod errors;
mod event_view;
mod export;
mod external;
mod forget;
mod guests;
mod inbound_events;
mod live;
pub mod loading;
pub mod lore;
mod maintenance;
mod membership;
mod memory;
mod messages;
pub mod notes;
mod quarantine;
mod reading;
mod receptions;
mod records;
mod reminders;
mod room_plans;
mod rooms;
mod search;
mod state;
mod suggestions;
mod usage;
mod voice_calls;
mod why;

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::actors::inbound::Inbound;
use crate::actors::runtime::context::ActorContext;
use crate::ports::backend::Backend;
use crate::ports::platform_call::PlatformCalls;
use crate::ports::store::maintenance::StoreMaintenance;
pub use suggestions::check_guild;

/// The backend of one system of actors. `maintenance` makes backups of the store.
pub fn backend(context: ActorContext, maintenance: Arc<dyn StoreMaintenance>) -> Backend {
    Backend::of(Arc::new(ActorBackend::new(context, maintenance)))
}

/// The voice calls, for platforms that carry them.
pub fn platform_calls(context: ActorContext, maintenance: Arc<dyn StoreMaintenance>) -> Arc<dyn PlatformCalls> {
    Arc::new(ActorBackend::new(context, maintenance))
}

/// Implements all services, because they share their state.
struct ActorBackend {
    context: ActorContext,
    inbound: Inbound,
    maintenance: Arc<dyn StoreMaintenance>,
    /// Held while usage is counted.
    counting: Mutex<()>,
}

impl ActorBackend {
    fn new(context: ActorContext, maintenance: Arc<dyn StoreMaintenance>) -> Self {
        Self { inbound: Inbound::new(context.clone()), context, maintenance, counting: Mutex::new(()) }
    }
}
