//! Tests of what is said to ordinary messages.

use super::*;
use crate::domain::answer::{Verdict, Words};
use crate::domain::vote;

/// Ordinary messages.
const ORDINARY: [&str; 24] = [
    "How does one begin a rainy day well?",
    "Hey Aria, which book should I take on a long train ride?",
    "What should I cook tonight?",
    "Do you like cats?",
    "Why is the sky blue?",
    "I adopted an elephant",
    "My neighbour plays the drums all night",
    "I had a terrible day",
    "What a lovely evening!",
    "Should I quit my job?",
    "How long does a bee live?",
    "My phone battery is dead again",
    "What is the meaning of life?",
    "What time is it?",
    "Are you a real person?",
    "Which city should we visit in spring?",
    "I am bored",
    "Explain quantum physics to me",
    "Aria, thanks, what do you suggest?",
    "¿Qué libro me recomiendas para el tren?",
    "Me gusta mucho la lluvia",
    "Was ist dein Lieblingsbuch?",
    "Ich habe heute einen Kuchen gebacken",
    "Was war das?",
];

/// `cargo test --lib what_is_said -- --nocapture` prints what is said, to be read.
#[tokio::test]
async fn what_is_said_to_ordinary_messages_is_a_whole_sentence() {
    for text in ORDINARY {
        let said = answer_to(&statement(text)).await;

        println!("{text}  {said}");
        assert!(said.ends_with(['.', '!', '?', '…', ')', '"']) && !said.contains(['{', '}']), "{text}: {said}");
    }
}

#[tokio::test]
async fn the_reason_of_a_vote_names_who_called() {
    for seed in 0..50 {
        let model = Rehearsal::new(&models::Rehearsal { seed, pace: 0.0 });
        // Somebody else spoke last.
        let mut called = decision(Trigger::DirectAddress, "Mira, are you there?");
        context(&mut called).newest.push(person("Carla", "What a day"));
        let called = model.ask(&called, None).await.unwrap();
        assert!(called.text().contains("Bob") && !called.text().contains("Carla"), "{}", called.text());
    }
}

#[tokio::test]
async fn who_is_called_by_name_with_a_question_always_answers() {
    let questions = [
        "Hey Mira, which book should I take on a long train ride?",
        "Mira?",
        "mira what time is it",
        "Thanks Mira, and what comes next?",
        "What do you think, Mira?",
        "Bye Bruno! Mira, will you stay?",
        "Mira, can you help me?",
        "tell me a joke, Mira",
        "MIRA, are you there??",
    ];
    for seed in 0..50 {
        let model = Rehearsal::new(&models::Rehearsal { seed, pace: 0.0 });
        for text in questions {
            for trigger in [Trigger::DirectAddress, Trigger::Lull, Trigger::Interjection, Trigger::Turn] {
                // Only an address must be seen without a question mark.
                if trigger != Trigger::DirectAddress && !text.contains('?') {
                    continue;
                }
                let answer = model.ask(&decision(trigger, text), None).await.expect("it always answers");

                let vote = vote::read(&answer.text(), Words::ENGLISH);
                assert_eq!(vote.verdict, Verdict::Yes, "{seed} {trigger:?} {text}: {}", answer.text());
            }
        }
    }
}
