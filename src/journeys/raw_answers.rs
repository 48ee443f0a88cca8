//! Answers that are more than words, and answers that are none (docs/design/speaking.md S-5).

use std::time::Duration;

use super::world::World;
use crate::domain::prompt::REPEAT_WORDS;

const NO_STATEMENT: &str = "{\"decision\": \"NO\", \"reason\": \"Not mine.\"}";

#[tokio::test(start_paused = true)]
async fn a_model_that_writes_no_statement_is_asked_once_more_plainly() {
    let world = World::with_willing_lobby().await;
    world.main.answers([Ok(NO_STATEMENT), Ok("Hello, Ana!")]);

    world.say_then_pass("lobby", "Ari, are you there?", 10.0).await;

    assert_eq!(world.history("lobby").await.last().map(|(_, text)| text.as_str()), Some("Hello, Ana!"));
    let demands: Vec<bool> = world.main.asked.lock().iter().map(|request| request.user().ends_with(REPEAT_WORDS)).collect();
    assert_eq!(demands, [false, true]);
    assert_eq!(world.total("tertulia_answers_trimmed_total", &[("kind", "decision")]), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_answer_that_is_no_statement_fails_the_reply_and_is_explained() {
    let world = World::with_willing_lobby().await;
    world.main.answers([Ok(NO_STATEMENT), Ok("[silence]")]);

    world.say_then_pass("lobby", "Ari, are you there?", 10.0).await;

    assert_eq!(world.history("lobby").await.len(), 1);
    assert_eq!(world.recorded("lobby", "failed").await[0]["error"], "no_statement");
    assert_eq!(world.total("tertulia_statements_failed_total", &[("error_type", "no_statement")]), 1);
    let why = serde_json::to_string(&world.why("lobby", Some("aria"), None).await.unwrap()).unwrap();
    assert!(why.contains("The model wrote nothing that Aria could say"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_read_further_where_somebody_else_speaks() {
    let world = World::with_willing_lobby().await;
    world.main.write_at(Duration::from_secs(1), []);
    world.main.answer_by(|_| Some(Ok(format!("I am here.\n\nAna: Great! {}", "And so on. ".repeat(20)))));

    world.say_then_pass("lobby", "Ari, are you there?", 12.0).await;

    assert_eq!(world.history("lobby").await.last().map(|(_, text)| text.as_str()), Some("I am here."));
    assert_eq!(world.total("tertulia_answers_trimmed_total", &[("kind", "other_speaker")]), 1);
}

#[tokio::test(start_paused = true)]
async fn drafts_show_nothing_that_is_cut_and_thoughts_without_a_beginning_are_learnt() {
    let world = World::with_willing_lobby().await;
    let mut watching = world.watch("lobby", None).await;
    world.main.write_at(Duration::from_millis(200), []);
    for (answer, drafts) in [
        ("<think>They greet me.</think> Hello, you!", "Hello, you!"),
        ("They greet me. </think>Good evening.", "They greet me."),
        ("They greet me. </think>Good evening.", "Good evening."),
    ] {
        world.main.answer_by(move |_| Some(Ok(answer.to_owned())));
        world.say_then_pass("lobby", "Ari, are you there?", 15.0).await;

        let seen = watching.seen().await;
        let shown: String =
            seen.iter().filter(|event| event["event"] == "draft").filter_map(|event| event["text"].as_str()).collect();
        assert!(shown.starts_with(drafts), "{shown}");
        assert!(!shown.contains('<') && (drafts != "Hello, you!" || shown == drafts), "{shown}");
    }
}
