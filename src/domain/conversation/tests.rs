//! What must hold for every conversation, whatever is said, answered, lost or dropped.

mod alone;
mod found;
mod late;
mod lost;
mod room;
mod scene;
