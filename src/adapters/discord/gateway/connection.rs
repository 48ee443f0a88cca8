//! One connection to the gateway, from its first byte to its last.

use std::error::Error as _;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use twilight_gateway::error::{ReceiveMessageError, ReceiveMessageErrorType};
use twilight_gateway::{ConfigBuilder, Intents, Message, ShardId};

use super::super::dispatch::Dispatch;
use super::super::platform::Bot;
use super::Shared;
use super::end::{End, Ended};
use super::frame::{self, Frame};
use super::keeper::Keeper;
use super::ledger::{Entries, Ledger};
use super::line::{Asks, Line};
use super::passing::Passing;
use super::session::{Session, Shelf};
use super::starts::Turn;
use super::told::Doing;
use crate::domain::moment::Moment;
use crate::ports::gateway::{Disconnected, Shard};
use crate::telemetry::gateway::{Absence, Attempt};
use crate::telemetry::instruments::{NONE, gateway_event_label};

/// What HELLO may announce as the time between heartbeats; Discord announces some 41 s.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(600));

/// How a connection begins.
pub struct Plan<'a> {
    /// Where to.
    pub url: String,
    /// What is resumed; none: it identifies.
    pub session: Option<Session>,
    /// What an identify asks for.
    pub intents: Intents,
    /// The leave to be the next to identify.
    pub turn: Option<Turn<'a>>,
    /// The connection before, if there was one.
    pub lost: Option<Lost>,
}

/// A connection that was heard on, and ended.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Why.
    pub cause: &'static str,
    /// When.
    pub at: Moment,
    /// How many connections there were since.
    pub attempts: u32,
}

/// A connection as it is lived.
pub struct Connection<'a> {
    shared: &'a Shared,
    shard: Shard,
    intents: u64,
    is_resume: bool,
    ledger: Ledger,
    session: watch::Sender<Option<Session>>,
    began: Moment,
    lost: Option<Lost>,
    /// When what is awaited next has to be there.
    deadline: Option<Instant>,
    /// The time between heartbeats, and when the next acknowledgement has to be there.
    heart: Option<(Duration, Instant)>,
    /// Since when there is a session on it.
    established: Option<Instant>,
    has_identified: bool,
}

impl<'a> Connection<'a> {
    /// Lives a connection to its end. What it was told is with the intake by then, or will be told again.
    pub async fn live(shared: &'a Shared, shard: Shard, shelf: &Shelf, plan: Plan<'a>) -> Ended {
        let (times, instruments) = (&shared.times, shared.recorder.instruments());
        let mut connection = Self {
            shared,
            shard,
            intents: plan.intents.bits(),
            is_resume: plan.session.is_some(),
            ledger: Ledger::new(plan.session.as_ref().map_or(0, |session| session.accepted)),
            session: watch::Sender::new(plan.session.clone()),
            began: shared.clock.now(),
            lost: plan.lost,
            deadline: Some(Instant::now() + times.hello),
            heart: None,
            established: None,
            has_identified: false,
        };
        let (session, ledger) = (connection.session.subscribe(), connection.ledger.clone());
        let keeper = Keeper::new(shelf.clone(), session, ledger, times.notes, instruments);
        let passing = Passing::new((shared.make_intake)(shard));
        let end = connection.hear(plan, &passing).await;
        connection.attempt_failed(&end);
        let carries_on = !matches!(end, End::Lost | End::Stuck);
        if !passing.finish(&connection.ledger, times.receipts, carries_on).await {
            tracing::warn!(
                platform = "discord",
                shard = shard.number,
                "what was heard was not all taken in: it will be told again"
            );
        }
        keeper.stop().await;
        let accepted = connection.ledger.accepted();
        let session = connection.session.borrow().clone();
        Ended {
            end,
            session: session.map(|session| Session { accepted, ..session }),
            lived: connection.established.map(|since| since.elapsed()),
            has_greeted: connection.heart.is_some(),
            has_identified: connection.has_identified,
        }
    }

