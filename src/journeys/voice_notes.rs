//! Voice notes on a platform: accepted at once, transcribed where it is wanted, and answered by their words (docs/design/voice.md A-78).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender};

use super::abroad::{ana, channel_ref, direct, general, is_of_discord};
use super::world::{World, lines, room};
use crate::actors::calls::Speech;
use crate::actors::calls::providers::{Provider, Recognisers, Voices};
use crate::actors::inbound::Inbound;
use crate::actors::membership::opt_out::OptOutService;
use crate::adapters::audio::ear::OpusAudio;
use crate::adapters::audio::samples::{ogg, voice_note};
use crate::adapters::speech::rehearsed::RehearsedSpeech;
use crate::domain::attachment::{Attachment, Kind};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{ChannelId, GuildId, Seq};
use crate::domain::message::{Message, NoteWords, Untranscribed, voice_note_text};
use crate::domain::samples::person;
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::ports::audio::Audio as _;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::WhyAt;
use crate::ports::backend::keeping::ExportForm;
use crate::ports::backend::messages::Edit;
use crate::ports::chat_platform::{Capabilities, ChatPlatform, NotRead, NotSent, Part};
use crate::ports::inbound_events::{Acceptance, ChannelRef, InboundEvents, InboundMessage, StoredFile};
use crate::ports::language_model::NoAnswer;
use crate::ports::opt_out::OptOut as _;
use crate::ports::speech_recognition::{Expectation, Recognised, Segment, Sound, SpeechRecognition};
use crate::replay::{ReplayEventKind, Script, run};
use crate::simulation::rounds;

const LENGTH: Duration = Duration::from_secs(2);
const NOTE: &str = "[voice note, 2 s]";

/// A platform with one recording.
#[derive(Default)]
struct Abroad {
    announced: Mutex<Vec<String>>,
    read: AtomicUsize,
    failures: Mutex<VecDeque<NotRead>>,
    is_locked: bool,
}

#[async_trait]
impl ChatPlatform for Abroad {
    fn name(&self) -> &'static str {
        "discord"
    }

    fn serves(&self, channel: &ChannelId) -> bool {
        is_of_discord(channel)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { longest_part: 2_000, request_timeout: Duration::from_secs(10), typing_shows: None, is_written_here: false }
    }

    fn newest(&self, _: &ChannelId, _: &[Arc<str>]) -> Option<Arc<str>> {
        None
    }

    async fn send(&self, part: &Part) -> Result<Arc<str>, NotSent> {
        Ok(format!("sent {}", part.nonce).into())
    }

    async fn find(&self, _: &Part, _: Option<&str>, _: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead> {
        Ok(None)
    }

    async fn change(&self, _: &GuildId, _: &ChannelId, _: &str, _: Option<&str>, _: Option<&str>) -> Result<(), NotSent> {
        Ok(())
    }

    async fn announce(&self, _: &ChannelId, text: &str, _: &str) -> Result<(), NotSent> {
        if self.is_locked {
            return Err(NotSent::Unpostable("no permission".to_owned()));
        }
        self.announced.lock().push(text.to_owned());
        Ok(())
    }

    async fn file(&self, _: &ChannelId, _: &str, _: Option<&Attachment>) -> Result<Vec<u8>, NotRead> {
        self.read.fetch_add(1, Ordering::Relaxed);
        match self.failures.lock().pop_front() {
            Some(failure) => Err(failure),
            None => Ok(voice_note()),
        }
    }

    async fn typing(&self, _: &GuildId, _: &ChannelId) {}
}

/// A recogniser that takes a second, returns these words, and fails at first so many times.
struct Ears {
    words: &'static str,
    failures: AtomicUsize,
    asked: AtomicUsize,
    samples: AtomicUsize,
}

