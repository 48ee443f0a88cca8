//! What guilds used.

use axum::Json as Answer;
use axum::extract::State;
use serde::Deserialize;

use super::Shared;
use super::body::Asked;
use super::problem::Problem;
use super::words;
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::ports::backend::usage::{Usage, UsageQuery};
use crate::ports::backend::{Refused, stamp};

/// The longest id of a guild, in characters.
const MAX_GUILD_CHARS: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedUsage {
    guild: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

/// `GET /api/usage?guild=&from=&to=`
pub(super) async fn usage(State(console): State<Shared>, Asked(asked): Asked<AskedUsage>) -> Result<Answer<Usage>, Problem> {
    let query = UsageQuery {
        guild: asked.guild.map(guild).transpose()?,
        from: asked.from.map(|text| moment("from", &text)).transpose()?,
        to: asked.to.map(|text| moment("to", &text)).transpose()?,
    };
    let usage = console.backend.usage(query).await.map_err(|refused| match refused {
        // What is refused here was a query parameter.
        Refused::Invalid { field, detail } => {
            let detail = format!("{field} {detail}");
            Problem::query(field, detail)
        }
        refused => refused.into(),
    })?;
    Ok(Answer(usage))
}

fn guild(id: String) -> Result<GuildId, Problem> {
    let checked = words::opaque_id("guild", &id, MAX_GUILD_CHARS);
    checked.map_err(|problem| Problem::query("guild", format!("guild {}", problem.detail())))?;
    Ok(id.as_str().into())
}

fn moment(field: &str, text: &str) -> Result<Moment, Problem> {
    // An unescaped plus in a query is read as a space.
    let moment = stamp::from_rfc3339(&text.replace(' ', "+"));
    moment.ok_or_else(|| Problem::query(field, format!("{field} is no time, write it like 2026-05-01T12:00:00.250Z")))
}
