//! One connection to a platform, kept alive: a task lives it, and ends with this actor, whichever way that ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::actors::messages::platforms::PlatformsMessage;
use crate::actors::messages::shard::ShardMessage;
use crate::actors::runtime::actor_keys::ShardKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Registration, Sort};
use crate::ports::gateway::{Disconnected, Gateway, Shard};
use crate::telemetry::instruments::kinds::Counted;

/// The pause before a connection is lived again that says no time of its own, doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause of our own.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that was lived for so long begins with the first pause anew.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

pub struct Connection;

#[derive(Clone)]
pub struct Arguments {
    pub gateway: Arc<dyn Gateway>,
    pub shard: Shard,
    /// Who is told when it has no use any more.
    pub supervisor: ActorRef<PlatformsMessage>,
    /// Held while it is lived: what is left of a life that was ended is over before the next one begins.
    pub alone: Arc<Mutex<()>>,
    pub context: ActorContext,
}

pub struct State {
    arguments: Arguments,
    life: Option<Life>,
    pauses: Pauses,
    _registration: Registration,
    _counted: Counted,
}

/// A task that ends when this is dropped.
struct Life {
    task: AbortHandle,
    began: Instant,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Pauses that double.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(super) const fn new() -> Self {
        Self { next: FIRST_PAUSE }
    }

    /// How long to wait: as was asked for, at least the first pause; or else the next pause of our own with up to half of it more
    /// (`fraction` is 0.0 to 1.0).
    pub(super) fn pause(&mut self, asked_for: Option<Duration>, fraction: f64) -> Duration {
        let own = self.next;
        self.next = (own * 2).min(LONGEST_PAUSE);
        match asked_for {
            Some(asked_for) => asked_for.max(FIRST_PAUSE),
            None => own + own.mul_f64(fraction.clamp(0.0, 1.0) / 2.0),
        }
    }
}

impl Actor for Connection {
    type Msg = ShardMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<ShardMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let place = ShardKey(arguments.gateway.name(), arguments.shard.number);
        let registration = arguments.context.directory.register(&place, &myself);
        let counted = arguments.context.recorder.instruments().actors.one([Sort::Shard.as_str()]);
        let life = Some(begin(&arguments, &myself));
        Ok(State { arguments, life, pauses: Pauses::new(), _registration: registration, _counted: counted })
    }

    async fn handle(
        &self,
        myself: ActorRef<ShardMessage>,
        message: ShardMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ShardMessage::Connect => state.life = Some(begin(&state.arguments, &myself)),
            ShardMessage::Ended(None) => return Err("the connection panicked".into()),
            ShardMessage::Ended(Some(Disconnected::Later { after, detail })) => state.pause(after, &detail, &myself),
            ShardMessage::Ended(Some(Disconnected::Never(reason))) => {
                let (platform, was_up) = (state.arguments.gateway.name(), state.end_life());
                // A supervisor that is gone takes this one along, and asks anew.
                let _ = state.arguments.supervisor.cast(PlatformsMessage::Blocked { platform, reason, was_up });
                myself.stop(None);
            }
        }
        Ok(())
    }
}

impl State {
    /// Whether it had lasted for a while.
    fn end_life(&mut self) -> bool {
        self.life.take().is_some_and(|life| life.began.elapsed() >= LONG_ENOUGH)
    }

    fn pause(&mut self, asked_for: Option<Duration>, detail: &str, myself: &ActorRef<ShardMessage>) {
        if self.end_life() {
            self.pauses = Pauses::new();
        }
        let after = self.pauses.pause(asked_for, self.arguments.context.rng.fraction());
        let Arguments { gateway, shard, .. } = &self.arguments;
        let (platform, shard, after_ms) = (gateway.name(), shard.number, u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        tracing::warn!(platform, shard, after_ms, detail, "a connection is over; it is made again");
        myself.send_after(after, || ShardMessage::Connect);
    }
}

fn begin(arguments: &Arguments, myself: &ActorRef<ShardMessage>) -> Life {
    let Arguments { gateway, shard, alone, .. } = arguments.clone();
    let myself = myself.clone();
    let task = tokio::spawn(async move {
        let _alone = alone.lock_owned().await;
        let outcome = AssertUnwindSafe(gateway.live(shard)).catch_unwind().await.ok();
        // An actor that is gone has nobody live for it.
        let _ = myself.cast(ShardMessage::Ended(outcome));
    });
    Life { task: task.abort_handle(), began: Instant::now() }
}
