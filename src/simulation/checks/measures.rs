//! Compares the gauges at rest with the actor tree, and the counters of a life with the record.
//!
//! # What is compared
//!
//! Every life is compared, including one that ends in a crash. The record determines these series exactly (`events.rs`):
//!
//! * events, messages, evaluations, trips of the loop guard, appends;
//! * decisions, evaluations without an answer, and how many of both were timed;
//! * rounds, their votes, missing votes, ties and wishes;
//! * stage changes, and judgements of repetition;
//! * statements that failed, were posted, and were sent as parts.
//!
//! Other data determines these (`besides.rs`):
//!
//! * groups and batches, dead letters, failures of the store;
//! * calls that were started, calls that panicked, restarts of the writer;
//! * restarts of other actors, which are at least as many as the nemesis killed;
//! * timed turns, which are as many as turns.
//!
//! Series of parts that do not exist here (HTTP, Discord) are zero.
//!
//! A counter may be lower than the record says if the actor that counts died first (`witness.rs`). This is excused if its writer, its channel
//! or the process ended between the handing over and the commit of that event.
//!
//! # What is not compared
//!
//! The record does not determine these:
//!
//! * turns that ended without a statement, and all times;
//! * tokens, costs, times and the number of questions. The caller that waited reports them, even if no model was asked in the end;
//! * retries, timeouts, shed questions, questions without words, and circuit breakers;
//! * parts that were not posted, how long channels took to restore, what watchers missed;
//! * escalations, hangs and quarantines.
//!
//! Retention does not run here.

mod besides;
mod events;
mod expected;
mod witness;

use std::collections::BTreeMap;
use std::time::Duration;

use ractor::ActorCell;

use super::super::life::Life;
use super::super::nemesis::children;
use expected::{Expected, POSTED};
use witness::Witness;

type Counted = BTreeMap<String, u64>;

/// Nothing is pending, and no channel sleeps yet. Temporary actors have ended, and every counted actor exists.
pub(super) fn awake(life: &Life) {
    let stage = &life.props.stage;
    let measured = read(&life.metrics.exposition().unwrap_or_default());
    let count = |sort: &str| get(&measured, &format!("tertulia_actors{{actor_sort={sort}}}"));
    for sort in ["turn_taking_manager", "reply", "delivery"] {
        if count(sort) != 0 {
            stage.violate(format!("{} actors of sort {sort} are left although nothing is pending", count(sort)));
        }
    }
    let rooms = stage.plan.rooms.len() as u64;
    if count("channel") > rooms {
        stage.violate(format!("{} channels are counted in {rooms} rooms", count("channel")));
    }
    all_there(life, &measured);
}

/// A life has ended: its metrics must agree with the record, except for counts that died with it.
pub(super) fn ended(life: &Life) {
    let measured = read(&life.metrics.exposition().unwrap_or_default());
    on_record(life, &measured, Some(life.props.stage.now()));
}

/// Checks the metrics of a life at rest, and returns them as text.
pub(super) async fn check(life: &Life) -> String {
    let exposition = life.metrics.exposition().unwrap_or_default();
    let measured = read(&exposition);
    alive(life, &measured);
    calls_in_flight(life, &measured).await;
    on_record(life, &measured, None);
    count_restarts(life, &measured);
    let stage = &life.props.stage;
    let own = stage.plan.guilds.iter().map(|guild| guild.word).chain(super::super::acts::PEOPLE);
    for word in own.filter(|word| exposition.contains(word)) {
        stage.violate(format!("the metrics contain {word:?}"));
    }
    exposition
}

/// By name and labels, as `name{a=b,…}` with the labels in order. Zeros are left out.
fn read(exposition: &str) -> Counted {
    let mut measured = Counted::new();
    for line in exposition.lines().filter(|line| !line.starts_with('#')) {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        let value = value.parse::<f64>().unwrap_or_default() as u64;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let mut labels: Vec<_> = labels
            .trim_end_matches('}')
            .split(',')
            .filter(|label| !label.starts_with("otel_scope") && !label.is_empty())
            .collect();
        labels.sort_unstable();
        if value > 0 {
            measured.insert(format!("{name}{{{}}}", labels.join(",")).replace('"', ""), value);
        }
    }
    measured
}

