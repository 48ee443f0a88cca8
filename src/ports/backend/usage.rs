//! What guilds used, and what it cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::stamp::Stamp;
use crate::domain::id::{CompanionId, GuildId};
use crate::domain::moment::Moment;
use crate::domain::price::Cost;

/// Of whom, and of which span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// Of this guild only: 1 to 200 characters.
    pub guild: Option<GuildId>,
    /// From this moment on; none: a day before the end.
    pub from: Option<Moment>,
    /// Until before this moment; none: now, to the end of the millisecond, so that the time that is told can be asked for again.
    pub to: Option<Moment>,
}

/// What guilds used in a span of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// From this moment on.
    pub from: Stamp,
    /// Until before this one.
    pub to: Stamp,
    /// The currency of every `cost`: `models.currency`.
    pub currency: Arc<str>,
    /// Those that used something, or the one that was asked for, in the order of ids.
    pub guilds: Vec<GuildUsage>,
    /// All of them together.
    pub total: Used,
}

/// What one guild used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuildUsage {
    /// Which one.
    pub guild: GuildId,
    /// How much.
    #[serde(flatten)]
    pub used: Used,
    /// By whom and what the calls were made, in the order of companions; those for rooms themselves (summaries, judgements) first.
    pub by: Vec<UsageBy>,
    /// How it stands with its caps at this moment.
    pub caps: Caps,
}

/// How much was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Statements that were made.
    pub statements: u64,
    /// Questions whether to speak for a lull, an interjection or a turn.
    pub evaluations: u64,
    /// Questions whether to speak because somebody addressed a companion.
    pub addresses: u64,
    /// What calls to models came to.
    #[serde(flatten)]
    pub calls: Calls,
}

/// What a companion's calls to one model in one role came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageBy {
    /// For whom; none: for the room itself.
    pub companion: Option<CompanionId>,
    /// `gen_ai.request.model`.
    pub model: Arc<str>,
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// `side` or `main`.
    pub role: Arc<str>,
    /// How much.
    #[serde(flatten)]
    pub calls: Calls,
}

/// What calls to models came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// Calls made, every try counted.
    pub calls: u64,
    /// How many of them gave no answer: what they used is not known, and not among the tokens.
    pub failed_calls: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// What the calls with a price cost, each at the price of its time; none: none of them has one. No price is not a price of 0.
    pub cost: Option<Cost>,
    /// How many calls have no price, and are in no cost.
    pub unpriced_calls: u64,
    /// What calls cost whose price was in another currency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_costs: BTreeMap<Arc<str>, Cost>,
}

/// How a guild stands with what it may use in a day: the last 24 hours, whatever span was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    /// Tokens, read and written (`models.guild_tokens_per_day`).
    pub tokens: Cap,
    /// Statements (`gate.guild_statements_per_day`).
    pub statements: Cap,
}

/// How much of a cap is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// So much was used.
    pub used: u64,
    /// Of so much; none: there is no limit.
    pub limit: Option<u64>,
    /// Of one that is used up: when something fits in again, if nothing is used until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_at: Option<Stamp>,
}

impl Cap {
    /// Whether nothing fits in at the moment.
    pub fn is_used_up(&self) -> bool {
        self.limit.is_some_and(|limit| self.used >= limit)
    }
}

impl Calls {
    /// With these, too. Costs have to be in the same currency.
    pub fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.failed_calls += more.failed_calls;
        self.unpriced_calls += more.unpriced_calls;
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        if let Some(cost) = more.cost {
            *self.cost.get_or_insert_default() += cost;
        }
        for (currency, cost) in &more.other_costs {
            *self.other_costs.entry(currency.clone()).or_default() += *cost;
        }
    }
}

impl Used {
    /// With this, too.
    pub fn add(&mut self, more: &Self) {
        self.statements += more.statements;
        self.evaluations += more.evaluations;
        self.addresses += more.addresses;
        self.calls.add(&more.calls);
    }
}
