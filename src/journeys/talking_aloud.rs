//! Voice calls of a platform that carries audio: people talk, companions answer aloud, and actors die meanwhile.

mod answer_time;
mod daily_limits;
mod fakes;
mod flooded;
mod greeting;
mod held_up;
mod muted;
mod passing;
mod pumped;
mod refused;
mod restarting;
mod silenced;
mod unanswered;
mod unspoken;
mod while_written;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender};

use self::fakes::{Ears, Mouth, failed, final_of};
use super::abroad::channel_ref;
use super::calling;
use super::world::{World, room};
use crate::actors::calls::Speech;
use crate::actors::calls::providers::{Limits, Provider, Recognisers, RecognitionProvider, VoiceProvider, Voices};
use crate::actors::membership::opt_out::OptOutService;
use crate::actors::runtime::actor_keys::{RecognitionKey, VoiceCallKey, VoiceUserKey};
use crate::adapters::speech::rehearsed::RehearsedSpeech;
use crate::domain::id::{ChannelId, GuildId, PersonId};
use crate::domain::moment::Moment;
use crate::domain::price::UnitPrice;
use crate::domain::samples::person;
use crate::ports::audio::{
    Audio, CodecFailed, Decoded, Ear, Encoder, HEARD_FRAME, Hop, PacketRefused, Recording, RecordingRefused, SPOKEN_FRAME,
};
use crate::ports::backend::Refused;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::usage::{self, SpeechBy, UsageQuery};
use crate::ports::call_room::conformance::{Subject, conformance};
use crate::ports::call_room::{CallRooms, End, Entrance, Line, Listener, Packet, PersonAction, SpeechService, Trouble, View};
use crate::ports::language_model::NoAnswer;
use crate::ports::opt_out::OptOut as _;
use crate::ports::speech_recognition::{Recognised, Sound, SpeechRecognition};
use crate::ports::speech_synthesis::{Piece, SpeechSynthesis};
use crate::telemetry::fake::{SpanMemory, attribute};

/// A codec without a codec: a packet is one byte, the voice in it.
struct FakeAudio;

#[derive(Default)]
struct FakeEar {
    end: Option<u64>,
    hops: Vec<Hop>,
    next_hop: u64,
}

impl Audio for FakeAudio {
    fn ear(&self) -> Result<Box<dyn Ear>, CodecFailed> {
        Ok(Box::<FakeEar>::default())
    }

    fn recording(&self, _: &[u8], _: Duration) -> Result<Box<dyn Recording>, RecordingRefused> {
        Err(RecordingRefused::TooLong)
    }

    fn encoder(&self) -> Result<Box<dyn Encoder>, CodecFailed> {
        Ok(Box::new(FakeEncoder))
    }
}

impl Ear for FakeEar {
    fn decode_packet(&mut self, number: u32, packet: &[u8]) -> Result<Decoded<'_>, PacketRefused> {
        let &[voice] = packet else { return Err(PacketRefused::Malformed("more than a byte".into())) };
        let from = u64::from(number) * HEARD_FRAME as u64;
        if self.end != Some(from) {
            self.next_hop = from;
        }
        let end = from + HEARD_FRAME as u64;
        self.end = Some(end);
        self.hops.clear();
        while self.next_hop + 256 <= end {
            self.hops.push(Hop { from: self.next_hop, score: f32::from(voice) });
            self.next_hop += 256;
        }
        Ok(Decoded { from, samples: &[0; HEARD_FRAME], hops: &self.hops, concealed: 0 })
    }
}

struct FakeEncoder;

impl Encoder for FakeEncoder {
    fn encode(&mut self, _: &[i16; SPOKEN_FRAME]) -> Result<Vec<u8>, CodecFailed> {
        Ok(vec![0])
    }
}

/// A page that shows and plays everything.
#[derive(Default)]
struct Page {
    seen: Mutex<Vec<View>>,
    packets: Mutex<Vec<Packet>>,
    ended: Mutex<Option<End>>,
}

impl Listener for Page {
    fn show(&self, view: &View) {
        self.seen.lock().push(view.clone());
    }

    fn play(&self, packet: &Packet) {
        self.packets.lock().push(packet.clone());
    }

    fn end(&self, end: End) {
        *self.ended.lock() = Some(end);
    }
}

