//! When channels and writers ended, for whatever reason: killed, panicked, ended with a parent, restarted, asleep.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ractor::{ActorCell, ActorId};

use super::stage::{Stage, lock};
use crate::actors::runtime::actor_keys::{ChannelActorKey, WriterKey};
use crate::domain::id::ChannelId;
use crate::ports::backend::room::RoomId;

/// The actors that were seen, and when each ended.
#[derive(Default)]
pub(super) struct Ends {
    /// The life in which actors were looked for last, and how many had been registered in it by then.
    looked: Mutex<(u64, u64)>,
    known: Mutex<BTreeSet<ActorId>>,
    ended: Arc<Mutex<Vec<End>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) at: Duration,
    pub(super) life: u64,
    pub(super) who: Watched,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    Writer,
    Channel(ChannelId),
}

impl Ends {
    /// Watches for the end of every running actor that was not seen before. A channel does nothing before it has read its journal,
    /// so a store that calls this on every read misses no actor that matters.
    pub(super) fn watch_new(&self, stage: &Arc<Stage>) {
        let Some(directory) = stage.directory() else { return };
        let now = (stage.life(), directory.registrations());
        if std::mem::replace(&mut *lock(&self.looked), now) == now {
            return;
        }
        if let Some(writer) = directory.find(&WriterKey()) {
            self.wait(stage, writer.get_cell(), Watched::Writer);
        }
        for room in &stage.plan.rooms {
            let Some(room) = RoomId::parse(&room.id) else { continue };
            if let Some(channel) = directory.find(&ChannelActorKey(room.channel())) {
                self.wait(stage, channel.get_cell(), Watched::Channel(room.channel()));
            }
        }
    }

    fn wait(&self, stage: &Arc<Stage>, actor: ActorCell, who: Watched) {
        if !lock(&self.known).insert(actor.get_id()) {
            return;
        }
        let (stage, ended) = (stage.clone(), self.ended.clone());
        tokio::spawn(async move {
            // A wait without a time limit cannot time out.
            let _ = actor.wait(None).await;
            lock(&ended).push(End { at: stage.now(), life: stage.life(), who });
        });
    }

    pub(super) fn all(&self) -> Vec<End> {
        lock(&self.ended).clone()
    }
}
