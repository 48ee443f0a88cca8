//! Who is alive and what is under way, at rest, as the tree has it; and what was counted in a life, as the record has it.
//!
//! Of every life that began, also of one that ends in a crash, every series is compared that the record determines (`events.rs`): events,
//! messages, evaluations, trips of the loop guard, appends; decisions, evaluations without an answer and how many of both were timed; rounds, their
//! votes, missing votes, ties and wishes; changes of stage; judgements of repetition; statements that failed, were posted, were sent as parts. And those
//! that something else determines (`besides.rs`): groups and batches, messages set aside, failures of the store, calls that were begun, calls that panicked,
//! restarts of the writer; restarts of others are at least as many as the nemesis killed, timed turns as many as turns. What there is none of
//! (HTTP, Discord) is at zero.
//!
//! What was counted is what there was to count, less what nobody lived to tell (`witness.rs`): a count is excused if its writer, or its
//! channel, ended between the handing over and the commit of the very event, or the process with it.
//!
//! Not determined by the record: turns that ended otherwise than with a statement, and all times; tokens, costs, times and number of questions, which
//! whoever waited for them tells, also of those that no model was asked in the end; retries, timeouts, questions shed, questions without words and breakers; parts that were not posted; how long channels took
//! to restore; escalations, hangs and quarantines; what watchers missed. Retention does not run here.

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

/// Nothing is pending, and nobody sleeps yet: what was begun for something is gone with it, and who is counted is there.
pub(super) fn awake(life: &Life) {
    let stage = &life.props.stage;
    let measured = read(&life.metrics.exposition().unwrap_or_default());
    let count = |sort: &str| get(&measured, &format!("tertulia_actors{{actor_sort={sort}}}"));
    for sort in ["turn_taking_manager", "reply", "delivery"] {
        if count(sort) != 0 {
            stage.violate(format!("{} actors of sort {sort} are left though nothing is pending", count(sort)));
        }
    }
    let rooms = stage.plan.rooms.len() as u64;
    if count("channel") > rooms {
        stage.violate(format!("{} channels are counted in {rooms} rooms", count("channel")));
    }
    all_there(life, &measured);
}

/// A life is over: what it had measured by then is what is on record, but for what whoever died with it could not tell.
pub(super) fn ended(life: &Life) {
    let measured = read(&life.metrics.exposition().unwrap_or_default());
    on_record(life, &measured, Some(life.props.stage.now()));
}

/// What was measured, in words.
pub(super) async fn check(life: &Life) -> String {
    let exposition = life.metrics.exposition().unwrap_or_default();
    let measured = read(&exposition);
    alive(life, &measured);
    under_way(life, &measured).await;
    on_record(life, &measured, None);
    begun_anew(life, &measured);
    let stage = &life.props.stage;
    let own = stage.plan.guilds.iter().map(|guild| guild.word).chain(super::super::acts::PEOPLE);
    for word in own.filter(|word| exposition.contains(word)) {
        stage.violate(format!("what is measured tells {word:?}"));
    }
    exposition
}

/// By name and labels, as `name{a=b,…}` with the labels in order; zeros are left out.
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

/// What was measured agrees with the record; and with what else is known, where that says more.
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

/// Everybody who is not needed any more is gone, and those who are counted are there.
fn alive(life: &Life, measured: &Counted) {
    let stage = &life.props.stage;
    let count = |sort: &str| get(measured, &format!("tertulia_actors{{actor_sort={sort}}}"));
    for (sort, expected) in [
        ("scribe", 1),
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
        stage.violate("a guild is still kept away");
    }
}

fn all_there(life: &Life, measured: &Counted) {
    let all: u64 = measured.iter().filter(|(series, _)| series.starts_with("tertulia_actors{")).map(|(_, count)| count).sum();
    let there = descendants(&life.root.get_cell());
    if all != there {
        life.props.stage.violate(format!("{all} actors are counted, {there} are there"));
    }
}

fn descendants(actor: &ActorCell) -> u64 {
    children(actor).iter().map(|child| 1 + descendants(child)).sum()
}

/// Every question was answered, and every call is over.
async fn under_way(life: &Life, measured: &Counted) {
    let stage = &life.props.stage;
    for what in ["waiting", "running"] {
        let of = |series: &str| series.starts_with(&format!("tertulia_pool_{what}{{"));
        for (series, left) in measured.iter().filter(|(series, left)| of(series) && **left != 0) {
            stage.violate(format!("{left} are counted as {series} at rest"));
        }
    }
    for (role, model) in [("side", &life.props.side), ("main", &life.props.main)] {
        if model.under_way() != 0 {
            stage.violate(format!("{} calls of the {role} model are under way at rest", model.under_way()));
        }
    }
    if life.context.pool.report().await.is_none() {
        stage.violate("the pool is not there");
    }
}

/// Which ways back were taken in this life.
fn begun_anew(life: &Life, measured: &Counted) {
    for (sort, what) in [
        ("channel", "channel begun anew"),
        ("companion", "companion begun anew"),
        ("guild", "guild begun anew"),
        ("guilds", "guilds begun anew"),
        ("scribe", "writer begun anew"),
        ("side_models", "pool begun anew"),
        ("switchboard", "switchboard begun anew"),
        ("platforms", "connections begun anew"),
        ("shard", "connection begun anew"),
    ] {
        let times = get(measured, &format!("tertulia_actor_restarts_total{{actor_sort={sort}}}"));
        if times > 0 {
            life.props.stage.reach_times(what, times);
        }
    }
}
