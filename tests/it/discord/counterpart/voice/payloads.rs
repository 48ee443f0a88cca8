//! Payloads from clients of the voice gateway, and invalid ones.
//!
//! <https://docs.discord.com/developers/topics/opcodes-and-status-codes#voice>

use rand::Rng as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::faults::{Faults, Speaking};
use super::journal::{Identified, Resumed};
use super::sessions::{Grant, Seat, Session};
use super::transport::Cipher;
use super::{Mode, Voice};
use crate::discord::counterpart::Id;

impl Voice {
    /// Handles a payload. Returns whether it was a heartbeat.
    pub fn received(&mut self, number: usize, text: &str) -> bool {
        let Some(seat) = self.admitted(number) else { return false };
        let payload: Value = serde_json::from_str(text).unwrap_or_default();
        let data = &payload["d"];
        match (payload["op"].as_u64(), seat) {
            (None, _) => self.close(number, 4002, "Failed to decode payload."),
            (Some(0 | 7), Some(_)) => self.close(number, 4005, "Already authenticated."),
            (Some(0), None) => self.identify(number, data),
            (Some(7), None) => self.resume(number, data),
            // Heartbeats start with HELLO, so they can precede IDENTIFY.
            (Some(3), _) => {
                self.heartbeat(number, data);
                return true;
            }
            (Some(1 | 5 | 23 | 31), None) => self.close(number, 4003, "Not authenticated."),
            (Some(1), Some(seat)) => self.select_protocol(number, seat, data),
            (Some(5), Some(seat)) => self.speak(number, seat, data),
            (Some(op @ (23 | 31)), Some(seat)) => match data["transition_id"].as_u64() {
                Some(transition) if op == 23 => self.ready_for(seat, transition),
                Some(transition) => self.reported_invalid(seat, transition),
                None => self.close(number, 4020, "Bad request."),
            },
            (Some(_), _) => self.close(number, 4001, "Unknown opcode."),
        }
        false
    }

    /// Handles a binary payload.
    pub fn received_binary(&mut self, number: usize, bytes: &[u8]) {
        let Some(seat) = self.admitted(number) else { return };
        let Some(seat) = seat else { return self.close(number, 4003, "Not authenticated.") };
        match bytes.split_first() {
            Some((26, payload)) => {
                if self.received_package(seat, payload).is_err() {
                    self.close(number, 4020, "Bad request.");
                }
            }
            Some((28, payload)) => self.received_commit(seat, payload),
            Some(_) => self.close(number, 4001, "Unknown opcode."),
            None => self.close(number, 4002, "Failed to decode payload."),
        }
    }

    /// Counts a payload against the limit. Returns whose connection it is, if the connection is still open.
    fn admitted(&mut self, number: usize) -> Option<Option<Seat>> {
        let (sends, window) = (self.rules.sends, self.rules.sends_window);
        let connection = self.connections.get_mut(&number)?;
        connection.sends.retain(|sent| sent.elapsed() < window);
        connection.sends.push_back(Instant::now());
        let seat = connection.seat;
        if connection.sends.len() > sends {
            self.close(number, 4021, "Disconnected: rate limited.");
            return None;
        }
        Some(seat)
    }

    fn heartbeat(&mut self, number: usize, data: &Value) {
        let Some(connection) = self.connections.get(&number) else { return };
        let (seat, unacknowledged) = (connection.seat, connection.unacknowledged);
        if !data["t"].is_u64() {
            return self.close(number, 4020, "Bad request.");
        }
        if let Some(seat) = seat {
            self.count(seat).heartbeats += 1;
        }
        if !unacknowledged {
            self.send_unnumbered(number, 6, json!({ "t": data["t"] }));
        }
    }

