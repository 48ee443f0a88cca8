//! Providers of speech recognition and speech synthesis.

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

/// The longest message of a service that is accepted. A message with the audio of a whole sentence may be longer.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// The ISO 639-1 code of a language, if its name begins with one.
fn language_code(name: &str) -> Option<String> {
    let code = name.split(['-', '_']).next().unwrap_or_default();
    (code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic())).then(|| code.to_ascii_lowercase())
}

/// Samples as little-endian bytes, as services expect them. In unoptimised builds, such as tests, a loop is faster than
/// iterators.
fn little_endian(samples: &[i16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2 * samples.len());
    for sample in samples {
        bytes.extend_from_slice(&sample.to_le_bytes());
    }
    bytes
}
