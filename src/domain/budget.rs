//! How much may be asked and said within a while (DESIGN.md 2, "Budgets").

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::id::{ChannelId, CompanionId, PersonId, Seq};
use super::moment::Moment;
use crate::settings::gate::Gate as Policy;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// The longest window: that of statements and tokens.
pub const DAY: Duration = Duration::from_secs(86_400);

/// The budgets that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// `gate.evaluations_per_hour`, of a companion in a channel.
    Evaluations,
    /// `gate.guild_evaluations_per_hour`.
    GuildEvaluations,
    /// `gate.addresses_per_minute`, of a person in a guild.
    Addresses,
    /// `gate.guild_statements_per_day`.
    GuildStatements,
    /// `models.guild_tokens_per_day`.
    GuildTokens,
}

impl Budget {
    /// The name used in records, on the API and in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Evaluations => "evaluations",
            Self::GuildEvaluations => "guild_evaluations",
            Self::Addresses => "addresses",
            Self::GuildStatements => "guild_statements",
            Self::GuildTokens => "guild_tokens",
        }
    }

    /// Whether it is one for all companions of a guild together.
    pub const fn is_of_guild(self) -> bool {
        matches!(self, Self::GuildEvaluations | Self::GuildStatements | Self::GuildTokens)
    }
}

/// A budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedUp {
    /// Which one.
    pub budget: Budget,
    /// When one more use fits in again, if nothing is used until then; none: never, with these settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_at: Option<Moment>,
}

impl UsedUp {
    /// Of several that are used up, the one that is free last: what is asked for has to wait for that.
    pub fn last_of(several: impl IntoIterator<Item = Self>) -> Option<Self> {
        several.into_iter().max_by_key(|one| (one.free_at.is_none(), one.free_at))
    }
}

/// What one guild has used: sliding windows, open at the old end. A refused use does not count.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    evaluations: VecDeque<Moment>,
    evaluations_by_gate: HashMap<(ChannelId, CompanionId), VecDeque<Moment>>,
    addresses: HashMap<PersonId, VecDeque<(Moment, ChannelId, Seq)>>,
    /// In the order of time.
    statements: VecDeque<(Moment, ChannelId)>,
    /// Where somebody wants to speak in an open round, was selected, or has the floor: one statement each.
    promised: HashSet<ChannelId>,
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
    /// A statement that was made. It counts once, however often it is read: of a channel there is one at a moment.
    Statement {
        /// Where.
        channel: &'a ChannelId,
    },
    /// Tokens, read and written.
    Tokens(u64),
}

impl Ledger {
    /// Why one more use of this kind does not stay within the budgets of the gate; none: it does.
    pub fn refuses(&mut self, asked: Use<'_>, now: Moment, policy: &Policy) -> Option<UsedUp> {
        match asked {
            Use::Evaluation { channel, companion } => {
                let most = (policy.guild_evaluations_per_hour, policy.evaluations_per_hour);
                let guild = full(&mut self.evaluations, now, HOUR, most.0);
                let by_gate = self.evaluations_by_gate.entry((channel.clone(), companion.clone())).or_default();
                let gate = full(by_gate, now, HOUR, most.1);
                let guild = guild.map(|free_at| UsedUp { budget: Budget::GuildEvaluations, free_at });
                let gate = gate.map(|free_at| UsedUp { budget: Budget::Evaluations, free_at });
                UsedUp::last_of(guild.into_iter().chain(gate))
            }
            Use::Address { person, .. } => {
                let addresses = self.addresses.entry(person.clone()).or_default();
                while addresses.front().is_some_and(|(at, ..)| is_over(*at, now, MINUTE)) {
                    addresses.pop_front();
                }
                let too_many = addresses.len().checked_sub(policy.addresses_per_minute as usize)?;
                let free_at = addresses.get(too_many).map(|(at, ..)| *at + MINUTE);
                Some(UsedUp { budget: Budget::Addresses, free_at })
            }
            Use::Statement { .. } => self.refuses_statement(now, policy),
            Use::Tokens(_) => None,
        }
    }