    fn identify(&mut self, number: usize, data: &Value) {
        let Some((guild, user, session, token)) = Self::credentials(data) else {
            return self.close(number, 4002, "Failed to decode payload.");
        };
        let Some(user) = user else { return self.close(number, 4002, "Failed to decode payload.") };
        let max_dave = data["max_dave_protocol_version"].as_u64().unwrap_or_default();
        self.journal.identifies.push(Identified { user });
        let grant = match self.granted(number, guild, Some(user), session, token) {
            Ok(grant) => grant,
            Err((code, reason)) => return self.close(number, code, reason),
        };
        if self.rules.requires_dave && max_dave == 0 {
            return self.close(number, 4017, "E2EE/DAVE protocol required.");
        }
        let seat = grant.seat;
        if let Some(before) = self.sessions.get(&seat).and_then(|session| session.connection) {
            self.close(before, 4006, "Session no longer valid.");
        }
        self.sessions.remove(&seat);
        let mut key = [0; 32];
        self.rng.fill_bytes(&mut key);
        let ssrc = 1_000 + u32::try_from(self.number()).expect("few sessions");
        let server = grant.server;
        self.sessions.insert(seat, Session::new(grant, max_dave, ssrc, key));
        self.attach(seat, number);
        let audio = self.servers[server].1.local_addr().expect("a bound socket has an address");
        let modes: Vec<&str> = self.rules.modes.iter().map(|mode| mode.name()).collect();
        // The heartbeat interval is the erroneous field that the documentation warns of.
        let (ip, port) = (audio.ip().to_string(), audio.port());
        self.send(seat, 2, json!({ "ssrc": ssrc, "ip": ip, "port": port, "modes": modes, "heartbeat_interval": 1 }));
        if self.rules.clients_before_description {
            self.tell_clients(seat);
        }
    }

    /// Server, user, session and token of an IDENTIFY or RESUME.
    fn credentials(data: &Value) -> Option<(Id, Option<Id>, &str, &str)> {
        let guild = Id::read(&data["server_id"])?;
        Some((guild, Id::read(&data["user_id"]), data["session_id"].as_str()?, data["token"].as_str()?))
    }

    /// The grant with this token, if everything else fits.
    fn granted(
        &self,
        number: usize,
        guild: Id,
        user: Option<Id>,
        session: &str,
        token: &str,
    ) -> Result<Grant, (u16, &'static str)> {
        if self.revoked.contains(token) {
            return Err((4006, "Session no longer valid."));
        }
        let grant = self.grants.get(token).ok_or((4004, "Authentication failed."))?;
        if grant.guild != guild || grant.session != session || user.is_some_and(|user| grant.seat.user != user) {
            return Err((4006, "Session no longer valid."));
        }
        if self.connections.get(&number).is_none_or(|connection| connection.server != grant.server) {
            return Err((4011, "Server not found."));
        }
        Ok(grant.clone())
    }

    /// <https://docs.discord.com/developers/topics/voice-connections#resuming-voice-connection>
    fn resume(&mut self, number: usize, data: &Value) {
        let acknowledged = match &data["seq_ack"] {
            Value::Null => Ok(None),
            acknowledged => match acknowledged.as_i64() {
                Some(-1) => Ok(None),
                acknowledged => acknowledged.and_then(|number| u16::try_from(number).ok()).map(Some).ok_or(()),
            },
        };
        let (Some((guild, _, session, token)), Ok(acknowledged)) = (Self::credentials(data), acknowledged) else {
            return self.close(number, 4020, "Bad request.");
        };
        let grant = self.granted(number, guild, None, session, token);
        let failing = Faults::take(&mut self.faults.failing_resumes);
        let missed = grant.as_ref().ok().filter(|_| !failing).and_then(|grant| self.missed(grant.seat, acknowledged));
        let user = grant.as_ref().ok().map(|grant| grant.seat.user);
        let replayed = missed.as_ref().map(Vec::len);
        self.journal.resumes.push(Resumed { at: Instant::now(), user, replayed });
        let (grant, missed) = match (grant, missed) {
            (Ok(grant), Some(missed)) => (grant, missed),
            (Err((code, reason)), _) => return self.close(number, code, reason),
            (Ok(grant), None) => {
                self.leave_for_good(grant.seat);
                return self.close(number, 4006, "Session no longer valid.");
            }
        };
        self.attach(grant.seat, number);
        if self.rules.resumed_first {
            self.send_unnumbered(number, 9, Value::Null);
            self.replay(number, missed);
        } else {
            self.replay(number, missed);
            self.send_unnumbered(number, 9, Value::Null);
        }
    }

