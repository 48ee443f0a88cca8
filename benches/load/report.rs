//! The report of a load run, for people and for programs.

use std::fmt::{self, Write as _};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::figures::{Figures, STORE_SIZE, Spread};
use super::minutes::Minute;
use super::pace::{LoadResult, Pace};

/// The result of a load run. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Report {
    /// `inbound port` or `HTTP`.
    way: &'static str,
    channels: usize,
    guilds: usize,
    companions_per_channel: usize,
    /// Messages a second that were due. `None`: flat out.
    asked_rate: Option<f64>,
    seconds: f64,
    said: u64,
    accepted: u64,
    refused: u64,
    failed: u64,
    accepted_per_second: f64,
    /// How long the rooms took to handle all messages after the last one was accepted.
    caught_up_after_ms: f64,
    acceptance: Times,
    /// The time that the server itself added to turns that ended in a statement, from `tertulia.turn.overhead`.
    overhead: Times,
    evaluations_per_second: f64,
    decisions_per_second: f64,
    statements_per_second: f64,
    commits_per_second: f64,
    commit: Times,
    group_size_mean: Option<f64>,
    group_size_p99: Option<f64>,
    events_per_second: f64,
    /// Processor seconds per second of the server. In this process they include the load generator's.
    processors: f64,
    processor_us_per_message: f64,
    memory_mib: f64,
    memory_before_mib: f64,
    channels_awake: f64,
    /// Growth of the store's folder per million messages. It means little for a short run, because files grow in steps.
    disk_mib_per_million_messages: f64,
    disk_mib: f64,
    /// The intervals of the run.
    minutes: Vec<Minute>,
}

/// Quantiles in milliseconds. They are `None` without values, or above the histogram's last finite bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Times {
    count: u64,
    p50: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
}

/// The load that was requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub way: &'static str,
    pub channels: usize,
    pub guilds: usize,
    pub companions: usize,
    pub pace: Pace,
}

/// The server's own metrics.
pub(super) struct Measured {
    /// Before the rooms were created.
    pub at_first: Figures,
    /// When the measurement began.
    pub before: Figures,
    /// When the rooms had handled all messages.
    pub after: Figures,
    /// How long that took after the last message was accepted.
    pub caught_up: Duration,
    /// The intervals of the run.
    pub minutes: Vec<Minute>,
}

impl Report {
    pub(super) fn of(plan: Plan, result: &LoadResult, measured: Measured) -> Self {
        let Measured { at_first, before, after, caught_up, minutes } = measured;
        let (at_first, before, after) = (&at_first, &before, &after);
        let meanwhile = after.since(before);
        let seconds = result.took.as_secs_f64();
        let whole = seconds + caught_up.as_secs_f64();
        let rate = |name: &str, label: &str| meanwhile.sum(name, label) / whole;
        let each = |total: f64| total / (result.accepted.max(1) as f64);
        let commit = meanwhile.spread("tertulia_journal_commit_duration_seconds", "");
        let group = meanwhile.spread("tertulia_journal_group_size", "");
        let memory = |figures: &Figures| mib(figures.sum("process_resident_memory_bytes", ""));
        let cpu = meanwhile.sum("process_cpu_seconds_total", "");
        Self {
            way: plan.way,
            channels: plan.channels,
            guilds: plan.guilds,
            companions_per_channel: plan.companions,
            asked_rate: match plan.pace {
                Pace::Rate(rate) => Some(rate),
                Pace::FlatOut(_) => None,
            },
            seconds,
            said: result.said,
            accepted: result.accepted,
            refused: result.refused,
            failed: result.failed,
            accepted_per_second: result.accepted as f64 / whole,
            caught_up_after_ms: caught_up.as_secs_f64() * 1e3,
            acceptance: Times::of(&result.times),
            overhead: Times::of_spread(&meanwhile.spread("tertulia_turn_overhead_seconds", "outcome=\"posted\"")),
            evaluations_per_second: rate("tertulia_evaluations_total", ""),
            decisions_per_second: rate("tertulia_decisions_total", ""),
            statements_per_second: rate("tertulia_messages_total", "companion"),
            commits_per_second: commit.count / whole,
            commit: Times::of_spread(&commit),
            group_size_mean: group.mean(),
            group_size_p99: group.quantile(0.99),
            events_per_second: rate("tertulia_journal_events_total", ""),
            processors: cpu / whole,
            processor_us_per_message: each(cpu * 1e6),
            memory_mib: memory(after),
            memory_before_mib: memory(at_first),
            channels_awake: after.sum("tertulia_actors", "\"channel\""),
            disk_mib_per_million_messages: mib(each(meanwhile.sum(STORE_SIZE, "")) * 1e6),
            disk_mib: mib(after.sum(STORE_SIZE, "")),
            minutes,
        }
    }
}

