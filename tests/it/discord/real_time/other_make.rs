//! People in a call who are played by @discordjs/voice (tests/voice/people.mjs). `.ci/voice` installs it.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tertulia::adapters::audio::opus::Decoder;
use tokio::time::Instant;

use super::super::counterpart::voice::{self, Mode, Speaking};
use super::super::counterpart::{Counterpart, Id, Rules};
use super::super::node::Node;
use super::call::{Call, rules};
use crate::harness::Premises;
use crate::harness::call::sentence;

/// What is not louder than this is not audible: −50 dBFS.
const AUDIBLE: f64 = 104.0;
/// The packets of the sentence from its first word to its last.
const SPOKEN: std::ops::Range<usize> = 14..155;
/// How many seconds the detector may be wrong by.
const TOLERANCE: f64 = 0.5;
/// How long the end-to-end encryption may be broken after a message that could not be followed.
const RECOVERED_WITHIN: Duration = Duration::from_secs(3);

/// The program that plays them.
struct People(Node);

impl People {
    fn start() -> Self {
        Self(Node::start("voice/people.mjs", "TERTULIA_VOICE_MODULES", &[]))
    }

    async fn command(&mut self, name: &str, user: Id, more: Value) {
        let mut command = json!({ "do": name, "user": user });
        command.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.0.command(&command).await;
    }

    /// Somebody joins the call, and is connected when this returns.
    async fn join(&mut self, call: &Call, user: Id) {
        self.command("join", user, json!({ "guild": call.home.guild, "channel": call.channel })).await;
        self.admit(&call.home.discord, user, call.channel).await;
    }

    /// Lets somebody in who asks for it.
    async fn admit(&mut self, discord: &Counterpart, user: Id, channel: Id) {
        self.until("that somebody asks to be let in", user, 0, |events| named(events, "asks").map(|_| ())).await;
        let before = self.0.count();
        let grant = discord.admit(user, channel);
        let endpoint = grant.endpoint.trim_start_matches("ws://");
        let admitted = json!({ "session": grant.session, "token": grant.token, "endpoint": endpoint });
        self.command("admit", user, admitted).await;
        self.until("the connection", user, before, |events| {
            named(events, "status").filter(|event| event["status"] == "ready").map(|_| ())
        })
        .await;
    }

    /// Begins to say packets at the pace of speech.
    async fn begin(&mut self, user: Id, packets: &[Vec<u8>]) {
        let packets: Vec<String> = packets.iter().map(|packet| BASE64_STANDARD.encode(packet)).collect();
        self.command("say", user, json!({ "packets": packets })).await;
    }

    /// Says packets.
    async fn say(&mut self, user: Id, packets: &[Vec<u8>]) {
        let before = self.0.count();
        self.begin(user, packets).await;
        self.until("the end of what is said", user, before, |events| named(events, "said").map(|_| ())).await;
    }

    /// Waits until somebody hears half a second of audible audio.
    async fn hears(&mut self, user: Id, from: Id, since: usize) {
        self.until("audio", user, since, |events| {
            let heard = events.iter().filter(|event| event["event"] == "heard" && event["from"] == from.to_string());
            let packets = heard.map(|event| BASE64_STANDARD.decode(event["packet"].as_str().expect("a packet")).expect("base64"));
            (loud(packets) >= 25).then_some(())
        })
        .await;
    }

    /// Waits until the closure finds something in somebody's events after these.
    async fn until<T>(&mut self, what: &str, user: Id, since: usize, find: impl Fn(&[&Value]) -> Option<T>) -> T {
        let what = format!("{what} of {user}");
        let is_about = |event: &&Value| event["user"] == user.to_string();
        self.0.until(&what, since, |events| find(&events.iter().filter(is_about).collect::<Vec<_>>())).await
    }

    fn now(&self) -> usize {
        self.0.count()
    }
}

