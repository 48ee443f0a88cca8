//! A test double of Discord that runs in the test's process: what is used of the gateway and of the REST API, as Discord documents it.
//!
//! It speaks the wire protocol and knows nothing of the client. It refuses what Discord would refuse, with the codes that Discord documents. A
//! feature of Discord that it lacks is an unknown route, is refused with 501 or is noted in [`journal::Journal::unsupported`]. Every file names
//! the page that it follows.
//!
//! | where | what |
//! | --- | --- |
//! | [`driver`] | what a test does with it: create a world, talk, inject faults, read back what happened |
//! | [`rules`] | every limit and every duration; a test can change them |
//! | [`world`] with [`guilds`], [`channels`], [`messages`], [`webhooks`], [`commands`], [`interactions`], [`permissions`] | the objects, and their JSON |
//! | [`changes`] | every change to the world, caused by the test or by a client, and the events that it sends |
//! | [`server`], [`connection`], [`identify`], [`sessions`] | the gateway |
//! | [`voice`], [`voice_states`] | voice servers: calls with audio; who is in which voice channel |
//! | [`rest`] with [`routes`], [`draft`], [`limits`], [`refusal`] | the REST API |
//! | [`faults`], [`journal`] | injected faults; what happened, for assertions |
//!
//! Everything happens under one lock ([`state`]), so that a test reads one consistent state. Only the delays that Discord itself has run by the
//! clock. A test waits for a condition ([`Counterpart::until`]). Permissions and intents are those of `twilight-model`, which the client does not use.

pub mod changes;
pub mod channels;
pub mod commands;
pub mod connection;
pub mod draft;
pub mod driver;
pub mod faults;
pub mod guilds;
pub mod id;
pub mod identify;
pub mod interactions;
pub mod journal;
pub mod limits;
pub mod messages;
pub mod moment;
pub mod permissions;
pub mod refusal;
pub mod rest;
pub mod routes;
pub mod rules;
pub mod server;
pub mod sessions;
pub mod state;
pub mod tests;
pub mod voice;
pub mod voice_states;
pub mod webhooks;
pub mod world;

pub use twilight_model::gateway::Intents;
pub use twilight_model::guild::Permissions;

pub use channels::{Channel, Kind, Overwrite, Thread};
pub use commands::Command;
pub use draft::{Draft, Sender};
pub use driver::Counterpart;
pub use driver::make::INVITED;
pub use faults::{Connects, Does, On, Scope};
pub use guilds::{Application, Guild, Member, Role, User};
pub use id::Id;
pub use interactions::{Answered, Interaction};
pub use journal::Closed;
pub use messages::{Author, Content, Mentions, Message, Reference};
pub use moment::{iso8601, now_ms};
pub use refusal::{Refusal, Unknown};
pub use rules::{Bucket, Rules};
pub use sessions::{Event, Place};
pub use state::{State, StoredFile};
pub use voice_states::VoiceState;
pub use webhooks::Webhook;
pub use world::World;
