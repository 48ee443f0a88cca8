//! Clients of external services: bounded messages, and errors without keys.

pub(in crate::adapters) mod body;
pub(in crate::adapters) mod failure;
pub(in crate::adapters) mod fields;
pub(in crate::adapters) mod first;
#[cfg(test)]
pub(in crate::adapters) mod fuzz;
pub(in crate::adapters) mod service;
pub(in crate::adapters) mod sse;
pub(in crate::adapters) mod told;
pub(in crate::adapters) mod web_socket;
