//! Which channels have something to do: read until the store answers, because nobody else would wake them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Fence, WriterMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildsKey, WriterKey};
use crate::actors::runtime::context::ActorContext;
use crate::domain::id::Ward;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Pending, Reader};
use crate::journal::record::ChannelRecord;
use crate::ports::store::Store;

/// The pause after the first failure, doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The channels of a ward with something unsettled, armed or owed.
pub(super) async fn channels(context: &ActorContext, ward: Ward) -> Vec<ChannelRecord> {
    let mut channels = Vec::new();
    of_wards(&*context.store, vec![ward], |_, pending| channels = pending.channels).await;
    channels
}

/// Hands over of each ward which of its channels have something to do. A ward that cannot be read holds up no other: it is tried again
/// after them, until it can be.
pub(super) async fn of_wards(store: &dyn Store, wards: Vec<Ward>, mut take: impl FnMut(Ward, Pending)) {
    let mut pause = FIRST_PAUSE;
    let mut left = wards;
    loop {
        let mut unread = Vec::new();
        let mut why = None;
        for ward in left {
            match Reader::new(store).pending(ward).await {
                Ok(pending) => take(ward, pending),
                Err(error) => {
                    unread.push(ward);
                    why.get_or_insert(error);
                }
            }
        }
        let Some(error) = why else {
            if pause > FIRST_PAUSE {
                tracing::info!("it can be read again which channels have something to do");
            }
            return;
        };
        if pause == FIRST_PAUSE {
            let wards: Vec<_> = unread.iter().map(|ward| ward.0).collect();
            tracing::error!(?wards, %error, "it cannot be read which channels have something to do; it is tried again and again");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        left = unread;
    }
}

/// Tells of channels that had something to do, of which nobody can say any more whose they are.
pub(super) fn tell_nameless(ward: Ward, pending: &Pending) {
    for no in &pending.nameless {
        tracing::error!(
            ward = ward.0,
            channel = no.0,
            "a channel had something to do, and the record of whose it is is lost or damaged: it is passed over until it is used again; \
             restore a backup, or find the name again with `tertulia history compact --accept-loss`"
        );
    }
}

/// The writer or the switchboard was replaced. What was on its way may have been stored without anybody being told: channels that have
/// something to do look at their record again, or are woken.
pub(super) fn look_again(context: ActorContext) {
    tokio::spawn(async move {
        let memberships = context.memberships.all();
        let actor_keys = memberships.into_iter().map(|(channel, membership)| ChannelKey::new(&membership.guild, &channel));
        let one_of_each_ward: BTreeMap<Ward, ChannelKey> =
            actor_keys.map(|channel_key| (channel_key.ward(), channel_key)).collect();
        let wards = one_of_each_ward.keys().copied().collect();
        for channel_key in one_of_each_ward.into_values() {
            let (reply, settled) = Reply::awaited();
            if let Some(writer) = context.directory.find(&WriterKey()) {
                // By taking the ward for this, the new writer settles what the old one left. One that is gone as well is replaced, too.
                let _ = writer.cast(WriterMessage::Fence(Fence { channel_key, reply }));
            }
            if !matches!(settled.await, Ok(Ok(_))) {
                return;
            }
        }
        let look = |record: ChannelRecord| {
            if let Some(channel) = context.directory.find(&ChannelActorKey(record.channel.clone())) {
                // One that is gone by now reads its record when it is back.
                let _ = channel.cast(ChannelMessage::WriterReplaced);
            } else if let Some(guilds) = context.directory.find(&GuildsKey()) {
                // A supervisor that is gone opens what is pending when it is back.
                let _ = guilds.cast(GuildsMessage::Open(record.guild, Some(record.channel)));
            }
        };
        of_wards(&*context.store, wards, |_, pending| pending.channels.into_iter().for_each(look)).await;
    });
}

#[cfg(test)]
mod tests;
