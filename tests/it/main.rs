//! The integration tests, in one binary.

mod arrows;
mod commands;
mod conversations;
mod dashboards;
mod dependencies;
mod discord;
mod harness;
mod operating;
mod ordeals;
mod processes;
mod second;
