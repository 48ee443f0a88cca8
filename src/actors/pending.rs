//! Which channels have something to do: read until the store answers, because nobody else would wake them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::channel::ChannelMessage;
use super::guilds::GuildsMessage;
use super::kit::Kit;
use super::places::{ChannelPlace, GuildsPlace, ScribePlace};
use super::scribe::{Fence, Reply, ScribeMessage};
use crate::domain::id::Ward;
use crate::journal::place::Place;
use crate::journal::reader::Reader;
use crate::journal::record::ChannelRecord;

/// The pause after the first failure, doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The channels of a ward with something unsettled, armed or owed.
pub(super) async fn channels(kit: &Kit, ward: Ward) -> Vec<ChannelRecord> {
    let mut pause = FIRST_PAUSE;
    loop {
        match Reader::new(&*kit.store).pending(ward).await {
            Ok(pending) => {
                if pause > FIRST_PAUSE {
                    tracing::info!(ward = ward.0, "it can be read again which channels have something to do");
                }
                return pending.into_iter().map(|(channel, _)| channel).collect();
            }
            Err(error) if pause == FIRST_PAUSE => {
                tracing::error!(ward = ward.0, %error, "it cannot be read which channels have something to do; it is tried again and again");
            }
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The scribe or the switchboard was replaced. What was on its way may have been stored without anybody being told: channels that have
/// something to do look at their record again, or are woken.
pub(super) fn look_again(kit: Kit) {
    tokio::spawn(async move {
        let residences = kit.residents.all();
        let places = residences.into_iter().map(|(channel, residence)| Place::new(&residence.guild, &channel));
        let one_of_each_ward: BTreeMap<Ward, Place> = places.map(|place| (place.ward(), place)).collect();
        for (ward, place) in one_of_each_ward {
            let (reply, settled) = Reply::awaited();
            if let Some(scribe) = kit.directory.find(&ScribePlace()) {
                // By taking the ward for this, the new scribe settles what the old one left. One that is gone as well is replaced, too.
                let _ = scribe.cast(ScribeMessage::Fence(Fence { place, reply }));
            }
            if !matches!(settled.await, Ok(Ok(_))) {
                return;
            }
            for record in channels(&kit, ward).await {
                if let Some(channel) = kit.directory.find(&ChannelPlace(record.channel.clone())) {
                    // One that is gone by now reads its record when it is back.
                    let _ = channel.cast(ChannelMessage::LookAgain);
                } else if let Some(guilds) = kit.directory.find(&GuildsPlace()) {
                    // A supervisor that is gone opens what is pending when it is back.
                    let _ = guilds.cast(GuildsMessage::Open(record.guild, Some(record.channel)));
                }
            }
        }
    });
}
