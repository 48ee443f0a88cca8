//! What all actors of one call share: who takes part, and what is known of their voices. It outlives the actors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::link::Link;
use super::streams::{Need, Opened, Streams};
use super::voice::Voice;
use crate::domain::id::{ChannelId, PersonId, Ticket};
use crate::domain::message::{Author, Role};
use crate::domain::moment::Moment;
use crate::domain::voice::echo::PlayedWords;
use crate::ports::call_room::{Listener, Packet, Person, View};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::platform_call::CallConnection;
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::instruments::{Instruments, NONE};

/// How long speech is still recognised after its last voice.
pub const LINGERS_FOR: Duration = Duration::from_secs(2);

pub struct Call {
    channel_ref: ChannelRef,
    participants: Mutex<Participants>,
    /// The connection that carries the whole call, if one does.
    link: Mutex<Option<Arc<Link>>>,
    /// The reply that is prepared or played. During one, every hop with voice counts.
    reply: Mutex<Replying>,
    played: Mutex<PlayedWords>,
    /// Whether the newest sentence of which the end is known could not be spoken.
    voices_fail: AtomicBool,
    moments: Mutex<Moments>,
    lines: AtomicU64,
    streams: Streams,
    recorded: tokio::sync::Mutex<BTreeMap<PersonId, OnRecord>>,
    /// When it began, which tells it from the calls before.
    begun: Moment,
    /// Since when `voice.max_call_secs` runs.
    limited_since: Mutex<Instant>,
    instruments: Instruments,
}

#[derive(Default)]
struct Participants {
    people: BTreeMap<PersonId, Participant>,
    lines: BTreeMap<u64, Connected>,
    /// What plays to all who take part over the connection that carries the call.
    speaker: Option<Speaker>,
}

/// What plays to all.
struct Speaker {
    line: u64,
    listener: Arc<dyn Listener>,
    /// Nobody hears it, or it hears nobody.
    is_silenced: bool,
}

/// The reply in progress, or the last one.
#[derive(Default)]
struct Replying {
    ticket: Option<Ticket>,
    since: Moment,
    until: Moment,
}

/// The newest onset and offset of a person, or of anybody, which answers and ducking are measured from.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    onset: Option<Instant>,
    /// Of anybody: until it is answered.
    offset: Option<Instant>,
}

impl Moments {
    fn set(&mut self, talks: bool) {
        *(if talks { &mut self.onset } else { &mut self.offset }) = Some(Instant::now());
    }
}

/// A person in the call.
struct Participant {
    author: Author,
    /// A number that nobody else in the call has. It is part of the ids of segments, because names are not.
    number: u64,
    voice: Arc<Voice>,
    /// The connection that has the microphone.
    microphone: Option<u64>,
    is_muted: bool,
    is_ignored: bool,
    talks: bool,
    /// When the person began to talk, and when the person stopped.
    moments: Moments,
    /// Since when there is no connection, and whether that is because the person left.
    gone: Option<(Instant, Gone)>,
    _counted: Counted,
}

impl Participant {
    fn has_left(&self) -> bool {
        self.gone.is_some_and(|(_, gone)| gone == Gone::Left)
    }

    fn person(&self, user: &PersonId) -> Person {
        Person {
            user: user.clone(),
            is_muted: self.is_muted,
            only_listens: self.microphone.is_none(),
            is_ignored: self.is_ignored,
            talks: self.talks,
        }
    }
}

/// A person on record.
pub struct OnRecord {
    pub author: Author,
    /// Whether it is known that the entrance is on record.
    pub is_sure: bool,
}

#[derive(Clone)]
struct Connected {
    user: PersonId,
    listener: Arc<dyn Listener>,
    is_greeted: bool,
}

/// Why somebody has no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The connection was lost. The person keeps the place for a while.
    Lost,
    /// The person left. What was said last is still recognised.
    Left,
}

/// The end of a connection.
pub struct Parted {
    pub user: PersonId,
    pub had_microphone: bool,
}

