//! The members of channels, invitations to rooms, and the people who opted out.

pub mod changes;
pub mod guest_book;
pub mod guests;
pub mod memberships;
pub mod opt_out;
pub mod people;
