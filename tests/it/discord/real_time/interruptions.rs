//! People interrupt a companion with speech of 0.3, 2 and 4.7 seconds: when it is quieter, when it pauses, and how it goes on.
//!
//! What arrives is compared with what the built-in voice says, through the same codec: a packet whose level is lower is ducked.

use std::collections::BTreeMap;
use std::time::Duration;

use tertulia::adapters::audio::ear::OpusAudio;
use tertulia::adapters::audio::opus::Decoder;
use tertulia::domain::moment::Moment;
use tertulia::domain::voice::speech::{HOP, Pulse, Speech, VOICED_SCORE};
use tertulia::ports::audio::{self, Audio as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::super::counterpart::voice::Person;
use super::super::counterpart::{Id, voice};
use super::call::{Call, rules};
use super::figures::{load, print};
use super::story;
use crate::harness::call::sentence;
use crate::harness::parameter;

const FRAME: Duration = Duration::from_millis(20);
/// The packets of the sentence from its first word to its last.
const SPOKEN: std::ops::Range<usize> = 14..155;
/// The packets in 0.3, 2 and 4.7 s, and which of them follow each other.
const SPEECH: [usize; 3] = [15, 100, 235];
const KINDS: [usize; 10] = [0, 1, 2, 0, 1, 0, 0, 1, 0, 0];
/// The voiced time, and the packets in which it makes a reply pause (docs/design/voice.md A-25): by itself, and if the companion is tolerant.
const INSISTS: [(Duration, usize); 2] = [(Duration::from_millis(500), 50), (Duration::from_secs(2), 150)];
/// The verdicts with which a reply ends.
const CUTS: [&str; 4] = ["stop_word", "addressed", "many_words", "took_too_long"];
/// What is at least as loud as this is speech: −45 dBFS.
const LOUD: f64 = 184.0;
/// The packets by which the position in the story is found.
const FOUND_BY: usize = 100;
/// A packet with less of the level that it should have is ducked. The first one has two thirds, because the codec is behind by 6.5 ms and the gain
/// changes over 5 ms.
const DUCKED: f64 = 0.88;

/// The story as it is heard at full level.
struct Story {
    levels: Vec<f64>,
    /// The packets after which each word has been heard.
    words: Vec<usize>,
}

impl Story {
    fn new() -> Self {
        let (mut encoder, mut decoder) = (OpusAudio.encoder().expect("an encoder"), Decoder::new().expect("a decoder"));
        let (mut levels, mut words) = (Vec::new(), Vec::new());
        for text in story::sentences() {
            let begin = levels.len();
            words.extend(
                story::voice().words(&*text).map(|word| begin + word.end.as_millis().div_ceil(FRAME.as_millis()) as usize),
            );
            for frame in story::voice().speak(&*text) {
                let packet = encoder.encode(&frame).expect("a packet");
                levels.push(level(&mut decoder, levels.len(), &packet));
            }
        }
        Self { levels, words }
    }

    /// The position after these packets, at full level.
    fn find(&self, heard: &[f64]) -> usize {
        let distance = |at: usize| {
            let pairs = self.levels[at..].iter().zip(heard);
            pairs.map(|(said, heard)| ((said + 50.0) / (heard + 50.0)).ln().powi(2)).sum::<f64>()
        };
        let positions = 0..=self.levels.len() - heard.len();
        let best = positions.min_by(|one, other| distance(*one).total_cmp(&distance(*other))).expect("a story");
        best + heard.len()
    }

    fn words_until(&self, position: usize) -> usize {
        self.words.iter().filter(|end| **end <= position).count()
    }
}

fn level(decoder: &mut Decoder, number: usize, packet: &[u8]) -> f64 {
    let decoded = decoder.decode(number as u32, packet).expect("Opus");
    let power: f64 = decoded.samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    (power / decoded.samples.len() as f64).sqrt()
}

/// What Ana hears of the companion.
struct Listener<'a> {
    ana: &'a Person,
    bot: Id,
    decoder: Decoder,
    read: usize,
    /// When each packet came, and its level. `None`: silence in its place.
    heard: Vec<(Instant, Option<f64>)>,
}

impl<'a> Listener<'a> {
    fn new(ana: &'a Person, bot: Id) -> Self {
        Self { ana, bot, decoder: Decoder::new().expect("a decoder"), read: 0, heard: Vec::new() }
    }

    fn read(&mut self) {
        let (read, bot) = (self.read, self.bot);
        let new = self.ana.look(|noted| noted.heard[read..].to_vec());
        self.read += new.len();
        for heard in new.into_iter().filter(|heard| heard.user == Some(bot)) {
            let level = heard.end_to_end.then(|| level(&mut self.decoder, self.heard.len(), &heard.frame));
            self.heard.push((heard.at, level));
        }
    }