    /// Ends a session that cannot be resumed. Its token stays valid for another IDENTIFY.
    fn leave_for_good(&mut self, seat: Seat) {
        let grant = self.sessions.get(&seat).map(|session| session.grant.clone());
        self.leave(seat);
        if let Some(grant) = grant {
            self.revoked.remove(&grant.token);
            self.grants.insert(grant.token.clone(), grant);
        }
    }

    fn select_protocol(&mut self, number: usize, seat: Seat, data: &Value) {
        if data["protocol"] != "udp" {
            return self.close(number, 4012, "Unknown protocol.");
        }
        let data = &data["data"];
        let address = data["address"].as_str().and_then(|address| address.parse().ok());
        let port = data["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let (Some(address), Some(port)) = (address, port) else { return self.close(number, 4020, "Bad request.") };
        let mode: Option<Mode> = self.rules.modes.iter().copied().find(|mode| data["mode"] == mode.name());
        let Some(mode) = mode else { return self.close(number, 4016, "Unknown encryption mode.") };
        let Some(session) = self.sessions.get_mut(&seat) else { return };
        if session.cipher.is_some() {
            return self.close(number, 4020, "Bad request.");
        }
        session.cipher = Some(Cipher::new(mode, session.key));
        session.address = Some(std::net::SocketAddr::new(address, port));
        let (key, supports) = (session.key, session.max_dave > 0);
        let version = self.version_with(seat.channel, supports);
        self.send(
            seat,
            4,
            json!({
                "mode": mode.name(),
                "secret_key": key,
                "dave_protocol_version": version,
                "audio_codec": "opus",
                "media_session_id": format!("media-{}", self.made),
            }),
        );
        if !self.rules.clients_before_description {
            self.tell_clients(seat);
        }
        let others: Vec<Id> = self.members(seat.channel).into_iter().filter(|user| *user != seat.user).collect();
        for user in others {
            self.send(Seat { user, ..seat }, 11, json!({ "user_ids": [seat.user] }));
            if let Some(speaking) = self.sessions.get(&Seat { user, ..seat }).and_then(|session| session.speaking) {
                self.tell_speaking(Seat { user, ..seat }, Some(seat.user), speaking);
            }
        }
        self.joined_group(seat, version);
    }

    /// Tells a member who else is in the call.
    fn tell_clients(&mut self, seat: Seat) {
        let users: Vec<Id> = self.members(seat.channel).into_iter().filter(|user| *user != seat.user).collect();
        if !users.is_empty() {
            self.send(seat, 11, json!({ "user_ids": users }));
        }
    }

    fn speak(&mut self, number: usize, seat: Seat, data: &Value) {
        let Some(speaking) = data["speaking"].as_u64() else { return self.close(number, 4020, "Bad request.") };
        let Some(session) = self.sessions.get_mut(&seat) else { return };
        if data["ssrc"].as_u64().is_none_or(|ssrc| ssrc != u64::from(session.ssrc)) {
            return self.close(number, 4020, "Bad request.");
        }
        session.speaking = Some(speaking);
        match self.faults.speaking.get(&seat).copied().unwrap_or_default() {
            Speaking::Late(delay) => self.later(delay, move |voice| voice.tell_speaking(seat, None, speaking)),
            _ => self.tell_speaking(seat, None, speaking),
        }
    }

    /// Tells one other member, or all, in which modes a member speaks.
    pub fn tell_speaking(&mut self, seat: Seat, to: Option<Id>, speaking: u64) {
        let named = match self.faults.speaking.get(&seat) {
            Some(Speaking::Missing) => return,
            Some(Speaking::Names(other)) => *other,
            _ => seat.user,
        };
        let Some(ssrc) = self.sessions.get(&seat).map(|session| session.shown_ssrc) else { return };
        let others = self.members(seat.channel).into_iter().filter(|user| *user != seat.user);
        for user in others.filter(|user| to.is_none_or(|to| to == *user)).collect::<Vec<Id>>() {
            let data = json!({ "speaking": speaking, "delay": 0, "ssrc": ssrc, "user_id": named });
            self.send(Seat { user, ..seat }, 5, data);
        }
    }
}
