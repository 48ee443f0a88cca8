//! The keys of records, one function for each kind.

use std::ops::Range;
use std::sync::Arc;

use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId, Seq, Ticket, Ward};
use crate::domain::moment::Moment;
use crate::ports::store::key::{ChannelNo, Key, Kind};

use super::channel_key::ChannelKey;
use super::speakers::{after_stretch, stretch};

/// The key of a channel's snapshot.
pub fn snapshot(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::Snapshot).channel(channel)
}

/// The key of the record that exists while the channel has unsettled messages, armed timers or owed replies, or while a companion
/// may start a conversation there later.
pub fn pending(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::Pending).channel(channel)
}

/// The key of a channel's rolling summary.
pub fn summary(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::Summary).channel(channel)
}

/// The key of a journal's low-water mark: events below that number were deleted or have expired. The value has eight bytes,
/// big-endian.
pub fn tombstone(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::Tombstone).channel(channel)
}

/// The key of an owed reply.
pub fn outbox(ward: Ward, channel: ChannelNo, ticket: Ticket) -> Key {
    Key::new(ward, Kind::Outbox).channel(channel).number(ticket.0)
}

/// The key of the index entry that maps a platform's message id to the number of the message.
pub fn message_id(ward: Ward, channel: ChannelNo, id: &str) -> Key {
    Key::new(ward, Kind::MessageId).channel(channel).text(id)
}

/// The platform's id in a key of [`message_id`].
pub fn message_id_in(key: &Key) -> Option<Arc<str>> {
    let id = key.as_bytes().get(6..)?.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(id).ok().map(Arc::from)
}

/// The key of the index entry of a message that quotes the platform's message `id`. The key begins with that of [`message_id`].
/// Its value is the number of the quoting message.
pub fn quotation(ward: Ward, channel: ChannelNo, id: &str, quoting: Seq) -> Key {
    message_id(ward, channel, id).number(quoting.0)
}

/// The index entry of a person with a message in the stretch that contains this event. The key ends in the first number of the
/// [stretch](super::speakers).
pub fn person(guild: &GuildId, person: &PersonId, channel: ChannelNo, seq: Seq) -> Key {
    person_entries(guild, person).channel(channel).number(stretch(seq).0)
}

/// The range of the index entries of a person in the stretch that contains this event.
pub fn person_in(guild: &GuildId, person: &PersonId, channel: ChannelNo, seq: Seq) -> Range<Key> {
    let prefix = person_entries(guild, person).channel(channel);
    prefix.clone().number(stretch(seq).0)..prefix.number(after_stretch(seq).0)
}

/// The prefix of a person's index entries in a guild.
pub fn person_entries(guild: &GuildId, person: &PersonId) -> Key {
    all_persons(guild).text(person.as_str())
}

/// The prefix of a guild's index of persons.
pub fn all_persons(guild: &GuildId) -> Key {
    Key::new(Ward::of(guild), Kind::Person).text(guild.as_str())
}

/// The person that a key of a guild's index of persons names.
pub fn person_named_in(guild: &GuildId, key: &Key) -> Option<PersonId> {
    let rest = key.as_bytes().strip_prefix(all_persons(guild).as_bytes())?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok().map(PersonId::from)
}

/// The key of a dead letter.
pub fn dead_letter(ward: Ward, channel: ChannelNo, seq: Seq) -> Key {
    dead_letters(ward, channel).number(seq.0)
}

/// The prefix of a channel's keys of [`dead_letter`].
pub fn dead_letters(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::DeadLetter).channel(channel)
}

/// The key of a channel's interned number.
pub fn channel_name(channel_key: &ChannelKey) -> Key {
    Key::new(channel_key.ward(), Kind::ChannelName).text(channel_key.guild.as_str()).text(channel_key.channel.as_str())
}

/// The channel that a key of [`channel_name`] names.
pub fn channel_key_in(key: &Key) -> Option<ChannelKey> {
    let (guild, channel) = two_texts(key)?;
    Some(ChannelKey::new(&guild.into(), &channel.into()))
}

/// The key of the record that maps a channel's number back to the channel.
pub fn channel_of(ward: Ward, channel: ChannelNo) -> Key {
    Key::new(ward, Kind::ChannelOf).channel(channel)
}

/// The key of the number for the ward's next new channel.
pub fn next_channel(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("next channel")
}

/// The ward of a key of [`next_channel`].
pub fn next_channel_in(key: &Key) -> Option<Ward> {
    let [ward, ..] = *key.as_bytes() else { return None };
    (*key == next_channel(Ward(ward))).then_some(Ward(ward))
}

/// The key of the mark that exists while a deleted channel is swept. All events below the number in its value are deleted,
/// although some of them may still be stored.
pub fn sweep(ward: Ward, channel: ChannelNo) -> Key {
    sweeps(ward).channel(channel)
}

