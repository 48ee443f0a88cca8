//! The integration tests, in one binary.

mod arrows;
mod commands;
mod conversations;
mod damage;
mod dashboards;
mod dependencies;
mod discord;
mod harness;
mod kills;
mod operating;
mod processes;
mod second;
