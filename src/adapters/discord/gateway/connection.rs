//! Runs one connection to the gateway from start to end.

use std::future::pending;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use twilight_model::gateway::Intents;

use super::super::dispatch::Dispatch;
use super::Shared;
use super::commands::Queue;
use super::end::{End, Ended};
use super::forwarder::Forwarder;
use super::frame::{self, Frame};
use super::ledger::{Entries, Ledger};
use super::payload;
use super::session::{Session, SessionStore};
use super::session_writer::SessionWriter;
use super::socket::{GatewaySocket, Received};
use super::starts::Slot;
use super::status::ShardStatus;
use crate::domain::moment::Moment;
use crate::ports::gateway::{Disconnected, Shard};
use crate::telemetry::gateway::{Absence, Attempt};
use crate::telemetry::instruments::{NONE, gateway_event_label};

/// The limits for the heartbeat interval in HELLO. Discord announces about 41 s.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(600));

/// A pending permission to identify.
type IdentifyPermit<'a> = BoxFuture<'a, Result<(), Disconnected>>;

pub struct Plan<'a> {
    pub url: String,
    /// The session to resume. `None`: identify.
    pub session: Option<Session>,
    pub intents: Intents,
    pub slot: Option<Slot<'a>>,
    /// The last connection with a session, if it was lost.
    pub lost: Option<Lost>,
}

/// A lost connection that had a session.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    pub cause: &'static str,
    pub at: Moment,
    /// Connection attempts since then.
    pub attempts: u32,
}

/// The state of a running connection.
pub struct Connection<'a> {
    shared: &'a Shared,
    shard: Shard,
    intents: Intents,
    is_resume: bool,
    ledger: Ledger,
    session: watch::Sender<Option<Session>>,
    began: Moment,
    lost: Option<Lost>,
    /// The time limit for the next expected frame.
    deadline: Option<Instant>,
    has_hello: bool,
    /// When the session began or was resumed on this connection.
    established: Option<Instant>,
    /// The command queue, once there is a session.
    commands: Option<Queue<'a>>,
    /// Whether an event other than READY and RESUMED arrived.
    has_received_event: bool,
    has_identified: bool,
}

impl<'a> Connection<'a> {
    /// Runs a connection until it ends. After that, every event was either handled by the intake, or will be sent again by Discord.
    pub async fn run(shared: &'a Shared, shard: Shard, sessions: &SessionStore, plan: Plan<'a>) -> Ended {
        let (times, instruments) = (&shared.parts.times, shared.parts.recorder.instruments());
        let mut connection = Self {
            shared,
            shard,
            intents: plan.intents,
            is_resume: plan.session.is_some(),
            ledger: Ledger::new(plan.session.as_ref().map_or(0, |session| session.accepted)),
            session: watch::Sender::new(plan.session.clone()),
            began: shared.parts.clock.now(),
            lost: plan.lost,
            deadline: Some(Instant::now() + times.hello),
            has_hello: false,
            established: None,
            commands: None,
            has_received_event: false,
            has_identified: false,
        };
        let (session, ledger) = (connection.session.subscribe(), connection.ledger.clone());
        let writer = SessionWriter::new(sessions.clone(), session, ledger, times.notes, instruments);
        let forwarder = Forwarder::new((shared.parts.make_intake)(shard));
        let end = connection.receive(plan, &forwarder).await;
        connection.commands = None;
        connection.attempt_failed(&end);
        let keeps_running = !matches!(end, End::Lost | End::Stuck);
        if !forwarder.finish(&connection.ledger, times.receipts, keeps_running).await {
            tracing::warn!(
                platform = "discord",
                shard = shard.number,
                "not all events were handled in time: Discord sends the others again"
            );
        }
        writer.stop().await;
        let accepted = connection.ledger.accepted();
        let session = connection.session.borrow().clone();
        Ended {
            end,
            session: session.map(|session| Session { accepted, ..session }),
            session_lasted: connection.established.map(|since| since.elapsed()),
            has_received_event: connection.has_received_event,
            has_hello: connection.has_hello,
            has_identified: connection.has_identified,
        }
    }

