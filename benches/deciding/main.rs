//! The cost of deciding: the gate, names, rounds, parsing answers, building prompts and encoding records, each measured alone. For comparison the
//! same run measures sending a message to an actor, committing one, and the gate in Python.
//!
//! `cargo bench --bench deciding -- [FILTER]`. Everything except the comparison is pure code. It prints figures and asserts nothing.
//! `cargo bench --bench allocations` counts the allocations of the same code, in a separate run because counting takes time.

mod beside;
mod gates;
mod python;
mod reading;
#[allow(dead_code, reason = "others use more of it")]
mod room;
mod writing;

// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
    python::run();
}
