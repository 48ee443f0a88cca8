//! The bot's connection to the call of one voice channel: enters it, tells the core who is there and what they say, and plays what companions say.

use std::collections::BTreeMap;
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
use super::guild::Present;
use super::speaker::Speaker;
use super::{Numbers, Shared};
use crate::domain::message::{Author, Role};
use crate::ports::backend::Refused;
use crate::ports::call_room::{Line, Told};
use crate::ports::platform_call::{CallConnection, Ended, PlatformCall};

/// How long Discord may take to let the bot in. It does not answer at all if the bot may not enter.
const LET_IN_WITHIN: Duration = Duration::from_secs(10);
/// The wait before somebody is reported again whom the core could not take.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub struct Connection {
    shared: Arc<Shared>,
    guild: Snowflake,
    channel: Snowflake,
}

/// Somebody whom the core knows to be in the call.
struct Person {
    line: Arc<dyn Line>,
    is_muted: bool,
    numbers: Numbers,
}

type Entering = BoxFuture<'static, (Snowflake, Option<Arc<dyn Line>>)>;

/// The people of a call.
struct People {
    call: Arc<dyn PlatformCall>,
    here: BTreeMap<Snowflake, Person>,
    entering: FuturesUnordered<Entering>,
    /// Those who are being reported.
    awaited: BTreeMap<Snowflake, Present>,
}

impl Connection {
    pub const fn new(shared: Arc<Shared>, guild: Snowflake, channel: Snowflake) -> Self {
        Self { shared, guild, channel }
    }

    /// Waits until Discord lets the bot in. `None`: the bot does not belong there any more.
    async fn let_in(&self, changes: &mut watch::Receiver<()>) -> Result<Option<Server>, Ended> {
        let deadline = Instant::now() + LET_IN_WITHIN;
        let mut is_asked = false;
        loop {
            changes.mark_unchanged();
            if !self.shared.wants(self.guild, self.channel) {
                return Ok(None);
            }
            if let Some(server) = self.shared.server(self.guild, self.channel) {
                return Ok(Some(server));
            }
            if !is_asked {
                self.shared.ask(self.guild, self.channel).map_err(|unsent| lost(unsent.to_string()))?;
                is_asked = true;
            }
            if timeout_at(deadline, changes.changed()).await.is_err() {
                return Err(lost("Discord does not let the bot into the voice channel: it may lack the permission Connect there, or the channel is full; `tertulia discord check` tells".to_owned()));
            }
        }
    }
}

fn lost(detail: String) -> Ended {
    Ended::Lost { after: None, detail }
}

#[async_trait]
impl CallConnection for Connection {
    async fn live(&self, call: Arc<dyn PlatformCall>) -> Ended {
        let Some(mut changes) = self.shared.subscribe(self.guild) else { return Ended::Over };
        let server = match self.let_in(&mut changes).await {
            Ok(Some(server)) => server,
            Ok(None) => {
                self.shared.go(self.guild, self.channel);
                return Ended::Over;
            }
            Err(ended) => {
                self.shared.set_trouble(self.guild, &ended);
                return ended;
            }
        };
        let encoder = match self.shared.audio.encoder() {
            Ok(encoder) => encoder,
            Err(error) => return lost(error.to_string()),
        };
        let (connection, events) = VoiceConnection::open(server.clone(), encoder, self.shared.options.clone());
        let connection = Arc::new(connection);
        self.shared.opened(self.guild, self.channel, connection.clone());
        let speaker = Arc::new(Speaker::default());
        speaker.set_connection(Some(connection.clone()));
        let line = call.attach(speaker.clone());
        let people = People { call, here: BTreeMap::new(), entering: FuturesUnordered::new(), awaited: BTreeMap::new() };
        let ended = self.run(people, &connection, events, &speaker, &*line, server, &mut changes).await;
        speaker.set_connection(None);
        connection.leave();
        ended
    }
}

