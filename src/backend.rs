//! The backend: answers the console's requests from the record, from the actors and from the memberships.
//!
//! Each service of the backend ([`Backend`]) is implemented in the file that is named for it:
//!
//! * `rooms`: the rooms, their members, and changes of their settings at run time, with `room_plans` (what may be asked for), `membership`
//!   (channels of other platforms), `state` (the current state), `live` (events as they happen, in the form of `event_view`).
//! * `messages`: posts, edits and deletes messages, with `external` (votes and statements of external companions).
//! * `records`: answers from the record, with `reading` (history and decisions), `search`, `why` (the story of a decision),
//!   `usage` and `export`.
//! * `maintenance`: what operators do, with `quarantine` (quarantined guilds, suspended channels and dead letters) and `forget`.
//! * `call_rooms`: the voice calls of rooms.
//! * `guests`: invitations to rooms, and what the guests who came by them may use.
//!
//! Other ports:
//!
//! * `inbound_events`: events that other platforms report.
//! * `voice_calls`: what platforms report that connect voice calls.
//! * `notes`: notes that platforms store.
//!
//! What they share:
//!
//! * [`loading`]: loads the rooms at the start.
//! * `suggestions`: error messages that name what exists when something was not found.
//! * `actor_calls`: calls to the writer, the channels and the guilds.
//! * `errors`: what an error means for the caller.

mod actor_calls;
mod call_rooms;
mod errors;
mod event_view;
mod export;
mod external;
mod forget;
mod guests;
mod inbound_events;
mod live;
pub mod loading;
mod maintenance;
mod membership;
mod messages;
pub mod notes;
mod quarantine;
mod reading;
mod records;
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

/// The calls, for platforms that carry them.
pub fn platform_calls(context: ActorContext, maintenance: Arc<dyn StoreMaintenance>) -> Arc<dyn PlatformCalls> {
    Arc::new(ActorBackend::new(context, maintenance))
}

/// Implements all services, because they share what they work on.
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
