//! What a load run came to, for people and for programs.

use std::fmt::{self, Write as _};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::figures::{Figures, STORE_SIZE, Spread};
use super::load::{Pace, Taken};
use super::minutes::Minute;

/// What a load run came to. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Report {
    /// `inbound` or `http`.
    way: &'static str,
    channels: usize,
    guilds: usize,
    companions_per_channel: usize,
    /// Messages a second that were to be said; none: as many as were taken.
    asked_rate: Option<f64>,
    seconds: f64,
    said: u64,
    accepted: u64,
    refused: u64,
    failed: u64,
    accepted_per_second: f64,
    /// How long the rooms took, after the last message was accepted, to have handled all.
    caught_up_after_ms: f64,
    acceptance: Times,
    /// What the server itself added to turns that ended in a statement, as `tertulia.turn.overhead` has it.
    overhead: Times,
    evaluations_per_second: f64,
    decisions_per_second: f64,
    statements_per_second: f64,
    commits_per_second: f64,
    commit: Times,
    group_size_mean: Option<f64>,
    group_size_p99: Option<f64>,
    events_per_second: f64,
    /// Processors' worth of time, of the server; in this process also of whoever talks.
    processors: f64,
    processor_us_per_message: f64,
    memory_mib: f64,
    memory_before_mib: f64,
    channels_awake: f64,
    /// What the store's folder grew by, by a million messages. In a short run it says little: files grow in steps.
    disk_mib_per_million_messages: f64,
    disk_mib: f64,
    /// How it went meanwhile.
    minutes: Vec<Minute>,
}

/// How times are spread, in milliseconds; none where nothing was measured, or where it lies beyond what is told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Times {
    count: u64,
    p50: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
}

/// What was to be measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub way: &'static str,
    pub channels: usize,
    pub guilds: usize,
    pub companions: usize,
    pub pace: Pace,
}

/// What the server measured of itself.
pub(super) struct Measured {
    /// Before the rooms were made.
    pub at_first: Figures,
    /// When the measuring began.
    pub before: Figures,
    /// When the rooms had handled all.
    pub after: Figures,
    /// How long they took for that after the last message was accepted.
    pub caught_up: Duration,
    /// How it went meanwhile.
    pub minutes: Vec<Minute>,
}

impl Report {
    pub(super) fn of(asked: Asked, taken: &Taken, measured: Measured) -> Self {
        let Measured { at_first, before, after, caught_up, minutes } = measured;
        let (at_first, before, after) = (&at_first, &before, &after);
        let meanwhile = after.since(before);
        let seconds = taken.took.as_secs_f64();
        let whole = seconds + caught_up.as_secs_f64();
        let rate = |name: &str, label: &str| meanwhile.sum(name, label) / whole;
        let each = |total: f64| total / (taken.accepted.max(1) as f64);
        let commit = meanwhile.spread("tertulia_journal_commit_duration_seconds", "");
        let group = meanwhile.spread("tertulia_journal_group_size", "");
        let memory = |figures: &Figures| mib(figures.sum("process_memory_usage_bytes", ""));
        let cpu = meanwhile.sum("process_cpu_time_seconds_total", "");
        Self {
            way: asked.way,
            channels: asked.channels,
            guilds: asked.guilds,
            companions_per_channel: asked.companions,
            asked_rate: match asked.pace {
                Pace::Rate(rate) => Some(rate),
                Pace::FlatOut(_) => None,
            },
            seconds,
            said: taken.said,
            accepted: taken.accepted,
            refused: taken.refused,
            failed: taken.failed,
            accepted_per_second: taken.accepted as f64 / whole,
            caught_up_after_ms: caught_up.as_secs_f64() * 1e3,
            acceptance: Times::of(&taken.times),
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
    /// Of microseconds.
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

    /// Half of them take no longer, and 99 of a hundred.
    pub(super) const fn middle_and_most(&self) -> [Option<f64>; 2] {
        [self.p50, self.p99]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = self.asked_rate.map_or_else(|| "as many as are taken".to_owned(), |rate| format!("{rate} a second"));
        let mut line = |what: &str, value: String| writeln!(f, "{what:<22}{value}");
        line(
            "load",
            format!(
                "{} in {} with {} each, by {}, {asked}, for {:.1} s",
                counted(self.channels, "channel"),
                counted(self.guilds, "guild"),
                counted(self.companions_per_channel, "companion"),
                self.way,
                self.seconds
            ),
        )?;
        line("accepted", {
            let Self { accepted, refused, failed, .. } = self;
            format!("{accepted}, refused {refused}, failed {failed}: {:.0} a second", self.accepted_per_second)
        })?;
        line("all handled after", format!("{:.1} ms more", self.caught_up_after_ms))?;
        line("acceptance, ms", self.acceptance.to_string())?;
        line("overhead, ms", self.overhead.to_string())?;
        line(
            "a second",
            format!(
                "{:.0} questions, {:.0} decisions, {:.0} statements, {:.0} events on record",
                self.evaluations_per_second, self.decisions_per_second, self.statements_per_second, self.events_per_second
            ),
        )?;
        line("commit, ms", format!("{}; {:.0} a second", self.commit, self.commits_per_second))?;
        line("batches in a commit", {
            // Between the bounds of the histogram it is estimated; there are whole batches only.
            let p99 = self.group_size_p99.map_or_else(|| "–".to_owned(), |p99| format!("{:.0}", p99.ceil()));
            format!("{} on average, 99 %: at most {p99}", shown(self.group_size_mean))
        })?;
        line("processors", format!("{:.2}; {:.1} µs a message", self.processors, self.processor_us_per_message))?;
        line("memory, MiB", format!("{:.1}, {:.1} at first", self.memory_mib, self.memory_before_mib))?;
        line("channels awake", format!("{:.0}", self.channels_awake))?;
        // The file grows by whole segments, which a short run may not fill.
        let for_a_million = match self.disk_mib_per_million_messages {
            grown if grown > 0.0 => format!("{grown:.0} for a million messages"),
            _ => "has not grown yet".to_owned(),
        };
        line("disk, MiB", format!("{:.1}; {for_a_million}", self.disk_mib))
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "50 %: {}, 99 %: {}, 99.9 %: {}", shown(self.p50), shown(self.p99), shown(self.p999))?;
        match self.max {
            Some(max) => write!(f, ", most: {max:.2}"),
            None => Ok(()),
        }
    }
}

/// So many of them.
fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// A figure, or a dash where there is none.
pub(super) fn shown(value: Option<f64>) -> String {
    let mut shown = String::new();
    // Writing to a text does not fail.
    let _ = match value {
        Some(value) => write!(shown, "{value:.2}"),
        None => write!(shown, "–"),
    };
    shown
}

/// Bytes in MiB.
pub(super) fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}
