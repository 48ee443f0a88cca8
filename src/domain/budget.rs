//! Budgets: the numbers of questions, addresses, statements and tokens that are allowed in a period of time (docs/design/gate.md
//! G-19).

mod sliding;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::sliding::is_expired;
pub use self::sliding::{PIECE, Sliding};
use super::id::{ChannelId, CompanionId, PersonId, Seq};
use super::moment::Moment;
use super::named::named;
use crate::policy::gate::Gate as Policy;

/// The window of the budget of addresses.
pub const MINUTE: Duration = Duration::from_secs(60);
const HOUR_SECS: u64 = 3_600;
const DAY_SECS: u64 = 86_400;
/// The window of the budgets of statements and tokens. It is the longest one.
pub const DAY: Duration = Duration::from_secs(DAY_SECS);

/// The maximum time by which a use may be ahead of the machine's clock. A use dated later was recorded while that clock was
/// wrong, and does not count.
pub const AHEAD: Duration = Duration::from_secs(HOUR_SECS);

type OfHour = Sliding<HOUR_SECS>;
/// Uses within a day: statements or tokens.
pub type OfDay = Sliding<DAY_SECS>;

named! {
    /// A kind of budget, named by its setting.
    pub enum Budget {
        /// `gate.evaluations_per_hour`, for one companion in one channel.
        Evaluations = "evaluations",
        /// `gate.guild_evaluations_per_hour`, for all companions of a guild together.
        GuildEvaluations = "guild_evaluations",
        /// `gate.addresses_per_minute`, for one person in one guild.
        Addresses = "addresses",
        /// `gate.guild_statements_per_day`, for all companions of a guild together.
        GuildStatements = "guild_statements",
        /// `models.guild_tokens_per_day`, for all companions of a guild together.
        GuildTokens = "guild_tokens",
    }
}

impl Budget {
    /// Whether all companions of a guild share the budget.
    pub const fn is_of_guild(self) -> bool {
        matches!(self, Self::GuildEvaluations | Self::GuildStatements | Self::GuildTokens)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedUp {
    pub budget: Budget,
    /// The time at which one more use is allowed, if nothing is used until then. `None` if the settings never allow one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_at: Option<Moment>,
}

impl UsedUp {
    /// Of several used-up budgets, the one that becomes free last. The request has to wait for that one.
    pub fn last_of(several: impl IntoIterator<Item = Self>) -> Option<Self> {
        several.into_iter().max_by_key(|one| (one.free_at.is_none(), one.free_at))
    }
}

/// The uses of one guild, in [sliding windows](Sliding) that are open at the old end. A refused use does not count. Uses without
/// a limit are not stored.
///
/// It uses the machine's clock, if that is known. The time of a channel never decreases, so it may be ahead of the clock if the
/// clock was wrong before.
///
/// Memory grows with the number of channels, companions and people with recent uses, not with the amount of use.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The time of the machine's clock.
    clock: Option<Moment>,
    evaluations: OfHour,
    evaluations_by_gate: HashMap<ChannelId, Vec<(CompanionId, OfHour)>>,
    /// Every address, ordered by time. A refused one is not stored, so the number exceeds the limit only if the limit was lowered.
    addresses: HashMap<PersonId, VecDeque<(Moment, ChannelId, Seq)>>,
    statements: OfDay,
    /// The time and the number of the newest counted statement of each channel. All statements up to it are counted. The number
    /// is `Seq::NONE` while the statements are known only from the record of usage.
    spoke: HashMap<ChannelId, (Moment, Seq)>,
    /// The number of statements that are expected in each channel, if not zero, and their sum.
    promised: (HashMap<ChannelId, u32>, u64),
    tokens: OfDay,
    /// Calls of tools from outside this server: all of the guild, and by the person who is their cause. Those of people are not on record, so they begin
    /// anew with a restart.
    calls: OfDay,
    calls_by_person: HashMap<PersonId, OfDay>,
}

/// The most calls of tools from outside this server within a day (docs/design/tools.md X-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyCalls {
    /// Of a guild.
    pub guild: u64,
    /// Of a person in a guild.
    pub person: u64,
}

