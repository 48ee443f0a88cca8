//! Shows, corrects and erases notes, and turns them on and off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use super::ActorBackend;
use super::suggestions::check_guild;
use crate::actors::erasure::deletion::{RewriteError, correct_note, erase_notes};
use crate::actors::erasure::note_switches::{erase_in_guild, set_across_rooms, switch};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{GuildId, PersonId, Seq, Ward};
use crate::domain::memory;
use crate::domain::note::Note;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError};
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::Person;
use crate::ports::backend::memory_service::{MemoryService, NoteView, Notes, NotesAbout, TakenView};
use crate::ports::backend::room::RoomId;

/// How many events are searched for the last times that notes were taken, and how many of these times are shown.
const MOST_SEARCHED: usize = 2_000;
const MOST_TAKEN: usize = 20;

#[async_trait]
impl MemoryService for ActorBackend {
    async fn notes(&self, room: &RoomId) -> Result<Notes, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let range = Range { after: Seq::NONE, before: None, limit: MOST_SEARCHED, newest_first: true };
        let newest = self.reader().legible(&channel_key, range).await?.events;
        let mut taken: Vec<_> = newest.iter().filter_map(taken_view).take(MOST_TAKEN).collect();
        taken.reverse();
        let switch = self.context.note_switches.of_guild(&channel_key.guild, self.is_written_here(room));
        Ok(Notes {
            guild: channel_key.guild.as_str().into(),
            on: switch.map(|switch| switch.on),
            across_rooms: switch.is_some_and(|switch| switch.across_rooms),
            allowed: self.context.settings.memory.notes,
            notes: self.note_views(room, &channel_key).await?.into_iter().map(|(view, _)| view).collect(),
            taken,
        })
    }

    async fn notes_about(&self, person: Person) -> Result<NotesAbout, Refused> {
        check_guild(&self.context, &person.guild).await?;
        let mut notes = Vec::new();
        for (channel, membership) in self.context.memberships.all() {
            let room = RoomId::of(&channel).filter(|_| membership.guild == person.guild);
            if let Some(room) = room {
                let views = self.note_views(&room, &ChannelKey::new(&person.guild, &channel)).await?;
                notes.extend(views.into_iter().filter(|(_, note)| note.concerns(&person.id)).map(|(view, _)| view));
            }
        }
        let on = self.context.may_be_noted(&person.guild, &PersonId::from(&*person.id));
        Ok(NotesAbout { on, notes })
    }

    async fn correct_note(&self, room: &RoomId, note: Seq, text: Arc<str>) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        if correct_note(&self.context, &channel_key, note, text).await? { Ok(()) } else { Err(self.no_note(room, note)) }
    }

    async fn erase_note(&self, room: &RoomId, note: Seq) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let erased = erase_notes(&self.context, &channel_key, |seq, _| seq == note).await?;
        if erased > 0 { Ok(()) } else { Err(self.no_note(room, note)) }
    }

    async fn switch_notes(&self, guild: GuildId, person: Option<PersonId>, on: bool) -> Result<(), Refused> {
        check_guild(&self.context, &guild).await?;
        switch(&self.context, &guild, person.as_ref(), on).await?;
        if let Some(person) = person.filter(|_| !on) {
            let names = self.names_in_notes(&guild, &person).await?;
            self.erase_notes_of(&guild, &person, &names).await?;
        }
        Ok(())
    }

    async fn use_notes_across_rooms(&self, guild: GuildId, across_rooms: bool) -> Result<(), Refused> {
        check_guild(&self.context, &guild).await?;
        let rooms = self.context.memberships.all().into_iter().filter(|(_, membership)| membership.guild == guild);
        let is_written_here = rooms.map(|(channel, _)| self.context.platforms.is_written_here(&channel));
        let is_of_console = is_written_here.reduce(|one, other| one && other).unwrap_or(false);
        let switch = self.context.note_switches.of_guild(&guild, is_of_console).filter(|switch| switch.on);
        let Some(switch) = switch else {
            let refused = Refused::conflict("no notes are taken here; turn them on first");
            return if across_rooms { Err(refused) } else { Ok(()) };
        };
        Ok(set_across_rooms(&self.context, &guild, switch, across_rooms).await?)
    }
}

