//! Payloads from a client: IDENTIFY, RESUME, heartbeats, and invalid ones.
//!
//! <https://docs.discord.com/developers/events/gateway>, <https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway>

use serde_json::{Value, json};
use tokio::time::Instant;

use super::faults::take;
use super::journal::{Identified, Resumed};
use super::sessions::Session;
use super::{Event, Guild, Intents, Place, State};

/// Intents that the application's owner must enable in the portal.
const PRIVILEGED: Intents = Intents::GUILD_MEMBERS.union(Intents::GUILD_PRESENCES).union(Intents::MESSAGE_CONTENT);

/// The kind of a payload, as far as the connection's task needs it.
#[derive(Debug, PartialEq, Eq)]
pub enum PayloadKind {
    Heartbeat,
    Other,
}

/// The data of an IDENTIFY.
struct Identify {
    token: String,
    shard: Option<(u64, u64)>,
    intents: Intents,
}

impl State {
    /// Handles a payload.
    pub fn received(&mut self, number: usize, text: &str) -> PayloadKind {
        let (sends, window, limit) = (self.rules.sends, self.rules.sends_window, self.rules.payload_limit);
        let Some(connection) = self.gateway.connections.get_mut(&number) else { return PayloadKind::Other };
        connection.sends.retain(|sent| sent.elapsed() < window);
        connection.sends.push_back(Instant::now());
        let identified = connection.session.is_some();
        if connection.sends.len() > sends {
            self.close(number, 4008, "Rate limited.");
        } else if text.len() > limit {
            self.close(number, 4002, "Payload too large.");
        } else {
            let payload: Value = serde_json::from_str(text).unwrap_or_default();
            match payload["op"].as_u64() {
                Some(1) => {
                    self.heartbeat(number, &payload["d"]);
                    return PayloadKind::Heartbeat;
                }
                Some(2 | 6) if identified => self.close(number, 4005, "Already authenticated."),
                Some(2) => self.identify(number, &payload["d"]),
                Some(6) => self.resume(number, &payload["d"]),
                Some(3 | 4 | 8 | 31 | 43) if !identified => self.close(number, 4003, "Not authenticated."),
                Some(3) => self.journal.presences.push(payload["d"].clone()),
                Some(4) => self.request_voice(number, &payload["d"]),
                Some(op @ (8 | 31 | 43)) => self.journal.unsupported.push(format!("gateway op {op}")),
                Some(_) => self.close(number, 4001, "Unknown opcode."),
                None => self.close(number, 4002, "Error while decoding payload."),
            }
        }
        PayloadKind::Other
    }

    fn heartbeat(&mut self, number: usize, newest: &Value) {
        let Some(connection) = self.gateway.connections.get(&number) else { return };
        let session = connection.session.as_ref().and_then(|id| self.gateway.sessions.get_mut(id));
        if let Some(session) = session {
            session.heartbeats += 1;
            session.acknowledged = session.acknowledged.max(newest.as_u64().unwrap_or_default());
        }
        if !connection.unacknowledged && !connection.silent {
            self.send(number, &json!({ "op": 11, "d": null, "s": null, "t": null }));
        }
    }

    fn identify(&mut self, number: usize, data: &Value) {
        let Some(identify) = Identify::read(data) else {
            return self.close(number, 4001, "Invalid payload for the opcode.");
        };
        let shard = identify.shard.unwrap_or((0, 1));
        let ignored = take(&mut self.faults.ignored_identifies);
        let session = (!ignored && self.accepts_identify(number, &identify)).then(|| self.start_session(number, &identify));
        let now = Instant::now();
        let presence = data["presence"].clone();
        self.journal.identifies.push(Identified { at: now, shard, session: session.clone(), presence });
        if let Some(session) = session {
            self.send_ready(&session, identify.shard);
        }
    }

