//! Connections to the counterpart's gateway, by the real adapter.

mod budget;
mod commanding;
mod connecting;
mod nonsense;
mod receiving;
mod refusing;
mod resuming;
mod returning;
mod world;
