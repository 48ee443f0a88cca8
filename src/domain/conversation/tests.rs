//! Properties of every conversation, whatever is said, answered, lost or dropped.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind of event")]

mod acknowledging;
mod alone;
mod by_hand;
mod closing;
mod late;
mod lost;
mod mouth;
mod natural;
mod older;
mod over_budget;
mod recent_statements;
mod regressions;
mod restricted;
mod risk;
mod room;
mod scene;
mod stopping;
mod tool_calls;
mod voice;
mod voice_notes;
mod witness;
