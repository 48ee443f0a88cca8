//! Formats how people received statements as a table for people.

use std::collections::BTreeMap;

use super::Received;
use super::table::{Row, align, grouped, plain};
use crate::domain::budget::DAY;
use crate::domain::moment::Moment;
use crate::domain::reception::Reception;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::backend::usage::{GuildReceptions, ReceptionBy, Receptions};

/// The columns, good signs first.
const COLUMNS: [(Reception, &str); Reception::ALL.len()] = [
    (Reception::Replied, "replied"),
    (Reception::Answered, "answered"),
    (Reception::Reacted, "reacted"),
    (Reception::TalkedPast, "talked past"),
    (Reception::Stopped, "stopped"),
    (Reception::Deleted, "deleted"),
    (Reception::Paused, "paused"),
    (Reception::NothingSeen, "nothing seen"),
];

const NOTE: &str = "\
nothing seen: there is no evidence, which is no bad sign. Statements count once people have had time to react.
The figures are estimates: compare them with each other.";

/// The table and the notes.
pub(super) fn of(receptions: &Receptions, how: Received) -> String {
    let mut out = format!("from {} to {} (days in UTC)\n\n", receptions.from, receptions.to);
    let mut sums: BTreeMap<Row, BTreeMap<Reception, u64>> = BTreeMap::new();
    for guild in &receptions.guilds {
        for by in &guild.by {
            let sum = sums.entry(names(receptions, guild, by, how)).or_default();
            by.received.iter().for_each(|(reception, count)| *sum.entry(*reception).or_default() += count);
        }
    }
    if sums.is_empty() {
        out.push_str("No statement is on record whose reception is known.\n");
    } else {
        let titles: &[&str] = match how {
            Received::Halves => &["guild", "companion", "because of", "model", "days"],
            Received::Days => &["day", "guild", "companion", "model"],
        };
        let head = titles.iter().chain(&["statements"]).copied().chain(COLUMNS.map(|(_, title)| title));
        let mut rows = vec![head.map(str::to_owned).collect::<Row>()];
        rows.extend(sums.into_iter().map(|(names, received)| row(names, &received)));
        align(&rows, titles.len()..rows[0].len(), &mut out);
        out = format!("{out}\n{NOTE}\n");
    }
    if receptions.guilds.iter().any(|guild| guild.incomplete) {
        out.push_str("\nSome statements are missing: a room has more events than one request reads, or cannot be read. Ask for fewer days.\n");
    }
    out
}

fn names(receptions: &Receptions, guild: &GuildReceptions, by: &ReceptionBy, how: Received) -> Row {
    let (guild, companion) = (plain(guild.guild.as_str()), plain(by.companion.as_str()));
    let model = by.model.as_deref().map_or_else(|| "(unknown)".to_owned(), plain);
    match how {
        Received::Days => vec![by.day.to_string(), guild, companion, model],
        Received::Halves => vec![guild, companion, by.trigger.to_string(), model, half(receptions, &by.day)],
    }
}

/// The half of the period that contains this day.
fn half(receptions: &Receptions, day: &str) -> String {
    let (from, to) = (receptions.from.0, receptions.to.0);
    let days = to.since(from).div_duration_f64(DAY).ceil() as u32;
    let middle = from + DAY * (days - days / 2);
    let of = |moment: Moment| rfc3339(moment)[..10].to_owned();
    match *day < *of(middle) {
        true => format!("{} to {}", of(from), of(middle - DAY)),
        false => format!("{} to {}", of(middle), of(to)),
    }
}

fn row(names: Row, received: &BTreeMap<Reception, u64>) -> Row {
    let all: u64 = received.values().sum();
    let share = |count: &u64| format!("{:.0}%", *count as f64 / all as f64 * 100.0);
    let shares = COLUMNS.iter().map(|(reception, _)| received.get(reception).map_or_else(String::new, share));
    names.into_iter().chain([grouped(all)]).chain(shares).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::trigger::Trigger;
    use crate::ports::backend::stamp::from_rfc3339;

    #[test]
    fn halves_are_compared_and_days_are_side_by_side() {
        let receptions = sample(false);

        let halves = of(&receptions, Received::Halves);
        let days = of(&receptions, Received::Days);

        let expected = "\
from 2026-11-17T00:00:00.000Z to 2026-11-30T09:00:00.000Z (days in UTC)

guild  companion  because of      model      days                      statements  replied  answered  reacted  talked past  stopped  deleted  paused  nothing seen
home   aria       direct_address  a          2026-11-17 to 2026-11-23           4                75%                                                           25%
home   aria       direct_address  b          2026-11-24 to 2026-11-30           3                                      67%      33%
home   aria       lull            (unknown)  2026-11-24 to 2026-11-30           1     100%
";
        assert!(halves.starts_with(expected), "{halves}");
        let lines: Vec<_> = days.lines().skip(2).take(4).map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines[1], ["2026-11-23", "home", "aria", "a", "4", "75%", "25%"]);
        assert_eq!(lines[2], ["2026-11-24", "home", "aria", "(unknown)", "1", "100%"]);
        assert_eq!(lines[3], ["2026-11-24", "home", "aria", "b", "3", "67%", "33%"]);
    }

    #[test]
    fn missing_statements_are_reported() {
        let mut none = sample(true);

        assert!(of(&none, Received::Days).contains("Some statements are missing"));
        assert!(!of(&sample(false), Received::Days).contains("Some statements are missing"));
        none.guilds.clear();
        assert!(of(&none, Received::Halves).contains("No statement is on record"));
    }

    fn sample(incomplete: bool) -> Receptions {
        let at = |text: &str| from_rfc3339(text).unwrap().into();
        let by = |day: &str, trigger, model: Option<&str>, received: &[(Reception, u64)]| ReceptionBy {
            day: day.into(),
            companion: "aria".into(),
            trigger,
            model: model.map(Into::into),
            received: received.iter().copied().collect(),
        };
        let by = vec![
            by("2026-11-23", Trigger::DirectAddress, Some("a"), &[(Reception::Answered, 3), (Reception::NothingSeen, 1)]),
            by("2026-11-24", Trigger::DirectAddress, Some("b"), &[(Reception::TalkedPast, 2), (Reception::Stopped, 1)]),
            by("2026-11-24", Trigger::Lull, None, &[(Reception::Replied, 1)]),
        ];
        let guilds = vec![GuildReceptions { guild: "home".into(), by, incomplete }];
        Receptions { from: at("2026-11-17T00:00:00Z"), to: at("2026-11-30T09:00:00Z"), guilds }
    }
}
