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
#[path = "../../src/adapters/store/postgres/test_server.rs"]
#[expect(dead_code, reason = "the library's own tests use more of it")]
mod postgres_server;
mod processes;
mod speech;