    /// Hears until there is nothing more to hear.
    async fn hear(&mut self, plan: Plan<'a>, passing: &Passing) -> End {
        let Some(id) = ShardId::new_checked(self.shard.number, self.shard.of.get()) else { return End::Confused };
        let (asks, mut asked) = mpsc::unbounded_channel();
        let Plan { url, session, intents, mut turn, .. } = plan;
        let config = self.config(url, session, intents, Asks(asks));
        let mut line = Line::new(twilight_gateway::Shard::with_config(id, config));
        let (mut entries, mut lost) = (self.ledger.watch(), self.ledger.watch());
        let mut leaving: Option<BoxFuture<'a, (Result<(), Disconnected>, oneshot::Sender<()>)>> = None;
        loop {
            let deadline = self.next_deadline();
            tokio::select! {
                item = AssertUnwindSafe(line.next()).catch_unwind() => {
                    let text = match item {
                        Ok(item) => match self.text(item) {
                            Ok(text) => text,
                            Err(end) => return end,
                        },
                        // A frame that its reading cannot cope with. It is in no state to be asked anything.
                        Err(_) => {
                            line.abandon();
                            return End::Confused;
                        }
                    };
                    if let Some(end) = self.heard(&text, line.latency(), passing, &mut entries).await {
                        return end;
                    }
                }
                Some(ask) = asked.recv() => {
                    let (starts, number) = (&self.shared.starts, self.shard.number);
                    leaving = Some(Box::pin(async move { (starts.leave(number).await, ask) }));
                }
                (left, ask) = async { match &mut leaving { Some(leaving) => leaving.await, None => pending().await } } => {
                    leaving = None;
                    if let Err(why) = left {
                        return End::NoLeave(why);
                    }
                    // Whoever is next waits for the time between two, and for nothing else.
                    turn = None;
                    self.has_identified = true;
                    self.deadline = Some(Instant::now() + self.shared.times.session);
                    // If it is gone, so is the connection.
                    let _ = ask.send(());
                }
                () = has_lost(&mut lost) => return End::Lost,
                () = sleep_until(deadline) => {
                    drop(turn);
                    return self.too_late();
                }
            }
        }
    }

    /// What is said; else how it ended.
    fn text(&self, item: Option<Result<Message, ReceiveMessageError>>) -> Result<String, End> {
        match item {
            Some(Ok(Message::Text(text))) => Ok(text),
            // So twilight tells of one that was not closed.
            Some(Ok(Message::Close(Some(frame)))) if frame.code != 1006 => Err(End::Closed(Some(frame.code))),
            Some(Ok(Message::Close(_))) | None => Err(if self.is_zombie() { End::Zombie } else { End::Closed(None) }),
            Some(Err(error)) => match error.kind() {
                // Our own reading decides; it is more lenient.
                ReceiveMessageErrorType::Deserializing { event } => Ok(event.clone()),
                _ => Err(End::Unreachable(cause(&error))),
            },
        }
    }

    /// Takes a frame. Returns how the connection ends, if it does.
    async fn heard(
        &mut self,
        text: &str,
        latency: Option<Duration>,
        passing: &Passing,
        entries: &mut watch::Receiver<Entries>,
    ) -> Option<End> {
        let instruments = self.shared.recorder.instruments();
        let frame = match frame::read(text) {
            Ok(frame) => frame,
            Err(why) => {
                instruments.discord_frames_unreadable.add(1, [why.as_str()]);
                self.shared.unreadable(self.shard, why);
                return None;
            }
        };
        match frame {
            Frame::Dispatch { sequence, kind, data } => {
                instruments.discord_dispatches.add(1, [gateway_event_label(&kind)]);
                match kind.as_str() {
                    "READY" => {
                        let Some(ready) = frame::ready(&data) else { return Some(End::Confused) };
                        self.shared.discord.is(Bot { application: ready.application, user: ready.user });
                        self.session.send_replace(Some(Session {
                            id: ready.session,
                            resume_url: ready.resume_url,
                            accepted: 0,
                            shards: self.shard.of.get(),
                            application: ready.application,
                            intents: self.intents,
                        }));
                        self.established();
                    }
                    "RESUMED" => self.established(),
                    // As long as something is replayed there is hope.
                    _ if self.established.is_none() => self.deadline = Some(Instant::now() + self.shared.times.session),
                    _ => {}
                }
                let receipt = self.ledger.receive(sequence);
                return self.pass(Dispatch { kind, data, receipt }, passing, entries).await;
            }
            Frame::Reconnect => return Some(End::AskedToReconnect),
            Frame::InvalidSession(is_resumable) => return Some(End::InvalidSession { is_resumable }),
            Frame::Hello(interval) => {
                let interval = Duration::from_millis(interval.unwrap_or_default()).clamp(INTERVALS.0, INTERVALS.1);
                self.beats(interval);
                self.deadline = Some(Instant::now() + self.shared.times.session);
            }
            Frame::HeartbeatAcknowledged => {
                if let Some((interval, _)) = self.heart {
                    self.beats(interval);
                }
                if let Some(latency) = latency {
                    instruments.discord_heartbeat_latency.record(latency.as_secs_f64(), NONE);
                }
            }
            Frame::Other => {}
        }
        None
    }

