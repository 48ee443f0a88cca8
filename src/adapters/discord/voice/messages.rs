//! The messages of the voice gateway, version 8 (Discord's documentation, "Voice Opcodes"; the DAVE protocol, "Voice Gateway Opcodes").
//!
//! Parsing is lenient: ids may be strings or numbers; unknown fields and messages are ignored.

use std::net::IpAddr;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::server::Server;
use super::transport::Mode;

/// The longest message that is accepted.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The newest version of DAVE that we support.
const MAX_DAVE_VERSION: u16 = 1;
/// The heartbeat interval if the server gives no valid one.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
const LONGEST_INTERVAL: Duration = Duration::from_secs(120);

/// A text message.
pub struct Message {
    /// The sequence number, which identifies a message repeated after a resume. Most messages have one.
    pub number: Option<i64>,
    pub told: Told,
}

/// The content of a text message.
pub enum Told {
    /// 8: the server expects heartbeats at this interval.
    Hello(Duration),
    /// 2: our stream, the address for datagrams, and the best encryption mode. `mode` is `None` if we support none of the server's modes.
    Ready { ssrc: u32, ip: IpAddr, port: u16, mode: Option<Mode> },
    /// 4: the key, and the version of DAVE, 0 for none.
    Description { mode: Mode, key: Box<[u8; 32]>, dave_version: u16 },
    /// 5: a user sends on this stream. With DAVE, this is not trusted.
    Speaking { user: u64, ssrc: u32 },
    /// 6.
    HeartbeatAcknowledged,
    /// 9.
    Resumed,
    /// 11 and 12: these users are in the call. Only 12 names the stream.
    Here { users: Vec<u64>, ssrc: Option<u32> },
    /// 13.
    Left(u64),
    /// 21.
    PrepareTransition { transition: u16, version: u16 },
    /// 22.
    ExecuteTransition { transition: u16 },
    /// 24. The transition is 0 if the message has none.
    PrepareEpoch { epoch: u64, version: u16, transition: u16 },
    /// A message that we do not use.
    Other,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    op: u64,
    seq: Option<i64>,
    #[serde(borrow, default)]
    d: Option<&'a RawValue>,
}

/// Parses a text message. Returns `None` if it is invalid.
pub fn parse(text: &str) -> Option<Message> {
    if text.len() > MAX_MESSAGE_BYTES {
        return None;
    }
    let Envelope { op, seq, d } = serde_json::from_str(text).ok()?;
    let data = || serde_json::from_str(d.map_or("null", RawValue::get)).unwrap_or(Value::Null);
    Some(Message { number: seq.filter(|number| *number >= 0), told: parse_data(op, data)? })
}

fn parse_data(op: u64, data: impl Fn() -> Value) -> Option<Told> {
    Some(match op {
        2 => ready(&data())?,
        4 => description(&data())?,
        5 => speaking(&data()),
        6 => Told::HeartbeatAcknowledged,
        8 => Told::Hello(interval(&data()["heartbeat_interval"])),
        9 => Told::Resumed,
        11 => Told::Here { users: data()["user_ids"].as_array()?.iter().filter_map(id).collect(), ssrc: None },
        12 => {
            let data = data();
            let ssrc = small(&data["audio_ssrc"]).filter(|ssrc| *ssrc != 0);
            Told::Here { users: vec![id(&data["user_id"])?], ssrc }
        }
        13 => Told::Left(id(&data()["user_id"])?),
        21 => {
            let data = data();
            Told::PrepareTransition { transition: small(&data["transition_id"])?, version: small(&data["protocol_version"])? }
        }
        22 => Told::ExecuteTransition { transition: small(&data()["transition_id"])? },
        24 => {
            let data = data();
            let transition = small(&data["transition_id"]).unwrap_or(0);
            Told::PrepareEpoch { epoch: id(&data["epoch"])?, version: small(&data["protocol_version"])?, transition }
        }
        _ => Told::Other,
    })
}

fn ready(data: &Value) -> Option<Told> {
    let modes = data["modes"].as_array()?.iter().filter_map(Value::as_str);
    Some(Told::Ready {
        ssrc: small(&data["ssrc"])?,
        ip: data["ip"].as_str()?.parse().ok()?,
        port: small(&data["port"]).filter(|port| *port != 0)?,
        mode: Mode::choose(modes),
    })
}

fn description(data: &Value) -> Option<Told> {
    let key: Option<Vec<u8>> = data["secret_key"].as_array()?.iter().map(small).collect();
    Some(Told::Description {
        mode: Mode::choose(data["mode"].as_str().into_iter())?,
        key: Box::new(key?.try_into().ok()?),
        dave_version: small(&data["dave_protocol_version"]).unwrap_or(0),
    })
}

