//! The implementations of [`tertulia_ports::store`]: one on disk, one in a database, one in memory, and their shared code.
//!
//! * [`sled`]: stores everything in one tree on disk, committed by one thread.
//! * [`postgres`]: stores everything in a database, for more than one machine.
//! * `memory`: their counterpart in memory without a thread, for tests and simulation.
//! * [`manifest`]: the file beside sled's folder with the minimum content of the store.
//! * [`audit`]: reads a store or a backup completely and checks it.
//! * [`backup`]: the format of backup files.
//! * [`part`]: a file that only its owner can read, and that gets its name once it is complete.
//! * [`transfer`]: copies a store into one of another engine, and checks the copy.
//! * [`target`]: the locations where a backup must not be written.
//! * `batch`: the semantics of a batch, shared by all stores.
//! * `conformance`: the test suite that every store has to pass.

pub mod audit;
pub mod backup;
mod batch;
#[cfg(test)]
mod conformance;
#[cfg(any(test, feature = "samples"))]
pub mod fuzz;
pub mod manifest;
#[cfg(any(test, feature = "samples"))]
pub mod memory;
mod open_error;
pub mod part;
pub mod postgres;
pub mod sled;
pub mod target;
pub mod transfer;

#[cfg(test)]
use tertulia_adapters as adapters;
use tertulia_domain as domain;
#[cfg(test)]
use tertulia_domain::samples;
use tertulia_http_client as http_client;
#[cfg(any(test, feature = "samples"))]
use tertulia_inputs as fuzzing;
#[cfg(test)]
use tertulia_journal as journal;
use tertulia_ports as ports;
use tertulia_settings as settings;
use tertulia_telemetry as telemetry;

pub use open_error::OpenError;

/// A server among the nodes that share a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    /// The URL at which other nodes reach it. Empty: unknown.
    pub address: String,
}

impl Identity {
    /// A command, which owns the store only while it runs.
    pub fn command() -> Self {
        Self { name: format!("a command, process {}", std::process::id()), address: String::new() }
    }
}
