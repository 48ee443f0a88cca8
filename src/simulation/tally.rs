//! Many runs, and what they told.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::course::{Outcome, run};

/// So much of what happened is told of a run that fails.
const TAIL: usize = 60;
/// So many failing seeds are told of.
const FAILURES: usize = 3;

/// What many runs came to.
pub(super) struct Tally {
    runs: u64,
    took: Duration,
    lives: u64,
    events: u64,
    statements: u64,
    virtual_secs: u64,
    /// Kinds of faults and paths: in how many runs, and how often.
    reached: BTreeMap<&'static str, (u64, u64)>,
    failed: Vec<u64>,
    stories: Vec<String>,
}

impl Tally {
    /// Runs these seeds.
    #[expect(clippy::disallowed_methods, reason = "how long it really takes is what is told")]
    pub(super) fn of(seeds: impl IntoIterator<Item = u64>) -> Self {
        let began = Instant::now();
        let mut tally = Self {
            runs: 0,
            took: Duration::ZERO,
            lives: 0,
            events: 0,
            statements: 0,
            virtual_secs: 0,
            reached: BTreeMap::new(),
            failed: Vec::new(),
            stories: Vec::new(),
        };
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
        self.virtual_secs += outcome.notes.told.last().map_or(0, |(at, _)| at.as_secs());
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

    /// # Panics
    /// A run broke a rule: with its story, and the command that runs it again.
    pub(super) fn assert_no_violation(&self) {
        assert!(
            self.failed.is_empty(),
            "{} of {} runs failed, of the seeds {:?}\n{}",
            self.failed.len(),
            self.runs,
            self.failed,
            self.stories.join("\n")
        );
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
        writeln!(f, "{:<34} {:>8} {:>8}", "fault or path", "runs", "times")?;
        for (what, (runs, times)) in &self.reached {
            let share = *runs as f64 * 100.0 / self.runs.max(1) as f64;
            writeln!(f, "{what:<34} {share:>7.1}% {times:>8}")?;
        }
        Ok(())
    }
}

/// What happened in a run, the newest of it, and how to see it again.
pub(super) fn story(outcome: &Outcome, tail: usize) -> String {
    let mut story = format!("seed {}: {} violations\n", outcome.seed, outcome.notes.violations.len());
    for violation in outcome.notes.violations.iter().take(8) {
        // Writing to a text cannot fail.
        let _ = writeln!(story, "  {}", violation.chars().take(900).collect::<String>());
    }
    let told = &outcome.notes.told;
    for (at, what) in &told[told.len().saturating_sub(tail)..] {
        let _ = writeln!(story, "  {:>10.3} {}", at.as_secs_f64(), what.chars().take(300).collect::<String>());
    }
    let _ = writeln!(story, "again: TERTULIA_SIM_SEED={} cargo test --lib simulation::one_seed -- --nocapture", outcome.seed);
    story
}
