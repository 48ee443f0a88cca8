//! The journal of every channel: keys, records, and a reader over any store.
//!
//! Only the actor `writer` writes it.

pub mod account;
pub mod channel_key;
pub mod erased;
pub mod figures;
pub mod inspection;
pub mod key;
pub mod membership;
mod phrases;
pub mod reader;
pub mod record;
pub mod redaction;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod speakers;
pub mod upgrade;

use tertulia_domain as domain;
use tertulia_ports as ports;
use tertulia_settings as settings;
