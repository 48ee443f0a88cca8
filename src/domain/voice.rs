//! The rules of voice: from speech to messages, and what happens when somebody talks while a companion speaks (docs/design/voice.md).
//!
//! Every part is a state machine of its own: inputs with their times go in, effects come out, and the next deadline can be read. Nothing here hears
//! or plays sound.

pub mod echo;
pub mod heard;
pub mod interruption;
pub mod invented;
pub mod pronounced;
pub mod pump;
pub mod said;
pub mod segment;
pub mod speech;
pub mod spoken_sentences;
pub mod spoken_text;
mod unspoken;
pub mod utterance;
pub mod words;
