//! `tertulia history expire`: deletes what was kept for long enough, now.

use std::time::Duration;

use serde_json::json;

use super::forget::confirmed;
use super::{check_id, in_file_until};
use crate::adapters::system::SystemClock;
use crate::cli::asking::report;
use crate::cli::failure::Failure;
use crate::cli::usage;
use crate::cli::whom;
use crate::domain::id::GuildId;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock as _;
use crate::server::offline::{self, Age};
use crate::settings::Loaded;
use crate::settings::storage::MOST_DAYS;

/// The least age by which is deleted, as of `storage.retention_days`.
const DAY: Duration = Duration::from_secs(86_400);

/// What is to be deleted.
pub(super) struct Asked<'a> {
    /// In this guild alone.
    pub guild: Option<&'a str>,
    /// What is older than this; none: than the settings keep it.
    pub older_than: Option<&'a str>,
    /// However young it is.
    pub everything: bool,
}

/// Asks whether to go on, and deletes.
pub(super) fn run(loaded: Loaded, asked: &Asked<'_>, yes: bool, json: bool) -> Result<(), Failure> {
    let Asked { guild, older_than, everything } = *asked;
    guild.map(|guild| check_id("--guild", guild)).transpose()?;
    let age = match older_than {
        _ if everything => Age::Any,
        Some(older_than) => Age::Over(span(older_than)?),
        None => Age::AsSet,
    };
    let data = loaded.settings.storage.path.clone();
    whom::only_offline(&data, "expire")?;
    whom::there_is_one(&data)?;
    if age == Age::AsSet && loaded.settings.storage.keeps_everything() {
        let detail = "everything is kept: set storage.retention_days or storage.guild_retention_days, or say --older-than, or --everything";
        return Err(Failure::Usage(detail.into()));
    }
    let what = match older_than {
        _ if everything => ", however young it is,".to_owned(),
        Some(span) => format!(" that is older than {span}"),
        None => " that is older than the settings keep it".to_owned(),
    };
    let place = guild.map_or_else(|| "all guilds".to_owned(), |guild| format!("the guild {guild}"));
    if !yes && !confirmed(&format!("Everything in {place}{what} is deleted."))? {
        return Err(Failure::Failed("nothing was changed".into()));
    }
    let until = loaded.settings.storage.compacted_by(SystemClock.now()).map(rfc3339);
    let passed = offline::expire(loaded, guild.map(GuildId::from), age)??;
    let object = json!({ "events": passed.events, "channels": passed.channels, "failed": passed.failed });
    let sentence = format!(
        "deleted: {} of {}; what nobody has dealt with yet stays; the file on disk holds their words until {}, and backups made before for as long \
         as they are kept",
        counted(passed.events, "event"),
        counted(passed.channels, "channel"),
        in_file_until(until.as_deref())
    );
    report(json, &object, &sentence)?;
    if passed.failed > 0 {
        return Err(Failure::Store(format!(
            "{} could not be looked through (see above); `tertulia history verify` tells whether the store is damaged",
            counted(passed.failed, "channel")
        )));
    }
    Ok(())
}

fn counted(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// An age from a day on: nobody means to delete what was said a moment ago by an age, and `m` are minutes.
fn span(text: &str) -> Result<Duration, Failure> {
    let span = usage::span(text)
        .ok_or_else(|| Failure::Usage(format!("--older-than {text:?} is no span of time: write it like 24h, 90d or 4w")))?;
    if (DAY..=DAY * MOST_DAYS).contains(&span) {
        return Ok(span);
    }
    Err(Failure::Usage(format!(
        "--older-than {text} is not from 1d to {MOST_DAYS}d, as storage.retention_days has to be; all that a guild said, however young, is \
         deleted by --guild GUILD --everything"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_from_a_day_to_a_hundred_years() {
        let days = |text| span(text).ok().map(|span| span.as_secs() / 86_400);

        assert_eq!(["24h", "1d", "90d", "4w", "36500d"].map(days), [Some(1), Some(1), Some(90), Some(28), Some(36_500)]);
        assert_eq!(["0d", "0m", "90m", "23h", "36501d", "99999999999999w", "0", ""].map(days), [None; 8]);
    }

    #[test]
    fn an_age_of_nothing_is_refused_with_the_way_to_delete_everything() {
        let told = span("0d").unwrap_err().to_string();

        assert!(told.starts_with("--older-than 0d is not from 1d to 36500d") && told.contains("--everything"), "{told}");
    }
}
