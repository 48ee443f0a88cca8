//! Who runs when: messages in, effects out, no decisions.
//!
//! * [`messages`]: what actors tell each other.
//! * [`runtime`]: the tree, what keeps it running, and what every actor works with.
//! * [`channel`]: runs a conversation, with the turn-taking manager of a round and the delivery of a statement.
//! * [`companion`]: asks for a companion, and has its replies written.
//! * [`writer`]: the one writer to the store.
//! * [`models`]: the pool that asks models.
//! * [`membership`]: who lives in which channel, and who is not to be heard.
//! * [`erasure`]: what is deleted from the record.
//! * [`inbound`]: the way in for what was heard.
//! * [`service`]: what the console and the platforms ask.

pub mod channel;
pub mod companion;
pub mod erasure;
pub mod inbound;
pub mod membership;
pub mod messages;
pub mod models;
pub mod runtime;
pub mod service;
pub mod writer;
