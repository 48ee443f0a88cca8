//! The messages of each actor, and the plain types in them.
//!
//! Every group of actors may import this module, and it imports none of them. A message that an actor sends only to itself is declared beside
//! that actor. Calls to models go through [`Pool`](super::models::Pool).

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
pub mod voice_call;
pub mod writer;
