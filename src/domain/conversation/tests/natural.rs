//! Natural talks whose form recurs are no loops: nobody is warned of repetition, and nobody is made to end the talk.

use serde::Deserialize;

use super::super::super::message::{Address, Message};
use super::super::*;
use super::scene::{Scene, Setup, plain};
use crate::samples::person;

/// Written by somebody who did not know how repetition is judged.
const TALKS: &str = include_str!("../../../../tests/repetition/natural.jsonl");
/// Talks among companions, frames with one new word a turn, and what people ask after a loop, with the answer.
const AMONG_COMPANIONS: &str = include_str!("../../../../tests/repetition/among-companions.json");

#[derive(Deserialize)]
struct AmongCompanions {
    talks: Vec<Vec<String>>,
    frames: Vec<Vec<String>>,
    first_questions: Vec<Vec<String>>,
}

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

impl AmongCompanions {
    fn read() -> Self {
        serde_json::from_str(AMONG_COMPANIONS).expect("they are talks")
    }
}

/// What happened in a talk.
#[derive(Default)]
struct Judged {
    prompts: usize,
    /// Prompts that warn of repetition, or name a stage.
    noted: usize,
    /// Those since a person spoke last.
    noted_since: usize,
    stages: usize,
}

impl Talk {
    fn all() -> Vec<Self> {
        TALKS.lines().map(|line| serde_json::from_str(line).expect("it is a talk")).collect()
    }

    /// Two companions take turns after one request.
    fn among_companions(request: &str, statements: impl IntoIterator<Item = String>) -> Self {
        let mut lines = vec![Line { by: "Ana".to_owned(), text: request.to_owned() }];
        let speakers = ["aria", "bruno"].into_iter().cycle();
        lines.extend(speakers.zip(statements).map(|(by, text)| Line { by: by.to_owned(), text }));
        Self { kind: "among companions".to_owned(), companions: vec!["aria".to_owned(), "bruno".to_owned()], lines, group: 2 }
    }

    /// Plays the talk: who speaks next votes YES, all others vote NO. A person addresses the next speaker, or nobody.
    fn play(&self, addresses: bool, streak: u32) -> Judged {
        let setup = Setup {
            companions: self.companions.len(),
            judge: "lexical",
            max_turns: None,
            streak,
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
                judged.noted_since = 0;
                let next = self.lines.get(index + 1).and_then(|next| companion(&next.by)).filter(|_| addresses);
                let address = Address { companions: next.into_iter().collect(), ..Address::default() };
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
            judged.count(&scene.conversation, speaker, floor.trigger, &floor.messages);
            return floor.ticket;
        }
        let asked = scene.conversation.open_questions().next().map(|(companion, asked)| (companion.clone(), *asked));
        let Some((companion, question)) = asked else {
            scene.wait(1_000_000);
            continue;
        };
        let about: Vec<Seq> = scene.conversation.buffer(&companion).map(|entry| entry.seq).collect();
        judged.count(&scene.conversation, &companion, question.trigger, &about);
        let vote = plain(if companion == *speaker { Verdict::Yes } else { Verdict::No });
        scene.step(Input::Answered { ticket: question.ticket, vote, call: None });
    }
    panic!("{speaker} does not get the floor");
}

impl Judged {
    fn count(&mut self, conversation: &Conversation, companion: &CompanionId, trigger: Trigger, messages: &[Seq]) {
        let is_staged = conversation.stage_in_prompt(companion, trigger, messages) != Stage::None;
        let noted = usize::from(is_staged || conversation.warns_of_repetition(trigger, messages));
        (self.prompts, self.noted, self.noted_since) = (self.prompts + 1, self.noted + noted, self.noted_since + noted);
    }
}

/// Plays talks, with and without addresses, and panics if one of them is taken for a loop.
fn assert_no_loops(talks: &[Talk]) {
    let (mut total, mut failures) = (Judged::default(), Vec::new());
    for talk in talks {
        for addresses in [false, true] {
            let judged = talk.play(addresses, 20);
            (total.prompts, total.noted) = (total.prompts + judged.prompts, total.noted + judged.noted);
            if judged.stages > 0 || judged.noted > 0 {
                let first = &talk.lines[0].text;
                failures.push(format!(
                    "{} {}: {} stages, {} of {} with a note: {first}",
                    talk.group, talk.kind, judged.stages, judged.noted, judged.prompts
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} prompts have a note:\n{}", total.noted, total.prompts, failures.join("\n"));
}

#[test]
fn natural_talks_whose_form_recurs_are_no_loops() {
    let talks = Talk::all();

    let among_companions = talks.iter().filter(|talk| talk.group == 2).count();
    assert!(talks.len() >= 60 && among_companions >= 25, "{} talks, {among_companions} among companions", talks.len());
    assert_no_loops(&talks);
}

#[test]
fn games_among_companions_are_no_loops() {
    let AmongCompanions { talks, frames, .. } = AmongCompanions::read();

    let talks = talks.into_iter().map(|talk| Talk::among_companions(&talk[0], talk[1..].to_vec()));
    let frames = frames.into_iter().map(|frame| {
        let statements: Vec<_> = frame[2..].iter().map(|word| frame[1].replace("{}", word)).collect();
        Talk::among_companions(&frame[0], statements)
    });
    let talks: Vec<_> = talks.chain(frames).collect();

    assert_eq!(talks.len(), 100);
    assert_no_loops(&talks);
}

#[test]
fn the_first_answer_to_a_person_after_a_loop_is_not_told_to_end_the_talk() {
    let loops = ["It is lovely here.", "You are right, so right.", "Gute Nacht, schlaf gut!", "Merci, avec plaisir."];
    let questions = AmongCompanions::read().first_questions;
    assert_eq!(questions.len(), 30);

    for (exchange, same) in questions.into_iter().zip(loops.into_iter().cycle()) {
        let mut talk = Talk::among_companions("hello", std::iter::repeat_n(same.to_owned(), 4));
        talk.lines.push(Line { by: "Ana".to_owned(), text: exchange[0].clone() });
        talk.lines.push(Line { by: "aria".to_owned(), text: exchange[1].clone() });

        for addresses in [false, true] {
            let judged = talk.play(addresses, 4);
            assert!(judged.stages > 0, "{same} is no loop");
            assert_eq!(judged.noted_since, 0, "{}", exchange[0]);
        }
    }
}
