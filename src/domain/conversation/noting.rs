//! When notes are taken, and requests to remember something (docs/design/memory.md).

use super::super::event::NotesTaken;
use super::super::memory::{self, remember_request};
use super::super::message::{Author, Message, Role};
use super::super::note::{Dropped, Note};
use super::*;

/// The fewest messages about which notes are taken in a pause.
const LEAST: u64 = 8;
/// The length of the pause.
const PAUSE: Duration = Duration::from_secs(30 * 60);

/// Whether and how notes are taken in the channel.
#[derive(Clone, Copy)]
pub struct NoteRules<'a> {
    /// Notes are taken after so many messages (`memory.notes_after`).
    pub after: u64,
    /// Whether there may be notes by and about a person.
    pub allows: &'a dyn Fn(&PersonId) -> bool,
}

/// How far notes have been taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Noting {
    /// The newest event about which notes were taken, or the event before the first message that counts.
    upto: Seq,
    /// The number of messages since.
    messages: u64,
    /// When the newest of them was said.
    at: Moment,
    #[serde(skip)]
    is_being_asked: bool,
    /// Messages that were deleted or edited since the side model was asked.
    #[serde(skip)]
    changed: BTreeSet<Seq>,
    /// After a failed attempt, the next one waits for so many messages.
    #[serde(skip)]
    retry_at: u64,
}

impl Noting {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Counts a message. While no notes are taken, none counts.
    pub(super) fn count(&mut self, seq: Seq, at: Moment, rules: Option<NoteRules<'_>>) {
        if rules.is_none() {
            *self = Self::default();
            return;
        }
        if self.messages == 0 {
            self.upto = self.upto.max(Seq(seq.0.saturating_sub(1)));
        }
        self.messages += 1;
        self.at = at;
    }

    pub(super) fn change(&mut self, messages: &[Seq]) {
        if self.is_being_asked {
            self.changed.extend(messages);
        }
    }

    /// Nothing up to this event is noted.
    pub(super) fn clear(&mut self, seq: Seq) {
        *self = Self { upto: seq, is_being_asked: self.is_being_asked, ..Self::default() };
    }

    pub(super) fn apply(&mut self, taken: &NotesTaken) {
        if taken.is_refused_request() {
            return;
        }
        let messages = self.messages.saturating_sub(taken.messages);
        *self = Self { upto: self.upto.max(taken.upto), messages, at: self.at, ..Self::default() };
    }

    /// When a pause is long enough for notes.
    fn pause_ends_at(&self) -> Option<Moment> {
        let is_waiting = self.messages >= LEAST.max(self.retry_at) && !self.is_being_asked;
        is_waiting.then(|| self.at + PAUSE)
    }
}

impl Conversation {
    /// When something is due in a channel at rest: a companion may start a conversation, or a pause is long enough for notes.
    pub fn due_at_rest(&self) -> Option<Moment> {
        self.silence_at().into_iter().chain(self.noting.pause_ends_at()).min()
    }
}

impl Step<'_, '_> {
    /// Asks for notes if enough was said since the last ones, or if nothing has been said for a while.
    pub(super) fn take_notes(&mut self) {
        let noting = &self.state.noting;
        let Some(pause_ends_at) = noting.pause_ends_at() else { return };
        let Some(rules) = self.world.notes else {
            // Turned off since.
            self.state.noting = Noting::default();
            return;
        };
        if noting.messages < rules.after.max(noting.retry_at) && !self.is_due(pause_ends_at) {
            return;
        }
        let (after, upto) = (noting.upto, self.state.position.handled);
        if self.world.exhausted_token_budget(self.state.position.clock).is_some() {
            self.state.noting.retry_at = self.state.noting.messages + 1;
            return;
        }
        self.state.noting.is_being_asked = true;
        self.out.push(Output::TakeNotes { after, upto });
    }

    /// Journals notes. Those from messages that were deleted or edited in the meantime are dropped. Without notes the attempt failed.
    pub(super) fn accept_notes(&mut self, notes: Option<(Vec<Note>, NotesTaken)>) {
        let noting = &mut self.state.noting;
        let changed = std::mem::take(&mut noting.changed);
        noting.is_being_asked = false;
        match notes.filter(|(_, taken)| taken.upto > noting.upto && self.world.notes.is_some()) {
            Some((notes, mut taken)) => {
                // An author may have turned notes off during the call.
                let allows = |author: &Author| {
                    author.role != Role::Person
                        || self.world.notes.is_some_and(|rules| (rules.allows)(&PersonId::from(&*author.id)))
                };
                let is_kept = |note: &Note| {
                    note.sources.iter().all(|source| !changed.contains(source))
                        && note.about.iter().chain([&note.said_by]).all(allows)
                };
                let kept: Vec<Note> = notes.into_iter().filter(is_kept).collect();
                taken.made = kept.len() as u32;
                kept.into_iter().for_each(|note| self.record(Event::Noted(Box::new(note))));
                self.record(Event::NotesTaken(taken));
            }
            None => noting.retry_at = noting.messages + self.world.notes.map_or(LEAST, |rules| rules.after),
        }
    }

    /// Journals what a person asks companions to remember.
    pub(super) fn note_remember_request(&mut self, seq: Seq, message: &Message, at: Moment) {
        let (from, Some(rules)) = (&message.from, self.world.notes) else { return };
        let is_unnoted = |author: &Author| author.role == Role::Person && !(rules.allows)(&PersonId::from(&*author.id));
        let is_told = from.role == Role::Person && !message.address.companions.is_empty();
        let request = || remember_request(&message.text, message.address.companions.iter().map(CompanionId::as_str));
        let text = match is_told.then(request).flatten() {
            Some(Ok(text)) if !is_unnoted(from) => text,
            Some(Ok(_)) => return self.refuse_note(Dropped::Subject),
            Some(Err(why)) => return self.refuse_note(why),
            None => return,
        };
        let authors = self.state.window.entries().map(|entry| &entry.message.from);
        let is_named =
            |author: &&Author| (author.role, &author.id) != (from.role, &from.id) && memory::names(&text, &author.name);
        let named: Vec<&Author> = authors.filter(is_named).collect();
        if named.iter().any(|author| is_unnoted(author)) {
            return self.refuse_note(Dropped::Subject);
        }
        let note = Note {
            // A request about another member is hearsay.
            about: Some(named.first().map_or(from, |author| *author).clone()),
            said_by: from.clone(),
            text: text.into(),
            sources: vec![seq],
            said_at: at,
            until: None,
            replaces: None,
            asked: true,
            companions: self.state.gates.keys().cloned().collect(),
        };
        self.record(Event::Noted(Box::new(note)));
    }

    /// Journals why a request to remember something is refused.
    fn refuse_note(&mut self, why: Dropped) {
        let dropped = BTreeMap::from([(why, 1)]);
        self.record(Event::NotesTaken(NotesTaken { upto: Seq::NONE, messages: 0, made: 0, dropped }));
    }
}