    /// Why one more statement does not stay within the budget, those that are promised counted as made now; none: it does.
    pub fn refuses_statement(&mut self, now: Moment, policy: &Policy) -> Option<UsedUp> {
        self.drop_old_statements(now);
        let most = policy.guild_statements_per_day as usize;
        let too_many = (self.statements.len() + self.promised.len()).checked_sub(most)?;
        let free_at = (most > 0).then(|| self.statements.get(too_many).map_or(now, |(at, _)| *at) + DAY);
        Some(UsedUp { budget: Budget::GuildStatements, free_at })
    }

    fn drop_old_statements(&mut self, now: Moment) {
        while self.statements.front().is_some_and(|(at, _)| is_over(*at, now, DAY)) {
            self.statements.pop_front();
        }
    }

    /// Why no more tokens may be used, if so many may in a day; none: some may.
    pub fn refuses_tokens(&mut self, now: Moment, most: Option<u64>) -> Option<UsedUp> {
        let mut left = self.tokens_used(now);
        let most = most.filter(|most| left >= *most)?;
        let free_at = self.tokens.iter().find_map(|(at, tokens)| {
            left = left.saturating_sub(*tokens);
            (left < most).then(|| *at + DAY)
        });
        Some(UsedUp { budget: Budget::GuildTokens, free_at })
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
            Use::Statement { channel } => {
                let place = self.statements.partition_point(|(other, _)| *other <= at);
                let mut as_old = self.statements.range(..place).rev().take_while(|(other, _)| *other == at);
                if as_old.all(|(_, other)| other != channel) {
                    self.statements.insert(place, (at, channel.clone()));
                }
            }
            Use::Tokens(tokens) => {
                self.tokens.push_back((at, tokens));
                self.tokens_sum = self.tokens_sum.saturating_add(tokens);
            }
        }
    }

    /// Whether a statement is going to be made in a channel. It is counted as one until it is made, or will not be.
    pub fn promise_statement(&mut self, channel: &ChannelId, is_promised: bool) {
        if is_promised == self.promised.contains(channel) {
            return;
        }
        if is_promised {
            self.promised.insert(channel.clone());
        } else {
            self.promised.remove(channel);
        }
    }

    /// Forgets whose windows are over, so that a guild of many people and channels stays small.
    pub fn prune(&mut self, now: Moment) {
        used(&mut self.evaluations, now, HOUR);
        self.drop_old_statements(now);
        self.tokens_used(now);
        retain_used(&mut self.evaluations_by_gate, |times| used(times, now, HOUR) > 0);
        retain_used(&mut self.addresses, |times| times.back().is_some_and(|(at, ..)| !is_over(*at, now, MINUTE)));
    }
}

fn retain_used<K: Eq + Hash, V>(map: &mut HashMap<K, V>, mut is_used: impl FnMut(&mut V) -> bool) {
    map.retain(|_, times| is_used(times));
}

