//! What a channel's conversation decides by: the settings, the policies of its companions, and the budgets of its guild.

use std::sync::Arc;

use super::channel_context::ChannelContext;
use super::guild_budgets::GuildBudgets;
use super::interjection_policies::InterjectionPolicies;
use super::summarising::summary_limits;
use crate::domain::conversation::{Rules, World};
use crate::domain::id::TurnId;

pub(super) struct ChannelWorld {
    budgets: Arc<GuildBudgets>,
    /// The edition of the memberships that the policies and the language were read from. `None` before the first use.
    edition: Option<u64>,
    policies: Arc<InterjectionPolicies>,
    language: Option<Arc<str>>,
}

impl ChannelWorld {
    pub(super) fn new(budgets: Arc<GuildBudgets>) -> Self {
        Self { budgets, edition: None, policies: Arc::default(), language: None }
    }

    /// Runs this with the rules in force. It locks the budgets of the guild.
    pub(super) fn with<T>(&mut self, channel: &ChannelContext, run: impl FnOnce(&mut World<'_>) -> T) -> T {
        let is_unpostable = channel.is_unpostable();
        let context = &*channel.context;
        let edition = context.memberships.edition();
        if self.edition != Some(edition) {
            self.edition = Some(edition);
            self.policies = self.budgets.policies.shared(context.memberships.policies(&channel.key.channel));
            self.language = context.memberships.language(&channel.key.channel);
        }
        let mut ledger = self.budgets.ledger();
        ledger.set_clock(channel.machine_time());
        run(&mut World {
            channel: &channel.key.channel,
            rules: Rules::of(&context.settings, self.language.as_deref()),
            policies: &self.policies,
            jitter: &mut || context.rng.jitter(),
            roll: &mut || Some(context.rng.fraction()),
            turn: &mut || TurnId(context.rng.id()),
            ledger: &mut ledger,
            summary: Some(summary_limits(&context.settings.prompt)),
            tokens_per_day: context.settings.models.guild_tokens_per_day,
            is_unpostable,
        })
    }
}
