//! What deciding allocates: the benchmarks of `deciding`, with an allocator that counts. Its times are longer by the counting.
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
