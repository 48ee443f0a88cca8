//! Tests of what is said to ordinary messages: about their topic, or without one.

use super::super::topic::topic;
use super::*;
use crate::domain::answer::{Verdict, Words};
use crate::domain::vote;

/// Ordinary messages, and the topic that they are answered with.
const ORDINARY: &[(&str, Option<&str>)] = &[
    ("How does one begin a rainy day well?", Some("rainy day")),
    ("Hey Aria, which book should I take on a long train ride?", Some("book")),
    ("What should I cook tonight?", None),
    ("Do you like cats?", Some("cats")),
    ("What is the best way to learn a language?", Some("language")),
    ("Can you recommend a cozy restaurant?", Some("restaurant")),
    ("Which vegan recipes do you know?", Some("recipes")),
    ("Why is the sky blue?", Some("sky")),
    ("How do I get rid of ants in my kitchen?", Some("kitchen")),
    ("What did you do last weekend?", None),
    ("Is it worth buying an electric car?", Some("car")),
    ("I adopted an elephant", Some("elephant")),
    ("Was it an accident?", Some("accident")),
    ("My neighbour plays the drums all night", Some("neighbour")),
    ("My cat sleeps on my keyboard", Some("cat")),
    ("I had a terrible day", None),
    ("I had a lazy afternoon", Some("lazy afternoon")),
    ("What a lovely evening!", Some("lovely evening")),
    ("I am thinking of moving to a smaller town", Some("town")),
    ("What do you think about artificial intelligence?", None),
    ("How was your morning?", None),
    ("Should I quit my job?", Some("job")),
    ("I found a funny little shop around the corner", Some("shop")),
    ("The weather is awful today", Some("weather")),
    ("Have you read any good books lately?", None),
    ("I think the new chairs are uncomfortable", Some("chairs")),
    ("Where can I see the northern lights?", None),
    ("How long does a bee live?", Some("bee")),
    ("Who invented the printing press?", Some("printing press")),
    ("I baked bread with my daughter", Some("daughter")),
    ("My plants die every winter", Some("plants")),
    ("My phone battery is dead again", Some("phone battery")),
    ("Do you prefer tea or coffee?", Some("tea")),
    ("What is the meaning of life?", Some("meaning")),
    ("Is there a good movie on tonight?", Some("movie")),
    ("I lost my keys somewhere", Some("keys")),
    ("How can I sleep better?", None),
    ("What is your favourite colour?", Some("colour")),
    ("We went to the beach yesterday", Some("beach")),
    ("I need a holiday", Some("holiday")),
    ("Does anyone here play chess?", Some("chess")),
    ("What time is it?", None),
    ("Who are you?", None),
    ("What can you do?", None),
    ("Are you a real person?", None),
    ("How are you doing?", None),
    ("Which city should we visit in spring?", Some("city")),
    ("The bus was late again", Some("bus")),
    ("I want to plant a tree", Some("tree")),
    ("How do you make a good pizza?", Some("pizza")),
    ("Why do people yawn?", None),
    ("What would you take to a desert island?", Some("desert island")),
    ("I am bored", None),
    ("My sister got married last week", Some("sister")),
    ("Can we talk about music?", Some("music")),
    ("What is a black hole?", Some("black hole")),
    ("I bought a second-hand bicycle", Some("bicycle")),
    ("Do you believe in ghosts?", None),
    ("How do crows remember faces?", None),
    ("The dog ate my homework", Some("dog")),
    ("What is the capital of Portugal?", None),
    ("I would like to learn the violin, am I too old?", Some("violin")),
    ("Is a hot dog a sandwich?", Some("hot dog")),
    ("Explain quantum physics to me", None),
    ("That was quite a surprise", Some("surprise")),
    ("Aria, thanks, what do you suggest?", None),
    // In other languages no topic is found, and the answer needs none.
    ("¿Qué libro me recomiendas para el tren?", None),
    ("¿Cómo estás hoy?", None),
    ("Me gusta mucho la lluvia", None),
    ("Was ist dein Lieblingsbuch?", None),
    ("Wie beginnt man einen Regentag am besten?", None),
    ("Ich habe heute einen Kuchen gebacken", None),
    ("Kannst du mir ein Buch empfehlen?", None),
    ("Was war das?", None),
];

const TEMPERS: [&str; 6] = ["shy", "dry", "", "curious", "playful", "eager"];

#[test]
fn the_topic_of_an_ordinary_message_is_a_noun_phrase_or_none() {
    let names = ["ana".to_owned()];
    let wrong: Vec<_> = ORDINARY.iter().filter(|(text, expected)| topic(text, &names).as_deref() != *expected).collect();

    let found: Vec<_> = wrong.iter().map(|(text, expected)| (text, expected, topic(text, &names))).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// `cargo test --lib what_is_said -- --nocapture` prints what is said, to be read.
#[tokio::test]
async fn what_is_said_to_ordinary_messages_is_a_whole_sentence() {
    for (text, expected) in ORDINARY {
        for temper in TEMPERS {
            let said = answer_to(&statement(temper, text)).await;

            println!("{text}  [{temper}]  {said}");
            assert!(said.ends_with(['.', '!', '?', '…', ')', '"']) && !said.contains(['{', '}']), "{text}: {said}");
            assert!(expected.is_some() || !said.to_lowercase().contains("the rest"), "{text}: {said}");
        }
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
        for temper in TEMPERS {
            for text in questions {
                for trigger in [Trigger::DirectAddress, Trigger::Lull, Trigger::Interjection, Trigger::Turn] {
                    // Only an address must be seen without a question mark.
                    if trigger != Trigger::DirectAddress && !text.contains('?') {
                        continue;
                    }
                    let answer = model.ask(&decision(trigger, temper, text), None).await.expect("it always answers");

                    let vote = vote::read(&answer.text(), Words::ENGLISH);
                    assert_eq!(vote.verdict, Verdict::Yes, "{seed} {temper} {trigger:?} {text}: {}", answer.text());
                }
            }
        }
    }
}
