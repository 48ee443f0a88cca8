//! What is deleted from the record: words that are taken back, what was kept for long enough, and what an end in the middle has left.

pub mod leftovers;
pub mod retention;
pub mod taking_back;
pub mod turns;