/// The prefix of a ward's keys of [`sweep`].
pub fn sweeps(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("sweep")
}

/// The key of the mark that requests a check of the index after an event was redacted: does its author have other messages in
/// that stretch? The mark does not name the author. If the event still has its text, because the deletion was interrupted, it is
/// redacted first.
pub fn index_removal(ward: Ward, channel: ChannelNo, seq: Seq) -> Key {
    index_removals(ward).channel(channel).number(seq.0)
}

/// The prefix of a ward's keys of [`index_removal`].
pub fn index_removals(ward: Ward) -> Key {
    Key::new(ward, Kind::Meta).text("unlisting")
}

/// The channel of a key of [`sweep`].
pub fn sweep_in(key: &Key) -> Option<ChannelNo> {
    let [ward, ..] = *key.as_bytes() else { return None };
    key.as_bytes().strip_prefix(sweeps(Ward(ward)).as_bytes())?.try_into().ok().map(u32::from_be_bytes).map(ChannelNo)
}

/// The key of the record of a server's start at this moment. Ward 0.
pub fn start(at: Moment) -> Key {
    Key::new(Ward(0), Kind::Meta).text("start").number(at.as_micros())
}

/// The key of the last check of the machine's clock. Ward 0.
pub fn clock() -> Key {
    Key::new(Ward(0), Kind::Meta).text("clock")
}

/// The key of a usage record. `number` distinguishes records of one moment in one channel.
pub fn usage(guild: &GuildId, at: Moment, channel: ChannelNo, number: u64) -> Key {
    usage_from(guild, at).channel(channel).number(number)
}

/// The least key of a guild's usage at this moment or later.
pub fn usage_from(guild: &GuildId, at: Moment) -> Key {
    used_by(guild).number(at.as_micros())
}

/// The prefix of a guild's usage records.
pub fn used_by(guild: &GuildId) -> Key {
    Key::new(Ward::of(guild), Kind::Usage).text(guild.as_str())
}

/// The prefix of the usage records of all guilds of a ward.
pub fn all_usage(ward: Ward) -> Key {
    Key::new(ward, Kind::Usage)
}

/// The key of the moment up to which names were removed from a guild's usage.
pub fn usage_kept_from(guild: &GuildId) -> Key {
    Key::new(Ward::of(guild), Kind::Meta).text("usage kept from").text(guild.as_str())
}

