//! The connection to one voice call. It receives people's Opus packets and sends companions' speech.
//!
//! [`Connection`] makes all decisions and performs no IO: messages, datagrams and the time are inputs, [`Effect`]s are outputs. [`VoiceConnection`]
//! is the handle of the task that owns the sockets and carries out the effects.
//!
//! References: Discord's "Voice", gateway version 8, and "Opcodes and Status Codes"; the DAVE protocol, version 1.1; RFC 3550 (RTP).

mod closing;
mod connection;
mod counts;
mod datagrams;
mod dave;
mod discovery;
mod events;
#[cfg(any(test, feature = "samples"))]
pub mod fuzz;
mod hearing;
mod messages;
mod metrics;
mod rtp;
mod server;
mod speaking;
mod stream;
mod task;
#[cfg(any(test, feature = "samples"))]
#[cfg_attr(not(test), allow(dead_code, reason = "the tests use more of it than the fuzz targets"))]
mod tests;
mod transport;

pub use self::closing::Ended;
pub use self::connection::{Connection, Effect};
pub use self::counts::Counts;
pub use self::events::{Event, Heard, Sent};
pub use self::server::Server;
pub use self::speaking::{Frame, MOST_WAITING};
pub use self::task::{Options, VoiceConnection};
