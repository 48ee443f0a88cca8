//! Metrics of the process itself, under the names that Prometheus' own clients use: memory, processor time, open files, threads, uptime. Values
//! that the system does not provide (except on Linux) are left out.

use opentelemetry::metrics::Meter;

use crate::instruments::{
    BUILD_INFO, Entry, PROCESS_CPU, PROCESS_CPU_BEFORE, PROCESS_FILES_BEFORE, PROCESS_MAX_FILES, PROCESS_MEMORY_BEFORE,
    PROCESS_OPEN_FILES, PROCESS_RESIDENT, PROCESS_START, PROCESS_THREADS, PROCESS_UPTIME, PROCESS_VIRTUAL, kinds,
};

/// Clock ticks per second that Linux reports to programs, on every platform.
const TICKS_PER_SECOND: f64 = 100.0;
/// The size of a page, the unit of resident memory, on every platform that this server is built for.
const PAGE_BYTES: f64 = 4_096.0;

type Compute = fn() -> Option<f64>;

pub(super) fn observe(meter: &Meter) {
    let values: [(Entry, Compute); 11] = [
        (PROCESS_UPTIME, uptime_seconds),
        (PROCESS_CPU, cpu_seconds),
        (PROCESS_RESIDENT, resident_bytes),
        (PROCESS_VIRTUAL, || stat(23)),
        (PROCESS_OPEN_FILES, open_files),
        (PROCESS_MAX_FILES, max_files),
        (PROCESS_START, start_time),
        (PROCESS_THREADS, || stat(20)),
        (PROCESS_MEMORY_BEFORE, resident_bytes),
        (PROCESS_CPU_BEFORE, cpu_seconds),
        (PROCESS_FILES_BEFORE, open_files),
    ];
    for (entry, value) in values {
        kinds::observe(meter, entry, move |report| value().into_iter().for_each(|value| report(value, &[])));
    }
    kinds::observe(meter, BUILD_INFO, |report| report(1.0, &[env!("CARGO_PKG_VERSION")]));
}

fn resident_bytes() -> Option<f64> {
    stat(24).map(|pages| pages * PAGE_BYTES)
}

fn cpu_seconds() -> Option<f64> {
    Some((stat(14)? + stat(15)?).max(0.0) / TICKS_PER_SECOND)
}

fn uptime_seconds() -> Option<f64> {
    let machine = std::fs::read_to_string("/proc/uptime").ok()?;
    let since_boot: f64 = machine.split_whitespace().next()?.parse().ok()?;
    Some((since_boot - stat(22)? / TICKS_PER_SECOND).max(0.0))
}

fn start_time() -> Option<f64> {
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot + stat(22)? / TICKS_PER_SECOND)
}

/// A field of `/proc/self/stat`, by the number that proc(5) gives it.
fn stat(field: usize) -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, the program's name in parentheses, may contain spaces.
    stat.rsplit_once(')')?.1.split_whitespace().nth(field - 3)?.parse().ok()
}

fn open_files() -> Option<f64> {
    // One of them is the folder that is being read.
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as f64)
}

/// The limit that applies to the process. `None`: there is none.
fn max_files() -> Option<f64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    limit.split_whitespace().next()?.parse().ok()
}
