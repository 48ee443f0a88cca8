//! Who runs when: messages in, effects out, no decisions.
