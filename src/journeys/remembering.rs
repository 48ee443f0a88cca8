//! What a companion still knows of a conversation when it speaks: the summary, and as much of the talk as fits.

use std::collections::BTreeSet;

use serde_json::json;

use super::world::{World, purpose, room};
use crate::domain::question_context::Purpose;
use crate::ports::language_model::Request;
use crate::simulation::rounds;

/// The marks `m1x`, `m2x`, … in a text.
fn marks(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() > 2 && word.starts_with('m') && word.ends_with('x'))
        .map(str::to_owned)
        .collect()
}

/// A lobby whose side model says YES, and makes a summary after so many messages, which repeats all marks that it is shown.
async fn world_that_repeats_marks(summary_after: u32) -> World {
    let overlay = json!({ "prompt": { "summary_after": summary_after }, "gate": { "addresses_per_minute": 1000 } });
    let world = World::with_lobby_settings(overlay).await;
    world.side.answer_by(|request: &Request| {
        Some(Ok(match purpose(request) {
            Purpose::Summary => marks(&request.user()).into_iter().collect::<Vec<_>>().join(" "),
            _ => "Me.\nYES".to_owned(),
        }))
    });
    world
}

/// The side model says YES, and sums up without a mark.
fn count_and_say_yes(world: &World) {
    world.side.answer_by(|request: &Request| {
        Some(Ok(if *purpose(request) == Purpose::Summary { "They counted.".to_owned() } else { "Me.\nYES".into() }))
    });
}

/// The prompt of the newest statement.
fn newest_prompt(world: &World) -> String {
    world.main.asked.lock().last().map(|request| request.user().into_owned()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn every_message_is_in_the_prompt_of_a_statement_or_in_its_summary() {
    for talk in 0..rounds(4, 12) {
        let after = [1, 3, 12, 40][talk as usize % 4];
        let world = world_that_repeats_marks(after).await;
        let mut sent = BTreeSet::new();
        for number in 0..60_u64 {
            let mark = format!("m{number}x");
            let padding = "so ".repeat((number * (talk + 3) % 40) as usize);
            let is_address = number % (talk % 5 + 2) == 0;
            world.say("lobby", &format!("{}{mark} {padding}", if is_address { "Ari, " } else { "" })).await;
            sent.insert(mark);
            world.pass(10.0).await;
            if is_address {
                let missing: Vec<_> = sent.difference(&marks(&newest_prompt(&world))).cloned().collect();
                assert!(missing.is_empty(), "talk {talk}, message {number}: {missing:?} are in neither");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_message_leaves_the_summary_at_once_and_the_others_return_to_it() {
    let world = world_that_repeats_marks(3).await;
    let mut seqs = Vec::new();
    for number in 0..20 {
        seqs.push(world.say("lobby", &format!("m{number}x")).await);
        world.pass(15.0).await;
    }

    world.backend.messages.delete(&room("lobby"), seqs[0]).await.unwrap();
    world.pass(60.0).await;
    world.say_then_pass("lobby", "Ari, m99x", 10.0).await;

    let known = marks(&newest_prompt(&world));
    assert!(!known.contains("m0x"), "{known:?}");
    assert_eq!(known.len(), 20, "{known:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_from_before_a_clear_and_nobody_who_opted_out_is_shown() {
    let world = world_that_repeats_marks(3).await;
    for number in 0..10 {
        world.say_then_pass("lobby", &format!("m{number}x"), 15.0).await;
    }

    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.say("lobby", "m10x").await;
    world.say_then_pass("lobby", "Ari, m11x", 10.0).await;

    assert_eq!(marks(&newest_prompt(&world)), marks("m10x m11x"));
}

#[tokio::test(start_paused = true)]
async fn a_statement_shows_what_the_summary_covers_too_unless_it_was_deleted() {
    let world = World::with_lobby_settings(json!({ "prompt": { "summary_after": 3 } })).await;
    count_and_say_yes(&world);
    let mut seqs = Vec::new();
    for number in 0..20 {
        seqs.push(world.say("lobby", &format!("m{number}x")).await);
        world.pass(15.0).await;
    }

    world.backend.messages.delete(&room("lobby"), seqs[4]).await.unwrap();
    world.pass(60.0).await;
    world.say_then_pass("lobby", "Ari, m99x", 10.0).await;

    let prompt = newest_prompt(&world);
    assert!(prompt.contains("They counted."), "{prompt}");
    let expected = (0..20).filter(|number| *number != 4).chain([99]).map(|number| format!("m{number}x"));
    assert_eq!(marks(&prompt), expected.collect());
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_change_where_a_full_prompt_begins() {
    let talk = async |is_restarted: bool| {
        let overlay = json!({ "prompt": { "statement_tokens": 2000 }, "gate": { "addresses_per_minute": 1000 } });
        let mut world = World::with_lobby_settings(overlay).await;
        count_and_say_yes(&world);
        for number in 0..80 {
            world.say_then_pass("lobby", &format!("m{number}x {}", "so ".repeat(30)), 3.0).await;
        }
        world.say_then_pass("lobby", "Ari, m98x", 10.0).await;
        if is_restarted {
            world = world.crash().await;
            count_and_say_yes(&world);
        }
        world.say_then_pass("lobby", "Ari, m99x", 10.0).await;
        let prompt = newest_prompt(&world);
        prompt.split_once("The following messages").expect("new messages").0.to_owned()
    };

    let talk = [talk(false).await, talk(true).await];

    assert!(!marks(&talk[0]).contains("m0x") && marks(&talk[0]).len() > 5, "{}", talk[0]);
    assert_eq!(talk[0], talk[1]);
}
