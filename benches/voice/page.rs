//! A page in a voice call: sends what a microphone hears, and plays what comes, both by the clock.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tertulia::adapters::audio::ear::OpusAudio;
use tertulia::adapters::console::voice::protocol::{CompanionFrame, PLAYED_EVERY, PageMessage, ServerMessage};
use tertulia::domain::moment::Moment;
use tertulia::domain::voice::speech::{HOP, Pulse, Speech, VOICED_SCORE};
use tertulia::ports::audio::{Audio, Ear};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, interval, timeout};
use tokio_tungstenite::connect_async_with_config;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// The duration of a packet.
pub const FRAME: Duration = Duration::from_millis(20);
/// What a page keeps before it plays.
const RING: Duration = Duration::from_millis(60);
/// The packets before the first word of the sentence, which are silence.
pub const SILENCE: usize = 14;
/// What is at least as loud as this is speech: −45 dBFS.
const LOUD: f64 = 184.0;

/// Packets of a microphone in Chromium: espeak-ng says a sentence (src/adapters/audio/opus/vectors/README.md).
pub fn sentence() -> Vec<&'static [u8]> {
    let mut rest: &[u8] = include_bytes!("../../src/adapters/audio/opus/vectors/browser.vector");
    let mut packets = Vec::new();
    let mut take = |unit: usize| -> Option<&'static [u8]> {
        let (length, after) = rest.split_first_chunk()?;
        let (taken, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)) * unit)?;
        rest = after;
        Some(taken)
    };
    while let Some(packet) = take(1) {
        packets.push(packet);
        // What the packet is decoded to.
        take(2);
    }
    packets
}

