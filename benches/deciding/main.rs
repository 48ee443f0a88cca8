//! What deciding costs: the gate, names, rounds, reading answers, wording questions and writing records, each by itself; beside them, in
//! the same run, what it costs to hand a message to a channel and to commit one, and the gate in Python.
//!
//! `cargo bench --bench deciding -- [FILTER]`. All of it is pure but for what stands beside; it prints figures and asserts nothing. What it
//! allocates is told by `cargo bench --bench allocations`, of the same: to count takes time.

mod beside;
mod gates;
mod python;
mod reading;
#[allow(dead_code, reason = "others use more of it")]
mod room;
mod writing;

// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
    python::run();
}