    /// Whether this IDENTIFY can have a session. If not, answers the client with the reason.
    fn accepts_identify(&mut self, number: usize, identify: &Identify) -> bool {
        if identify.token != self.world.application.token {
            self.close(number, 4004, "Authentication failed.");
            return false;
        }
        if !self.count_start() {
            self.close(number, 4004, "Authentication failed.");
            return false;
        }
        let (shard, shards) = identify.shard.unwrap_or((0, 1));
        let refusal = if shards == 0 || shard >= shards || !shards.is_multiple_of(self.rules.shard_multiple) {
            Some((4010, "Invalid shard."))
        } else if !Intents::all().contains(identify.intents) {
            Some((4013, "Invalid intent(s)."))
        } else if !self.world.application.privileged.contains(identify.intents & PRIVILEGED) {
            Some((4014, "Disallowed intent(s)."))
        } else if self.world.joined().filter(|guild| guild.id.shard(shards) == shard).count() > self.rules.guilds_per_shard {
            Some((4011, "Sharding required."))
        } else {
            None
        };
        if let Some((code, reason)) = refusal {
            self.close(number, code, reason);
            return false;
        }
        let key = shard % self.rules.max_concurrency;
        let before = self.gateway.keys.insert(key, Instant::now());
        let too_soon = before.is_some_and(|before| before.elapsed() < self.rules.identify_window);
        let failing = take(&mut self.faults.failing_identifies);
        if too_soon || failing {
            self.send(number, &json!({ "op": 9, "d": false, "s": null, "t": null }));
        }
        !too_soon && !failing
    }

    /// Counts an IDENTIFY against the daily limit. Over the limit, every session ends and the token is reset.
    fn count_start(&mut self) -> bool {
        self.forget_old_starts();
        if self.gateway.starts.len() < self.rules.session_starts {
            self.gateway.starts.push_back(Instant::now());
            return true;
        }
        self.journal.token_resets += 1;
        self.world.application.token = format!("{}.{}", self.world.application.token, self.journal.token_resets);
        self.gateway.starts.clear();
        for session in std::mem::take(&mut self.gateway.sessions).into_values() {
            if let Some(connection) = session.connection {
                self.close(connection, 4003, "Not authenticated.");
            }
        }
        false
    }

    pub fn forget_old_starts(&mut self) {
        let window = self.rules.session_start_window;
        self.gateway.starts.retain(|start| start.elapsed() < window);
    }

    fn start_session(&mut self, number: usize, identify: &Identify) -> String {
        let id = super::messages::image_hash(&self.world.new_id().to_string());
        let mut session = Session::new(identify.shard.unwrap_or((0, 1)), identify.intents);
        session.connection = Some(number);
        self.gateway.sessions.insert(id.clone(), session);
        self.end_lost_voice();
        self.journal.connections[number].session = Some(id.clone());
        if let Some(connection) = self.gateway.connections.get_mut(&number) {
            connection.session = Some(id.clone());
        }
        id
    }

    /// Sends READY with every guild unavailable, and then makes the guilds available one by one.
    ///
    /// <https://docs.discord.com/developers/events/gateway#guild-availability>
    fn send_ready(&mut self, id: &str, shard: Option<(u64, u64)>) {
        let session = &self.gateway.sessions[id];
        let guilds: Vec<Guild> = self.world.joined().filter(|guild| session.covers(Place::Guild(guild.id))).cloned().collect();
        let has_guild_intent = session.intents.contains(Intents::GUILDS);
        let application = &self.world.application;
        let mut ready = json!({
            "v": 10,
            "user": self.world.users[&application.id].current_json(),
            "guilds": guilds.iter().map(|guild| json!({ "id": guild.id, "unavailable": true })).collect::<Vec<_>>(),
            "private_channels": [],
            "session_id": id,
            "resume_gateway_url": self.resume_url,
            "application": { "id": application.id, "flags": application.flags() },
        });
        if let Some((shard, shards)) = shard {
            ready["shard"] = json!([shard, shards]);
        }
        self.send_event_to(id, &Event::new("READY", Place::Elsewhere, Intents::empty(), ready));
        for guild in guilds.iter().filter(|guild| has_guild_intent && !guild.outage) {
            self.send_event_to(id, &self.guild_create(guild));
        }
    }

