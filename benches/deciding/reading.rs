//! Parsing models' answers, and selecting a speaker.

use divan::{Bencher, black_box};
use tertulia::domain::closing::Stage;
use tertulia::domain::id::{CompanionId, Seq};
use tertulia::domain::moment::Moment;
use tertulia::domain::round::{Round, message_id};
use tertulia::domain::vote::{Stance, State};
use tertulia::domain::{answer, vote};

const DECISION: &str = "They are talking about bread, and I baked all my life.\n**YES**";
const VOTE: &str = "```json\n{\"reason\": \"They talk about bread, and I baked all my life.\", \"decision\": \"YES\", \"importance\": 7, \
                    \"selected\": false, \"closing\": \"none\"}\n```";

/// A decision in two lines.
#[divan::bench]
fn reading_a_decision() -> answer::Reading {
    answer::read(black_box(DECISION), answer::Words::ENGLISH)
}

/// A vote: a JSON object in a code fence, as many models write it.
#[divan::bench]
fn reading_a_vote() -> vote::Vote {
    vote::read(black_box(VOTE), answer::Words::ENGLISH)
}

/// A round with all States present.
#[divan::bench(args = [2, 3, 8])]
fn selecting_who_speaks(bencher: Bencher<'_, '_>, companions: usize) {
    let message = Seq(1_000);
    let ids: Vec<CompanionId> = (0..companions).map(|number| format!("name{number}").into()).collect();
    let state = |(number, from): (usize, &CompanionId)| State {
        from: from.clone(),
        message_id: message_id(message),
        state: if number % 3 == 0 { Stance::Listen } else { Stance::Speak },
        importance: (number * 7 % 5) as f64,
        selected: false,
        closing: Stage::None,
        mood: 0.0,
    };
    let states: Vec<_> = ids.iter().enumerate().map(state).collect();
    let round = Round::new(message, Moment::ZERO, Moment::ZERO, &states, &[]);
    bencher.bench(|| round.ranking(|companion| Some(Seq(companion.as_str().len() as u64))));
}