/// If a window is full, when it will not be any more; which is never where nothing fits in.
fn full(times: &mut VecDeque<Moment>, now: Moment, window: Duration, most: u32) -> Option<Option<Moment>> {
    let too_many = used(times, now, window).checked_sub(most as usize)?;
    Some(times.get(too_many).map(|at| *at + window))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_full_budget_says_when_one_more_fits_in() {
        let policy = policy(2, 5);
        let statement = Use::Statement { channel: &"lobby".into() };
        let mut ledger = Ledger::default();
        ledger.count(statement, at(10));
        ledger.count(statement, at(20));

        let full = ledger.refuses_statement(at(30), &policy);
        let still = ledger.refuses_statement(at(86_409), &policy);
        let free = ledger.refuses_statement(at(86_410), &policy);

        let used_up = UsedUp { budget: Budget::GuildStatements, free_at: Some(at(86_410)) };
        assert_eq!((full, still, free), (Some(used_up), Some(used_up), None));
    }

    #[test]
    fn a_budget_of_nothing_is_never_free() {
        let mut ledger = Ledger::default();

        let refused = ledger.refuses_statement(at(30), &policy(0, 5));

        assert_eq!(refused, Some(UsedUp { budget: Budget::GuildStatements, free_at: None }));
    }

    #[test]
    fn a_statement_counts_once_and_from_when_it_is_promised() {
        let policy = policy(2, 5);
        let (lobby, den) = (ChannelId::from("lobby"), ChannelId::from("den"));
        let mut ledger = Ledger::default();
        for at in [at(20), at(10), at(20)] {
            ledger.count(Use::Statement { channel: &lobby }, at);
        }
        let refused = |ledger: &mut Ledger, secs| ledger.refuses_statement(at(secs), &policy).map(|used_up| used_up.free_at);

        let full = refused(&mut ledger, 30);
        let free = refused(&mut ledger, 86_415);
        ledger.promise_statement(&den, true);
        ledger.promise_statement(&den, true);
        let promised = refused(&mut ledger, 86_415);
        ledger.promise_statement(&den, false);

        assert_eq!((full, free, promised), (Some(Some(at(86_410))), None, Some(Some(at(86_420)))));
        assert_eq!(refused(&mut ledger, 86_415), None);
    }

    #[test]
    fn tokens_are_free_again_when_enough_of_them_are_a_day_old() {
        let mut ledger = Ledger::default();
        for (secs, tokens) in [(1, 40), (2, 30), (3, 50)] {
            ledger.count(Use::Tokens(tokens), at(secs));
        }

        let within = ledger.refuses_tokens(at(4), Some(121));
        let unlimited = ledger.refuses_tokens(at(4), None);
        let full = ledger.refuses_tokens(at(4), Some(60));
        let free = ledger.refuses_tokens(at(86_402), Some(60));

        assert_eq!((within, unlimited, free), (None, None, None));
        assert_eq!(full, Some(UsedUp { budget: Budget::GuildTokens, free_at: Some(at(86_402)) }));
    }

    #[test]
    fn of_two_budgets_the_one_that_is_free_last_is_named() {
        let policy = policy(2, 1);
        let mut ledger = Ledger::default();
        let (lobby, den, aria) = (ChannelId::from("lobby"), ChannelId::from("den"), CompanionId::from("aria"));
        ledger.count(Use::Evaluation { channel: &den, companion: &aria }, at(1));
        ledger.count(Use::Evaluation { channel: &lobby, companion: &aria }, at(2));

        let both = ledger.refuses(Use::Evaluation { channel: &lobby, companion: &aria }, at(3), &policy);
        let guild = ledger.refuses(Use::Evaluation { channel: &lobby, companion: &CompanionId::from("bruno") }, at(3), &policy);

        assert_eq!(both, Some(UsedUp { budget: Budget::Evaluations, free_at: Some(at(3_602)) }));
        assert_eq!(guild, Some(UsedUp { budget: Budget::GuildEvaluations, free_at: Some(at(3_601)) }));
    }

    #[test]
    fn a_person_who_addresses_too_often_waits_for_the_oldest_to_be_a_minute_old() {
        let policy = policy(2, 5);
        let mut ledger = Ledger::default();
        let (lobby, ana) = (ChannelId::from("lobby"), PersonId::from("ana"));
        let address = |message| Use::Address { person: &ana, channel: &lobby, message: Seq(message) };
        ledger.count(address(1), at(1));
        ledger.count(address(1), at(2));
        ledger.count(address(2), at(3));

        let refused = ledger.refuses(address(3), at(4), &policy);

        assert_eq!(refused, Some(UsedUp { budget: Budget::Addresses, free_at: Some(at(61)) }));
    }

    fn policy(guild: u32, gate: u32) -> Policy {
        let gate = serde_json::json!({
            "guild_statements_per_day": guild,
            "guild_evaluations_per_hour": guild,
            "addresses_per_minute": guild,
            "evaluations_per_hour": gate,
        });
        Settings::overlay(serde_json::json!({ "gate": gate })).unwrap().gate
    }

    fn at(secs: u64) -> Moment {
        Moment::from_micros(secs * 1_000_000)
    }
}
