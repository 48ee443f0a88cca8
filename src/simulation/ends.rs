//! When channels and writers ended, whatever ended them: killed, panicked, taken along, begun anew, asleep.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ractor::{ActorCell, ActorId};

use super::stage::{Stage, lock};
use crate::actors::runtime::actor_keys::{ChannelActorKey, WriterKey};
use crate::domain::id::ChannelId;
use crate::ports::backend::room::RoomId;

/// Who was there, and when it ended.
#[derive(Default)]
pub(super) struct Ends {
    known: Mutex<BTreeSet<ActorId>>,
    ended: Arc<Mutex<Vec<End>>>,
}

/// Somebody's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) at: Duration,
    pub(super) life: u64,
    pub(super) who: Who,
}

/// Whose end is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Writer,
    Channel(ChannelId),
}

impl Ends {
    /// Waits for the end of everybody who is there and was not seen before. No channel makes anything before it has read its record:
    /// whoever calls this whenever the store is read sees all that matter.
    pub(super) fn look(&self, stage: &Arc<Stage>) {
        let Some(present) = stage.present() else { return };
        if let Some(writer) = present.directory.find(&WriterKey()) {
            self.wait(stage, writer.get_cell(), Who::Writer);
        }
        for room in &stage.plan.rooms {
            let Some(room) = RoomId::parse(&room.id) else { continue };
            if let Some(channel) = present.directory.find(&ChannelActorKey(room.channel())) {
                self.wait(stage, channel.get_cell(), Who::Channel(room.channel()));
            }
        }
    }

    fn wait(&self, stage: &Arc<Stage>, actor: ActorCell, who: Who) {
        if !lock(&self.known).insert(actor.get_id()) {
            return;
        }
        let (stage, ended) = (stage.clone(), self.ended.clone());
        tokio::spawn(async move {
            // Without a limit there is none to pass.
            let _ = actor.wait(None).await;
            lock(&ended).push(End { at: stage.now(), life: stage.life(), who });
        });
    }

    pub(super) fn all(&self) -> Vec<End> {
        lock(&self.ended).clone()
    }
}
