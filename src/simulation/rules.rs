//! Settings from a seed, and those of them that the reference checks.

use serde_json::{Value, json};

use super::dice::Dice;

/// The settings that the reference checks.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) state_timeout: f64,
    pub(super) side_timeout: f64,
    pub(super) streak: u32,
    /// The loop guard trips no sooner.
    pub(super) least_streak: u32,
    pub(super) max_buffer: usize,
    pub(super) evaluations_per_hour: u32,
    pub(super) guild_evaluations_per_hour: u32,
    pub(super) guild_statements_per_day: u32,
    pub(super) addresses_per_minute: u32,
    /// No address is refused sooner.
    pub(super) least_addresses_per_minute: u32,
    pub(super) tokens_per_day: Option<u64>,
    /// Of settings that may differ between two lives, the smallest and the largest value; times in seconds.
    pub(super) main_timeouts: Span,
    pub(super) turn_delays: Span,
    pub(super) external_patience: Span,
    pub(super) floor_timeouts: Span,
    /// There may be a limit of turns.
    pub(super) limits_turns: bool,
    /// If people say more, a statement begins again at least `least_replans` and at most `most_replans` times.
    pub(super) least_replans: u32,
    pub(super) most_replans: u32,
    /// The least and the most statements that acknowledge events in a minute, before other events wait.
    pub(super) least_acknowledgements: u32,
    pub(super) most_acknowledgements: u32,
    /// No message is stale sooner, and no buffer overflows with fewer.
    pub(super) least_stale_after: f64,
    pub(super) least_buffer: usize,
    /// The pool rejects no call while fewer are waiting.
    pub(super) least_queue: u64,
    /// Messages to others are not asked about.
    pub(super) skips_calls: bool,
    /// Whether the pre-gate decides.
    pub(super) skips_irrelevant: bool,
}

/// The smallest and the largest value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Span {
    const fn of(value: f64) -> Self {
        Self { least: value, most: value }
    }

    const fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

impl Rules {
    /// The rules that either of the two allows: a process may start with other settings than the one before it.
    pub(super) fn or(self, other: &Self) -> Self {
        Self {
            state_timeout: self.state_timeout.max(other.state_timeout),
            side_timeout: self.side_timeout.max(other.side_timeout),
            streak: self.streak.max(other.streak),
            least_streak: self.least_streak.min(other.least_streak),
            max_buffer: self.max_buffer.max(other.max_buffer),
            evaluations_per_hour: self.evaluations_per_hour.max(other.evaluations_per_hour),
            guild_evaluations_per_hour: self.guild_evaluations_per_hour.max(other.guild_evaluations_per_hour),
            guild_statements_per_day: self.guild_statements_per_day.max(other.guild_statements_per_day),
            addresses_per_minute: self.addresses_per_minute.max(other.addresses_per_minute),
            least_addresses_per_minute: self.least_addresses_per_minute.min(other.least_addresses_per_minute),
            tokens_per_day: self.tokens_per_day.zip(other.tokens_per_day).map(|(one, other)| one.max(other)),
            main_timeouts: self.main_timeouts.or(other.main_timeouts),
            turn_delays: self.turn_delays.or(other.turn_delays),
            external_patience: self.external_patience.or(other.external_patience),
            floor_timeouts: self.floor_timeouts.or(other.floor_timeouts),
            least_replans: self.least_replans.min(other.least_replans),
            most_replans: self.most_replans.max(other.most_replans),
            least_acknowledgements: self.least_acknowledgements.min(other.least_acknowledgements),
            most_acknowledgements: self.most_acknowledgements.max(other.most_acknowledgements),
            least_stale_after: self.least_stale_after.min(other.least_stale_after),
            least_buffer: self.least_buffer.min(other.least_buffer),
            least_queue: self.least_queue.min(other.least_queue),
            skips_calls: self.skips_calls || other.skips_calls,
            skips_irrelevant: self.skips_irrelevant || other.skips_irrelevant,
            limits_turns: self.limits_turns || other.limits_turns,
        }
    }
}

