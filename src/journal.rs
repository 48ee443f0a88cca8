//! The journal of every channel: keys, records, and a reader over any store.
//!
//! Only the [`writer`](crate::actors::writer) writes it.

pub mod account;
pub mod channel_key;
pub mod erased;
pub mod inspection;
pub mod key;
pub mod membership;
pub mod reader;
pub mod record;
pub mod redaction;
pub mod speakers;
pub mod upgrade;
