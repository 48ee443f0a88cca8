//! The inputs of a conversation's decisions: the settings, the policies of its companions, and the budgets of its guild.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::channel_context::ChannelContext;
use super::guild_budgets::GuildBudgets;
use super::interjection_policies::InterjectionPolicies;
use super::summarising::summary_limits;
use crate::domain::conversation::{NoteRules, World};
use crate::domain::id::{ModelName, PersonId, TurnId};
use crate::domain::model_role::ModelRole;

pub(super) struct ChannelWorld {
    budgets: Arc<GuildBudgets>,
    /// The edition of the memberships that the policies and the language were read from. `None` before the first use.
    edition: Option<u64>,
    policies: Arc<InterjectionPolicies>,
    language: Option<Arc<str>>,
    /// The names of the models that write the statements of the channel's companions.
    writers: BTreeSet<ModelName>,
}

impl ChannelWorld {
    pub(super) fn new(budgets: Arc<GuildBudgets>) -> Self {
        Self { budgets, edition: None, policies: Arc::default(), language: None, writers: BTreeSet::new() }
    }

    /// Runs `run` with the rules in force, while the budgets of the guild are locked.
    pub(super) fn with<T>(&mut self, channel: &ChannelContext, run: impl FnOnce(&mut World<'_>) -> T) -> T {
        let is_unpostable = channel.is_unpostable();
        let context = &*channel.context;
        let edition = context.memberships.edition();
        if self.edition != Some(edition) {
            self.edition = Some(edition);
            self.policies = self.budgets.policies.shared(context.memberships.policies(&channel.key.channel));
            self.language = context.memberships.language(&channel.key.channel);
            let present = context.memberships.present(&channel.key.channel).into_keys();
            let companions = present.filter_map(|id| context.memberships.companion(&channel.key.channel, &id));
            self.writers = companions.map(|companion| companion.model.main).collect();
        }
        let settings = context.in_force();
        let words = &settings.prompt;
        let room = |model| context.pool.prompt_room(ModelRole::Main, model, words.max_main_answer_tokens);
        let statement_room = self.writers.iter().filter_map(room).min();
        let allows = |person: &PersonId| context.may_be_noted(&channel.key.guild, person);
        let notes = NoteRules { after: settings.memory.notes_after, allows: &allows };
        let mut ledger = self.budgets.ledger();
        ledger.set_clock(channel.machine_time());
        run(&mut World {
            channel: &channel.key.channel,
            rules: settings.rules(&channel.key.guild, self.language.as_deref()),
            policies: &self.policies,
            jitter: &mut || context.rng.jitter(),
            roll: &mut || Some(context.rng.fraction()),
            turn: &mut || TurnId(context.rng.id()),
            ledger: &mut ledger,
            summary: Some(summary_limits(words, statement_room)),
            notes: context.takes_notes(&channel.key).then_some(notes),
            tokens_per_day: settings.models.guild_tokens_per_day,
            is_unpostable,
        })
    }
}
