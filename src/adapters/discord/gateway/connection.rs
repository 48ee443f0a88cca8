//! One connection to the gateway, from its first byte to its last.

use std::future::pending;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::dispatch::Dispatch;
use super::super::platform::Bot;
use super::Shared;
use super::commands::Queue;
use super::end::{End, Ended};
use super::frame::{self, Frame};
use super::keeper::Keeper;
use super::ledger::{Entries, Ledger};
use super::line::{Line, Said};
use super::passing::Passing;
use super::payload;
use super::session::{Session, Shelf};
use super::starts::Turn;
use super::told::Doing;
use crate::domain::moment::Moment;
use crate::ports::gateway::{Disconnected, Shard};
use crate::telemetry::gateway::{Absence, Attempt};
use crate::telemetry::instruments::{NONE, gateway_event_label};

/// What HELLO may announce as the time between heartbeats; Discord announces some 41 s.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(600));

/// An identify that waits for its leave.
type Leaving<'a> = BoxFuture<'a, Result<(), Disconnected>>;

/// How a connection begins.
pub struct Plan<'a> {
    /// Where to.
    pub url: String,
    /// What is resumed; none: it identifies.
    pub session: Option<Session>,
    /// What an identify asks for.
    pub intents: u64,
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
    /// HELLO came.
    has_greeted: bool,
    /// Since when there is a session on it.
    established: Option<Instant>,
    /// What is to be sent on it, once there is a session.
    commands: Option<Queue<'a>>,
    /// An event came besides READY and RESUMED.
    has_heard: bool,
    has_identified: bool,
}