/// How many of these packets are audible.
fn loud(packets: impl Iterator<Item = Vec<u8>>) -> usize {
    let mut decoder = Decoder::new().expect("a decoder");
    let mut is_loud = |(number, packet): (usize, Vec<u8>)| {
        let decoded = decoder.decode(number as u32, &packet).expect("Opus");
        let power: f64 = decoded.samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
        (power / decoded.samples.len() as f64).sqrt() > AUDIBLE
    };
    packets.enumerate().filter(|packet| is_loud(packet.clone())).count()
}

/// The newest event of a name.
fn named<'a>(events: &[&'a Value], name: &str) -> Option<&'a Value> {
    events.iter().rev().find(|event| event["event"] == name).copied()
}

/// The seconds of speech in a message that nobody recognised, such as "(speech, 1.2 s)".
fn seconds(text: &str) -> f64 {
    text.split("(speech, ").filter_map(|part| part.split_once(" s)")?.0.parse::<f64>().ok()).sum()
}

impl Call {
    /// Waits until somebody's messages are so many seconds of speech.
    async fn hears_speech(&mut self, from: &str, expected: f64) {
        let mut sum = 0.0;
        while sum < expected - TOLERANCE {
            let spoken = self.watch.event_that("message", |event| event["modality"] == "voice" && event["from"] == from).await;
            sum += seconds(spoken["text"].as_str().expect("a text"));
        }
        assert!(sum < expected + TOLERANCE, "{from} said {sum} s instead of {expected} s");
    }
}

/// How long so many packets of the sentence are speech.
fn spoken(packets: usize) -> f64 {
    packets as f64 / 50.0
}

/// Rules of a voice server that offers one mode of encryption for the transport.
fn only(mode: Mode) -> Rules {
    Rules { voice: voice::Rules { modes: vec![mode], ..rules().voice }, ..rules() }
}