/// What somebody says.
pub enum Say {
    /// These packets now, and then silence.
    Packets(Vec<&'static [u8]>),
    /// These packets again and again.
    Forever(Vec<&'static [u8]>),
    /// A message.
    Message(PageMessage),
}

/// Something that a page sees or does.
pub struct Event {
    pub at: Instant,
    /// The furthest position that the page has played of the reply, and what it has received of it.
    pub played: Duration,
    pub received: Duration,
    pub what: What,
}

pub enum What {
    Told(ServerMessage),
    /// A packet of a companion came.
    Packet,
    /// A packet of the microphone was sent that is loud, and what the detector finds in it.
    Sent {
        voiced: Duration,
        is_onset: bool,
    },
}

/// A page whose connection ends when this is dropped.
pub struct Page {
    events: UnboundedReceiver<Event>,
    commands: UnboundedSender<Say>,
}

impl Page {
    /// Enters the call of a room.
    pub async fn enter(url: &str, room: &str, from: &str) -> anyhow::Result<Self> {
        let url = format!("{}/api/voice?room={room}&from={from}&v=1", url.replacen("http", "ws", 1));
        let (socket, _) = connect_async_with_config(url, None, true).await?;
        let (mut sink, mut stream) = socket.split();
        let (commands, mut commanded) = unbounded_channel();
        let (events, seen) = unbounded_channel();
        let mut microphone = Microphone {
            ear: OpusAudio.ear()?,
            speech: Speech::default(),
            queue: VecDeque::new(),
            again: sentence()[..SILENCE].to_vec(),
            is_measured: true,
            number: 0,
        };
        tokio::spawn(async move {
            let mut player = Player::default();
            let (mut capture, mut report) = (interval(FRAME), interval(PLAYED_EVERY));
            loop {
                let out = tokio::select! {
                    frame = stream.next() => match frame {
                        Some(Ok(Message::Text(text))) => {
                            let Ok(told) = ServerMessage::read(&text) else { return eprintln!("the server sent {text}") };
                            let answer = player.handle_message(&told);
                            if events.send(player.event(What::Told(told))).is_err() { return }
                            answer
                        }
                        Some(Ok(Message::Binary(frame))) => {
                            player.receive(&frame);
                            if events.send(player.event(What::Packet)).is_err() { return }
                            None
                        }
                        Some(Ok(Message::Close(Some(close)))) if close.code != CloseCode::Normal => {
                            return eprintln!("the server closed a connection: {close}");
                        }
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                        Some(Ok(_)) => None,
                    },
                    _ = capture.tick() => {
                        let (frame, heard) = microphone.next();
                        if sink.send(Message::binary(frame)).await.is_err() { return }
                        if let Some(heard) = heard && events.send(player.event(heard)).is_err() { return }
                        None
                    }
                    _ = report.tick() => player.report(),
                    said = commanded.recv() => match said {
                        None => return,
                        Some(Say::Packets(packets)) => {
                            microphone.queue = packets.into();
                            None
                        }
                        Some(Say::Forever(packets)) => {
                            (microphone.again, microphone.is_measured) = (packets, false);
                            microphone.queue.clear();
                            None
                        }
                        Some(Say::Message(message)) => Some(message),
                    },
                };
                let Some(message) = out.and_then(|message| serde_json::to_string(&message).ok()) else { continue };
                if sink.send(Message::text(message)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self { events: seen, commands })
    }

    pub fn say(&self, say: Say) -> anyhow::Result<()> {
        self.commands.send(say).map_err(|_| anyhow::anyhow!("the connection has ended"))
    }

    /// Stays in the call.
    pub async fn watch(mut self) {
        while self.events.recv().await.is_some() {}
    }

    /// The next event within a time.
    pub async fn next(&mut self, within: Duration) -> Option<Event> {
        timeout(within, self.events.recv()).await.ok().flatten()
    }
}

/// Sends packets, and hears them as the server does, to know what is right.
struct Microphone {
    ear: Box<dyn Ear>,
    speech: Speech,
    queue: VecDeque<&'static [u8]>,
    /// What follows.
    again: Vec<&'static [u8]>,
    /// Whether it has to know what is right.
    is_measured: bool,
    number: u32,
}

impl Microphone {
    fn next(&mut self) -> (Vec<u8>, Option<What>) {
        if self.queue.is_empty() {
            self.queue.extend(&self.again);
        }
        let packet = self.queue.pop_front().unwrap_or_default();
        let frame = [&[1], &self.number.to_be_bytes()[..], packet].concat();
        let heard = self.is_measured.then(|| self.ear.decode_packet(self.number, packet).ok()).flatten();
        self.number += 1;
        let Some(heard) = heard else { return (frame, None) };
        let (mut voiced, mut is_onset) = (Duration::ZERO, false);
        for hop in heard.hops {
            let from = Moment::from_micros(hop.from * 1_000_000 / 16_000);
            is_onset |= matches!(self.speech.hop(from, hop.score), Some(Pulse::Started { .. }));
            voiced += if hop.score >= VOICED_SCORE { HOP } else { Duration::ZERO };
        }
        let power: f64 = heard.samples.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / heard.samples.len() as f64;
        let is_speech = power.sqrt() >= LOUD || !voiced.is_zero();
        (frame, is_speech.then_some(What::Sent { voiced, is_onset }))
    }
}

/// Plays a reply.
#[derive(Default)]
struct Player {
    reply: Option<u32>,
    /// The position after the newest packet.
    received: u64,
    /// The position at which playback began last, and when.
    from: u64,
    since: Option<Instant>,
    is_playing: bool,
    furthest: u64,
}

impl Player {
    fn handle_message(&mut self, told: &ServerMessage) -> Option<PageMessage> {
        self.advance();
        match *told {
            ServerMessage::Speaking { reply, from, .. } => {
                *self = Self { reply: Some(reply), received: from, from, is_playing: true, ..Self::default() };
            }
            ServerMessage::Resume { from, .. } => {
                (self.received, self.from, self.since, self.is_playing) = (from, from, None, true)
            }
            ServerMessage::Flush { .. } => {
                self.is_playing = false;
                return self.played();
            }
            ServerMessage::Cut { .. } | ServerMessage::Done { .. } => self.is_playing = false,
            _ => {}
        }
        None
    }

    fn receive(&mut self, frame: &[u8]) {
        if CompanionFrame::read(frame).is_ok_and(|frame| Some(frame.reply) == self.reply) {
            self.received += 960;
            self.since.get_or_insert_with(|| Instant::now() + RING);
        }
    }

    fn advance(&mut self) {
        if let Some(since) = self.since.filter(|_| self.is_playing) {
            let samples = Instant::now().saturating_duration_since(since).as_micros() as u64 * 48 / 1_000;
            self.furthest = self.furthest.max((self.from + samples).min(self.received));
        }
    }

    fn report(&mut self) -> Option<PageMessage> {
        self.advance();
        self.played().filter(|_| self.is_playing)
    }

    fn played(&self) -> Option<PageMessage> {
        self.reply.filter(|_| self.furthest > 0).map(|reply| PageMessage::Played { reply, samples: self.furthest })
    }

    fn event(&self, what: What) -> Event {
        Event { at: Instant::now(), played: duration(self.furthest), received: duration(self.received), what }
    }
}

pub fn duration(samples: u64) -> Duration {
    Duration::from_micros(samples * 1_000 / 48)
}