impl<'a> Connection<'a> {
    /// Lives a connection to its end. What it was told is with the intake by then, or will be told again.
    pub async fn live(shared: &'a Shared, shard: Shard, shelf: &Shelf, plan: Plan<'a>) -> Ended {
        let (times, instruments) = (&shared.times, shared.recorder.instruments());
        let mut connection = Self {
            shared,
            shard,
            intents: plan.intents,
            is_resume: plan.session.is_some(),
            ledger: Ledger::new(plan.session.as_ref().map_or(0, |session| session.accepted)),
            session: watch::Sender::new(plan.session.clone()),
            began: shared.clock.now(),
            lost: plan.lost,
            deadline: Some(Instant::now() + times.hello),
            has_greeted: false,
            established: None,
            commands: None,
            has_heard: false,
            has_identified: false,
        };
        let (session, ledger) = (connection.session.subscribe(), connection.ledger.clone());
        let keeper = Keeper::new(shelf.clone(), session, ledger, times.notes, instruments);
        let passing = Passing::new((shared.make_intake)(shard));
        let end = connection.hear(plan, &passing).await;
        connection.commands = None;
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
            has_heard: connection.has_heard,
            has_greeted: connection.has_greeted,
            has_identified: connection.has_identified,
        }
    }

    /// Hears until there is nothing more to hear.
    async fn hear(&mut self, plan: Plan<'a>, passing: &Passing) -> End {
        let Plan { url, session, mut turn, .. } = plan;
        let mut line = match timeout(self.shared.times.hello, Line::open(&url, &self.shared.connector)).await {
            Ok(Ok(line)) => line,
            Ok(Err(why)) => return End::Unreachable(why),
            Err(_) => return End::Silent,
        };
        let (mut entries, mut lost) = (self.ledger.watch(), self.ledger.watch());
        let mut leaving: Option<Leaving<'a>> = None;
        let mut has_begun = false;
        loop {
            let deadline = self.deadline.unwrap_or_else(Instant::now);
            tokio::select! {
                said = line.next() => {
                    let text = match said {
                        Said::Frame(text) => text,
                        Said::Closed(code) => return End::Closed(code),
                        Said::Zombie => return End::Zombie,
                        Said::Garbled => return End::Confused,
                    };
                    if let Some(end) = self.heard(&text, &mut line, passing, &mut entries).await {
                        return end;
                    }
                    if self.has_greeted && !has_begun {
                        has_begun = true;
                        match &session {
                            Some(session) => {
                                line.came(session.accepted);
                                line.say(&payload::resume(&self.shared.token, session));
                            }
                            None => leaving = Some(Box::pin(self.shared.starts.leave(self.shard.number))),
                        }
                    }
                }
                left = async { match &mut leaving { Some(leaving) => leaving.await, None => pending().await } } => {
                    leaving = None;
                    if let Err(why) = left {
                        return End::NoLeave(why);
                    }
                    // Whoever is next waits for the time between two, and for nothing else.
                    drop(turn.take());
                    self.has_identified = true;
                    self.deadline = Some(Instant::now() + self.shared.times.session);
                    let presence = self.shared.presence.as_deref();
                    line.say(&payload::identify(&self.shared.token, self.shard, self.intents, presence));
                }
                command = async { match &mut self.commands { Some(commands) => commands.next().await, None => pending().await } } => {
                    line.say(&command);
                }
                () = has_lost(&mut lost) => return End::Lost,
                () = sleep_until(deadline), if self.deadline.is_some() => {
                    return if self.has_greeted { End::NoSession } else { End::Silent };
                }
            }
        }
    }

    /// Takes a frame. Returns how the connection ends, if it does.
    async fn heard(
        &mut self,
        text: &str,
        line: &mut Line,
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
                            presence: self.shared.presence.clone(),
                        }));
                        self.established();
                    }
                    "RESUMED" => {
                        self.update_presence(line);
                        self.established();
                    }
                    _ => {
                        self.has_heard = true;
                        // As long as something is replayed there is hope.
                        if self.established.is_none() {
                            self.deadline = Some(Instant::now() + self.shared.times.session);
                        }
                    }
                }
                line.came(sequence);
                let receipt = self.ledger.receive(sequence);
                return self.pass(Dispatch { kind, data, receipt }, line, passing, entries).await;
            }
            Frame::Reconnect => return Some(End::AskedToReconnect),
            Frame::InvalidSession(is_resumable) => return Some(End::InvalidSession { is_resumable }),
            Frame::Hello(None) => return Some(End::Confused),
            Frame::Hello(Some(interval)) => {
                let interval = Duration::from_millis(interval.get()).clamp(INTERVALS.0, INTERVALS.1);
                line.beat_every(interval, self.shared.rng.fraction());
                if !self.has_greeted {
                    self.deadline = Some(Instant::now() + self.shared.times.session);
                }
                self.has_greeted = true;
            }
            Frame::Heartbeat => line.beat_now(),
            Frame::HeartbeatAcknowledged => {
                if let Some(latency) = line.acknowledged() {
                    instruments.discord_heartbeat_latency.record(latency.as_secs_f64(), NONE);
                }
            }
            Frame::Other => {}
        }
        None
    }

    /// Hands an event on. While there is no room nothing more is read, which holds Discord back; heartbeats are still sent.
    async fn pass(
        &mut self,
        dispatch: Dispatch,
        line: &mut Line,
        passing: &Passing,
        entries: &mut watch::Receiver<Entries>,
    ) -> Option<End> {
        let began = Instant::now();
        let end = tokio::select! {
            // A heartbeat whose acknowledgement is overdue is for the next read to judge, unless there is no room now.
            biased;
            passed = timeout(self.shared.times.stuck, passing.put(dispatch)) => match passed {
                Ok(true) => None,
                Ok(false) => Some(End::Lost),
                Err(_) => Some(End::Stuck),
            },
            () = has_lost(entries) => Some(End::Lost),
            () = line.keep_beating() => None,
        };
        // What came meanwhile was not read.
        let waited = began.elapsed();
        self.deadline = self.deadline.map(|deadline| deadline + waited);
        line.postpone_acknowledgement(waited);
        end
    }

    /// A session that began in another process shows what stood below the bot's name then.
    fn update_presence(&self, line: &mut Line) {
        let presence = &self.shared.presence;
        let is_other = self.session.borrow().as_ref().is_some_and(|session| session.presence != *presence);
        if is_other {
            line.say(&payload::update_presence(presence.as_deref()));
            self.session.send_modify(|session| {
                if let Some(session) = session {
                    session.presence.clone_from(presence);
                }
            });
        }
    }

    /// There is a session.
    fn established(&mut self) {
        self.deadline = None;
        if self.established.is_some() {
            return;
        }
        self.established = Some(Instant::now());
        self.commands = Some(self.shared.commands.open(self.shard));
        let (Shard { number: shard, of }, recorder) = (self.shard, &self.shared.recorder);
        tracing::info!(platform = "discord", shard, of, resumed = self.is_resume, "connected");
        self.shared.standing.set(self.shard, Doing::Connected, recorder.instruments());
        let attempt = self.attempt();
        recorder.attempted(&attempt);
        if let Some(Lost { cause, at, attempts }) = self.lost.take() {
            recorder.reconnected(&Absence { shard, shards: of.get(), cause, attempts, began: at, ended: attempt.ended });
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
}

/// Waits until something has to be told again.
async fn has_lost(entries: &mut watch::Receiver<Entries>) {
    // Nobody is left who could lose anything.
    if entries.wait_for(Entries::has_lost).await.is_err() {
        pending().await
    }
}
