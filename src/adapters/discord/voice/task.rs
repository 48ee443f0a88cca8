//! The task of a voice connection: owns the sockets and carries out the effects of [`Connection`].

use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_websockets::Connector;

use super::connection::{Connection, Effect};
use super::counts::Counts;
use super::datagrams::Datagrams;
use super::events::Event;
use super::messages::MAX_MESSAGE_BYTES;
use super::metrics::Metrics;
use super::server::Server;
use super::speaking::Frame;
use crate::adapters::web_socket::{Connected, Received};
use crate::domain::moment::Moment;
use crate::ports::audio::Encoder;
use crate::telemetry::instruments::Instruments;

const TICK: Duration = Duration::from_millis(20);
/// The capacity of the event channel. Half of it is reserved for events other than packets of people. Events that do not fit are dropped and
/// counted.
const EVENTS: usize = 1_024;
/// The capacity of the command channel. The task receives commands at once; a command that does not fit is dropped.
const COMMANDS: usize = 1_024;
/// Longer than any datagram of audio.
const DATAGRAM_BYTES: usize = 4 << 10;
/// After this many failed ticks in a row without a datagram, the UDP socket counts as unusable.
const MOST_ERRORS: u32 = 100;

/// How to connect.
#[derive(Clone)]
pub struct Options {
    /// Opens the WebSocket.
    pub connector: Arc<Connector>,
    /// Whether to connect without TLS. Only for a server on the same machine.
    pub is_plain: bool,
    pub instruments: Instruments,
}

/// A command to the task.
enum Command {
    /// Append frames of a reply to the queue.
    Play(u64, Vec<Frame>),
    /// Turn ducking on or off.
    Duck(bool),
    /// Drop the queued frames.
    Flush,
    /// Continue on another server.
    Move(Server),
    Leave,
}

/// The handle of a connection to a voice call. Dropping it leaves the call.
pub struct VoiceConnection {
    commands: mpsc::Sender<Command>,
    counts: Arc<Mutex<Counts>>,
}

impl VoiceConnection {
    /// Enters a call and runs the connection in its own task. The last event is [`Event::Ended`].
    pub fn open(server: Server, encoder: Box<dyn Encoder>, options: Options) -> (Self, mpsc::Receiver<Event>) {
        let (events, receiver) = mpsc::channel(EVENTS);
        let (commands, taken) = mpsc::channel(COMMANDS);
        let counts = Arc::new(Mutex::new(Counts::default()));
        let started = Instant::now();
        let task = Task {
            guild: server.guild,
            connection: Connection::new(server, encoder, Moment::ZERO),
            commands: taken,
            counts: counts.clone(),
            metrics: Metrics::new(options.instruments.clone()),
            options,
            started,
            next_tick: started + TICK,
            socket: None,
            opening: None,
            datagrams: None,
            errors: 0,
            is_failing: false,
            events,
            unread: 0,
            end: None,
        };
        tokio::spawn(task.run());
        (Self { commands, counts }, receiver)
    }

    /// Queues frames of a reply. Frames beyond [`MOST_WAITING`](super::MOST_WAITING) are dropped and counted.
    pub fn play(&self, reply: u64, frames: Vec<Frame>) {
        self.send(Command::Play(reply, frames));
    }

    /// Turns ducking on or off, from the next frame on: companions are 12 dB quieter.
    pub fn duck(&self, on: bool) {
        self.send(Command::Duck(on));
    }

    /// Drops the queued frames. If a frame was sent before, [`Event::Sent`] reports how much of the newest reply was sent.
    pub fn flush(&self) {
        self.send(Command::Flush);
    }

    /// Continues on another server, as `VOICE_SERVER_UPDATE` demands.
    pub fn move_to(&self, server: Server) {
        self.send(Command::Move(server));
    }

    pub fn leave(&self) {
        self.send(Command::Leave);
    }

    /// The counters, at most 20 ms old.
    pub fn counts(&self) -> Counts {
        *self.counts.lock()
    }

    fn send(&self, command: Command) {
        let _ = self.commands.try_send(command);
    }
}

struct Task {
    guild: u64,
    connection: Connection,
    commands: mpsc::Receiver<Command>,
    counts: Arc<Mutex<Counts>>,
    metrics: Metrics,
    options: Options,
    started: Instant,
    next_tick: Instant,
    socket: Option<Box<Connected>>,
    opening: Option<Opening>,
    datagrams: Option<Datagrams>,
    errors: u32,
    /// Whether the UDP socket failed since the last tick. Then it is not read before the next one.
    is_failing: bool,
    events: mpsc::Sender<Event>,
    /// The number of events that were dropped because the channel was full.
    unread: u64,
    /// The last event, once the connection has ended.
    end: Option<Event>,
}

type Opening = Pin<Box<dyn Future<Output = Opened> + Send>>;
type Opened = Result<Box<Connected>, String>;

/// The reasons why the task wakes up.
enum Woken {
    Command(Command),
    Tick,
    Opened(Opened),
    Received(Received),
    Datagram(std::io::Result<usize>),
}

