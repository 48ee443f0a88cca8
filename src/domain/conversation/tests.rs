//! What must hold for every conversation, whatever is said, answered, lost or dropped.

mod alone;
mod found;
mod late;
mod lost;
mod over_budget;
mod room;
mod scene;