    /// Hands an event on. While there is no room nothing more is read, which holds Discord back.
    async fn pass(&mut self, dispatch: Dispatch, passing: &Passing, entries: &mut watch::Receiver<Entries>) -> Option<End> {
        let began = Instant::now();
        let end = tokio::select! {
            passed = timeout(self.shared.times.stuck, passing.put(dispatch)) => match passed {
                Ok(true) => None,
                Ok(false) => Some(End::Lost),
                Err(_) => Some(End::Stuck),
            },
            () = has_lost(entries) => Some(End::Lost),
        };
        // What came meanwhile was not read: nothing was late.
        let waited = began.elapsed();
        self.deadline = self.deadline.map(|deadline| deadline + waited);
        self.heart = self.heart.map(|(interval, by)| (interval, by + waited));
        end
    }

    /// There is a session.
    fn established(&mut self) {
        self.deadline = None;
        if self.established.is_some() {
            return;
        }
        self.established = Some(Instant::now());
        let (Shard { number: shard, of }, recorder) = (self.shard, &self.shared.recorder);
        tracing::info!(platform = "discord", shard, of, resumed = self.is_resume, "connected");
        self.shared.standing.set(self.shard, Doing::Connected, recorder.instruments());
        let attempt = self.attempt();
        recorder.attempted(&attempt);
        if let Some(Lost { cause, at, attempts }) = self.lost.take() {
            recorder.came_back(&Absence { shard, shards: of.get(), cause, attempts, began: at, ended: attempt.ended });
        }
    }

    /// A connection that brought no session.
    fn attempt_failed(&self, end: &End) {
        if self.established.is_none() {
            self.shared.recorder.attempted(&Attempt { error: Some(end.told()), ..self.attempt() });
        }
    }

    fn attempt(&self) -> Attempt {
        Attempt {
            shard: self.shard.number,
            shards: self.shard.of.get(),
            is_resume: self.is_resume,
            has_identified: self.has_identified,
            began: self.began,
            ended: self.shared.clock.now(),
            error: None,
        }
    }

    /// The heart beat: the next acknowledgement has to come within two intervals and a bit, the first beat being anywhere in the first.
    fn beats(&mut self, interval: Duration) {
        self.heart = Some((interval, Instant::now() + interval * 9 / 4));
    }

    /// Whether no heartbeat was acknowledged for longer than one takes.
    fn is_zombie(&self) -> bool {
        self.heart.is_some_and(|(interval, by)| Instant::now() + interval * 3 / 4 >= by)
    }

    /// The earliest time at which something has to be there.
    fn next_deadline(&self) -> Instant {
        let far = || Instant::now() + INTERVALS.1;
        self.deadline.into_iter().chain(self.heart.map(|(_, by)| by)).min().unwrap_or_else(far)
    }

    fn too_late(&self) -> End {
        match self.heart {
            None => End::Silent,
            Some((_, by)) if by <= Instant::now() => End::Zombie,
            Some(_) => End::NoSession,
        }
    }

    fn config(&self, url: String, session: Option<Session>, intents: Intents, asks: Asks) -> twilight_gateway::Config<Asks> {
        let base = ConfigBuilder::from(self.shared.config(intents)).proxy_url(url.clone()).queue(asks);
        match session {
            // What is resumed goes to its own address, or to the common one: we say where.
            Some(session) => base.session(twilight_gateway::Session::new(session.accepted, session.id)).resume_url(url).build(),
            None => base.build(),
        }
    }
}

/// Waits until something has to be told again.
async fn has_lost(entries: &mut watch::Receiver<Entries>) {
    // Nobody is left who could lose anything.
    if entries.wait_for(Entries::has_lost).await.is_err() {
        pending().await
    }
}

/// What lies deepest. The outer words only tell that connecting failed; what was said on a connection is not among them.
fn cause(error: &ReceiveMessageError) -> String {
    let Some(mut cause) = error.source() else { return "it failed".to_owned() };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
