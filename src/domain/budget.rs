//! How much may be asked and said within a while (docs/design/gate.md G-19).

mod sliding;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::sliding::is_over;
pub use self::sliding::{PIECE, Sliding};
use super::id::{ChannelId, CompanionId, PersonId, Seq};
use super::moment::Moment;
use crate::settings::gate::Gate as Policy;

/// The window of addresses.
pub const MINUTE: Duration = Duration::from_secs(60);
const HOUR_SECS: u64 = 3_600;
const DAY_SECS: u64 = 86_400;
/// The longest window: that of statements and tokens.
pub const DAY: Duration = Duration::from_secs(DAY_SECS);

type OfHour = Sliding<HOUR_SECS>;
/// What is used in a day: statements, tokens.
pub type OfDay = Sliding<DAY_SECS>;

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

/// What one guild has used: [sliding windows](Sliding), open at the old end. A refused use does not count, and what has no limit is not kept.
///
/// What it takes grows with the channels, companions and people that used something of late, and not with how much they used.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    evaluations: OfHour,
    evaluations_by_gate: HashMap<ChannelId, Vec<(CompanionId, OfHour)>>,
    /// In the order of time, each address by itself; no more than the limit.
    addresses: HashMap<PersonId, VecDeque<(Moment, ChannelId, Seq)>>,
    statements: OfDay,
    /// When the newest statement of each channel was made that is counted: all up to it are.
    spoke: HashMap<ChannelId, Moment>,
    /// Where somebody wants to speak in an open round, was selected, or has the floor: one statement each.
    promised: HashSet<ChannelId>,
    tokens: OfDay,
}

/// Something that used a budget.
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
    /// A statement that was made. It counts once, however often it is read: those of a channel are counted in the order in which they were
    /// made, one for a moment.
    Statement {
        /// Where.
        channel: &'a ChannelId,
    },
}

impl Ledger {
    /// Counts a question for a lull, an interjection or a turn; or says why it does not stay within its budgets. Where `unless` is used up, it
    /// is not asked either, and what is free last is told.
    pub fn take_evaluation(
        &mut self,
        channel: &ChannelId,
        companion: &CompanionId,
        now: Moment,
        policy: &Policy,
        unless: Option<UsedUp>,
    ) -> Result<(), UsedUp> {
        let (of_guild, of_gate) = (policy.guild_evaluations_per_hour.into(), policy.evaluations_per_hour.into());
        let guild = self.evaluations.full(now, of_guild, 0);
        let by_gate = evaluations_of(&mut self.evaluations_by_gate, channel, companion);
        let gate = by_gate.full(now, of_gate, 0);
        let guild = guild.map(|free_at| UsedUp { budget: Budget::GuildEvaluations, free_at });
        let gate = gate.map(|free_at| UsedUp { budget: Budget::Evaluations, free_at });
        if let Some(used_up) = UsedUp::last_of([unless, guild, gate].into_iter().flatten()) {
            return Err(used_up);
        }
        self.evaluations.count(1, now, of_guild);
        by_gate.count(1, now, of_gate);
        Ok(())
    }

    /// Whether this message, by which a person addressed somebody, counts already.
    pub fn knows_address(&self, person: &PersonId, channel: &ChannelId, message: Seq) -> bool {
        self.addresses.get(person).is_some_and(|addresses| is_among(addresses, channel, message))
    }

    /// Why one more message by which a person addressed somebody at this moment does not stay within the budget; none: it does. What was said
    /// in other rooms meanwhile, and is counted already, stands against it too.
    pub fn refuses_address(&mut self, person: &PersonId, at: Moment, policy: &Policy) -> Option<UsedUp> {
        let addresses = self.addresses.entry(person.clone()).or_default();
        forget_addresses(addresses, at);
        let too_many = addresses.len().checked_sub(policy.addresses_per_minute as usize)?;
        let free_at = addresses.get(too_many).map(|(at, ..)| *at + MINUTE);
        Some(UsedUp { budget: Budget::Addresses, free_at })
    }

