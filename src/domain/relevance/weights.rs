//! Written by `cargo bench --bench relevance -- train FILE` (docs/relevance.md).
//!
//! Trained on the data of Kummerfeld, Gouravajhala, Peper, Athreya, Gunasekara, Ganhotra, Patel, Polymenakos and Lasecki: "A Large-Scale Corpus
//! for Conversation Disentanglement", ACL 2019, <https://aclweb.org/anthology/P19-1374>, CC-BY-4.0 (<https://creativecommons.org/licenses/by/4.0/>):
//! 60 excerpts of its training data, changed as docs/relevance.md says.

use super::FEATURES;

/// A weight for each feature.
#[rustfmt::skip]
pub const WEIGHTS: [f32; FEATURES] = [
    -2.6791, // constant
    3.1334, // named_first
    2.5213, // named_later
    0.1987, // named_long_ago
    0.9992, // named_question
    -0.9526, // other_named
    1.4272, // unknown_named
    -1.6062, // other_named_later
    -0.3798, // recency
    0.0952, // recency_open
    0.4007, // within20
    -0.5672, // over60
    -0.3073, // just_before
    0.2650, // just_asked
    0.3235, // just_before_you
    0.8439, // addressed_last
    0.2213, // times_named
    1.0084, // talks_with_me
    -0.7591, // named_other_last
    0.1573, // named_other_ago
    1.3210, // share
    -0.4656, // present
    -0.2596, // new
    -0.4061, // continues
    0.5143, // question
    0.0927, // asked
    0.2413, // asks_anybody
    -0.2430, // thanks
    -0.5836, // reaction
    0.1146, // length
    0.9033, // shared_words
    -0.4790, // shared_count
];

/// From this logit on a message counts as one that the companion would answer.
pub const THRESHOLD: f32 = -1.84;