    /// Receives frames until the connection ends.
    async fn receive(&mut self, plan: Plan<'a>, forwarder: &Forwarder) -> End {
        let Plan { url, session, mut slot, .. } = plan;
        let mut socket = match timeout(self.shared.parts.times.hello, GatewaySocket::open(&url, &self.shared.connector)).await {
            Ok(Ok(socket)) => socket,
            Ok(Err(why)) => return End::Unreachable(why),
            Err(_) => return End::Silent,
        };
        let (mut entries, mut lost) = (self.ledger.watch(), self.ledger.watch());
        let mut permit: Option<IdentifyPermit<'a>> = None;
        let mut has_begun = false;
        loop {
            let deadline = self.deadline.unwrap_or_else(Instant::now);
            tokio::select! {
                received = socket.next() => {
                    let text = match received {
                        Received::Frame(text) => text,
                        Received::Closed(code) => return End::Closed(code),
                        Received::Zombie => return End::Zombie,
                        Received::Garbled => return End::InvalidData,
                    };
                    // A session must not be resumed if another node has resumed it.
                    if let Some(why) = self.shared.forbidden() {
                        return End::NotPermitted(why);
                    }
                    if let Some(end) = self.handle_frame(&text, &mut socket, forwarder, &mut entries).await {
                        return end;
                    }
                    if self.has_hello && !has_begun {
                        has_begun = true;
                        match &session {
                            Some(session) => {
                                socket.set_newest(session.accepted);
                                socket.send(&payload::resume(&self.shared.token, session));
                            }
                            None => permit = Some(Box::pin(self.shared.starts.reserve_identify(self.shard.number))),
                        }
                    }
                }
                granted = async { match &mut permit { Some(permit) => permit.await, None => pending().await } } => {
                    permit = None;
                    if let Some(why) = granted.err().or_else(|| self.shared.forbidden()) {
                        return End::NotPermitted(why);
                    }
                    // The next shard only waits for the interval between two identifies.
                    drop(slot.take());
                    self.has_identified = true;
                    self.deadline = Some(Instant::now() + self.shared.parts.times.session);
                    let presence = self.shared.presence.as_deref();
                    socket.send(&payload::identify(&self.shared.token, self.shard, self.intents, presence));
                }
                command = async { match &mut self.commands { Some(commands) => commands.next().await, None => pending().await } } => {
                    socket.send(&command);
                }
                () = has_lost(&mut lost) => return End::Lost,
                () = sleep_until(deadline), if self.deadline.is_some() => {
                    return if self.has_hello { End::NoSession } else { End::Silent };
                }
            }
        }
    }

    /// Handles a frame. Returns the reason if the connection must end.
    async fn handle_frame(
        &mut self,
        text: &str,
        socket: &mut GatewaySocket,
        forwarder: &Forwarder,
        entries: &mut watch::Receiver<Entries>,
    ) -> Option<End> {
        let instruments = self.shared.parts.recorder.instruments();
        let frame = match frame::parse(text) {
            Ok(frame) => frame,
            Err(why) => {
                instruments.discord_frames_unreadable.add(1, [why.as_str()]);
                self.shared.log_invalid_frame(self.shard, why);
                return None;
            }
        };
        match frame {
            Frame::Dispatch { sequence, kind, data } => {
                instruments.discord_dispatches.add(1, [gateway_event_label(&kind)]);
                match kind.as_str() {
                    "READY" => {
                        let Some(ready) = frame::parse_ready(&data) else { return Some(End::InvalidData) };
                        let bot = ready.bot();
                        self.shared.parts.discord.set_bot(bot);
                        self.session.send_replace(Some(Session {
                            id: ready.session_id,
                            resume_url: ready.resume_gateway_url,
                            accepted: 0,
                            shards: self.shard.of.get(),
                            application: bot.application,
                            intents: self.intents,
                            presence: self.shared.presence.clone(),
                        }));
                        self.established();
                    }
                    "RESUMED" => {
                        self.update_presence(socket);
                        self.established();
                    }
                    _ => {
                        self.has_received_event = true;
                        // Replayed events show that the resume is still in progress.
                        if self.established.is_none() {
                            self.deadline = Some(Instant::now() + self.shared.parts.times.session);
                        }
                    }
                }
                socket.set_newest(sequence);
                let receipt = self.ledger.receive(sequence);
                return self.forward(Dispatch { kind, data, receipt }, socket, forwarder, entries).await;
            }
            Frame::Reconnect => return Some(End::ReconnectRequested),
            Frame::InvalidSession(is_resumable) => return Some(End::InvalidSession { is_resumable }),
            Frame::Hello(None) => return Some(End::InvalidData),
            Frame::Hello(Some(interval)) => {
                let interval = Duration::from_millis(interval.get()).clamp(INTERVALS.0, INTERVALS.1);
                socket.start_heartbeats(interval, self.shared.parts.rng.fraction());
                if !self.has_hello {
                    self.deadline = Some(Instant::now() + self.shared.parts.times.session);
                }
                self.has_hello = true;
            }
            Frame::Heartbeat => socket.heartbeat_requested(),
            Frame::HeartbeatAcknowledged => {
                if let Some(latency) = socket.acknowledged() {
                    instruments.discord_heartbeat_latency.record(latency.as_secs_f64(), NONE);
                }
            }
            Frame::Other => {}
        }
        None
    }