    /// Why one more statement does not stay within the budget, those that are promised counted as made now; none: it does.
    pub fn refuses_statement(&mut self, now: Moment, policy: &Policy) -> Option<UsedUp> {
        let free_at = self.statements.full(now, policy.guild_statements_per_day.into(), self.promised.len() as u64)?;
        Some(UsedUp { budget: Budget::GuildStatements, free_at })
    }

    /// Why no more tokens may be used, if so many may in a day; none: some may.
    pub fn refuses_tokens(&mut self, now: Moment, most: Option<u64>) -> Option<UsedUp> {
        let free_at = self.tokens.full(now, most?, 0)?;
        Some(UsedUp { budget: Budget::GuildTokens, free_at })
    }

    /// Counts what was used.
    pub fn count(&mut self, used: Use<'_>, at: Moment, policy: &Policy) {
        match used {
            Use::Evaluation { channel, companion } => {
                self.evaluations.count(1, at, policy.guild_evaluations_per_hour.into());
                let by_gate = evaluations_of(&mut self.evaluations_by_gate, channel, companion);
                by_gate.count(1, at, policy.evaluations_per_hour.into());
            }
            Use::Address { person, channel, message } => {
                let addresses = self.addresses.entry(person.clone()).or_default();
                forget_addresses(addresses, at);
                if !is_among(addresses, channel, message) {
                    let place = addresses.partition_point(|(other, ..)| *other <= at);
                    addresses.insert(place, (at, channel.clone(), message));
                }
            }
            Use::Statement { channel } => {
                if self.spoke.get(channel).is_none_or(|newest| *newest < at) {
                    self.spoke.insert(channel.clone(), at);
                    self.statements.count(1, at, policy.guild_statements_per_day.into());
                }
            }
        }
    }

    /// Counts tokens that were used, read and written, if only so many may be used in a day (`models.guild_tokens_per_day`).
    pub fn count_tokens(&mut self, tokens: u64, at: Moment, most: Option<u64>) {
        if let Some(most) = most {
            self.tokens.count(tokens, at, most);
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
        self.evaluations.prune(now);
        self.statements.prune(now);
        self.tokens.prune(now);
        self.evaluations_by_gate.retain(|_, gates| {
            gates.retain_mut(|(_, used)| used.prune(now));
            !gates.is_empty()
        });
        self.spoke.retain(|_, newest| !is_over(*newest, now, DAY));
        self.addresses.retain(|_, used| used.back().is_some_and(|(at, ..)| !is_over(*at, now, MINUTE)));
    }
}

fn evaluations_of<'a>(
    by_gate: &'a mut HashMap<ChannelId, Vec<(CompanionId, OfHour)>>,
    channel: &ChannelId,
    companion: &CompanionId,
) -> &'a mut OfHour {
    let gates = by_gate.entry(channel.clone()).or_default();
    let place = gates.iter().position(|(other, _)| other == companion).unwrap_or_else(|| {
        gates.reserve_exact(1);
        gates.push((companion.clone(), OfHour::default()));
        gates.len() - 1
    });
    &mut gates[place].1
}

fn is_among(addresses: &VecDeque<(Moment, ChannelId, Seq)>, channel: &ChannelId, message: Seq) -> bool {
    addresses.iter().any(|(_, known, seq)| *seq == message && known == channel)
}

