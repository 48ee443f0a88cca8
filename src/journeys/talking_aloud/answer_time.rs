//! How long it takes from the end of speech to the first sound of the answer, with services that take as long as measured ones.

use tokio::time::sleep;

use super::*;
use crate::domain::voice::speech::HANGOVER;
use crate::settings::Settings;

const RECOGNITION: Duration = Duration::from_millis(300);
const DECISION: Duration = Duration::from_millis(400);
const FIRST_SENTENCE: Duration = Duration::from_millis(500);
const FIRST_AUDIO: Duration = Duration::from_millis(200);
const QUESTION: &str = "Aria, how are you?";
const ANSWERS: usize = 30;

/// Returns the question for each stretch of speech.
fn slow_ears() -> Arc<Ears> {
    Ears::new(|mut sounds, results| async move {
        while let Some(sound) = sounds.recv().await {
            let Sound::Ended(stretch) = sound else { continue };
            sleep(RECOGNITION).await;
            // Who left needs no words.
            let _ = results.send(final_of(QUESTION, stretch.started, stretch.ended, true)).await;
        }
        Ok(())
    })
}

fn slow_mouth() -> Arc<Mouth> {
    Mouth::new(|sentence| stream::once(sleep(FIRST_AUDIO)).flat_map(move |()| RehearsedSpeech.say(sentence.clone())).boxed())
}

/// Virtual time: what the machine itself takes is not in it, and what anything waits for is.
#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_services_and_settings_and_hardly_for_anything_else() {
    let world = world_of(slow_ears(), slow_mouth(), json!({})).await;
    world.side.set_delay(DECISION);
    world.main.set_delay(FIRST_SENTENCE);
    let mut ana = Caller::enter(&world, "ana").await;
    let mut times = Vec::new();

    for round in 0..ANSWERS {
        // Ends of speech differ in where they lie between ticks.
        world.pass(0.003 * round as f64).await;
        ana.talk(&world, 60, 1).await;
        let ended = world.context.clock.now();
        let heard = ana.page.packets.lock().len();
        while ana.page.packets.lock().len() == heard {
            ana.line.push_packet(ana.next, &[0]);
            ana.next += 1;
            for _ in 0..20 {
                world.pass(0.001).await;
            }
            assert!(world.context.clock.now().since(ended) < Duration::from_secs(30), "{:?}", ana.page.seen());
        }
        times.push(world.context.clock.now().since(ended));
        ana.listen(&world, 12.0).await;
    }

    times.sort();
    let address_timeout = Settings::overlay(json!({})).unwrap().voice.address_timeout();
    // Recognition goes on within the timeout. Nothing else waits: who addresses a companion is answered without `voice.turn_delay_secs`.
    let expected = address_timeout.max(HANGOVER + RECOGNITION) + DECISION + FIRST_SENTENCE + FIRST_AUDIO;
    let median = times[ANSWERS / 2];
    let ours = median.saturating_sub(expected);
    println!(
        "end of speech to first sound: p50 {median:?}, {:?} to {:?}; {expected:?} without ours",
        times[0],
        times[ANSWERS - 1]
    );
    assert!(ours < Duration::from_millis(100), "{ours:?} of {median:?}");
}