/// What an entrance leads to.
pub struct Entered {
    pub line: u64,
    /// The connection that had the microphone before.
    pub moved: Option<Arc<dyn Listener>>,
}

impl Call {
    pub fn new(channel_ref: ChannelRef, begun: Moment, instruments: Instruments) -> Self {
        Self {
            begun,
            link: Mutex::default(),
            limited_since: Mutex::new(Instant::now()),
            instruments,
            channel_ref,
            participants: Mutex::default(),
            reply: Mutex::default(),
            played: Mutex::default(),
            voices_fail: AtomicBool::default(),
            moments: Mutex::default(),
            lines: AtomicU64::default(),
            streams: Streams::default(),
            recorded: tokio::sync::Mutex::default(),
        }
    }

    pub fn channel(&self) -> &ChannelId {
        &self.channel_ref.channel
    }

    pub const fn channel_ref(&self) -> &ChannelRef {
        &self.channel_ref
    }

    pub fn link(&self) -> Option<Arc<Link>> {
        self.link.lock().clone()
    }

    /// This connection carries the whole call, if there is none already, or as soon as that one finds that the call is over.
    pub fn connect(&self, connection: Arc<dyn CallConnection>) {
        let mut link = self.link.lock();
        if !link.as_ref().is_some_and(|link| link.begin_again(connection.clone())) {
            *link = Some(Arc::new(Link::new(connection)));
        }
    }

    /// The listener plays to all, in place of the one before. Returns its connection.
    pub fn attach(&self, listener: Arc<dyn Listener>) -> u64 {
        let line = self.lines.fetch_add(1, Ordering::Relaxed);
        self.participants.lock().speaker = Some(Speaker { line, listener, is_silenced: false });
        line
    }

    /// The listener at this connection plays no more.
    pub fn detach(&self, line: u64) {
        drop(self.participants.lock().speaker.take_if(|speaker| speaker.line == line));
    }

    /// Whether nobody hears the listener at this connection any more, or it hears nobody.
    pub fn set_silenced(&self, line: u64, is_silenced: bool) {
        if let Some(speaker) = self.participants.lock().speaker.as_mut().filter(|speaker| speaker.line == line) {
            speaker.is_silenced = is_silenced;
        }
    }

    /// Whether nobody hears what plays to all, or it hears nobody.
    pub fn is_silenced(&self) -> bool {
        self.participants.lock().speaker.as_ref().is_some_and(|speaker| speaker.is_silenced)
    }

    /// What plays to all.
    pub fn speaker(&self) -> Option<Arc<dyn Listener>> {
        self.participants.lock().speaker.as_ref().map(|speaker| speaker.listener.clone())
    }

    /// Whether a connection plays the call to somebody.
    pub fn plays(&self, line: u64) -> bool {
        let participants = self.participants.lock();
        participants.lines.contains_key(&line) || participants.speaker.as_ref().is_some_and(|speaker| speaker.line == line)
    }

    /// Adds a connection. One with a microphone takes it from the person's other one.
    /// None: there are `most` people already.
    pub fn enter(&self, author: Author, has_microphone: bool, listener: Arc<dyn Listener>, most: usize) -> Option<Entered> {
        let user = &PersonId::from(&*author.id);
        let line = self.lines.fetch_add(1, Ordering::Relaxed);
        let mut participants = self.participants.lock();
        let Participants { people, lines, .. } = &mut *participants;
        let is_here = people.get(user).is_some_and(|participant| !participant.has_left());
        if !is_here && people.values().filter(|participant| !participant.has_left()).count() >= most {
            return None;
        }
        let participant = people.entry(user.clone()).or_insert_with(|| Participant {
            author: author.clone(),
            number: line,
            voice: Arc::default(),
            microphone: None,
            is_muted: false,
            is_ignored: false,
            talks: false,
            moments: Moments::default(),
            gone: None,
            _counted: self.instruments.voice_people.one(NONE),
        });
        participant.author = author;
        if participant.gone.take().is_some_and(|(_, gone)| gone == Gone::Left) {
            (participant.is_muted, participant.is_ignored) = (false, false);
        }
        let mut moved = None;
        if has_microphone {
            let before = participant.microphone.replace(line);
            participant.is_muted = false;
            moved = before.and_then(|before| lines.remove(&before)).map(|before| before.listener);
        }
        lines.insert(line, Connected { user: user.clone(), listener, is_greeted: false });
        Some(Entered { line, moved })
    }

