//! Who lives in which channel, and who is not to be heard.

pub mod changes;
pub mod ignored;
pub mod ignoring;
pub mod memberships;
