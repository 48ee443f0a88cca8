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
pub mod trial;
mod word_times;

/// The longest message of a service that is accepted, unless the audio of a sentence may come in one.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// The language by its code in ISO 639-1, if its name begins with one.
fn language_code(name: &str) -> Option<String> {
    let code = name.split(['-', '_']).next().unwrap_or_default();
    (code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic())).then(|| code.to_ascii_lowercase())
}

/// Samples as bytes, as services want them. A loop, which is faster than iterators without optimisation, as in tests.
fn little_endian(samples: &[i16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2 * samples.len());
    for sample in samples {
        bytes.extend_from_slice(&sample.to_le_bytes());
    }
    bytes
}
