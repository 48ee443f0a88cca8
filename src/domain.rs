//! The decisions of the server, pure and synchronous: no runtime, no clock, no randomness, no IO.

#![warn(missing_docs)]

pub mod address;
pub mod answer;
pub mod answer_end;
pub mod audience;
pub mod breaker;
pub mod budget;
pub mod closing;
pub mod conversation;
pub mod decision;
pub mod event;
pub mod gate;
pub mod id;
mod links;
pub mod lookalike;
mod marks;
pub mod message;
pub mod model_role;
pub mod moment;
pub(crate) mod named;
pub mod names;
pub mod price;
pub mod priority;
pub mod prompt;
pub mod question_context;
pub mod raw_answer;
pub mod repetition;
pub mod round;
#[cfg(test)]
pub(crate) mod samples;
pub mod sentences;
pub mod service;
pub mod settlement;
pub mod split;
pub mod statement;
pub mod stop_phrase;
pub mod text;
pub mod trigger;
pub mod trimmed;
pub mod voice;
pub mod vote;
mod vote_fields;
pub mod window;