impl Page {
    /// What it was shown, without captions that were not final.
    fn seen(&self) -> Vec<View> {
        let seen = self.seen.lock().clone();
        seen.into_iter().filter(|view| !matches!(view, View::Caption { kind: None, .. })).collect()
    }

    fn has(&self, wanted: impl Fn(&View) -> bool) -> bool {
        self.seen.lock().iter().any(wanted)
    }

    fn ended(&self) -> Option<End> {
        *self.ended.lock()
    }
}

/// Somebody in the call of the lobby.
struct Caller {
    line: Arc<dyn Line>,
    page: Arc<Page>,
    next: u32,
}

impl Caller {
    async fn enter(world: &World, name: &str) -> Self {
        Self::try_enter(world, name).await.unwrap_or_else(|refused| panic!("{refused}"))
    }

    async fn try_enter(world: &World, name: &str) -> Result<Self, Refused> {
        let page = Arc::<Page>::default();
        let entrance = Entrance { author: person(name), has_microphone: true, listener: page.clone() };
        let line = world.backend.calls.enter(&room("lobby"), entrance).await?;
        world.rest().await;
        Ok(Self { line, page, next: 0 })
    }

    /// Talks, or is silent, for so many packets.
    async fn talk(&mut self, world: &World, packets: u32, voice: u8) {
        for _ in 0..packets {
            self.line.push_packet(self.next, &[voice]);
            self.next += 1;
            world.pass(0.02).await;
        }
    }

    /// Talks long enough to be recognised, and then is silent.
    async fn say_something(&mut self, world: &World) {
        self.talk(world, 60, 1).await;
        self.talk(world, 50, 0).await;
    }

    /// Asks Aria, and listens to the beginning of her answer.
    async fn hear_the_beginning(&self, world: &World) {
        self.line.report(PersonAction::Say("Aria, how are you?".into()));
        while self.page.packets.lock().len() < 40 {
            self.listen(world, 0.1).await;
        }
    }

    /// Listens for a while, and tells what was played of what was sent.
    async fn listen(&self, world: &World, secs: f64) {
        for _ in 0..(secs * 10.0) as u32 {
            world.pass(0.1).await;
            let newest = self.page.packets.lock().last().map(|packet| (packet.reply, packet.number));
            if let Some((reply, number)) = newest {
                self.line.report(PersonAction::Played { reply, position: Duration::from_millis(20) * (number + 1) });
            }
        }
    }
}

async fn world() -> World {
    world_with(json!({})).await
}

async fn world_with(overlay: serde_json::Value) -> World {
    let world = world_of(Arc::new(RehearsedSpeech), Arc::new(RehearsedSpeech), overlay).await;
    world.main.answer_by(|_| Some(Ok("Hello there. It is good to hear you.".to_owned())));
    world
}

/// What recognises speech, in order, and what makes voices.
fn speech_of(recognition: impl IntoIterator<Item = RecognitionProvider>, synthesis: VoiceProvider) -> Speech {
    let mut recognition = recognition.into_iter();
    let first = recognition.next().expect("at least one");
    let (recognition, synthesis) = (Recognisers::new(first, recognition), Voices::new(synthesis, []));
    Speech::new(Arc::new(FakeAudio), recognition, synthesis)
}

/// With these ears and this mouth.
async fn world_of(
    recognition: Arc<dyn SpeechRecognition>,
    synthesis: Arc<dyn SpeechSynthesis>,
    overlay: serde_json::Value,
) -> World {
    world_with_speech(speech_of([Provider::unlimited(recognition)], Provider::unlimited(synthesis)), overlay).await
}

/// Aria says YES whenever she is asked, and greets.
async fn world_with_speech(speech: Speech, overlay: serde_json::Value) -> World {
    let world = World::with_speech(speech, overlay).await;
    world.side.answer_by(|_| Some(Ok("Yes.\nYES".to_owned())));
    world.main.answer_by(|_| Some(Ok("Hello there.".to_owned())));
    world
}

conformance!(world().await);

impl Subject for World {
    fn call_rooms(&self) -> &dyn CallRooms {
        &*self.backend.calls
    }

    fn room(&self) -> RoomId {
        room("lobby")
    }

    fn question(&self) -> &'static str {
        "Aria, how are you?"
    }

    async fn wait(&self, secs: f64) {
        self.pass(secs).await;
    }
}

fn channel() -> ChannelId {
    room("lobby").channel()
}

