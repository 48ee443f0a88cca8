#![doc = include_str!("README.md")]

pub mod actors;
pub mod adapters;
pub mod backend;
pub use tertulia_cards as cards;
pub mod cli;
pub use tertulia_domain as domain;
pub mod evaluation;
#[cfg(test)]
mod fuzzing;
pub use tertulia_http_client as http_client;
pub use tertulia_journal as journal;
#[cfg(test)]
mod journeys;
pub use tertulia_ports as ports;
pub mod replay;
#[cfg(test)]
mod samples;
pub mod server;
pub use tertulia_settings as settings;
#[cfg(test)]
mod simulation;
mod story;
pub use tertulia_telemetry as telemetry;
pub use tertulia_texts as texts;

// As the server has it. With the system's allocator, some 7 % of the time of these tests was allocation.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
