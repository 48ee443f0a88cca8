//! Measures at intervals during a run, so that growth is visible.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::figures::Figures;
use super::pace::Recent;
use super::report::{Times, mib, shown};

/// A system that reports its own metrics.
pub(super) trait Monitored {
    /// Its metrics up to now.
    async fn figures(&self) -> anyhow::Result<Figures>;
}

/// Figures of one interval. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Minute {
    /// Since the measurement began.
    at_secs: f64,
    accepted_per_second: f64,
    acceptance: Times,
    /// The system's own figures, or `None` if it did not answer.
    #[serde(flatten)]
    reported: Option<Reported>,
    /// Why it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_told: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Reported {
    /// Since its last answer.
    overhead: Times,
    memory_mib: f64,
    open_files: f64,
    disk_mib: f64,
    channels_awake: f64,
}

impl Reported {
    fn of(before: Option<&Figures>, after: &Figures) -> Self {
        let overhead = before.map(|before| after.since(before).spread("tertulia_turn_overhead_seconds", "outcome=\"posted\""));
        Self {
            overhead: overhead.as_ref().map(Times::of_spread).unwrap_or_default(),
            memory_mib: mib(after.sum("process_resident_memory_bytes", "")),
            open_files: after.sum("process_open_fds", ""),
            disk_mib: mib(after.sum("tertulia_store_size_bytes", "")),
            channels_awake: after.sum("tertulia_actors", "\"channel\""),
        }
    }
}

impl Minute {
    /// The header of the lines.
    pub(super) const HEAD: &str =
        "     s  accepted/s  acceptance p50    p99  overhead p50    p99 ms  memory MiB  files   disk MiB  channels";
}

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_secs, accepted_per_second, acceptance, reported, not_told } = self;
        let (p50, p99) = shown_both(acceptance);
        write!(f, "{at_secs:>6.0}  {accepted_per_second:>10.0}  {p50:>14} {p99:>6}  ")?;
        if let Some(Reported { overhead, memory_mib, open_files, disk_mib, channels_awake }) = reported {
            let (p50, p99) = shown_both(overhead);
            write!(f, "{p50:>12} {p99:>6}    {memory_mib:>10.1}  {open_files:>5.0}  {disk_mib:>9.1}  {channels_awake:>8.0}")?;
        }
        not_told.iter().try_for_each(|why| write!(f, "no figures: {why}"))
    }
}

fn shown_both(times: &Times) -> (String, String) {
    let [p50, p99] = times.p50_and_p99();
    (shown(p50), shown(p99))
}

/// Runs the work, and takes figures at this interval during it. A system that does not answer costs only that line's figures: being busy is a
/// result too.
pub(super) async fn observe<T>(
    work: impl Future<Output = T>,
    system: &impl Monitored,
    recent: &Recent,
    every: Duration,
    mut show: impl FnMut(&Minute),
) -> (T, Vec<Minute>) {
    let mut minutes = Vec::new();
    let mut work = pin!(work);
    let began = Instant::now();
    let (mut before, mut last) = (system.figures().await.ok(), began);
    recent.take();
    loop {
        let measurement = async {
            tokio::time::sleep_until(last + every).await;
            (Instant::now(), recent.take(), system.figures().await)
        };
        tokio::select! {
            done = &mut work => return (done, minutes),
            (now, latencies, figures) = measurement => {
                let reported = figures.as_ref().ok().map(|after| Reported::of(before.as_ref(), after));
                let minute = Minute {
                    at_secs: (now - began).as_secs_f64(),
                    accepted_per_second: latencies.len() as f64 / (now - last).as_secs_f64(),
                    acceptance: Times::of(&latencies),
                    reported,
                    not_told: figures.as_ref().err().map(ToString::to_string),
                };
                show(&minute);
                minutes.push(minute);
                (before, last) = (figures.ok().or(before), now);
            }
        }
    }
}