#[async_trait]
impl SpeechRecognition for Ears {
    fn provider(&self) -> &'static str {
        "ears"
    }

    fn host(&self) -> Option<Arc<str>> {
        Some("ears.example".into())
    }

    fn recognises_words(&self) -> bool {
        true
    }

    fn has_partials(&self) -> bool {
        false
    }

    async fn listen(&self, _: Expectation, mut sounds: Receiver<Sound>, results: Sender<Recognised>) -> Result<(), NoAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut stretch = None;
        while let Some(sound) = sounds.recv().await {
            match sound {
                Sound::Audio { samples, .. } => _ = self.samples.fetch_add(samples.len(), Ordering::Relaxed),
                Sound::Ended(ended) | Sound::Cut(ended) => stretch = stretch.or(Some(ended)),
                Sound::Finalize => {}
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        if self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Err(NoAnswer::Unreachable { endpoint: "ears.example".into(), detail: "gone".to_owned() });
        }
        let stretch = stretch.expect("somebody speaks in the recording");
        let segment = Segment {
            id: "1".into(),
            text: self.words.into(),
            is_verbatim: true,
            started: stretch.started,
            ended: stretch.ended,
            voiced: None,
            no_speech: None,
            confidence: Some(900),
            is_last: true,
            is_answer: true,
        };
        let _ = results.send(Recognised::Final(segment)).await;
        Ok(())
    }
}

struct Setup {
    world: World,
    abroad: Arc<Abroad>,
    ears: Arc<Ears>,
}

async fn setup(words: &'static str, overlay: Value) -> Setup {
    setup_with(words, Abroad::default(), overlay).await
}

/// Aria and Bruno are in the channel, and both want to answer whenever they are asked.
async fn setup_with(words: &'static str, abroad: Abroad, overlay: Value) -> Setup {
    let [failures, asked, samples] = [(); 3].map(|()| AtomicUsize::new(0));
    let (abroad, ears) = (Arc::new(abroad), Arc::new(Ears { words, failures, asked, samples }));
    let recognition = Recognisers::new(Provider::unlimited(ears.clone()), []);
    let synthesis = Voices::new(Provider::unlimited(Arc::new(RehearsedSpeech)), []);
    let speech = Speech::new(Arc::new(OpusAudio), recognition, synthesis);
    let world = World::with_platform_and_speech(abroad.clone(), speech, overlay).await;
    for companion in ["aria", "bruno"] {
        world.backend.rooms.admit(&general(), &companion.into()).await.unwrap();
    }
    world.rest().await;
    Setup { world, abroad, ears }
}

fn on() -> Value {
    json!({ "speech": { "voice_notes": true } })
}

fn key(channel_ref: &ChannelRef) -> ChannelKey {
    ChannelKey::new(&channel_ref.guild, &channel_ref.channel)
}

fn note(world: &World, id: &str) -> InboundMessage {
    let own_words = Some("".into());
    InboundMessage { own_words, voice_note: Some(LENGTH), ..ana(world, id, &voice_note_text(Some(LENGTH))) }
}

fn to_aria(world: &World, id: &str) -> InboundMessage {
    InboundMessage { mentions: vec!["aria".into()], ..note(world, id) }
}

