//! Counts the allocations of the gate's code: the benchmarks of `deciding`, with a counting allocator. Its times are longer because of the counting.
//!
//! `cargo bench --bench allocations -- [FILTER]`.

#[path = "../deciding/gates.rs"]
mod gates;
#[path = "../deciding/reading.rs"]
mod reading;
#[path = "../deciding/room.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod room;
#[path = "../deciding/writing.rs"]
mod writing;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}
