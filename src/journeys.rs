//! Journeys: the real actors, in paused time and on one thread, on a store and models in memory.

mod company;
mod delivering;
mod dying;
mod keeping;
mod rooms;
mod rounds;
mod talking;
mod usage;
mod world;
