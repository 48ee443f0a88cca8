//! Calls in real time: a client of another make, and trials that print figures. They are ignored in `cargo test`; docs/testing.md says how to run
//! them.
//!
//! | where | what |
//! | --- | --- |
//! | [`absences`] | how long the bot is away when it enters, moves, loses its session, or is killed |
//! | [`call`] | a call with the real binary in it |
//! | [`figures`] | how trials print what they measure |
//! | [`story`] | a companion that speaks for minutes |
//! | [`signal`] | what a call does to audio, and a bad network |
//! | [`killed`] | the voice gateway is killed, and messages about the group are garbled |
//! | [`restarted`] | the server is restarted while a companion prepares an answer |
//! | [`taken_over`] | the node of a call is killed, and another one takes over |
//! | [`interruptions`] | people talk into what a companion says |
//! | [`fifty`] | fifty people in one call |
//! | [`ten_calls`] | ten calls, of which one is cut |
//! | [`other_make`] | people who are played by @discordjs/voice |

mod absences;
pub mod call;
mod fifty;
mod figures;
mod interruptions;
mod killed;
mod other_make;
mod restarted;
mod signal;
mod story;
mod taken_over;
mod ten_calls;
