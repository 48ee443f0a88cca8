//! Voice calls: what people say is journaled, handed over once, and deleted on request.

mod aloud;
mod erasing;
mod lost;
mod told;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::mouth;
use super::retaining::left_of;
use super::world::{World, channel_key, lines, room};
use crate::actors::inbound::Inbound;
use crate::actors::membership::opt_out::OptOutService;
use crate::actors::runtime::actor_keys::{ChannelActorKey, WriterKey};
use crate::actors::writer::requests::look;
use crate::domain::conversation::{Conversation, Notice};
use crate::domain::event::{Event, Recorded, Segment};
use crate::domain::id::{PersonId, Seq};
use crate::domain::message::{Author, HandedOver, Modality, Role, Speech, Standing};
use crate::domain::moment::Moment;
use crate::domain::voice::echo::PlayedWords;
use crate::domain::voice::interruption::Stop;
use crate::domain::voice::segment::Kind;
use crate::domain::voice::utterance;
use crate::ports::inbound_events::{Acceptance, ChannelRef};
use crate::ports::opt_out::OptOut;
use crate::ports::speech_recognition as recognition;
use crate::ports::voice_call::{CallEffect, CallEvents, InboundSegment};

/// How many scheduler steps after a hand-over is due something happens, in tests that try every one of them.
const STEPS: usize = 24;

fn lobby() -> ChannelRef {
    call_in("lobby")
}

fn call_in(id: &str) -> ChannelRef {
    ChannelRef { guild: "home".into(), channel: room(id).channel(), parent: None }
}

fn key() -> ChannelActorKey {
    ChannelActorKey(lobby().channel)
}

fn person(name: &str) -> Author {
    Author { id: name.into(), name: format!("{name} Doe").into(), role: Role::Person }
}

fn user(name: &str) -> PersonId {
    PersonId::from(name)
}

fn inbound(world: &World) -> Inbound {
    Inbound::new(world.context.clone())
}

/// A room in whose voice call these people are.
async fn call(people: &[&str]) -> World {
    let world = World::with_lobby().await;
    join_all(&world, people).await;
    world
}

/// Ana has just said something about a zebra, and Ben has answered.
async fn zebra_call() -> World {
    let world = call(&["ana", "ben"]).await;
    says(&world, "ana", "a zebra").await;
    says(&world, "ben", "it is").await;
    world
}

async fn join_all(world: &World, people: &[&str]) {
    for name in people {
        join(world, "lobby", name).await;
    }
    world.rest().await;
}

/// Somebody enters the voice call of a room.
pub(super) async fn join(world: &World, id: &str, name: &str) {
    let joined = inbound(world).joined(&call_in(id), person(name)).await.unwrap();
    assert!(matches!(joined, Acceptance::New(_)), "{joined:?}");
}

/// Whatever is said aloud from now on is played, and what was played is noted in the ledger.
pub(super) fn play_aloud(world: &World, ledger: mouth::Shared) {
    let (player, effects) = mpsc::unbounded_channel();
    world.play_calls_by(player);
    let events = inbound(world);
    let tell = move |channel: &_, notice| {
        events.noticed(channel, notice);
    };
    tokio::spawn(mouth::play(effects, ledger, |_| mouth::Voice::Fine, tell));
}

/// Somebody leaves the voice call of a room.
pub(super) async fn leave(world: &World, id: &str, name: &str) {
    let left = inbound(world).left(&call_in(id), person(name)).await.unwrap();
    assert!(matches!(left, Acceptance::New(_)), "{left:?}");
}

/// What somebody has said during the last second.
fn segment(world: &World, name: &str, text: &str) -> InboundSegment {
    segment_until(world.context.clock.now(), name, text)
}

fn segment_until(ended: Moment, name: &str, text: &str) -> InboundSegment {
    let mut id = DefaultHasher::new();
    (name, text).hash(&mut id);
    let segment = recognition::Segment {
        // Ids stay when words are deleted.
        id: format!("{:x}", id.finish()).into(),
        text: text.into(),
        is_verbatim: true,
        started: ended - Duration::from_secs(1),
        ended,
        voiced: Some(Duration::from_secs(1)),
        no_speech: None,
        confidence: Some(900),
        is_last: true,
        is_answer: true,
    };
    let (provider, played) = ("rehearsal".into(), PlayedWords::default());
    InboundSegment { segment, from: person(name), standing: Standing::Free, provider, is_during_reply: false, played }
}

