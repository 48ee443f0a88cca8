//! Natural talks whose form recurs are no loops: nobody is warned of repetition, and nobody is made to end the talk.

use serde::Deserialize;

use super::super::super::message::{Address, Message};
use super::super::*;
use super::scene::{Scene, Setup, plain};
use crate::domain::samples::person;

/// Written by somebody who did not know how repetition is judged.
const TALKS: &str = include_str!("../../../../tests/repetition/natural.jsonl");

#[derive(Deserialize)]
struct Talk {
    kind: String,
    companions: Vec<String>,
    lines: Vec<Line>,
    /// 1: people and companions take turns. 2: companions take turns after one request.
    group: u8,
}

#[derive(Deserialize)]
struct Line {
    by: String,
    text: String,
}

/// What happened in a talk.
#[derive(Default)]
struct Judged {
    prompts: usize,
    warned: usize,
    stages: usize,
}

impl Talk {
    fn all() -> Vec<Self> {
        TALKS.lines().map(|line| serde_json::from_str(line).expect("it is a talk")).collect()
    }

    /// Plays the talk: who speaks next votes YES, all others vote NO. A person addresses the next speaker, or nobody.
    fn play(&self, addresses: bool) -> Judged {
        let setup = Setup {
            companions: self.companions.len(),
            judge: "lexical",
            max_turns: None,
            streak: 20,
            equal_timeouts: true,
            external: false,
        };
        let mut scene = Scene::new(&setup);
        scene.settings.gate.addresses_per_minute = 100;
        scene.settings.gate.evaluations_per_hour = 10_000;
        scene.settings.gate.guild_evaluations_per_hour = 10_000;
        scene.settings.gate.skip_when_other_addressed = false;
        let cast = scene.cast.clone();
        let companion = |name: &str| self.companions.iter().position(|one| one == name).map(|index| cast[index].clone());
        let mut judged = Judged::default();
        for (index, line) in self.lines.iter().enumerate() {
            if let Some(speaker) = companion(&line.by) {
                let ticket = floor_of(&mut scene, &speaker, &mut judged);
                scene.step(Input::Written { ticket, text: line.text.as_str().into() });
            } else {
                let next = self.lines.get(index + 1).and_then(|next| companion(&next.by)).filter(|_| addresses);
                let address = Address { companions: next.into_iter().collect(), others: false };
                scene.send(Message { address, ..Message::new(person(&line.by), line.text.as_str().into()) }, None);
            }
        }
        let is_forced = |recorded: &&Recorded| matches!(recorded.event, Event::StageChanged { cause: Cause::Repetition, .. });
        judged.stages = scene.journal.iter().filter(is_forced).count();
        judged
    }
}

/// Answers questions until this companion has the floor, and counts the prompts.
fn floor_of(scene: &mut Scene, speaker: &CompanionId, judged: &mut Judged) -> Ticket {
    for _ in 0..100 {
        if let Some(floor) = scene.conversation.turns().floor().filter(|floor| floor.companion == *speaker) {
            judged.count(scene.conversation.warns_of_repetition(floor.trigger, &floor.messages));
            return floor.ticket;
        }
        let asked = scene.conversation.open_questions().next().map(|(companion, asked)| (companion.clone(), *asked));
        let Some((companion, question)) = asked else {
            scene.wait(1_000_000);
            continue;
        };
        let about: Vec<Seq> = scene.conversation.buffer(&companion).map(|entry| entry.seq).collect();
        judged.count(scene.conversation.warns_of_repetition(question.trigger, &about));
        let vote = plain(if companion == *speaker { Verdict::Yes } else { Verdict::No });
        scene.step(Input::Answered { ticket: question.ticket, vote, call: None });
    }
    panic!("{speaker} does not get the floor");
}

impl Judged {
    fn count(&mut self, warns: bool) {
        self.prompts += 1;
        self.warned += usize::from(warns);
    }
}

#[test]
fn natural_talks_whose_form_recurs_are_no_loops() {
    let talks = Talk::all();
    let (mut total, mut failures) = (Judged::default(), Vec::new());

    for talk in &talks {
        for addresses in [false, true] {
            let judged = talk.play(addresses);
            (total.prompts, total.warned) = (total.prompts + judged.prompts, total.warned + judged.warned);
            if judged.stages > 0 || judged.warned > 0 {
                let first = &talk.lines[0].text;
                failures.push(format!(
                    "{} {}: {} stages, {} of {} warned: {first}",
                    talk.group, talk.kind, judged.stages, judged.warned, judged.prompts
                ));
            }
        }
    }

    let among_companions = talks.iter().filter(|talk| talk.group == 2).count();
    assert!(talks.len() >= 60 && among_companions >= 25, "{} talks, {among_companions} among companions", talks.len());
    assert!(failures.is_empty(), "{} of {} prompts warn:\n{}", total.warned, total.prompts, failures.join("\n"));
}