/// One use of a budget.
#[derive(Clone, Copy, Debug)]
pub enum Use<'a> {
    /// A question for a lull, an interjection, a turn or a silence.
    Evaluation { channel: &'a ChannelId, companion: &'a CompanionId },
    /// A message that addresses companions. It counts once, regardless of the number of addressees.
    Address { person: &'a PersonId, channel: &'a ChannelId, message: Seq },
    /// A posted statement. It counts once, regardless of how often its event is handled: the statements of a channel are counted
    /// in order.
    Statement {
        channel: &'a ChannelId,
        /// The statement's number. `Seq::NONE` if it comes from the record of usage.
        message: Seq,
    },
}

impl Ledger {
    /// Sets the time of the machine's clock.
    pub fn set_clock(&mut self, machine: Moment) {
        if self.clock.is_some_and(|before| machine + MINUTE < before) {
            self.evaluations.set_back(machine);
            self.statements.set_back(machine);
            self.tokens.set_back(machine);
            self.calls.set_back(machine);
            self.calls_by_person.values_mut().for_each(|used| used.set_back(machine));
            self.evaluations_by_gate.values_mut().flatten().for_each(|(_, used)| used.set_back(machine));
            self.addresses.values_mut().flatten().for_each(|(at, ..)| *at = machine.min(*at));
        }
        self.clock = Some(machine);
    }

    fn by_clock(&self, at: Moment) -> Moment {
        self.clock.map_or(at, |clock| clock.min(at))
    }

