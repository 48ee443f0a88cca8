//! The usage of guilds, and its cost.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stamp::Stamp;
use crate::domain::budget::DAY;
use crate::domain::id::{CompanionId, GuildId};
use crate::domain::moment::Moment;
use crate::domain::price::Cost;
use crate::domain::reception::Reception;
use crate::domain::service::Service;
use crate::domain::token_usage::TokenUsage;
use crate::domain::trigger::Trigger;

/// The guilds and the time range to report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// Reports only this guild: 1 to 200 characters.
    pub guild: Option<GuildId>,
    /// The start of the time range, inclusive. `None`: a day before the end.
    pub from: Option<Moment>,
    /// The end of the time range, exclusive. `None`: now, rounded up to the millisecond, so that the reported time can be used in another query.
    pub to: Option<Moment>,
}

/// The usage of guilds in a time range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// The start of the time range, inclusive.
    pub from: Stamp,
    /// The end of the time range, exclusive.
    pub to: Stamp,
    /// The currency of every `cost`: `models.currency`.
    pub currency: Arc<str>,
    /// The guilds with usage, or the requested guild, ordered by id.
    pub guilds: Vec<GuildUsage>,
    pub total: Used,
}

/// The usage of one guild.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuildUsage {
    pub guild: GuildId,
    #[serde(flatten)]
    pub used: Used,
    /// The calls by companion, model and role, ordered by companion. Calls without a companion (summaries, judgements, votes of several companions)
    /// come first.
    pub by: Vec<UsageBy>,
    /// The usage of speech services, by service, companion and provider.
    #[serde(default)]
    pub speech_by: Vec<SpeechBy>,
    /// The calls of tools from outside this server, by companion and tool.
    #[serde(default)]
    pub tools_by: Vec<ToolsBy>,
    /// The guests who used something today, ordered by name.
    #[serde(default)]
    pub guests: Vec<GuestUsage>,
    pub caps: Caps,
}

/// What a guest used today (UTC), independent of the requested time range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuestUsage {
    pub name: Arc<str>,
    pub messages: u64,
    /// The time in which voice was received from the guest.
    pub voice_secs: u64,
    /// The tokens of models in the guest's room from the guest's messages until another person said something.
    pub tokens: u64,
}

/// The statements whose reception to report, up to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceptionQuery {
    /// Reports only this guild: 1 to 200 characters.
    pub guild: Option<GuildId>,
    /// The last days in UTC, today included. `None`: the last 24 hours.
    pub days: Option<u32>,
}

impl ReceptionQuery {
    /// The longest and the usual period in days.
    pub const MAX_DAYS: u32 = 92;
    pub const USUAL_DAYS: u32 = 14;

    /// The start of the time range.
    pub fn from(&self, now: Moment) -> Moment {
        let Some(days) = self.days else { return now - DAY };
        let since_midnight = now.as_micros() % DAY.as_micros() as u64;
        now - Duration::from_micros(since_midnight) - DAY * days.saturating_sub(1)
    }
}

/// How people received companions' statements (docs/design/telemetry.md O-16).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receptions {
    /// The start of the time range, inclusive.
    pub from: Stamp,
    /// The end of the time range.
    pub to: Stamp,
    /// The guilds with statements whose reception is known, or the requested guild, ordered by id.
    pub guilds: Vec<GuildReceptions>,
}

/// How people received the statements in one guild.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuildReceptions {
    pub guild: GuildId,
    /// The counts, ordered by day, companion, trigger and model.
    pub by: Vec<ReceptionBy>,
    /// Whether statements are missing, because a room has more events than one request reads, or because it cannot be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// How the statements of one day by one companion with one trigger and one model were received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceptionBy {
    /// The day in UTC, such as `2026-11-30`.
    pub day: Arc<str>,
    pub companion: CompanionId,
    pub trigger: Trigger,
    /// `gen_ai.request.model` of the call that wrote them. None: the companion is external, or the call is not on record.
    pub model: Option<Arc<str>>,
    /// The number of statements by their reception. Receptions without a statement are left out.
    pub received: BTreeMap<Reception, u64>,
}

/// The figures that laws require: notices and help texts shown to people. They are kept by month, even after the counted events have expired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SafetyFigures {
    /// The first month, in UTC, such as `2026-11`.
    pub from: Arc<str>,
    /// The last month.
    pub to: Arc<str>,
    /// The months of guilds in which something was counted, ordered by guild and time.
    pub months: Vec<SafetyMonth>,
    pub total: Safety,
}

/// The figures of one guild in one month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SafetyMonth {
    pub guild: GuildId,
    pub month: Arc<str>,
    #[serde(flatten)]
    pub sums: Safety,
}

/// Sums for the figures that laws require.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Safety {
    pub told: PeopleTold,
    /// The messages of people at risk for which a help text was shown.
    pub helped: u64,
    /// The statements that the moderation service refused, so that they were not posted.
    #[serde(default)]
    pub refused: u64,
}

/// How many people received the notice that companions are AI, by reason. A person counts once per notice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeopleTold {
    /// The person whose message was answered had never received the notice.
    pub first: u64,
    /// The last notice was on an earlier day.
    pub day: u64,
    /// The interval since the last notice was over.
    pub interval: u64,
}

