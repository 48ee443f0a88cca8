//! What actors tell each other: for each actor its messages and the plain types in them.
//!
//! Everyone may import these, and they import no group of actors. What only one actor tells itself stays with it; what is asked of models goes
//! through [`Pool`](super::models::Pool).

pub mod channel;
pub mod companion;
pub mod guild;
pub mod guilds;
pub mod models;
pub mod platforms;
pub mod reply;
pub mod shard;
pub mod supervision;
pub mod switchboard;
pub mod turn_taking_manager;
pub mod writer;
