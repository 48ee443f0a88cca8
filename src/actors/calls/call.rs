//! The state of a call, with its listeners. The call's actors and connections share it, and it outlives the actors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::link::Link;
use crate::domain::call::{Audience, CallState, Effect, Input, SpeechBuffer, Trouble, View, World};
use crate::domain::id::{ChannelId, PersonId};
use crate::domain::message::{Author, Role};
use crate::domain::moment::Moment;
use crate::ports::call_room::{End, Listener, Packet};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::platform_call::CallConnection;
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::instruments::{Instruments, NONE};

pub struct SharedCall {
    channel_ref: ChannelRef,
    /// When the call began. It distinguishes the call from earlier calls of the channel.
    begun: Moment,
    since: Instant,
    instruments: Instruments,
    shared: Mutex<Shared>,
    recorded: tokio::sync::Mutex<BTreeMap<PersonId, OnRecord>>,
}

#[derive(Default)]
struct Shared {
    state: CallState,
    listeners: BTreeMap<u64, Arc<dyn Listener>>,
    streams: BTreeMap<PersonId, (AbortHandle, Counted)>,
    people: Vec<Counted>,
    /// The connection that carries the whole call, on platforms that have one.
    link: Option<Arc<Link>>,
}

pub struct OnRecord {
    pub author: Author,
    /// Whether the entrance is known to be journaled.
    pub is_sure: bool,
}

impl Shared {
    fn listeners(&self, audience: &Audience) -> impl Iterator<Item = &Arc<dyn Listener>> {
        self.state.audience(audience).into_iter().filter_map(|line| self.listeners.get(&line))
    }
}

impl SharedCall {
    pub fn new(channel_ref: ChannelRef, begun: Moment, instruments: Instruments) -> Self {
        let (since, shared, recorded) = (Instant::now(), Mutex::default(), tokio::sync::Mutex::default());
        Self { channel_ref, begun, since, instruments, shared, recorded }
    }

    pub fn channel(&self) -> &ChannelId {
        &self.channel_ref.channel
    }

    pub const fn channel_ref(&self) -> &ChannelRef {
        &self.channel_ref
    }

    /// The time since the call began.
    pub fn now(&self) -> Duration {
        self.since.elapsed()
    }

    pub fn read<T>(&self, read: impl FnOnce(&CallState) -> T) -> T {
        read(&self.shared.lock().state)
    }

    /// Accesses the received speech of a person, even if the person has just left.
    pub fn buffer<T>(&self, user: &PersonId, change: impl FnOnce(&mut SpeechBuffer) -> T) -> Option<T> {
        self.shared.lock().state.buffer(user).map(change)
    }

    /// Adds a packet of a connection that has the microphone, and counts it. Returns the person if no other packet waits.
    pub fn push_packet(&self, line: u64, number: u32, packet: &[u8]) -> Option<PersonId> {
        let mut shared = self.shared.lock();
        let (user, buffer) = shared.state.microphone(line)?;
        let (dropped, is_first) = buffer.push_packet(line, number, packet);
        self.instruments.voice_packets.add(1, ["received"]);
        if dropped > 0 {
            self.instruments.voice_packets.add(dropped as u64, ["dropped"]);
        }
        is_first.then_some(user)
    }