impl Task {
    async fn run(mut self) {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        self.carry_out();
        while self.end.is_none() {
            match self.wait(&mut buffer).await {
                Woken::Command(command) => self.command(command),
                Woken::Tick => self.tick(),
                Woken::Opened(Ok(socket)) => {
                    (self.opening, self.socket) = (None, Some(socket));
                    self.connection.opened(self.now());
                }
                Woken::Opened(Err(error)) => {
                    tracing::info!(guild = self.guild, error, "voice server not reached");
                    self.opening = None;
                    self.connection.closed(None, self.now());
                }
                Woken::Received(Received::Text(text)) => self.connection.text(&text, self.now()),
                Woken::Received(Received::Binary(bytes)) => self.connection.binary(&bytes, self.now()),
                Woken::Received(Received::Closed { code, .. }) => {
                    tracing::info!(guild = self.guild, code, "voice connection closed");
                    self.socket = None;
                    self.connection.closed(code, self.now());
                }
                Woken::Received(Received::Drained) => {}
                Woken::Datagram(Ok(length)) => {
                    self.errors = 0;
                    self.connection.datagram(&mut buffer[..length], self.now());
                }
                Woken::Datagram(Err(_)) => self.datagram_failed(),
            }
            self.carry_out();
        }
        self.publish();
        if let Some(end) = self.end {
            // The receiver may be gone.
            let _ = self.events.send(end).await;
        }
    }

    async fn wait(&mut self, buffer: &mut [u8]) -> Woken {
        let datagrams = self.datagrams.as_ref().filter(|_| !self.is_failing);
        tokio::select! {
            biased;
            command = self.commands.recv() => Woken::Command(command.unwrap_or(Command::Leave)),
            () = sleep_until(self.next_tick) => Woken::Tick,
            opened = when(self.opening.as_mut()) => Woken::Opened(opened),
            received = receive(self.socket.as_mut()) => Woken::Received(received),
            read = read(datagrams, buffer) => Woken::Datagram(read),
        }
    }

    fn now(&self) -> Moment {
        Moment::ZERO + self.started.elapsed()
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Play(reply, frames) => self.connection.play(reply, frames),
            Command::Duck(on) => self.connection.duck(on),
            Command::Flush => self.connection.flush(),
            Command::Move(server) => self.connection.move_to(server, self.now()),
            Command::Leave => self.connection.leave(),
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        while self.next_tick <= now {
            self.next_tick += TICK;
        }
        self.is_failing = false;
        self.connection.tick(self.now());
        self.publish();
    }

    fn datagram_failed(&mut self) {
        self.errors += 1;
        self.is_failing = true;
        if self.errors > MOST_ERRORS {
            self.errors = 0;
            self.connection.datagrams_failed(self.now());
        }
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.connection.next_effect() {
            match effect {
                Effect::Open(address) => self.open(&address),
                Effect::Close(code) => {
                    self.opening = None;
                    if let Some(socket) = self.socket.take() {
                        socket.close(code);
                    }
                }
                Effect::Text(text) => {
                    if let Some(socket) = &mut self.socket {
                        socket.send_text(text);
                    }
                }
                Effect::Binary(bytes) => {
                    if let Some(socket) = &mut self.socket {
                        socket.send_binary(bytes);
                    }
                }
                Effect::OpenDatagrams(address) => self.open_datagrams(address),
                Effect::Datagram(datagram) => {
                    // Send errors are ignored: UDP may lose datagrams anyway.
                    if let Some(datagrams) = &self.datagrams {
                        let _ = datagrams.send(&datagram);
                    }
                }
                Effect::Report(event) => self.report(event),
            }
        }
    }

    fn open(&mut self, address: &str) {
        let scheme = if self.options.is_plain { "ws" } else { "wss" };
        let url = format!("{scheme}://{address}");
        let connector = self.options.connector.clone();
        self.socket = None;
        self.opening = Some(Box::pin(async move { Connected::open(&url, &connector, MAX_MESSAGE_BYTES).await.map(Box::new) }));
    }

    fn open_datagrams(&mut self, address: SocketAddr) {
        match Datagrams::open(address) {
            Ok(socket) => (self.datagrams, self.errors, self.is_failing) = (Some(socket), 0, false),
            Err(error) => {
                tracing::warn!(guild = self.guild, %error, "no socket for voice");
                self.datagrams = None;
                self.connection.datagrams_failed(self.now());
            }
        }
    }

    fn report(&mut self, event: Event) {
        match &event {
            Event::Connected | Event::Resuming | Event::Resumed => tracing::debug!(guild = self.guild, ?event, "voice call"),
            Event::Ended(ended) => {
                tracing::info!(guild = self.guild, ?ended, "voice call ended");
                self.end = Some(event);
                return;
            }
            _ => {}
        }
        if matches!(event, Event::Heard(_)) && self.events.capacity() <= EVENTS / 2 {
            self.unread += 1;
            return;
        }
        match self.events.try_send(event) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => self.unread += 1,
            // The receiver is gone.
            Err(mpsc::error::TrySendError::Closed(_)) => self.connection.leave(),
        }
    }

    fn publish(&mut self) {
        let mut counts = self.connection.counts();
        counts.unread = self.unread;
        self.metrics.add(&counts);
        *self.counts.lock() = counts;
    }
}

async fn when(opening: Option<&mut Opening>) -> Opened {
    match opening {
        Some(opening) => opening.await,
        None => pending().await,
    }
}

async fn receive(socket: Option<&mut Box<Connected>>) -> Received {
    match socket {
        Some(socket) => socket.next().await,
        None => pending().await,
    }
}

async fn read(datagrams: Option<&Datagrams>, buffer: &mut [u8]) -> std::io::Result<usize> {
    match datagrams {
        Some(datagrams) => datagrams.receive(buffer).await,
        None => pending().await,
    }
}