fn speaking(data: &Value) -> Told {
    // A message without a user is about the server itself.
    match (id(&data["user_id"]), small(&data["ssrc"])) {
        (Some(user), Some(ssrc)) if ssrc != 0 => Told::Speaking { user, ssrc },
        _ => Told::Other,
    }
}

fn interval(millis: &Value) -> Duration {
    let interval = millis.as_f64().and_then(|millis| Duration::try_from_secs_f64(millis / 1e3).ok());
    interval.filter(|interval| !interval.is_zero()).unwrap_or(DEFAULT_INTERVAL).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
}

fn id(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn small<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    T::try_from(id(value)?).ok()
}

/// 0: begins a session.
pub fn identify(server: &Server) -> String {
    let data = json!({
        "server_id": server.guild.to_string(),
        "user_id": server.user.to_string(),
        "session_id": server.session_id.expose_secret(),
        "token": server.token.expose_secret(),
        "max_dave_protocol_version": MAX_DAVE_VERSION,
    });
    json!({"op": 0, "d": data}).to_string()
}

/// 1: sends our external address and the encryption mode.
pub fn select_protocol((address, port): (IpAddr, u16), mode: Mode) -> String {
    let data = json!({"address": address.to_string(), "port": port, "mode": mode.name()});
    json!({"op": 1, "d": {"protocol": "udp", "data": data}}).to_string()
}

/// 3: also acknowledges the newest message received.
pub fn heartbeat(nonce: u64, newest: i64) -> String {
    json!({"op": 3, "d": {"t": nonce, "seq_ack": newest}}).to_string()
}

/// 5: starts or ends audio on our stream.
pub fn speak(on: bool, ssrc: u32) -> String {
    json!({"op": 5, "d": {"speaking": u8::from(on), "delay": 0, "ssrc": ssrc}}).to_string()
}

/// 7: resumes a session after the newest message received.
pub fn resume(server: &Server, newest: i64) -> String {
    let data = json!({
        "server_id": server.guild.to_string(),
        "session_id": server.session_id.expose_secret(),
        "token": server.token.expose_secret(),
        "seq_ack": newest,
    });
    json!({"op": 7, "d": data}).to_string()
}

/// 23: a transition is prepared.
pub fn transition_ready(transition: u16) -> String {
    json!({"op": 23, "d": {"transition_id": transition}}).to_string()
}

/// 31: a commit or welcome could not be processed.
pub fn invalid_commit(transition: u16) -> String {
    json!({"op": 31, "d": {"transition_id": transition}}).to_string()
}

/// A binary message. All of them are about the DAVE group.
pub struct Binary<'a> {
    /// The sequence number, as in [`Message::number`].
    pub number: u16,
    pub told: GroupTold<'a>,
}

/// The content of a binary message.
pub enum GroupTold<'a> {
    /// 25: the key that signs the server's proposals.
    ExternalSender(&'a [u8]),
    /// 27: proposed changes of the group, or references to proposals that are withdrawn.
    Proposals { withdrawn: bool, list: &'a [u8] },
    /// 29: the commit that the server chose.
    Commit { transition: u16, commit: &'a [u8] },
    /// 30: the group that we have joined.
    Welcome { transition: u16, welcome: &'a [u8] },
    /// A message that we do not use.
    Other,
}

/// Parses a binary message. Returns `None` if it is invalid.
pub fn parse_binary(bytes: &[u8]) -> Option<Binary<'_>> {
    if bytes.len() > MAX_MESSAGE_BYTES {
        return None;
    }
    let (&[first, second, op], body) = bytes.split_first_chunk()?;
    let transition = || body.split_first_chunk().map(|(id, rest)| (u16::from_be_bytes(*id), rest));
    let told = match op {
        25 => GroupTold::ExternalSender(body),
        27 => {
            let (&kind, list) = body.split_first()?;
            GroupTold::Proposals { withdrawn: matches!((kind <= 1).then_some(kind)?, 1), list }
        }
        29 => transition().map(|(transition, commit)| GroupTold::Commit { transition, commit })?,
        30 => transition().map(|(transition, welcome)| GroupTold::Welcome { transition, welcome })?,
        _ => GroupTold::Other,
    };
    Some(Binary { number: u16::from_be_bytes([first, second]), told })
}

/// 26: asks to be added to the group.
pub fn key_package(package: &[u8]) -> Vec<u8> {
    [&[26], package].concat()
}

/// 28: a commit, with the welcome for the members that it adds.
pub fn commit_welcome(commit: &[u8], welcome: &[u8]) -> Vec<u8> {
    [&[28], commit, welcome].concat()
}
