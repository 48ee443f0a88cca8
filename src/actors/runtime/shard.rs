//! Keeps one connection to a platform up. A task runs the connection, and ends with this actor, however the actor ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::actors::messages::platforms::PlatformsMessage;
use crate::actors::messages::shard::ShardMessage;
use crate::actors::runtime::actor_keys::ShardKey;
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::owned_task::OwnedTask;
use crate::actors::runtime::supervision::backoff::Backoff;
use crate::ports::gateway::{Disconnected, Gateway, Shard};

/// After a connection has been up for this long, the next pause is the first one again.
const STABLE_AFTER: Duration = Duration::from_secs(60);

pub struct Connection;

#[derive(Clone)]
pub struct Arguments {
    pub gateway: Arc<dyn Gateway>,
    pub shard: Shard,
    /// Receives [`PlatformsMessage::Blocked`].
    pub supervisor: ActorRef<PlatformsMessage>,
    /// Held while the connection runs, so that the task of a killed predecessor has ended before the next one begins.
    pub exclusive: Arc<Mutex<()>>,
    pub context: ActorContext,
}

pub struct State {
    arguments: Arguments,
    /// The task that runs the connection, and when it began.
    connection: Option<(OwnedTask, Instant)>,
    backoff: Backoff,
    _registration: Registered,
}

impl Actor for Connection {
    type Msg = ShardMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<ShardMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let key = ShardKey(arguments.gateway.name(), arguments.shard.number);
        let registration = arguments.context.register(&key, &myself);
        let connection = Some(begin(&arguments, &myself));
        Ok(State { arguments, connection, backoff: Backoff::default(), _registration: registration })
    }

    async fn handle(
        &self,
        myself: ActorRef<ShardMessage>,
        message: ShardMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ShardMessage::Connect => state.connection = Some(begin(&state.arguments, &myself)),
            ShardMessage::Ended(None) => return Err("the connection panicked".into()),
            ShardMessage::Ended(Some(Disconnected::Later { after, detail })) => state.pause(after, &detail, &myself),
            ShardMessage::Ended(Some(Disconnected::Never(reason))) => {
                let (platform, was_up) = (state.arguments.gateway.name(), state.end_connection());
                // A supervisor that is being restarted has killed this actor, and asks again when it starts.
                let _ =
                    state.arguments.supervisor.cast(PlatformsMessage::Blocked { platform, reason: reason.to_string(), was_up });
                myself.stop(None);
            }
        }
        Ok(())
    }
}

impl State {
    /// Returns whether the connection was up for a while.
    fn end_connection(&mut self) -> bool {
        self.connection.take().is_some_and(|(_, began)| began.elapsed() >= STABLE_AFTER)
    }

    fn pause(&mut self, asked_for: Option<Duration>, detail: &str, myself: &ActorRef<ShardMessage>) {
        if self.end_connection() {
            self.backoff = Backoff::default();
        }
        let after = self.backoff.pause(asked_for, self.arguments.context.rng.fraction());
        let Arguments { gateway, shard, .. } = &self.arguments;
        let (platform, shard, after_ms) = (gateway.name(), shard.number, u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        tracing::warn!(platform, shard, after_ms, detail, "a connection ended and is restarted");
        myself.send_after(after, || ShardMessage::Connect);
    }
}

fn begin(arguments: &Arguments, myself: &ActorRef<ShardMessage>) -> (OwnedTask, Instant) {
    let Arguments { gateway, shard, exclusive, .. } = arguments.clone();
    let myself = myself.clone();
    let task = tokio::spawn(async move {
        let _exclusive = exclusive.lock_owned().await;
        let outcome = AssertUnwindSafe(gateway.live(shard)).catch_unwind().await.ok();
        // If the actor has ended, the outcome is not needed.
        let _ = myself.cast(ShardMessage::Ended(outcome));
    });
    (task.into(), Instant::now())
}
