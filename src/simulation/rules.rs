//! Settings from a seed, and those of them that the reference goes by.

use serde_json::{Value, json};

use super::dice::Dice;

/// The settings that are checked by themselves.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) state_timeout: f64,
    pub(super) side_timeout: f64,
    pub(super) main_timeout: f64,
    pub(super) streak: u32,
    /// The loop guard trips no sooner.
    pub(super) least_streak: u32,
    pub(super) max_buffer: usize,
    pub(super) evaluations_per_hour: u32,
    pub(super) guild_evaluations_per_hour: u32,
    pub(super) guild_statements_per_day: u32,
    pub(super) addresses_per_minute: u32,
    /// None is refused sooner.
    pub(super) least_addresses_per_minute: u32,
    pub(super) tokens_per_day: Option<u64>,
}

impl Rules {
    /// What one of the two allows: a process may begin with other settings than the one before it.
    pub(super) fn or(self, other: &Self) -> Self {
        Self {
            state_timeout: self.state_timeout.max(other.state_timeout),
            side_timeout: self.side_timeout.max(other.side_timeout),
            main_timeout: self.main_timeout.max(other.main_timeout),
            streak: self.streak.max(other.streak),
            least_streak: self.least_streak.min(other.least_streak),
            max_buffer: self.max_buffer.max(other.max_buffer),
            evaluations_per_hour: self.evaluations_per_hour.max(other.evaluations_per_hour),
            guild_evaluations_per_hour: self.guild_evaluations_per_hour.max(other.guild_evaluations_per_hour),
            guild_statements_per_day: self.guild_statements_per_day.max(other.guild_statements_per_day),
            addresses_per_minute: self.addresses_per_minute.max(other.addresses_per_minute),
            least_addresses_per_minute: self.least_addresses_per_minute.min(other.least_addresses_per_minute),
            tokens_per_day: self.tokens_per_day.zip(other.tokens_per_day).map(|(one, other)| one.max(other)),
        }
    }
}

/// Rules that are met within minutes, and budgets that bite now and then.
pub(super) fn settings(dice: &mut Dice) -> (Value, Rules) {
    let side_timeout = dice.between(3, 15) as f64;
    let main_timeout = dice.between(5, 60) as f64;
    let mut rare = |usual: u32, from: u64, to: u64| if dice.chance(0.2) { dice.between(from, to) as u32 } else { usual };
    let (evaluations_per_hour, guild_evaluations_per_hour) = (rare(120, 3, 20), rare(5_000, 5, 40));
    let (guild_statements_per_day, addresses_per_minute) = (rare(5_000, 1, 12), rare(20, 1, 4));
    let streak = dice.between(1, 4) as u32;
    let tokens = dice.chance(0.1).then(|| dice.between(200, 3_000));
    let rules = Rules {
        state_timeout: side_timeout + dice.between(1, 10) as f64,
        side_timeout,
        main_timeout,
        streak,
        least_streak: streak,
        max_buffer: *dice.pick(&[3, 8, 40, 200]),
        evaluations_per_hour,
        guild_evaluations_per_hour,
        guild_statements_per_day,
        addresses_per_minute,
        least_addresses_per_minute: addresses_per_minute,
        tokens_per_day: tokens,
    };
    let mut settings = json!({
        "gate": {
            "skip_when_other_addressed": dice.chance(0.7),
            "foreign_bots": dice.pick(&["ignore", "mentions", "all"]),
            "max_buffer": rules.max_buffer,
            "stale_after_secs": *dice.pick(&[30.0, 120.0, 600.0]),
            "stale_address_after_secs": *dice.pick(&[120.0, 3_600.0]),
            "evaluations_per_hour": evaluations_per_hour,
            "guild_evaluations_per_hour": guild_evaluations_per_hour,
            "addresses_per_minute": addresses_per_minute,
            "guild_statements_per_day": guild_statements_per_day,
        },
        "turn_taking": {
            "turn_delay_secs": *dice.pick(&[0.0, 0.5, 2.0]),
            "state_timeout_secs": rules.state_timeout,
            "max_companion_streak": rules.streak,
            "external_statement_timeout_secs": *dice.pick(&[5.0, 60.0]),
        },
        "closing": {
            "reopen_after": dice.between(2, 9),
            "episode_idle_secs": *dice.pick(&[20.0, 120.0, 1_800.0]),
        },
        "repetition": { "enabled": dice.chance(0.8), "judge": dice.pick(&["lexical", "model", "both"]) },
        "prompt": { "summary_after": *dice.pick(&[5, 12, 40]) },
        "models": {
            "side": {
                "timeout_secs": side_timeout, "first_token_timeout_secs": side_timeout, "idle_timeout_secs": side_timeout,
                "max_concurrent": dice.between(1, 8), "guild_max_concurrent": dice.between(1, 4),
            },
            "main": {
                "timeout_secs": main_timeout, "first_token_timeout_secs": main_timeout, "idle_timeout_secs": main_timeout,
                "max_concurrent": dice.between(1, 4), "guild_max_concurrent": dice.between(1, 2),
            },
            "pool": { "queue_capacity": *dice.pick(&[3, 10, 1_000]), "max_attempts": dice.between(1, 4) },
            "breaker": { "failures": dice.between(3, 10) },
        },
    });
    if dice.chance(0.3) {
        settings["turn_taking"]["max_turns"] = dice.between(1, 6).into();
    }
    if let Some(tokens) = tokens {
        settings["models"]["guild_tokens_per_day"] = tokens.into();
    }
    (settings, rules)
}
