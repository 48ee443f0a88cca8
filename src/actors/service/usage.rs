//! What guilds used, counted from the record.

use std::ops::ControlFlow;
use std::time::Duration;

use super::ActorBackend;
use super::desk::{invalid, unread};
use crate::domain::budget::{DAY, OfDay, PIECE};
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::journal::account::{Account, Calls as Sum};
use crate::journal::reader::ReadError;
use crate::journal::record::{UsageRecord, Used as Record};
use crate::ports::backend::Refused;
use crate::ports::backend::usage::{Calls, Cap, Caps, GuildUsage, Usage, UsageBy, UsageQuery, Used};

/// Times are told in whole ones.
const MILLISECOND: Duration = Duration::from_millis(1);

/// What was used of one thing within a day.
struct Counted {
    used: u64,
    limit: Option<u64>,
    /// As the budget counts it.
    window: OfDay,
}

impl ActorBackend {
    pub(super) async fn count_usage(&self, query: UsageQuery) -> Result<Usage, Refused> {
        let now = self.context.clock.now();
        let to = query.to.unwrap_or_else(|| end_of_millisecond(now));
        let from = query.from.unwrap_or(to - DAY);
        if from >= to {
            return Err(invalid("from", "has to lie before to (without to: before now)"));
        }
        // One count after the other, since each reads a lot.
        let _turn = self.counting.lock().await;
        let guilds = match &query.guild {
            Some(guild) => {
                self.check_guild(guild).await?;
                vec![guild.clone()]
            }
            None => self.reader().guilds_with_usage().await.map_err(unread)?,
        };
        let mut told = Vec::new();
        let mut total = Used::default();
        for guild in guilds {
            let account = self.account(&guild, from, to).await.map_err(unread)?;
            if query.guild.is_none() && account.is_empty() {
                continue;
            }
            let caps = self.caps(&guild, now).await.map_err(unread)?;
            let counted = self.told(guild, account, caps);
            total.add(&counted.used);
            told.push(counted);
        }
        let currency = self.context.settings.models.currency.as_str().into();
        Ok(Usage { from: from.into(), to: to.into(), currency, guilds: told, total })
    }

    async fn account(&self, guild: &GuildId, from: Moment, to: Moment) -> Result<Account, ReadError> {
        let mut account = Account::default();
        let take = |record| {
            account.count(record);
            ControlFlow::Continue(())
        };
        self.reader().usage(guild, from, Some(to), take).await?;
        Ok(account)
    }

    /// How a guild stands with its caps, counted as the budgets are.
    pub(super) async fn caps(&self, guild: &GuildId, now: Moment) -> Result<Caps, ReadError> {
        let settings = &self.context.settings;
        let mut tokens = Counted::with(settings.models.guild_tokens_per_day);
        let mut statements = Counted::with(Some(settings.gate.guild_statements_per_day.into()));
        let take = |record: UsageRecord| {
            tokens.count(tokens_of(&record), record.at, now);
            statements.count(statements_of(&record), record.at, now);
            ControlFlow::Continue(())
        };
        self.reader().usage(guild, now - DAY - PIECE, None, take).await?;
        Ok(Caps { tokens: tokens.cap(now), statements: statements.cap(now) })
    }

    fn told(&self, guild: GuildId, account: Account, caps: Caps) -> GuildUsage {
        let calls = self.told_calls(account.calls());
        let Account { statements, evaluations, addresses, by } = account;
        let by = by.into_iter().map(|(caller, sum)| UsageBy {
            companion: caller.companion,
            model: caller.model,
            provider: caller.provider,
            role: caller.role,
            calls: self.told_calls(sum),
        });
        GuildUsage { guild, used: Used { statements, evaluations, addresses, calls }, by: by.collect(), caps }
    }

    fn told_calls(&self, sum: Sum) -> Calls {
        let Sum { calls, failed, unpriced, input_tokens, output_tokens, mut costs } = sum;
        Calls {
            calls,
            failed_calls: failed,
            input_tokens,
            output_tokens,
            cost: costs.remove(self.context.settings.models.currency.as_str()),
            unpriced_calls: unpriced,
            other_costs: costs,
        }
    }
}

impl Counted {
    fn with(limit: Option<u64>) -> Self {
        Self { used: 0, limit, window: OfDay::default() }
    }

    fn count(&mut self, amount: u64, at: Moment, now: Moment) {
        if now.since(at) < DAY {
            self.used = self.used.saturating_add(amount);
        }
        if let Some(limit) = self.limit {
            self.window.count(amount, at, limit);
        }
    }

    fn cap(mut self, now: Moment) -> Cap {
        let free_at = self.limit.and_then(|limit| self.window.full(now, limit, 0)).flatten();
        Cap { used: self.used.max(self.window.used(now)), limit: self.limit, free_at: free_at.map(Into::into) }
    }
}

/// The end of the millisecond that this moment is in. Told, it is not cut: who asks again until then misses nothing that is on record now.
fn end_of_millisecond(moment: Moment) -> Moment {
    let micros = moment.as_micros();
    Moment::from_micros(micros - micros % 1_000) + MILLISECOND
}

fn tokens_of(record: &UsageRecord) -> u64 {
    match &record.used {
        Record::Call { input_tokens, output_tokens, .. } => input_tokens.saturating_add(*output_tokens),
        _ => 0,
    }
}

fn statements_of(record: &UsageRecord) -> u64 {
    u64::from(matches!(record.used, Record::Statement { .. }))
}
