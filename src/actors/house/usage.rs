//! What guilds used, counted from the record.

use std::ops::ControlFlow;
use std::time::Duration;

use super::ActorHouse;
use super::desk::{invalid, unread};
use crate::domain::budget::DAY;
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::journal::account::{Account, Calls as Sum};
use crate::journal::reader::ReadError;
use crate::journal::record::{UsageRecord, Used as Record};
use crate::ports::house::Refused;
use crate::ports::house::usage::{Calls, Cap, Caps, GuildUsage, Usage, UsageBy, UsageQuery, Used};

/// The least span that there is.
const MOMENT: Duration = Duration::from_micros(1);
/// Times are told in whole ones.
const MILLISECOND: Duration = Duration::from_millis(1);

impl ActorHouse {
    pub(super) async fn count_usage(&self, query: UsageQuery) -> Result<Usage, Refused> {
        let now = self.kit.clock.now();
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
        let currency = self.kit.settings.models.currency.as_str().into();
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

    /// How a guild stands with its caps. The same windows as those of the budgets: open at the old end.
    pub(super) async fn caps(&self, guild: &GuildId, now: Moment) -> Result<Caps, ReadError> {
        let since = now - DAY + MOMENT;
        let (mut tokens, mut statements) = (0_u64, 0_u64);
        let take = |record: UsageRecord| {
            tokens = tokens.saturating_add(tokens_of(&record));
            statements += statements_of(&record);
            ControlFlow::Continue(())
        };
        self.reader().usage(guild, since, None, take).await?;
        let settings = &self.kit.settings;
        let limits = (settings.models.guild_tokens_per_day, Some(u64::from(settings.gate.guild_statements_per_day)));
        Ok(Caps {
            tokens: self.cap(guild, since, tokens, limits.0, tokens_of).await?,
            statements: self.cap(guild, since, statements, limits.1, statements_of).await?,
        })
    }

    async fn cap(
        &self,
        guild: &GuildId,
        since: Moment,
        used: u64,
        limit: Option<u64>,
        of: impl Fn(&UsageRecord) -> u64 + Send,
    ) -> Result<Cap, ReadError> {
        let mut cap = Cap { used, limit, free_at: None };
        let Some(limit) = limit.filter(|limit| used >= *limit) else { return Ok(cap) };
        let mut left = used;
        let take = |record: UsageRecord| {
            left = left.saturating_sub(of(&record));
            if left < limit {
                cap.free_at = Some((record.at + DAY).into());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        self.reader().usage(guild, since, None, take).await?;
        Ok(cap)
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
            cost: costs.remove(self.kit.settings.models.currency.as_str()),
            unpriced_calls: unpriced,
            other_costs: costs,
        }
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
