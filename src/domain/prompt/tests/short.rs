//! Decisions that are asked for in few words, for models on slow computers.

use super::*;
use crate::answer::Verdict;
use crate::policy::prompt::DecisionForm;
use crate::vote;

fn short() -> policy::prompt::Prompt {
    policy::prompt::Prompt { decision: DecisionForm::Short, ..words() }
}

/// The tokens of the prompt without the persona and the transcript.
fn frame(prompt: &Prompt) -> usize {
    let shown = ["persona", "brief", "chattiness", "summary", "earlier_messages", "messages"];
    let shown = prompt.sizes.iter().filter(|(part, _)| shown.contains(part)).map(|(_, tokens)| tokens);
    prompt.tokens() - shown.sum::<usize>()
}

#[test]
fn the_frame_of_a_short_decision_is_under_400_tokens_also_in_a_crowd() {
    let chattiness = "Talks about boats and tides whenever anybody mentions the sea; ".repeat(40);
    let other = |n: usize| Other { name: format!("Companion {n}").into(), chattiness: Some(chattiness.as_str().into()) };
    let buffer: Vec<_> = (0..30).map(|n| message(Role::Person, &format!("p{n}"), &format!("Person {n}"), "Who knows?")).collect();
    for (trigger, is_call) in Trigger::ALL.into_iter().flat_map(|trigger| [(trigger, false), (trigger, true)]) {
        let place = Some(Place { title: "The harbour".into(), topic: Some("x".repeat(300).into()) });
        let scene = Scene { others: (0..20).map(other).collect(), is_call, place, ..scene().clone() };
        let character = Character { name: "Aria of the Northern Harbour", chattiness: &chattiness, ..character() };
        let input = PromptInput {
            trigger,
            stage: Stage::PreClosing,
            is_repetitive: true,
            speaker: Some("Bruno".into()),
            summary: Some("They met.".into()),
            recent: buffer.clone(),
            buffer: buffer.clone(),
            ..input()
        };

        let (few, usual) = (vote(character, &scene, &input, &short()), vote(character, &scene, &input, &words()));

        assert!(frame(&few) < 400, "{trigger:?}: {} of {:?}\n{}\n{}", frame(&few), few.sizes, few.system, user(&few));
        assert!(frame(&usual) > 600, "{trigger:?}: {}", frame(&usual));
        let shown = |prompt: &Prompt| lines(&user(prompt)).len();
        assert_eq!(shown(&few), shown(&usual), "{trigger:?}");
    }
}

#[test]
fn a_short_decision_asks_for_the_fields_that_are_read() {
    for is_call in [false, true] {
        for reason_first in [true, false] {
            let words = policy::prompt::Prompt { reason_first, ..short() };
            let scene = Scene { is_call, ..scene().clone() };

            let asked = user(&vote(character(), &scene, &input(), &words));

            assert!(
                vote_fields(Extra { is_call, ..Extra::default() }, &words)
                    .iter()
                    .all(|field| asked.contains(&format!("`{field}`: "))),
                "{asked}"
            );
            assert!(Stage::ALL.iter().all(|stage| asked.contains(&format!("\"{stage}\""))), "{asked}");
            let examples = asked.lines().filter(|line| line.starts_with('{') && line.contains("\"decision\""));
            let read: Vec<_> = examples.map(|line| vote::read(line, words.verdict_words())).collect();
            assert_eq!(read.iter().map(|vote| vote.verdict).collect::<Vec<_>>(), [Verdict::Yes, Verdict::No], "{asked}");
        }
    }
}

#[test]
fn a_short_decision_shows_the_brief_or_a_persona_of_its_length() {
    let sentence = "You remember things, and you say so. ";
    let system = |persona: &str, brief| vote(Character { persona, brief, ..character() }, scene(), &input(), &short()).system;

    assert!(system("A curious owl.", Some("An owl.")).starts_with("You are Aria.\n\nAn owl.\n\n"));
    assert!(system("A curious owl.", None).starts_with("You are Aria.\n\nA curious owl.\n\n"));
    let beginning = system(&sentence.repeat(30), None);
    assert!(beginning.contains(" characters left out]"), "{beginning}");
    let usual = vote(Character { persona: &sentence.repeat(30), ..character() }, scene(), &input(), &words()).system;
    assert!(usual.contains(sentence.repeat(30).trim()));
}
