//! Fuzzing: hostile input for every parser of outside data.
//!
//! A target is a function over bytes that panics when a rule is broken. The rules are more than "nothing panics": results are bounded, can be written
//! and read back, and never affect anyone else. Most inputs are valid ones with random changes, some are assembled from difficult fragments, and some
//! are random bytes. Inputs that once broke a rule are stored under `tests/fuzzing/<target>/` and run every time.
//!
//! * `cargo test --lib fuzzing` is the short run, with the same seeds every time.
//! * `TERTULIA_FUZZ_RUNS=100000 cargo test --release --lib fuzzing -- --nocapture` is the long run. `TERTULIA_FUZZ_FROM=1000` begins at another seed,
//!   and `TERTULIA_FUZZ_TARGET=vote` selects one target.
//! * `cargo test --release --lib fuzzing::work -- --ignored` checks whether work grows faster than the input, on any machine and in seconds.
//! * `TERTULIA_FUZZ_TARGET=vote TERTULIA_FUZZ_SEED=7 cargo test --lib fuzzing::one_seed` repeats a failure, as its message says.
//!   `TERTULIA_FUZZ_INPUT=FILE` instead of the seed runs one input.
//!
//! To add a target, write its function beside similar ones (or, if it needs private items, in a `fuzz.rs` beside these), with a function that returns
//! valid inputs, and add its line to [`targets`].

mod answers;
mod growth;
mod hunt;
mod long_statements;
mod names;
mod prompts;
mod records;
mod scripts;
mod settings;
mod times_and_words;

use tertulia_inputs::{change, rules, words};
pub(crate) use tertulia_inputs::{is_bounded, is_plain_line, parts, text, texts};

use std::path::PathBuf;

use crate::adapters::{audio, console, discord, llm, speech, store};
use crate::{cards, cli};

/// A parser of outside data, with the rules for its results.
pub(crate) struct Target {
    name: &'static str,
    run: fn(&[u8]),
    valid: fn() -> Vec<Vec<u8>>,
    /// The cost of one run, relative to a cheap target.
    costs: u64,
    /// The length of the longest input in the check whether work grows faster than the input, in bytes.
    longest: usize,
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8]), valid: fn() -> Vec<Vec<u8>>) -> Self {
        Self { name, run, valid, costs: 1, longest: 8 << 10 }
    }

    const fn costing(self, costs: u64) -> Self {
        Self { costs, ..self }
    }

    /// Sets the length of the longest input.
    const fn up_to(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    /// The stored inputs that once broke a rule.
    fn stored_failures(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing").join(self.name);
        let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = files.map(|file| file.expect("the folder can be read").path()).collect();
        paths.sort();
        paths.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("the file can be read"))).collect()
    }
}

