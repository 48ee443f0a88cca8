//! The expected value of each series: at least what surviving actors counted, at most what there was to count.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::stage::Stage;
use super::{Counted, get};

/// The series that are compared one by one. A series without an expected value must be zero.
const COMPARED: &[&str] = &[
    "tertulia_closing_transitions_total",
    "tertulia_decision_duration_seconds_count",
    "tertulia_decisions_total",
    "tertulia_evaluations_total",
    "tertulia_evaluations_unanswered_total",
    "tertulia_journal_append_duration_seconds_count",
    "tertulia_journal_events_total",
    "tertulia_journal_group_size_count",
    "tertulia_journal_group_size_sum",
    "tertulia_loop_guard_trips_total",
    "tertulia_dead_letters_total",
    "tertulia_messages_total",
    "tertulia_platform_sends_total",
    "tertulia_pool_calls_total",
    "tertulia_pool_panics_total",
    "tertulia_repetition_judgements_total",
    "tertulia_repetition_score_ratio_count",
    "tertulia_round_duration_seconds_count",
    "tertulia_round_missing_votes_total",
    "tertulia_round_ties_total",
    "tertulia_round_votes_total",
    "tertulia_round_wishes_total",
    "tertulia_rounds_total",
    "tertulia_statements_failed_total",
    "tertulia_store_failures_total",
];

/// Turns that ended with a statement, with any trigger.
pub(super) const POSTED: &str = "tertulia_turns_total{turn_outcome=posted}";

/// A failed post leaves nothing on record.
const NOT_ON_RECORD: &str = "send_outcome=failed";

/// The least and the most, by series.
#[derive(Default)]
pub(super) struct Expected(BTreeMap<String, (u64, u64)>);

impl Expected {
    /// Expects this many counts. Unless that is certain, the actor that counts may have died first.
    pub(super) fn count(&mut self, series: impl Into<String>, times: u64, is_certain: bool) {
        let (least, most) = self.0.entry(series.into()).or_default();
        *most += times;
        if is_certain {
            *least += times;
        }
    }

    pub(super) fn compare(&self, stage: &Stage, measured: &Counted) {
        let is_compared = |series: &&String| {
            series.split_once('{').is_some_and(|(name, _)| COMPARED.contains(&name)) && !series.contains(NOT_ON_RECORD)
        };
        let all: BTreeSet<_> = measured.keys().filter(is_compared).chain(self.0.keys()).collect();
        for series in all {
            let (least, most) = self.0.get(series).copied().unwrap_or_default();
            let measured = get(measured, series);
            if !(least..=most).contains(&measured) {
                let life = stage.life();
                stage.violate(format!("{series} is {measured} in life {life}, by the record it is from {least} to {most}"));
            }
            stage.reach_times("counted exactly", u64::from(least == most));
            stage.reach_times("counted or not", most - least);
        }
    }
}
