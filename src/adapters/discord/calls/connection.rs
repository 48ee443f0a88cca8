//! The bot's connection to the call of one voice channel. It enters the channel, reports people and their audio to the core, and plays the
//! companions' speech.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::super::snowflake::Snowflake;
use super::super::voice::{self, Event, Heard, Server, VoiceConnection};
use super::super::wire::VoiceState;
use super::guild::{Present, Way};
use super::speaker::Speaker;
use super::{Numbers, Shared};
use crate::domain::id::PersonId;
use crate::domain::message::{Author, Role, Standing};
use crate::ports::backend::Refused;
use crate::ports::call_room::{Line, PersonAction};
use crate::ports::platform_call::{CallConnection, Ended, PlatformCall};

/// How long Discord may take to let the bot in. If the bot may not enter, Discord does not answer at all.
const LET_IN_WITHIN: Duration = Duration::from_secs(10);
/// How long to wait for the voice server of a channel that the bot is already in. After that, the bot leaves and rejoins.
const SERVER_WITHIN: Duration = Duration::from_secs(2);
/// How long to wait for another voice server after one is gone.
const SERVER_BACK_WITHIN: Duration = Duration::from_secs(60);
/// After the voice server disconnects the bot: how long to wait until the main gateway reports a move or a removal.
const TOLD_WITHIN: Duration = Duration::from_secs(3);
/// After the voice server refuses the connection: how long to wait until the main gateway names another server.
const OTHER_SERVER_WITHIN: Duration = Duration::from_millis(500);
/// The shortest time between two join commands.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// A session counts as working if it lasted this long with another participant in the call.
const WORKS_AFTER: Duration = Duration::from_secs(5);
/// The wait before a person is reported again, if the core could not accept the person.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The limit of concurrent lookups of voice states.
const MOST_LOOKUPS: usize = 200;

pub struct Connection {
    shared: Arc<Shared>,
    guild: Snowflake,
    channel: Snowflake,
}

/// A person that the core has accepted into the call.
struct Person {
    line: Arc<dyn Line>,
    is_muted: bool,
    numbers: Numbers,
}

type Entering = BoxFuture<'static, (Snowflake, Option<Arc<dyn Line>>)>;
type LookingUp = BoxFuture<'static, (Snowflake, Option<VoiceState>)>;

/// The people in a call.
struct People {
    call: Arc<dyn PlatformCall>,
    here: BTreeMap<Snowflake, Person>,
    entering: FuturesUnordered<Entering>,
    /// The users being reported. Meanwhile they may leave and come back.
    reported: BTreeSet<Snowflake>,
    /// The users of `reported` that are still in the channel.
    awaited: BTreeMap<Snowflake, Present>,
    /// The users that the core refused because the call is full. They are reported again when a person leaves.
    refused: BTreeSet<Snowflake>,
}

/// How one connection to a voice server ended.
enum Next {
    /// The call ends, or reconnects later.
    End(Ended),
    /// The server is gone or was replaced. The call continues on the server that Discord names.
    AnotherServer,
}

impl Connection {
    pub const fn new(shared: Arc<Shared>, guild: Snowflake, channel: Snowflake) -> Self {
        Self { shared, guild, channel }
    }

