//! Written by `cargo bench --bench relevance -- train FILE` (docs/relevance.md).
//!
//! Trained on the data of Kummerfeld, Gouravajhala, Peper, Athreya, Gunasekara, Ganhotra, Patel, Polymenakos and Lasecki: "A Large-Scale Corpus
//! for Conversation Disentanglement", ACL 2019, <https://aclweb.org/anthology/P19-1374>, CC-BY-4.0 (<https://creativecommons.org/licenses/by/4.0/>):
//! 60 excerpts of its training data, changed as docs/relevance.md says.

use super::FEATURES;

/// A weight for each feature.
#[rustfmt::skip]
pub const WEIGHTS: [f32; FEATURES] = [
    -2.3257, // constant
    2.7544, // named_first
    2.1098, // named_later
    0.2165, // named_long_ago
    0.9949, // named_question
    -1.2737, // other_named
    1.4035, // unknown_named
    -1.4787, // other_named_later
    -0.3884, // recency
    0.0616, // recency_open
    0.2800, // within20
    -0.5415, // over60
    -0.3492, // just_before
    0.2576, // just_asked
    0.3197, // just_before_you
    0.8367, // addressed_last
    0.2191, // times_named
    0.9998, // talks_with_me
    -0.7602, // named_other_last
    0.1537, // named_other_ago
    1.0778, // share
    -0.5515, // present
    -0.2602, // new
    -0.3988, // continues
    0.5059, // question
    0.0801, // asked
    0.2368, // asks_anybody
    -0.2342, // thanks
    -0.5796, // reaction
    0.1152, // length
    0.8259, // shared_words
    -0.4160, // shared_count
];

/// From this logit on a message counts as one that the companion would answer.
pub const THRESHOLD: f32 = -1.84;
