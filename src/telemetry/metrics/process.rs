//! The process itself: memory, processor time, open files, when it began. Where the system does not say (elsewhere than Linux), it is left out.

use opentelemetry::metrics::Meter;

use crate::telemetry::instruments::{BUILD_INFO, PROCESS_CPU, PROCESS_FILES, PROCESS_MEMORY, PROCESS_UPTIME, kinds};

/// Ticks of the processor's clock in a second, as Linux shows them to programs on every platform that it runs on.
const TICKS_PER_SECOND: f64 = 100.0;
/// What Linux counts resident memory in, on every platform that this server is built for.
const PAGE_BYTES: u64 = 4_096;

pub(super) fn observe(meter: &Meter) {
    kinds::observe(meter, PROCESS_UPTIME, |tell| uptime_seconds().into_iter().for_each(|seconds| tell(seconds, &[])));
    kinds::observe(meter, PROCESS_MEMORY, |tell| resident_bytes().into_iter().for_each(|bytes| tell(bytes as f64, &[])));
    kinds::observe(meter, PROCESS_CPU, |tell| cpu_seconds().into_iter().for_each(|seconds| tell(seconds, &[])));
    kinds::observe(meter, PROCESS_FILES, |tell| open_files().into_iter().for_each(|files| tell(files as f64, &[])));
    kinds::observe(meter, BUILD_INFO, |tell| tell(1.0, &[env!("CARGO_PKG_VERSION")]));
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
    // The second field, the program's name in parentheses, may hold spaces.
    let ticks: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(field - 3)?.parse().ok()?;
    Some(ticks / TICKS_PER_SECOND)
}

fn open_files() -> Option<u64> {
    // The folder that is being read is one of them.
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as u64)
}
