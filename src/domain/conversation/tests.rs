//! What must hold for every conversation, whatever is said, answered, lost or dropped.

mod alone;
mod room;
mod scene;