async fn send(world: &World, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Seq {
    match Inbound::new(world.context.clone()).said(channel_ref, inbound_message).await.unwrap() {
        Acceptance::New(seq) => seq,
        other => panic!("not new: {other:?}"),
    }
}

/// The messages of people on record.
async fn messages(world: &World, channel_ref: &ChannelRef) -> Vec<(Seq, Message)> {
    let said = |recorded: Recorded| match recorded.event {
        Event::Said { message, reply: None, .. } => Some((recorded.seq, message)),
        _ => None,
    };
    world.journal(&key(channel_ref)).await.into_iter().filter_map(said).collect()
}

/// Why a message has no words.
fn missing(message: &Message) -> Option<Untranscribed> {
    match message.voice_note.as_ref()?.words.as_ref()? {
        NoteWords::Missing { why, .. } => Some(*why),
        _ => None,
    }
}

/// Which messages companions were asked about, and by which trigger, in order.
async fn evaluated(world: &World, channel_ref: &ChannelRef) -> Vec<(String, String, Vec<Seq>)> {
    let evaluated = |recorded: Recorded| match recorded.event {
        Event::Evaluated(asked) => Some((asked.companion.to_string(), asked.trigger.to_string(), asked.messages)),
        _ => None,
    };
    world.journal(&key(channel_ref)).await.into_iter().filter_map(evaluated).collect()
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_note_to_a_companion_are_answered_once_and_the_channel_is_told_once() {
    let Setup { world, abroad, ears } = setup("do you like tea?", on()).await;

    let note = send(&world, &general(), to_aria(&world, "1")).await;
    world.rest().await;
    assert_eq!(world.history("discord:10").await, lines(&[("Ana", NOTE)]), "it is accepted at once");
    assert_eq!(evaluated(&world, &general()).await, []);
    world.pass(30.0).await;
    send(&world, &general(), to_aria(&world, "2")).await;
    world.pass(30.0).await;

    let [(first, _), (words, message), (second, _), (again, _)] = &messages(&world, &general()).await[..] else { panic!() };
    assert_eq!((*first, &*message.text, &message.address.companions[..]), (note, "do you like tea?", &["aria".into()][..]));
    let heard = NoteWords::Heard { note, provider: "ears".into(), confidence: Some(900) };
    assert_eq!(message.voice_note.as_ref().map(|note| (note.ms, note.words.clone())), Some((2_000, Some(heard))));
    let asked = |message: &Seq| ("aria".to_owned(), "direct_address".to_owned(), vec![*message]);
    let direct: Vec<_> =
        evaluated(&world, &general()).await.into_iter().filter(|(_, trigger, _)| trigger == "direct_address").collect();
    assert_eq!(direct, [asked(words), asked(again)]);
    let prompts = format!("{:?}", world.side.asked.lock());
    assert!(prompts.contains("do you like tea?") && prompts.contains("voice note") && !prompts.contains(NOTE), "{prompts}");
    assert_eq!((ears.asked.load(Ordering::Relaxed), abroad.read.load(Ordering::Relaxed), second > words), (2, 2, true));
    assert!(ears.samples.load(Ordering::Relaxed) > 16_000, "the speech in it is recognised");
    let announced = abroad.announced.lock().clone();
    let [told] = &announced[..] else { panic!("the channel is told once") };
    assert!(told.contains("ears (ears.example)") && told.contains("/tertulia voice notes switch:off"), "{told}");
    assert_eq!(world.spans.named("voice.recognise").len(), 2);
    let script = Script::from_json(&world.export("discord:10", ExportForm::Replay).await[0]).unwrap();
    let replayed = run(&script).unwrap();
    let direct =
        replayed.iter().filter(|event| matches!(event.kind, ReplayEventKind::Decision { trigger: Trigger::DirectAddress, .. }));
    assert_eq!(direct.count(), 2, "a replay decides about the words");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_spoken_in_a_note_calls_the_companion_where_all_notes_are_recognised() {
    let Setup { world, ears, .. } = setup("hey Bruno, what about you?", json!({})).await;
    send(&world, &general(), note(&world, "1")).await;
    send(&world, &general(), to_aria(&world, "2")).await;
    world.pass(2.0).await;
    assert_eq!(ears.asked.load(Ordering::Relaxed), 0, "an upgrade has nothing recognised");
    let before = messages(&world, &general()).await;
    assert_eq!(before.iter().map(|(_, message)| missing(message)).collect::<Vec<_>>(), [None, Some(Untranscribed::Off)]);

    world.patch("discord:10", json!({ "voice_notes": true })).await.unwrap();
    send(&world, &general(), note(&world, "3")).await;
    world.pass(5.0).await;

    let (words, message) = messages(&world, &general()).await.pop().unwrap();
    assert_eq!((&*message.text, &message.address.companions[..]), ("hey Bruno, what about you?", &["bruno".into()][..]));
    let asked = evaluated(&world, &general()).await;
    assert!(asked.iter().any(|(who, trigger, about)| who == "bruno" && trigger == "direct_address" && about.contains(&words)));
    world.patch("discord:10", json!({ "voice_notes": false })).await.unwrap();
    send(&world, &general(), note(&world, "4")).await;
    world.pass(5.0).await;
    assert_eq!(ears.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_note_to_nobody_is_a_message_like_others() {
    let Setup { world, abroad, ears } = setup("who knows", on()).await;
    let to_bob = InboundMessage { mentions: vec!["discord:6".into()], ..note(&world, "2") };

    send(&world, &general(), note(&world, "1")).await;
    send(&world, &general(), to_bob).await;
    world.pass(60.0).await;

    assert_eq!(messages(&world, &general()).await.iter().map(|(_, message)| missing(message)).collect::<Vec<_>>(), [None, None]);
    assert!(!evaluated(&world, &general()).await.is_empty(), "a lull fires");
    assert_eq!((ears.asked.load(Ordering::Relaxed), abroad.announced.lock().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn direct_messages_and_rooms_with_one_companion_have_their_notes_recognised() {
    let Setup { world, .. } = setup("good morning", on()).await;
    let alone = channel_ref("discord:1", "discord:20");
    world.backend.rooms.admit(&alone, &"aria".into()).await.unwrap();

    send(&world, &alone, note(&world, "1")).await;
    send(&world, &direct(), InboundMessage { to_all: true, ..note(&world, "2") }).await;
    world.pass(10.0).await;

    for channel_ref in [alone, direct()] {
        let texts: Vec<_> = messages(&world, &channel_ref).await.into_iter().map(|(_, message)| message.text).collect();
        assert_eq!(texts, [NOTE.into(), "good morning".into()]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_note_counts_once_whenever_the_server_dies() {
    for kill in (0..20_u32).step_by(rounds(3, 1) as usize) {
        let Setup { mut world, ears, .. } = setup("do you like tea?", on()).await;
        let note = send(&world, &general(), to_aria(&world, "1")).await;
        world.pass(f64::from(kill) * 0.1).await;

        world = world.crash().await;
        world.pass(60.0).await;
        world = world.crash().await;
        world.pass(60.0).await;

        let messages = messages(&world, &general()).await;
        let words: Vec<_> = messages.iter().filter(|(_, message)| message.replaced_note() == Some(note)).collect();
        let [(words, _)] = &words[..] else { panic!("{kill}: {messages:?}") };
        let addressed = evaluated(&world, &general()).await.into_iter().filter(|(_, trigger, _)| trigger == "direct_address");
        let about: Vec<_> = addressed.filter(|(.., about)| about.contains(words)).collect();
        assert_eq!(about.len(), 1, "after {kill}: {about:?}");
        assert!(ears.asked.load(Ordering::Relaxed) <= 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_recogniser_that_fails_is_tried_again_and_at_last_the_note_is_answered_without_words() {
    for (failures, asked) in [(2, 3), (9, 5)] {
        let Setup { world, ears, .. } = setup("here they are", on()).await;
        ears.failures.store(failures, Ordering::Relaxed);

        let note = send(&world, &general(), to_aria(&world, "1")).await;
        world.pass(120.0).await;

        let (words, message) = messages(&world, &general()).await.pop().unwrap();
        let expected = if failures < 5 { ("here they are", None) } else { (NOTE, Some(Untranscribed::Failed)) };
        assert_eq!((&*message.text, missing(&message), message.replaced_note()), (expected.0, expected.1, Some(note)));
        assert_eq!(ears.asked.load(Ordering::Relaxed), asked);
        assert_eq!(evaluated(&world, &general()).await[0], ("aria".into(), "direct_address".into(), vec![words]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_recording_that_cannot_be_read_now_is_read_again_and_one_that_is_gone_is_not() {
    let later = || NotRead::Later { after: Some(Duration::from_secs(9)), detail: "expired".to_owned() };
    for (failures, read, expected) in [
        (vec![later()], 2, None),
        (vec![NotRead::Never("gone".to_owned())], 1, Some(Untranscribed::Unreadable)),
        (vec![later(), later(), later(), later(), later(), later()], 5, Some(Untranscribed::Unreadable)),
    ] {
        let Setup { world, abroad, .. } = setup("here they are", on()).await;
        abroad.failures.lock().extend(failures);

        send(&world, &general(), to_aria(&world, "1")).await;
        world.pass(300.0).await;

        let (_, message) = messages(&world, &general()).await.pop().unwrap();
        assert_eq!((missing(&message), abroad.read.load(Ordering::Relaxed)), (expected, read));
    }
}

#[tokio::test(start_paused = true)]
async fn people_who_cannot_be_told_are_not_recognised() {
    let Setup { world, abroad, ears } = setup_with("secret", Abroad { is_locked: true, ..Abroad::default() }, on()).await;

    send(&world, &general(), to_aria(&world, "1")).await;
    world.pass(60.0).await;

    let (_, message) = messages(&world, &general()).await.pop().unwrap();
    assert_eq!((missing(&message), &*message.text), (Some(Untranscribed::Untold), NOTE));
    assert_eq!((ears.asked.load(Ordering::Relaxed), abroad.read.load(Ordering::Relaxed)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_note_that_is_deleted_before_or_after_its_words_leaves_no_words() {
    for waits in [0.5, 30.0] {
        let Setup { world, .. } = setup("a secret", on()).await;
        send(&world, &general(), to_aria(&world, "1")).await;
        world.pass(waits).await;

        Inbound::new(world.context.clone()).deleted(&general(), &["1".into()]).await.unwrap();
        world.pass(60.0).await;

        let texts: Vec<_> = messages(&world, &general()).await.into_iter().map(|(_, message)| message.text.to_string()).collect();
        assert!(texts.iter().all(String::is_empty) && (1..=2).contains(&texts.len()), "{texts:?}");
        let asked = evaluated(&world, &general()).await;
        assert_eq!(asked.iter().any(|(_, trigger, _)| trigger == "direct_address"), waits > 1.0);
        let everything = format!("{:?}", world.journal(&key(&general())).await);
        assert!(!everything.contains("a secret"), "{everything}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_note_of_somebody_who_opts_out_meanwhile_is_deleted() {
    let Setup { world, ears, .. } = setup("a secret", on()).await;
    send(&world, &general(), to_aria(&world, "1")).await;
    world.pass(0.5).await;

    let opt_outs = OptOutService::new(world.context.clone());
    assert!(opt_outs.ignore(&general().guild, &"discord:5".into(), true).await.unwrap());
    world.pass(60.0).await;
    let taken = Inbound::new(world.context.clone()).said(&general(), to_aria(&world, "2")).await.unwrap();
    world.pass(10.0).await;

    let texts: Vec<_> = messages(&world, &general()).await.into_iter().map(|(_, message)| message.text.to_string()).collect();
    assert_eq!((texts, taken, ears.asked.load(Ordering::Relaxed)), (vec![String::new()], Acceptance::Ignored, 1));
    assert_eq!(evaluated(&world, &general()).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_cleared_note_gets_no_words() {
    let Setup { world, .. } = setup("too late", on()).await;
    send(&world, &general(), to_aria(&world, "1")).await;
    world.pass(0.5).await;

    world.backend.rooms.clear(&room("discord:10")).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(messages(&world, &general()).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn why_explains_a_note_by_its_words() {
    let Setup { world, .. } = setup("do you like tea?", on()).await;
    let note = send(&world, &general(), to_aria(&world, "1")).await;
    world.rest().await;
    let story = async |world: &World| {
        let why = world.why("discord:10", None, Some(WhyAt::Message(note.to_string().into()))).await.unwrap();
        why.story.iter().map(|line| line.text.clone()).collect::<Vec<_>>()
    };

    assert_eq!(story(&world).await, ["Ana sent a voice note of 2 s.", "The words are being recognised."]);
    world.pass(30.0).await;

    let told = story(&world).await;
    assert_eq!(told[..2], ["Ana sent a voice note of 2 s.", "The words became a part of message 4."], "{told:?}");
    assert!(told.iter().any(|line| line.contains("Its words were recognised by ears.")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_guild_may_have_recognised_in_a_day_counts_for_notes() {
    let overlay = json!({ "speech": { "voice_notes": true, "guild_minutes_per_day": 0.01 } });
    let Setup { world, ears, .. } = setup("do you like tea?", overlay).await;
    send(&world, &general(), to_aria(&world, "1")).await;
    world.pass(30.0).await;

    send(&world, &general(), to_aria(&world, "2")).await;
    world.pass(30.0).await;

    let messages = messages(&world, &general()).await;
    let why: Vec<_> = messages.iter().map(|(_, message)| missing(message)).collect();
    assert_eq!(why, [None, None, None, Some(Untranscribed::UsedUp)]);
    assert_eq!(ears.asked.load(Ordering::Relaxed), 1);
}

/// Sends a recording from the page.
async fn record(world: &World, file: Vec<u8>) -> Result<Seq, Refused> {
    let attachment =
        Attachment { kind: Kind::Voice, ..Attachment::new("0".into(), "audio/ogg".into(), "note.ogg".into(), file.len() as u64) };
    let stored = StoredFile { media_type: "audio/ogg".into(), bytes: file.into() };
    let message = InboundMessage {
        attachments: vec![attachment],
        files: vec![stored],
        voice_note: Some(Duration::ZERO),
        own_words: Some("".into()),
        ..InboundMessage::new(person("Ana"), voice_note_text(None).into())
    };
    let said = world.backend.messages.say(&room("lobby"), message).await;
    world.rest().await;
    said
}

#[tokio::test(start_paused = true)]
async fn a_note_recorded_on_the_page_is_recognised_kept_and_deleted_with_its_words() {
    let Setup { world, abroad, .. } = setup("Ari, do you like tea?", json!({})).await;
    world.open("lobby", &["aria", "bruno"]).await;
    let lobby = channel_ref("home", "console:lobby");

    let note = record(&world, voice_note()).await.unwrap();
    world.pass(30.0).await;

    let [(_, sent), (words, heard)] = &messages(&world, &lobby).await[..] else { panic!("two messages") };
    let length = OpusAudio.recording(&voice_note(), LENGTH * 5).unwrap().length();
    let expected = (voice_note_text(Some(length)).into(), "Ari, do you like tea?".into(), Some(note));
    assert_eq!((sent.text.clone(), heard.text.clone(), heard.replaced_note()), expected);
    let about: Vec<_> =
        evaluated(&world, &lobby).await.into_iter().filter(|(_, trigger, _)| trigger == "direct_address").collect();
    assert_eq!(about, [("aria".into(), "direct_address".into(), vec![*words])]);
    assert_eq!(abroad.announced.lock().len(), 0, "the page says it before");
    assert_eq!(world.backend.records.file(&room("lobby"), note, 0).await.unwrap().bytes[..], voice_note());
    let edited = world.backend.messages.edit(&room("lobby"), note, Edit { text: "other words".into() }).await;
    assert!(matches!(edited, Err(Refused::Conflict(_))), "{edited:?}");

    world.backend.messages.delete(&room("lobby"), *words).await.unwrap();

    assert!(world.backend.records.file(&room("lobby"), note, 0).await.is_err());
    let texts: Vec<_> = messages(&world, &lobby).await.into_iter().map(|(_, message)| message.text.to_string()).collect();
    assert_eq!(texts, ["", ""]);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_recording_is_refused_with_the_way_out() {
    let Setup { world, .. } = setup("", json!({})).await;
    world.open("lobby", &["aria"]).await;

    for (file, expected) in
        [(b"OggS".to_vec(), "Ogg with Opus"), (ogg(&vec![vec![0x1b, 0x02]; 2_000], 50), "at most 125 seconds")]
    {
        let refused = record(&world, file).await.unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    assert_eq!(messages(&world, &channel_ref("home", "console:lobby")).await, []);
}