    /// Waits until Discord lets the bot in. Returns `None` if the channel is not the target any more.
    async fn let_in(&self, changes: &mut watch::Receiver<()>) -> Result<Option<Server>, Ended> {
        let began = Instant::now();
        // When the bot last asked, and the value of `chances` then.
        let mut asked: Option<(Instant, u64)> = None;
        let mut unsent = None;
        loop {
            changes.mark_unchanged();
            if self.shared.leave_unless_wanted(self.guild, self.channel) {
                return Ok(None);
            }
            let (way, chances) = (self.shared.way(self.guild, self.channel), self.shared.chances(self.guild));
            let is_gone = matches!(way, Way::Gone);
            let (until, gives_up) = match (way, asked) {
                (Way::Open(admitted), _) => match self.shared.server(self.guild, admitted) {
                    Some(server) => return Ok(Some(server)),
                    None => (began + LET_IN_WITHIN, true),
                },
                (Way::Gone, _) => (began + SERVER_BACK_WITHIN, true),
                (Way::Soon, None) if began.elapsed() < SERVER_WITHIN => (began + SERVER_WITHIN, false),
                (Way::Soon | Way::Closed, Some((at, before))) if before == chances => (at + LET_IN_WITHIN, true),
                (Way::Soon | Way::Closed, Some((at, _))) if at.elapsed() < ASK_EVERY => (at + ASK_EVERY, false),
                (Way::Soon | Way::Closed, _) => {
                    let sent = match asked {
                        // Leaving first would give up a place that Discord is about to grant.
                        Some(_) => self.shared.send(self.guild, Some(self.channel)),
                        None => self.shared.ask(self.guild, self.channel),
                    };
                    unsent = sent.err();
                    asked = if unsent.is_none() { Some((Instant::now(), chances)) } else { asked };
                    (asked.map_or(began, |(at, _)| at) + LET_IN_WITHIN, true)
                }
            };
            let is_late = timeout_at(until, changes.changed()).await.is_err();
            if is_late && gives_up {
                // The session, if any, is useless.
                self.shared.forget_session(self.guild, self.channel);
                return Err(lost(match unsent {
                    _ if is_gone => "Discord names no server for the call".to_owned(),
                    Some(unsent) => unsent.to_string(),
                    None => self.not_let_in(),
                }));
            }
        }
    }

    fn not_let_in(&self) -> String {
        self.shared.count_not_let_in();
        "Discord did not let the bot into the voice channel: give the bot the permission Connect there, or make room in the channel; \
         `tertulia discord check` shows which permissions are missing"
            .to_owned()
    }
}

fn lost(detail: String) -> Ended {
    Ended::Lost { after: None, has_worked: false, detail }
}

#[async_trait]
impl CallConnection for Connection {
    async fn standing(&self, person: &PersonId) -> Standing {
        match Snowflake::of_person(person.as_str()) {
            Some(person) => self.shared.standing(self.guild, person).await,
            None => Standing::Free,
        }
    }

    async fn live(&self, call: Arc<dyn PlatformCall>) -> Ended {
        let Some(mut changes) = self.shared.subscribe(self.guild) else { return Ended::Over };
        let (shared, guild, channel) = (self.shared.clone(), self.guild, self.channel);
        let (ending, telling) = (shared.clone(), shared);
        let speaker =
            Speaker::new(move || ending.end_call(guild, channel), move |trouble| telling.tell_trouble(guild, channel, trouble));
        let speaker = Arc::new(speaker);
        let line = call.attach(speaker.clone());
        let mut people = People::new(call);
        loop {
            let server = match self.let_in(&mut changes).await {
                Ok(Some(server)) => server,
                Ok(None) => {
                    people.leave_all();
                    return Ended::Over;
                }
                Err(ended) => {
                    self.shared.set_trouble(self.guild, self.channel, &ended);
                    return ended;
                }
            };
            let encoder = match self.shared.parts.audio.encoder() {
                Ok(encoder) => encoder,
                Err(error) => return lost(error.to_string()),
            };
            let (connection, events) = VoiceConnection::open(server.clone(), encoder, self.shared.parts.options.clone());
            let connection = Arc::new(connection);
            self.shared.opened(self.guild, self.channel, connection.clone());
            speaker.set_connection(Some(connection.clone()));
            people.reconnected();
            let next = self.run(&mut people, &connection, events, &speaker, &*line, server, &mut changes).await;
            speaker.set_connection(None);
            connection.leave();
            match next {
                Next::AnotherServer => {}
                Next::End(ended) => {
                    self.shared.set_trouble(self.guild, self.channel, &ended);
                    return ended;
                }
            }
        }
    }
}

