//! Who runs when: messages in, effects out, no decisions.

pub mod channel;
pub mod companion;
pub mod delivery;
pub mod directory;
pub mod guild;
pub mod guilds;
pub mod house;
pub mod hub;
pub mod inbound;
pub mod kit;
mod pending;
pub mod places;
pub mod quarantine;
pub mod reply;
pub mod residents;
pub mod root;
pub mod scribe;
pub mod set_aside;
pub mod settling;
pub mod side_models;
pub mod starts;
pub mod supervision;
pub mod switchboard;
pub mod turn_taking_manager;
pub mod watchdog;
