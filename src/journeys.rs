//! Journeys: the real actors, in paused time and on one thread, on a store and models in memory.

mod abroad;
mod channels;
mod company;
mod connecting;
mod contract;
mod crowded;
mod delivering;
mod dying;
mod elsewhere;
mod failing;
mod forgetting;
mod hearing;
mod keeping;
mod measuring;
mod noting;
mod retaining;
mod rooms;
mod rounds;
mod stories;
mod talking;
mod tenancy;
mod tracing;
mod usage;
mod world;