    /// Removes a connection. None: it was removed before.
    pub fn part(&self, line: u64, gone: Gone) -> Option<Parted> {
        let mut participants = self.participants.lock();
        let Participants { people, lines, .. } = &mut *participants;
        let user = lines.remove(&line)?.user;
        let is_last = !lines.values().any(|other| other.user == user);
        let participant = people.get_mut(&user)?;
        let had_microphone = participant.microphone == Some(line);
        if had_microphone {
            participant.microphone = None;
        }
        if is_last {
            participant.gone = Some((Instant::now(), gone));
        }
        Some(Parted { user, had_microphone })
    }

    /// Whether and since when a person has no connection. None: there is one, or the person is unknown.
    pub fn gone(&self, user: &PersonId) -> Option<(Duration, Gone)> {
        let participants = self.participants.lock();
        let (at, gone) = participants.people.get(user)?.gone?;
        Some((at.elapsed(), gone))
    }

    /// A person who was lost counts as having left.
    pub fn give_up(&self, user: &PersonId) {
        if let Some(gone) = self.participants.lock().people.get_mut(user).and_then(|participant| participant.gone.as_mut()) {
            *gone = (Instant::now(), Gone::Left);
        }
    }

    /// Removes a person who has left.
    pub fn remove(&self, user: &PersonId) {
        let mut participants = self.participants.lock();
        if participants.people.get(user).is_some_and(Participant::has_left) {
            participants.people.remove(user);
        }
    }

    pub fn is_connected(&self, user: &PersonId) -> bool {
        self.participants.lock().people.get(user).is_some_and(|participant| participant.gone.is_none())
    }

    /// Everybody whose voice is kept, also of those who have just left.
    pub fn known(&self) -> Vec<PersonId> {
        self.participants.lock().people.keys().cloned().collect()
    }

    /// Greets the connections of a person that were not greeted yet, and then shows them what is going on. Returns whether there was one.
    pub fn greet(&self, user: &PersonId, going_on: &[View]) -> bool {
        let mut participants = self.participants.lock();
        let Participants { people, lines, .. } = &mut *participants;
        let here = people.iter().filter(|(_, participant)| !participant.has_left());
        let entered =
            View::Entered { you: user.clone(), people: here.map(|(user, participant)| participant.person(user)).collect() };
        // Under the lock, so that nothing is shown before, and nothing is missed.
        let mut is_new = false;
        for line in lines.values_mut().filter(|line| line.user == *user && !line.is_greeted) {
            (line.is_greeted, is_new) = (true, true);
            std::iter::once(&entered).chain(going_on).for_each(|view| line.listener.show(view));
        }
        is_new
    }

    /// Shows something to everybody else.
    pub fn show_others(&self, user: &PersonId, view: &View) {
        for line in self.participants.lock().lines.values().filter(|line| line.user != *user && line.is_greeted) {
            line.listener.show(view);
        }
    }

    /// Shows something to one person, and to what plays to all: it shows the person nothing else.
    pub fn show_to(&self, user: &PersonId, view: &View) {
        self.count_trouble(view);
        for line in self.participants.lock().lines.values().filter(|line| line.user == *user && line.is_greeted) {
            line.listener.show(view);
        }
        self.speaker().inspect(|speaker| speaker.show(view));
    }

    /// The people who are on record as being in the call. The lock is held while a change is journaled, so that changes are made one after the other.
    pub const fn recorded(&self) -> &tokio::sync::Mutex<BTreeMap<PersonId, OnRecord>> {
        &self.recorded
    }

