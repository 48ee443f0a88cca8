//! Audio without a platform: the codec of voice calls, and voice activity detection.

pub mod ear;
mod ogg;
pub mod opus;
pub mod recording;
#[cfg(test)]
pub mod samples;
pub mod vad;
