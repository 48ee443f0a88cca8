//! Kills the actors that the plan names, at any step of the scheduler.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ractor::ActorCell;

use super::faults::FaultKind;
use super::gateway::PLATFORM;
use super::plan::{Strike, Target};
use super::stage::{Ending, Stage};
use crate::actors::runtime::actor_keys::{
    ChannelActorKey, CompanionKey, GuildKey, GuildsKey, PlatformsKey, PoolKey, ShardKey, SwitchboardKey, TurnTakingManagerKey,
    WriterKey,
};
use crate::actors::runtime::directory::ActorKey;
use crate::ports::backend::room::RoomId;

/// The number of attempts of a storm: enough for a guild to exceed its restart limit twice.
const STORM: u32 = 250;

/// An actor that is missing for this long is paused. Otherwise it is missing for a few seconds.
const LEFT_ALONE: Duration = Duration::from_secs(15);

/// Strikes in a task of its own, after this number of steps of the scheduler.
pub(super) fn strike_after_steps(stage: Arc<Stage>, strike: Strike) {
    tokio::spawn(async move {
        for _ in 0..strike.steps {
            step().await;
        }
        if !stage.is_calm() && !stage.is_dead() {
            strike_target(&stage, &strike.target).await;
        }
    });
}

/// Lets every other task that can run do so once.
async fn step() {
    let mut has_waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn strike_target(stage: &Arc<Stage>, target: &Target) {
    let plan = &stage.plan;
    let channel = |room: usize| RoomId::parse(&plan.rooms[room].id).expect("a room name is valid").channel();
    let guild = |guild: usize| plan.guilds[guild].id.as_str().into();
    match target {
        Target::Process => stage.end(Ending::Crashed("killed".into())),
        Target::Channel(room) => kill_actor(stage, "channel", &ChannelActorKey(channel(*room))),
        Target::Companion(room, which) => {
            let home = &plan.rooms[*room];
            let companion = home.companions[which % home.companions.len()];
            kill_actor(stage, "companion", &CompanionKey(guild(home.guild), companion.into()));
        }
        Target::Guild(which) => kill_actor(stage, "guild", &GuildKey(guild(*which))),
        Target::Connections => kill_actor(stage, "connections", &PlatformsKey()),
        Target::Connection(number) => kill_actor(stage, "connection", &ShardKey(PLATFORM, *number)),
        Target::Root => {
            if let Some(present) = stage.present() {
                strike(stage, "root", &present.root);
            }
        }
        Target::StormOnConnections => storm_on_connections(stage).await,
        Target::Guilds => kill_actor(stage, "guilds", &GuildsKey()),
        Target::Writer => kill_actor(stage, "writer", &WriterKey()),
        Target::Pool => kill_actor(stage, "pool", &PoolKey()),
        Target::Switchboard => kill_actor(stage, "switchboard", &SwitchboardKey()),
        Target::Manager(room) => kill_actor(stage, "manager", &TurnTakingManagerKey(channel(*room))),
        Target::ReplyOrDelivery(room) => {
            let Some(present) = stage.present() else { return };
            let manager = present.directory.find(&TurnTakingManagerKey(channel(*room))).map(|manager| manager.get_id());
            let Some(room) = present.directory.find(&ChannelActorKey(channel(*room))) else { return };
            let making = children(&room.get_cell()).into_iter().filter(|child| Some(child.get_id()) != manager);
            for child in making.collect::<Vec<_>>() {
                strike(stage, "reply or delivery", &child);
            }
        }
        Target::Storm(room) => {
            let key = ChannelActorKey(channel(*room));
            storm(stage, || kill_actor(stage, "channel", &key)).await;
        }
        Target::StormOnCompanion(room, which) => {
            let home = &plan.rooms[*room];
            let key = CompanionKey(guild(home.guild), home.companions[which % home.companions.len()].into());
            stage.reach("storm on a companion");
            storm(stage, || kill_actor(stage, "companion", &key)).await;
        }
    }
}

/// Kills an actor as often as it returns, until its guild is quarantined. For every second seed an operator releases the guild.
async fn storm(stage: &Arc<Stage>, kill: impl Fn()) {
    stage.reach("storm");
    for _ in 0..STORM {
        kill();
        tokio::time::sleep(Duration::from_millis(700)).await;
        let Some(present) = stage.present().filter(|_| !stage.is_calm() && !stage.is_dead()) else { return };
        let Ok(quarantine) = present.backend.maintenance.quarantine().await else { continue };
        if !quarantine.guilds.is_empty() {
            stage.reach("guild in quarantine");
            for guild in quarantine.guilds.iter().filter(|_| !stage.plan.seed.is_multiple_of(2)) {
                stage.reach("guild released by an operator");
                stage.disturb();
                if present.backend.maintenance.release(guild.id.as_str()).await.is_ok() {
                    stage.note_release(guild.id.as_str());
                }
            }
            return;
        }
    }
}

/// Kills the supervisor of the connections as often as it returns, until it is paused.
async fn storm_on_connections(stage: &Arc<Stage>) {
    stage.reach("storm on the connections");
    let mut gone_since = stage.now();
    while stage.now() - gone_since < LEFT_ALONE {
        if stage.present().is_some_and(|present| present.directory.find(&PlatformsKey()).is_some()) {
            kill_actor(stage, "connections", &PlatformsKey());
            gone_since = stage.now();
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        if stage.is_calm() || stage.is_dead() {
            return;
        }
    }
    stage.reach("connections paused");
}

fn kill_actor<P: ActorKey>(stage: &Arc<Stage>, sort: &'static str, key: &P) {
    if let Some(actor) = stage.present().and_then(|present| present.directory.find(key)) {
        strike(stage, sort, &actor.get_cell());
    }
}

fn strike(stage: &Arc<Stage>, sort: &'static str, actor: &ActorCell) {
    stage.log(format!("killed: {sort}"));
    stage.reach(match sort {
        "channel" => "channel killed",
        "companion" => "companion killed",
        "guild" => "guild killed",
        "guilds" => "guilds killed",
        "writer" => "writer killed",
        "pool" => "pool killed",
        "switchboard" => "switchboard killed",
        "manager" => "manager killed",
        "connections" => "connections killed",
        "connection" => "connection killed",
        "root" => "root killed",
        _ => "reply or delivery killed",
    });
    // Whatever happens to the connections, no other part is affected.
    if !matches!(sort, "connections" | "connection") {
        stage.disturb();
        stage.notes().killed.insert((stage.life(), sort));
        stage.note_fault(FaultKind::Killed(sort));
    }
    // An actor that restarted just now may not have been seen yet.
    if let Some(present) = stage.present() {
        present.store.ends.watch_new(stage);
    }
    kill_tree(actor);
}

/// Kills an actor after its descendants, in the order of their ids. The runtime would end the children of a dead actor in any order.
fn kill_tree(actor: &ActorCell) {
    children(actor).iter().for_each(kill_tree);
    actor.kill();
}

/// An actor's children, oldest first.
pub(super) fn children(actor: &ActorCell) -> Vec<ActorCell> {
    let mut children = actor.get_children();
    children.sort_by_key(ActorCell::get_id);
    children
}