    /// Counts a question for a lull, an interjection, a turn or a silence, if all budgets allow it. Otherwise nothing is counted, and the used-up
    /// budget that becomes free last is returned. `unless` is a budget that is already known to be used up.
    pub fn take_evaluation(
        &mut self,
        channel: &ChannelId,
        companion: &CompanionId,
        now: Moment,
        policy: &Policy,
        unless: Option<UsedUp>,
    ) -> Result<(), UsedUp> {
        let now = self.by_clock(now);
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

    /// Whether this message of a person is already counted as an address.
    pub fn knows_address(&self, person: &PersonId, channel: &ChannelId, message: Seq) -> bool {
        self.addresses.get(person).is_some_and(|addresses| contains_address(addresses, channel, message))
    }

    /// Whether a recorded statement is already counted, or does not count because it is dated ahead. Several statements may have
    /// the same time, because recorded times never decrease.
    pub fn knows_statement(&self, channel: &ChannelId, message: Seq, at: Moment) -> bool {
        if self.clock.is_some_and(|clock| at > clock + AHEAD) {
            return true;
        }
        let is_known = |(newest_at, newest): &(Moment, Seq)| match *newest {
            Seq::NONE => at <= *newest_at,
            newest => message <= newest,
        };
        self.spoke.get(channel).is_some_and(is_known)
    }

    /// The budget that refuses one more address by this person at `at`. `None` if it is allowed. Counted addresses in other
    /// channels that are later than `at` count, too.
    pub fn refuses_address(&mut self, person: &PersonId, at: Moment, policy: &Policy) -> Option<UsedUp> {
        let at = self.by_clock(at);
        let addresses = self.addresses.entry(person.clone()).or_default();
        forget_addresses(addresses, at);
        let too_many = addresses.len().checked_sub(policy.addresses_per_minute as usize)?;
        let free_at = addresses.get(too_many).map(|(at, ..)| *at + MINUTE);
        Some(UsedUp { budget: Budget::Addresses, free_at })
    }

    /// The people who may not address companions for now.
    pub fn over_addresses(&mut self, at: Moment, policy: &Policy) -> BTreeSet<PersonId> {
        let people: Vec<_> = self.addresses.keys().cloned().collect();
        people.into_iter().filter(|person| self.refuses_address(person, at, policy).is_some()).collect()
    }

    /// The budget that refuses one more statement. `None` if it is allowed. Promised statements count as made now.
    pub fn refuses_statement(&mut self, now: Moment, policy: &Policy) -> Option<UsedUp> {
        let now = self.by_clock(now);
        let free_at = self.statements.full(now, policy.guild_statements_per_day.into(), self.promised.1)?;
        Some(UsedUp { budget: Budget::GuildStatements, free_at })
    }

    /// The budget that refuses more tokens, with a daily limit of `most` tokens. `None` if some are left.
    pub fn refuses_tokens(&mut self, now: Moment, most: Option<u64>) -> Option<UsedUp> {
        let free_at = self.tokens.full(self.by_clock(now), most?, 0)?;
        Some(UsedUp { budget: Budget::GuildTokens, free_at })
    }

    /// Counts one use at the time `at`.
    pub fn count(&mut self, used: Use<'_>, at: Moment, policy: &Policy) {
        let on_record = at;
        let at = self.by_clock(at);
        match used {
            Use::Evaluation { channel, companion } => {
                self.evaluations.count(1, at, policy.guild_evaluations_per_hour.into());
                let by_gate = evaluations_of(&mut self.evaluations_by_gate, channel, companion);
                by_gate.count(1, at, policy.evaluations_per_hour.into());
            }
            Use::Address { person, channel, message } => {
                let addresses = self.addresses.entry(person.clone()).or_default();
                forget_addresses(addresses, at);
                if !contains_address(addresses, channel, message) {
                    let index = addresses.partition_point(|(other, ..)| *other <= at);
                    addresses.insert(index, (at, channel.clone(), message));
                }
            }
            Use::Statement { channel, message } => {
                let (newest_at, newest) = self.spoke.entry(channel.clone()).or_default();
                if message == Seq::NONE || message > *newest {
                    (*newest_at, *newest) = (on_record.max(*newest_at), message.max(*newest));
                    self.statements.count(1, at, policy.guild_statements_per_day.into());
                }
            }
        }
    }

    /// Counts used tokens, input and output. `most` is the daily limit (`models.guild_tokens_per_day`). They count without one, too, because a limit
    /// may be set at any time.
    pub fn count_tokens(&mut self, tokens: u64, at: Moment, most: Option<u64>) {
        self.tokens.count(tokens, self.by_clock(at), most.unwrap_or(u64::MAX));
    }

    /// Counts a call, unless the guild or this person has made all calls of a day. Returns whether it may be made.
    pub fn take_call(&mut self, person: Option<&PersonId>, now: Moment, most: DailyCalls) -> bool {
        let now = self.by_clock(now);
        let mut by_person = person.map(|person| self.calls_by_person.entry(person.clone()).or_default());
        let is_over = by_person.as_mut().is_some_and(|used| used.full(now, most.person, 0).is_some())
            || self.calls.full(now, most.guild, 0).is_some();
        if !is_over {
            by_person.into_iter().for_each(|used| used.count(1, now, most.person));
            self.calls.count(1, now, most.guild);
        }
        !is_over
    }

    /// Counts a call from before the start.
    pub fn count_call(&mut self, at: Moment, most: DailyCalls) {
        self.calls.count(1, self.by_clock(at), most.guild);
    }

    /// Sets the number of statements that are expected in a channel. Each counts until it is posted or given up.
    pub fn promise_statements(&mut self, channel: &ChannelId, expected: u32) {
        let (by_channel, sum) = &mut self.promised;
        let before = by_channel.get(channel).copied().unwrap_or_default();
        if before == expected {
            return;
        }
        *sum = (*sum + u64::from(expected)).saturating_sub(before.into());
        if expected == 0 {
            by_channel.remove(channel);
        } else if let Some(promised) = by_channel.get_mut(channel) {
            *promised = expected;
        } else {
            by_channel.insert(channel.clone(), expected);
        }
    }

    /// Removes entries with expired windows, so that memory stays small for a guild with many people and channels.
    pub fn prune(&mut self, now: Moment) {
        self.evaluations.prune(now);
        self.statements.prune(now);
        self.tokens.prune(now);
        self.calls.prune(now);
        self.calls_by_person.retain(|_, used| used.prune(now));
        self.evaluations_by_gate.retain(|_, gates| {
            gates.retain_mut(|(_, used)| used.prune(now));
            !gates.is_empty()
        });
        self.spoke.retain(|_, (newest_at, _)| !is_expired(*newest_at, now, DAY));
        self.addresses.retain(|_, used| used.back().is_some_and(|(at, ..)| !is_expired(*at, now, MINUTE)));
    }
}

fn evaluations_of<'a>(
    by_gate: &'a mut HashMap<ChannelId, Vec<(CompanionId, OfHour)>>,
    channel: &ChannelId,
    companion: &CompanionId,
) -> &'a mut OfHour {
    let gates = by_gate.entry(channel.clone()).or_default();
    let index = gates.iter().position(|(other, _)| other == companion).unwrap_or_else(|| {
        gates.reserve_exact(1);
        gates.push((companion.clone(), OfHour::default()));
        gates.len() - 1
    });
    &mut gates[index].1
}

