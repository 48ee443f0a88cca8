//! The handler for the usage of guilds.

use axum::Json as Answer;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Shared;
use super::body::QueryParams;
use super::problem::Problem;
use super::validation;
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::ports::backend::usage::{ReceptionQuery, Receptions, SafetyFigures, Usage, UsageQuery};
use crate::ports::backend::{Detail, Refused, stamp};

/// The longest id of a guild, in characters.
const MAX_GUILD_CHARS: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageParams {
    #[schemars(length(min = 1, max = MAX_GUILD_CHARS))]
    guild: Option<String>,
    /// The start of the time range. The default is a day before its end, or eleven months before the last month for monthly
    /// figures.
    #[schemars(extend("format" = "date-time"))]
    from: Option<String>,
    /// The end of the time range. The default is now.
    #[schemars(extend("format" = "date-time"))]
    to: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceptionParams {
    #[schemars(length(min = 1, max = MAX_GUILD_CHARS))]
    guild: Option<String>,
    /// The last days in UTC, today included. The default is 14.
    #[schemars(range(min = 1, max = ReceptionQuery::MAX_DAYS))]
    days: Option<u32>,
}

/// `GET /api/usage?guild=&from=&to=`
pub(super) async fn usage(
    State(console): State<Shared>,
    QueryParams(params): QueryParams<UsageParams>,
) -> Result<Answer<Usage>, Problem> {
    Ok(Answer(console.backend()?.records.usage(params.query()?).await.map_err(problem)?))
}

/// `GET /api/usage/safety?guild=&from=&to=`
pub(super) async fn safety_figures(
    State(console): State<Shared>,
    QueryParams(params): QueryParams<UsageParams>,
) -> Result<Answer<SafetyFigures>, Problem> {
    Ok(Answer(console.backend()?.records.safety_figures(params.query()?).await.map_err(problem)?))
}

/// `GET /api/usage/receptions?guild=&days=`
pub(super) async fn receptions(
    State(console): State<Shared>,
    QueryParams(params): QueryParams<ReceptionParams>,
) -> Result<Answer<Receptions>, Problem> {
    let (days, most) = (params.days.unwrap_or(ReceptionQuery::USUAL_DAYS), ReceptionQuery::MAX_DAYS);
    if !(1..=most).contains(&days) {
        return Err(Problem::query("days", format!("days must be from 1 to {most}")));
    }
    let query = ReceptionQuery { guild: params.guild.map(guild).transpose()?, days: Some(days) };
    Ok(Answer(console.backend()?.records.receptions(query).await.map_err(problem)?))
}

impl UsageParams {
    fn query(self) -> Result<UsageQuery, Problem> {
        Ok(UsageQuery {
            guild: self.guild.map(guild).transpose()?,
            from: self.from.map(|text| moment("from", &text)).transpose()?,
            to: self.to.map(|text| moment("to", &text)).transpose()?,
        })
    }
}

/// Reports the invalid field as a query parameter.
fn problem(refused: Refused) -> Problem {
    match refused {
        Refused::Invalid { field, detail } => {
            let detail = Detail::from(format!("{field} {detail}")).with(detail.code.clone());
            Problem::query(field, detail)
        }
        refused => refused.into(),
    }
}

fn guild(id: String) -> Result<GuildId, Problem> {
    let validated = validation::opaque_id("guild", &id, MAX_GUILD_CHARS);
    validated.map_err(|problem| Problem::query("guild", format!("guild {}", problem.detail())))?;
    Ok(id.as_str().into())
}

fn moment(field: &str, text: &str) -> Result<Moment, Problem> {
    // An unescaped plus in a query is decoded as a space.
    let moment = stamp::from_rfc3339(&text.replace(' ', "+"));
    moment.ok_or_else(|| Problem::query(field, format!("{field} is not a time; write it like 2026-05-01T12:00:00.250Z")))
}