/// Amounts of usage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Used {
    pub statements: u64,
    /// The number of evaluations for a turn, an interjection, a lull or a silence.
    pub evaluations: u64,
    /// The number of evaluations because a message addressed a companion.
    pub addresses: u64,
    #[serde(flatten)]
    pub calls: Calls,
    /// The usage of speech services. Its cost is not part of the cost of calls.
    #[serde(default)]
    pub speech: Speech,
    /// The calls of tools from outside this server. Their cost is not part of the cost of calls.
    #[serde(default)]
    pub tools: ToolCalls,
}

/// Totals of calls of tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCalls {
    pub calls: u64,
    #[serde(flatten)]
    pub costs: Costs,
}

/// A companion's calls of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolsBy {
    pub companion: CompanionId,
    pub tool: Arc<str>,
    #[serde(flatten)]
    pub calls: ToolCalls,
}

/// Totals of speech.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Speech {
    /// The duration of recognised audio.
    #[serde(rename = "recognised_secs", with = "secs")]
    #[schemars(with = "f64")]
    pub recognised_ms: u64,
    pub characters: u64,
    #[serde(flatten)]
    pub costs: Costs,
}

/// The cost of usage, at the prices at the time of use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Costs {
    /// The total of all usage with a price. None: nothing had a price. A missing price differs from a price of 0.
    pub cost: Option<Cost>,
    /// The cost of usage that was priced in another currency, by currency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_costs: BTreeMap<Arc<str>, Cost>,
}

/// The usage of one speech service for one companion, or for a guild's people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeechBy {
    pub service: Service,
    /// The companion that spoke. None: speech of people was recognised.
    pub companion: Option<CompanionId>,
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    #[serde(flatten)]
    pub speech: Speech,
}

/// A companion's calls to one model in one role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageBy {
    /// The companion. None: the calls were for the room itself, or for the votes of several companions.
    pub companion: Option<CompanionId>,
    /// `gen_ai.request.model`.
    pub model: Arc<str>,
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// `side` or `main`.
    pub role: Arc<str>,
    #[serde(flatten)]
    pub calls: Calls,
}

/// Totals of model calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    /// The number of calls, including retries.
    pub calls: u64,
    /// The number of calls without an answer. Their tokens are unknown and not counted.
    pub failed_calls: u64,
    #[serde(flatten)]
    pub usage: TokenUsage,
    /// The number of calls without a price. No cost includes them.
    pub unpriced_calls: u64,
    #[serde(flatten)]
    pub costs: Costs,
}

/// The daily caps of a guild over the last 24 hours, independent of the requested time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caps {
    /// Input and output tokens (`models.guild_tokens_per_day`).
    pub tokens: Cap,
    /// Statements (`gate.guild_statements_per_day`).
    pub statements: Cap,
    /// Calls of search and of servers' tools (`tools.guild_calls_per_day`), without those that were only proposed. None: there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Cap>,
    /// The seconds of audio that speech services recognised (`speech.guild_minutes_per_day`). None: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recognised_secs: Option<Cap>,
    /// The characters that speech services spoke (`speech.guild_characters_per_day`). None: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoken_characters: Option<Cap>,
}

/// A limit, and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cap {
    pub used: u64,
    /// The limit. None: no limit.
    pub limit: Option<u64>,
    /// When usage is allowed again if nothing is used until then. Only set if the cap is used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_at: Option<Stamp>,
}

impl Cap {
    /// Whether further usage is refused at the moment.
    pub fn is_used_up(&self) -> bool {
        self.limit.is_some_and(|limit| self.used >= limit)
    }
}

impl Costs {
    /// Adds a cost: to `cost` if its currency is the main one, otherwise to `other_costs`.
    pub fn count(&mut self, main: &str, currency: &Arc<str>, cost: Cost) {
        match &**currency == main {
            true => *self.cost.get_or_insert_default() += cost,
            false => *self.other_costs.entry(currency.clone()).or_default() += cost,
        }
    }
}

impl AddAssign for Costs {
    fn add_assign(&mut self, more: Self) {
        if let Some(cost) = more.cost {
            *self.cost.get_or_insert_default() += cost;
        }
        for (currency, cost) in more.other_costs {
            *self.other_costs.entry(currency).or_default() += cost;
        }
    }
}

/// Adds each part to the same part. Costs must be in the same currency.
macro_rules! sums {
    ($($Sum:ident { $($part:ident),+ })+) => {
        $(impl AddAssign for $Sum {
            fn add_assign(&mut self, more: Self) {
                $(self.$part += more.$part;)+
            }
        })+
    };
}

sums! {
    Calls { calls, failed_calls, usage, unpriced_calls, costs }
    PeopleTold { first, day, interval }
    Safety { told, helped, refused }
    Speech { recognised_ms, characters, costs }
    ToolCalls { calls, costs }
    Used { statements, evaluations, addresses, calls, speech, tools }
}

/// Milliseconds, written as seconds.
mod secs {
    use std::time::Duration;

    use serde::de::{Deserialize as _, Deserializer, Error as _};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(ms: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(Duration::from_millis(*ms).as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let span = Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(D::Error::custom)?;
        u64::try_from(span.as_millis()).map_err(D::Error::custom)
    }
}
