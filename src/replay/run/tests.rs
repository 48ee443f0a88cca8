//! The bids that are followed through the record of every recorded talk are those of its conversation.

use std::path::Path;

use super::{Run, Script, ScriptedAnswers};
use crate::domain::budget::Ledger;
use crate::domain::conversation::check_bids::check_bids;
use crate::domain::conversation::{Input, Output, Rules, World};
use crate::domain::event::{Event, Made, Recorded};
use crate::domain::id::{Seq, TurnId};
use crate::domain::moment::Moment;

/// The number of all events that a conversation makes. In a replay, messages have the first ones.
const MADE: u64 = 1_000_000;

pub(super) fn inbound(input: &Input) -> Vec<Recorded> {
    match input {
        Input::Inbound(recorded) => vec![Recorded::clone(recorded)],
        Input::HandedOver(batch) => batch.clone(),
        _ => Vec::new(),
    }
}

/// Adds the events of a step. What was made before the inbound event was handled comes before it: that says its number, if it has one in a replay.
pub(super) fn record(record: &mut Vec<Recorded>, now: Moment, inbound: Vec<Recorded>, outputs: &[Output]) {
    let is_end_of_speech =
        |event: &Event| matches!(event, Event::SentencePlayed { .. } | Event::Interrupted { .. } | Event::ReplyFailed { .. });
    let is_before = |made: &Made| match inbound.first() {
        Some(first) if first.seq == Seq::NONE => is_end_of_speech(&made.event),
        first => first.is_some_and(|first| made.handled < first.seq),
    };
    let made = outputs.iter().filter_map(|output| match output {
        Output::Made(made) => Some(Made::clone(made)),
        _ => None,
    });
    let (before, after): (Vec<_>, Vec<_>) = made.partition(is_before);
    let number = |made: Made| Recorded { seq: Seq(MADE), at: now, handled: made.handled, turn: made.turn, event: made.event };
    record.extend(before.into_iter().map(number).chain(inbound.clone()).chain(after.into_iter().map(number)));
}

#[test]
fn bids_agree_with_the_conversation_in_every_recorded_talk() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    paths.sort();
    assert!(paths.len() > 100);
    for path in paths {
        println!("{}", path.display());
        let script = Script::from_toml(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut responder = ScriptedAnswers::of(&script);
        let mut run = Run::new(&script, &mut responder).unwrap();
        while let Some(next) = run.next() {
            run.handle(next).unwrap();
        }
        for channel in run.channels.values() {
            let mut ledger = Ledger::default();
            check_bids(&channel.record, |conversation, recorded| {
                let mut world = World {
                    channel: &"talk".into(),
                    rules: Rules::from(&script.settings),
                    policies: &run.policies,
                    jitter: &mut || 0,
                    roll: &mut || None,
                    turn: &mut || TurnId(0),
                    ledger: &mut ledger,
                    summary: None,
                    notes: None,
                    tokens_per_day: None,
                    is_unpostable: false,
                };
                conversation.fold(recorded, &mut world);
            });
        }
    }
}
