//! Audio without a platform: the codec of voice calls, and the detector of speech.

pub mod ear;
pub mod opus;
pub mod vad;
