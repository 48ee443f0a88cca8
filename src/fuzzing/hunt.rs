//! Runs targets on inputs from seeds, and reports broken rules.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::Target;
use super::change::{Bytes, inputs};

/// The number of inputs that one seed generates.
const INPUTS_PER_SEED: u32 = 16;
/// The minimum number of seeds for every target, whatever its cost.
const MIN_SEEDS: u64 = 2;
/// The maximum number of attempts to shrink an input that breaks a rule.
const MAX_SHRINK_ITERATIONS: u32 = 4_000;

/// Runs as many seeds as make up `runs` runs. Returns a summary line.
///
/// # Errors
/// The first seed that breaks a rule, with the command that repeats it.
pub(super) fn target(target: &Target, from: u64, runs: u64) -> Result<String, String> {
    let seeds = (runs / target.costs / u64::from(INPUTS_PER_SEED)).max(MIN_SEEDS);
    let valid = valid(target);
    (from..from + seeds).try_for_each(|seed| hunt(target, &valid, seed))?;
    Ok(format!("{:16} {:>9} runs, seeds {from} to {}", target.name, seeds * u64::from(INPUTS_PER_SEED), from + seeds - 1))
}

/// Runs one seed.
pub(super) fn seed(target: &Target, seed: u64) -> Result<(), String> {
    hunt(target, &valid(target), seed)
}

/// Runs one input. `origin` says where it comes from.
pub(super) fn one(target: &Target, input: &[u8], origin: &str) -> Result<(), String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    outcome.map_err(|panic| format!("{} breaks a rule of {}: {}\n{}", origin, target.name, panic_message(&*panic), shown(input)))
}

fn valid(target: &Target) -> Vec<Vec<u8>> {
    let stored = target.stored_failures().into_iter().map(|(_, input)| input);
    (target.valid)().into_iter().chain(stored).collect()
}

fn hunt(target: &Target, valid: &[Vec<u8>], seed: u64) -> Result<(), String> {
    let config = Config {
        cases: INPUTS_PER_SEED,
        failure_persistence: None,
        max_shrink_iters: MAX_SHRINK_ITERATIONS,
        ..Config::default()
    };
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    for (byte, name) in key[8..].iter_mut().zip(target.name.bytes()) {
        *byte = name;
    }
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &key));
    let outcome = runner.run(&inputs(valid.to_vec()), |Bytes(input)| {
        catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).map_err(|panic| TestCaseError::fail(panic_message(&*panic)))
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, Bytes(input))) => Err(report(target, seed, reason.message(), &input)),
        Err(TestError::Abort(reason)) => Err(format!("{} cannot be run with seed {seed}: {reason}", target.name)),
    }
}

fn report(target: &Target, seed: u64, reason: &str, input: &[u8]) -> String {
    let name = target.name;
    let path = std::env::temp_dir().join(format!("tertulia-fuzz-{name}-{seed}"));
    let location = match std::fs::write(&path, input) {
        Ok(()) => format!("the input is in {}; after the fix, store it as tests/fuzzing/{name}/<description>", path.display()),
        Err(error) => format!("the input could not be written to {}: {error}", path.display()),
    };
    format!(
        "a rule of {name} is broken: {reason}\n{}\n{location}\nrepeat with: TERTULIA_FUZZ_TARGET={name} TERTULIA_FUZZ_SEED={seed} cargo test --lib fuzzing::one_seed",
        shown(input)
    )
}

fn shown(input: &[u8]) -> String {
    const MOST: usize = 1_500;
    let rest = input.len().saturating_sub(MOST);
    let more = if rest > 0 { format!(" and {rest} bytes more") } else { String::new() };
    format!("input of {} bytes: {}{more}", input.len(), input[..input.len() - rest].escape_ascii())
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}
