//! The members of channels, invitations to rooms, opt-outs, and the AI disclosure.

pub mod changes;
pub mod guest_book;
pub mod guests;
pub mod memberships;
pub mod opt_out;
pub mod people;
