//! Discord in this process: its gateway and its REST API as Discord documents them, whoever the client is.
//!
//! It speaks the wire and knows nothing of the client. What Discord would refuse it refuses, with the codes that Discord documents;
//! what Discord has and it has not is refused with 501 or noted in [`journal::Journal::left_out`]. Every file names the page that it follows.
//!
//! | where | what |
//! | --- | --- |
//! | [`driver`] | what a test does with it: make a world, talk, break things, read back |
//! | [`rules`] | every limit and every time, to be changed by a test |
//! | [`world`] with [`guilds`], [`channels`], [`messages`], [`webhooks`], [`commands`], [`interactions`], [`permissions`] | what there is, and how it looks on the wire |
//! | [`changes`] | what can happen to it, whoever causes that |
//! | [`server`], [`connection`], [`identify`], [`sessions`], [`intents`] | the gateway |
//! | [`rest`] with [`routes`], [`draft`], [`limits`], [`refusal`] | the REST API |
//! | [`faults`], [`journal`] | what goes wrong on purpose; what was seen |
//!
//! Everything happens under one lock ([`state`]), so that what a test reads is one moment. Nothing waits by the clock but what Discord
//! itself lets wait; a test waits for what it wants to see ([`Counterpart::until`]).

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
pub mod intents;
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
pub mod webhooks;
pub mod world;

pub use driver::Counterpart;
