//! Audio without a platform: the codec of voice calls, and voice activity detection.

pub mod ear;
pub mod opus;
pub mod vad;
