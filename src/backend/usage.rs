//! The usage of guilds, counted from the record.

use std::ops::ControlFlow;
use std::time::Duration;

use super::ActorBackend;
use crate::domain::budget::{AHEAD, DAY, OfDay, PIECE};
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::domain::service::Service;
use crate::journal::account::Account;
use crate::journal::figures::Figures;
use crate::journal::reader::ReadError;
use crate::journal::record::{UsageRecord, Used as Record};
use crate::ports::backend::usage::{Cap, Caps, Safety};
use crate::settings::speech::BUILT_IN;

/// The API reports times in whole milliseconds.
const MILLISECOND: Duration = Duration::from_millis(1);

/// The usage of one resource within a day.
struct Counted {
    used: u64,
    limit: Option<u64>,
    /// Counts in the same way as the budget.
    window: OfDay,
}

impl ActorBackend {
    pub(super) async fn account(&self, guild: &GuildId, from: Moment, to: Moment) -> Result<Account, ReadError> {
        let mut account = Account::new(&self.context.settings.models.currency);
        let take = |record| {
            account.count(record);
            ControlFlow::Continue(())
        };
        self.reader().usage(guild, from, Some(to), take).await?;
        Ok(account)
    }

    /// The figures of a guild in the month that begins at this moment.
    pub(super) async fn safety_of(&self, guild: &GuildId, month: Moment) -> Result<Safety, ReadError> {
        let mut figures = Figures::default();
        let take = |record| {
            figures.count(record);
            ControlFlow::Continue(())
        };
        self.reader().usage(guild, month, Some(month + Duration::from_micros(1)), take).await?;
        Ok(figures.sums())
    }

    /// The state of a guild's daily caps, counted in the same way as the budgets.
    pub(super) async fn caps(&self, guild: &GuildId, now: Moment) -> Result<Caps, ReadError> {
        let settings = self.context.in_force();
        let mut tokens = Counted::with(settings.models.guild_tokens_per_day);
        let mut statements = Counted::with(Some(settings.gate.guild_statements_per_day.into()));
        let mut tool_calls = Counted::with(Some(settings.tools.guild_calls_per_day.into()));
        let limited = |service| settings.speech.guild_limit(service).map(|limit| Counted::with(Some(limit)));
        let [mut recognised, mut spoken] = [Service::SpeechRecognition, Service::SpeechSynthesis].map(limited);
        let take = |record: UsageRecord| {
            tokens.count(tokens_of(&record), record.at, now);
            statements.count(statements_of(&record), record.at, now);
            tool_calls.count(u64::from(matches!(record.used, Record::ToolCall { .. })), record.at, now);
            for (counted, service) in [(&mut recognised, Service::SpeechRecognition), (&mut spoken, Service::SpeechSynthesis)] {
                counted.iter_mut().for_each(|counted| counted.count(speech_of(&record, service), record.at, now));
            }
            ControlFlow::Continue(())
        };
        self.reader().usage(guild, now - DAY - PIECE, Some(now + AHEAD), take).await?;
        // The counts are in milliseconds.
        let recognised_secs = recognised.map(|counted| counted.cap(now)).map(|cap| Cap {
            used: cap.used / 1_000,
            limit: cap.limit.map(|limit| limit / 1_000),
            ..cap
        });
        let spoken_characters = spoken.map(|counted| counted.cap(now));
        let [tokens, statements, tool_calls] = [tokens, statements, tool_calls].map(|counted| counted.cap(now));
        let tool_calls = Some(tool_calls).filter(|calls| calls.used > 0);
        Ok(Caps { tokens, statements, tool_calls, recognised_secs, spoken_characters })
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

/// The end of the current millisecond. Reported times are truncated to milliseconds, so a later query up to the reported time must include
/// everything that is on record now.
pub(super) fn end_of_millisecond(moment: Moment) -> Moment {
    let micros = moment.as_micros();
    Moment::from_micros(micros - micros % 1_000) + MILLISECOND
}

pub(super) fn tokens_of(record: &UsageRecord) -> u64 {
    match &record.used {
        Record::Call { usage, .. } => usage.total(),
        _ => 0,
    }
}

fn statements_of(record: &UsageRecord) -> u64 {
    u64::from(matches!(record.used, Record::Statement { .. }))
}

/// Recognised audio in milliseconds, or spoken characters. Built-in services are not limited.
fn speech_of(record: &UsageRecord, of: Service) -> u64 {
    match &record.used {
        Record::Speech { service, provider, amount, .. } if *service == of && **provider != *BUILT_IN => *amount,
        _ => 0,
    }
}
