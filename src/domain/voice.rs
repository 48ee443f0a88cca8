//! The rules of voice calls: how speech becomes messages, and how a companion that speaks reacts to interruptions (docs/design/voice.md).
//!
//! Every part is a state machine of its own. It takes inputs with their times, returns effects, and reports its next deadline. Nothing here does
//! audio I/O.

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