    /// Handles an input. `carry_out` carries out the effects that need no actor, in order, and returns the others.
    pub fn handle(&self, input: Input, world: &World<'_>, carry_out: impl Fn(Effect) -> Option<Effect>) -> Vec<Effect> {
        let (mut left, mut troubles, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        let mut guard = self.shared.lock();
        let shared = &mut *guard;
        for effect in shared.state.handle(input, world) {
            match effect {
                Effect::Show(audience, View::Trouble(trouble)) => {
                    troubles.push((shared.listeners(&audience).cloned().collect::<Vec<_>>(), trouble));
                }
                // Under the lock: a new connection sees nothing before the greeting, and misses nothing after it.
                Effect::Show(audience, view) => shared.listeners(&audience).for_each(|listener| listener.show(&view)),
                Effect::Disconnect(line, end) => ended.push((shared.listeners.remove(&line), end)),
                effect => left.extend(carry_out(effect)),
            }
        }
        shared.people.resize_with(shared.state.count(), || self.instruments.voice_people.one(NONE));
        drop(guard);
        troubles.into_iter().for_each(|(listeners, trouble)| self.show_to_all(&listeners, trouble));
        for (listener, end) in ended {
            listener.zip(end).into_iter().for_each(|(listener, end)| listener.end(end));
        }
        left
    }

    /// Shows a view without changing the state.
    pub fn show(&self, view: &View) {
        self.shared.lock().listeners(&Audience::All).for_each(|listener| listener.show(view));
    }

    pub fn show_trouble(&self, user: &PersonId, trouble: Trouble) {
        let listeners: Vec<_> = self.shared.lock().listeners(&Audience::Person(user.clone())).cloned().collect();
        self.show_to_all(&listeners, trouble);
    }

    /// Runs without the lock, because a platform reads the call to see whether the trouble is over.
    fn show_to_all(&self, listeners: &[Arc<dyn Listener>], trouble: Trouble) {
        self.instruments.voice_troubles.add(1, [trouble.as_str()]);
        listeners.iter().for_each(|listener| listener.show(&View::Trouble(trouble)));
    }

    pub fn play(&self, packet: &Packet) {
        let listeners: Vec<_> = self.shared.lock().listeners(&Audience::All).cloned().collect();
        listeners.iter().for_each(|listener| listener.play(packet));
    }

    /// Adds a connection. Returns `None` if the call already has `most` people.
    pub fn enter(&self, author: Author, has_microphone: bool, listener: Option<Arc<dyn Listener>>, most: usize) -> Option<u64> {
        let (line, moved) = {
            let mut shared = self.shared.lock();
            let (line, moved) = shared.state.enter(author, has_microphone, most)?;
            shared.listeners.extend(listener.map(|listener| (line, listener)));
            let count = shared.state.count();
            shared.people.resize_with(count, || self.instruments.voice_people.one(NONE));
            (line, moved.and_then(|moved| shared.listeners.remove(&moved)))
        };
        moved.into_iter().for_each(|moved| moved.end(End::Moved));
        Some(line)
    }

    /// Adds the listener that plays to all, in place of the previous one. Returns its connection.
    pub fn attach(&self, listener: Arc<dyn Listener>) -> u64 {
        let mut shared = self.shared.lock();
        let line = shared.state.attach();
        shared.listeners.insert(line, listener);
        line
    }

    pub fn link(&self) -> Option<Arc<Link>> {
        self.shared.lock().link.clone()
    }

    /// Sets the connection that carries the whole call. If there is one already, the new one replaces it once the old one finds that the call is
    /// over.
    pub fn connect(&self, connection: Arc<dyn CallConnection>) {
        let link = &mut self.shared.lock().link;
        if !link.as_ref().is_some_and(|link| link.set_replacement(connection.clone())) {
            *link = Some(Arc::new(Link::new(connection)));
        }
    }

    pub fn clear(&self) -> (Vec<PersonId>, Vec<Arc<dyn Listener>>) {
        let mut shared = self.shared.lock();
        let people = shared.state.clear();
        shared.people.clear();
        (people, std::mem::take(&mut shared.listeners).into_values().collect())
    }

    /// Whether the call has no people and no connection.
    pub fn is_empty(&self) -> bool {
        let shared = self.shared.lock();
        shared.state.count() == 0 && shared.link.as_ref().is_none_or(|link| link.is_over())
    }

    /// The people who are journaled as present. The lock is held while a change is journaled, so that changes happen one after the other.
    pub const fn recorded(&self) -> &tokio::sync::Mutex<BTreeMap<PersonId, OnRecord>> {
        &self.recorded
    }

    /// Opens a recognition stream for a talker. Returns its task, and the person whose stream was closed for it. Returns `None` if all open streams
    /// are needed more.
    pub fn open_stream(
        &self,
        user: &PersonId,
        most: usize,
        begin: impl FnOnce() -> AbortHandle,
    ) -> Option<(AbortHandle, Option<PersonId>)> {
        let mut shared = self.shared.lock();
        let displaced = shared.state.open_stream(user, most, self.now())?;
        if let Some((task, _)) = displaced.as_ref().and_then(|displaced| shared.streams.remove(displaced)) {
            task.abort();
        }
        let task = begin();
        shared.streams.insert(user.clone(), (task.clone(), self.instruments.voice_streams.one(NONE)));
        Some((task, displaced))
    }

    /// Whether the stream is still open and was not displaced.
    pub fn has_stream(&self, user: &PersonId, task: &AbortHandle) -> bool {
        self.shared.lock().streams.get(user).is_some_and(|(other, _)| other.id() == task.id())
    }

    /// Ends a stream. A displaced stream has ended already.
    pub fn close_stream(&self, user: &PersonId, task: &AbortHandle) {
        task.abort();
        let mut shared = self.shared.lock();
        if shared.streams.get(user).is_some_and(|(other, _)| other.id() == task.id()) {
            shared.streams.remove(user);
            shared.state.close_stream(user);
        }
    }

    /// The author of a person's words, even if the person has left. If the name is unknown, the id is used.
    pub fn author_or_unnamed(&self, user: &PersonId) -> Author {
        let unnamed = || Author { id: user.as_str().into(), name: user.as_str().into(), role: Role::Person };
        self.read(|state| state.author(user)).unwrap_or_else(unnamed)
    }

    /// The id of the event that a companion answers with a greeting.
    pub fn greeting_id(&self) -> Arc<str> {
        format!("greeting/{}", self.begun.as_micros()).into()
    }

    /// The prefix of the ids of a person's segments.
    pub fn id_prefix(&self, user: &PersonId) -> String {
        format!("voice/{}/{}", self.begun.as_micros(), self.read(|state| state.number(user)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;
    use crate::domain::call::playback::Patience;
    use crate::telemetry::fake::SpanMemory;

    /// What shows a call, and looks at it when something does not work.
    #[derive(Default)]
    struct Looking(OnceLock<Arc<SharedCall>>, Mutex<Vec<usize>>);

    impl Listener for Looking {
        fn show(&self, view: &View) {
            if let (View::Trouble(_), Some(call)) = (view, self.0.get()) {
                self.1.lock().push(call.read(|call| call.people().count()));
            }
        }

        fn play(&self, _: &Packet) {}

        fn end(&self, _: End) {}
    }

    #[tokio::test]
    async fn a_platform_that_is_shown_a_trouble_may_look_at_the_call() {
        let channel_ref = ChannelRef { guild: "guild".into(), channel: "room".into(), parent: None };
        let instruments = SpanMemory::new().recorder(false).instruments().clone();
        let call = Arc::new(SharedCall::new(channel_ref, Moment::ZERO, instruments));
        let looking = Arc::<Looking>::default();
        looking.0.set(call.clone()).ok().expect("it is not set yet");
        call.attach(looking.clone());
        let author = Author { id: "ana".into(), name: "Ana".into(), role: Role::Person };
        call.enter(author, true, None, 1).expect("a place");
        let patience = Patience { first_audio: Duration::ZERO, more: Duration::ZERO };
        let world = World { now: Duration::ZERO, at: Moment::ZERO, patience, is_opted_out: &|_| false, is_used_up: &|_| false };

        call.show_trouble(&"ana".into(), Trouble::NotHeard);
        call.handle(Input::Limit { limit: Duration::ZERO }, &world, |_| None);

        assert_eq!(*looking.1.lock(), [1, 0]);
    }
}
