//! The keys under which a channel's records lie, one function for each kind.

use std::ops::Range;

use crate::domain::id::{ChannelId, GuildId, PersonId, Seq, Ticket, Ward};
use crate::domain::moment::Moment;
use crate::ports::store::key::{ChannelNo, Key, Kind};

use super::channel_key::ChannelKey;
use super::speakers::{after_stretch, stretch};

/// The conversation's state.
pub fn snapshot(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::Snapshot).channel(channel)
}

/// Present while something is unsettled, armed or owed in the channel.
pub fn pending(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::Pending).channel(channel)
}

/// The rolling summary.
pub fn summary(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::Summary).channel(channel)
}

/// The lowest number that the journal still owes: what is missing below it was deleted. Eight bytes, big-endian.
pub fn tombstone(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::Tombstone).channel(channel)
}

/// A reply owed.
pub fn outbox(ward: Ward, channel: ChannelNo, ticket: Ticket) -> Key {
    Key::new(ward, Kind::Outbox).channel(channel).number(ticket.0)
}

/// The number of the message with this platform id.
pub fn message_id(ward: Ward, channel: ChannelNo, id: &str) -> Key {
    Key::new(ward, Kind::MessageId).channel(channel).text(id)
}

/// That this person said something in the stretch that this event lies in. It ends in the [stretch](super::speakers)'s first number.
pub fn person(guild: &GuildId, person: &PersonId, channel: ChannelNo, seq: Seq) -> Key {
    said_by(guild, person).channel(channel).number(stretch(seq).0)
}

/// Where all keys lie that tell of a person in the stretch that this event lies in.
pub fn person_in(guild: &GuildId, person: &PersonId, channel: ChannelNo, seq: Seq) -> Range<Key> {
    let of = said_by(guild, person).channel(channel);
    of.clone().number(stretch(seq).0)..of.number(after_stretch(seq).0)
}

/// What all keys of a person in the index of a guild begin with.
pub fn said_by(guild: &GuildId, person: &PersonId) -> Key {
    all_persons(guild).text(person.as_str())
}

/// What all keys of the index of persons of a guild begin with.
pub fn all_persons(guild: &GuildId) -> Key {
    Key::new(Ward::of(guild), Kind::Person).text(guild.as_str())
}

/// The person in a key of the index of persons of a guild.
pub fn person_named_in(guild: &GuildId, key: &Key) -> Option<PersonId> {
    let named = key.as_bytes().strip_prefix(all_persons(guild).as_bytes())?;
    let end = named.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&named[..end]).ok().map(PersonId::from)
}

/// A message set aside.
pub fn dead_letter(ward: Ward, channel: ChannelNo, seq: Seq) -> Key {
    dead_letters(ward, channel).number(seq.0)
}

/// What all keys of [`dead_letter`] of a channel begin with.
pub fn dead_letters(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::DeadLetter).channel(channel)
}

/// The number that stands for a channel.
pub fn channel_name(channel_key: &ChannelKey) -> Key {
    Key::new(channel_key.ward(), Kind::ChannelName).text(channel_key.guild.as_str()).text(channel_key.channel.as_str())
}

/// The channel in a key of [`channel_name`].
pub fn named_in(key: &Key) -> Option<ChannelKey> {
    let (guild, channel) = two_texts(key)?;
    Some(ChannelKey::new(&guild.into(), &channel.into()))
}

/// The channel that a number stands for.
pub fn channel_of(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::ChannelOf).channel(channel)
}

/// The number that the ward's next new channel gets.
pub fn next_channel(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("next channel")
}

/// The ward in a key of [`next_channel`].
pub fn numbered_next(key: &Key) -> Option<Ward> {
    let [ward, ..] = *key.as_bytes() else { return None };
    (*key == next_channel(Ward(ward))).then_some(Ward(ward))
}

/// Present while a deleted channel is swept: everything below the number that it holds is gone, though some of it may still lie there.
pub fn sweep(ward: Ward, channel: ChannelNo) -> Key {
    sweeps(ward).channel(channel)
}

/// What all keys of [`sweep`] in a ward begin with.
pub fn sweeps(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("sweep")
}

/// Present until it was looked whether whoever said this event, whose words are taken out, has anything left in its stretch. It names nobody.
pub fn index_removal(ward: Ward, channel: ChannelNo, seq: Seq) -> Key {
    unlistings(ward).channel(channel).number(seq.0)
}

/// What all keys of [`index_removal`] in a ward begin with.
pub fn unlistings(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("unlisting")
}

/// The channel in a key of [`sweep`].
pub fn swept_in(key: &Key) -> Option<ChannelNo> {
    let [ward, ..] = *key.as_bytes() else { return None };
    key.as_bytes().strip_prefix(sweeps(Ward(ward)).as_bytes())?.try_into().ok().map(u32::from_be_bytes).map(ChannelNo)
}