impl Connection {
    #[expect(clippy::too_many_arguments, reason = "what one connection needs, once")]
    async fn run(
        &self,
        people: &mut People,
        connection: &VoiceConnection,
        mut events: mpsc::Receiver<Event>,
        speaker: &Speaker,
        line: &dyn Line,
        mut server: Server,
        changes: &mut watch::Receiver<()>,
    ) -> Next {
        let mut connected_at: Option<Instant> = None;
        // Whether the connection was moved to another server but is not connected there yet.
        let mut is_moving = false;
        let mut silenced = None;
        // The users that the voice server has named.
        let mut named = BTreeSet::new();
        let mut unknown = VecDeque::new();
        let mut lookups: FuturesUnordered<LookingUp> = FuturesUnordered::new();
        changes.mark_changed();
        loop {
            while lookups.len() < MOST_LOOKUPS
                && let Some(user) = unknown.pop_front()
            {
                lookups.push(self.look_up(user));
            }
            let alone_until = self.shared.alone_until(self.guild);
            let heard_at = speaker.next_heard();
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(Event::Connected) => {
                        is_moving = false;
                        if connected_at.is_none() {
                            connected_at = Some(Instant::now());
                            self.shared.connected(self.guild, self.channel);
                        }
                    }
                    Some(Event::Heard(heard)) => people.forward_packet(&heard),
                    Some(Event::Sent(sent)) => speaker.note_sent(sent, Instant::now()),
                    Some(Event::Here(user)) => {
                        if let Some(user) = Snowflake::new(user)
                            && named.insert(user)
                            && !self.shared.knows(self.guild, user)
                        {
                            unknown.push_back(user);
                        }
                    }
                    Some(Event::Left(user)) => _ = Snowflake::new(user).map(|user| named.remove(&user)),
                    Some(Event::EndToEnd(is_on)) => self.shared.set_end_to_end(self.guild, self.channel, is_on),
                    Some(Event::Resuming | Event::Resumed) => {}
                    // The old server ended the call before the connection moved to the new one.
                    Some(Event::Ended(ended)) if is_moving && ended.may_continue_on_another_server() => return Next::AnotherServer,
                    Some(Event::Ended(ended)) => {
                        let has_lasted = connected_at.is_some_and(|at| at.elapsed() >= WORKS_AFTER);
                        let has_worked = has_lasted && (!named.is_empty() || connection.counts().heard > 0);
                        return self.ended(ended, has_worked, &server, changes).await;
                    }
                    None => return Next::End(lost("the voice connection\u{2019}s task has ended".to_owned())),
                },
                Ok(()) = changes.changed() => {
                    if self.shared.leave_unless_wanted(self.guild, self.channel) {
                        people.leave_all();
                        return Next::End(Ended::Over);
                    }
                    people.follow(self.shared.people(self.guild, self.channel));
                    let is_silenced = self.shared.is_silenced(self.guild, self.channel);
                    if silenced.replace(is_silenced) != Some(is_silenced) {
                        line.report(PersonAction::Silenced(is_silenced));
                    }
                    if matches!(self.shared.way(self.guild, self.channel), Way::Gone) {
                        return Next::AnotherServer;
                    }
                    if let Some(newer) = self.newer_server(&server) {
                        connection.move_to(newer.clone());
                        (server, is_moving) = (newer, true);
                    }
                }
                Some((user, line)) = people.entering.next() => people.entered(user, line),
                Some((user, state)) = lookups.next() => {
                    if let Some(state) = state.filter(|_| named.contains(&user) && !self.shared.knows(self.guild, user)) {
                        self.shared.found(self.guild, &state);
                    }
                }
                () = sleep_until(heard_at.unwrap_or_else(Instant::now)), if heard_at.is_some() => {
                    speaker.heard(Instant::now()).into_iter().for_each(|told| line.report(told));
                }
                () = sleep_until(alone_until.unwrap_or_else(Instant::now)), if alone_until.is_some() => {
                    // The handler of `changes` checks whether the bot was alone for too long.
                    changes.mark_changed();
                }
            }
        }
    }

    /// Whether Discord has named another server or withdrawn this one.
    fn has_server_changed(&self, server: &Server) -> bool {
        matches!(self.shared.way(self.guild, self.channel), Way::Gone) || self.newer_server(server).is_some()
    }

    /// The server of the call, if it is not `than`.
    fn newer_server(&self, than: &Server) -> Option<Server> {
        let Way::Open(admitted) = self.shared.way(self.guild, self.channel) else { return None };
        self.shared.server(self.guild, admitted).filter(|newer| !newer.is_same(than))
    }

    fn look_up(&self, user: Snowflake) -> LookingUp {
        let (shared, guild) = (self.shared.clone(), self.guild);
        async move { (user, shared.look_up(guild, user).await) }.boxed()
    }

    /// Decides how to continue after the voice server ended the connection.
    async fn ended(&self, ended: voice::Ended, has_worked: bool, server: &Server, changes: &mut watch::Receiver<()>) -> Next {
        use voice::Ended as Why;
        let detail = format!("the voice server ended the connection: {ended}");
        let lost = |after, has_worked| Next::End(Ended::Lost { after, has_worked, detail });
        match ended {
            Why::Left => Next::End(Ended::Over),
            _ if ended.may_continue_on_another_server() => {
                let is_explained = matches!(ended, Why::Disconnected | Why::CallTerminated);
                let within = if is_explained { TOLD_WITHIN } else { OTHER_SERVER_WITHIN };
                if self.is_told_why(server, changes, within).await {
                    return Next::AnotherServer;
                }
                self.shared.forget_session(self.guild, self.channel);
                lost(None, has_worked)
            }
            _ => lost(Some(Duration::from_secs(60)), false),
        }
    }

    /// Waits until the main gateway reports that the bot was moved or removed, or that the call has another server. Returns false if it reports
    /// nothing in time.
    async fn is_told_why(&self, server: &Server, changes: &mut watch::Receiver<()>, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        loop {
            changes.mark_unchanged();
            if self.shared.leave_unless_wanted(self.guild, self.channel) {
                return true;
            }
            if self.has_server_changed(server) {
                return true;
            }
            if timeout_at(deadline, changes.changed()).await.is_err() {
                return false;
            }
        }
    }
}

