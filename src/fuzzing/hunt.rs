//! Runs targets on inputs from seeds, and tells what broke a rule.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::Target;
use super::change::{Bytes, inputs};

/// Inputs that one seed gives.
const OF_A_SEED: u32 = 16;
/// So many seeds are run of every target, however much a run of it costs.
const LEAST_SEEDS: u64 = 4;
/// Shorter ones are tried so often once a rule is broken.
const SHORTENED: u32 = 4_000;

/// Runs as many seeds as come to this many runs, and tells how many it ran.
///
/// # Errors
/// The first seed that breaks a rule, and how to run it again.
pub(super) fn target(target: &Target, from: u64, runs: u64) -> Result<String, String> {
    let seeds = (runs / target.costs / u64::from(OF_A_SEED)).max(LEAST_SEEDS);
    let valid = valid(target);
    (from..from + seeds).try_for_each(|seed| hunt(target, &valid, seed))?;
    Ok(format!("{:16} {:>9} runs, seeds {from} to {}", target.name, seeds * u64::from(OF_A_SEED), from + seeds - 1))
}

/// Runs one seed.
pub(super) fn seed(target: &Target, seed: u64) -> Result<(), String> {
    hunt(target, &valid(target), seed)
}

/// Runs one input, which comes from `whence`.
pub(super) fn one(target: &Target, input: &[u8], whence: &str) -> Result<(), String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    outcome.map_err(|panic| format!("{} breaks a rule of {}: {}\n{}", whence, target.name, told(&*panic), shown(input)))
}

fn valid(target: &Target) -> Vec<Vec<u8>> {
    let found = target.found().into_iter().map(|(_, input)| input);
    (target.valid)().into_iter().chain(found).collect()
}

fn hunt(target: &Target, valid: &[Vec<u8>], seed: u64) -> Result<(), String> {
    let config = Config { cases: OF_A_SEED, failure_persistence: None, max_shrink_iters: SHORTENED, ..Config::default() };
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    for (byte, name) in key[8..].iter_mut().zip(target.name.bytes()) {
        *byte = name;
    }
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &key));
    let outcome = runner.run(&inputs(valid.to_vec()), |Bytes(input)| {
        catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).map_err(|panic| TestCaseError::fail(told(&*panic)))
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
    let kept = match std::fs::write(&path, input) {
        Ok(()) => format!("the input is in {}; once mended, keep it as tests/fuzzing/{name}/<what it is>", path.display()),
        Err(error) => format!("the input could not be kept in {}: {error}", path.display()),
    };
    format!(
        "a rule of {name} is broken: {reason}\n{}\n{kept}\nagain: TERTULIA_FUZZ_TARGET={name} TERTULIA_FUZZ_SEED={seed} cargo test --lib fuzzing::one_seed",
        shown(input)
    )
}

fn shown(input: &[u8]) -> String {
    const MOST: usize = 1_500;
    let rest = input.len().saturating_sub(MOST);
    let more = if rest > 0 { format!(" and {rest} bytes more") } else { String::new() };
    format!("input of {} bytes: {}{more}", input.len(), input[..input.len() - rest].escape_ascii())
}

fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic that says nothing").to_owned()
}