impl Times {
    /// From a histogram of microseconds.
    pub(super) fn of(times: &Histogram<u64>) -> Self {
        let millis = |us: u64| Some(us as f64 / 1e3).filter(|_| !times.is_empty());
        Self {
            count: times.len(),
            p50: millis(times.value_at_quantile(0.5)),
            p99: millis(times.value_at_quantile(0.99)),
            p999: millis(times.value_at_quantile(0.999)),
            max: millis(times.max()),
        }
    }

    pub(super) fn of_spread(spread: &Spread) -> Self {
        let millis = |part: f64| spread.quantile(part).map(|seconds| seconds * 1e3);
        Self { count: spread.count as u64, p50: millis(0.5), p99: millis(0.99), p999: millis(0.999), max: None }
    }

    pub(super) const fn p50_and_p99(&self) -> [Option<f64>; 2] {
        [self.p50, self.p99]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.asked_rate.map_or_else(|| "flat out".to_owned(), |rate| format!("{rate} a second"));
        let mut line = |what: &str, value: String| writeln!(f, "{what:<22}{value}");
        line(
            "load",
            format!(
                "{} in {} with {} each, through {}, {rate}, for {:.1} s",
                counted(self.channels, "channel"),
                counted(self.guilds, "guild"),
                counted(self.companions_per_channel, "companion"),
                if self.way == "HTTP" { "HTTP" } else { "the inbound port" },
                self.seconds
            ),
        )?;
        line("accepted", {
            let Self { accepted, refused, failed, .. } = self;
            format!("{accepted}, refused {refused}, failed {failed}: {:.0} a second", self.accepted_per_second)
        })?;
        line("all handled after", format!("another {:.1} ms", self.caught_up_after_ms))?;
        line("acceptance, ms", self.acceptance.to_string())?;
        line("overhead, ms", self.overhead.to_string())?;
        line(
            "per second",
            format!(
                "{:.0} questions, {:.0} decisions, {:.0} statements, {:.0} events on record",
                self.evaluations_per_second, self.decisions_per_second, self.statements_per_second, self.events_per_second
            ),
        )?;
        line("commit, ms", format!("{}; {:.0} a second", self.commit, self.commits_per_second))?;
        line("batches per commit", {
            // The quantile is interpolated, but the number of batches is whole.
            let p99 = self.group_size_p99.map_or_else(|| "–".to_owned(), |p99| format!("{:.0}", p99.ceil()));
            format!("mean {}, 99 %: at most {p99}", shown(self.group_size_mean))
        })?;
        line("processors", format!("{:.2}; {:.1} µs per message", self.processors, self.processor_us_per_message))?;
        line("memory, MiB", format!("{:.1}, {:.1} before the rooms were created", self.memory_mib, self.memory_before_mib))?;
        line("channels awake", format!("{:.0}", self.channels_awake))?;
        // The file grows by whole segments, and a short run may not fill one.
        let growth = match self.disk_mib_per_million_messages {
            grown if grown > 0.0 => format!("{grown:.0} per million messages"),
            _ => "no growth yet".to_owned(),
        };
        line("disk, MiB", format!("{:.1}; {growth}", self.disk_mib))
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "50 %: {}, 99 %: {}, 99.9 %: {}", shown(self.p50), shown(self.p99), shown(self.p999))?;
        match self.max {
            Some(max) => write!(f, ", max: {max:.2}"),
            None => Ok(()),
        }
    }
}

/// `1 channel`, `2 channels`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Two decimals, or a dash for `None`.
pub(super) fn shown(value: Option<f64>) -> String {
    let mut shown = String::new();
    // Writing to a String does not fail.
    let _ = match value {
        Some(value) => write!(shown, "{value:.2}"),
        None => write!(shown, "–"),
    };
    shown
}

pub(super) fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}
