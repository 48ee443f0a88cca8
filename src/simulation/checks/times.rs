//! Deadlines, by the time at which things were really on disk: rounds close, questions end, and budgets hold.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::life::Props;
use super::super::stage::lock;
use super::super::store::Committed;
use crate::domain::event::Event;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::place::Place;

/// What the store and the scheduler may add to a deadline.
const SLACK: Duration = Duration::from_secs(12);

pub(super) fn check(props: &Props) {
    deadlines(props);
    budgets(props);
}

/// A round is over by its deadline, a question by that of the pool and a little; whoever is begun anew has the time anew.
fn deadlines(props: &Props) {
    let stage = &props.stage;
    let rules = &stage.plan.rules;
    let disturbed = stage.notes().disturbed.clone();
    let patience = Duration::from_secs_f64(rules.state_timeout);
    // The pool's own deadline, and the five seconds that a channel waits beyond it, or the round's.
    let question = patience.max(Duration::from_secs_f64(rules.side_timeout + 5.0));
    let is_late = |from: Duration, to: Duration, most: Duration| {
        let last = disturbed.iter().filter(|at| **at >= from && **at <= to).max().copied().unwrap_or(from);
        to.saturating_sub(last) > most + SLACK
    };
    let mut rounds = BTreeMap::<Place, (Seq, Duration)>::new();
    let mut questions = BTreeMap::<(Place, Ticket), Duration>::new();
    let committed = lock(&props.store.committed).clone();
    for Committed { at, place, recorded, .. } in &committed {
        match &recorded.event {
            Event::RoundOpened(opened) => drop(rounds.insert(place.clone(), (opened.message, *at))),
            Event::RoundClosed(closed) => {
                if let Some((opened, since)) = rounds.remove(place)
                    && opened == closed.message
                    && is_late(since, *at, patience)
                {
                    let held = (*at - since).as_secs_f64();
                    stage.violate(format!("{place}: the round about {opened} was held for {held:.1} s"));
                }
            }
            Event::Evaluated(evaluated) => drop(questions.insert((place.clone(), evaluated.ticket), *at)),
            Event::Decided(decided) => {
                if let Some(ticket) = decided.ticket
                    && let Some(since) = questions.remove(&(place.clone(), ticket))
                    && is_late(since, *at, question)
                {
                    stage.violate(format!("{place}: question {ticket} took {:.1} s", (*at - since).as_secs_f64()));
                }
            }
            Event::Unanswered { ticket, .. } => {
                if let Some(since) = questions.remove(&(place.clone(), *ticket))
                    && is_late(since, *at, question)
                {
                    stage.violate(format!("{place}: question {ticket} was given up after {:.1} s", (*at - since).as_secs_f64()));
                }
            }
            _ => {}
        }
    }
}

/// No more was asked and said within a while than is allowed. Where clocks were set, windows cannot be told from the record.
fn budgets(props: &Props) {
    let stage = &props.stage;
    if stage.plan.weather.has_jumps {
        return;
    }
    let rules = &stage.plan.rules;
    let (mut by_gate, mut by_guild) = (BTreeMap::<(Place, CompanionId), Vec<Moment>>::new(), BTreeMap::<_, Vec<Moment>>::new());
    let mut statements = BTreeMap::<_, u32>::new();
    for Committed { place, recorded, .. } in lock(&props.store.committed).iter() {
        match &recorded.event {
            Event::Evaluated(evaluated) if evaluated.trigger != Trigger::DirectAddress => {
                by_gate.entry((place.clone(), evaluated.companion.clone())).or_default().push(recorded.at);
                by_guild.entry(place.guild.clone()).or_default().push(recorded.at);
            }
            Event::Said { reply: Some(_), .. } => *statements.entry(place.guild.clone()).or_default() += 1,
            _ => {}
        }
    }
    for ((place, companion), times) in by_gate {
        let most = most_within_an_hour(times);
        if most > rules.evaluations_per_hour {
            stage.violate(format!("{place}: {companion} was asked {most} times within an hour"));
        }
    }
    for (guild, times) in by_guild {
        let most = most_within_an_hour(times);
        if most > rules.guild_evaluations_per_hour {
            stage.violate(format!("guild {guild}: {most} questions within an hour"));
        }
    }
    for (guild, said) in statements {
        if said > rules.guild_statements_per_day {
            stage.violate(format!("guild {guild}: {said} statements in a day"));
        }
    }
}

fn most_within_an_hour(mut times: Vec<Moment>) -> u32 {
    times.sort();
    let hour = Duration::from_secs(3_600);
    let within = |end: usize| times[..=end].iter().filter(|at| times[end].since(**at) < hour).count();
    (0..times.len()).map(within).max().unwrap_or_default() as u32
}