impl Connection {
    #[expect(clippy::too_many_arguments, reason = "what one connection needs, once")]
    async fn run(
        &self,
        mut people: People,
        connection: &VoiceConnection,
        mut events: mpsc::Receiver<Event>,
        speaker: &Speaker,
        line: &dyn Line,
        mut server: Server,
        changes: &mut watch::Receiver<()>,
    ) -> Ended {
        let mut is_connected = false;
        changes.mark_changed();
        loop {
            let alone_until = self.shared.alone_until(self.guild);
            let heard_at = speaker.next_heard();
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(Event::Connected) => {
                        if !std::mem::replace(&mut is_connected, true) {
                            self.shared.connected(self.guild, self.channel);
                        }
                    }
                    Some(Event::Heard(heard)) => people.hear(&heard),
                    Some(Event::Sent(sent)) => speaker.note_sent(sent, Instant::now()),
                    Some(Event::EndToEnd(is_on)) => self.shared.set_end_to_end(self.guild, self.channel, is_on),
                    // The main gateway tells who is there.
                    Some(Event::Left(_) | Event::Resuming | Event::Resumed) => {}
                    Some(Event::Ended(ended)) => return self.ended(ended).await,
                    None => return lost("the voice connection\u{2019}s task has ended".to_owned()),
                },
                Ok(()) = changes.changed() => {
                    if !self.shared.wants(self.guild, self.channel) {
                        people.leave_all();
                        self.shared.go(self.guild, self.channel);
                        return Ended::Over;
                    }
                    people.follow(self.shared.people(self.guild, self.channel));
                    if let Some(newer) = self.shared.server(self.guild, self.channel)
                        && !newer.is_same(&server)
                    {
                        connection.move_to(newer.clone());
                        server = newer;
                    }
                }
                Some((user, line)) = people.entering.next() => people.entered(user, line),
                () = sleep_until(heard_at.unwrap_or_else(Instant::now)), if heard_at.is_some() => {
                    speaker.heard(Instant::now()).into_iter().for_each(|told| line.tell(told));
                }
                () = sleep_until(alone_until.unwrap_or_else(Instant::now)), if alone_until.is_some() => {
                    // Looks at the time by itself.
                    changes.mark_changed();
                }
                () = speaker.ended() => {
                    self.shared.leave(self.guild);
                }
            }
        }
    }

    /// The voice server ended the connection.
    async fn ended(&self, ended: voice::Ended) -> Ended {
        use voice::Ended as Why;
        let detail = format!("the voice server ended the connection: {ended}");
        match ended {
            Why::Left => Ended::Over,
            // The main gateway tells whether the bot was moved, or sent out.
            Why::Disconnected | Why::CallTerminated => {
                self.shared.forget_session(self.guild);
                sleep(AGAIN_AFTER).await;
                lost(detail)
            }
            Why::RateLimited | Why::DaveRequired | Why::NoMode => Ended::Lost { after: Some(Duration::from_secs(60)), detail },
            Why::SessionInvalid | Why::AuthenticationFailed | Why::ServerNotFound | Why::Refused(_) | Why::Unreachable => {
                self.shared.forget_session(self.guild);
                lost(detail)
            }
        }
    }
}

impl People {
    /// Reports who came, left, and muted or unmuted themselves.
    fn follow(&mut self, present: BTreeMap<Snowflake, Present>) {
        self.here.retain(|user, person| {
            let is_here = present.contains_key(user);
            if !is_here {
                person.line.tell(Told::Leave);
            }
            is_here
        });
        self.awaited.retain(|user, _| present.contains_key(user));
        for (user, present) in present {
            if let Some(person) = self.here.get_mut(&user) {
                if person.is_muted != present.is_muted {
                    person.is_muted = present.is_muted;
                    person.line.tell(Told::Muted(present.is_muted));
                }
            } else if self.awaited.insert(user, present.clone()).is_none() {
                let author = Author { id: user.person().as_str().into(), name: present.name, role: Role::Person };
                self.entering.push(enter(self.call.clone(), user, author).boxed());
            }
        }
    }

    fn entered(&mut self, user: Snowflake, line: Option<Arc<dyn Line>>) {
        let Some(line) = line else { return };
        let Some(present) = self.awaited.remove(&user) else {
            // Gone meanwhile.
            return line.tell(Told::Leave);
        };
        if present.is_muted {
            line.tell(Told::Muted(true));
        }
        self.here.insert(user, Person { line, is_muted: present.is_muted, numbers: Numbers::default() });
    }

    fn hear(&mut self, heard: &Heard) {
        let Some(person) = Snowflake::new(heard.user).and_then(|user| self.here.get_mut(&user)) else { return };
        let number = person.numbers.of(heard.line, heard.number, Instant::now());
        person.line.hear(number, &heard.opus);
    }

    fn leave_all(&mut self) {
        for person in std::mem::take(&mut self.here).into_values() {
            person.line.tell(Told::Leave);
        }
    }
}

/// Reports somebody until the core takes it. `None`: the call is full.
async fn enter(call: Arc<dyn PlatformCall>, user: Snowflake, author: Author) -> (Snowflake, Option<Arc<dyn Line>>) {
    loop {
        match call.enter(author.clone()).await {
            Ok(line) => return (user, Some(line)),
            Err(Refused::TooMany { detail, .. }) => {
                tracing::warn!(detail, "somebody in a voice channel is not heard");
                return (user, None);
            }
            Err(error) => {
                tracing::debug!(%error, "somebody who is in a voice channel is reported again");
                sleep(AGAIN_AFTER).await;
            }
        }
    }
}