/// The channel in a key of [`index_removal`].
pub fn unlisted_in(key: &Key) -> Option<ChannelNo> {
    let [ward, ..] = *key.as_bytes() else { return None };
    let named = key.as_bytes().strip_prefix(unlistings(Ward(ward)).as_bytes())?;
    (named.len() == 12).then(|| channel_before_number(key)).flatten()
}

/// That a server was started at this moment. Ward 0.
pub fn start(at: Moment) -> Key {
    Key::new(Ward(0), Kind::Meta).text("start").number(at.as_micros())
}

/// Something that a guild used. `number` tells apart what was used at one moment in one channel.
pub fn usage(guild: &GuildId, at: Moment, channel: ChannelNo, number: u64) -> Key {
    usage_from(guild, at).channel(channel).number(number)
}

/// The least key of what a guild used at this moment or later.
pub fn usage_from(guild: &GuildId, at: Moment) -> Key {
    used_by(guild).number(at.as_micros())
}

/// What all keys of a guild's usage begin with.
pub fn used_by(guild: &GuildId) -> Key {
    Key::new(Ward::of(guild), Kind::Usage).text(guild.as_str())
}

/// The least key of what any guild of a ward used.
pub fn all_usage(ward: Ward) -> Key {
    Key::new(ward, Kind::Usage)
}

/// Up to which moment nobody is named any more in what a guild used.
pub fn usage_kept_from(guild: &GuildId) -> Key {
    Key::new(Ward::of(guild), Kind::Meta).text("usage kept from").text(guild.as_str())
}

/// The guild in a key of something that it used.
pub fn guild_of_usage(key: &Key) -> Option<GuildId> {
    let named = key.as_bytes().get(2..)?;
    let end = named.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&named[..end]).ok().map(GuildId::from)
}

/// A room in the directory, which is the one index that spans guilds.
pub fn room(room: &ChannelId) -> Key {
    Key::new(Ward(0), Kind::Room).text(room.as_str())
}

/// The room in a key of [`room`].
pub fn room_in(key: &Key) -> Option<ChannelId> {
    let room = key.as_bytes().get(2..)?.strip_suffix(&[0])?;
    std::str::from_utf8(room).ok().map(ChannelId::from)
}

/// That a person is not to be heard in a guild.
pub fn opt_out(guild: &GuildId, person: &PersonId) -> Key {
    Key::new(Ward::of(guild), Kind::OptOut).text(guild.as_str()).text(person.as_str())
}

/// The guild and the person in a key of [`opt_out`].
pub fn opt_out_in(key: &Key) -> Option<(GuildId, PersonId)> {
    let (guild, person) = two_texts(key)?;
    Some((guild.into(), person.into()))
}

/// What a platform remembers under this name: of a guild, or, where none is named, of no guild. Zero bytes in a name are left out.
pub fn note(guild: Option<&GuildId>, name: &str) -> Key {
    notes(guild).text(name)
}

/// What the keys of notes begin with whose names begin so.
pub fn notes_beginning(guild: Option<&GuildId>, beginning: &str) -> Key {
    let whole = note(guild, beginning);
    // Without the zero byte that closes a name.
    Key::from_bytes(&whole.as_bytes()[..whole.as_bytes().len() - 1])
}

/// The name in the key of such a note.
pub fn name_of_note(guild: Option<&GuildId>, key: &Key) -> Option<String> {
    let named = key.as_bytes().strip_prefix(notes(guild).as_bytes())?.strip_suffix(&[0])?;
    std::str::from_utf8(named).ok().map(str::to_owned)
}

fn notes(guild: Option<&GuildId>) -> Key {
    let ward = guild.map_or(Ward(0), Ward::of);
    Key::new(ward, Kind::Session).text(guild.map_or("", GuildId::as_str))
}

/// The first two texts in the rest of a key.
fn two_texts(key: &Key) -> Option<(&str, &str)> {
    let mut texts = key.as_bytes().get(2..)?.split(|byte| *byte == 0).map(std::str::from_utf8);
    let (Some(Ok(first)), Some(Ok(second))) = (texts.next(), texts.next()) else { return None };
    Some((first, second))
}

/// The channel in a key whose rest begins with one.
pub fn channel_in(key: &Key) -> Option<ChannelNo> {
    key.as_bytes().get(2..6)?.try_into().ok().map(u32::from_be_bytes).map(ChannelNo)
}

/// The channel before the number at the end of a key.
pub fn channel_before_number(key: &Key) -> Option<ChannelNo> {
    let bytes = key.as_bytes();
    let end = bytes.len().checked_sub(8)?;
    bytes.get(end.checked_sub(4)?..end)?.try_into().ok().map(u32::from_be_bytes).map(ChannelNo)
}

/// The least key that is greater than this one.
pub fn successor(key: &Key) -> Key {
    let mut bytes = key.as_bytes().to_vec();
    bytes.push(0);
    Key::from_bytes(&bytes)
}
