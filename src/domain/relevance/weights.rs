//! Written by `cargo bench --bench relevance -- train FILE` (docs/relevance.md).
//!
//! Trained on the data of Kummerfeld, Gouravajhala, Peper, Athreya, Gunasekara, Ganhotra, Patel, Polymenakos and Lasecki: "A Large-Scale Corpus
//! for Conversation Disentanglement", ACL 2019, <https://aclweb.org/anthology/P19-1374>, CC-BY-4.0 (<https://creativecommons.org/licenses/by/4.0/>):
//! 60 excerpts of its training data, changed as docs/relevance.md says.

use super::FEATURES;

/// A weight for each feature.
#[rustfmt::skip]
pub const WEIGHTS: [f32; FEATURES] = [
    -2.1448, // constant
    2.4297, // named
    0.2072, // named_long_ago
    -1.3548, // other_named
    -1.5428, // other_named_later
    -0.2225, // just_before
    -0.3373, // recency
    0.0610, // recency_open
    0.3965, // within20
    -0.4698, // over60
    -0.0631, // turns_since
    0.5020, // question
    0.5018, // named_question
    0.1300, // length
    -0.7680, // present
    0.1923, // shared_words
    0.2591, // share
    -0.6343, // reaction
    0.0268, // reaction_burst
    0.5538, // named_me_lately
    0.8479, // named_by_me_lately
    1.0296, // talks_with_me
    0.0480, // talks_with_other
    -0.3965, // named_other_lately
    -0.4043, // continues
];

/// From this logit on a message counts as one that the companion would answer.
pub const THRESHOLD: f32 = -1.83;