/// The guild of a usage record's key.
pub fn guild_of_usage(key: &Key) -> Option<GuildId> {
    let rest = key.as_bytes().get(2..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok().map(GuildId::from)
}

/// The key of a room in the directory of rooms, the only index that spans guilds.
pub fn room(room: &ChannelId) -> Key {
    Key::new(Ward(0), Kind::Room).text(room.as_str())
}

/// The room that a key of [`room`] names.
pub fn room_in(key: &Key) -> Option<ChannelId> {
    let room = key.as_bytes().get(2..)?.strip_suffix(&[0])?;
    std::str::from_utf8(room).ok().map(ChannelId::from)
}

/// The key of a person's opt-out in a guild.
pub fn opt_out(guild: &GuildId, person: &PersonId) -> Key {
    Key::new(Ward::of(guild), Kind::OptOut).text(guild.as_str()).text(person.as_str())
}

/// The guild and the person that a key of [`opt_out`] names.
pub fn opt_out_in(key: &Key) -> Option<(GuildId, PersonId)> {
    let (guild, person) = two_texts(key)?;
    Some((guild.into(), person.into()))
}

/// The key of the time when a person in a guild last received the disclosure that companions are AI.
pub fn disclosure(guild: &GuildId, person: &PersonId) -> Key {
    Key::new(Ward::of(guild), Kind::Told).text(guild.as_str()).text(person.as_str())
}

/// The guild and the person that a key of [`disclosure`] names.
pub fn disclosure_in(key: &Key) -> Option<(GuildId, PersonId)> {
    opt_out_in(key)
}

/// The key of the index entry of a note.
pub fn noted(ward: Ward, channel: ChannelNo, seq: Seq) -> Key {
    Key::new(ward, Kind::Note).channel(channel).number(seq.0)
}

/// The prefix of the records of files of messages, from this message on. Those of older messages have smaller keys.
pub fn files_from(ward: Ward, channel: ChannelNo, message: Seq) -> Key {
    Key::new(ward, Kind::File).channel(channel).number(message.0)
}

/// The key of the record of a message's file.
pub fn file(ward: Ward, channel: ChannelNo, message: Seq, file: u64) -> Key {
    files_from(ward, channel, message).number(file)
}

/// The prefix of the parts of the files of messages, from this message on.
pub fn file_parts_from(ward: Ward, channel: ChannelNo, message: Seq) -> Key {
    Key::new(ward, Kind::FilePart).channel(channel).number(message.0)
}

/// The prefix of the parts of a message's file.
pub fn file_parts(ward: Ward, channel: ChannelNo, message: Seq, file: u64) -> Key {
    file_parts_from(ward, channel, message).number(file)
}

/// The message that a key of [`file()`] names.
pub fn message_of_file(key: &Key) -> Option<Seq> {
    key.as_bytes().get(6..14)?.try_into().ok().map(u64::from_be_bytes).map(Seq)
}

/// The key of a guild's decision whether notes are taken, or of a person's in that guild. The server's own has neither.
pub fn note_switch(guild: &GuildId, person: &PersonId) -> Key {
    Key::new(Ward::of(guild), Kind::NoteSwitch).text(guild.as_str()).text(person.as_str())
}

/// The key of the time zone that a person chose in a guild.
pub fn time_zone(guild: &GuildId, person: &PersonId) -> Key {
    note(Some(guild), &format!("timezone/{person}"))
}

/// The key of a persona's brief: a hash (128-bit FNV-1a) of the persona. Ward 0, because personas belong to no guild.
pub fn brief(persona: &str) -> Key {
    let hash = persona.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    briefs().number((hash >> 64) as u64).number(hash as u64)
}

/// The prefix of the keys of [`brief`].
pub fn briefs() -> Key {
    Key::new(Ward(0), Kind::Brief)
}

/// The key of a companion that is stored in the store. Ward 0, because companions, their pictures and their cards belong to no
/// guild.
pub fn companion(id: &CompanionId) -> Key {
    companions().text(id.as_str())
}

/// The prefix of the keys of [`companion`].
pub fn companions() -> Key {
    Key::new(Ward(0), Kind::Companion)
}

/// The key of a companion's picture.
pub fn picture(id: &CompanionId) -> Key {
    pictures().text(id.as_str())
}

/// The prefix of the keys of [`picture`].
pub fn pictures() -> Key {
    Key::new(Ward(0), Kind::Picture)
}

/// The key of the character card from which a companion was made.
pub fn card(id: &CompanionId) -> Key {
    Key::new(Ward(0), Kind::Card).text(id.as_str())
}

/// The key of an invitation. Ward 0, because a guest's cookie does not name a guild.
pub fn invitation(id: &str) -> Key {
    invitations().text(id)
}

/// The prefix of the keys of [`invitation`].
pub fn invitations() -> Key {
    Key::new(Ward(0), Kind::Invitation)
}

/// The id in a key of [`invitation`].
pub fn invitation_in(key: &Key) -> Option<Arc<str>> {
    let id = key.as_bytes().strip_prefix(invitations().as_bytes())?.strip_suffix(&[0])?;
    std::str::from_utf8(id).ok().map(Arc::from)
}

/// The companion that a key of [`companion`], [`picture`] or [`card`] names.
pub fn companion_in(key: &Key) -> Option<CompanionId> {
    let id = key.as_bytes().get(2..)?.strip_suffix(&[0])?;
    std::str::from_utf8(id).ok().map(CompanionId::from)
}

/// The key of a platform's note, of a guild or of no guild. Zero bytes in a name are left out.
pub fn note(guild: Option<&GuildId>, name: &str) -> Key {
    notes(guild).text(name)
}

/// The prefix of the keys of notes whose names have this prefix.
pub fn notes_beginning(guild: Option<&GuildId>, prefix: &str) -> Key {
    let whole = note(guild, prefix);
    // Drop the zero byte that ends a name.
    Key::from_bytes(&whole.as_bytes()[..whole.as_bytes().len() - 1])
}

/// The name in a key of [`note`].
pub fn name_of_note(guild: Option<&GuildId>, key: &Key) -> Option<String> {
    let rest = key.as_bytes().strip_prefix(notes(guild).as_bytes())?.strip_suffix(&[0])?;
    std::str::from_utf8(rest).ok().map(str::to_owned)
}

fn notes(guild: Option<&GuildId>) -> Key {
    let ward = guild.map_or(Ward(0), Ward::of);
    Key::new(ward, Kind::Session).text(guild.map_or("", GuildId::as_str))
}

/// The first two texts after the kind in a key.
fn two_texts(key: &Key) -> Option<(&str, &str)> {
    let mut texts = key.as_bytes().get(2..)?.split(|byte| *byte == 0).map(std::str::from_utf8);
    let (Some(Ok(first)), Some(Ok(second))) = (texts.next(), texts.next()) else { return None };
    Some((first, second))
}

/// The channel in a key that has one directly after its kind.
pub fn channel_in(key: &Key) -> Option<ChannelNo> {
    key.as_bytes().get(2..6)?.try_into().ok().map(u32::from_be_bytes).map(ChannelNo)
}

/// The channel in a key that ends in a channel and a number.
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
