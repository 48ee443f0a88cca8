//! What a call does to audio, in both directions: with the voice connection alone, so that every sample is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use tertulia::adapters::audio::ear::OpusAudio;
use tertulia::adapters::discord::voice::{Event, Options, Server, VoiceConnection};
use tertulia::adapters::speech::rehearsal::Voice;
use tertulia::ports::audio::{Audio as _, SPOKEN_FRAME};
use tertulia::telemetry::instruments::Instruments;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use tokio_websockets::Connector;

use super::super::counterpart::Id;
use super::super::counterpart::voice::{Network, Person, VoiceServer};
use super::call::{rules, talking_during};
use super::figures::load;
use crate::harness::{PATIENCE, parameter};

const TEXT: &str = "Nobody had opened the window for a year, and when they did the whole room smelled of rain. \
    We talked about it until the lamp went out, and then we talked a little more.";
/// The delay of the codec is far below this many samples.
const MOST_DELAY: usize = 960;

type Frame = [i16; SPOKEN_FRAME];

/// A bot and Ana in a call.
struct Pair {
    voice: VoiceServer,
    channel: Id,
    bot: Id,
    ana: Person,
    connection: VoiceConnection,
    events: Receiver<Event>,
}

impl Pair {
    async fn new() -> Self {
        let (guild, channel, bot, ana) = (Id(1), Id(2), Id(3), Id(4));
        let voice = VoiceServer::start(rules().voice);
        let grant = voice.grant(guild, channel, bot);
        let server = Server {
            endpoint: grant.endpoint.trim_start_matches("ws://").to_owned(),
            token: grant.token.into(),
            session_id: grant.session.into(),
            guild: guild.0,
            channel: channel.0,
            user: bot.0,
        };
        let options = Options { connector: Arc::new(Connector::Plain), is_plain: true, instruments: Instruments::noop() };
        let encoder = OpusAudio.encoder().expect("an encoder");
        let (connection, events) = VoiceConnection::open(server, encoder, options);
        voice.members(channel, 1).await;
        let ana = voice.join(guild, channel, ana).await;
        ana.grouped(2).await;
        voice.grouped(channel, 2).await;
        Self { voice, channel, bot, ana, connection, events }
    }

    fn lost(&self) -> usize {
        self.voice.counts(self.channel, self.ana.seat.user).lost
    }

    /// The bot speaks. Returns the packets that Ana hears.
    async fn speak(&self, frames: &[Frame]) -> Vec<Vec<u8>> {
        self.connection.play(1, frames.to_vec());
        self.ana
            .until("the audio", |noted| {
                let talk = noted.heard.iter().filter(|heard| heard.end_to_end && heard.user == Some(self.bot));
                let mut talk: Vec<_> = talk.cloned().collect();
                talk.sort_by_key(|heard| heard.timestamp);
                (talk.len() + self.lost() >= frames.len()).then(|| talk.into_iter().map(|heard| heard.frame).collect())
            })
            .await
    }

    /// Ana speaks. Returns the packets that the bot hears.
    async fn listen(&mut self, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut heard = BTreeMap::new();
        let (talk, mut is_over) = (self.ana.talk(packets), false);
        let mut talk = std::pin::pin!(talk);
        while !is_over || heard.len() + self.voice.counts(self.channel, self.ana.seat.user).lost < packets.len() {
            tokio::select! {
                _ = &mut talk, if !is_over => is_over = true,
                event = self.events.recv() => match event.expect("the connection lasts") {
                    Event::Heard(packet) => {
                        assert_eq!(packet.user, self.ana.seat.user.0);
                        heard.insert(packet.number, packet.opus);
                    }
                    event => assert!(!matches!(event, Event::Resuming | Event::Ended(_)), "{event:?}"),
                },
            }
        }
        heard.into_values().collect()
    }
}

fn encoded(frames: &[Frame]) -> Vec<Vec<u8>> {
    let mut encoder = OpusAudio.encoder().expect("an encoder");
    frames.iter().map(|frame| encoder.encode(frame).expect("a packet")).collect()
}

fn decoded(packets: &[Vec<u8>]) -> Vec<i16> {
    let mut decoder = ropus::Decoder::new(24_000, ropus::Channels::Mono).expect("a decoder");
    let mut samples = Vec::new();
    for packet in packets {
        let mut frame = [0; SPOKEN_FRAME];
        decoder.decode(packet, &mut frame, ropus::DecodeMode::Normal).expect("Opus");
        samples.extend(frame);
    }
    samples
}

