//! The actors. They carry messages in and effects out; the domain decides.
//!
//! * [`messages`]: the actors' message types.
//! * [`runtime`]: the supervision tree, the directory, and the context that every actor works with.
//! * [`calls`]: hears and speaks in voice calls.
//! * [`channel`]: runs a conversation, with the turn-taking manager of a round and the delivery of a statement.
//! * [`companion`]: builds a companion's prompts, asks the side model, and writes replies.
//! * [`writer`]: the one writer to the store.
//! * [`models`]: the pool that queues calls to models.
//! * [`membership`]: which companions are members of which channel, and who has opted out.
//! * [`erasure`]: deletions, redactions and retention.
//! * [`inbound`]: accepts inbound events.

pub mod calls;
pub mod channel;
pub mod companion;
pub mod erasure;
pub mod inbound;
pub mod membership;
pub mod messages;
pub mod models;
pub mod recall;
pub mod runtime;
pub mod writer;