/// The list of all targets.
fn targets() -> Vec<Target> {
    vec![
        Target::new("answer", answers::answer, answers::two_lines),
        Target::new("vote", answers::vote, answers::votes),
        Target::new("state", answers::state, answers::states),
        Target::new("score", answers::score, answers::two_lines),
        Target::new("statement", answers::statement, answers::statements),
        Target::new("raw_answer", answers::raw_answer, answers::statements).costing(2),
        Target::new("repetition", answers::repetition, answers::statements).up_to(4 << 10),
        Target::new("names", names::find, names::talk),
        // A name has 64 characters at most.
        Target::new("name_lists", names::lists, names::lists_of_names).up_to(256),
        Target::new("address", names::address, names::talk),
        Target::new("prompt", prompts::prompt, prompts::talk).costing(8).up_to(8 << 10),
        Target::new("split", long_statements::split, long_statements::statements).up_to(16 << 10),
        Target::new("spoken_text", long_statements::spoken, long_statements::statements).up_to(16 << 10),
        Target::new("event", records::event, records::events).costing(2),
        Target::new("record", records::record, records::all).costing(2),
        Target::new("key", records::key, records::keys),
        Target::new("settings_file", settings::file, settings::files).costing(60).up_to(4 << 10),
        Target::new("companion_file", settings::companion, settings::companions).costing(60).up_to(4 << 10),
        Target::new("environment", settings::environment, settings::variables).costing(60).up_to(4 << 10),
        Target::new("script_json", scripts::json, scripts::in_json).costing(30).up_to(8 << 10),
        Target::new("script_toml", scripts::toml, scripts::in_toml).costing(30).up_to(8 << 10),
        Target::new("card", cards::fuzz::card, cards::fuzz::cards).costing(8),
        Target::new("chat", cards::fuzz::chat, cards::fuzz::chats),
        Target::new("picture", cards::fuzz::check_picture, cards::fuzz::pictures).costing(2),
        Target::new("times", times_and_words::times, times_and_words::moments),
        Target::new("log_words", times_and_words::plain, long_statements::statements),
        Target::new("arguments", cli::fuzz::arguments, cli::fuzz::command_lines).costing(16).up_to(4 << 10),
        Target::new("command_times", cli::fuzz::times, times_and_words::moments),
        Target::new("stream", llm::openai::fuzz::stream, llm::openai::fuzz::streams).costing(2),
        Target::new("whole_answer", llm::openai::fuzz::whole, llm::openai::fuzz::wholes),
        Target::new("model_error", llm::openai::fuzz::error, llm::openai::fuzz::errors),
        Target::new("rehearsal", llm::rehearsal::fuzz::prompt, prompts::talk).costing(8).up_to(8 << 10),
        Target::new("opus", audio::opus::fuzz::stream, audio::opus::fuzz::streams).costing(24),
        Target::new("recording", audio::recording::fuzz::recording, audio::recording::fuzz::recordings).costing(24),
        Target::new("speak", speech::rehearsal::fuzz::speak, long_statements::statements).costing(8),
        Target::new("deepgram_results", speech::deepgram::fuzz::results, speech::deepgram::fuzz::valid).costing(2),
        Target::new("flux_turns", speech::flux::fuzz::turns, speech::flux::fuzz::valid).costing(2),
        Target::new("transcript", speech::openai::fuzz::transcript, speech::openai::fuzz::transcripts),
        Target::new("transcript_stream", speech::openai::fuzz::stream, speech::openai::fuzz::streams),
        Target::new("spoken_samples", speech::openai::fuzz::samples, speech::openai::fuzz::audio),
        Target::new("elevenlabs_messages", speech::elevenlabs::fuzz::messages, speech::elevenlabs::fuzz::valid),
        Target::new("cartesia_messages", speech::cartesia::fuzz::messages, speech::cartesia::fuzz::valid),
        Target::new("discord_frame", discord::fuzz::frame, discord::fuzz::frames),
        Target::new("discord_event", discord::fuzz::event, discord::fuzz::events).costing(2),
        Target::new("discord_message", discord::fuzz::message, discord::fuzz::messages).costing(2),
        Target::new("discord_markup", discord::fuzz::markup, discord::fuzz::contents),
        Target::new("discord_names", discord::fuzz::names, discord::fuzz::contents),
        Target::new("discord_said", discord::fuzz::said, long_statements::statements).costing(4),
        Target::new("discord_limits", discord::fuzz::limits, discord::fuzz::heads).up_to(4 << 10),
        Target::new("discord_refusal", discord::fuzz::refusal, discord::fuzz::refusals),
        Target::new("discord_datagram", discord::voice::fuzz::datagram, discord::voice::fuzz::datagrams)
            .costing(24)
            .up_to(2 << 10),
        Target::new("discord_voice_message", discord::voice::fuzz::message, discord::voice::fuzz::messages).costing(60),
        Target::new("discord_voice_group", discord::voice::fuzz::group_message, discord::voice::fuzz::group_messages)
            .costing(60)
            .up_to(4 << 10),
        Target::new("interaction", discord::fuzz::interaction, discord::fuzz::interactions).costing(2),
        Target::new("manifest", store::fuzz::manifest, store::fuzz::manifests).costing(12),
        Target::new("backup", store::fuzz::backup, store::fuzz::backups).costing(20),
        Target::new("audit", store::fuzz::audit, store::fuzz::backups).costing(4),
        Target::new("server_note", crate::server::fuzz::address_file, crate::server::fuzz::address_files).costing(8),
        Target::new("request", console::fuzz::request, console::fuzz::requests).costing(24).up_to(8 << 10),
        Target::new("voice_frame", console::voice::fuzz::frame, console::voice::fuzz::frames).up_to(2 << 10),
        Target::new("voice_message", console::voice::fuzz::message, console::voice::fuzz::messages),
        Target::new("voice_session", console::voice::fuzz::session, console::voice::fuzz::sessions).costing(4),
        Target::new("console_words", console::fuzz::words, long_statements::statements),
    ]
}

