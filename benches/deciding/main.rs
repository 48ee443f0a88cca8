//! Measures the cost of deciding: the gate, names, rounds, reading answers, building prompts and writing records, each alone. For comparison, the
//! same run measures handing a message to a channel, committing one, and the gate in Python.
//!
//! `cargo bench --bench deciding -- [FILTER]`. Except for the comparisons, all of it is pure. It prints figures and asserts nothing.
//! `cargo bench --bench allocations` counts the allocations of the same code, separately because counting takes time.

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