    /// Waits for more within a time. Returns whether it came.
    async fn more(&mut self, within: Duration) -> bool {
        let (read, bot) = (self.read, self.bot);
        let more = self.ana.until("audio", |noted| noted.heard[read..].iter().any(|heard| heard.user == Some(bot)).then_some(()));
        let came = timeout(within, more).await.is_ok();
        self.read();
        came
    }

    /// The levels of the newest packets since silence.
    fn speech(&self) -> Vec<f64> {
        let mut speech: Vec<f64> = self.heard.iter().rev().map_while(|(_, level)| *level).collect();
        speech.reverse();
        speech
    }
}

/// When packets of speech are sent, after the first one: the first loud packet, that of the onset, and those that insist.
struct Said {
    packets: Vec<Vec<u8>>,
    first: Option<usize>,
    onset: Option<usize>,
    insisted: [Option<usize>; 2],
}

/// Hears Ana as the server does, to know what is right.
struct Ear {
    ear: Box<dyn audio::Ear>,
    /// The number of the next packet. Numbers count what was sent.
    next: u32,
}

impl Ear {
    /// So many packets of speech without a pause, from the first or the second word on.
    fn hear(&mut self, packets: usize, trial: usize) -> Said {
        let begin = [0, 31][trial % 2];
        let packets: Vec<Vec<u8>> = sentence()[SPOKEN].iter().cycle().skip(begin).take(packets).cloned().collect();
        let mut said = Said { packets, first: None, onset: None, insisted: [None; 2] };
        let (mut speech, mut voiced) = (Speech::default(), Vec::new());
        for (at, packet) in said.packets.iter().enumerate() {
            let heard = self.ear.decode_packet(self.next, packet).expect("Opus");
            self.next += 1;
            let mut sum = Duration::ZERO;
            for hop in heard.hops {
                let from = Moment::from_micros(hop.from * 1_000_000 / 16_000);
                if matches!(speech.hop(from, hop.score), Some(Pulse::Started { .. })) {
                    said.onset.get_or_insert(at);
                }
                sum += if hop.score >= VOICED_SCORE { HOP } else { Duration::ZERO };
            }
            voiced.push(sum);
            let power: f64 = heard.samples.iter().map(|sample| f64::from(*sample).powi(2)).sum();
            if (power / heard.samples.len() as f64).sqrt() >= LOUD {
                said.first.get_or_insert(at);
            }
            for ((share, within), insisted) in INSISTS.iter().zip(&mut said.insisted) {
                if insisted.is_none() && voiced.iter().rev().take(*within).sum::<Duration>() >= *share {
                    *insisted = Some(at);
                }
            }
        }
        said
    }
}

/// What an interruption led to.
#[derive(Default)]
struct Outcome {
    verdict: String,
    /// After the first loud packet, and after that of the onset.
    ducked: Option<(Duration, Duration)>,
    /// After the packet that fulfils the rule.
    paused: Option<Duration>,
    /// The words on record of a reply that was cut, and those that were received.
    words: Option<(usize, usize)>,
}

