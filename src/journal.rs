//! What is kept of every channel, and how it is read: keys, records, and a reader over any store.
//!
//! The one writer is [`writer`](crate::actors::writer).

pub mod account;
pub mod channel_key;
pub mod erased;
pub mod inspection;
pub mod key;
pub mod membership;
pub mod reader;
pub mod record;
pub mod redaction;
pub mod salvaged;
pub mod speakers;
pub mod upgrade;
