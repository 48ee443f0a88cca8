//! An endpoint's filter refuses something that was said.

use std::collections::BTreeSet;
use std::time::Duration;

use super::world::{World, ballot, channel_key, lines, room};
use crate::domain::event::Event;
use crate::domain::filter::ALL_FILTERED;
use crate::domain::id::Seq;
use crate::ports::backend::decisions::WhyAt;
use crate::ports::backend::messages::Edit;
use crate::ports::language_model::{NoAnswer, Request};

const WORD: &str = "grenade";

/// A filter that refuses every prompt with the word.
fn filter(request: &Request) -> Option<Result<String, NoAnswer>> {
    let prompt: String = request.messages.iter().map(|message| message.words()).collect();
    let refused = || NoAnswer::Filtered { endpoint: "test".into(), detail: "400: “no such words”".to_owned() };
    prompt.contains(WORD).then(|| Err(refused()))
}

async fn filtered_lobby() -> World {
    let world = World::with_willing_lobby().await;
    world.side.answer_by(|request| filter(request).or_else(|| Some(Ok(ballot("YES", 8, "none")))));
    world.main.answer_by(|request| filter(request).or_else(|| Some(Ok("All right.".to_owned()))));
    world
}

/// The numbers of the messages that stay out.
async fn filtered(world: &World) -> Vec<u64> {
    let refused: BTreeSet<u64> = world.state("lobby").await.filtered.into_iter().map(|refused| refused.message.0).collect();
    refused.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_that_a_filter_refuses_silences_nobody_also_after_a_restart_until_it_is_edited() {
    let world = filtered_lobby().await;
    world.say_then_pass("lobby", "Ari, good morning!", 5.0).await;

    let bad = world.say_then_pass("lobby", "Ari, the film had a grenade in it.", 5.0).await;
    let refused = world.decisions("lobby").await.pop().expect("a decision");
    let why = world.why("lobby", Some("aria"), None).await.expect("a story");
    let about = |message: Seq| Some(WhyAt::Message(message.0.to_string().into()));
    let of_message = world.why("lobby", None, about(bad)).await.expect("a story");
    world.say_then_pass("lobby", "Ari, anyway: when is dinner?", 5.0).await;
    let world = world.crash().await;
    world.side.answer_by(|request| filter(request).or_else(|| Some(Ok(ballot("YES", 8, "none")))));
    world.main.answer_by(|request| filter(request).or_else(|| Some(Ok("All right.".to_owned()))));
    world.say_then_pass("lobby", "Ari, and when is lunch?", 5.0).await;

    assert_eq!((&refused["decision"], &refused["reason"]), (&"NO".into(), &"filtered".into()));
    for why in [why, of_message] {
        let told: Vec<_> = why.story.iter().map(|line| &*line.text).collect();
        assert!(told.iter().any(|text| text.contains("“no such words”")), "{told:?}");
    }
    let answers: Vec<_> = world.history("lobby").await.into_iter().filter(|(from, _)| from == "aria").collect();
    assert_eq!(answers, lines(&[("aria", "All right."); 3]));
    assert_eq!(filtered(&world).await, [bad.0]);
    let later = world.why("lobby", Some("aria"), about(bad)).await.expect("a story");
    let told: Vec<_> = later.story.iter().filter(|line| &*line.event == "filter").map(|line| &*line.text).collect();
    assert!(told.iter().any(|text| text.starts_with("The filter of ")), "{told:?}");
    let asked = world.side.asked.lock().len();
    world.say_then_pass("lobby", "Ari, and tea?", 5.0).await;
    assert_eq!(world.side.asked.lock().len(), asked + 1, "nothing is searched any more");

    let edit = Edit { text: "Ari, the film was loud.".into() };
    world.backend.messages.edit(&room("lobby"), bad, edit).await.expect("an edit");
    assert_eq!(filtered(&world).await, [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn of_many_messages_only_the_refused_one_stays_out() {
    let world = filtered_lobby().await;
    let mut bad = None;
    for number in 0..5 {
        let text = if number == 1 { "A grenade, really.".to_owned() } else { format!("Number {number}.") };
        let seq = world.say("lobby", &text).await;
        bad = bad.or((number == 1).then_some(seq));
    }

    world.say_then_pass("lobby", "Ari, what do you think?", 5.0).await;
    let first = world.side.asked.lock().len();
    for _ in 0..3 {
        world.say_then_pass("lobby", "Ari, and now?", 5.0).await;
    }

    assert_eq!(first, 2, "one call was refused");
    let answers = world.history("lobby").await.into_iter().filter(|(from, _)| from == "aria").count();
    assert_eq!(answers, 4);
    assert_eq!(filtered(&world).await, [bad.expect("it was said").0]);
    let last = world.main.asked.lock().last().expect("a statement").clone();
    let prompt: String = last.messages.iter().map(|message| message.words()).collect();
    assert!([0, 2, 3, 4].iter().all(|number| prompt.contains(&format!("Number {number}."))), "{prompt}");
    let events = world.journal(&channel_key("lobby")).await;
    assert!(events.iter().any(|recorded| matches!(recorded.event, Event::Filtered(_))));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_refuses_everything_is_said_to_and_no_message_is_blamed_until_it_answers() {
    let world = World::with_willing_lobby().await;
    let refused = || NoAnswer::Filtered { endpoint: "test".into(), detail: "403: “blocked”".to_owned() };
    world.side.answer_by(move |_| Some(Err(refused())));
    let mut watching = world.watch("lobby", None).await;

    let mut said = Vec::new();
    for text in ["Ari, good morning!", "Ari, hello?", "Ari, are you there?", "Ari, really?"] {
        said.push(world.say_then_pass("lobby", text, 5.0).await.0);
    }
    let blamed = filtered(&world).await;
    let trouble = parts(&world).await;
    let why = world.why("lobby", Some("aria"), None).await.expect("a story");
    let last = said.last().expect("a message").to_string();
    let of_message = world.why("lobby", Some("aria"), Some(WhyAt::Message(last.into()))).await.expect("a story");
    let seen = watching.seen().await;
    world.side.answer_by(|_| Some(Ok(ballot("YES", 8, "none"))));
    world.say_then_pass("lobby", "Ari, anyway: when is dinner?", 5.0).await;

    assert_eq!(blamed, [0; 0]);
    let marks = |event: &str| -> Vec<u64> {
        let of_event = seen.iter().filter(|one| one["event"] == event);
        of_event.filter_map(|one| one["message"].as_u64()).collect()
    };
    assert_eq!((marks("filtered"), marks("unfiltered")), (said[..2].to_vec(), said[..3].to_vec()));
    assert!(trouble.iter().any(|(part, detail)| part == ALL_FILTERED && detail.contains("“blocked”")), "{trouble:?}");
    for why in [why, of_message] {
        let told = why.story.iter().any(|line| line.text.contains("every question") && line.text.contains("“blocked”"));
        assert!(told, "{:?}", why.story);
    }
    assert!(parts(&world).await.iter().all(|(part, _)| part != ALL_FILTERED), "it answers again");
    let last = world.side.asked.lock().last().expect("a question").user().into_owned();
    assert!(last.contains("good morning") && last.contains("really"), "{last}");
}

/// The parts of the readiness, with their details.
async fn parts(world: &World) -> Vec<(String, String)> {
    let readiness = world.backend.maintenance.readiness().await;
    readiness.parts.into_iter().map(|part| (part.part.to_string(), part.detail)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_edited_during_the_search_is_not_blamed() {
    let world = filtered_lobby().await;
    world.side.set_delay(Duration::from_secs(5));
    let bad = world.say_then_pass("lobby", "Ari, the film had a grenade in it.", 2.0).await;
    assert_eq!(world.side.asked.lock().len(), 1, "the question is in flight");
    let edit = Edit { text: "Ari, the film was loud.".into() };
    world.backend.messages.edit(&room("lobby"), bad, edit).await.expect("an edit");

    world.pass(10.0).await;

    let decision = world.decisions("lobby").await.pop().expect("a decision");
    assert_eq!((&decision["reason"], filtered(&world).await), (&"filtered".into(), vec![]));
}
