//! Who runs when: messages in, effects out, no decisions.

pub mod side_models;
