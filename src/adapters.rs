//! How the ports are served: stores, models, platforms.

pub mod store;
