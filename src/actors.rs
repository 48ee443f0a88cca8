//! The actors. They carry messages in and effects out; the domain decides.
//!
//! * [`messages`]: the actors' message types.
//! * [`runtime`]: the supervision tree, the directory, and the context that every actor works with.
//! * [`calls`]: voice calls: recognises speech and plays spoken replies.
//! * [`channel`]: runs a conversation, with the turn-taking manager of a round and the delivery of a statement.
//! * [`companion`]: builds a companion's prompts, asks the side model, and writes replies.
//! * [`writer`]: the one writer to the store.
//! * [`models`]: the pool that queues calls to models.
//! * [`membership`]: the companions of each channel, invitations to rooms, and opt-outs.
//! * [`erasure`]: deletions, redactions and retention.
//! * [`inbound`]: accepts inbound events.
//! * [`recall`]: looks up older messages of a room for a prompt.

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
