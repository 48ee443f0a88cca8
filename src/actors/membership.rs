//! The members of channels, and the people who opted out.

pub mod changes;
pub mod memberships;
pub mod opt_out;
pub mod opt_outs;
