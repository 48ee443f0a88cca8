//! The connection, driven by hand-made messages, and by other members of its group with a small delivery service.

#[cfg(test)]
mod call;
#[cfg(test)]
mod closes;
pub(super) mod delivery;
#[cfg(test)]
mod encryption;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod packets;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod resumes;
#[cfg(test)]
mod speech;
#[cfg(test)]
mod streams;
pub(super) mod world;
