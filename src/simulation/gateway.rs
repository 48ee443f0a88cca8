//! The platform's gateway. A few connections deliver what people say. They get lost, come back, and deliver a range of messages again.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::dice::Dice;
use super::life::Props;
use super::plan::{Beat, Plan};
use super::stage::{Stage, lock};
use crate::actors::runtime::actor_keys::ShardKey;
use crate::ports::gateway::{Command, Condition, Disconnected, Gateway, Shard, Unsent};
use crate::ports::inbound_events::{Acceptance, InboundError, InboundEvents};

/// The name of the platform, and the prefix of its rooms: `sim:3`.
pub(super) const PLATFORM: &str = "sim";

/// The platform's side of its connections, and what a process noted about them. It survives the process.
pub(super) struct Wire {
    dice: Mutex<Dice>,
    weather: Weather,
    lines: Vec<Mutex<Line>>,
    /// Notified when a message is sent, by room.
    arrivals: Vec<Notify>,
}

/// How unreliable the connections are.
struct Weather {
    /// The longest life of a connection. `None`: it lives until it is closed.
    lasts_millis: Option<u64>,
    /// The probability that a connection is refused.
    refused: f64,
    /// The probability that the platform does not report the number of connections.
    uncounted: f64,
    /// The probability that a lost connection panics.
    panics: f64,
    /// How often the position is noted.
    noted_every: Duration,
}

/// The messages of one connection, and the position that was processed.
#[derive(Default)]
struct Line {
    /// In the order in which they were sent.
    deliveries: Vec<Delivery>,
    /// The position that was noted: everything before it was processed. The next process continues from there.
    noted: usize,
    noted_at: Duration,
    /// The same for this process. `taken` has the messages after it that were processed, too.
    reached: usize,
    taken: BTreeSet<usize>,
    /// The life of the process that `reached` belongs to.
    of_life: u64,
    /// The number of tasks that run the connection at present.
    runs: u32,
}

/// A message that a connection delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) number: usize,
    /// It is resent, with other words.
    pub(super) is_resend: bool,
}

impl Wire {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut dice = Dice::new(plan.seed, "gateway");
        let shards = dice.between(1, 3);
        let mut sometimes = |share: f64, most: f64| if dice.chance(share) { dice.fraction() * most } else { 0.0 };
        let (refused, uncounted, panics) = (sometimes(0.5, 0.6), sometimes(0.4, 0.7), sometimes(0.4, 0.5));
        let weather = Weather {
            lasts_millis: dice.chance(0.7).then(|| *dice.pick(&[2_000, 15_000, 60_000, 300_000])),
            refused,
            uncounted,
            panics: if plan.weather.is_deadly { panics } else { 0.0 },
            noted_every: dice.millis(200, 30_000),
        };
        Self {
            dice: Mutex::new(dice),
            weather,
            lines: (0..shards).map(|_| Mutex::default()).collect(),
            arrivals: plan.rooms.iter().map(|_| Notify::new()).collect(),
        }
    }

    pub(super) fn shards(&self) -> NonZeroU32 {
        u32::try_from(self.lines.len()).ok().and_then(NonZeroU32::new).expect("one connection or more")
    }

    /// The connection that delivers the messages of a room.
    fn line_of(&self, plan: &Plan, room: usize) -> usize {
        plan.rooms[room].guild % self.lines.len()
    }

    /// Sends a message, or resends one.
    pub(super) fn deliver(&self, plan: &Plan, room: usize, delivery: Delivery) {
        lock(&self.lines[self.line_of(plan, room)]).deliveries.push(delivery);
        self.arrivals[room].notify_one();
    }

    /// The messages of each connection.
    pub(super) fn deliveries(&self) -> Vec<Vec<Delivery>> {
        self.lines.iter().map(|line| lock(line).deliveries.clone()).collect()
    }

    /// Whether this process runs every connection, and has processed everything that they delivered.
    pub(super) fn is_all_taken(&self, life: u64) -> bool {
        let is_taken = |line: &Line| line.runs > 0 && line.of_life == life && line.reached == line.deliveries.len();
        self.lines.iter().all(|line| is_taken(&lock(line)))
    }

    /// How many tasks run each connection.
    pub(super) fn runs(&self) -> Vec<u32> {
        self.lines.iter().map(|line| lock(line).runs).collect()
    }

    fn draw<T>(&self, roll: impl FnOnce(&mut Dice) -> T) -> T {
        roll(&mut lock(&self.dice))
    }
}

