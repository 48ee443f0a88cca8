//! Tests of what a new user sees after the first message in a room of three.

use super::rounds::{LOOP_GUARD, exchange};
use super::*;
use crate::adapters::llm::rehearsal::kind::is_goodbye;

/// First messages to the whole room.
const TO_ALL: [&str; 36] = [
    "Hello everyone, how are you all today?",
    "hi",
    "Good morning!",
    "hey there, I am new here",
    "tell me a joke",
    "Does anybody know a good joke?",
    "I just lost my job and I do not know what to do.",
    "My dog died this morning",
    "I feel so lonely today",
    "help",
    "can you help me with my homework?",
    "Let us talk about the moon, all of you",
    "Let's plan a picnic for Saturday!",
    "I moved to Lisbon last week and everything is so loud",
    "What is a tertulia?",
    "who knows the old harbour?",
    "Why do I love the smell of rain?",
    "Which one of you is the funnier?",
    "My tomatoes are growing along the wall",
    "What should I cook tonight?",
    "do you like cleo?",
    "Which board game shall we play on Friday?",
    "I finally finished my first marathon!",
    "what do you all think of night trains?",
    "Is a hot dog a sandwich?",
    "Can somebody explain black holes to me?",
    "recommend me a book please",
    "Everybody, look at this sunset",
    "I think cats are better than dogs",
    "We are thinking of buying a boat",
    "Does Aria get along with Bruno?",
    "how do crows remember faces?",
    "my sourdough has failed for the third time",
    "I can not sleep",
    "I would like to learn the violin, am I too old?",
    "what makes a good night train?",
];

const SEEDS: u64 = 10;

#[tokio::test]
async fn a_first_message_leads_to_a_short_talk_without_a_goodbye() {
    let (mut answered, mut talks) = (0, 0);
    for seed in 0..SEEDS {
        for opening in TO_ALL {
            let (lines, stages) = exchange(seed, opening).await;

            let statements = &lines[1..];
            assert!(statements.len() <= LOOP_GUARD, "{lines:#?}");
            assert!(!statements.iter().any(|line| is_goodbye(&line.text)), "{opening}: {lines:?}");
            assert!(stages.iter().all(|stage| *stage == Stage::None), "{opening}: {stages:?}");
            answered += usize::from(!statements.is_empty());
            talks += usize::from(statements.len() >= 2);
        }
    }

    let all = TO_ALL.len() * SEEDS as usize;
    assert!(answered * 100 >= all * 97, "{answered} of {all} are answered");
    assert!(talks * 100 >= all * 88, "{talks} of {all} are talked about");
}

#[tokio::test]
async fn a_goodbye_is_returned_once() {
    for seed in 0..SEEDS {
        let (lines, _) = exchange(seed, "ok, good night everybody").await;

        assert_eq!(lines[1..].iter().filter(|line| is_goodbye(&line.text)).count(), 1, "{lines:?}");
        assert_eq!(lines.len(), 2, "{lines:?}");
    }
}

#[tokio::test]
async fn a_word_to_nobody_may_stay_unanswered() {
    let mut silent = 0;
    for seed in 0..SEEDS {
        silent += usize::from(exchange(seed, "ok").await.1.is_empty());
    }

    assert!(silent > 0);
}
