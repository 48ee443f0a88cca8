//! The interface of the voice servers for tests.
//!
//! ```ignore
//! let voice = VoiceServer::start(Rules::quick()).await;
//! let (ana, bo) = (voice.join(guild, channel, ana).await, voice.join(guild, channel, bo).await);
//! voice.grouped(channel, 2).await;
//! ana.say(&packets).await;
//! let heard = bo.heard_from(ana.user, packets.len()).await;
//! voice.cut(channel, ana.user);
//! ```

use std::net::UdpSocket;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::super::Id;
use super::dave::VERSION;
use super::sessions::Seat;
use super::state::Shared;
use super::{Counts, Grant, Network, Person, Rules, Speaking, Voice, relay, server};
use crate::harness::PATIENCE;

/// Voice servers on ports of this machine, which share their calls. They stop when this is dropped.
pub struct VoiceServer {
    pub(super) shared: Arc<Shared>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl VoiceServer {
    /// Starts with one server.
    pub fn start(rules: Rules) -> Self {
        let shared = Shared::new(|shared| Voice {
            rng: StdRng::seed_from_u64(rules.seed),
            rules,
            faults: Default::default(),
            journal: Default::default(),
            grants: Default::default(),
            revoked: Default::default(),
            connections: Default::default(),
            connected: 0,
            sessions: Default::default(),
            counts: Default::default(),
            deafened: Default::default(),
            groups: Default::default(),
            sender: Default::default(),
            servers: Vec::new(),
            hosts: Default::default(),
            made: 0,
            shared,
        });
        let voice = Self { shared, tasks: Mutex::default() };
        voice.add_server();
        voice
    }

    /// What the rest of the counterpart uses.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Starts another server. Returns its number.
    pub fn add_server(&self) -> usize {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a fresh socket");
        let listener = TcpListener::from_std(listener).expect("a runtime");
        let audio = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        audio.set_nonblocking(true).expect("a fresh socket");
        let received = tokio::net::UdpSocket::from_std(audio.try_clone().expect("a second handle")).expect("a runtime");
        let address = listener.local_addr().expect("a bound socket has an address").to_string();
        let server = self.with(|voice| {
            voice.servers.push((address, Arc::new(audio)));
            voice.servers.len() - 1
        });
        let mut tasks = self.tasks.lock();
        tasks.push(tokio::spawn(server::serve(listener, Arc::clone(&self.shared), server)).abort_handle());
        tasks.push(tokio::spawn(relay::serve(received, Arc::clone(&self.shared), server)).abort_handle());
        server
    }

    /// Lets a user join the call of a channel.
    pub fn grant(&self, guild: Id, channel: Id, user: Id) -> Grant {
        self.with(|voice| {
            let session = format!("session-{}", voice.number());
            voice.grant(guild, Seat { channel, user }, &session)
        })
    }

    /// A scripted person joins the call of a channel.
    pub async fn join(&self, guild: Id, channel: Id, user: Id) -> Person {
        Person::join(self.grant(guild, channel, user), VERSION).await
    }

    /// Waits until the closure finds something in the state.
    ///
    /// # Panics
    ///
    /// Nothing is found in time. The message names what was awaited.
    pub async fn until<T>(&self, what: &str, look: impl FnMut(&Voice) -> Option<T>) -> T {
        match timeout(PATIENCE, self.shared.until(look)).await {
            Ok(seen) => seen,
            Err(_) => panic!("timed out waiting for {what}"),
        }
    }

    /// Waits until the call's group has exactly so many members, and no change is in progress.
    pub async fn grouped(&self, channel: Id, members: usize) {
        self.until("the group", |voice| {
            let group = voice.groups.get(&channel)?;
            (group.is_settled() && group.members().len() == members).then_some(())
        })
        .await;
    }

    /// Waits until so many members are in a call.
    pub async fn members(&self, channel: Id, count: usize) {
        self.until("the members", |voice| (voice.members(channel).len() == count).then_some(())).await;
    }

    /// What was counted for a user in a call so far.
    pub fn counts(&self, channel: Id, user: Id) -> Counts {
        self.look(|voice| voice.counts.get(&Seat { channel, user }).cloned().unwrap_or_default())
    }

    /// Closes a member's connection with a code. Only 1001, 1006, 4000 and 4015 leave a session that can be resumed.
    pub fn close(&self, channel: Id, user: Id, code: u16, reason: &'static str) {
        self.with(|voice| {
            if let Some(connection) = voice.connection_of(Seat { channel, user }) {
                voice.close(connection, code, reason);
            }
        });
    }

    /// Cuts a member's connection without a close frame.
    pub fn cut(&self, channel: Id, user: Id) {
        self.with(|voice| {
            if let Some(connection) = voice.connection_of(Seat { channel, user }) {
                voice.cut(connection);
            }
        });
    }

    /// Sends a user no audio, or sends it again.
    pub fn set_deafened(&self, channel: Id, user: Id, deafened: bool) {
        self.with(|voice| voice.set_deafened(Seat { channel, user }, deafened));
    }

    /// Refuses the next so many RESUMEs with 4006.
    pub fn fail_resumes(&self, times: usize) {
        self.with(|voice| voice.faults.failing_resumes = times);
    }

    /// Sets the network from the server to a user.
    pub fn set_downlink(&self, channel: Id, user: Id, network: Network) {
        self.with(|voice| voice.faults.downlinks.insert(Seat { channel, user }, network));
    }

    /// Sets the network from a user to the server.
    pub fn set_uplink(&self, channel: Id, user: Id, network: Network) {
        self.with(|voice| voice.faults.uplinks.insert(Seat { channel, user }, network));
    }

    /// Sets what others are told when a user begins or ceases to speak.
    pub fn set_speaking(&self, channel: Id, user: Id, speaking: Speaking) {
        self.with(|voice| voice.faults.speaking.insert(Seat { channel, user }, speaking));
    }

    /// Garbles the next commit that a user is sent.
    pub fn garble_commit(&self, channel: Id, user: Id) {
        self.with(|voice| voice.faults.garbled_commits.push(Seat { channel, user }));
    }
}

impl Voice {
    /// Disconnects every member of a call, and withdraws the right to join it.
    pub fn end_call(&mut self, channel: Id) {
        let sessions = self.sessions.keys().copied();
        let seats: Vec<Seat> = sessions.chain(self.grants.values().map(|grant| grant.seat)).collect();
        for seat in seats.into_iter().filter(|seat| seat.channel == channel) {
            self.disconnect(seat, 4022, "Disconnected: call terminated.");
        }
    }
}

impl Drop for VoiceServer {
    fn drop(&mut self) {
        for task in self.tasks.get_mut() {
            task.abort();
        }
        self.with(|voice| {
            for connection in voice.connections.keys().copied().collect::<Vec<usize>>() {
                voice.cut(connection);
            }
        });
    }
}
