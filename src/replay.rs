//! Runs a script through the real conversation code, in virtual time: without a network, a runtime or a store.
//!
//! This is a tool for tuning, the format of the recorded talks in `tests/conversations/`, and the way in which external checks drive the engine
//! (docs/design/replay.md).

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
