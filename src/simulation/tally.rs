//! The results of many runs.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::course::{Outcome, run};
use super::reached::SECTIONS;

/// The number of log lines that a failing run prints.
const TAIL: usize = 60;
/// The number of failing seeds that are described.
const FAILURES: usize = 3;

/// The sum of many runs.
#[derive(Default)]
pub(super) struct Tally {
    runs: u64,
    took: Duration,
    lives: u64,
    events: u64,
    statements: u64,
    virtual_secs: u64,
    /// Kinds of faults and paths: the number of runs, and the total count.
    reached: BTreeMap<&'static str, (u64, u64)>,
    failed: Vec<u64>,
    stories: Vec<String>,
}

impl Tally {
    /// Runs these seeds.
    #[expect(clippy::disallowed_methods, reason = "the real duration is reported")]
    pub(super) fn of(seeds: impl IntoIterator<Item = u64>) -> Self {
        let began = Instant::now();
        let mut tally = Self::default();
        for seed in seeds {
            tally.take(&run(seed));
        }
        tally.took = began.elapsed();
        tally
    }

    fn take(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.lives += outcome.lives;
        self.events += outcome.events as u64;
        self.statements += outcome.statements as u64;
        self.virtual_secs += outcome.notes.log.last().map_or(0, |(at, _)| at.as_secs());
        for (what, times) in &outcome.notes.reached {
            let reached = self.reached.entry(what).or_default();
            reached.0 += 1;
            reached.1 += times;
        }
        if !outcome.notes.violations.is_empty() {
            self.failed.push(outcome.seed);
            if self.stories.len() < FAILURES {
                self.stories.push(story(outcome, TAIL));
            }
        }
    }

    /// Adds the results of runs that ran in parallel.
    pub(super) fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.took = self.took.max(other.took);
        self.lives += other.lives;
        self.events += other.events;
        self.statements += other.statements;
        self.virtual_secs += other.virtual_secs;
        for (what, (runs, times)) in other.reached {
            let reached = self.reached.entry(what).or_default();
            *reached = (reached.0 + runs, reached.1 + times);
        }
        self.failed.extend(other.failed);
        self.stories.extend(other.stories);
    }

    /// # Panics
    /// A kind of fault or path was never reached, so nothing is known about it.
    pub(super) fn assert_everything_reached(&self) {
        let all = SECTIONS.iter().flat_map(|(_, kinds)| kinds.iter());
        let never: Vec<_> = all.filter(|what| !self.reached.contains_key(*what)).collect();
        assert!(never.is_empty(), "never reached in {} runs: {never:?}", self.runs);
    }

    fn line(&self, what: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (runs, times) = self.reached.get(what).copied().unwrap_or_default();
        let share = runs as f64 * 100.0 / self.runs.max(1) as f64;
        writeln!(f, "  {what:<38} {times:>8} {runs:>8} {share:>6.1}%")
    }

    /// # Panics
    /// A run broke a rule. The message has its story, and the command that runs it again.
    pub(super) fn assert_no_violation(&self) {
        if let Some(failure) = self.failure() {
            panic!("{failure}");
        }
    }

    /// The runs that broke a rule, if any, with the stories of some and the commands that run them again.
    pub(super) fn failure(&self) -> Option<String> {
        let (failed, stories) = (&self.failed, self.stories.join("\n"));
        let is_failure = !failed.is_empty();
        is_failure.then(|| format!("{} of {} runs failed, of the seeds {failed:?}\n{stories}", failed.len(), self.runs))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let took = self.took.as_secs_f64();
        writeln!(
            f,
            "{} runs in {took:.1} s ({:.0} ms each): {} lives of the process, {} events, {} statements, {} failed",
            self.runs,
            took * 1_000.0 / self.runs.max(1) as f64,
            self.lives,
            self.events,
            self.statements,
            self.failed.len()
        )?;
        writeln!(f, "{:.1} hours of virtual time", self.virtual_secs as f64 / 3_600.0)?;
        writeln!(f, "  {:<38} {:>8} {:>8} {:>7}", "", "times", "runs", "share")?;
        for (section, kinds) in SECTIONS {
            let reached = kinds.iter().filter(|what| self.reached.contains_key(*what)).count();
            writeln!(f, "{section}: {reached} of {}", kinds.len())?;
            for what in kinds {
                self.line(what, f)?;
            }
        }
        let is_known = |what: &&&str| SECTIONS.iter().any(|(_, kinds)| kinds.contains(what));
        for what in self.reached.keys().filter(|what| !is_known(what)) {
            self.line(what, f)?;
        }
        Ok(())
    }
}

/// What happened in a run, its newest log lines, and the command that runs it again.
pub(super) fn story(outcome: &Outcome, tail: usize) -> String {
    let mut story = format!("seed {}: {} violations\n", outcome.seed, outcome.notes.violations.len());
    for violation in outcome.notes.violations.iter().take(8) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(story, "  {}", violation.chars().take(900).collect::<String>());
    }
    let log = &outcome.notes.log;
    for (at, what) in &log[log.len().saturating_sub(tail)..] {
        let _ = writeln!(story, "  {:>10.3} {}", at.as_secs_f64(), what.chars().take(500).collect::<String>());
    }
    let _ = writeln!(story, "run again: TERTULIA_SIM_SEED={} cargo test --lib simulation::one_seed -- --nocapture", outcome.seed);
    story
}