async fn people_in_call(world: &World) -> Vec<String> {
    let mut people = Vec::new();
    for event in world.recorded("lobby", "voice_joined").await {
        people.push(format!("+{}", event["from"].as_str().unwrap()));
    }
    for event in world.recorded("lobby", "voice_left").await {
        people.push(format!("-{}", event["from"].as_str().unwrap()));
    }
    people
}

#[tokio::test(start_paused = true)]
async fn words_to_a_companion_are_answered_aloud() {
    let world = world().await;
    let ana = Caller::enter(&world, "ana").await;

    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    ana.listen(&world, 15.0).await;

    let seen = ana.page.seen();
    let kinds: Vec<_> = seen.iter().map(std::mem::discriminant).collect();
    assert!(matches!(&seen[0], View::Entered { you, people } if *you == PersonId::from("ana") && people.len() == 1), "{seen:?}");
    let at = |wanted: fn(&View) -> bool| seen.iter().position(wanted).unwrap_or_else(|| panic!("{seen:?}"));
    let order = [
        at(|view| matches!(view, View::Talking(_, true))),
        at(|view| matches!(view, View::Talking(_, false))),
        at(|view| matches!(view, View::Caption { .. })),
        at(|view| matches!(view, View::Thinking(_, true))),
        at(|view| matches!(view, View::Speaking { .. })),
        at(|view| matches!(view, View::Sentence { .. })),
        at(|view| matches!(view, View::Done(_))),
    ];
    assert!(order.is_sorted(), "{order:?} of {kinds:?}: {seen:?}");
    let packets = ana.page.packets.lock().clone();
    assert!(packets.len() > 50, "{} packets", packets.len());
    assert!(packets.iter().enumerate().all(|(number, packet)| packet.number as usize == number));
    let history = world.history("lobby").await;
    let expected = [("ana", "Aria, how are you?"), ("aria", "Hello there. It is good to hear you.")];
    assert_eq!(history, expected.map(|(from, text)| (from.to_owned(), text.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_noisy_microphone_does_not_keep_typed_words_waiting() {
    let world = world().await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    // Something ticks for four seconds, more often than once in the second after which typed words are handed over.
    for _ in 0..6 {
        ana.talk(&world, 10, 1).await;
        ana.talk(&world, 25, 0).await;
    }

    assert!(ana.page.has(|view| matches!(view, View::Thinking(_, true))), "{:?}", ana.page.seen());
}

#[tokio::test(start_paused = true)]
async fn speech_without_recognition_is_a_message_that_says_so() {
    let world = world().await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.talk(&world, 50, 0).await;
    ana.talk(&world, 60, 1).await;
    ana.talk(&world, 400, 0).await;

    let history = world.history("lobby").await;
    assert_eq!(history[0], ("ana".to_owned(), "(speech, 1.2 s)".to_owned()), "{history:?}");
}

/// Its text has a word in it that may be a name.
#[tokio::test(start_paused = true)]
async fn speech_without_recognition_addresses_nobody() {
    let world = world().await;
    world.reload_companion(json!({ "id": "aria", "voice": { "sounds_like": ["Speech"] } }));
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    ana.line.report(PersonAction::Say("Speech, are you there?".into()));
    world.pass(3.0).await;

    let segments = calling::segments(&world).await;
    assert_eq!(segments.iter().map(|segment| &*segment.text).collect::<Vec<_>>(), ["(speech, 1.2 s)", "Speech, are you there?"]);
    assert_eq!(segments.iter().map(|segment| segment.address.companions.len()).collect::<Vec<_>>(), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn stop_cuts_a_reply_and_what_was_heard_is_the_statement() {
    let world = world().await;
    let ana = Caller::enter(&world, "ana").await;
    ana.hear_the_beginning(&world).await;

    let reply = ana.page.packets.lock()[0].reply;
    ana.line.report(PersonAction::Stop { reply });
    ana.listen(&world, 2.0).await;

    let sent = ana.page.packets.lock().len();
    ana.listen(&world, 2.0).await;
    assert_eq!(ana.page.packets.lock().len(), sent, "it goes on");
    assert!(ana.page.has(|view| matches!(view, View::Cut { heard, .. } if heard.starts_with("Hello"))), "{:?}", ana.page.seen());
    let history = world.history("lobby").await;
    assert!(history[1].1.starts_with("Hello") && history[1].1.len() < 30, "{history:?}");
}

#[tokio::test(start_paused = true)]
async fn who_leaves_is_gone_and_who_is_lost_has_ten_seconds() {
    let world = world().await;
    let ana = Caller::enter(&world, "ana").await;
    let ben = Caller::enter(&world, "ben").await;
    assert!(ana.page.has(|view| matches!(view, View::Joined(person) if person.user == PersonId::from("ben"))));

    drop(ben);
    world.pass(9.0).await;
    let ben = Caller::enter(&world, "ben").await;
    world.pass(20.0).await;
    assert_eq!(people_in_call(&world).await, ["+ana", "+ben"]);

    drop(ben);
    world.pass(11.0).await;
    assert!(people_in_call(&world).await.contains(&"-ben".to_owned()));
    assert!(ana.page.has(|view| *view == View::Left(PersonId::from("ben"))));

    ana.line.report(PersonAction::Leave);
    world.pass(3.0).await;
    assert_eq!(ana.page.ended(), Some(End::Left));
    assert!(people_in_call(&world).await.contains(&"-ana".to_owned()));
    assert!(world.context.directory.find(&VoiceCallKey(channel())).is_none());
    assert!(world.context.calls.get(&channel()).is_none());
}

#[tokio::test(start_paused = true)]
async fn the_newest_connection_has_the_microphone() {
    let world = world().await;
    let mut before = Caller::enter(&world, "ana").await;
    let mut after = Caller::enter(&world, "ana").await;
    assert_eq!((before.page.ended(), after.page.ended()), (Some(End::Moved), None));

    before.talk(&world, 50, 1).await;
    after.talk(&world, 1, 0).await;
    drop(before);
    world.pass(15.0).await;

    assert_eq!(world.history("lobby").await, []);
    assert_eq!(people_in_call(&world).await, ["+ana"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_call_refuses_people_and_says_what_to_do() {
    let world = world_with(json!({ "voice": { "max_people": 1 } })).await;
    let _ana = Caller::enter(&world, "ana").await;

    let refused = Caller::try_enter(&world, "ben").await.err().map(|refused| refused.to_string());

    assert_eq!(refused.as_deref(), Some("1 people are in this call, which is the limit; try again, or raise voice.max_people"));
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_of_the_server_nobody_is_in_the_call_for_long() {
    let world = world().await;
    let ana = Caller::enter(&world, "ana").await;
    let _ben = Caller::enter(&world, "ben").await;
    world.rest().await;

    let world = world.crash().await;
    drop(ana);
    let _ana = Caller::enter(&world, "ana").await;
    world.pass(15.0).await;

    let people = people_in_call(&world).await;
    assert!(people.contains(&"-ben".to_owned()), "{people:?}");
    assert!(!people.contains(&"-ana".to_owned()), "{people:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_lasts_for_too_long_ends_and_can_be_entered_again() {
    let mut world = world_with(json!({ "voice": { "max_call_secs": 60.0 } })).await;
    let ana = Caller::enter(&world, "ana").await;
    world.pass(40.0).await;
    let ben = Caller::enter(&world, "ben").await;
    world.kill(&VoiceCallKey(channel())).await;
    world.pass(19.0).await;
    assert_eq!((ana.page.ended(), ben.page.ended()), (None, None));

    world.pass(2.0).await;

    for person in [&ana, &ben] {
        assert!(person.page.has(|view| *view == View::Trouble(Trouble::CallTooLong)), "{:?}", person.page.seen());
        assert_eq!(person.page.ended(), Some(End::Ended));
    }
    assert_eq!(people_in_call(&world).await, ["+ana", "+ben", "-ana", "-ben"]);
    let ana = Caller::enter(&world, "ana").await;
    world.pass(50.0).await;
    assert_eq!(ana.page.ended(), None, "the time limit starts again");
    world.pass(15.0).await;
    assert_eq!(ana.page.ended(), Some(End::Ended));
    assert!(world.context.calls.get(&channel()).is_none());
}

/// What the guild used of speech: who, and how much.
async fn speech_used(world: &World) -> Vec<(String, usage::Speech)> {
    let usage = world.backend.records.usage(UsageQuery::default()).await.unwrap();
    let guild = usage.guilds.into_iter().next().expect("a guild that used something");
    assert_eq!(guild.used.speech, usage.total.speech);
    let who = |by: &SpeechBy| {
        format!("{} {} {}", by.service.as_str(), by.provider, by.companion.as_ref().map_or("-", |id| id.as_str()))
    };
    guild.speech_by.into_iter().map(|by| (who(&by), by.speech)).collect()
}

#[tokio::test(start_paused = true)]
async fn speech_is_counted_with_its_price_where_something_leaves_the_machine() {
    let price = UnitPrice::per_minute(0.6, "USD");
    let priced = Limits { most: 1, cool_down: Duration::ZERO, price: Some(price) };
    let ears = Provider::new(Ears::rehearsed() as Arc<dyn SpeechRecognition>, priced);
    let speech = speech_of([ears], Provider::unlimited(Arc::new(RehearsedSpeech)));
    let world = world_with_speech(speech, json!({})).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.say_something(&world).await;
    ana.listen(&world, 12.0).await;

    let used = speech_used(&world).await;
    let who: Vec<_> = used.iter().map(|(who, _)| &**who).collect();
    assert_eq!(who, ["speech_recognition ears -", "speech_synthesis rehearsal aria"]);
    // 1.2 s of voice, and the hangover of a detector.
    let heard = used[0].1.recognised_ms as f64 / 1_000.0;
    assert!((1.2..1.7).contains(&heard), "{heard}");
    assert_eq!(used[0].1.costs.cost, Some(UnitPrice::per_minute(0.6, "USD").of((heard * 1_000.0).round() as u64)));
    assert_eq!((used[1].1.characters, used[1].1.costs.cost), ("Hello there.".len() as u64, None));
    let cost = world.spans.metrics().total("tertulia_speech_cost_total", &[("speech_service", "speech_recognition")]);
    assert!((cost - heard / 60.0 * 0.6).abs() < 1e-6, "{cost}");
}

/// The spans of a call in which a question is answered aloud, and then somebody says something, and when it began.
pub(super) async fn short_call() -> (SpanMemory, Moment) {
    let world = world().await;
    let began = world.context.clock.now();
    let mut ana = Caller::enter(&world, "ana").await;
    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    ana.listen(&world, 15.0).await;
    world.side.answer_by(|_| Some(Ok("Nothing to say.\nNO".to_owned())));
    ana.say_something(&world).await;
    world.pass(20.0).await;
    (world.spans.clone(), began)
}

/// A mouth that fails after its first audio.
fn hoarse() -> Arc<Mouth> {
    Mouth::new(|sentence| RehearsedSpeech.say(sentence).take(2).chain(stream::iter([Err(failed())])).boxed())
}

#[tokio::test(start_paused = true)]
async fn a_synthesis_that_fails_is_counted_and_its_span_has_the_error() {
    let world = world_of(Ears::rehearsed(), hoarse(), json!({})).await;
    let ana = Caller::enter(&world, "ana").await;

    ana.line.report(PersonAction::Say("Aria, how are you?".into()));
    ana.listen(&world, 10.0).await;

    let synthesised = world.spans.named("voice.synthesise");
    let errors: Vec<_> = synthesised.iter().map(|span| attribute(span, "error.type")).collect();
    assert_eq!(errors, [Some("synthesis_failed".to_owned())]);
    assert_eq!(speech_used(&world).await[0].1.characters, "Hello there.".len() as u64);
    let description = world.backend.calls.describe(&room("lobby")).await.unwrap();
    assert_eq!(description.recognition, [SpeechService { provider: "ears", host: Some("ears.example".into()) }]);
    assert_eq!(description.synthesis, [SpeechService { provider: "mouth", host: Some("mouth.example".into()) }]);
}

#[tokio::test(start_paused = true)]
async fn of_26_people_who_talk_at_once_the_first_one_waits_and_nobody_is_lost() {
    let ears = Ears::rehearsed();
    let world = world_of(ears.clone(), Arc::new(RehearsedSpeech), json!({})).await;
    let mut people = Vec::new();
    for person in 0..26 {
        people.push(Caller::enter(&world, &format!("p{person}")).await);
    }
    let is_told = |person: &Caller| person.page.has(|view| *view == View::Trouble(Trouble::RecognitionFull));

    // One after the other begins. In the end all talk, and then all are silent.
    for packet in 0..220_u32 {
        for (place, person) in (0_u32..).zip(&mut people) {
            let begins = 5 * place;
            person.line.push_packet(person.next, &[u8::from((begins..170).contains(&packet))]);
            person.next += 1;
        }
        world.pass(0.02).await;
        if packet == 160 {
            assert_eq!(people.iter().map(is_told).collect::<Vec<_>>(), (0..26).map(|place| place == 0).collect::<Vec<_>>());
        }
    }
    world.pass(5.0).await;

    assert_eq!(ears.most(), 25);
    assert_eq!(world.spans.metrics().total("tertulia_voice_troubles_total", &[("voice_trouble", "recognition_full")]), 1.0);
    let mut heard: Vec<_> = world.recorded("lobby", "segment").await.iter().map(|event| event["from"].to_string()).collect();
    heard.sort();
    let mut everybody: Vec<_> = (0..26).map(|person| format!("\"p{person}\"")).collect();
    everybody.sort();
    assert_eq!(heard, everybody);
}

/// An actor of the call dies after this packet. The person talks for the first 60.
async fn die(killed: usize, after: u32) {
    let mut world = world().await;
    let mut ana = Caller::enter(&world, "ana").await;
    ana.talk(&world, 20, 0).await;
    for packet in 0..120 {
        ana.talk(&world, 1, u8::from(packet < 60)).await;
        if packet == after {
            match killed {
                0 => world.kill(&VoiceUserKey(channel(), PersonId::from("ana"))).await,
                1 => world.kill(&RecognitionKey(channel(), PersonId::from("ana"))).await,
                _ => world.kill(&VoiceCallKey(channel())).await,
            }
        }
    }
    world.pass(10.0).await;

    let texts = segments(&world).await;
    // A decoder that begins anew needs some time to hear voice again.
    assert!(!texts.is_empty() && texts.len() <= 2, "{killed} after {after}: {texts:?}");
    assert!(killed == 0 || texts == ["(speech, 1.2 s)"], "{killed} after {after}: {texts:?}");
    let messages = world.history("lobby").await.into_iter().filter(|(from, _)| from == "ana").count();
    assert_eq!(messages, 1, "{killed} after {after}");
}

#[tokio::test(start_paused = true)]
async fn actors_that_die_in_the_middle_of_an_utterance_lose_and_double_nothing() {
    for killed in 0..3 {
        for after in [1, 30, 59, 62, 70, 76] {
            die(killed, after).await;
        }
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "some minutes: cargo test --lib a_thousand_deaths -- --ignored"]
async fn a_thousand_deaths_of_who_hears_a_person_lose_and_double_nothing() {
    for death in 0..1_000 {
        die(0, death % 100).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_wants_to_be_ignored_is_not_heard() {
    let world = world().await;
    let mut ana = Caller::enter(&world, "ana").await;
    ana.line.report(PersonAction::Ignored(true));
    world.rest().await;

    ana.talk(&world, 60, 1).await;
    ana.line.report(PersonAction::Say("Aria, are you there?".into()));
    ana.talk(&world, 400, 0).await;

    assert_eq!(world.recorded("lobby", "segment").await, Vec::<serde_json::Value>::new());
    assert!(!ana.page.has(|view| matches!(view, View::Talking(..) | View::Caption { .. })), "{:?}", ana.page.seen());
}

#[tokio::test(start_paused = true)]
async fn who_opts_out_while_talking_is_not_decoded_from_then_on_and_is_heard_again_after_changing_their_mind() {
    let world = world().await;
    let mut ana = Caller::enter(&world, "ana").await;
    let (opt_outs, user) = (OptOutService::new(world.context.clone()), PersonId::from("ana"));
    let guild = GuildId::from("home");
    ana.talk(&world, 60, 1).await;

    opt_outs.ignore(&guild, &user, true).await.unwrap();
    world.rest().await;
    ana.talk(&world, 60, 1).await;
    // Two bytes cannot be decoded here, and that would be counted.
    ana.line.push_packet(ana.next, &[1, 1]);
    ana.talk(&world, 400, 0).await;
    opt_outs.ignore(&guild, &user, false).await.unwrap();
    let undecodable = world.spans.metrics().total("tertulia_voice_packets_total", &[("packet_fate", "undecodable")]);
    let before = segments(&world).await;
    ana.say_something(&world).await;

    assert_eq!((before, undecodable), (Vec::new(), 0.0));
    assert_eq!(segments(&world).await, ["(speech, 1.2 s)"]);
}

async fn segments(world: &World) -> Vec<String> {
    let segments = world.recorded("lobby", "segment").await;
    segments.iter().map(|segment| segment["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn words_that_were_being_said_when_somebody_left_stay() {
    for is_lost in [false, true] {
        let world = world().await;
        let _ben = Caller::enter(&world, "ben").await;
        let mut ana = Caller::enter(&world, "ana").await;
        ana.talk(&world, 60, 1).await;

        if !is_lost {
            ana.line.report(PersonAction::Leave);
        }
        drop(ana);
        world.pass(15.0).await;

        assert_eq!(segments(&world).await, ["(speech, 1.2 s)"], "lost: {is_lost}");
        assert!(people_in_call(&world).await.contains(&"-ana".to_owned()), "lost: {is_lost}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_over_is_heard_from_its_first_packet() {
    let world = world().await;
    let mut before = Caller::enter(&world, "ana").await;
    before.next = 90_000;
    before.talk(&world, 50, 0).await;
    let mut after = Caller::enter(&world, "ana").await;

    after.talk(&world, 50, 0).await;
    after.say_something(&world).await;

    assert_eq!(segments(&world).await, ["(speech, 1.2 s)"]);
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_is_heard_however_they_left() {
    for (pause, ignored) in [(0.0, false), (0.5, false), (3.0, false), (0.5, true), (3.0, true)] {
        let world = world().await;
        let _ben = Caller::enter(&world, "ben").await;
        let ana = Caller::enter(&world, "ana").await;
        ana.line.report(PersonAction::Ignored(ignored));
        world.rest().await;
        ana.line.report(PersonAction::Leave);
        world.pass(pause).await;
        let mut ana = Caller::enter(&world, "ana").await;

        ana.talk(&world, 50, 0).await;
        ana.talk(&world, 60, 1).await;
        ana.talk(&world, 150, 0).await;
        world.pass(10.0).await;

        assert_eq!(segments(&world).await, ["(speech, 1.2 s)"], "{pause} {ignored}");
        let history = world.history("lobby").await;
        assert_eq!(history.first(), Some(&("ana".to_owned(), "(speech, 1.2 s)".to_owned())), "{pause} {ignored}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_says_one_thing_aloud_at_a_time() {
    let world = world().await;
    let ana = Caller::enter(&world, "ana").await;

    ana.line.report(PersonAction::Say("one two three".into()));
    ana.line.report(PersonAction::Say("four five".into()));
    ana.line.report(PersonAction::Say(vec!["word"; 501].join(" ").into()));
    world.pass(10.0).await;
    ana.line.report(PersonAction::Say("six".into()));
    world.pass(10.0).await;

    assert_eq!(segments(&world).await, ["one two three", "six"]);
    let troubles = ana.page.seen().into_iter().filter_map(|view| match view {
        View::Trouble(trouble) => Some(trouble),
        _ => None,
    });
    assert_eq!(troubles.collect::<Vec<_>>(), [Trouble::SaysAlready, Trouble::SaysTooMuch]);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_wants_holds_while_the_call_is_being_restarted() {
    let mut world = world().await;
    let mut ana = Caller::enter(&world, "ana").await;
    let ben = Caller::enter(&world, "ben").await;
    ana.talk(&world, 30, 1).await;

    world.kill(&VoiceCallKey(channel())).await;
    ana.line.report(PersonAction::Ignored(true));
    ben.line.report(PersonAction::Leave);
    ana.talk(&world, 60, 1).await;
    ana.talk(&world, 200, 0).await;
    world.pass(10.0).await;

    assert_eq!(segments(&world).await, Vec::<String>::new());
    assert!(people_in_call(&world).await.contains(&"-ben".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn nobody_talks_in_a_room_of_another_platform() {
    let world = world().await;
    world.backend.rooms.admit(&channel_ref("discord:1", "discord:10"), &"aria".into()).await.unwrap();
    let there = room("discord:10");

    let entrance = Entrance { author: person("ana"), has_microphone: true, listener: Arc::<Page>::default() };
    let entered = world.backend.calls.enter(&there, entrance).await;
    let described = world.backend.calls.describe(&there).await;

    assert!(matches!(entered.err(), Some(Refused::Conflict(_))));
    assert!(matches!(described, Err(Refused::Conflict(_))), "{described:?}");
    assert!(world.context.calls.all().is_empty());
}