async fn says(world: &World, name: &str, text: &str) -> Seq {
    says_in(world, "lobby", name, text).await
}

/// Somebody has just said something in the voice call of a room.
pub(super) async fn says_in(world: &World, id: &str, name: &str, text: &str) -> Seq {
    match inbound(world).heard(&call_in(id), segment(world, name, text)).await.unwrap() {
        Acceptance::New(seq) => seq,
        other => panic!("{text} is {other:?}"),
    }
}

pub(super) async fn events(world: &World) -> Vec<Recorded> {
    world.journal(&channel_key("lobby")).await
}

/// The spoken messages on record that have words.
async fn spoken(world: &World) -> Vec<(Recorded, Arc<str>, Speech)> {
    let events = events(world).await.into_iter();
    let spoken = events.filter_map(|recorded| match &recorded.event {
        Event::Said { message, .. } if message.modality == Modality::Voice && !message.text.is_empty() => {
            let (text, speech) = (message.text.clone(), message.speech.clone()?);
            Some((recorded, text, *speech))
        }
        _ => None,
    });
    spoken.collect()
}

/// What is on record of the speech in the call.
pub(super) async fn segments(world: &World) -> Vec<Segment> {
    let segments = events(world).await.into_iter().filter_map(|recorded| match recorded.event {
        Event::Segment(segment) => Some(*segment),
        _ => None,
    });
    segments.collect()
}

/// The channel as it is in memory.
async fn conversation(world: &World) -> Conversation {
    look(&world.context, &lobby().channel).await.unwrap().conversation
}

fn notice(world: &World, input: utterance::Input) {
    assert!(inbound(world).noticed(&lobby().channel, Notice::Call(input)));
}

async fn words(world: &World) -> Vec<String> {
    spoken(world).await.iter().map(|(_, text, _)| text.to_string()).collect()
}

