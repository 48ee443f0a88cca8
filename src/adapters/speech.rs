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

/// Samples as bytes, as services want them. A loop, which is faster than iterators without optimisation, as in tests.
fn little_endian(samples: &[i16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2 * samples.len());
    for sample in samples {
        bytes.extend_from_slice(&sample.to_le_bytes());
    }
    bytes
}
