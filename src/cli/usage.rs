//! `tertulia usage`: what guilds used, and what it cost.

mod table;
mod time;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use reqwest::Method;
use serde_json::{Value, json};

use super::asking::{ask_with, print, print_json};
use super::client::block_on;
use super::failure::Failure;
use super::whom::{self, Whom};
use crate::adapters::system::SystemClock;
use crate::domain::moment::Moment;
use crate::ports::backend::Backend;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::backend::usage::UsageQuery;
use crate::ports::clock::Clock as _;
use crate::server::offline;
use crate::settings::{Loaded, Sources};

const EXAMPLES: &str = "\
Examples:
  tertulia usage                                     the last 24 hours, a line for each guild
  tertulia usage --last 30d --by model               the last 30 days, by model
  tertulia usage --guild home --by companion         one guild, by companion
  tertulia usage --from 2026-05-01 --to 2026-06-01   all of May, in UTC
  tertulia usage --last 7d --json                    all of it as one JSON object

TIME is a moment such as 2026-05-01T12:00:00Z, a day such as 2026-05-01 (its beginning in UTC), or how long ago: 90m, 24h, 7d, 4w.

A call costs what was set as its model's price when it was made (models.side.input_price, output_price, and those of models.main). \
The built-in rehearsal costs nothing. What calls used that got no answer is not known.

A server that runs on the data folder (storage.path) is asked, with the admin token of the settings; without one the store is opened here.

Exit codes:
  0  done
  1  failed
  2  wrong usage or wrong settings
  3  the store cannot be used";

/// What is asked about what was used.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Usage {
    /// Of this guild alone [default: all of them]
    #[arg(long, value_name = "GUILD")]
    pub guild: Option<String>,

    /// From this moment on [default: a day before --to]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,

    /// Until before this moment [default: now]
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,

    /// So long until --to: 90m, 24h, 7d, 4w
    #[arg(long, value_name = "SPAN", conflicts_with = "from")]
    pub last: Option<String>,

    /// A line for each of these; JSON holds all of them
    #[arg(long, value_enum, default_value_t = By::Guild)]
    pub by: By,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Ask this server [default: the one that runs on the data folder, if one does]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
}

/// By what to add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A line for each guild
    Guild,
    /// A line for each companion of each guild
    Companion,
    /// A line for each model
    Model,
    /// One line for deciding (side), one for speaking (main)
    Role,
}

/// Does what is asked; errors go to standard error.
pub fn run(sources: &Sources, asked: &Usage) -> ExitCode {
    ask_with(sources, |loaded| tell(loaded, asked))
}

fn tell(loaded: Loaded, asked: &Usage) -> Result<(), Failure> {
    let query = query(asked, SystemClock.now())?;
    let whom = whom::find(&loaded, asked.server.as_deref())?;
    let bar = ProgressBar::new_spinner().with_message("counting");
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let found = find(loaded, whom, query);
    bar.finish_and_clear();
    let found = found?;
    if asked.json {
        return print_json(&found);
    }
    let usage = serde_json::from_value(found)
        .map_err(|error| Failure::Failed(format!("the server is of another version, ask it with its own tertulia: {error}")))?;
    print(&table::of(&usage, asked.by).trim_end())
}

fn find(loaded: Loaded, whom: Whom, query: UsageQuery) -> Result<Value, Failure> {
    match whom {
        Whom::Server(client) => {
            let moment = |at: Option<Moment>| at.map(rfc3339).unwrap_or_default();
            let (from, to) = (moment(query.from), moment(query.to));
            let guild = query.guild.as_ref().map_or("", |guild| guild.as_str());
            let given = [("guild", guild), ("from", &from), ("to", &to)];
            let given: Vec<_> = given.into_iter().filter(|(_, value)| !value.is_empty()).collect();
            block_on(client.object(client.request(Method::GET, "/api/usage", &given)))
        }
        Whom::Store => {
            whom::there_is_one(&loaded.settings.storage.path)?;
            Ok(json!(offline::ask(loaded, async |backend: &dyn Backend| backend.usage(query).await)??))
        }
    }
}

fn query(asked: &Usage, now: Moment) -> Result<UsageQuery, Failure> {
    let moment = |option: &str, text: &Option<String>| {
        text.as_ref().map(|text| time::moment(text, now).ok_or_else(|| time::unreadable(option, text))).transpose()
    };
    let (mut from, to) = (moment("--from", &asked.from)?, moment("--to", &asked.to)?);
    if let Some(last) = &asked.last {
        let span = time::span(last)
            .ok_or_else(|| Failure::Usage(format!("--last {last:?} is no span of time: write it like 90m, 24h, 7d or 4w")))?;
        from = Some(to.unwrap_or(now) - span);
    }
    let (begin, end) = (from.unwrap_or(Moment::ZERO), to.unwrap_or(now));
    if begin >= end {
        let (begin, end) = (rfc3339(begin), rfc3339(end));
        return Err(Failure::Usage(format!("the span of time begins at {begin}, which is not before its end at {end}")));
    }
    let guild = asked.guild.as_deref().filter(|guild| !guild.is_empty());
    if asked.guild.is_some() && guild.is_none() {
        return Err(Failure::Usage("--guild is empty: name a guild, or leave it out for all of them".into()));
    }
    Ok(UsageQuery { guild: guild.map(Into::into), from, to })
}

/// A span of time, as people write it.
pub(super) fn span(text: &str) -> Option<std::time::Duration> {
    time::span(text)
}

/// For what is hostile: a moment, and how long ago.
#[cfg(test)]
pub(super) fn read_times(text: &str, now: Moment) -> (Option<Moment>, Option<std::time::Duration>) {
    (time::moment(text, now), time::span(text))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn the_last_days_are_counted_back_from_the_end() {
        let now = Moment::from_micros(10 * 86_400_000_000);

        let last = read(&["--last", "7d"], now).unwrap();
        let until = read(&["--last", "1d", "--to", "3d"], now).unwrap();
        let nothing = read(&[], now).unwrap();

        let day = |day: u64| Some(Moment::from_micros(day * 86_400_000_000));
        assert_eq!((last.from, last.to), (day(3), None));
        assert_eq!((until.from, until.to), (day(6), day(7)));
        assert_eq!(nothing, UsageQuery::default());
    }

    #[test]
    fn a_span_that_is_none_is_refused_with_the_way_out() {
        let now = Moment::from_micros(10 * 86_400_000_000);

        let refused = [&["--from", "noon"][..], &["--last", "week"], &["--from", "1h", "--to", "2h"], &["--guild", ""]]
            .map(|given| matches!(read(given, now), Err(Failure::Usage(_))));

        assert_eq!(refused, [true; 4]);
        assert!(Cli::try_parse_from(["tertulia", "usage", "--last", "7d", "--from", "8d"]).is_err());
    }

    fn read(given: &[&str], now: Moment) -> Result<UsageQuery, Failure> {
        let cli = Cli::parse_from([&["tertulia", "usage"], given].concat());
        let Command::Usage(asked) = cli.asked() else { panic!("usage is asked for") };
        query(&asked, now)
    }
}
