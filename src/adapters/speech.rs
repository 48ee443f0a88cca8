//! Providers of speech: what people say to words, and what companions write to audio.

pub mod rehearsal;
pub mod rehearsed;
