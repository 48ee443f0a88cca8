//! Plays random scripts through the state machines of voice and through the second implementation in `tests/second`, and compares what they do.
//!
//! The second implementation was written from the rules alone. Where the two differ, one of them is wrong, or the rules can be read in two ways.
//! `TERTULIA_SECOND_SCRIPTS` is the number of scripts for each of the two machines, `TERTULIA_SECOND_SEED` the first seed.

mod handover;
mod interruption;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;
use tertulia::domain::moment::Moment;
use tertulia::domain::voice::speech::{HOP, ONSET_HOPS};
use tertulia::domain::voice::words::{WordLists, words};

use super::harness::parameter;

/// The stop words and the backchannel of the scripts, as in `tests/second/wording.py`.
const STOP: [&str; 4] = ["stop", "wait", "hold on", "no no"];
const BACKCHANNEL: [&str; 4] = ["mhm", "yeah", "right", "okay"];
/// The lines that are shown around the first difference.
const SHOWN: usize = 6;

/// What happened in one run of a script: moments in microseconds, and effects.
type Log = Vec<(u64, String)>;

/// A script with the effects of the second implementation.
#[derive(Deserialize)]
struct Script {
    machine: String,
    seed: u64,
    config: Event,
    events: Vec<Event>,
    effects: Vec<Event>,
}

/// One input or effect: a JSON object.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
struct Event(serde_json::Map<String, Value>);

impl Event {
    fn get(&self, key: &str) -> &Value {
        self.0.get(key).unwrap_or(&Value::Null)
    }

    fn text(&self, key: &str) -> &str {
        self.get(key).as_str().unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key).as_u64()
    }

    fn is(&self, key: &str) -> Option<bool> {
        self.get(key).as_bool()
    }

    fn at(&self) -> u64 {
        self.number("at").unwrap_or_default()
    }

    fn moment(&self, key: &str) -> Option<Moment> {
        self.number(key).map(Moment::from_micros)
    }

    fn list(&self, key: &str) -> &[Value] {
        self.get(key).as_array().map_or(&[], Vec::as_slice)
    }

    fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn numbers(&self, key: &str) -> Vec<u64> {
        self.list(key).iter().filter_map(Value::as_u64).collect()
    }
}

/// The companions present with their names, as words in lower case.
#[derive(Default)]
struct Names(BTreeMap<String, Vec<Vec<String>>>);

impl Names {
    fn join(&mut self, companion: &str, names: &[String]) {
        let all = std::iter::once(companion).chain(names.iter().map(String::as_str));
        self.0.insert(companion.to_owned(), all.map(words).collect());
    }

    fn leave(&mut self, companion: &str) {
        self.0.remove(companion);
    }

    /// The companions whose name occurs anywhere in a text, by id.
    fn in_text(&self, text: &str) -> Vec<String> {
        let words = words(text);
        let occurs = |name: &Vec<String>| words.windows(name.len()).any(|window| window == name.as_slice());
        self.0.iter().filter(|(_, names)| names.iter().any(occurs)).map(|(companion, _)| companion.clone()).collect()
    }

    fn contain(&self, text: &str) -> bool {
        self.0.values().flatten().any(|name| *name == words(text))
    }
}

fn lists() -> WordLists {
    WordLists::new(STOP, BACKCHANNEL)
}

/// The length of an onset.
fn onset() -> u64 {
    micros(HOP * u32::from(ONSET_HOPS))
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("it is short")
}

/// The inputs in the order in which they are delivered. Voice is split into hops, each delivered at its end.
fn expand(events: &[Event]) -> Vec<Event> {
    let mut all: Vec<Event> = Vec::new();
    for event in events {
        let (Some(mut from), Some(to), "voiced") = (event.number("from"), event.number("to"), event.text("input")) else {
            all.push(event.clone());
            continue;
        };
        while from < to {
            let end = to.min(from + micros(HOP));
            let mut hop = event.clone();
            hop.0.extend(
                [("at", end.max(event.at())), ("from", from), ("to", end)].map(|(key, time)| (key.to_owned(), time.into())),
            );
            all.push(hop);
            from = end;
        }
    }
    all.sort_by_key(Event::at);
    all
}

#[test]
#[ignore = "it needs Python; docs/testing.md has its command"]
fn two_implementations_of_the_rules_of_voice_do_the_same() {
    let scripts = parameter("TERTULIA_SECOND_SCRIPTS", 100);
    let first = parameter("TERTULIA_SECOND_SEED", 0);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/second/second.py");
    let mut command = Command::new("python3");
    command.arg(program).arg("compare").arg(scripts.to_string()).arg(first.to_string()).stdout(Stdio::piped());
    let mut python = command.spawn().expect("python3 is installed");

    let (mut compared, mut effects, mut different) = (0, 0, Vec::new());
    for line in BufReader::new(python.stdout.take().expect("it is piped")).lines() {
        let script: Script = serde_json::from_str(&line.expect("a line")).expect("a script");
        let events = expand(&script.events);
        let (mut ours, mut theirs) = match &*script.machine {
            "handover" => (handover::run(&script.config, &events), handover::shown(&script.effects)),
            _ => (interruption::run(&script.config, &events), interruption::shown(&script.effects)),
        };
        // What happens at one moment happens in any order.
        ours.sort();
        theirs.sort();
        compared += 1;
        effects += ours.len();
        if ours != theirs {
            different.push(difference(&script, &ours, &theirs));
        }
    }
    assert!(python.wait().expect("it ends").success(), "second.py failed");

    println!("{compared} scripts, {effects} effects, {} scripts differ", different.len());
    assert_eq!(compared, 2 * scripts);
    assert!(
        different.is_empty(),
        "{} of {compared} scripts differ\n{}",
        different.len(),
        different[..different.len().min(8)].join("\n")
    );
}

/// The first difference of a script with what happened around it.
fn difference(script: &Script, ours: &Log, theirs: &Log) -> String {
    let same = ours.iter().zip(theirs).take_while(|(one, other)| one == other).count();
    let at = [ours.get(same), theirs.get(same)].into_iter().flatten().map(|(at, _)| *at).min().unwrap_or_default();
    let lines = |log: &Log| -> String {
        let shown = &log[same.saturating_sub(SHOWN).min(log.len())..(same + SHOWN).min(log.len())];
        shown.iter().map(|(at, effect)| format!("    {} {effect}\n", *at as f64 / 1e6)).collect()
    };
    let inputs = script.events.iter().filter(|event| event.at() <= at && event.at() + 9_000_000 > at);
    let inputs: Vec<_> = inputs.filter(|event| event.text("input") != "played" && event.text("input") != "audio").collect();
    let inputs: String =
        inputs.iter().rev().take(25).rev().map(|event| format!("    {}\n", Value::from(event.0.clone()))).collect();
    let config = Value::from(script.config.0.clone());
    format!(
        "{} {} differs at {}\n  config {config}\n  inputs\n{inputs}  Rust\n{}  Python\n{}",
        script.machine,
        script.seed,
        at as f64 / 1e6,
        lines(ours),
        lines(theirs)
    )
}
