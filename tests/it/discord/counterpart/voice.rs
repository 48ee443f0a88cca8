//! A test double of Discord's voice servers: voice gateway v8, UDP with transport encryption, and the delivery service of end-to-end encryption (DAVE).
//!
//! It needs nothing of the rest of the counterpart: whoever has a [`Grant`] can join a call. The counterpart hands out grants in
//! VOICE_SERVER_UPDATE, and a test can hand them out itself.
//!
//! | where | what |
//! | --- | --- |
//! | [`driver`] | what a test does with it |
//! | [`person`] | scripted people: clients that speak any packets and keep what they hear |
//! | [`rules`] | every limit, every duration and every freedom that the documentation leaves to Discord |
//! | [`server`], [`payloads`], [`sessions`] | the voice gateway: its WebSockets, what clients send, numbered messages with resume |
//! | [`relay`], [`transport`] | UDP: IP discovery, and RTP from each member to all others |
//! | [`dave`] with [`mls`] | who is in the MLS group, proposals, commits, transitions |
//! | [`faults`], [`journal`] | injected faults; what happened, for assertions |
//!
//! Everything happens under one lock ([`state`]), which is taken after that of the gateway's counterpart, never before it.

pub mod dave;
pub mod driver;
pub mod faults;
pub mod journal;
pub mod mls;
pub mod payloads;
pub mod person;
pub mod relay;
pub mod rules;
pub mod server;
pub mod sessions;
pub mod state;
pub mod tests;
pub mod transport;

pub use driver::VoiceServer;
pub use faults::{Network, Speaking};
pub use journal::{Counts, Ended};
pub use person::Person;
pub use rules::Rules;
pub use sessions::Grant;
pub use state::Voice;
pub use transport::Mode;
