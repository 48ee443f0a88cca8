//! The stores behind [`crate::ports::store`]: one on disk, one in memory, and what they have in common.
//!
//! * [`sled`]: keeps everything in one tree on disk, committed by one thread.
//! * [`memory`]: its twin without a thread, for tests and simulation.
//! * [`manifest`]: the file beside sled's folder that says how much there has to be.
//! * [`audit`]: reads a store or a backup through.
//! * [`backup`]: the file that a backup is.
//! * [`part`]: a file that is its owner's alone, and has its name once it is whole.
//! * [`target`]: where a file may not be made.
//! * `batch`: what a batch means, in every store.
//! * `conformance`: the suite that every store has to pass.

pub mod audit;
pub mod backup;
mod batch;
#[cfg(test)]
mod conformance;
#[cfg(test)]
pub(crate) mod fuzz;
pub mod manifest;
pub mod memory;
mod open_error;
pub mod part;
pub mod sled;
pub mod target;

pub use open_error::OpenError;