    /// Forwards an event to the intake. While the intake has no room, nothing else is read, which slows Discord down. Heartbeats are still sent.
    async fn forward(
        &mut self,
        dispatch: Dispatch,
        socket: &mut GatewaySocket,
        forwarder: &Forwarder,
        entries: &mut watch::Receiver<Entries>,
    ) -> Option<End> {
        let began = Instant::now();
        let end = tokio::select! {
            // If there is room now, an overdue acknowledgement is checked at the next read.
            biased;
            forwarded = timeout(self.shared.parts.times.stuck, forwarder.forward(dispatch)) => match forwarded {
                Ok(true) => None,
                Ok(false) => Some(End::Lost),
                Err(_) => Some(End::Stuck),
            },
            () = has_lost(entries) => Some(End::Lost),
            () = socket.keep_sending_heartbeats() => None,
        };
        // Frames that arrived meanwhile were not read.
        let waited = began.elapsed();
        self.deadline = self.deadline.map(|deadline| deadline + waited);
        socket.postpone_acknowledgement(waited);
        end
    }

    /// Updates the custom status, if the session began with a different one in an earlier process.
    fn update_presence(&self, socket: &mut GatewaySocket) {
        let presence = &self.shared.presence;
        let has_changed = self.session.borrow().as_ref().is_some_and(|session| session.presence != *presence);
        if has_changed {
            socket.send(&payload::update_presence(presence.as_deref()));
            self.session.send_modify(|session| {
                if let Some(session) = session {
                    session.presence.clone_from(presence);
                }
            });
        }
    }

    /// Handles the beginning of a session on this connection.
    fn established(&mut self) {
        self.deadline = None;
        if self.established.is_some() {
            return;
        }
        self.established = Some(Instant::now());
        self.commands = Some(self.shared.commands.open(self.shard));
        let (Shard { number: shard, of }, recorder) = (self.shard, &self.shared.parts.recorder);
        tracing::info!(platform = "discord", shard, of, resumed = self.is_resume, "connected");
        self.shared.set_status(self.shard, ShardStatus::Connected);
        let attempt = self.attempt();
        recorder.attempted(&attempt);
        if let Some(Lost { cause, at, attempts }) = self.lost.take() {
            recorder.reconnected(&Absence { shard, shards: of.get(), cause, attempts, began: at, ended: attempt.ended });
        }
    }

    /// Records a connection attempt that ended without a session.
    fn attempt_failed(&self, end: &End) {
        if self.established.is_none() {
            self.shared.parts.recorder.attempted(&Attempt { error: Some(end.description().to_string()), ..self.attempt() });
        }
    }

    fn attempt(&self) -> Attempt {
        Attempt {
            shard: self.shard.number,
            shards: self.shard.of.get(),
            is_resume: self.is_resume,
            has_identified: self.has_identified,
            began: self.began,
            ended: self.shared.parts.clock.now(),
            error: None,
        }
    }
}

/// Waits until an event is lost, so that Discord must send it again.
async fn has_lost(entries: &mut watch::Receiver<Entries>) {
    // Without senders, no event can be lost any more.
    if entries.wait_for(Entries::has_lost).await.is_err() {
        pending().await
    }
}
