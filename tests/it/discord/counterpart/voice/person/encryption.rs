//! The end-to-end encryption of a person.
//!
//! <https://daveprotocol.com>

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use davey::{DaveSession, MediaType, ProposalsOperationType};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::super::super::Id;

pub struct Encryption {
    user: Id,
    channel: Id,
    /// The version in use.
    version: u16,
    /// The version of the group, which may not be in use yet.
    group_version: u16,
    session: Option<DaveSession>,
    /// The users who may be in the group.
    expected: BTreeSet<u64>,
    /// A transition that goes to another version.
    changes: Option<(u16, u16)>,
}

impl Encryption {
    pub fn new(user: Id, channel: Id, version: u16) -> Self {
        let expected = BTreeSet::from([user.0]);
        Self { user, channel, version, group_version: version, session: None, expected, changes: None }
    }

    /// Begins a local group. Returns the key package, if there is encryption.
    pub fn begin_group(&mut self) -> Option<Vec<u8>> {
        let version = NonZeroU16::new(self.group_version)?;
        match &mut self.session {
            Some(session) => session.reinit(version, self.user.0, self.channel.0, None).expect("a known version"),
            none => *none = Some(DaveSession::new(version, self.user.0, self.channel.0, None).expect("a known version")),
        }
        self.session.as_mut()?.create_key_package().ok()
    }

    pub fn expect(&mut self, users: &[Id]) {
        self.expected.extend(users.iter().map(|user| user.0));
    }

    pub fn expect_no_longer(&mut self, user: Id) {
        self.expected.remove(&user.0);
    }

    pub fn group(&self) -> BTreeSet<Id> {
        let established = self.session.as_ref().filter(|_| self.epoch() > 0);
        established.and_then(DaveSession::get_user_ids).into_iter().flatten().map(Id).collect()
    }

    fn epoch(&self) -> u64 {
        self.session.as_ref().and_then(DaveSession::epoch).map_or(0, |epoch| epoch.as_u64())
    }

    pub fn can_encrypt(&self) -> bool {
        self.version > 0 && self.session.as_ref().is_some_and(DaveSession::can_encrypt)
    }

    /// Whether frames can be end-to-end encrypted.
    pub fn has_group(&self) -> bool {
        self.session.is_some()
    }

    /// Whether frames without encryption are played.
    pub fn takes_plain(&self) -> bool {
        self.version == 0 || self.changes.is_some()
    }

    /// A frame as it is sent. None: there is no key yet.
    pub fn seal(&mut self, frame: Vec<u8>) -> Option<Vec<u8>> {
        match &mut self.session {
            Some(session) if self.version > 0 => {
                session.can_encrypt().then_some(())?;
                session.encrypt_opus(&frame).ok().map(|sealed| sealed.into_owned())
            }
            _ => Some(frame),
        }
    }

    /// Opens a frame with the key of the named user, or of any other.
    pub fn open(&mut self, named: Option<Id>, frame: &[u8]) -> Option<(Id, Vec<u8>)> {
        let session = self.session.as_mut()?;
        let others = self.expected.iter().copied().map(Id).filter(|user| *user != self.user);
        let mut tried = named.into_iter().chain(others);
        tried.find_map(|user| session.decrypt(user.0, MediaType::AUDIO, frame).ok().map(|frame| (user, frame)))
    }

    /// Handles a binary message. Returns the answers.
    pub fn received(&mut self, op: u8, payload: &[u8]) -> Vec<Message> {
        let expected: Vec<u64> = self.expected.iter().copied().collect();
        let Some(session) = &mut self.session else { return Vec::new() };
        match (op, payload) {
            (25, _) => {
                session.set_external_sender(payload).expect("an external sender");
                Vec::new()
            }
            (27, [kind, proposals @ ..]) => {
                let kind = if *kind == 0 { ProposalsOperationType::APPEND } else { ProposalsOperationType::REVOKE };
                match session.process_proposals(kind, proposals, Some(&expected)) {
                    Ok(Some(made)) => vec![binary(28, &[made.commit, made.welcome.unwrap_or_default()].concat())],
                    Ok(None) | Err(_) => Vec::new(),
                }
            }
            (29 | 30, [high, low, message @ ..]) => {
                let transition = u16::from_be_bytes([*high, *low]);
                let processed = match op {
                    29 => session.process_commit(message).map_err(drop),
                    _ => session.process_welcome(message, Some(&expected)).map(|()| true).map_err(drop),
                };
                match processed {
                    Ok(true) => self.prepare(transition, self.group_version),
                    Ok(false) => Vec::new(),
                    Err(()) => {
                        let mut answers = vec![text(31, transition)];
                        answers.extend(self.begin_group().map(|package| binary(26, &package)));
                        answers
                    }
                }
            }
            _ => Vec::new(),
        }
    }

    /// Prepares a transition (op 21, or a commit or welcome). Returns the answers.
    pub fn prepare(&mut self, transition: u16, version: u16) -> Vec<Message> {
        if let Some(session) = &mut self.session {
            session.prepare_transition(transition, version).expect("the group of the transition");
        }
        if version != self.version {
            self.changes = Some((transition, version));
        }
        if transition == 0 {
            return self.execute(0);
        }
        vec![text(23, transition)]
    }

    /// Executes a transition (op 22).
    pub fn execute(&mut self, transition: u16) -> Vec<Message> {
        if let Some(session) = self.session.as_mut().filter(|_| transition > 0) {
            session.execute_transition(transition).expect("the group of the transition");
        }
        if let Some((_, version)) = self.changes.take_if(|(changing, _)| *changing == transition) {
            self.version = version;
        }
        Vec::new()
    }

    /// Op 24. With epoch 1 a new group begins.
    pub fn prepare_epoch(&mut self, epoch: u64, version: u16) -> Vec<Message> {
        if epoch != 1 {
            return Vec::new();
        }
        self.group_version = version;
        self.begin_group().map(|package| binary(26, &package)).into_iter().collect()
    }
}

fn text(op: u64, transition: u16) -> Message {
    Message::text(json!({ "op": op, "d": { "transition_id": transition } }).to_string())
}

fn binary(op: u8, payload: &[u8]) -> Message {
    Message::Binary([&[op], payload].concat().into())
}
