//! Who lives in which channel, and who is not to be heard.

pub mod changes;
pub mod memberships;
pub mod opt_out;
pub mod opt_outs;
