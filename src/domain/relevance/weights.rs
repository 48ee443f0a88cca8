//! Written by `cargo bench --bench relevance -- train FILE` (docs/relevance.md).
//!
//! Trained on the data of Kummerfeld, Gouravajhala, Peper, Athreya, Gunasekara, Ganhotra, Patel, Polymenakos and Lasecki: "A Large-Scale Corpus
//! for Conversation Disentanglement", ACL 2019, <https://aclweb.org/anthology/P19-1374>, CC-BY-4.0 (<https://creativecommons.org/licenses/by/4.0/>):
//! 60 excerpts of its training data, changed as docs/relevance.md says.

use super::FEATURES;

/// A weight for each feature.
#[rustfmt::skip]
pub const WEIGHTS: [f32; FEATURES] = [
    -2.1448, // Constant
    2.4297, // Named
    0.2072, // NamedLongAgo
    -1.3548, // OtherNamed
    -1.5428, // OtherNamedLater
    -0.2225, // JustBefore
    -0.3373, // Recency
    0.0610, // RecencyOpen
    0.3965, // Within20
    -0.4698, // Over60
    -0.0631, // TurnsSince
    0.5020, // Question
    0.5018, // NamedQuestion
    0.1300, // Length
    -0.7680, // Present
    0.1923, // SharedWords
    0.2591, // Share
    -0.6343, // Reaction
    0.0268, // ReactionBurst
    0.5538, // NamedMeLately
    0.8479, // NamedByMeLately
    1.0296, // TalksWithMe
    0.0480, // TalksWithOther
    -0.3965, // NamedOtherLately
    -0.4043, // Continues
];

/// From this logit on a message counts as one that the companion would answer.
pub const THRESHOLD: f32 = -1.83;
