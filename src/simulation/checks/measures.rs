//! Who is alive, what is under way, and what was counted, at rest: as the tree and the record have it.

use std::collections::BTreeMap;

use ractor::ActorCell;

use super::super::life::Life;
use super::super::nemesis::children;
use super::super::stage::lock;
use super::super::store::Committed;
use crate::domain::decision::Decision;
use crate::domain::event::{Decided, Event};
use crate::domain::message::Role;
use crate::telemetry::instruments::platform_label;

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

/// What was measured, in words.
pub(super) async fn check(life: &Life) -> String {
    let exposition = life.metrics.exposition().unwrap_or_default();
    let measured = read(&exposition);
    alive(life, &measured);
    under_way(life, &measured).await;
    counted(life, &measured);
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
    if life.kit.pool.report().await.is_none() {
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
        ("scribe", "scribe begun anew"),
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

/// What the scribe counts is what was committed; what channels tell is told once, unless they died before they could.
fn counted(life: &Life, measured: &Counted) {
    let stage = &life.props.stage;
    let this_life = stage.life();
    let killed: Vec<_> = stage.notes().killed.iter().filter(|(life, _)| *life == this_life).map(|(_, sort)| *sort).collect();
    let is_exact_for_scribe = !killed.contains(&"scribe");
    let is_poisoned = stage.plan.guilds.iter().any(|guild| stage.plan.is_poisoned(&guild.id));
    let is_exact = killed.is_empty() && this_life == 1 && !is_poisoned;
    let (mut by_scribe, mut by_channel) = (Counted::new(), Counted::new());
    let committed = lock(&life.props.store.committed);
    if !is_exact {
        // A wish to speak is told when it is known who won the floor, which may be in another life.
        for decided in committed.iter().filter_map(|entry| wish(&entry.recorded.event)) {
            *by_channel.entry(series_of(decided)).or_default() += 1;
        }
    }
    for Committed { place, recorded, .. } in committed.iter().filter(|entry| entry.life == this_life && entry.is_answered) {
        *by_scribe.entry("tertulia_journal_events_total{}".to_owned()).or_default() += 1;
        let mut told = |series: String, times: u64| *by_channel.entry(series).or_default() += times;
        match &recorded.event {
            Event::Said { message, .. } => {
                let role = match message.from.role {
                    Role::Person => "user",
                    Role::Companion => "companion",
                    Role::Bot => "bot",
                };
                let platform = platform_label(place.channel.as_str());
                *by_scribe.entry(format!("tertulia_messages_total{{message_role={role},platform={platform}}}")).or_default() += 1;
            }
            Event::Evaluated(evaluated) => {
                *by_scribe.entry(format!("tertulia_evaluations_total{{decision_trigger={}}}", evaluated.trigger)).or_default() +=
                    1;
            }
            Event::Decided(decided) if is_exact || decided.decision == Decision::No => {
                told(series_of(decided), decided.companions.len() as u64);
            }
            Event::Unanswered { trigger, error, .. } => {
                told(format!("tertulia_evaluations_unanswered_total{{decision_trigger={trigger},error_type={error}}}"), 1);
            }
            Event::ReplyFailed { error, .. } => told(format!("tertulia_statements_failed_total{{error_type={error}}}"), 1),
            Event::RoundClosed(closed) => {
                let outcome = if closed.selected.is_some() { "selected" } else { "nobody" };
                told(format!("tertulia_rounds_total{{round_outcome={outcome}}}"), 1);
            }
            Event::StageChanged { to, cause, .. } => {
                told(format!("tertulia_closing_transitions_total{{closing_cause={cause},closing_to={to}}}"), 1);
            }
            _ => {}
        }
    }
    compare(life, measured, &by_scribe, is_exact_for_scribe);
    compare(life, measured, &by_channel, is_exact);
}

const fn wish(event: &Event) -> Option<&Decided> {
    match event {
        Event::Decided(decided) if matches!(decided.decision, Decision::Yes) => Some(decided),
        _ => None,
    }
}

fn series_of(decided: &Decided) -> String {
    let Decided { decision, reason, trigger, .. } = decided;
    format!("tertulia_decisions_total{{decision={decision},decision_reason={reason},decision_trigger={trigger}}}")
}

fn compare(life: &Life, measured: &Counted, expected: &Counted, is_exact: bool) {
    let names: std::collections::BTreeSet<_> =
        expected.keys().filter_map(|series| series.split_once('{')).map(|(name, _)| name).collect();
    let known = measured.keys().filter(|series| series.split_once('{').is_some_and(|(name, _)| names.contains(name)));
    let all: std::collections::BTreeSet<_> = known.chain(expected.keys()).collect();
    for series in all {
        let (measured, expected) = (get(measured, series), get(expected, series));
        let is_wrong = if is_exact { measured != expected } else { measured > expected };
        if is_wrong {
            life.props.stage.violate(format!("{series} is {measured}, on record are {expected}"));
        }
    }
}