    /// The event that makes a guild available.
    pub fn guild_create(&self, guild: &Guild) -> Event {
        let data = self.world.guild_create(guild, self.rules.obfuscates_channels);
        Event::new("GUILD_CREATE", Place::Guild(guild.id), Intents::GUILDS, data)
    }

    fn resume(&mut self, number: usize, data: &Value) {
        let fields = (data["token"].as_str(), data["session_id"].as_str(), data["seq"].as_u64());
        let (Some(token), Some(session), Some(sequence)) = fields else {
            return self.close(number, 4001, "Invalid payload for the opcode.");
        };
        let (session, token) = (session.to_owned(), bare(token) == self.world.application.token);
        let newest = self.gateway.sessions.get(&session).map(|session| session.sequence);
        let failing = take(&mut self.faults.failing_resumes);
        let possible = token && !failing && newest.is_some_and(|newest| sequence <= newest);
        let replayed = if possible { self.replay(&session, sequence, number) } else { None };
        self.journal.resumes.push(Resumed { connection: number, sequence, replayed });
        if !token {
            self.close(number, 4004, "Authentication failed.");
        } else if !failing && newest.is_some_and(|newest| sequence > newest) {
            self.gateway.sessions.remove(&session);
            self.close(number, 4007, "Invalid seq.");
        } else if replayed.is_some() {
            self.send_event_to(&session, &Event::new("RESUMED", Place::Elsewhere, Intents::empty(), json!({})));
        } else {
            let resumable = failing && self.faults.failing_resumes_resumable;
            self.send(number, &json!({ "op": 9, "d": resumable, "s": null, "t": null }));
        }
    }
}

impl Identify {
    fn read(data: &Value) -> Option<Self> {
        let properties = data["properties"].as_object()?;
        let named = |name: &str| properties.get(name).or_else(|| properties.get(&format!("${name}")));
        ["os", "browser", "device"].iter().all(|name| named(name).is_some_and(Value::is_string)).then_some(())?;
        let threshold = data["large_threshold"].as_u64().unwrap_or(50);
        if !(50..=250).contains(&threshold) {
            return None;
        }
        let shard = match &data["shard"] {
            Value::Null => None,
            shard => match shard.as_array()?.as_slice() {
                [id, of] => Some((id.as_u64()?, of.as_u64()?)),
                _ => return None,
            },
        };
        let intents = Intents::from_bits_retain(data["intents"].as_u64()?);
        Some(Self { token: bare(data["token"].as_str()?).to_owned(), shard, intents })
    }
}

/// A token without the prefix `Bot `, which some libraries send.
fn bare(token: &str) -> &str {
    token.strip_prefix("Bot ").unwrap_or(token)
}

/// The number of shards that `/gateway/bot` recommends.
pub fn recommended_shards(state: &State) -> u64 {
    let guilds = state.world.joined().count() as u64;
    state.rules.recommended_shards.unwrap_or_else(|| guilds.div_ceil(1_000).max(1).next_multiple_of(state.rules.shard_multiple))
}

/// The limit of IDENTIFYs that `/gateway/bot` returns.
///
/// <https://docs.discord.com/developers/events/gateway#session-start-limit-object>
pub fn session_start_limit(state: &mut State) -> Value {
    state.forget_old_starts();
    let window = state.rules.session_start_window;
    let reset_after = state.gateway.starts.front().map_or(window, |first| window.saturating_sub(first.elapsed()));
    json!({
        "total": state.rules.session_starts,
        "remaining": state.rules.session_starts - state.gateway.starts.len().min(state.rules.session_starts),
        "reset_after": u64::try_from(reset_after.as_millis()).unwrap_or(u64::MAX),
        "max_concurrency": state.rules.max_concurrency,
    })
}