impl ActorBackend {
    async fn note_views(&self, room: &RoomId, channel_key: &ChannelKey) -> Result<Vec<(NoteView, Arc<Note>)>, ReadError> {
        let notes = self.reader().notes(channel_key, Seq::NONE).await?;
        let replaced: BTreeMap<Seq, Seq> = notes.iter().filter_map(|(seq, note)| Some((note.replaces?, *seq))).collect();
        let view = |(seq, note): (Seq, Arc<Note>)| (note_view(room, seq, &note, replaced.get(&seq).copied()), note);
        Ok(notes.into_iter().map(view).collect())
    }

    fn no_note(&self, room: &RoomId, note: Seq) -> Refused {
        let name = self.name_of(room);
        Refused::not_found(format!("room {name} has no note {note}; GET /api/rooms/{room}/notes lists its notes"))
    }
}

impl ActorBackend {
    /// Erases the notes by and about a person in a guild, and those that have one of these names.
    pub(super) async fn erase_notes_of(
        &self,
        guild: &GuildId,
        person: &PersonId,
        names: &BTreeSet<Arc<str>>,
    ) -> Result<u64, RewriteError> {
        let is_of_person =
            |note: &Note| note.concerns(person.as_str()) || names.iter().any(|name| memory::names(&note.text, name));
        erase_in_guild(&self.context, guild, is_of_person).await
    }

    /// The names under which a person said something in a guild. Empty if the guild has no notes.
    pub(super) async fn names_in_notes(&self, guild: &GuildId, person: &PersonId) -> Result<BTreeSet<Arc<str>>, Refused> {
        let (ward, mut names) = (Ward::of(guild), BTreeSet::new());
        if !self.has_notes(guild).await? {
            return Ok(names);
        }
        for (no, stretches) in self.reader().listed(guild, person).await? {
            let Some(channel_key) = self.named(ward, no).await? else { continue };
            // Forgetting a person reports unreadable entries.
            let Ok(found) = self.reader().messages_by(ward, no, stretches.keys(), person).await else { continue };
            for seq in found.messages {
                if let Some(Recorded { event: Event::Said { message, .. }, .. }) = self.reader().event(&channel_key, seq).await? {
                    names.insert(message.from.name);
                }
            }
        }
        Ok(names)
    }

    /// Whether there are notes in a guild.
    async fn has_notes(&self, guild: &GuildId) -> Result<bool, ReadError> {
        for (channel, membership) in self.context.memberships.all() {
            let channel_key = ChannelKey::new(guild, &channel);
            if membership.guild == *guild && !self.reader().notes(&channel_key, Seq::NONE).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn note_view(room: &RoomId, seq: Seq, note: &Note, replaced_by: Option<Seq>) -> NoteView {
    NoteView {
        room: room.as_str().into(),
        seq,
        about: note.about.as_ref().map(|about| about.name.clone()),
        about_id: note.about.as_ref().map(|about| about.id.clone()),
        said_by: note.said_by.name.clone(),
        said_by_id: note.said_by.id.clone(),
        said_by_role: note.said_by.role,
        text: note.text.clone(),
        sources: note.sources.clone(),
        at: note.said_at.into(),
        until: note.until.map(Into::into),
        asked: note.asked,
        replaced_by,
    }
}

fn taken_view(recorded: &Recorded) -> Option<TakenView> {
    let Event::NotesTaken(taken) = &recorded.event else { return None };
    let dropped = taken.dropped.iter().map(|(why, count)| (why.as_str().into(), *count)).collect();
    Some(TakenView { at: recorded.at.into(), messages: taken.messages, made: taken.made, dropped })
}
