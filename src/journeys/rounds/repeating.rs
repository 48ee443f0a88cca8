//! Companions that repeat each other, and the side model that judges repetition.

use super::*;
use crate::actors::runtime::actor_keys::PoolKey;

/// Three companions that agree for ever, and a side model that judges their statements.
async fn echo_chamber(score: &'static str) -> World {
    let world = World::with_salon(json!({
        "repetition": { "judge": "model" },
        "gate": { "skip_when_other_addressed": false },
        "turn_taking": { "max_companion_streak": 20 },
    }))
    .await;
    agree(&world, score);
    world
}

fn agree(world: &World, score: &'static str) {
    world.side.answer_by(move |request| match purpose(request) {
        Purpose::Judgement => Some(Ok(format!("They circle.\n{score}"))),
        _ => Some(Ok(ballot("YES", 5, "none"))),
    });
    world.main.answer_by(|request| Some(Ok(format!("So true, says {}.", asking_companion(request)))));
}

#[tokio::test(start_paused = true)]
async fn repetition_closes_the_conversation_step_by_step() {
    let world = echo_chamber("0.9").await;

    world.say_then_pass("salon", "Bruno, what of it?", 300.0).await;

    let judged = world.recorded("salon", "repetition").await;
    assert_eq!(judged.iter().map(|judged| &judged["detections"]).collect::<Vec<_>>(), [1, 2, 3]);
    let stages = world.recorded("salon", "closing").await;
    let forced = stages.iter().filter(|stage| stage["cause"] == "repetition" && stage["to"] == "terminal").count();
    assert_eq!(forced, 3, "all present");
    let statements = world.main.asked.lock().len();
    assert_eq!(statements, 5, "the first judgement follows the third statement, and the third one ends the talk");
    let notes = &world.context.settings.prompt;
    let last = world.main.asked.lock().last().unwrap().user().into_owned();
    assert!(last.contains(&notes.closing) && !last.contains(&notes.repetition), "who says goodbye is told nothing else: {last}");
    assert!(world.side.asked.lock().iter().any(|asked| asked.user().contains(&notes.repetition)), "decisions are warned");
    let spans = world.spans.named("decision.repetition");
    assert_eq!(spans.len(), 3);
    assert_eq!(attribute(&spans[0], "repetition.judge").as_deref(), Some("model"));
    let usage = world.state("salon").await;
    assert!(usage.companions.iter().all(|companion| companion.closing.as_str() == "terminal"));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_or_failed_judgement_holds_nothing_up() {
    for answer in ["what?", "error"] {
        let world = echo_chamber("0").await;
        world.side.answer_by(move |request| match purpose(request) {
            Purpose::Judgement if answer == "error" => Some(Err(refusal())),
            Purpose::Judgement => Some(Ok(answer.to_owned())),
            _ => Some(Ok(ballot("YES", 5, "none"))),
        });

        world.say_then_pass("salon", "Bruno, what of it?", 40.0).await;

        let judged = world.recorded("salon", "repetition").await;
        assert!(judged.len() > 1, "{answer}");
        assert!(judged.iter().all(|judged| judged["score"] == 0.0), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_judgement_is_asked_for_again_whatever_dies() {
    for dies in ["pool", "channel", "server"] {
        let mut world = echo_chamber("0.9").await;
        world.say("salon", "Bruno, what of it?").await;
        while world.recorded("salon", "repetition_asked").await.is_empty() {
            world.pass(0.2).await;
        }

        match dies {
            "pool" => world.kill(&PoolKey()).await,
            "channel" => world.kill(&ChannelActorKey(room("salon").channel())).await,
            _ => {
                world = world.crash().await;
                agree(&world, "0.9");
            }
        }
        world.pass(300.0).await;

        assert_eq!(world.recorded("salon", "repetition_asked").await.len(), 3, "{dies}");
        assert_eq!(world.recorded("salon", "repetition").await.len(), 3, "{dies}");
    }
}
