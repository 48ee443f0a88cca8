//! Connections to the counterpart's gateway, by the real adapter.

mod connecting;
mod resuming;
mod world;
