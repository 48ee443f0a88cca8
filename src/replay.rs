//! Runs a scripted conversation through the real one, in virtual time: without a network, a runtime or a store.
//!
//! A tuning tool, the format of the recorded talks under `tests/conversations/`, and how checks from outside drive the engine
//! (DESIGN.md 13).

mod happening;
mod run;
mod script;

pub use happening::{Happening, What};
pub use run::{Impossible, run};
pub use script::{Script, ScriptError};
