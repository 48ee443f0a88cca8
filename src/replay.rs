//! Runs a script through the real conversation code in virtual time, without a network, a runtime or a store.
//!
//! It serves as a tool for tuning, as the test runner for the recorded conversations in `tests/conversations/`, and as the
//! interface through which external checks drive the engine (docs/design/replay.md).

mod call;
mod mouth;
mod replay_event;
mod responder;
mod run;
mod script;
mod speech;

pub use mouth::Mouth;
pub use replay_event::{ReplayEvent, ReplayEventKind};
pub use responder::{Question, Responder, ScriptedAnswers};
pub use run::{RunError, run, run_with};
pub use script::{Action, Answer, Answers, Configured, Script, ScriptError, ScriptedEvent, ScriptedMessage};
pub use speech::{VoiceAction, VoiceEvent};