impl Line {
    /// A connection continues at the position that this process knows, or else at the noted one.
    fn resume(&mut self, life: u64) {
        if self.of_life != life {
            (self.of_life, self.reached) = (life, self.noted);
        }
        self.taken.clear();
    }

    fn take(&mut self, which: usize, now: Duration, noted_every: Duration) {
        self.taken.insert(which);
        while self.taken.remove(&self.reached) {
            self.reached += 1;
        }
        if now.saturating_sub(self.noted_at) >= noted_every {
            (self.noted, self.noted_at) = (self.reached, now);
        }
    }
}

pub(super) struct SimGateway(pub(super) Arc<Props>);

/// Counts a running connection until it is dropped.
struct Running<'a>(&'a Mutex<Line>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(self.0).runs -= 1;
    }
}

#[async_trait]
impl Gateway for SimGateway {
    fn name(&self) -> &'static str {
        PLATFORM
    }

    async fn shards(&self) -> Result<NonZeroU32, Disconnected> {
        self.stage().alive().await;
        self.stage().pass(self.wire().draw(|dice| dice.millis(1, 800))).await;
        if self.occurs(self.wire().weather.uncounted) {
            self.stage().reach("connections not counted");
            return Err(self.later());
        }
        Ok(self.wire().shards())
    }

    async fn live(&self, shard: Shard) -> Disconnected {
        let (stage, wire) = (self.stage(), self.wire());
        let _running = self.enter(shard);
        loop {
            stage.pass(wire.draw(|dice| dice.millis(1, 2_000))).await;
            if self.occurs(wire.weather.refused) {
                stage.reach("connection refused");
                return self.later();
            }
            self.line(shard).resume(stage.life());
            tokio::select! {
                biased;
                () = self.receive_all(shard) => {}
                () = self.lost() => {}
            }
            stage.reach("connection lost");
            stage.log(format!("connection {} is lost", shard.number));
            if self.occurs(wire.weather.panics) {
                stage.reach("connection panics");
                std::panic::resume_unwind(Box::new("a connection panics, as the simulation planned".to_owned()));
            }
            if wire.draw(|dice| dice.chance(0.4)) {
                return self.later();
            }
        }
    }

    fn send(&self, _: Command) -> Result<(), Unsent> {
        Err(Unsent::NotConnected)
    }

    fn condition(&self) -> Condition {
        let ready = self.wire().runs().iter().all(|runs| *runs == 1);
        Condition { ready, detail: "as the simulation planned".into(), ..Condition::default() }
    }
}

impl SimGateway {
    fn stage(&self) -> &Arc<Stage> {
        &self.0.stage
    }

    fn wire(&self) -> &Wire {
        &self.0.wire
    }

