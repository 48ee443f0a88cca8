//! `tertulia usage`: shows the usage of guilds and its cost.

mod received;
mod table;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::access::{self, Access};
use super::client::block_on;
use super::command_io::{print, print_json, run_with_settings};
use super::failure::Failure;
use super::time;
use crate::adapters::system::SystemClock;
use crate::domain::budget::DAY;
use crate::domain::moment::Moment;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::backend::usage::{ReceptionQuery, UsageQuery};
use crate::ports::backend::{Backend, Refused};
use crate::ports::clock::Clock as _;
use crate::server::offline;
use crate::settings::{Loaded, Sources};

const EXAMPLES: &str = "\
Examples:
  tertulia usage                                     the last 24 hours, one line per guild
  tertulia usage --last 30d --by model               the last 30 days, by model
  tertulia usage --guild home --by companion         one guild, by companion
  tertulia usage --by guest                          what each guest used today
  tertulia usage --from 2026-05-01 --to 2026-06-01   all of May, in UTC
  tertulia usage --last 7d --json                    everything as one JSON object
  tertulia usage --received                          how people received statements: the last 7 days and the 7 before
  tertulia usage --received=days --last 30d          the same for each of 30 days, side by side
  tertulia usage --safety --from 2026-01-01          who was told, and shown where to find help: each month of this year

TIME is a time such as 2026-05-01T12:00:00Z or 22:14 (in the last 24 hours), a day such as 2026-05-01 (its beginning in UTC), or how long \
ago it was: 2h30m, 24h, 7d, 4w.

A call costs the price that its model had in the settings at that time (models.side.input_price and output_price, and those of models.main). \
cached is the share of the input tokens that endpoints read from their caches; – if none of them reports it. \
The built-in rehearsal is free. The usage of calls without an answer is not known.

If a server runs on the data folder (storage.path), the command asks it, with the admin token from the settings. Otherwise it opens the store \
itself.

Exit codes:
  0  done
  1  failed
  2  wrong usage or wrong settings
  3  the store cannot be used";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Usage {
    /// Only this guild [default: all guilds]
    #[arg(long, value_name = "GUILD")]
    pub guild: Option<String>,

    /// Start of the period [default: a day before --to]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,

    /// End of the period, exclusive [default: now]
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,

    /// Length of the period that ends at --to: 90m, 24h, 7d, 4w
    #[arg(long, value_name = "SPAN", conflicts_with = "from")]
    pub last: Option<String>,

    /// What to show one line for; the JSON object has all of them
    #[arg(long, value_enum, default_value_t = By::Guild)]
    pub by: By,

    /// Show how many people were told that companions are AI, how often somebody was shown where to find help, and how many statements the moderation
    /// service refused: by guild and whole month
    /// [default: twelve months]
    #[arg(long, conflicts_with = "by")]
    pub safety: bool,

    /// Show how people received companions' statements: the second half of the period against the first, or each day (in UTC)
    /// [default period: 14 days, today included]
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "halves")]
    #[arg(conflicts_with_all = ["by", "safety", "from", "to"])]
    pub received: Option<Received>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Ask this server [default: the one that runs on the data folder, if one does]
    #[arg(long, value_name = "ADDRESS")]
    pub server: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// One line per guild
    Guild,
    /// One line per companion of each guild
    Companion,
    /// One line per guest of each guild, always of today (UTC)
    Guest,
    /// One line per model
    Model,
    /// One line for decisions (side), one for statements (main)
    Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Received {
    /// Two lines for each companion, trigger and model
    Halves,
    /// One line for each day, companion and model
    Days,
}

/// A query with its period.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Query {
    Usage(UsageQuery),
    Safety(UsageQuery),
    Receptions(ReceptionQuery),
}

/// Runs the command. Errors go to standard error.
pub fn run(sources: &Sources, options: &Usage) -> ExitCode {
    run_with_settings(sources, |loaded| show(loaded, options))
}

fn show(loaded: Loaded, options: &Usage) -> Result<(), Failure> {
    let query = query(options, SystemClock.now())?;
    let access = access::find_to_read(&loaded, options.server.as_deref())?;
    let bar = ProgressBar::new_spinner().with_message("counting");
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let usage = fetch(loaded, access, query);
    bar.finish_and_clear();
    let usage = usage?;
    if options.json {
        return print_json(&usage);
    }
    let table = match (options.safety, options.received) {
        (true, _) => table::safety(&read(usage)?),
        (false, Some(how)) => received::of(&read(usage)?, how),
        (false, None) => table::of(&read(usage)?, options.by),
    };
    print(&table.trim_end())
}

fn read<T: DeserializeOwned>(usage: Value) -> Result<T, Failure> {
    serde_json::from_value(usage)
        .map_err(|error| Failure::Failed(format!("the server has another version: use a tertulia of that version: {error}")))
}