impl People {
    fn new(call: Arc<dyn PlatformCall>) -> Self {
        Self {
            call,
            here: BTreeMap::new(),
            entering: FuturesUnordered::new(),
            reported: BTreeSet::new(),
            awaited: BTreeMap::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Reports changes to the core: people who entered, left, muted or unmuted.
    fn follow(&mut self, present: BTreeMap<Snowflake, Present>) {
        let before = self.here.len();
        self.here.retain(|user, person| {
            let is_here = present.contains_key(user);
            if !is_here {
                person.line.report(PersonAction::Leave);
            }
            is_here
        });
        self.awaited.retain(|user, _| present.contains_key(user));
        self.refused.retain(|user| present.contains_key(user));
        if self.here.len() < before {
            self.refused.clear();
        }
        for (user, present) in present {
            if let Some(person) = self.here.get_mut(&user) {
                if person.is_muted != present.is_muted {
                    person.is_muted = present.is_muted;
                    person.line.report(PersonAction::Muted(present.is_muted));
                }
            } else if !self.refused.contains(&user) {
                if self.reported.insert(user) {
                    let author = Author { id: user.person().as_str().into(), name: present.name.clone(), role: Role::Person };
                    self.entering.push(enter(self.call.clone(), user, author).boxed());
                }
                self.awaited.insert(user, present);
            }
        }
    }

    fn entered(&mut self, user: Snowflake, line: Option<Arc<dyn Line>>) {
        self.reported.remove(&user);
        let present = self.awaited.remove(&user);
        let Some(line) = line else {
            self.refused.insert(user);
            return;
        };
        let Some(present) = present else {
            // The person left meanwhile.
            return line.report(PersonAction::Leave);
        };
        if present.is_muted {
            line.report(PersonAction::Muted(true));
        }
        self.here.insert(user, Person { line, is_muted: present.is_muted, numbers: Numbers::default() });
    }

    fn forward_packet(&mut self, heard: &Heard) {
        let Some(person) = Snowflake::new(heard.user).and_then(|user| self.here.get_mut(&user)) else { return };
        let number = person.numbers.of(heard.line, heard.number, Instant::now());
        person.line.push_packet(number, &heard.opus);
    }

    /// Prepares for audio from a new connection.
    fn reconnected(&mut self) {
        self.here.values_mut().for_each(|person| person.numbers.reconnected());
    }

    fn leave_all(&mut self) {
        for person in std::mem::take(&mut self.here).into_values() {
            person.line.report(PersonAction::Leave);
        }
    }
}

/// Reports a person until the core answers. Returns `None` if the call is full.
async fn enter(call: Arc<dyn PlatformCall>, user: Snowflake, author: Author) -> (Snowflake, Option<Arc<dyn Line>>) {
    loop {
        match call.enter(author.clone()).await {
            Ok(line) => return (user, Some(line)),
            Err(Refused::TooMany { detail, .. }) => {
                tracing::warn!(%detail, "somebody in a voice channel is not heard");
                return (user, None);
            }
            Err(error) => {
                tracing::debug!(%error, "somebody who is in a voice channel is reported again");
                sleep(AGAIN_AFTER).await;
            }
        }
    }
}
