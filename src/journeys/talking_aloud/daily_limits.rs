//! A guild has a limit for what services recognise and speak in a day: people are told, and typed words are answered in writing.

use super::*;
use crate::domain::service::Service;

/// A stream is closed when nobody has talked for so many seconds.
const IDLE_SECS: f64 = 35.0;

/// How often somebody was told that no more is recognised today.
fn refusals(person: &Caller) -> usize {
    person.page.seen().iter().filter(|view| **view == View::Trouble(Trouble::RecognitionUsedUp)).count()
}

/// Aria's answers, and whether each was spoken.
pub(super) async fn answers(world: &World) -> Vec<(String, bool)> {
    let messages = world.recorded("lobby", "message").await.into_iter().filter(|message| message["from"] == "aria");
    messages.map(|message| (message["text"].as_str().unwrap().to_owned(), message["modality"] == "voice")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_guild_that_has_used_its_minutes_is_told_once_and_can_type() {
    let limit = json!({ "speech": { "guild_minutes_per_day": 0.015 } });
    let world = world_of(Ears::rehearsed(), Arc::new(RehearsedSpeech), limit).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    world.pass(IDLE_SECS).await;
    assert_eq!((segments(&world).await.len(), refusals(&ana)), (1, 0));
    ana.say_something(&world).await;
    ana.say_something(&world).await;
    world.pass(IDLE_SECS).await;

    assert_eq!((segments(&world).await.len(), refusals(&ana)), (1, 1));
    world.say("lobby", "Aria, are you there?").await;
    ana.listen(&world, 10.0).await;
    let history = world.history("lobby").await;
    assert_eq!(history.last(), Some(&("aria".to_owned(), "Hello there.".to_owned())), "{history:?}");
    drop(ana);

    let world = world.crash().await;
    let mut ana = Caller::enter(&world, "ana").await;
    ana.say_something(&world).await;
    world.pass(IDLE_SECS).await;

    assert_eq!((segments(&world).await.len(), refusals(&ana)), (1, 1), "what was used is counted from the record");
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_before_the_record_is_read_is_added_to_it_once() {
    let limit = json!({ "speech": { "guild_minutes_per_day": 0.04 } });
    let world = world_of(Ears::rehearsed(), Arc::new(RehearsedSpeech), limit).await;
    let mut ana = Caller::enter(&world, "ana").await;
    ana.say_something(&world).await;
    world.pass(IDLE_SECS).await;
    drop(ana);

    // Of 2.4 s, 1.2 to 1.7 are on record.
    let world = world.crash().await;
    let (context, guild, service) = (&world.context, GuildId::from("home"), Service::SpeechRecognition);
    let (allowances, speech) = (context.calls.allowances(), &context.settings.speech);
    allowances.count(speech, &guild, service, 10, context.clock.now());
    for _ in 0..2 {
        allowances.load(context, &guild).await.unwrap();
    }
    assert!(!allowances.is_used_up(speech, &guild, service, context.clock.now()));
    allowances.count(speech, &guild, service, 1_200, context.clock.now());
    assert!(allowances.is_used_up(speech, &guild, service, context.clock.now()));
}

#[tokio::test(start_paused = true)]
async fn a_guild_that_has_used_its_characters_is_answered_in_writing() {
    let limit = json!({ "speech": { "guild_characters_per_day": "Hello there.".len() } });
    let world = world_of(Arc::new(RehearsedSpeech), Mouth::new(|sentence| RehearsedSpeech.say(sentence)), limit).await;
    let ana = Caller::enter(&world, "ana").await;
    let ask = async |world: &World, ana: &Caller| {
        ana.line.report(PersonAction::Say("Aria, how are you?".into()));
        ana.listen(world, 15.0).await;
    };

    ask(&world, &ana).await;
    let heard = ana.page.packets.lock().len();
    ask(&world, &ana).await;

    let answer = |is_spoken| ("Hello there.".to_owned(), is_spoken);
    assert_eq!(answers(&world).await, [answer(true), answer(false)]);
    assert!(ana.page.has(|view| *view == View::Trouble(Trouble::SynthesisUsedUp)));
    assert!(!ana.page.has(|view| *view == View::Trouble(Trouble::SynthesisFailed)));
    let characters = |used: &[(String, usage::Speech)]| used.iter().map(|(_, speech)| speech.characters).sum::<u64>();
    assert_eq!(characters(&speech_used(&world).await), "Hello there.".len() as u64, "what is refused is not counted");
    let caps = world.backend.records.usage(UsageQuery::default()).await.unwrap().guilds[0].caps;
    let spoken = caps.spoken_characters.expect("a limit");
    assert_eq!((spoken.used, spoken.limit, spoken.free_at.is_some()), (12, Some(12), true));
    assert_eq!(caps.recognised_secs, None);
    assert!(heard > 0 && ana.page.packets.lock().len() == heard, "nothing was spoken");
    drop(ana);

    let world = world.crash().await;
    world.side.answer_by(|_| Some(Ok("Yes.\nYES".to_owned())));
    world.main.answer_by(|_| Some(Ok("Hello there.".to_owned())));
    let ana = Caller::enter(&world, "ana").await;
    ask(&world, &ana).await;

    assert_eq!(answers(&world).await, [answer(true), answer(false), answer(false)], "what was used is counted from the record");
    assert!(ana.page.packets.lock().is_empty());
    world.pass(86_400.0).await;
    ask(&world, &ana).await;
    assert_eq!(answers(&world).await.last(), Some(&answer(true)), "a day later it is spoken again");
}

/// Ears that return something of each sound.
fn talkative() -> Arc<Ears> {
    Ears::new(|mut sounds, results| async move {
        while let Some(sound) = sounds.recv().await {
            if let Sound::Audio { from, .. } = sound {
                let _ = results.send(Recognised::Partial { text: "la".into(), started: from }).await;
            }
        }
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn who_does_not_stop_talking_reaches_the_limit_all_the_same() {
    let ears = talkative();
    let limit = json!({ "speech": { "guild_minutes_per_day": 0.4 } });
    let world = world_of(ears.clone(), Arc::new(RehearsedSpeech), limit).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.talk(&world, 1_000, 1).await;
    assert_eq!((refusals(&ana), ears.open()), (0, 1), "after 20 s");
    ana.talk(&world, 1_000, 1).await;

    assert_eq!((refusals(&ana), ears.open()), (1, 0), "after 40 s");
    let heard = speech_used(&world).await.iter().map(|(_, used)| used.recognised_ms).sum::<u64>() as f64 / 1_000.0;
    assert!((24.0..35.0).contains(&heard), "{heard}");
}