/// The metrics agree with the record, and with other known data.
fn on_record(life: &Life, measured: &Counted, over: Option<Duration>) {
    let witness = Witness::of(&life.props, over);
    let mut expected = Expected::default();
    events::expect(&life.props, &witness, &mut expected);
    besides::expect(&life.props, &witness, &mut expected);
    let posted = besides::sum(measured, "tertulia_turns_total", "turn_outcome=posted");
    let summed_up = measured.clone().into_iter().chain([(POSTED.to_owned(), posted)]).collect();
    expected.compare(&life.props.stage, &summed_up);
    besides::check(&life.props, &witness, measured);
}

fn get(measured: &Counted, series: &str) -> u64 {
    measured.get(series).copied().unwrap_or_default()
}

/// Every temporary actor has ended, and every counted actor exists.
fn alive(life: &Life, measured: &Counted) {
    let stage = &life.props.stage;
    let count = |sort: &str| get(measured, &format!("tertulia_actors{{actor_sort={sort}}}"));
    for (sort, expected) in [
        ("writer", 1),
        ("side_models", 1),
        ("switchboard", 1),
        ("guilds", 1),
        ("platforms", 1),
        ("shard", u64::from(life.props.wire.shards().get())),
        ("channel", 0),
        ("turn_taking_manager", 0),
        ("reply", 0),
        ("delivery", 0),
    ] {
        if count(sort) != expected {
            stage.violate(format!("{} actors of sort {sort} are counted at rest, not {expected}", count(sort)));
        }
    }
    all_there(life, measured);
    if get(measured, "tertulia_guilds_quarantined{}") != 0 {
        stage.violate("a guild is still quarantined");
    }
}

fn all_there(life: &Life, measured: &Counted) {
    let all: u64 = measured.iter().filter(|(series, _)| series.starts_with("tertulia_actors{")).map(|(_, count)| count).sum();
    let there = descendants(&life.root.get_cell());
    if all != there {
        life.props.stage.violate(format!("{all} actors are counted, {there} exist"));
    }
}

fn descendants(actor: &ActorCell) -> u64 {
    children(actor).iter().map(|child| 1 + descendants(child)).sum()
}

/// Every question was answered, and every call has ended.
async fn calls_in_flight(life: &Life, measured: &Counted) {
    let stage = &life.props.stage;
    for what in ["waiting", "running"] {
        let of = |series: &str| series.starts_with(&format!("tertulia_pool_{what}{{"));
        for (series, left) in measured.iter().filter(|(series, left)| of(series) && **left != 0) {
            stage.violate(format!("{left} are counted as {series} at rest"));
        }
    }
    for (role, model) in [("side", &life.props.side), ("main", &life.props.main)] {
        if model.calls_in_flight() != 0 {
            stage.violate(format!("{} calls of the {role} model are in flight at rest", model.calls_in_flight()));
        }
    }
    if life.context.pool.report().await.is_none() {
        stage.violate("the pool is missing");
    }
}

/// Counts the restarts of this life.
fn count_restarts(life: &Life, measured: &Counted) {
    for (sort, what) in [
        ("channel", "channel restarted"),
        ("companion", "companion restarted"),
        ("guild", "guild restarted"),
        ("guilds", "guilds restarted"),
        ("writer", "writer restarted"),
        ("side_models", "pool restarted"),
        ("switchboard", "switchboard restarted"),
        ("platforms", "connections restarted"),
        ("shard", "connection restarted"),
    ] {
        let times = get(measured, &format!("tertulia_actor_restarts_total{{actor_sort={sort}}}"));
        if times > 0 {
            life.props.stage.reach_times(what, times);
        }
    }
}