/// Settings whose timeouts pass within minutes, and whose budgets are exceeded now and then.
pub(super) fn settings(dice: &mut Dice) -> (Value, Rules) {
    let side_timeout = dice.between(3, 15) as f64;
    let main_timeout = dice.between(5, 60) as f64;
    let mut rare = |usual: u32, from: u64, to: u64| if dice.chance(0.2) { dice.between(from, to) as u32 } else { usual };
    let (evaluations_per_hour, guild_evaluations_per_hour) = (rare(120, 3, 20), rare(5_000, 5, 40));
    let (guild_statements_per_day, addresses_per_minute) = (rare(5_000, 1, 12), rare(20, 1, 4));
    let streak = dice.between(1, 4) as u32;
    let acknowledgements = 1 + u32::from(streak > 1);
    let tokens = dice.chance(0.1).then(|| dice.between(200, 3_000));
    let mut rules = Rules {
        state_timeout: side_timeout + dice.between(1, 10) as f64,
        side_timeout,
        streak,
        least_streak: streak,
        max_buffer: *dice.pick(&[3, 8, 40, 200]),
        evaluations_per_hour,
        guild_evaluations_per_hour,
        guild_statements_per_day,
        addresses_per_minute,
        least_addresses_per_minute: addresses_per_minute,
        tokens_per_day: tokens,
        main_timeouts: Span::of(main_timeout),
        turn_delays: Span::default(),
        external_patience: Span::default(),
        floor_timeouts: Span::default(),
        least_replans: 0,
        most_replans: 0,
        least_acknowledgements: acknowledgements,
        most_acknowledgements: acknowledgements,
        least_stale_after: 0.0,
        least_buffer: 0,
        least_queue: 0,
        skips_calls: false,
        skips_irrelevant: false,
        limits_turns: false,
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
            "acknowledgements_per_minute": acknowledgements,
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
        "memory": { "notes_after": 10 },
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
    if settings["prompt"]["summary_after"] == 5 {
        // Little of the talk fits, so that older messages are recalled.
        settings["prompt"]["statement_tokens"] = 1_500.into();
    }
    if dice.chance(0.3) {
        rules.limits_turns = true;
        settings["turn_taking"]["max_turns"] = dice.between(1, 6).into();
    }
    add_floor(&mut settings, &mut rules, &mut Dice::new(dice.clone().next(), "floor"));
    settings["turn_taking"]["voting"] = (*Dice::new(dice.clone().next(), "voting").pick(&["each", "together"])).into();
    if let Some(tokens) = tokens {
        settings["models"]["guild_tokens_per_day"] = tokens.into();
    }
    let secs = |section: &str, key: &str| settings[section][key].as_f64().unwrap_or_default();
    rules.turn_delays = Span::of(secs("turn_taking", "turn_delay_secs"));
    rules.external_patience = Span::of(secs("turn_taking", "external_statement_timeout_secs"));
    rules.least_stale_after = secs("gate", "stale_after_secs");
    rules.least_buffer = rules.max_buffer;
    rules.least_queue = settings["models"]["pool"]["queue_capacity"].as_u64().unwrap_or_default();
    if Dice::new(dice.clone().next(), "pre-gate").chance(0.3) {
        rules.skips_irrelevant = true;
        settings["gate"]["pre_gate"] = "skip".into();
    }
    rules.skips_calls = settings["gate"]["skip_when_other_addressed"].as_bool().unwrap_or_default();
    (settings, rules)
}

/// How long a companion keeps the floor, and how often a statement is begun again. In some runs the main model may take its time.
fn add_floor(settings: &mut Value, rules: &mut Rules, dice: &mut Dice) {
    let short = *dice.pick(&[2.0, 4.5, 7.5]);
    let floor_timeout = *dice.pick(&[short, 10.0, 20.0]);
    rules.most_replans = *dice.pick(&[0, 1, 2, 2]);
    rules.least_replans = rules.most_replans;
    rules.floor_timeouts = Span::of(floor_timeout);
    settings["turn_taking"]["floor_timeout_secs"] = floor_timeout.into();
    settings["reply"] = json!({ "max_replans": rules.most_replans });
    if dice.chance(0.4) {
        rules.main_timeouts = Span::of(100.0);
        for key in ["timeout_secs", "first_token_timeout_secs", "idle_timeout_secs"] {
            settings["models"]["main"][key] = 100.0.into();
        }
    }
}
