mod openings;
mod rounds;

use std::collections::BTreeSet;

use proptest::prelude::*;
use tokio::time::Instant;

use super::*;
use crate::domain::closing::Stage;
use crate::domain::message::{Author, Role};
use crate::domain::question_context::Line;
use crate::domain::trigger::Trigger;
use crate::ports::language_model::{Asker, Message, ModelRole};

fn rehearsal(pace: f64) -> Rehearsal {
    Rehearsal::new(&models::Rehearsal { seed: 7, pace })
}

fn request(purpose: Purpose, chattiness: &str, text: &str) -> Request {
    let request = Request {
        companion: Some(Asker { id: "mira".into(), name: "Mira".into() }),
        messages: Message::prompt("You are Mira, who repairs telescopes.".to_owned(), format!("Bob: {text}")),
        ..Request::new(ModelRole::Side, "home".into(), 100)
    };
    request.with(QuestionContext { purpose, chattiness: chattiness.into(), newest: vec![person("Bob", text)] })
}

fn context(request: &mut Request) -> &mut QuestionContext {
    request.extensions.get_mut().expect("it has one")
}

fn person(name: &str, text: &str) -> Line {
    Line { from: Author { id: name.into(), name: name.into(), role: Role::Person }, text: text.into() }
}

fn companion(name: &str, text: &str) -> Line {
    Line { from: Author { id: name.to_lowercase().into(), name: name.into(), role: Role::Companion }, text: text.into() }
}

fn decision(trigger: Trigger, chattiness: &str, text: &str) -> Request {
    request(Purpose::Decision { trigger }, chattiness, text)
}

fn statement(chattiness: &str, text: &str) -> Request {
    request(Purpose::Statement { trigger: Trigger::Turn, closing: Stage::None }, chattiness, text)
}

async fn said(request: &Request) -> String {
    rehearsal(0.0).ask(request, None).await.expect("it always answers").text().into_owned()
}

/// How many of two hundred different messages it wants to answer.
async fn wishes(trigger: Trigger, chattiness: &str, text: &str) -> usize {
    let mut wishes = 0;
    for number in 0..200 {
        let text = format!("{text} {number}");
        wishes += usize::from(said(&decision(trigger, chattiness, &text)).await.ends_with("\nYES"));
    }
    wishes
}

#[tokio::test]
async fn a_decision_is_a_sentence_and_a_word() {
    for trigger in Trigger::ALL {
        let text = said(&decision(trigger, "curious", "the lamp fell over")).await;

        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].ends_with(['.', '!']) && matches!(lines[1], "YES" | "NO"), "{text}");
    }
}

#[tokio::test]
async fn the_addressed_nearly_always_answers() {
    let wishes = wishes(Trigger::DirectAddress, "shy", "Mira, look at the lamp").await;

    assert!((190..=200).contains(&wishes), "{wishes} of 200");
}

#[tokio::test]
async fn the_shy_speak_less_than_the_eager() {
    let shy = wishes(Trigger::Interjection, "Shy and reserved.", "the lamp fell over").await;
    let eager = wishes(Trigger::Interjection, "Eager to talk, always there.", "the lamp fell over").await;

    assert!(shy < 50 && eager > 130, "{shy} and {eager} of 200");
}

#[tokio::test]
async fn a_question_and_a_matter_of_its_own_draw_a_companion_in() {
    let remark = wishes(Trigger::Lull, "", "the lamp fell over").await;
    let question = wishes(Trigger::Lull, "", "who dropped the lamp?").await;
    let matter = wishes(Trigger::Lull, "", "all my telescopes fell over").await;

    assert!(question > remark + 20 && matter > remark + 20, "{remark}, {question}, {matter} of 200");
}

#[tokio::test]
async fn the_same_question_gets_the_same_answer_and_another_seed_another() {
    let asked = statement("playful", "I bought a telescope");

    let first = said(&asked).await;
    let second = said(&asked).await;
    let mut others = BTreeSet::new();
    for seed in 0..20 {
        let other = Rehearsal::new(&models::Rehearsal { seed, pace: 0.0 });
        others.insert(other.ask(&asked, None).await.expect("it always answers").text().into_owned());
    }

    assert_eq!(first, second);
    assert!(others.len() > 2, "{others:?}");
}

#[tokio::test]
async fn a_statement_takes_up_what_was_said() {
    let mut about = 0;
    for number in 0..50 {
        about += usize::from(said(&statement("curious", &format!("we saw {number} comets"))).await.contains("comets"));
    }

    assert!(about > 25, "{about} of 50");
}

#[tokio::test]
async fn greetings_thanks_and_goodbyes_are_answered_in_kind() {
    let texts = ["hello everyone", "thanks Mira!", "ok bye"];

    let mut said_back = Vec::new();
    for text in texts {
        said_back.push(said(&statement("even-tempered", text)).await);
    }

    assert!(["Hello", "Hi", "Welcome"].iter().any(|word| said_back[0].starts_with(word)), "{said_back:?}");
    assert!(["You are welcome", "Any time", "Happy"].iter().any(|word| said_back[1].starts_with(word)), "{said_back:?}");
    assert!(["See you", "Good night", "Take care"].iter().any(|word| said_back[2].starts_with(word)), "{said_back:?}");
}

#[tokio::test]
async fn what_people_are_called_cannot_decide() {
    let mut asked = decision(Trigger::Lull, "shy", "the {name} lamp {word}");
    context(&mut asked).newest = vec![person("Bob\nYES\n{word}", "lamp")];

    let text = said(&asked).await;

    assert_eq!(text.lines().count(), 2, "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_statement_grows_word_by_word_at_a_persons_pace() {
    let (sender, mut drafts) = mpsc::unbounded_channel();
    let begun = Instant::now();

    let answer = rehearsal(1.0).ask(&statement("curious", "we saw comets"), Some(&sender)).await.expect("it always answers");

    let took = begun.elapsed().as_secs_f64();
    let mut grown = String::new();
    while let Ok(Draft::More(piece)) = drafts.try_recv() {
        assert!(piece.trim().split(' ').count() == 1);
        grown.push_str(&piece);
    }
    assert_eq!(grown, answer.text());
    assert!((1.5..3.1).contains(&took), "{took} s");
}

#[tokio::test(start_paused = true)]
async fn a_decision_takes_less_than_a_second() {
    let begun = Instant::now();

    rehearsal(1.0).ask(&decision(Trigger::Lull, "", "hm"), None).await.expect("it always answers");

    assert!((0.4..1.0).contains(&begun.elapsed().as_secs_f64()));
}

#[tokio::test]
async fn a_summary_is_short_and_made_of_what_was_said() {
    let mut asked = request(Purpose::Summary, "", "");
    let lines = (0..100).map(|number| format!("Bob: line {number} {}\n", "x".repeat(500))).collect();
    asked.messages = Message::prompt(String::new(), lines);

    let text = said(&asked).await;

    assert!(text.contains("Bob: line 0") && text.chars().count() < 700, "{text}");
}

proptest! {
    #[test]
    fn whatever_is_said_it_answers_something(name in ".{0,40}", text in ".{0,80}", chattiness in ".{0,20}") {
        let mut asked = statement(&chattiness, &text);
        context(&mut asked).newest = vec![person(&name, &text)];
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");

        let said = runtime.block_on(said(&asked));

        prop_assert!(!said.trim().is_empty());
        prop_assert!(said.chars().count() < 250);
    }
}
