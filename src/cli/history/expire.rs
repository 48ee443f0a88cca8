//! `tertulia history expire`: deletes old events now.

use std::time::Duration;

use serde_json::json;

use super::forget::confirmed;
use super::{check_id, still_readable};
use crate::adapters::system::SystemClock;
use crate::cli::access;
use crate::cli::command_io::report;
use crate::cli::failure::Failure;
use crate::cli::time;
use crate::domain::id::GuildId;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::clock::Clock as _;
use crate::server::offline::{self, Age};
use crate::settings::Loaded;
use crate::settings::storage::MOST_DAYS;

/// The minimum age, as for `storage.retention_days`.
const DAY: Duration = Duration::from_secs(86_400);

/// The events to delete.
pub(super) struct Scope<'a> {
    /// Only events of this guild. `None` for all guilds.
    pub guild: Option<&'a str>,
    /// The minimum age as the user wrote it. `None` for the age in the settings.
    pub older_than: Option<&'a str>,
    /// Events of any age.
    pub everything: bool,
}

/// Asks for confirmation, and deletes.
pub(super) fn run(loaded: Loaded, scope: &Scope<'_>, yes: bool, json: bool) -> Result<(), Failure> {
    let Scope { guild, older_than, everything } = *scope;
    guild.map(|guild| check_id("--guild", guild)).transpose()?;
    let age = match older_than {
        _ if everything => Age::Any,
        Some(older_than) => Age::Over(span(older_than)?),
        None => Age::AsSet,
    };
    let data = loaded.settings.storage.path.clone();
    access::require_offline(&data, "expire")?;
    access::require_store(&loaded.settings.storage)?;
    if age == Age::AsSet && loaded.settings.storage.keeps_everything() {
        let detail = "the settings keep everything: set storage.retention_days or storage.guild_retention_days, or use --older-than or --everything";
        return Err(Failure::Usage(detail.into()));
    }
    let what = match older_than {
        _ if everything => ", of any age,".to_owned(),
        Some(span) => format!(" that is older than {span}"),
        None => " that is older than the retention period in the settings".to_owned(),
    };
    let guilds = guild.map_or_else(|| "all guilds".to_owned(), |guild| format!("the guild {guild}"));
    if !yes && !confirmed(&format!("Everything in {guilds}{what} will be deleted."))? {
        return Err(Failure::Failed("nothing was changed".into()));
    }
    let storage = loaded.settings.storage.clone();
    let until = storage.compacted_by(SystemClock.now()).map(rfc3339);
    let expired = offline::expire(loaded, guild.map(GuildId::from), age)??;
    let object = json!({ "events": expired.events, "channels": expired.channels, "failed": expired.failed });
    let readable = if expired.events == 0 { String::new() } else { format!("; {}", still_readable(&storage, until.as_deref())) };
    let sentence = format!(
        "deleted: {} of {}; events that are still needed stay{readable}",
        counted(expired.events, "event"),
        counted(expired.channels, "channel"),
    );
    report(json, &object, &sentence)?;
    if expired.failed > 0 {
        return Err(Failure::Store(format!(
            "{} could not be read (see above); `tertulia history verify` shows whether the store is damaged",
            counted(expired.failed, "channel")
        )));
    }
    Ok(())
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Parses an age of at least a day. A shorter one is probably a mistake: `m` means minutes, not months.
fn span(text: &str) -> Result<Duration, Failure> {
    let span = time::duration_of("--older-than", text)?;
    if (DAY..=DAY * MOST_DAYS).contains(&span) {
        return Ok(span);
    }
    Err(Failure::Usage(format!(
        "--older-than {text} is not from 1d to {MOST_DAYS}d, the range of storage.retention_days; to delete everything of a guild, of any age, \
         use --guild GUILD --everything"
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
    fn an_age_of_zero_is_rejected_with_a_hint_at_everything() {
        let error = span("0d").unwrap_err().to_string();

        assert!(error.starts_with("--older-than 0d is not from 1d to 36500d") && error.contains("--everything"), "{error}");
    }
}