/// The ratio of signal and noise in dB, at the delay at which it is highest.
fn snr(source: &[i16], heard: &[i16]) -> f64 {
    let energy = |samples: &mut dyn Iterator<Item = f64>| samples.map(|sample| sample * sample).sum::<f64>();
    let at = |delay: usize| {
        let pairs = source.iter().zip(&heard[delay..]);
        let noise = energy(&mut pairs.map(|(said, heard)| f64::from(*said) - f64::from(*heard)));
        10.0 * (energy(&mut source.iter().map(|said| f64::from(*said))) / noise.max(1e-9)).log10()
    };
    (0..MOST_DELAY).map(at).fold(f64::NEG_INFINITY, f64::max)
}

/// `cargo test --release --test it -- --ignored --nocapture as_the_codec_leaves_it` prints the figures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute"]
async fn audio_arrives_in_both_directions_as_the_codec_leaves_it() {
    println!("load {}", load());
    let frames: Vec<Frame> = Voice::of("aria", 1.0).speak(TEXT).collect();
    let source: Vec<i16> = frames.iter().flatten().copied().collect();
    let packets = encoded(&frames);
    let alone = snr(&source, &decoded(&packets));
    let mut pair = Pair::new().await;

    let spoken = pair.speak(&frames).await;
    let listened = pair.listen(&packets).await;

    for (what, heard) in [("companion to person", &spoken), ("person to companion", &listened)] {
        let through = snr(&source, &decoded(heard));
        println!("{what}: {} of {} frames, SNR {through:.2} dB; the codec alone {alone:.2} dB", heard.len(), frames.len());
        assert_eq!(heard.len(), frames.len(), "no frame is lost");
        assert!((through - alone).abs() < 1.0);
    }
}

/// `cargo test --release --test it -- --ignored --nocapture everything_that_arrives_is_heard` prints the figures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute"]
async fn of_audio_that_is_lost_and_reordered_everything_that_arrives_is_heard() {
    let bad = Network { loss: 0.05, reordering: 0.05, ..Network::default() };
    let frames: Vec<Frame> = Voice::of("aria", 1.0).speak(TEXT).collect();
    let packets = encoded(&frames);

    let pair = Pair::new().await;
    pair.voice.set_downlink(pair.channel, pair.ana.seat.user, bad);
    let spoken = pair.speak(&frames).await;
    println!("companion to person: {} of {} frames arrived, {} packets were lost", spoken.len(), frames.len(), pair.lost());
    let mut pair = Pair::new().await;
    pair.voice.set_uplink(pair.channel, pair.ana.seat.user, bad);
    let listened = pair.listen(&packets).await;
    println!("person to companion: {} of {} frames arrived, {} packets were lost", listened.len(), frames.len(), pair.lost());

    assert_eq!(listened.len() + pair.lost(), packets.len());
    let mut said = packets.iter();
    assert!(listened.iter().all(|heard| said.any(|packet| packet == heard)), "in order, and as they were said");
}

/// `cargo test --release --test it -- --ignored --nocapture joins_and_leaves` prints the figures. `CHANGES` sets how many.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute"]
async fn joins_and_leaves_during_speech_cost_no_frame() {
    let mut pair = Pair::new().await;
    let packets = encoded(&Voice::of("aria", 1.0).speak(TEXT).collect::<Vec<Frame>>());
    let (guild, channel, guest) = (Id(1), pair.channel, Id(5));
    let sent = |voice: &VoiceServer| voice.counts(channel, pair.bot).sent;

    let before = sent(&pair.voice);
    let changing = async {
        for _ in 0..parameter("CHANGES", 25) {
            let person = pair.voice.join(guild, channel, guest).await;
            pair.voice.grouped(channel, 3).await;
            person.leave().await;
            pair.voice.grouped(channel, 2).await;
        }
    };
    let mut heard = 0;
    let mut talking = std::pin::pin!(talking_during(&pair.ana, &packets, changing));
    let mut is_over = false;
    while !is_over || heard < sent(&pair.voice) - before {
        tokio::select! {
            () = &mut talking, if !is_over => is_over = true,
            event = timeout(PATIENCE, pair.events.recv()) => match event {
                Ok(Some(Event::Heard(packet))) => heard += usize::from(packet.user == pair.ana.seat.user.0),
                Ok(event) => assert!(!matches!(event, Some(Event::Resuming | Event::Ended(_)) | None), "{event:?}"),
                Err(_) => break,
            },
        }
    }
    let sent = sent(&pair.voice) - before;
    println!("load {}; {heard} of {sent} packets heard: {:?}", load(), pair.connection.counts());
    assert_eq!(heard, sent);
}
