//! Providers of speech: what people say to words, and what companions write to audio.

pub mod cartesia;
#[cfg(test)]
mod conformance;
pub mod deepgram;
pub mod elevenlabs;
pub mod flux;
#[cfg(test)]
mod fuzz;
pub mod openai;
pub mod rehearsal;
pub mod rehearsed;
pub mod service;
mod spoken_audio;
mod synthesis_service;
pub mod trial;
mod word_times;
