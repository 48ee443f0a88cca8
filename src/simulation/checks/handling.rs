//! A running channel handles what is on record, and soon.

use std::time::Duration;

use super::super::life::Life;
use super::super::stage::lock;
use super::super::store::Committed;
use super::channel_key_of;
use crate::actors::writer::requests::look;
use crate::domain::id::Seq;

/// The interval between two checks.
const EVERY: Duration = Duration::from_secs(20);
/// An event is handled within this time after it was journaled, or after the last disturbance if that was later.
const SOON: Duration = Duration::from_secs(45);

/// Checks, as long as the process lives, whether an event is on record and not handled.
pub(in super::super) fn watch(life: Life) {
    tokio::spawn(async move {
        loop {
            life.props.stage.pass(EVERY).await;
            for guild in life.backend.maintenance.quarantine().await.map(|quarantine| quarantine.guilds).unwrap_or_default() {
                life.props.stage.note_quarantine(guild.id.as_str(), guild.until.0);
            }
            for room in 0..life.props.stage.plan.rooms.len() {
                check(&life, room).await;
            }
        }
    });
}

async fn check(life: &Life, room: usize) {
    let stage = &life.props.stage;
    let (channel_key, now) = (channel_key_of(&life.props, room), stage.now());
    let is_fresh = stage.notes().disturbed.last().is_some_and(|at| now.saturating_sub(*at) < SOON);
    if is_fresh
        || stage.plan.is_poisoned(channel_key.guild.as_str())
        || stage.plan.slow.is_some()
        || lock(&life.props.people.deleted).contains(&room)
    {
        return;
    }
    let newest = newest_inbound(life, room, now.saturating_sub(SOON));
    let handled = look(&life.context, &channel_key.channel).await.map(|look| look.conversation.handled());
    // A channel that is still reading its record has handled nothing yet.
    if let Some(handled) = handled.filter(|handled| *handled != Seq::NONE && *handled < newest) {
        stage.violate(format!("{channel_key}: {newest} is on record for {} s and more, handled is {handled}", SOON.as_secs()));
    }
}

fn newest_inbound(life: &Life, room: usize, until: Duration) -> Seq {
    let channel_key = channel_key_of(&life.props, room);
    let committed = lock(&life.props.store.committed);
    let is_old = |entry: &&Committed| entry.channel_key == channel_key && entry.at <= until && entry.recorded.event.is_inbound();
    committed.iter().rev().find(is_old).map_or(Seq::NONE, |entry| entry.recorded.seq)
}
