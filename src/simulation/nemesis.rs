//! Kills whoever the plan names, at any step of the scheduler.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ractor::ActorCell;

use super::faults::What;
use super::gateway::PLATFORM;
use super::plan::{Strike, Target};
use super::stage::{Ending, Stage};
use crate::actors::runtime::actor_keys::{
    ChannelActorKey, CompanionKey, GuildKey, GuildsKey, PlatformsKey, PoolKey, ShardKey, SwitchboardKey, TurnTakingManagerKey,
    WriterKey,
};
use crate::actors::runtime::directory::ActorKey;
use crate::ports::backend::Backend;
use crate::ports::backend::room::RoomId;

/// So often a storm tries: for longer than a guild's actors may die too often, twice.
const STORM: u32 = 250;

/// Whoever does not come back for so long is left alone: they wait for a few seconds otherwise.
const LEFT_ALONE: Duration = Duration::from_secs(15);

/// Strikes in a task of its own, so many steps of the scheduler from now.
pub(super) fn strike_after_steps(stage: Arc<Stage>, strike: Strike) {
    tokio::spawn(async move {
        for _ in 0..strike.steps {
            step().await;
        }
        if !stage.is_calm() && !stage.is_dead() {
            deal(&stage, &strike.target).await;
        }
    });
}

/// Lets everybody else who can run do so once.
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

async fn deal(stage: &Arc<Stage>, target: &Target) {
    let plan = &stage.plan;
    let channel = |room: usize| RoomId::parse(&plan.rooms[room].id).expect("rooms have plain names").channel();
    let guild = |guild: usize| plan.guilds[guild].id.as_str().into();
    match target {
        Target::Process => stage.end(Ending::Crashed("killed".into())),
        Target::Channel(room) => fell(stage, "channel", &ChannelActorKey(channel(*room))),
        Target::Companion(room, which) => {
            let home = &plan.rooms[*room];
            let companion = home.companions[which % home.companions.len()];
            fell(stage, "companion", &CompanionKey(guild(home.guild), companion.into()));
        }
        Target::Guild(which) => fell(stage, "guild", &GuildKey(guild(*which))),
        Target::Connections => fell(stage, "connections", &PlatformsKey()),
        Target::Connection(number) => fell(stage, "connection", &ShardKey(PLATFORM, *number)),
        Target::Root => {
            if let Some(present) = stage.present() {
                strike(stage, "root", &present.root);
            }
        }
        Target::StormOnConnections => storm_on_connections(stage).await,
        Target::Guilds => fell(stage, "guilds", &GuildsKey()),
        Target::Writer => fell(stage, "scribe", &WriterKey()),
        Target::Pool => fell(stage, "pool", &PoolKey()),
        Target::Switchboard => fell(stage, "switchboard", &SwitchboardKey()),
        Target::Manager(room) => fell(stage, "manager", &TurnTakingManagerKey(channel(*room))),
        Target::Making(room) => {
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
            storm(stage, || fell(stage, "channel", &key)).await;
        }
        Target::StormOnCompanion(room, which) => {
            let home = &plan.rooms[*room];
            let key = CompanionKey(guild(home.guild), home.companions[which % home.companions.len()].into());
            stage.reach("storm on a companion");
            storm(stage, || fell(stage, "companion", &key)).await;
        }
    }
}

/// Kills somebody as often as it comes back, until its guild is kept away; in every other world an operator releases that.
async fn storm(stage: &Arc<Stage>, kill: impl Fn()) {
    stage.reach("storm");
    for _ in 0..STORM {
        kill();
        tokio::time::sleep(Duration::from_millis(700)).await;
        let Some(present) = stage.present().filter(|_| !stage.is_calm() && !stage.is_dead()) else { return };
        let Ok(quarantine) = present.backend.quarantine().await else { continue };
        if !quarantine.guilds.is_empty() {
            stage.reach("guild in quarantine");
            for guild in quarantine.guilds.iter().filter(|_| stage.plan.seed.is_multiple_of(2)) {
                stage.reach("guild released by an operator");
                stage.disturb();
                if present.backend.release(guild.id.as_str()).await.is_ok() {
                    stage.is_released(guild.id.as_str());
                }
            }
            return;
        }
    }
}

/// Kills who supervises the connections as often as it comes back, until it is left alone.
async fn storm_on_connections(stage: &Arc<Stage>) {
    stage.reach("storm on the connections");
    let mut gone_since = stage.now();
    while stage.now() - gone_since < LEFT_ALONE {
        if stage.present().is_some_and(|present| present.directory.find(&PlatformsKey()).is_some()) {
            fell(stage, "connections", &PlatformsKey());
            gone_since = stage.now();
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        if stage.is_calm() || stage.is_dead() {
            return;
        }
    }
    stage.reach("connections left alone");
}

fn fell<P: ActorKey>(stage: &Arc<Stage>, sort: &'static str, key: &P) {
    if let Some(actor) = stage.present().and_then(|present| present.directory.find(key)) {
        strike(stage, sort, &actor.get_cell());
    }
}

fn strike(stage: &Arc<Stage>, sort: &'static str, actor: &ActorCell) {
    stage.tell(format!("killed: {sort}"));
    stage.reach(match sort {
        "channel" => "channel killed",
        "companion" => "companion killed",
        "guild" => "guild killed",
        "guilds" => "guilds killed",
        "scribe" => "writer killed",
        "pool" => "pool killed",
        "switchboard" => "switchboard killed",
        "manager" => "manager killed",
        "connections" => "connections killed",
        "connection" => "connection killed",
        "root" => "root killed",
        _ => "reply or delivery killed",
    });
    // Whatever becomes of the connections, nobody else notices.
    if !matches!(sort, "connections" | "connection") {
        stage.disturb();
        stage.notes().killed.insert((stage.life(), sort));
        stage.note_fault(What::Killed(sort));
    }
    // Whoever was begun anew just now may have been seen by nobody.
    if let Some(present) = stage.present() {
        present.store.ends.look(stage);
    }
    kill_tree(actor);
}

/// In the order of ids: the runtime takes the children of a dead actor along in any order.
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
