//! The connection, driven by hand-made messages, and by other members of its group with a small delivery service.

mod call;
mod closes;
pub(super) mod delivery;
mod encryption;
mod handshake;
mod packets;
mod properties;
mod resumes;
mod speech;
mod streams;
pub(super) mod world;
