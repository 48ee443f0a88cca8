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
mod load;
mod operating;
mod processes;
mod speech;