    /// Removes everybody. Returns them and their connections.
    pub fn clear(&self) -> (Vec<PersonId>, Vec<Arc<dyn Listener>>) {
        let participants = std::mem::take(&mut *self.participants.lock());
        let speaker = participants.speaker.map(|speaker| speaker.listener);
        let lines = participants.lines.into_values().map(|line| line.listener);
        (participants.people.into_keys().collect(), lines.chain(speaker).collect())
    }

    /// Whether nobody is in it any more, and nothing connects it.
    pub fn is_empty(&self) -> bool {
        self.participants.lock().people.is_empty() && self.link().is_none_or(|link| link.is_over())
    }

    pub fn connections(&self) -> Vec<u64> {
        self.participants.lock().lines.keys().copied().collect()
    }

    /// How long `voice.max_call_secs` has run.
    pub fn lasted(&self) -> Duration {
        self.limited_since.lock().elapsed()
    }

    /// Everybody was sent out. For whoever enters again before the call is gone, its time limit starts again.
    pub fn limit_again(&self) {
        *self.limited_since.lock() = Instant::now();
    }

    /// The person at a connection, and whether the connection has the microphone.
    pub fn at(&self, line: u64) -> Option<(PersonId, bool)> {
        let participants = self.participants.lock();
        let user = participants.lines.get(&line)?.user.clone();
        let has_microphone = participants.people.get(&user).is_some_and(|participant| participant.microphone == Some(line));
        Some((user, has_microphone))
    }

    pub fn listener(&self, line: u64) -> Option<Arc<dyn Listener>> {
        self.participants.lock().lines.get(&line).map(|line| line.listener.clone())
    }

    pub fn people(&self) -> Vec<Person> {
        self.participants
            .lock()
            .people
            .iter()
            .filter(|(_, participant)| !participant.has_left())
            .map(|(user, participant)| participant.person(user))
            .collect()
    }

    pub fn voice(&self, user: &PersonId) -> Option<Arc<Voice>> {
        self.participants.lock().people.get(user).map(|participant| participant.voice.clone())
    }

    pub fn person(&self, user: &PersonId) -> Option<Person> {
        let participants = self.participants.lock();
        participants.people.get(user).filter(|participant| !participant.has_left()).map(|participant| participant.person(user))
    }

