//! The platform's gateway: what people say there is told over a few connections, which get lost, come back, and tell a stretch of it twice.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::sync::Notify;

use super::dice::Dice;
use super::life::Props;
use super::plan::{Beat, Plan};
use super::stage::{Stage, lock};
use crate::actors::runtime::actor_keys::ShardKey;
use crate::ports::gateway::{Command, Condition, Disconnected, Gateway, Shard, Unsent};
use crate::ports::inbound_events::{Acceptance, InboundError, InboundEvents};

/// What the platform is called, as its rooms are: `sim:3`.
pub(super) const PLATFORM: &str = "sim";

/// The platform's side of its connections, and what a process notes of them: it outlives the process.
pub(super) struct Wire {
    dice: Mutex<Dice>,
    weather: Weather,
    lines: Vec<Mutex<Line>>,
    /// Something was said, by room.
    news: Vec<Notify>,
}

/// How bad the connections are.
struct Weather {
    /// For how long one lasts at most; none: until it is ended.
    lasts_millis: Option<u64>,
    /// How likely it is not made.
    refused: f64,
    /// How likely the platform does not say how many there are.
    uncounted: f64,
    /// How likely the life of a lost one panics.
    panics: f64,
    /// How often it is noted what was taken.
    noted_every: Duration,
}

/// What one connection tells, and how far that was taken.
#[derive(Default)]
struct Line {
    /// In the order in which it was said.
    told: Vec<Told>,
    /// Up to which everything was taken, as it was noted: the next process goes on from there.
    noted: usize,
    noted_at: Duration,
    /// The same as this process knows it, and what was taken beyond.
    reached: usize,
    taken: BTreeSet<usize>,
    /// Of which process that is.
    of_life: u64,
    /// How many live it at the moment.
    lives: u32,
}

/// Something that a connection tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Which message.
    pub(super) number: usize,
    /// Once more, with other words.
    pub(super) is_again: bool,
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
            news: plan.rooms.iter().map(|_| Notify::new()).collect(),
        }
    }

    pub(super) fn shards(&self) -> NonZeroU32 {
        u32::try_from(self.lines.len()).ok().and_then(NonZeroU32::new).expect("one connection or more")
    }

    /// Over which connection it is told what goes on in a room.
    fn line_of(&self, plan: &Plan, room: usize) -> usize {
        plan.rooms[room].guild % self.lines.len()
    }

    /// Somebody says something, or the same once more.
    pub(super) fn tell(&self, plan: &Plan, room: usize, told: Told) {
        lock(&self.lines[self.line_of(plan, room)]).told.push(told);
        self.news[room].notify_one();
    }

    /// What was told over each connection.
    pub(super) fn told(&self) -> Vec<Vec<Told>> {
        self.lines.iter().map(|line| lock(line).told.clone()).collect()
    }

    /// Whether this process has every connection, and has taken everything that they told.
    pub(super) fn is_all_taken(&self, life: u64) -> bool {
        let is_taken = |line: &Line| line.lives > 0 && line.of_life == life && line.reached == line.told.len();
        self.lines.iter().all(|line| is_taken(&lock(line)))
    }

    /// How many live each connection.
    pub(super) fn lives(&self) -> Vec<u32> {
        self.lines.iter().map(|line| lock(line).lives).collect()
    }

    fn rolls<T>(&self, roll: impl FnOnce(&mut Dice) -> T) -> T {
        roll(&mut lock(&self.dice))
    }
}

impl Line {
    /// A connection goes on where everything was taken: as this process knows it, or else as it was noted.
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

/// The gateway as a process has it.
pub(super) struct SimGateway(pub(super) Arc<Props>);

/// Somebody lives a connection.
struct Lives<'a>(&'a Mutex<Line>);

impl Drop for Lives<'_> {
    fn drop(&mut self) {
        lock(self.0).lives -= 1;
    }
}

