//! Providers of speech: what people say to words, and what companions write to audio.

#[cfg(test)]
mod conformance;
pub mod deepgram;
pub mod flux;
pub mod openai;
pub mod rehearsal;
pub mod rehearsed;
pub mod service;