async fn interrupt(call: &mut Call, listener: &mut Listener<'_>, story: &Story, said: &Said) -> Outcome {
    // More than two seconds at full level before it, and what was told of the last one.
    listener.read();
    let heard = listener.heard.len();
    while listener.speech().len() < FOUND_BY + 20 || listener.heard.len() < heard + FOUND_BY + 20 {
        if !listener.more(Duration::from_secs(4)).await {
            call.home.discord.say(call.home.ana, call.channel, story::ASK);
        }
    }
    let speech = listener.speech();
    let before = &speech[speech.len() - FOUND_BY..];
    let (position, from) = (story.find(before), listener.heard.len());
    // The search has taken its time.
    listener.read();
    while timeout(Duration::from_millis(1), call.watch.next()).await.is_ok() {}
    let begun = Instant::now();
    let at = |packet: usize| begun + FRAME * packet as u32;
    let (ana, mut outcome) = (listener.ana, Outcome::default());
    let interrupted = async {
        let (mut statements, mut cut) = (BTreeMap::new(), None);
        while outcome.words.is_none() {
            let event = call.watch.next().await.expect("the server runs");
            let ticket = event["ticket"].to_string();
            if event["event"] == "statement" {
                statements.insert(ticket, event["text"].as_str().unwrap_or_default().split_whitespace().count());
            } else if event["event"] == "interrupted" {
                outcome.verdict = event["verdict"].as_str().unwrap_or_default().to_owned();
                if !CUTS.contains(&&*outcome.verdict) {
                    break;
                }
                cut = Some(ticket);
            }
            outcome.words = cut.as_ref().and_then(|ticket| statements.get(ticket)).map(|words| (*words, 0));
        }
    };
    tokio::join!(ana.talk(&said.packets), interrupted);
    listener.read();
    let heard = &listener.heard[from..];
    let first_silent = heard.iter().position(|(_, level)| level.is_none());
    let spoken = &heard[..first_silent.unwrap_or(heard.len())];
    let ducked = spoken.iter().enumerate().find(|(packet, (at, level))| {
        let expected = story.levels.get(position + packet).copied().unwrap_or_default();
        *at > begun && expected > LOUD && level.is_some_and(|level| level < DUCKED * expected)
    });
    if let (Some((_, (when, _))), Some(first), Some(onset)) = (ducked, said.first, said.onset) {
        outcome.ducked = Some((when.duration_since(at(first)), when.duration_since(at(onset))));
    }
    if let Some((when, _)) = first_silent.map(|silent| heard[silent]) {
        let insisted = said.insisted.iter().flatten().map(|packet| at(*packet)).filter(|insisted| *insisted <= when).max();
        outcome.paused = insisted.map(|insisted| when - insisted);
    }
    if let Some((_, received)) = &mut outcome.words {
        *received = story.words_until(position + spoken.len());
    }
    outcome
}

/// `cargo test --release --test it -- --ignored --nocapture interrupted_while_nobody` prints the figures. `TRIALS` sets how many.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten minutes"]
async fn a_companion_is_interrupted_while_nobody_else_speaks() {
    let mut call = Call::begin(rules(), story::premises().await).await;

    trials(&mut call).await;
}

/// `cargo test --release --test it -- --ignored --nocapture interrupted_beside` prints the figures. `TRIALS` sets how many.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten minutes"]
async fn a_companion_is_interrupted_beside_twenty_open_microphones() {
    let mut call = Call::begin(rules(), story::premises().await).await;
    let mut others = JoinSet::new();
    let microphones = sentence()[..SPOKEN.start].to_vec();
    for number in 0..20 {
        let user = call.home.discord.member(call.home.guild, &format!("person{number}"));
        let person = call.home.discord.call(user, call.channel).await;
        call.home.discord.voice().set_deafened(call.channel, user, true);
        let microphones = microphones.clone();
        others.spawn(async move {
            loop {
                person.talk(&microphones).await;
            }
        });
    }

    trials(&mut call).await;

    // They cannot outlive the call.
    others.shutdown().await;
}

async fn trials(call: &mut Call) {
    let ana = call.home.discord.call(call.home.ana, call.channel).await;
    call.home.discord.bot_called(call.channel).await;
    let voice = |state: &voice::Voice| state.groups.get(&call.channel).filter(|group| group.is_settled()).map(|_| ());
    call.home.discord.voice().until("the group", voice).await;
    ana.until("a key", |noted| noted.can_encrypt.then_some(())).await;
    let (story, mut listener) = (Story::new(), Listener::new(&ana, call.home.bot));
    let mut ear = Ear { ear: OpusAudio.ear().expect("an ear"), next: 0 };
    let (before, mut outcomes) = (load(), Vec::new());
    for trial in 0..parameter("TRIALS", 100) as usize {
        let kind = KINDS[trial % KINDS.len()];
        let said = ear.hear(SPEECH[kind], trial);
        outcomes.push((kind, interrupt(call, &mut listener, &story, &said).await));
    }

    println!("load {before} to {}", load());
    let all = || outcomes.iter().map(|(_, outcome)| outcome);
    print("first loud packet until a ducked one arrives", all().filter_map(|one| Some(one.ducked?.0)));
    print("of it, after the packet with the onset", all().filter_map(|one| Some(one.ducked?.1)));
    print("packet that fulfils the rule until silence arrives", all().filter_map(|one| one.paused));
    for (kind, packets) in SPEECH.iter().enumerate() {
        let mut verdicts: Vec<&str> = outcomes.iter().filter(|(of, _)| *of == kind).map(|(_, one)| &*one.verdict).collect();
        verdicts.sort_unstable();
        let counts: Vec<String> =
            verdicts.chunk_by(|one, other| one == other).map(|same| format!("{} {}", same.len(), same[0])).collect();
        println!("{} ms of speech: {}", packets * 20, counts.join(", "));
    }
    let words: Vec<(usize, usize)> = all().filter_map(|one| one.words).collect();
    println!("words on record and received at cuts: {words:?}");
}