/// Somebody of another make and the bot hear each other, end-to-end encrypted.
async fn they_hear_each_other(call: &mut Call, people: &mut People) {
    let (ana, bot, sentence) = (call.home.ana, call.home.bot, sentence());
    people.join(call, ana).await;
    call.home.discord.bot_called(call.channel).await;
    call.grouped(1).await;
    people.until("the group", ana, 0, |events| named(events, "grouped").map(|_| ())).await;

    people.say(ana, &sentence).await;
    call.hears_speech("Ana", spoken(SPOKEN.len())).await;
    let before = people.now();
    call.home.discord.say(ana, call.channel, "hey aria, how was your day?");
    people.hears(ana, bot, before).await;
    call.watch.event("sentence_played").await;

    for user in [ana, bot] {
        let counts = call.counts(user);
        assert!(counts.end_to_end >= 25 && counts.plain == 0, "everything is encrypted end to end: {counts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a client of another make: .ci/voice"]
async fn people_of_another_make_and_companions_hear_each_other_with_the_mode_that_everybody_has() {
    let mut call = Call::begin(only(Mode::XChaCha20Poly1305), Premises::shipped()).await;

    they_hear_each_other(&mut call, &mut People::start()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a client of another make: .ci/voice"]
async fn people_of_another_make_are_credited_recovered_and_moved_along() {
    let mut call = Call::begin(only(Mode::Aes256Gcm), Premises::shipped()).await;
    let mut people = People::start();
    they_hear_each_other(&mut call, &mut people).await;
    let (ana, bot, channel, sentence) = (call.home.ana, call.home.bot, call.channel, sentence());
    let [bo, cho, dan] = ["Bo", "Cho", "Dan"].map(|name| call.home.discord.member(call.home.guild, name));

    // Three who speak at once, and whom the voice server names wrongly, not at all, and late.
    for (joined, user) in [bo, cho].into_iter().enumerate() {
        people.join(&call, user).await;
        call.grouped(joined + 2).await;
    }
    let lies = [(ana, Speaking::Names(bo)), (bo, Speaking::Missing), (cho, Speaking::Late(Duration::from_secs(1)))];
    for (user, speaking) in lies {
        call.home.discord.voice().set_speaking(channel, user, speaking);
        // This client believes them, and would leave the group over it.
        call.home.discord.voice().set_deafened(channel, user, true);
    }
    let said = [(ana, "Ana", 60), (bo, "Bo", 100), (cho, "Cho", SPOKEN.len())];
    let before = people.now();
    for (user, _, packets) in said {
        people.begin(user, &sentence[SPOKEN][..packets]).await;
    }
    for (user, ..) in said {
        people.until("the end of what is said", user, before, |events| named(events, "said").map(|_| ())).await;
    }
    let mut sums = BTreeMap::from(said.map(|(_, name, _)| (name.to_owned(), 0.0)));
    while said.iter().any(|(_, name, packets)| sums[*name] < spoken(*packets) - TOLERANCE) {
        let message = call.watch.event_that("message", |event| event["modality"] == "voice").await;
        // Companions speak, too.
        if let Some(sum) = message["from"].as_str().and_then(|from| sums.get_mut(from)) {
            *sum += seconds(message["text"].as_str().expect("a text"));
        }
    }
    for (_, name, packets) in said {
        assert!((sums[name] - spoken(packets)).abs() < TOLERANCE, "{name} said {} s: {sums:?}", spoken(packets));
    }
    println!("three at once, with lies: {sums:?}");
    for (user, _) in lies {
        call.home.discord.voice().set_speaking(channel, user, Speaking::Honest);
        call.home.discord.voice().set_deafened(channel, user, false);
    }

    // The voice gateway is killed while somebody speaks.
    let (received, sent) = (call.packets_received().await, call.counts(ana).end_to_end);
    let before = people.now();
    // One that does not last for a second is followed by a pause.
    people.begin(ana, &[&sentence[SPOKEN]; 3].concat()).await;
    let mut resumed = Vec::new();
    for _ in 0..5 {
        resumed.push(call.cut().await);
        call.says_more(ana, 55).await;
    }
    people.until("the end of what is said", ana, before, |events| named(events, "said").map(|_| ())).await;
    call.hears_speech("Ana", spoken(3 * SPOKEN.len())).await;
    let (received, sent) = (call.packets_received().await - received, call.counts(ana).end_to_end - sent);
    assert!(received >= sent, "only {received} of {sent} packets are heard");
    println!("gateway killed 5 times, resumed after {resumed:?}, {received} packets heard of {sent} with audio");

    // A change of the group that the bot cannot follow.
    call.home.discord.voice().garble_commit(channel, bot);
    let reported = call.home.discord.voice().look(|voice| voice.journal.reported.len());
    people.join(&call, dan).await;
    call.home.discord.voice().until("the report", |voice| (voice.journal.reported.len() > reported).then_some(())).await;
    let broken = Instant::now();
    call.grouped(4).await;
    assert!(broken.elapsed() < RECOVERED_WITHIN, "recovered after {:?}", broken.elapsed());
    println!("recovered {:?} after a commit that could not be followed", broken.elapsed());
    people.say(dan, &sentence).await;
    call.hears_speech("Dan", spoken(SPOKEN.len())).await;

    // Another voice server.
    let before = people.now();
    call.home.discord.move_voice_server(channel);
    for user in [ana, bo, cho, dan] {
        people.until("that somebody asks again", user, before, |events| named(events, "asks").map(|_| ())).await;
        people.admit(&call.home.discord, user, channel).await;
    }
    call.grouped(4).await;
    people.say(ana, &sentence).await;
    call.hears_speech("Ana", spoken(SPOKEN.len())).await;
    let before = people.now();
    call.home.discord.say(ana, channel, "hey aria, are you still there?");
    people.hears(ana, bot, before).await;
    for user in [ana, bot] {
        assert_eq!(call.counts(user).plain, 0, "everything is encrypted end to end");
    }
}