fn fetch(loaded: Loaded, access: Access, query: Query) -> Result<Value, Failure> {
    match access {
        Access::Server(client) => {
            let moment = |at: Option<Moment>| at.map(rfc3339).unwrap_or_default();
            let (path, guild, period) = match query {
                Query::Usage(UsageQuery { guild, from, to }) => {
                    ("/api/usage", guild, [("from", moment(from)), ("to", moment(to))])
                }
                Query::Safety(UsageQuery { guild, from, to }) => {
                    ("/api/usage/safety", guild, [("from", moment(from)), ("to", moment(to))])
                }
                Query::Receptions(ReceptionQuery { guild, days }) => {
                    let days = days.map(|days| days.to_string()).unwrap_or_default();
                    ("/api/usage/receptions", guild, [("days", days), ("", String::new())])
                }
            };
            let guild = guild.as_ref().map_or("", |guild| guild.as_str());
            let parameters = [("guild", guild)].into_iter().chain(period.iter().map(|(name, value)| (*name, &**value)));
            let parameters: Vec<_> = parameters.filter(|(_, value)| !value.is_empty()).collect();
            block_on(client.object(client.request(Method::GET, path, &parameters)))
        }
        Access::Store => {
            access::require_store(&loaded.settings.storage)?;
            Ok(offline::ask(loaded, async |backend: &Backend| {
                Ok::<_, Refused>(match query {
                    Query::Usage(query) => json!(backend.records.usage(query).await?),
                    Query::Safety(query) => json!(backend.records.safety_figures(query).await?),
                    Query::Receptions(query) => json!(backend.records.receptions(query).await?),
                })
            })??)
        }
    }
}

fn query(options: &Usage, now: Moment) -> Result<Query, Failure> {
    let moment = |option: &str, text: &Option<String>| text.as_ref().map(|text| time::moment_of(option, text, now)).transpose();
    let (mut from, to) = (moment("--from", &options.from)?, moment("--to", &options.to)?);
    if let Some(last) = &options.last {
        from = Some(to.unwrap_or(now) - time::duration_of("--last", last)?);
    }
    let (begin, end) = (from.unwrap_or(Moment::ZERO), to.unwrap_or(now));
    if begin >= end {
        let (begin, end) = (rfc3339(begin), rfc3339(end));
        return Err(Failure::Usage(format!("the period begins at {begin}, which is not before its end at {end}")));
    }
    let guild = options.guild.as_deref().filter(|guild| !guild.is_empty());
    if options.guild.is_some() && guild.is_none() {
        return Err(Failure::Usage("--guild is empty: name a guild, or omit --guild for all guilds".into()));
    }
    let guild = guild.map(Into::into);
    if options.received.is_some() {
        let period = from.map(|from| now.since(from).div_duration_f64(DAY).ceil() as u32);
        let (days, most) = (period.unwrap_or(ReceptionQuery::USUAL_DAYS), ReceptionQuery::MAX_DAYS);
        if days > most {
            return Err(Failure::Usage(format!("--received reads at most {most} days: give a shorter --last")));
        }
        return Ok(Query::Receptions(ReceptionQuery { guild, days: Some(days) }));
    }
    let query = UsageQuery { guild, from, to };
    Ok(if options.safety { Query::Safety(query) } else { Query::Usage(query) })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn last_counts_back_from_the_end_of_the_period() {
        let now = Moment::from_micros(10 * 86_400_000_000);

        let day = |day: u64| Some(Moment::from_micros(day * 86_400_000_000));
        let usage = |from, to| Query::Usage(UsageQuery { guild: None, from, to });
        assert_eq!(read(&["--last", "7d"], now).unwrap(), usage(day(3), None));
        assert_eq!(read(&["--last", "1d", "--to", "3d"], now).unwrap(), usage(day(6), day(7)));
        assert_eq!(read(&[], now).unwrap(), usage(None, None));
    }

    #[test]
    fn receptions_are_asked_for_in_whole_days() {
        let now = Moment::from_micros(1_000 * 86_400_000_000);
        let days = |arguments: &[&str]| match read(arguments, now) {
            Ok(Query::Receptions(query)) => query.days,
            _ => None,
        };

        assert_eq!(days(&["--received"]), Some(14));
        assert_eq!(days(&["--received=days", "--last", "36h"]), Some(2));
        assert_eq!(days(&["--received", "--last", "92d"]), Some(92));
        assert!(matches!(read(&["--received", "--last", "93d"], now), Err(Failure::Usage(_))));
        for other in [["--by", "model"], ["--from", "7d"], ["--to", "1d"]] {
            assert!(Cli::try_parse_from([&["tertulia", "usage", "--received"], &other[..]].concat()).is_err(), "{other:?}");
        }
    }

    #[test]
    fn an_invalid_period_is_a_usage_error() {
        let now = Moment::from_micros(10 * 86_400_000_000);

        let refused = [&["--from", "noon"][..], &["--last", "week"], &["--from", "1h", "--to", "2h"], &["--guild", ""]]
            .map(|arguments| matches!(read(arguments, now), Err(Failure::Usage(_))));

        assert_eq!(refused, [true; 4]);
        assert!(Cli::try_parse_from(["tertulia", "usage", "--last", "7d", "--from", "8d"]).is_err());
    }

    fn read(arguments: &[&str], now: Moment) -> Result<Query, Failure> {
        let cli = Cli::parse_from([&["tertulia", "usage"], arguments].concat());
        let Command::Usage(options) = cli.command_or_default() else { panic!("the command is usage") };
        query(&options, now)
    }
}
