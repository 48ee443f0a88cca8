//! Tells how a run goes while it goes on, so that it can be seen whether anything grows.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

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
    /// What whoever is watched told of itself; nothing where it did not answer.
    #[serde(flatten)]
    told: Option<Told>,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_told: Option<String>,
}

/// What one told of itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Told {
    /// Since it was asked last and answered.
    overhead: Times,
    memory_mib: f64,
    open_files: f64,
    disk_mib: f64,
    channels_awake: f64,
}

impl Told {
    fn of(before: Option<&Figures>, after: &Figures) -> Self {
        let overhead = before.map(|before| after.since(before).spread("tertulia_turn_overhead_seconds", "outcome=\"posted\""));
        Self {
            overhead: overhead.as_ref().map(Times::of_spread).unwrap_or_default(),
            memory_mib: mib(after.sum("process_memory_usage_bytes", "")),
            open_files: after.sum("process_open_file_descriptors", ""),
            disk_mib: mib(after.sum("tertulia_store_size_bytes", "")),
            channels_awake: after.sum("tertulia_actors", "\"channel\""),
        }
    }
}

impl Minute {
    /// What stands over the lines.
    pub(super) const HEAD: &str =
        "     s  accepted/s  acceptance p50    p99  overhead p50    p99 ms  memory MiB  files   disk MiB  channels";
}

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_secs, accepted_per_second, acceptance, told, not_told } = self;
        let (p50, p99) = shown_both(acceptance);
        write!(f, "{at_secs:>6.0}  {accepted_per_second:>10.0}  {p50:>14} {p99:>6}  ")?;
        if let Some(Told { overhead, memory_mib, open_files, disk_mib, channels_awake }) = told {
            let (p50, p99) = shown_both(overhead);
            write!(f, "{p50:>12} {p99:>6}    {memory_mib:>10.1}  {open_files:>5.0}  {disk_mib:>9.1}  {channels_awake:>8.0}")?;
        }
        not_told.iter().try_for_each(|why| write!(f, "no figures: {why}"))
    }
}

fn shown_both(times: &Times) -> (String, String) {
    let [p50, p99] = times.middle_and_most();
    (shown(p50), shown(p99))
}

/// Does the work, and meanwhile looks every so often how it goes. Who does not answer then costs its line: that it is busy is what is looked at.
pub(super) async fn along<T>(
    work: impl Future<Output = T>,
    watched: &impl Watched,
    recent: &Recent,
    every: Duration,
    mut tell: impl FnMut(&Minute),
) -> (T, Vec<Minute>) {
    let mut minutes = Vec::new();
    let mut work = pin!(work);
    let began = Instant::now();
    let (mut before, mut looked) = (watched.figures().await.ok(), began);
    recent.take();
    loop {
        let look = async {
            tokio::time::sleep_until(looked + every).await;
            (Instant::now(), recent.take(), watched.figures().await)
        };
        tokio::select! {
            done = &mut work => return (done, minutes),
            (now, taken, figures) = look => {
                let told = figures.as_ref().ok().map(|after| Told::of(before.as_ref(), after));
                let minute = Minute {
                    at_secs: (now - began).as_secs_f64(),
                    accepted_per_second: taken.len() as f64 / (now - looked).as_secs_f64(),
                    acceptance: Times::of(&taken),
                    told,
                    not_told: figures.as_ref().err().map(ToString::to_string),
                };
                tell(&minute);
                minutes.push(minute);
                (before, looked) = (figures.ok().or(before), now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// One that answers, but for the times that are named here.
    struct Busy(Cell<u32>, &'static [u32]);

    impl Watched for Busy {
        async fn figures(&self) -> Result<Figures, Failure> {
            let time = self.0.replace(self.0.get() + 1);
            if self.1.contains(&time) {
                return Err(Failure::Failed("it is busy".into()));
            }
            Ok(Figures::read("process_open_file_descriptors 7\n"))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_fails_costs_its_line_and_nothing_else() {
        let busy = Busy(Cell::new(0), &[0, 2]);
        let (work, every) = (tokio::time::sleep(Duration::from_secs(35)), Duration::from_secs(10));
        let mut lines = Vec::new();

        let ((), minutes) = along(work, &busy, &Recent::default(), every, |minute| lines.push(minute.to_string())).await;

        let files: Vec<_> = minutes.iter().map(|minute| minute.told.as_ref().map(|told| told.open_files)).collect();
        assert_eq!(files, [Some(7.0), None, Some(7.0)]);
        assert!(lines[1].ends_with("no figures: it is busy") && !lines[2].contains("busy"), "{lines:?}");
        let (failed, fine) = (serde_json::to_value(&minutes[1]).unwrap(), serde_json::to_value(&minutes[2]).unwrap());
        assert_eq!((&failed["not_told"], failed.get("memory_mib")), (&"it is busy".into(), None));
        assert!(fine["overhead"].is_object() && fine["open_files"] == 7.0 && fine.get("not_told").is_none(), "{fine}");
    }
}
