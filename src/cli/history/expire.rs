//! `tertulia history expire`: deletes what was kept for long enough, now.

use std::time::Duration;

use serde_json::json;

use super::check_id;
use super::forget::confirmed;
use crate::cli::asking::report;
use crate::cli::failure::Failure;
use crate::cli::usage;
use crate::cli::whom;
use crate::domain::id::GuildId;
use crate::server::offline;
use crate::settings::Loaded;

/// Asks whether to go on, and deletes.
pub(super) fn run(loaded: Loaded, guild: Option<&str>, older_than: Option<&str>, yes: bool, json: bool) -> Result<(), Failure> {
    guild.map(|guild| check_id("--guild", guild)).transpose()?;
    let span = older_than.map(span).transpose()?;
    let data = loaded.settings.storage.path.clone();
    whom::only_offline(&data, "expire")?;
    whom::there_is_one(&data)?;
    if span.is_none() && loaded.settings.storage.keeps_everything() {
        let detail = "everything is kept: set storage.retention_days or storage.guild_retention_days, or say --older-than";
        return Err(Failure::Usage(detail.into()));
    }
    let age = older_than.map_or_else(|| "than the settings keep it".to_owned(), |span| format!("than {span}"));
    let place = guild.map_or_else(|| "all guilds".to_owned(), |guild| format!("the guild {guild}"));
    if !yes && !confirmed(&format!("Everything in {place} that is older {age} is deleted."))? {
        return Err(Failure::Failed("nothing was changed".into()));
    }
    let passed = offline::expire(loaded, guild.map(GuildId::from), span)??;
    let object = json!({ "events": passed.events, "channels": passed.channels, "failed": passed.failed });
    let sentence = format!(
        "deleted: {} of {}; what nobody has dealt with yet stays; the file on disk holds their words until `tertulia history compact`, and backups made before \
         for as long as they are kept",
        counted(passed.events, "event"),
        counted(passed.channels, "channel")
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

fn span(text: &str) -> Result<Duration, Failure> {
    usage::span(text)
        .ok_or_else(|| Failure::Usage(format!("--older-than {text:?} is no span of time: write it like 24h, 90d or 4w")))
}
