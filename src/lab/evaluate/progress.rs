//! Shows the progress of a run: a bar on a terminal, otherwise a line at each tenth.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    what: &'static str,
    all: usize,
    done: usize,
}

impl Progress {
    pub(super) fn of(what: &'static str, all: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(all as u64).with_finish(ProgressFinish::AndClear);
            let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} {msg}, {eta} left");
            if let Ok(style) = style { bar.with_style(style) } else { bar }
        });
        Self { bar, what, all, done: 0 }
    }

    /// Counts one more item. `spent` is the cost of the run so far.
    pub(super) fn step(&mut self, spent: f64, currency: &str) {
        self.done += 1;
        let cost = if spent > 0.0 { format!(", {spent:.4} {currency}") } else { String::new() };
        let Self { bar, what, all, done } = self;
        match bar {
            Some(bar) => {
                bar.set_position(*done as u64);
                bar.set_message(format!("{what}{cost}"));
            }
            None if *done == *all || *done * 10 / *all > (*done - 1) * 10 / *all => eprintln!("{done} of {all} {what}{cost}"),
            None => {}
        }
    }
}
