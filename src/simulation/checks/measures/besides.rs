//! Series that no event determines, but other known data does: writes to the store, calls of models, kills and posts.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::super::book::CountedKind;
use super::super::super::ends::Watched;
use super::super::super::faults::FaultKind;
use super::super::super::life::Props;
use super::super::super::stage::lock;
use super::Counted;
use super::expected::Expected;
use super::witness::Witness;
use crate::domain::event::Event;
use crate::domain::model_role::ModelRole;
use crate::ports::backend::room::platform_in;
use crate::telemetry::instruments::platform_label;

/// The outcome of a question is on record within this time after it is known, unless the store is slow.
const SOON: Duration = Duration::from_secs(1);

/// The actors that the nemesis kills: sort, metric label, and the ancestors whose death ends them without a count.
const KILLED: [(&str, &str, &[&str]); 6] = [
    ("channel", "channel", &["guild", "guilds"]),
    ("companion", "companion", &["guild", "guilds"]),
    ("guild", "guild", &["guilds"]),
    ("guilds", "guilds", &[]),
    ("pool", "side_models", &[]),
    ("switchboard", "switchboard", &[]),
];

pub(super) fn expect(props: &Props, witness: &Witness, expected: &mut Expected) {
    let groups = props.store.book.groups(witness.life);
    expected.count("tertulia_journal_group_size_count{}", groups.groups, true);
    expected.count("tertulia_journal_group_size_sum{}", groups.batches, true);
    expected.count("tertulia_store_failures_total{}", groups.failed, false);
    for write in lock(&props.store.book.counted).iter().filter(|write| witness.is_of_write(write)) {
        let platform = platform_label(platform_in(&write.channel_key.channel));
        let outcome = match write.kind {
            CountedKind::Sent => "posted",
            CountedKind::Unconfirmed => "unconfirmed",
            CountedKind::DeadLetter => {
                let is_certain = witness.has_writer_counted(write.at, write.in_flight);
                expected.count("tertulia_dead_letters_total{}", 1, is_certain);
                continue;
            }
        };
        let is_certain = witness.has_channel_counted(&write.channel_key, write.at, write.in_flight);
        expected.count(format!("tertulia_platform_sends_total{{platform={platform},send_outcome={outcome}}}"), 1, is_certain);
    }
    let notes = props.stage.notes();
    for ((_, role), times) in notes.asked.iter().filter(|((life, _), _)| *life == witness.life) {
        expected.count(format!("tertulia_pool_calls_total{{model_role={role}}}"), *times, true);
    }
    let committed = lock(&props.store.committed);
    let is_timeout = |event: &Event, role: &str| match event {
        Event::Unanswered { error, .. } => role == ModelRole::Side.as_str() && **error == *"timeout",
        Event::ReplyFailed { error, .. } => role == ModelRole::Main.as_str() && **error == *"timeout",
        _ => false,
    };
    // A call that was given up just when it would panic may have ended before.
    let is_given_up = |at: Duration, role: &str| {
        let mut soon = committed.iter().filter(|entry| witness.is_of(entry) && (at..=at + SOON).contains(&entry.at));
        soon.any(|entry| is_timeout(&entry.recorded.event, role))
    };
    let is_pool_killed = |at| notes.faults.iter().any(|fault| fault.at == at && matches!(fault.what, FaultKind::Killed("pool")));
    for (at, _, role) in notes.panicked.iter().filter(|(_, life, _)| *life == witness.life) {
        let is_certain = witness.was_alive(*at) && !is_pool_killed(*at) && !is_given_up(*at, role);
        expected.count(format!("tertulia_pool_panics_total{{model_role={role}}}"), 1, is_certain);
    }
}

/// Checks the series that have only bounds.
pub(super) fn check(props: &Props, witness: &Witness, measured: &Counted) {
    let stage = &props.stage;
    let is_absent = |series: &str| series.starts_with("tertulia_http_") || series.starts_with("tertulia_discord_");
    for (series, count) in measured.iter().filter(|(series, _)| is_absent(series)) {
        stage.violate(format!("{series} is {count}, and that part does not exist here"));
    }
    let turns = sum(measured, "tertulia_turns_total", "");
    for name in ["tertulia_turn_duration_seconds_count", "tertulia_turn_overhead_seconds_count"] {
        let timed = sum(measured, name, "");
        if turns != timed {
            stage.violate(format!("{turns} turns are counted, {timed} in {name}"));
        }
    }
    let restarts = |sort: &str| {
        let label = format!("actor_sort={sort}");
        let [restarts, escalations] = ["tertulia_actor_restarts_total", "tertulia_supervisor_escalations_total"];
        sum(measured, restarts, &label) + sum(measured, escalations, &label)
    };
    let ends: Vec<_> = witness.ends_of(&Watched::Writer).collect();
    let least = ends.iter().filter(|at| witness.was_alive(**at)).count() as u64;
    if !(least..=ends.len() as u64).contains(&restarts("writer")) {
        stage.violate(format!("the writer ended {} times and restarted {}", ends.len(), restarts("writer")));
    }
    let from = stage.notes().lives.last().copied().unwrap_or_default();
    let faults = stage.notes().faults.clone();
    let killed_at = |sort: &str| -> BTreeSet<_> {
        let of_it = faults.iter().filter(|fault| matches!(fault.what, FaultKind::Killed(killed) if killed == sort));
        of_it.map(|fault| fault.at).filter(|at| *at >= from && witness.was_alive(*at)).collect()
    };
    for (sort, label, above) in KILLED {
        let taken_along: BTreeSet<_> = above.iter().flat_map(|above| killed_at(above)).collect();
        let killed = killed_at(sort).difference(&taken_along).count() as u64;
        if restarts(label) < killed {
            stage.violate(format!("a {sort} was killed {killed} times, {} restarts are counted", restarts(label)));
        }
    }
}

/// The sum of all series with this name and label.
pub(super) fn sum(measured: &Counted, name: &str, label: &str) -> u64 {
    let is_one = |series: &str| {
        let (found, labels) = series.split_once('{').unwrap_or((series, ""));
        found == name && (label.is_empty() || labels.trim_end_matches('}').split(',').any(|found| found == label))
    };
    measured.iter().filter(|(series, _)| is_one(series)).map(|(_, count)| count).sum()
}
