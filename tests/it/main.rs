//! The integration tests, in one binary.

// The included files below find the library's modules under the same paths as in the library.
use tertulia::{domain, ports, settings, telemetry};

mod arrows;
mod commands;
mod conversations;
mod damage;
mod dashboards;
mod dependencies;
mod discord;
#[path = "../../src/ports/backend/fake.rs"]
#[expect(dead_code, reason = "the library's own tests use more of it")]
mod fake;
mod harness;
mod kills;
mod load;
mod operating;
#[path = "../../src/adapters/store/postgres/test_server.rs"]
#[expect(dead_code, reason = "the library's own tests use more of it")]
mod postgres_server;
mod processes;
mod speech;
#[path = "../../src/telemetry/fake.rs"]
#[expect(dead_code, reason = "the library's own tests use more of it")]
mod telemetry_fake;