fn contains_address(addresses: &VecDeque<(Moment, ChannelId, Seq)>, channel: &ChannelId, message: Seq) -> bool {
    addresses.iter().any(|(_, other, seq)| *seq == message && other == channel)
}

fn forget_addresses(addresses: &mut VecDeque<(Moment, ChannelId, Seq)>, now: Moment) {
    while addresses.front().is_some_and(|(at, ..)| is_expired(*at, now, MINUTE)) {
        addresses.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_budget_returns_when_one_more_use_is_allowed() {
        let policy = policy(2, 5);
        let lobby = "lobby".into();
        let statement = |message| Use::Statement { channel: &lobby, message: Seq(message) };
        let mut ledger = Ledger::default();
        ledger.count(statement(1), at(10), &policy);
        ledger.count(statement(2), at(20), &policy);

        let full = ledger.refuses_statement(at(30), &policy);
        let still = ledger.refuses_statement(at(86_409), &policy);
        let free = ledger.refuses_statement(at(86_410), &policy);

        let used_up = UsedUp { budget: Budget::GuildStatements, free_at: Some(at(86_410)) };
        assert_eq!((full, still, free), (Some(used_up), Some(used_up), None));
    }

    #[test]
    fn a_budget_of_zero_is_never_free() {
        let mut ledger = Ledger::default();

        let refused = ledger.refuses_statement(at(30), &policy(0, 5));

        assert_eq!(refused, Some(UsedUp { budget: Budget::GuildStatements, free_at: None }));
    }

    #[test]
    fn a_statement_counts_once_and_as_soon_as_it_is_promised() {
        let policy = policy(2, 5);
        let (lobby, den) = (ChannelId::from("lobby"), ChannelId::from("den"));
        let mut ledger = Ledger::default();
        for (message, at) in [(1, at(10)), (2, at(20)), (1, at(10)), (2, at(20))] {
            ledger.count(Use::Statement { channel: &lobby, message: Seq(message) }, at, &policy);
        }
        let refused = |ledger: &mut Ledger, secs| ledger.refuses_statement(at(secs), &policy).map(|used_up| used_up.free_at);

        let full = refused(&mut ledger, 30);
        let free = refused(&mut ledger, 86_415);
        ledger.promise_statements(&den, 1);
        ledger.promise_statements(&den, 1);
        let promised = refused(&mut ledger, 86_415);
        ledger.promise_statements(&den, 0);

        assert_eq!((full, free, promised), (Some(Some(at(86_410))), None, Some(Some(at(86_420)))));
        assert_eq!(refused(&mut ledger, 86_415), None);
    }

    #[test]
    fn statements_of_one_moment_count_each_and_those_of_the_record_of_usage_once() {
        let (lobby, policy) = (ChannelId::from("lobby"), policy(4, 5));
        let statement = |message| Use::Statement { channel: &lobby, message };
        let mut ledger = Ledger::default();
        ledger.count(statement(Seq::NONE), at(10), &policy);
        ledger.count(statement(Seq::NONE), at(20), &policy);

        let known_by_time = [10, 20, 21].map(|secs| ledger.knows_statement(&lobby, Seq(secs), at(secs)));
        ledger.count(statement(Seq(7)), at(20), &policy);
        let refused_third = ledger.refuses_statement(at(20), &policy).is_some();
        ledger.count(statement(Seq(9)), at(20), &policy);
        let known_by_number = [6, 7, 9, 10].map(|message| ledger.knows_statement(&lobby, Seq(message), at(20)));

        assert_eq!(known_by_time, [true, true, false]);
        assert_eq!(known_by_number, [true, true, true, false]);
        assert_eq!((refused_third, ledger.refuses_statement(at(20), &policy).is_some()), (false, true));
    }

    #[test]
    fn tokens_are_available_again_when_enough_of_them_are_a_day_old() {
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
    fn a_limit_that_is_set_later_counts_the_tokens_before_it() {
        let mut ledger = Ledger::default();

        ledger.count_tokens(40, at(1), None);

        assert_eq!(ledger.refuses_tokens(at(2), None), None);
        assert!(ledger.refuses_tokens(at(2), Some(40)).is_some());
    }

    #[test]
    fn the_budget_that_is_free_last_is_returned() {
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
    fn a_question_that_another_budget_refuses_uses_nothing() {
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
    fn uses_of_a_room_whose_time_is_ahead_count_by_the_clock() {
        let (policy, days) = (policy(2, 1), Duration::from_secs(60 * DAY_SECS));
        let (lobby, aria, ana) = (ChannelId::from("lobby"), CompanionId::from("aria"), PersonId::from("ana"));
        let mut ledger = Ledger::default();
        ledger.set_clock(at(100));
        let statement = |message| Use::Statement { channel: &lobby, message: Seq(message) };
        let address = |message| Use::Address { person: &ana, channel: &lobby, message: Seq(message) };
        for message in 1..=2 {
            ledger.count(statement(message), at(90) + days, &policy);
            ledger.count(address(message), at(90) + days, &policy);
        }
        let first = ledger.take_evaluation(&lobby, &aria, at(90) + days, &policy, None);

        let free_at = |used_up: Option<UsedUp>| used_up.and_then(|used_up| used_up.free_at);
        let second = ledger.take_evaluation(&lobby, &aria, at(90) + days, &policy, None);
        let statements = free_at(ledger.refuses_statement(at(95) + days, &policy));
        let addresses = free_at(ledger.refuses_address(&ana, at(95) + days, &policy));

        assert_eq!((first, free_at(second.err())), (Ok(()), Some(at(100 + HOUR_SECS))));
        assert_eq!((statements, addresses), (Some(at(100 + DAY_SECS)), Some(at(160))));
    }

    #[test]
    fn what_was_used_before_the_clock_was_set_back_counts_as_used_now() {
        let (policy, days) = (policy(1, 1), Duration::from_secs(60 * DAY_SECS));
        let (lobby, aria) = (ChannelId::from("lobby"), CompanionId::from("aria"));
        let mut ledger = Ledger::default();
        ledger.set_clock(at(100) + days);
        ledger.count(Use::Statement { channel: &lobby, message: Seq(1) }, at(100) + days, &policy);
        ledger.take_evaluation(&lobby, &aria, at(100) + days, &policy, None).expect("the first");
        ledger.count_tokens(60, at(100) + days, Some(60));

        ledger.set_clock(at(200));
        let statements = ledger.refuses_statement(at(200), &policy).and_then(|used_up| used_up.free_at);
        let tokens = ledger.refuses_tokens(at(200), Some(60)).and_then(|used_up| used_up.free_at);
        let evaluations = ledger.take_evaluation(&lobby, &aria, at(200), &policy, None).err().and_then(|used_up| used_up.free_at);

        assert_eq!((statements, tokens), (Some(at(200 + DAY_SECS)), Some(at(200 + DAY_SECS))));
        assert_eq!(evaluations, Some(at(200 + HOUR_SECS)));
    }

    #[test]
    fn a_statement_on_record_that_is_dated_ahead_does_not_count() {
        let (lobby, mut ledger) = (ChannelId::from("lobby"), Ledger::default());
        ledger.set_clock(at(100));

        let known = [100, 100 + HOUR_SECS, 101 + HOUR_SECS].map(|secs| ledger.knows_statement(&lobby, Seq(1), at(secs)));

        assert_eq!(known, [false, false, true]);
    }

    #[test]
    fn a_late_address_counts_from_the_time_when_it_was_said() {
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
        crate::samples::policies(&serde_json::json!({ "gate": gate })).gate
    }

    fn at(secs: u64) -> Moment {
        Moment::from_micros(secs * 1_000_000)
    }
}