    fn line(&self, shard: Shard) -> MutexGuard<'_, Line> {
        lock(&self.wire().lines[shard.number as usize])
    }

    fn enter(&self, shard: Shard) -> Running<'_> {
        let runs = {
            let mut line = self.line(shard);
            line.runs += 1;
            line.runs
        };
        if runs > 1 {
            self.stage().violate(format!("connection {} is run {runs} times at once", shard.number));
        }
        Running(&self.wire().lines[shard.number as usize])
    }

    fn occurs(&self, share: f64) -> bool {
        let occurs = self.wire().draw(|dice| dice.chance(share));
        occurs && !self.stage().is_calm()
    }

    fn later(&self) -> Disconnected {
        let after = self.wire().draw(|dice| dice.chance(0.5).then(|| dice.millis(1, 20_000)));
        Disconnected::Later { after, detail: "as the simulation planned".into() }
    }

    /// Returns when the connection is lost. It is not lost any more once faults are over.
    async fn lost(&self) {
        let Some(most) = self.wire().weather.lasts_millis else { return std::future::pending().await };
        self.stage().pass(self.wire().draw(|dice| dice.millis(1, most))).await;
        if self.stage().is_calm() {
            std::future::pending::<()>().await;
        }
    }

    /// Receives from all rooms of a connection until it is lost.
    async fn receive_all(&self, shard: Shard) {
        let plan = &self.stage().plan;
        let its = (0..plan.rooms.len()).filter(|room| self.wire().line_of(plan, *room) == shard.number as usize);
        join_all(its.map(|room| self.receive(shard, room))).await;
        // Some connections have no rooms.
        std::future::pending().await
    }

    /// Receives from a room, one message after the other. A message that hangs does not hold up other rooms.
    async fn receive(&self, shard: Shard, room: usize) {
        let mut next = self.line(shard).reached;
        loop {
            let Some((which, delivery)) = self.next_delivery(shard, room, next) else {
                self.wire().arrivals[room].notified().await;
                continue;
            };
            next = which + 1;
            self.stage().pass(self.wire().draw(|dice| Duration::from_millis(*dice.pick(&[0, 0, 1, 5, 50])))).await;
            self.hand_over(shard, delivery).await;
            self.line(shard).take(which, self.stage().now(), self.wire().weather.noted_every);
        }
    }

    fn next_delivery(&self, shard: Shard, room: usize, from: usize) -> Option<(usize, Delivery)> {
        let sent = lock(&self.0.people.sent);
        let line = self.line(shard);
        let mut all = line.deliveries.iter().copied().enumerate().skip(from);
        all.find(|(_, delivery)| sent.get(&delivery.number).is_some_and(|sent| sent.say.room == room))
    }

    /// Hands the message over until it is accepted.
    async fn hand_over(&self, shard: Shard, delivery: Delivery) {
        let (stage, people) = (self.stage(), &self.0.people);
        let Some(sent) = lock(&people.sent).get(&delivery.number).cloned() else { return };
        let (channel_ref, inbound_message) =
            (self.0.channel_ref(sent.say.room), self.0.inbound_message(&sent, delivery.is_resend));
        loop {
            stage.alive().await;
            let Some(present) = stage.present() else { return std::future::pending().await };
            let is_owned = || present.directory.find(&ShardKey(PLATFORM, shard.number)).is_some();
            if !is_owned() {
                // A connection whose actor was killed at this very moment ends within a millisecond.
                stage.pass(Duration::from_millis(1)).await;
            }
            if !is_owned() {
                stage.violate(format!(
                    "message {} arrived over connection {}, which no actor owns",
                    delivery.number, shard.number
                ));
            }
            stage.beat(Beat::Delivered);
            let handed_over_at = people.next();
            let has_opted_out = self.0.has_opted_out(&sent.say);
            let outcome = present.inbound.said(&channel_ref, inbound_message.clone()).await;
            stage.alive().await;
            // The person may opt in again meanwhile.
            match outcome {
                Ok(Acceptance::Ignored) if has_opted_out => stage.reach("opted-out message dropped"),
                Ok(Acceptance::New(seq)) if has_opted_out && self.0.has_opted_out(&sent.say) => {
                    stage.violate(format!("message {} is {seq} by a person who opted out", delivery.number));
                }
                _ => {}
            }
            match outcome {
                Ok(Acceptance::New(seq) | Acceptance::Duplicate(seq)) => {
                    return self.0.note_platform_outcome(delivery, Some(seq), handed_over_at);
                }
                Ok(Acceptance::Ignored) => return self.0.note_platform_outcome(delivery, None, handed_over_at),
                Err(InboundError::Later { after, .. }) => {
                    stage.reach("message resent with its id");
                    stage.pass(after).await;
                }
                Err(InboundError::Broken(detail)) => {
                    stage.violate(format!("message {} was rejected: {detail}", delivery.number));
                    return self.0.note_platform_outcome(delivery, None, handed_over_at);
                }
            }
        }
    }
}