/// The number of runs of a target of cost 1 in one `cargo test`, unless `TERTULIA_FUZZ_RUNS` sets another. `.ci/run` does.
const RUNS: u64 = 24;
/// The number of test functions below that share the targets, so that they run in parallel.
const SHARES: usize = 3;

#[test]
fn hostile_input_breaks_no_rule_first_share() {
    share(0);
}

#[test]
fn hostile_input_breaks_no_rule_second_share() {
    share(1);
}

#[test]
fn hostile_input_breaks_no_rule_third_share() {
    share(2);
}

#[test]
fn stored_failures_stay_fixed() {
    all(targets().iter().flat_map(|target| {
        target.stored_failures().into_iter().map(move |(path, input)| hunt::one(target, &input, &path.display().to_string()))
    }));
}

#[test]
fn valid_inputs_break_no_rule() {
    all(targets().iter().flat_map(|target| {
        let inputs = (target.valid)().into_iter().enumerate();
        inputs.map(move |(number, input)| hunt::one(target, &input, &format!("the valid input {number}")))
    }));
}

#[test]
#[ignore = "measures processor time, which no other test in `cargo test` does"]
fn work_grows_no_faster_than_the_input() {
    all(chosen().iter().flat_map(growth::first_superlinear).map(Err));
}

#[test]
fn every_target_has_a_unique_name_and_valid_inputs() {
    let targets = targets();
    let names: std::collections::BTreeSet<_> = targets.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), targets.len());
    assert!(targets.iter().all(|target| !(target.valid)().is_empty()));
}

/// Runs the seed of `TERTULIA_FUZZ_SEED`, or the input in the file `TERTULIA_FUZZ_INPUT`, on `TERTULIA_FUZZ_TARGET`.
#[test]
fn one_seed() {
    let input = std::env::var("TERTULIA_FUZZ_INPUT").ok();
    let seed = variable("TERTULIA_FUZZ_SEED");
    all(chosen().iter().flat_map(|target| {
        let read = |path: &String| std::fs::read(path).expect("the file of TERTULIA_FUZZ_INPUT");
        let of_input = input.as_ref().map(|path| hunt::one(target, &read(path), path));
        [of_input, seed.map(|seed| hunt::seed(target, seed))].into_iter().flatten()
    }));
}

fn share(index: usize) {
    let runs = variable("TERTULIA_FUZZ_RUNS").unwrap_or(RUNS);
    let from = variable("TERTULIA_FUZZ_FROM").unwrap_or(1);
    let targets_to_run = chosen();
    all(targets_to_run.iter().skip(index).step_by(SHARES).map(|target| {
        let summary = hunt::target(target, from, runs)?;
        println!("{summary}");
        Ok(())
    }));
}

/// Runs all before it fails, so that one broken rule does not hide another.
fn all(outcomes: impl Iterator<Item = Result<(), String>>) {
    let broken: Vec<String> = outcomes.filter_map(Result::err).collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n\n"));
}

fn chosen() -> Vec<Target> {
    let named = std::env::var("TERTULIA_FUZZ_TARGET").ok();
    targets().into_iter().filter(|target| named.as_ref().is_none_or(|named| named == target.name)).collect()
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
