//! Metrics of the process itself: memory, processor time, open files, uptime. Values that the system does not provide (except on Linux) are left
//! out.

use opentelemetry::metrics::Meter;

use crate::instruments::{BUILD_INFO, PROCESS_CPU, PROCESS_FILES, PROCESS_MEMORY, PROCESS_UPTIME, kinds};

/// Clock ticks per second that Linux reports to programs, on every platform.
const TICKS_PER_SECOND: f64 = 100.0;
/// The size of a page, the unit of resident memory, on every platform that this server is built for.
const PAGE_BYTES: u64 = 4_096;

pub(super) fn observe(meter: &Meter) {
    kinds::observe(meter, PROCESS_UPTIME, |report| uptime_seconds().into_iter().for_each(|seconds| report(seconds, &[])));
    kinds::observe(meter, PROCESS_MEMORY, |report| resident_bytes().into_iter().for_each(|bytes| report(bytes as f64, &[])));
    kinds::observe(meter, PROCESS_CPU, |report| cpu_seconds().into_iter().for_each(|seconds| report(seconds, &[])));
    kinds::observe(meter, PROCESS_FILES, |report| open_files().into_iter().for_each(|files| report(files as f64, &[])));
    kinds::observe(meter, BUILD_INFO, |report| report(1.0, &[env!("CARGO_PKG_VERSION")]));
}

fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    pages.split_whitespace().nth(1)?.parse::<u64>().ok().map(|pages| pages * PAGE_BYTES)
}

fn cpu_seconds() -> Option<f64> {
    Some((stat_seconds(14)? + stat_seconds(15)?).max(0.0))
}

fn uptime_seconds() -> Option<f64> {
    let machine = std::fs::read_to_string("/proc/uptime").ok()?;
    let since_boot: f64 = machine.split_whitespace().next()?.parse().ok()?;
    Some((since_boot - stat_seconds(22)?).max(0.0))
}

/// A field of `/proc/self/stat` that is in ticks, by the number that proc(5) gives it.
fn stat_seconds(field: usize) -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, the program's name in parentheses, may contain spaces.
    let ticks: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(field - 3)?.parse().ok()?;
    Some(ticks / TICKS_PER_SECOND)
}

fn open_files() -> Option<u64> {
    // One of them is the folder that is being read.
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as u64)
}
