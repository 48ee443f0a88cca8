//! Reads which channels have pending work. It retries until the store answers, because nothing else would wake these channels.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildsKey, SwitchboardKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::fence;
use crate::domain::id::Ward;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Pending, Reader};
use crate::journal::record::ChannelRecord;
use crate::ports::store::Store;

/// The pause after the first failure, doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The channels of a ward that have unsettled messages, running timers or owed replies, and those in which a companion may start a conversation.
pub(super) async fn of_ward(context: &ActorContext, ward: Ward) -> Pending {
    let mut found = Pending::default();
    read_wards(&*context.store, vec![ward], |_, pending| found = pending).await;
    found
}

/// Lets the switchboard wake sleeping channels when a companion may start a conversation there.
pub(super) fn wake_when_due(context: &ActorContext, due: impl IntoIterator<Item = (ChannelRecord, Moment)>) {
    let Some(switchboard) = context.directory.find(&SwitchboardKey()) else { return };
    for (ChannelRecord { guild, channel }, due) in due {
        // If the switchboard is being restarted, this is read again.
        let _ = switchboard.cast(SwitchboardMessage::WakeAt(guild, channel, Some(due)));
    }
}

/// Passes the pending channels of each ward to `take`. A ward that cannot be read does not delay the others. It is retried after
/// them until it can be read.
pub(super) async fn read_wards(store: &dyn Store, wards: Vec<Ward>, mut take: impl FnMut(Ward, Pending)) {
    let mut pause = FIRST_PAUSE;
    let mut remaining = wards;
    loop {
        let mut failed = Vec::new();
        let mut first_error = None;
        let read = async |ward| (ward, Reader::new(store).pending(ward).await);
        let mut read = std::pin::pin!(stream::iter(remaining).map(read).buffer_unordered(store.reads_at_once()));
        while let Some((ward, outcome)) = read.next().await {
            match outcome {
                Ok(pending) => take(ward, pending),
                Err(error) => {
                    failed.push(ward);
                    first_error.get_or_insert(error);
                }
            }
        }
        failed.sort_unstable();
        let Some(error) = first_error else {
            if pause > FIRST_PAUSE {
                tracing::info!("the list of channels with pending work can be read again");
            }
            return;
        };
        if pause == FIRST_PAUSE {
            let wards: Vec<_> = failed.iter().map(|ward| ward.0).collect();
            tracing::error!(?wards, %error, "the list of channels with pending work cannot be read; the read is retried until it succeeds");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        remaining = failed;
    }
}

/// Logs channels that have pending work but whose name record is lost.
pub(super) fn log_nameless(ward: Ward, pending: &Pending) {
    for no in &pending.nameless {
        tracing::error!(
            ward = ward.0,
            channel = no.0,
            "a channel has pending work, but the record of its name is lost or damaged: it is skipped; restore a backup with \
             `tertulia history restore`"
        );
    }
}

/// Recovers after the writer or the switchboard was replaced. Requests in flight may have been stored without an answer. So running channels with
/// pending work check whether they missed events, and those that do not run are woken.
pub(super) fn recover(context: ActorContext) {
    tokio::spawn(async move {
        let memberships = context.memberships.all();
        let channel_keys = memberships.into_iter().map(|(channel, membership)| ChannelKey::new(&membership.guild, &channel));
        let one_of_each_ward: BTreeMap<Ward, ChannelKey> =
            channel_keys.map(|channel_key| (channel_key.ward(), channel_key)).collect();
        let wards = one_of_each_ward.keys().copied().collect();
        for channel_key in one_of_each_ward.into_values() {
            // Before the new writer answers this, it acquires the ward, which finishes or rejects the requests of the old one. If
            // the new one dies as well, it is replaced, and the recovery starts again.
            if fence(&context, &channel_key).await.is_err() {
                return;
            }
        }
        let recover_channel = |record: ChannelRecord| {
            if let Some(channel) = context.directory.find(&ChannelActorKey(record.channel.clone())) {
                // A channel that has ended by now reads its journal when it starts.
                let _ = channel.cast(ChannelMessage::WriterReplaced);
            } else if let Some(guilds) = context.directory.find(&GuildsKey()) {
                // A supervisor that is being restarted opens pending channels when it starts.
                let _ = guilds.cast(GuildsMessage::Open(record.guild, Some(record.channel)));
            }
        };
        let recover_all = |_, pending: Pending| {
            pending.channels.into_iter().for_each(recover_channel);
            wake_when_due(&context, pending.due);
        };
        read_wards(&*context.store, wards, recover_all).await;
    });
}

#[cfg(test)]
mod tests;
