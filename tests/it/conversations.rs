//! The recorded talks under `tests/conversations/`: each is replayed, and what happens must be what its file says.
//!
//! `tests/conversations/README.md` tells how such a file is written. For developers alone: with `TERTULIA_RECORD_TALKS=1` the
//! expectation of each is written anew from what the program does; whether that is right is then for a reader to say.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tertulia::replay::{ReplayEvent, ReplayEventKind, Script, run};

/// What begins the line above an expectation.
const HEADING: &str = "# What happens";
/// An empty folder must not pass for a good one.
const FEWEST_TALKS: usize = 100;

#[test]
fn every_recorded_talk_goes_as_its_file_says() {
    let records = std::env::var_os("TERTULIA_RECORD_TALKS").is_some_and(|value| value == "1");
    let talks = talks();
    let mut complaints = String::new();

    for path in &talks {
        let text = fs::read_to_string(path).expect("a talk can be read");
        match differences(&text) {
            Ok(_) if records => fs::write(path, recorded(&text)).expect("a talk can be written"),
            Ok(None) => {}
            Ok(Some(diff)) => complain(&mut complaints, path, &diff),
            Err(problem) => complain(&mut complaints, path, &problem),
        }
    }

    assert!(talks.len() >= FEWEST_TALKS, "only {} talks were found", talks.len());
    assert!(complaints.is_empty(), "{complaints}");
}

/// What differs between what a talk's file says and what happens, if anything does.
fn differences(text: &str) -> Result<Option<String>, String> {
    let rule = text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default();
    if !rule.ends_with('.') {
        return Err("the first line is a comment that says the rule in one sentence, with a full stop".to_owned());
    }
    let (_, heading, expectation) = parts(text)?;
    let expected: Vec<_> = expectation.lines().map(|line| single_spaced(line.trim_start_matches('#'))).collect();
    let actual: Vec<_> = happenings(text, heading)?.iter().map(|line| single_spaced(line)).collect();
    Ok((expected != actual).then(|| diff(&expected, &actual)))
}

/// The file as it would be if what the program does were right.
fn recorded(text: &str) -> String {
    let Ok((script, heading, _)) = parts(text) else { return text.to_owned() };
    let Ok(happenings) = happenings(text, heading) else { return text.to_owned() };
    let lines: String = happenings.iter().map(|line| format!("# {}\n", line.trim_end())).collect();
    format!("{script}{heading}\n{lines}")
}

/// The script, the heading of the expectation, the expectation.
fn parts(text: &str) -> Result<(&str, &str, &str), String> {
    let at = text.find(&format!("\n{HEADING}")).ok_or_else(|| format!("there is no line \"{HEADING}:\""))? + 1;
    let (heading, expectation) = text[at..].split_once('\n').unwrap_or((&text[at..], ""));
    match expectation.lines().find(|line| !line.starts_with('#')) {
        Some(line) => Err(format!("after \"{HEADING}:\" only comments may follow, not \"{line}\"")),
        None => Ok((&text[..at], heading, expectation)),
    }
}

/// What `tertulia replay` prints, less what the heading leaves out.
fn happenings(text: &str, heading: &str) -> Result<Vec<String>, String> {
    let left_out = left_out(heading)?;
    let script = Script::from_toml(text).map_err(|error| error.to_string())?;
    let happenings = run(&script).map_err(|error| error.to_string())?;
    let is_told = |happening: &&ReplayEvent| !left_out.iter().any(|is_left_out| is_left_out(&happening.kind));
    Ok(happenings.iter().filter(is_told).map(ToString::to_string).collect())
}

type Kind = fn(&ReplayEventKind) -> bool;

/// What "# What happens (without messages, timers):" leaves out.
fn left_out(heading: &str) -> Result<Vec<Kind>, String> {
    let listed = heading.trim_start_matches(HEADING).trim_end_matches(':').trim();
    let Some(listed) = listed.strip_prefix("(without ").and_then(|rest| rest.strip_suffix(')')) else {
        return if listed.is_empty() { Ok(Vec::new()) } else { Err(format!("\"{heading}\": what is \"{listed}\"?")) };
    };
    let kind = |word: &str| -> Result<Kind, String> {
        match word {
            "messages" => Ok(|what| matches!(what, ReplayEventKind::Message { .. })),
            "timers" => Ok(|what| matches!(what, ReplayEventKind::LullArmed { .. } | ReplayEventKind::LullCancelled { .. })),
            "questions" => Ok(|what| matches!(what, ReplayEventKind::Evaluate { .. })),
            "what passes" => Ok(|what| matches!(what, ReplayEventKind::Silence { .. })),
            "how it ends" => Ok(|what| matches!(what, ReplayEventKind::State { .. })),
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

fn complain(complaints: &mut String, path: &Path, complaint: &str) {
    let name = path.file_name().unwrap_or_default().display();
    // Writing to a text does not fail.
    let _ = writeln!(complaints, "\ntests/conversations/{name}\n{complaint}");
}

/// Columns are for the eye: how far they are apart does not count.
fn single_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Both texts in one, by their longest common subsequence of lines.
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
