//! Replays the recorded talks under `tests/conversations/`, and compares the events with those that each file expects.
//!
//! `tests/conversations/README.md` explains the files. For developers only: with `TERTULIA_RECORD_TALKS=1`, the expectation of each
//! file is rewritten from the program's output. A reader must then judge whether it is right.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tertulia::replay::{ReplayEvent, ReplayEventKind, Script, run};

/// The beginning of the line above an expectation.
const HEADING: &str = "# What happens";
/// The least number of talks, so that the test does not pass with an empty folder.
const FEWEST_TALKS: usize = 100;

#[test]
fn every_recorded_talk_replays_as_its_file_expects() {
    let records = std::env::var_os("TERTULIA_RECORD_TALKS").is_some_and(|value| value == "1");
    let talks = talks();
    let mut failures = String::new();

    for path in &talks {
        let text = fs::read_to_string(path).expect("a talk can be read");
        match differences(&text) {
            Ok(_) if records => fs::write(path, recorded(&text)).expect("a talk can be written"),
            Ok(None) => {}
            Ok(Some(diff)) => add_failure(&mut failures, path, &diff),
            Err(problem) => add_failure(&mut failures, path, &problem),
        }
    }

    assert!(talks.len() >= FEWEST_TALKS, "only {} talks were found", talks.len());
    assert!(failures.is_empty(), "{failures}");
}

/// The difference between the events that a talk's file expects and those of the replay, if there is one.
fn differences(text: &str) -> Result<Option<String>, String> {
    let rule = text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default();
    if !rule.ends_with('.') {
        return Err("the first line must be a comment that says the rule in one sentence, with a full stop".to_owned());
    }
    let (_, heading, expectation) = parts(text)?;
    let expected: Vec<_> = expectation.lines().map(|line| single_spaced(line.trim_start_matches('#'))).collect();
    let actual: Vec<_> = replayed_lines(text, heading)?.iter().map(|line| single_spaced(line)).collect();
    Ok((expected != actual).then(|| diff(&expected, &actual)))
}

/// The file with the program's output as its expectation.
fn recorded(text: &str) -> String {
    let Ok((script, heading, _)) = parts(text) else { return text.to_owned() };
    let Ok(events) = replayed_lines(text, heading) else { return text.to_owned() };
    let lines: String = events.iter().map(|line| format!("# {}\n", line.trim_end())).collect();
    format!("{script}{heading}\n{lines}")
}

/// Splits a file into the script, the heading of the expectation, and the expectation.
fn parts(text: &str) -> Result<(&str, &str, &str), String> {
    let at = text.find(&format!("\n{HEADING}")).ok_or_else(|| format!("there is no line \"{HEADING}:\""))? + 1;
    let (heading, expectation) = text[at..].split_once('\n').unwrap_or((&text[at..], ""));
    match expectation.lines().find(|line| !line.starts_with('#')) {
        Some(line) => Err(format!("after \"{HEADING}:\" only comments may follow, not \"{line}\"")),
        None => Ok((&text[..at], heading, expectation)),
    }
}

/// The lines that `tertulia replay` prints, without the kinds that the heading leaves out.
fn replayed_lines(text: &str, heading: &str) -> Result<Vec<String>, String> {
    let left_out = left_out(heading)?;
    let script = Script::from_toml(text).map_err(|error| error.to_string())?;
    let events = run(&script).map_err(|error| error.to_string())?;
    let is_shown = |event: &&ReplayEvent| !left_out.iter().any(|is_left_out| is_left_out(&event.kind));
    Ok(events.iter().filter(is_shown).map(ToString::to_string).collect())
}

type Kind = fn(&ReplayEventKind) -> bool;

/// The kinds of events that "# What happens (without messages, timers):" leaves out.
fn left_out(heading: &str) -> Result<Vec<Kind>, String> {
    let listed = heading.trim_start_matches(HEADING).trim_end_matches(':').trim();
    let Some(listed) = listed.strip_prefix("(without ").and_then(|rest| rest.strip_suffix(')')) else {
        return if listed.is_empty() { Ok(Vec::new()) } else { Err(format!("\"{heading}\": what is \"{listed}\"?")) };
    };
    let kind = |word: &str| -> Result<Kind, String> {
        match word {
            "messages" => Ok(|kind| matches!(kind, ReplayEventKind::Message { .. })),
            "timers" => Ok(|kind| matches!(kind, ReplayEventKind::LullArmed { .. } | ReplayEventKind::LullCancelled { .. })),
            "questions" => Ok(|kind| matches!(kind, ReplayEventKind::Evaluate { .. })),
            "what passes" => Ok(|kind| matches!(kind, ReplayEventKind::Silence { .. })),
            "how it ends" => Ok(|kind| matches!(kind, ReplayEventKind::State { .. })),
            _ => Err(format!("\"{word}\" is not one of messages, timers, questions, what passes, how it ends")),
        }
    };
    listed.split(", ").map(kind).collect()
}

fn talks() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
    let entries = fs::read_dir(&folder).expect("the folder of the talks can be read");
    let mut talks: Vec<_> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    talks.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    talks.sort();
    talks
}

fn add_failure(failures: &mut String, path: &Path, failure: &str) {
    let name = path.file_name().unwrap_or_default().display();
    // Writing to a string does not fail.
    let _ = writeln!(failures, "\ntests/conversations/{name}\n{failure}");
}

/// Collapses spaces: the width of columns does not matter.
fn single_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Merges both texts by their longest common subsequence of lines, as `diff` does.
fn diff(expected: &[String], actual: &[String]) -> String {
    let mut common = vec![vec![0_usize; actual.len() + 1]; expected.len() + 1];
    for (e, line) in expected.iter().enumerate().rev() {
        for (a, other) in actual.iter().enumerate().rev() {
            common[e][a] = if line == other { common[e + 1][a + 1] + 1 } else { common[e + 1][a].max(common[e][a + 1]) };
        }
    }
    let mut out = String::from("  - the file says, + the program does\n");
    let (mut e, mut a) = (0, 0);
    while e < expected.len() || a < actual.len() {
        let (sign, line) = if e < expected.len() && a < actual.len() && expected[e] == actual[a] {
            (e, a) = (e + 1, a + 1);
            (' ', &expected[e - 1])
        } else if a == actual.len() || (e < expected.len() && common[e + 1][a] >= common[e][a + 1]) {
            e += 1;
            ('-', &expected[e - 1])
        } else {
            a += 1;
            ('+', &actual[a - 1])
        };
        let _ = writeln!(out, "  {sign} {line}");
    }
    out
}
