//! What the records that are left of a damaged store tell of those that are lost: names and numbers of channels, and who said what.

use std::collections::BTreeMap;

use super::key;
use super::place::Place;
use super::record::{ChannelRecord, decode, decode_event, encode};
use crate::domain::event::Event;
use crate::domain::id::{PersonId, Ward};
use crate::domain::message::Role;
use crate::ports::store::Value;
use crate::ports::store::keeper::Complete;
use crate::ports::store::key::{ChannelNo, Key, Kind};

/// What was read of a store.
#[derive(Debug, Default)]
pub struct Salvaged {
    channels: BTreeMap<(Ward, ChannelNo), ChannelRecord>,
    /// One more than the greatest number of a channel that anything belongs to, by ward.
    next: BTreeMap<Ward, u32>,
}

impl Salvaged {
    fn count(&mut self, ward: Ward, channel: ChannelNo) {
        let next = self.next.entry(ward).or_default();
        *next = (*next).max(channel.0.saturating_add(1));
    }
}

impl Complete for Salvaged {
    fn note(&mut self, key: &Key, value: &[u8]) {
        let [ward, kind, ..] = *key.as_bytes() else { return };
        let ward = Ward(ward);
        let belongs = [Kind::Journal, Kind::Head, Kind::Snapshot, Kind::Tombstone, Kind::ChannelOf];
        let own = belongs.iter().any(|known| *known as u8 == kind).then(|| key::channel_in(key)).flatten();
        if let Some(channel) = own {
            self.count(ward, channel);
        }
        if kind == Kind::ChannelOf as u8
            && let (Some(channel), Ok(record)) = (own, decode(key, value))
        {
            self.channels.insert((ward, channel), record);
        } else if kind == Kind::ChannelName as u8
            && let (Some(place), Ok(number)) = (key::named_in(key), decode(key, value).map(ChannelNo))
        {
            self.count(ward, number);
            let Place { guild, channel } = place;
            self.channels.entry((ward, number)).or_insert(ChannelRecord { guild, channel });
        }
    }

    fn lacking(&self) -> Vec<(Key, Value)> {
        let names = self.channels.iter().flat_map(|((ward, number), record)| {
            let place = Place::new(&record.guild, &record.channel);
            [(key::channel_of(*ward, *number), encode(record)), (key::channel_name(&place), encode(&number.0))]
        });
        // A number that stands for a channel already must never be given again.
        let next = self.next.iter().map(|(ward, next)| (key::next_channel(*ward), encode(next)));
        names.chain(next).collect()
    }

    fn follows(&self, key: &Key, value: &[u8]) -> Option<(Key, Value)> {
        let [ward, kind, ..] = *key.as_bytes() else { return None };
        if kind != Kind::Journal as u8 {
            return None;
        }
        let channel = key::channel_in(key)?;
        let recorded = decode_event(key, value).ok()?;
        let Event::Said { message, .. } = recorded.event else { return None };
        if message.from.role == Role::Companion || message.from.id.is_empty() {
            return None;
        }
        let guild = &self.channels.get(&(Ward(ward), channel))?.guild;
        Some((key::person(guild, &PersonId::from(&*message.from.id), channel, recorded.seq), encode(&())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::Recorded;
    use crate::domain::id::{ChannelId, GuildId, Seq};
    use crate::domain::message::{Address, Author, Message, Modality};
    use crate::domain::moment::Moment;
    use crate::journal::record::encode_event;

    fn place() -> Place {
        Place::new(&GuildId::from("home"), &ChannelId::from("console:lobby"))
    }

    fn said(by: &str) -> Recorded {
        let from = Author { id: by.into(), name: by.into(), role: Role::Person };
        let (address, modality) = (Address::default(), Modality::Text);
        let message = Message { id: None, from, text: "zebra".into(), address, modality, lull_endpoint: false };
        let event = Event::Said { message, reply_to: None, reply: None, said_at: None };
        Recorded { seq: Seq(7), at: Moment::ZERO, handled: Seq(7), event }
    }

    fn salvaged(records: &[(Key, Value)]) -> Salvaged {
        let mut salvaged = Salvaged::default();
        records.iter().for_each(|(key, value)| salvaged.note(key, value));
        salvaged
    }

    #[test]
    fn each_half_of_a_channels_name_tells_the_other_and_its_number_is_never_given_again() {
        let (place, no) = (place(), ChannelNo(3));
        let record = ChannelRecord { guild: place.guild.clone(), channel: place.channel.clone() };
        let of = (key::channel_of(place.ward(), no), encode(&record));
        let name = (key::channel_name(&place), encode(&no.0));
        let next = (key::next_channel(place.ward()), encode(&4_u32));

        for left in [&of, &name] {
            let lacking = salvaged(std::slice::from_ref(left)).lacking();

            assert_eq!(lacking, [of.clone(), name.clone(), next.clone()]);
        }
    }

    #[test]
    fn who_said_a_message_can_be_found_again() {
        let (place, no) = (place(), ChannelNo(3));
        let salvaged = salvaged(&[(key::channel_name(&place), encode(&no.0))]);
        let event = |recorded: &Recorded| (Key::event(place.ward(), no, recorded.seq), encode_event(recorded));

        let (key, value) = event(&said("Ana"));
        let entry = salvaged.follows(&key, &value);

        assert_eq!(entry, Some((key::person(&place.guild, &"Ana".into(), no, Seq(7)), encode(&()))));
        // One whose words were taken out belongs to nobody.
        let (key, value) = event(&said(""));
        assert_eq!(salvaged.follows(&key, &value), None);
    }
}