    /// Changes a person, and shows it if that makes a difference. Returns whether it does.
    pub fn change(&self, user: &PersonId, change: impl FnOnce(&mut Change<'_>)) -> bool {
        let changed = {
            let mut participants = self.participants.lock();
            let Some(participant) = participants.people.get_mut(user) else { return false };
            let before = participant.person(user);
            let Participant { is_muted, is_ignored, .. } = participant;
            change(&mut Change { is_muted, is_ignored });
            Some(participant.person(user)).filter(|after| *after != before)
        };
        if let Some(person) = &changed {
            self.show(&View::Changed(person.clone()));
        }
        changed.is_some()
    }

    /// Whether the person is not to be listened to now, and whether the person wants to be ignored in this call.
    pub fn deafness(&self, user: &PersonId) -> (bool, bool) {
        self.participants
            .lock()
            .people
            .get(user)
            .map_or((true, false), |participant| (participant.is_muted, participant.is_ignored))
    }

    pub fn set_talking(&self, user: &PersonId, talks: bool) {
        if let Some(participant) = self.participants.lock().people.get_mut(user) {
            participant.talks = talks;
            participant.moments.set(talks);
        }
        self.moments.lock().set(talks);
        self.show(&View::Talking(user.clone(), talks));
    }

    /// Shows something to everybody.
    pub fn show(&self, view: &View) {
        self.count_trouble(view);
        for listener in self.listeners() {
            listener.show(view);
        }
    }

    fn count_trouble(&self, view: &View) {
        if let View::Trouble(trouble) = view {
            self.instruments.voice_troubles.add(1, [trouble.as_str()]);
        }
    }

    /// Plays a packet to everybody.
    pub fn play(&self, packet: &Packet) {
        for listener in self.listeners() {
            listener.play(packet);
        }
    }

    /// What shows the call to everybody who was greeted, and what plays it to all.
    fn listeners(&self) -> Vec<Arc<dyn Listener>> {
        let participants = self.participants.lock();
        let greeted = participants.lines.values().filter(|line| line.is_greeted).map(|line| &line.listener);
        greeted.chain(participants.speaker.as_ref().map(|speaker| &speaker.listener)).cloned().collect()
    }

    /// The reply that is prepared or played from now on.
    pub fn set_reply(&self, reply: Option<Ticket>, now: Moment) {
        let mut replying = self.reply.lock();
        match reply {
            Some(_) => replying.since = now,
            None if replying.ticket.is_some() => replying.until = now,
            None => {}
        }
        replying.ticket = reply;
    }

    /// Whether something that began then was said during a reply.
    pub fn was_replying(&self, at: Moment) -> bool {
        let replying = self.reply.lock();
        at >= replying.since && (replying.ticket.is_some() || at <= replying.until)
    }

    pub fn reply(&self) -> Option<Ticket> {
        self.reply.lock().ticket
    }

    /// Opens a recognition stream for somebody who talks. None: those who have one need it more.
    pub fn open_stream(&self, user: &PersonId, most: usize, begin: impl FnOnce() -> AbortHandle) -> Option<Opened> {
        let begin = || (begin(), self.instruments.voice_streams.one(NONE));
        self.streams.open(user, most, |user| self.need_of_stream(user), begin)
    }

    pub const fn streams(&self) -> &Streams {
        &self.streams
    }

    /// How much a person needs a stream. It is needed while the person talks, and then until all words are there, for at most [`LINGERS_FOR`].
    pub fn need_of_stream(&self, user: &PersonId) -> Need {
        let participants = self.participants.lock();
        let Some(participant) = participants.people.get(user) else { return Need { is_active: false, since: None } };
        let has_just_talked = participant.moments.offset.is_some_and(|offset| offset.elapsed() < LINGERS_FOR);
        let is_active = participant.talks || has_just_talked && participant.voice.found().awaits_words;
        Need { is_active, since: participant.moments.onset }
    }

    pub fn onset(&self) -> Option<Instant> {
        self.moments.lock().onset
    }

    /// The newest offset, once: a reply to what a companion said answers nobody's speech.
    pub fn take_offset(&self) -> Option<Instant> {
        self.moments.lock().offset.take()
    }

    /// Whether the newest sentence could not be spoken.
    pub fn voices_fail(&self) -> bool {
        self.voices_fail.load(Ordering::Relaxed)
    }

    pub fn note_voices(&self, fail: bool) {
        self.voices_fail.store(fail, Ordering::Relaxed);
    }

    /// What was played lately.
    pub fn played(&self) -> PlayedWords {
        self.played.lock().clone()
    }

    pub fn note_played(&self, at: Moment, words: &str) {
        self.played.lock().add(at, words);
    }

    pub fn author(&self, user: &PersonId) -> Option<Author> {
        self.participants.lock().people.get(user).map(|participant| participant.author.clone())
    }

    /// The id of the event to which a companion answers with a greeting.
    pub fn greeting_id(&self) -> Arc<str> {
        format!("greeting/{}", self.begun.as_micros()).into()
    }

    /// The beginning of the ids of what a person says.
    pub fn id_prefix(&self, user: &PersonId) -> String {
        let number = self.participants.lock().people.get(user).map_or(u64::MAX, |participant| participant.number);
        format!("voice/{}/{number}", self.begun.as_micros())
    }
}

/// What can change about a person.
pub struct Change<'a> {
    pub is_muted: &'a mut bool,
    pub is_ignored: &'a mut bool,
}

/// A person whose name is not known: the id stands for it.
pub fn unnamed(user: &PersonId) -> Author {
    Author { id: user.as_str().into(), name: user.as_str().into(), role: Role::Person }
}