fn forget_addresses(addresses: &mut VecDeque<(Moment, ChannelId, Seq)>, now: Moment) {
    while addresses.front().is_some_and(|(at, ..)| is_over(*at, now, MINUTE)) {
        addresses.pop_front();
    }
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
        ledger.count(statement, at(10), &policy);
        ledger.count(statement, at(20), &policy);

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
        for at in [at(10), at(20), at(10), at(20)] {
            ledger.count(Use::Statement { channel: &lobby }, at, &policy);
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
            ledger.count_tokens(tokens, at(secs), Some(60));
        }

        let within = ledger.refuses_tokens(at(4), Some(121));
        let unlimited = ledger.refuses_tokens(at(4), None);
        let full = ledger.refuses_tokens(at(4), Some(60));
        let free = ledger.refuses_tokens(at(86_402), Some(60));

        assert_eq!((within, unlimited, free), (None, None, None));
        assert_eq!(full, Some(UsedUp { budget: Budget::GuildTokens, free_at: Some(at(86_402)) }));
    }

    #[test]
    fn what_has_no_limit_is_not_kept() {
        let mut ledger = Ledger::default();

        ledger.count_tokens(40, at(1), None);

        assert_eq!(ledger.refuses_tokens(at(2), Some(40)), None);
    }

    #[test]
    fn of_two_budgets_the_one_that_is_free_last_is_named() {
        let policy = policy(2, 1);
        let mut ledger = Ledger::default();
        let (lobby, den, aria) = (ChannelId::from("lobby"), ChannelId::from("den"), CompanionId::from("aria"));
        ledger.count(Use::Evaluation { channel: &den, companion: &aria }, at(1), &policy);
        ledger.count(Use::Evaluation { channel: &lobby, companion: &aria }, at(2), &policy);

        let both = ledger.take_evaluation(&lobby, &aria, at(3), &policy, None);
        let guild = ledger.take_evaluation(&lobby, &CompanionId::from("bruno"), at(3), &policy, None);

        assert_eq!(both, Err(UsedUp { budget: Budget::Evaluations, free_at: Some(at(3_602)) }));
        assert_eq!(guild, Err(UsedUp { budget: Budget::GuildEvaluations, free_at: Some(at(3_601)) }));
    }

    #[test]
    fn a_question_that_something_else_stands_against_uses_nothing() {
        let policy = policy(1, 5);
        let mut ledger = Ledger::default();
        let (lobby, aria) = (ChannelId::from("lobby"), CompanionId::from("aria"));
        let no_tokens = UsedUp { budget: Budget::GuildTokens, free_at: Some(at(9)) };

        let refused = ledger.take_evaluation(&lobby, &aria, at(1), &policy, Some(no_tokens));
        let taken = ledger.take_evaluation(&lobby, &aria, at(2), &policy, None);
        let full = ledger.take_evaluation(&lobby, &aria, at(3), &policy, None);

        assert_eq!((refused, taken), (Err(no_tokens), Ok(())));
        assert_eq!(full, Err(UsedUp { budget: Budget::GuildEvaluations, free_at: Some(at(3_602)) }));
    }

    #[test]
    fn a_person_who_addresses_too_often_waits_for_the_oldest_to_be_a_minute_old() {
        let policy = policy(2, 5);
        let mut ledger = Ledger::default();
        let (lobby, ana) = (ChannelId::from("lobby"), PersonId::from("ana"));
        let address = |message| Use::Address { person: &ana, channel: &lobby, message: Seq(message) };
        ledger.count(address(1), at(1), &policy);
        ledger.count(address(1), at(2), &policy);
        ledger.count(address(2), at(3), &policy);

        let refused = ledger.refuses_address(&ana, at(4), &policy);

        assert_eq!(refused, Some(UsedUp { budget: Budget::Addresses, free_at: Some(at(61)) }));
    }

    #[test]
    fn an_address_that_is_heard_late_counts_from_when_it_was_said() {
        let policy = policy(2, 5);
        let mut ledger = Ledger::default();
        let (lobby, den, ana) = (ChannelId::from("lobby"), ChannelId::from("den"), PersonId::from("ana"));
        ledger.count(Use::Address { person: &ana, channel: &lobby, message: Seq(1) }, at(30), &policy);
        ledger.count(Use::Address { person: &ana, channel: &den, message: Seq(1) }, at(10), &policy);

        let full = ledger.refuses_address(&ana, at(69), &policy);
        let free = ledger.refuses_address(&ana, at(70), &policy);

        assert_eq!((full, free), (Some(UsedUp { budget: Budget::Addresses, free_at: Some(at(70)) }), None));
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
