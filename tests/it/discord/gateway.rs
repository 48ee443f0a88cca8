//! Connections of the real adapter to the gateway of the test double.

mod budget;
mod commanding;
mod connecting;
mod nonsense;
mod receiving;
mod refusing;
mod resuming;
mod returning;
mod world;
