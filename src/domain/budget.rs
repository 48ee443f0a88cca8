//! How much may be asked and said within a while (DESIGN.md 2, "Budgets").

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use super::id::{ChannelId, CompanionId, PersonId, Seq};
use super::moment::Moment;
use crate::settings::gate::Gate as Policy;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// What one guild has used: sliding windows, open at the old end. A refused use does not count.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    evaluations: VecDeque<Moment>,
    evaluations_by_gate: HashMap<(ChannelId, CompanionId), VecDeque<Moment>>,
    addresses: HashMap<PersonId, VecDeque<(Moment, ChannelId, Seq)>>,
    statements: VecDeque<Moment>,
    tokens: VecDeque<(Moment, u64)>,
    tokens_sum: u64,
}

/// What a budget is asked for, or what used it.
#[derive(Clone, Copy, Debug)]
pub enum Use<'a> {
    /// A question for a lull, an interjection or a turn.
    Evaluation {
        /// Where.
        channel: &'a ChannelId,
        /// Who is asked.
        companion: &'a CompanionId,
    },
    /// A message by which somebody addressed a companion. It counts once, however many it names.
    Address {
        /// Who addressed it.
        person: &'a PersonId,
        /// Where.
        channel: &'a ChannelId,
        /// With which message.
        message: Seq,
    },
    /// A statement: made, or in the making.
    Statement,
    /// Tokens, read and written.
    Tokens(u64),
}

impl Ledger {
    /// Whether one more use of this kind stays within the budgets.
    pub fn allows(&mut self, asked: Use<'_>, now: Moment, policy: &Policy) -> bool {
        match asked {
            Use::Evaluation { channel, companion } => {
                let by_gate = self.evaluations_by_gate.get_mut(&(channel.clone(), companion.clone()));
                used(&mut self.evaluations, now, HOUR) < policy.guild_evaluations_per_hour as usize
                    && by_gate.map_or(0, |times| used(times, now, HOUR)) < policy.evaluations_per_hour as usize
            }
            Use::Address { person, .. } => {
                let addresses = self.addresses.entry(person.clone()).or_default();
                while addresses.front().is_some_and(|(at, ..)| is_over(*at, now, MINUTE)) {
                    addresses.pop_front();
                }
                addresses.len() < policy.addresses_per_minute as usize
            }
            Use::Statement => used(&mut self.statements, now, DAY) < policy.guild_statements_per_day as usize,
            Use::Tokens(_) => true,
        }
    }

    /// Tokens used within a day (`models.guild_tokens_per_day` bounds them).
    pub fn tokens_used(&mut self, now: Moment) -> u64 {
        while let Some((at, tokens)) = self.tokens.front().copied()
            && is_over(at, now, DAY)
        {
            self.tokens.pop_front();
            self.tokens_sum = self.tokens_sum.saturating_sub(tokens);
        }
        self.tokens_sum
    }

    /// Counts what was used.
    pub fn count(&mut self, used: Use<'_>, at: Moment) {
        match used {
            Use::Evaluation { channel, companion } => {
                self.evaluations.push_back(at);
                self.evaluations_by_gate.entry((channel.clone(), companion.clone())).or_default().push_back(at);
            }
            Use::Address { person, channel, message } => {
                let addresses = self.addresses.entry(person.clone()).or_default();
                if !addresses.iter().any(|(_, known, seq)| *seq == message && known == channel) {
                    addresses.push_back((at, channel.clone(), message));
                }
            }
            Use::Statement => self.statements.push_back(at),
            Use::Tokens(tokens) => {
                self.tokens.push_back((at, tokens));
                self.tokens_sum = self.tokens_sum.saturating_add(tokens);
            }
        }
    }

    /// A statement that was counted will not be made.
    pub fn give_back_statement(&mut self) {
        self.statements.pop_back();
    }

    /// Forgets whose windows are over, so that a guild of many people and channels stays small.
    pub fn prune(&mut self, now: Moment) {
        used(&mut self.evaluations, now, HOUR);
        used(&mut self.statements, now, DAY);
        self.tokens_used(now);
        retain_used(&mut self.evaluations_by_gate, |times| used(times, now, HOUR) > 0);
        retain_used(&mut self.addresses, |times| times.back().is_some_and(|(at, ..)| !is_over(*at, now, MINUTE)));
    }
}

fn retain_used<K: Eq + Hash, V>(map: &mut HashMap<K, V>, mut is_used: impl FnMut(&mut V) -> bool) {
    map.retain(|_, times| is_used(times));
}

fn used(times: &mut VecDeque<Moment>, now: Moment, window: Duration) -> usize {
    while times.front().is_some_and(|at| is_over(*at, now, window)) {
        times.pop_front();
    }
    times.len()
}

fn is_over(at: Moment, now: Moment, window: Duration) -> bool {
    now.since(at) >= window
}
