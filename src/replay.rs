//! Runs a scripted conversation through the real one, in virtual time: without a network, a runtime or a store.
//!
//! A tuning tool, the format of the recorded talks under `tests/conversations/`, and how checks from outside drive the engine
//! (docs/design/replay.md).

mod happening;
mod players;
mod run;
mod script;

pub use happening::{Happening, What};
pub use players::{Players, Question};
pub use run::{Impossible, run, run_with};
pub use script::{Answer, Answers, Deed, Saying, Script, ScriptError, Scripted};
