//! Injects faults.

use serde_json::json;

use super::super::faults::Fault;
use super::super::sessions::{Connection, Order};
use super::super::{Connects, Does, Id, On, State};
use super::Counterpart;

impl Counterpart {
    /// Injects a fault into matching requests until [`Counterpart::lift`]. Returns the fault's number.
    pub fn spoil(&self, on: On, does: Does) -> u64 {
        self.with(|state| state.faults.put(Fault { on, does, times: None }))
    }

    /// Injects a fault into the next matching requests, so many times. Returns the fault's number.
    pub fn spoil_next(&self, times: u32, on: On, does: Does) -> u64 {
        self.with(|state| state.faults.put(Fault { on, does, times: Some(times) }))
    }

    /// Ends a fault. Requests that hang because of it continue.
    pub fn lift(&self, fault: u64) {
        self.with(|state| state.faults.lift(fault));
    }

    /// Sets what happens to new connections to the main address.
    pub fn set_connects(&self, connects: Connects) {
        self.with(|state| state.faults.connects = connects);
    }

    /// Sets what happens to new connections to the resume address, also for sessions to which it was announced before.
    pub fn set_resume_connects(&self, connects: Connects) {
        self.with(|state| state.faults.resume_connects = connects);
    }

    /// The next so many IDENTIFYs are answered with an invalid session.
    pub fn fail_identifies(&self, times: usize) {
        self.with(|state| state.faults.failing_identifies = times);
    }

    /// The next so many RESUMEs are answered with an invalid session, marked as resumable or not.
    pub fn fail_resumes(&self, times: usize, resumable: bool) {
        self.with(|state| {
            state.faults.failing_resumes = times;
            state.faults.failing_resumes_resumable = resumable;
        });
    }

    /// Tells a shard to reconnect (op 7), and closes its connections a little later.
    pub fn ask_to_reconnect(&self, shard: u64) {
        self.on_shard(shard, |state, connection| {
            state.send(connection, &json!({ "op": 7, "d": null, "s": null, "t": null }));
            state.order(connection, Order::CloseLater);
        });
    }

    /// Tells a shard that its session is invalid (op 9). A session that is not resumable is dropped.
    pub fn invalidate(&self, shard: u64, resumable: bool) {
        self.on_shard(shard, |state, connection| {
            state.send(connection, &json!({ "op": 9, "d": resumable, "s": null, "t": null }));
            if !resumable {
                state.gateway.sessions.retain(|_, session| session.connection != Some(connection));
                state.change_connection(connection, |connection| connection.session = None);
            }
        });
    }

    /// Asks a shard for a heartbeat (op 1).
    pub fn ask_for_heartbeat(&self, shard: u64) {
        self.on_shard(shard, |state, connection| {
            state.send(connection, &json!({ "op": 1, "d": null, "s": null, "t": null }));
        });
    }

    /// Sends a message again, with another sequence number.
    pub fn repeat(&self, channel: Id, message: Id) {
        self.with(|state| state.repeat(channel, message));
    }

    /// Closes the connections of a shard with a code.
    pub fn close(&self, shard: u64, code: u16, reason: &'static str) {
        self.on_shard(shard, |state, connection| state.close(connection, code, reason));
    }

    /// Cuts the connections of a shard without a close frame.
    pub fn cut(&self, shard: u64) {
        self.on_shard(shard, State::cut);
    }

    /// Stops acknowledging heartbeats on the current connections of a shard.
    pub fn stop_acknowledging(&self, shard: u64) {
        self.on_shard(shard, |state, number| state.change_connection(number, |connection| connection.unacknowledged = true));
    }

    /// Stops sending on the current connections of a shard. Missed events stay in the session's buffer for RESUME.
    pub fn silence(&self, shard: u64) {
        self.on_shard(shard, |state, number| state.change_connection(number, |connection| connection.silent = true));
    }

    pub fn send_text(&self, shard: u64, text: &str) {
        self.on_shard(shard, |state, connection| state.order(connection, Order::Send(text.to_owned(), None)));
    }

    pub fn send_bytes(&self, shard: u64, bytes: &[u8]) {
        self.on_shard(shard, |state, connection| state.order(connection, Order::SendBytes(bytes.to_vec())));
    }

    /// Resets the token, as in the portal. Returns the new token. Every connection with the old one is closed.
    pub fn reset_token(&self) -> String {
        self.with(|state| {
            let token = format!("{}.reset", state.world.application.token);
            state.world.application.token.clone_from(&token);
            let connected: Vec<usize> = state.gateway.connections.keys().copied().collect();
            for connection in connected {
                state.close(connection, 4004, "Authentication failed.");
            }
            state.gateway.sessions.clear();
            token
        })
    }

    /// Drops all sessions without a connection, as if they had expired.
    pub fn forget_left_sessions(&self) {
        self.with(|state| state.gateway.sessions.retain(|_, session| session.connection.is_some()));
    }

    fn on_shard(&self, shard: u64, mut act: impl FnMut(&mut State, usize)) {
        self.with(|state| {
            for connection in state.serving(shard) {
                act(state, connection);
            }
        });
    }
}

impl State {
    fn change_connection(&mut self, number: usize, change: impl FnOnce(&mut Connection)) {
        if let Some(connection) = self.gateway.connections.get_mut(&number) {
            change(connection);
        }
    }
}
