//! Tells how a run goes while it goes on, so that it can be seen whether anything grows.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::time::Instant;

use super::figures::Figures;
use super::load::Recent;
use super::report::{Times, mib, shown};
use crate::cli::failure::Failure;

/// Whoever is talked to, as far as it tells how it is.
pub(super) trait Watched {
    /// What it measured up to now.
    async fn figures(&self) -> Result<Figures, Failure>;
}

/// How it went between two moments. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Minute {
    /// Since the measuring began.
    at_secs: f64,
    accepted_per_second: f64,
    acceptance: Times,
    overhead: Times,
    memory_mib: f64,
    open_files: f64,
    disk_mib: f64,
    channels_awake: f64,
}

impl Minute {
    fn of(at: Duration, meanwhile: Duration, recent: &Histogram<u64>, before: &Figures, after: &Figures) -> Self {
        let overhead = after.since(before).spread("tertulia_turn_overhead_seconds", "outcome=\"posted\"");
        Self {
            at_secs: at.as_secs_f64(),
            accepted_per_second: recent.len() as f64 / meanwhile.as_secs_f64(),
            acceptance: Times::of(recent),
            overhead: Times::of_spread(&overhead),
            memory_mib: mib(after.sum("process_memory_usage_bytes", "")),
            open_files: after.sum("process_open_file_descriptors", ""),
            disk_mib: mib(after.sum("tertulia_store_size_bytes", "")),
            channels_awake: after.sum("tertulia_actors", "\"channel\""),
        }
    }

    /// What stands over the lines.
    pub(super) const HEAD: &str =
        "     s  accepted/s  acceptance p50    p99  overhead p50    p99 ms  memory MiB  files   disk MiB  channels";
}

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_secs, accepted_per_second, acceptance, overhead, .. } = self;
        let ([p50, p99], [over50, over99]) = (acceptance.middle_and_most(), overhead.middle_and_most());
        let (p50, p99, over50, over99) = (shown(p50), shown(p99), shown(over50), shown(over99));
        write!(f, "{at_secs:>6.0}  {accepted_per_second:>10.0}  {p50:>14} {p99:>6}  {over50:>12} {over99:>6}   ")?;
        let Self { memory_mib, open_files, disk_mib, channels_awake, .. } = self;
        write!(f, " {memory_mib:>10.1}  {open_files:>5.0}  {disk_mib:>9.1}  {channels_awake:>8.0}")
    }
}

/// Does the work, and meanwhile looks every so often how it goes.
///
/// # Errors
/// Whoever is watched did not tell.
pub(super) async fn along<T>(
    work: impl Future<Output = T>,
    watched: &impl Watched,
    recent: &Recent,
    every: Duration,
    mut tell: impl FnMut(&Minute),
) -> Result<(T, Vec<Minute>), Failure> {
    let mut minutes = Vec::new();
    let mut work = pin!(work);
    let began = Instant::now();
    let (mut before, mut looked) = (watched.figures().await?, began);
    recent.take();
    loop {
        let look = async {
            tokio::time::sleep_until(looked + every).await;
            (Instant::now(), recent.take(), watched.figures().await)
        };
        tokio::select! {
            done = &mut work => return Ok((done, minutes)),
            (now, taken, figures) = look => {
                let after = figures?;
                let minute = Minute::of(now - began, now - looked, &taken, &before, &after);
                tell(&minute);
                minutes.push(minute);
                (before, looked) = (after, now);
            }
        }
    }
}