#[async_trait]
impl Gateway for SimGateway {
    fn name(&self) -> &'static str {
        PLATFORM
    }

    async fn shards(&self) -> Result<NonZeroU32, Disconnected> {
        self.stage().alive().await;
        self.stage().pass(self.wire().rolls(|dice| dice.millis(1, 800))).await;
        if self.goes_wrong(self.wire().weather.uncounted) {
            self.stage().reach("connections not counted");
            return Err(self.later());
        }
        Ok(self.wire().shards())
    }

    async fn live(&self, shard: Shard) -> Disconnected {
        let (stage, wire) = (self.stage(), self.wire());
        let _lives = self.enter(shard);
        loop {
            stage.pass(wire.rolls(|dice| dice.millis(1, 2_000))).await;
            if self.goes_wrong(wire.weather.refused) {
                stage.reach("connection refused");
                return self.later();
            }
            self.line(shard).resume(stage.life());
            tokio::select! {
                biased;
                () = self.hear_all(shard) => {}
                () = self.lost() => {}
            }
            stage.reach("connection lost");
            stage.tell(format!("connection {} is lost", shard.number));
            if self.goes_wrong(wire.weather.panics) {
                stage.reach("connection panics");
                std::panic::resume_unwind(Box::new("a connection panics, as the simulation wants it".to_owned()));
            }
            if wire.rolls(|dice| dice.chance(0.4)) {
                return self.later();
            }
        }
    }

    fn send(&self, _: Command) -> Result<(), Unsent> {
        Err(Unsent::NotConnected)
    }

    fn condition(&self) -> Condition {
        let ready = self.wire().lives().iter().all(|lives| *lives == 1);
        Condition { ready, detail: "as the simulation wants it".into(), blocks_readiness: false }
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

    fn enter(&self, shard: Shard) -> Lives<'_> {
        let lives = {
            let mut line = self.line(shard);
            line.lives += 1;
            line.lives
        };
        if lives > 1 {
            self.stage().violate(format!("connection {} is lived {lives} times at once", shard.number));
        }
        Lives(&self.wire().lines[shard.number as usize])
    }

    fn goes_wrong(&self, share: f64) -> bool {
        let goes_wrong = self.wire().rolls(|dice| dice.chance(share));
        goes_wrong && !self.stage().is_calm()
    }

    fn later(&self) -> Disconnected {
        let after = self.wire().rolls(|dice| dice.chance(0.5).then(|| dice.millis(1, 20_000)));
        Disconnected::Later { after, detail: "as the simulation wants it".into() }
    }

    /// Until the connection is lost, which it is no more once faults are over.
    async fn lost(&self) {
        let Some(most) = self.wire().weather.lasts_millis else { return std::future::pending().await };
        self.stage().pass(self.wire().rolls(|dice| dice.millis(1, most))).await;
        if self.stage().is_calm() {
            std::future::pending::<()>().await;
        }
    }

    /// Hears all rooms of a connection until it is lost.
    async fn hear_all(&self, shard: Shard) {
        let plan = &self.stage().plan;
        let its = (0..plan.rooms.len()).filter(|room| self.wire().line_of(plan, *room) == shard.number as usize);
        join_all(its.map(|room| self.hear(shard, room))).await;
        // There are connections over which nothing is said.
        std::future::pending().await
    }

    /// Hears a room, one thing after the other: what hangs there holds up no other room.
    async fn hear(&self, shard: Shard, room: usize) {
        let mut next = self.line(shard).reached;
        loop {
            let Some((which, told)) = self.told_next(shard, room, next) else {
                self.wire().news[room].notified().await;
                continue;
            };
            next = which + 1;
            self.stage().pass(self.wire().rolls(|dice| Duration::from_millis(*dice.pick(&[0, 0, 1, 5, 50])))).await;
            self.hand_over(shard, told).await;
            self.line(shard).take(which, self.stage().now(), self.wire().weather.noted_every);
        }
    }

    fn told_next(&self, shard: Shard, room: usize, from: usize) -> Option<(usize, Told)> {
        let said = lock(&self.0.people.said);
        let line = self.line(shard);
        let mut all = line.told.iter().copied().enumerate().skip(from);
        all.find(|(_, told)| said.get(&told.number).is_some_and(|said| said.say.room == room))
    }

    /// Hands it over until it is taken.
    async fn hand_over(&self, shard: Shard, told: Told) {
        let (stage, people) = (self.stage(), &self.0.people);
        let Some(said) = lock(&people.said).get(&told.number).cloned() else { return };
        let (channel_ref, inbound_message) = (self.0.channel_ref(said.say.room), self.0.inbound_message(&said, told.is_again));
        loop {
            stage.alive().await;
            let Some(present) = stage.present() else { return std::future::pending().await };
            if present.directory.find(&ShardKey(PLATFORM, shard.number)).is_none() {
                stage.violate(format!(
                    "message {} is heard over connection {}, which nobody keeps alive",
                    told.number, shard.number
                ));
            }
            stage.beat(Beat::Told);
            let handed_over_at = people.next();
            let is_ignored = self.0.is_ignored(&said.say);
            let outcome = present.inbound.said(&channel_ref, inbound_message.clone()).await;
            stage.alive().await;
            // They may want to be heard again meanwhile.
            match outcome {
                Ok(Acceptance::Ignored) if is_ignored => stage.reach("not heard: not to be"),
                Ok(Acceptance::New(seq)) if is_ignored && self.0.is_ignored(&said.say) => {
                    stage.violate(format!("message {} is {seq} by somebody who is not to be heard", told.number));
                }
                _ => {}
            }
            match outcome {
                Ok(Acceptance::New(seq) | Acceptance::Duplicate(seq)) => {
                    return self.0.heard_on_platform(told, Some(seq), handed_over_at);
                }
                Ok(Acceptance::Ignored) => return self.0.heard_on_platform(told, None, handed_over_at),
                Err(InboundError::Later { after, .. }) => {
                    stage.reach("said again with its id");
                    stage.pass(after).await;
                }
                Err(InboundError::Broken(detail)) => {
                    stage.violate(format!("message {} was refused: {detail}", told.number));
                    return self.0.heard_on_platform(told, None, handed_over_at);
                }
            }
        }
    }
}
