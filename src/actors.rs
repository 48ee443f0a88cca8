//! Who runs when: messages in, effects out, no decisions.

pub mod directory;
pub mod quarantine;
pub mod set_aside;
pub mod side_models;
pub mod supervision;
pub mod watchdog;