/// The next deadline of the channel is due, and it has taken this many of the scheduler's steps.
async fn step_after(deadline: tokio::time::Instant, steps: usize) {
    tokio::time::sleep_until(deadline).await;
    for _ in 0..steps {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn words_become_messages_in_one_batch_once_the_voice_lull_has_ended() {
    let world = call(&["ana", "ben"]).await;
    let first = says(&world, "ana", "the tide").await;
    let second = says(&world, "ana", "is turning").await;
    let third = says(&world, "ben", "it is").await;

    world.pass(4.9).await;
    let before = (spoken(&world).await.len(), world.side.asked_for("aria"));
    world.pass(0.2).await;

    let spoken = spoken(&world).await;
    let said: Vec<_> = spoken.iter().map(|(_, text, speech)| (&**text, speech.segments.clone())).collect();
    assert_eq!(before, (0, 0));
    assert_eq!(said, [("the tide is turning", vec![first, second]), ("it is", vec![third])]);
    assert!(spoken.iter().all(|(recorded, ..)| recorded.at == spoken[0].0.at), "they are one batch");
    assert_eq!(spoken[1].2.handed_over, HandedOver::LullEnded);
    assert_eq!((spoken[0].2.ends_lull_for.len(), spoken[1].2.ends_lull_for.clone()), (0, vec!["aria".into()]));
    assert_eq!(world.side.asked_for("aria"), 1, "all of it is one question");
    let asked = world.side.asked.lock()[0].user().to_string();
    assert!(asked.contains("the tide is turning") && asked.contains("it is"), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_segment_is_recorded_once_and_noise_is_no_message() {
    let world = call(&["ana", "ben"]).await;
    let seq = says(&world, "ana", "the tide").await;

    let again = inbound(&world).heard(&lobby(), segment(&world, "ana", "the tide")).await;
    let mut short = segment(&world, "ben", "oh");
    short.segment.voiced = Some(Duration::from_millis(200));
    let noise = inbound(&world).heard(&lobby(), short).await;
    let empty = inbound(&world).heard(&lobby(), segment(&world, "ben", " ")).await;
    let bot = Author { role: Role::Bot, ..person("ben") };
    let by_bot = inbound(&world).heard(&lobby(), InboundSegment { from: bot, ..segment(&world, "ben", "beep") }).await;
    world.pass(6.0).await;

    assert_eq!(again, Ok(Acceptance::Duplicate(seq)));
    assert!(matches!(noise, Ok(Acceptance::New(_))), "{noise:?}");
    assert_eq!((empty, by_bot), (Ok(Acceptance::Ignored), Ok(Acceptance::Ignored)));
    assert_eq!(words(&world).await, ["the tide"]);
    let kinds: Vec<_> = segments(&world).await.iter().map(|segment| segment.kind).collect();
    assert_eq!(kinds, [Kind::Words, Kind::Noise]);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_address_companions_may_not_in_a_call_either() {
    let world = call(&["ana"]).await;

    for standing in [Standing::Free, Standing::MayNotAddress, Standing::NeverAnswered] {
        let text = format!("aria, what is {standing}?");
        let heard = InboundSegment { standing, ..segment(&world, "ana", &text) };
        inbound(&world).heard(&lobby(), heard).await.unwrap();
    }

    let addressed: Vec<_> = segments(&world).await.into_iter().map(|segment| segment.address.companions.len()).collect();
    assert_eq!(addressed, [1, 0, 0]);
}

/// What recognition writes instead of a name is a name before a stop word, also of words that were just played.
#[tokio::test(start_paused = true)]
async fn a_stop_word_after_what_a_name_sounds_like_is_no_echo() {
    let world = call(&["ana"]).await;
    world.reload_companion(serde_json::json!({ "id": "aria", "voice": { "sounds_like": ["Arya"] } }));
    let mut played = PlayedWords::default();
    played.add(world.context.clock.now(), "He called: Arya, stop! Mary, stop!");

    for text in ["Arya, stop", "Mary, stop"] {
        let heard = InboundSegment { is_during_reply: true, played: played.clone(), ..segment(&world, "ana", text) };
        inbound(&world).heard(&lobby(), heard).await.unwrap();
    }

    let segments = segments(&world).await;
    let found: Vec<_> = segments.iter().map(|segment| (segment.kind, segment.stop, segment.asks_to_stop)).collect();
    assert_eq!(found, [(Kind::Words, Stop::First, true), (Kind::Echo, Stop::None, false)]);
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_not_what_was_said_is_no_address_stop_word_echo_or_backchannel() {
    let world = call(&["ana"]).await;
    let mut played = PlayedWords::default();
    played.add(world.context.clock.now(), "the tide is out");

    for (text, is_verbatim) in ["Aria, stop", "mhm", "the tide is out"].iter().flat_map(|text| [(text, true), (text, false)]) {
        let id = format!("{text} {is_verbatim}").into();
        let mut heard = InboundSegment { is_during_reply: true, played: played.clone(), ..segment(&world, "ana", text) };
        (heard.segment.id, heard.segment.is_verbatim) = (id, is_verbatim);
        inbound(&world).heard(&lobby(), heard).await.unwrap();
    }

    let segments = segments(&world).await.into_iter();
    let found = segments.map(|segment| (segment.kind, segment.stop, segment.asks_to_stop, segment.address.companions.len()));
    let nothing = (Kind::Words, Stop::None, false, 0);
    let expected = [
        (Kind::Words, Stop::First, true, 1),
        nothing,
        (Kind::Backchannel, Stop::None, false, 0),
        nothing,
        (Kind::Echo, Stop::None, false, 0),
        nothing,
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn recognisers_are_told_to_finish_at_the_end_of_a_lull() {
    let world = call(&["ana", "ben"]).await;
    let now = world.context.clock.now();
    notice(&world, utterance::Input::Started { user: user("ana"), started: now });
    world.pass(1.0).await;
    notice(&world, utterance::Input::Ended { user: user("ana"), ended: world.context.clock.now() });
    says(&world, "ben", "hello").await;

    world.pass(10.0).await;

    assert!(world.call_effects().contains(&CallEffect::Finalize { user: user("ana") }), "{:?}", world.call_effects());
    assert_eq!(words(&world).await, ["hello"]);
    assert!(!inbound(&world).noticed(&"console:nowhere".into(), Notice::Call(utterance::Input::Partial { user: user("ana") })));
}

/// The writer dies with the end of the call, which is tried again when the person is back.
#[tokio::test(start_paused = true)]
async fn who_is_back_is_not_sent_out_by_a_second_attempt_to_journal_the_end() {
    let mut world = call(&["ana"]).await;
    notice(&world, utterance::Input::SocketLost { user: user("ana") });
    world.pass(9.9).await;
    world.store.hold();
    world.pass(0.5).await;
    assert_eq!(world.store.waiting(), 1);
    world.kill(&WriterKey()).await;
    world.store.release();

    while inbound(&world).joined(&lobby(), person("ana")).await.is_err() {
        world.pass(0.1).await;
    }
    world.pass(90.0).await;

    assert!(!events(&world).await.iter().any(|recorded| matches!(recorded.event, Event::VoiceLeft { .. })));
    assert_eq!(conversation(&world).await.voice().people_in_call().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_in_a_call_can_leave_it_when_no_companion_is_left() {
    let world = call(&["ana"]).await;
    world.reload_companions(&["bruno"]).await;

    leave(&world, "lobby", "ana").await;
    world.rest().await;

    assert_eq!(conversation(&world).await.voice().people_in_call().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_opts_out_is_not_heard_from_then_on() {
    let world = call(&["ana", "ben"]).await;
    says(&world, "ana", "the tide").await;
    world.pass(6.0).await;
    says(&world, "ana", "a zebra").await;
    says(&world, "ben", "it is").await;

    let opt_outs = OptOutService::new(world.context.clone());
    assert!(opt_outs.ignore(&lobby().guild, &user("ana"), true).await.unwrap());
    let ignored = inbound(&world).heard(&lobby(), segment(&world, "ana", "another zebra")).await;
    world.pass(6.0).await;

    assert_eq!(ignored, Ok(Acceptance::Ignored));
    assert_eq!(words(&world).await, ["the tide", "it is"]);
    assert_eq!(left_of("zebra", &world).await, 0);
    assert!(opt_outs.ignore(&lobby().guild, &user("ana"), false).await.unwrap());
    says(&world, "ana", "heard again").await;
    world.pass(6.0).await;
    assert_eq!(words(&world).await, ["the tide", "it is", "heard again"]);
}

/// An opt-out for this call alone is known to the platform only, so it says that again.
#[tokio::test(start_paused = true)]
async fn a_platform_repeats_after_a_restart_who_wants_to_be_ignored() {
    let world = zebra_call().await;

    let world = world.crash().await;
    join_all(&world, &["ana", "ben"]).await;
    notice(&world, utterance::Input::OptedOut { user: user("ana") });
    world.pass(6.0).await;

    assert_eq!(words(&world).await, ["it is"]);
    assert_eq!(left_of("zebra", &world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_opt_out_that_a_crash_interrupts_is_carried_out_after_it() {
    let mut world = zebra_call().await;
    world.expect_deaths();
    world.context.directory.find(&key()).unwrap().kill();
    let opt_outs = OptOutService::new(world.context.clone());
    assert!(opt_outs.ignore(&lobby().guild, &user("ana"), true).await.unwrap());

    let world = world.crash().await;
    world.pass(6.0).await;

    assert_eq!(words(&world).await, ["it is"]);
    assert_eq!(left_of("zebra", &world).await, 0);
}

/// Somebody is forgotten, or opts out, at any moment around a hand-over: no word is left that was not said before an opt-out.
#[tokio::test(start_paused = true)]
async fn words_that_are_handed_over_while_they_are_deleted_do_not_stay() {
    for steps in 0..STEPS {
        let world = zebra_call().await;
        let due = tokio::time::Instant::now() + Duration::from_secs(5);

        step_after(due, steps).await;
        world.forget("ana", false).await.unwrap();
        world.pass(30.0).await;

        assert_eq!([left_of("zebra", &world).await, left_of("ana Doe", &world).await], [0, 0], "forgotten after {steps}");
        assert_eq!(words(&world).await, ["it is"], "forgotten after {steps}");
        assert_eq!(world.history("lobby").await, lines(&[("ben Doe", "it is")]));
    }
}
