//! End-to-end encryption of a call: the group that shares the keys, the transitions between keys, and the encryption of frames.
//!
//! The protocol is DAVE, its implementation is davey. davey logs keys, and a warning for every frame that a key does not decrypt, so its logs are
//! suppressed.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::time::Duration;

use davey::{DaveSession, MediaType, ProposalsOperationType};
use tracing::subscriber::NoSubscriber;

use crate::domain::moment::Moment;

/// A frame of silence for the Opus decoder. It is never encrypted end to end (the DAVE protocol, "Silence Packets").
pub const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];
/// The marker at the end of an encrypted frame.
const MARK: [u8; 2] = [0xfa, 0xfa];
const TAG: usize = 8;
/// The limit of transitions prepared at once.
const MOST_PREPARED: usize = 16;
/// How long unencrypted frames are accepted after end-to-end encryption came into force, because they may have been in flight.
const PLAIN_GRACE: Duration = Duration::from_secs(2);
/// How long unencrypted frames are accepted after a transition to no end-to-end encryption was prepared.
const DOWNGRADE_WITHIN: Duration = Duration::from_secs(10);

/// A message could not be processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// A change of the group that we commit.
pub struct Change {
    /// For the current members.
    pub commit: Vec<u8>,
    /// For the members that the change adds. Empty if it adds none.
    pub welcome: Vec<u8>,
}

/// How an outgoing frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The call has no end-to-end encryption.
    Plain,
    Encrypted,
    /// Not yet: there is no key.
    Held,
}

pub struct Dave {
    user: u64,
    channel: u64,
    session: Option<DaveSession>,
    /// The key that signs the server's proposals. It may arrive before there is a session.
    external_sender: Option<Vec<u8>>,
    /// The version of the newest group. 0: none.
    version: u16,
    /// The version of outgoing frames. 0: not encrypted.
    in_force: u16,
    /// The version of each prepared transition.
    prepared: BTreeMap<u16, u16>,
    /// The users whose frames we have keys for.
    keyed: BTreeSet<u64>,
    /// Until when unencrypted frames are accepted after an upgrade.
    plain_until: Option<Moment>,
    downgrading_until: Option<Moment>,
}

impl Dave {
    /// `version` is the one that the server chose for the call. 0: no end-to-end encryption.
    pub fn new(user: u64, channel: u64, version: u16) -> Self {
        Self {
            user,
            channel,
            session: None,
            external_sender: None,
            version,
            in_force: version,
            prepared: BTreeMap::new(),
            keyed: BTreeSet::new(),
            plain_until: None,
            downgrading_until: None,
        }
    }

    /// Begins a new group of this version. Returns the key package for joining it, or `None` for version 0, which has no group.
    pub fn begin_group(&mut self, version: u16) -> Result<Option<Vec<u8>>, Failed> {
        let Some(number) = NonZeroU16::new(version) else { return Ok(None) };
        let Self { user, channel, .. } = *self;
        quietly(|| {
            match &mut self.session {
                Some(session) => session.reinit(number, user, channel, None).map_err(|_| Failed)?,
                none => {
                    let session = none.insert(DaveSession::new(number, user, channel, None).map_err(|_| Failed)?);
                    if let Some(sender) = &self.external_sender {
                        session.set_external_sender(sender).map_err(|_| Failed)?;
                    }
                }
            }
            self.version = version;
            self.session.as_mut().ok_or(Failed)?.create_key_package().map(Some).map_err(|_| Failed)
        })
    }

    /// Begins the group again after a failure.
    pub fn begin_again(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        self.begin_group(self.version)
    }

    /// Sets the key that signs the server's proposals.
    pub fn set_external_sender(&mut self, sender: &[u8]) -> Result<(), Failed> {
        self.external_sender = Some(sender.to_vec());
        let Some(session) = &mut self.session else { return Ok(()) };
        match quietly(|| session.set_external_sender(sender)) {
            // It does not change during the life of a group.
            Ok(()) | Err(davey::errors::SetExternalSenderError::AlreadyInGroup) => Ok(()),
            Err(_) => Err(Failed),
        }
    }

    /// Applies proposals, or withdraws them. Returns the commit that results from all of them. `users`: the users in the call.
    pub fn proposals(&mut self, list: &[u8], withdrawn: bool, users: &[u64]) -> Result<Option<Change>, Failed> {
        let session = self.session.as_mut().ok_or(Failed)?;
        let kind = if withdrawn { ProposalsOperationType::REVOKE } else { ProposalsOperationType::APPEND };
        let made = quietly(|| session.process_proposals(kind, list, Some(users))).map_err(|_| Failed)?;
        Ok(made.map(|made| Change { commit: made.commit, welcome: made.welcome.unwrap_or_default() }))
    }

    /// Applies the commit that the server chose, and prepares its transition. Returns false if the commit does not concern us.
    pub fn commit(&mut self, transition: u16, commit: &[u8], now: Moment) -> Result<bool, Failed> {
        let session = self.session.as_mut().ok_or(Failed)?;
        if !quietly(|| session.process_commit(commit)).map_err(|_| Failed)? {
            return Ok(false);
        }
        self.prepare(transition, self.version, now).map(|()| true)
    }

    /// Joins a group, and prepares the transition.
    pub fn welcome(&mut self, transition: u16, welcome: &[u8], users: &[u64], now: Moment) -> Result<(), Failed> {
        let session = self.session.as_mut().ok_or(Failed)?;
        quietly(|| session.process_welcome(welcome, Some(users))).map_err(|_| Failed)?;
        self.prepare(transition, self.version, now)
    }

    /// Prepares a transition: from now on, frames with the new keys can be decrypted. Transition 0 is executed at once.
    pub fn prepare(&mut self, transition: u16, version: u16, now: Moment) -> Result<(), Failed> {
        if let Some(session) = &mut self.session {
            quietly(|| session.prepare_transition(transition, version)).map_err(|_| Failed)?;
            // Before we are in a group, only the earlier keys exist.
            if version != 0 && session.epoch().is_some_and(|epoch| epoch.as_u64() != 0) {
                self.keyed = session.get_user_ids().unwrap_or_default().into_iter().filter(|user| *user != self.user).collect();
            }
        }
        if version == 0 {
            self.downgrading_until = Some(now + DOWNGRADE_WITHIN);
        }
        self.prepared.insert(transition, version);
        if transition == 0 {
            return self.execute(0, now);
        }
        while self.prepared.len() > MOST_PREPARED {
            self.prepared.pop_first();
        }
        Ok(())
    }

    /// Executes a transition: from now on, outgoing frames use its keys. A transition that was not prepared is ignored.
    pub fn execute(&mut self, transition: u16, now: Moment) -> Result<(), Failed> {
        let Some(version) = self.prepared.remove(&transition) else { return Ok(()) };
        if let Some(session) = &mut self.session
            && transition != 0
        {
            quietly(|| session.execute_transition(transition)).map_err(|_| Failed)?;
        }
        if self.in_force == 0 && version != 0 {
            self.plain_until = Some(now + PLAIN_GRACE);
        }
        self.in_force = version;
        if version == 0 {
            self.downgrading_until = None;
        }
        Ok(())
    }

    /// How frames are sent now.
    pub fn sending(&self) -> Sending {
        match &self.session {
            _ if self.in_force == 0 => Sending::Plain,
            Some(session) if session.can_encrypt() => Sending::Encrypted,
            _ => Sending::Held,
        }
    }

    /// Whether the call has end-to-end encryption.
    pub fn is_end_to_end(&self) -> bool {
        self.in_force != 0
    }

    /// Whether unencrypted frames are accepted.
    pub fn takes_plain(&self, now: Moment) -> bool {
        let is_before = |until: Moment| now < until;
        self.in_force == 0 || self.downgrading_until.is_some_and(is_before) || self.plain_until.is_some_and(is_before)
    }

    /// Whether there is a session with a group, and so there may be keys.
    pub fn has_keys(&self) -> bool {
        self.session.is_some()
    }

    /// The users whose frames we have keys for.
    pub fn keyed(&self) -> impl Iterator<Item = u64> + '_ {
        self.keyed.iter().copied()
    }

    /// Encrypts an outgoing frame. Silence is not encrypted. Returns `None` if there is no key.
    pub fn encrypt(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let session = self.session.as_mut().filter(|session| session.can_encrypt())?;
        quietly(|| session.encrypt_opus(frame)).ok().map(std::borrow::Cow::into_owned)
    }

    /// Decrypts a frame with the keys of a user. Returns `None` if they do not fit.
    pub fn decrypt(&mut self, user: u64, frame: &[u8]) -> Option<Vec<u8>> {
        let session = self.session.as_mut().filter(|_| is_encrypted(frame))?;
        quietly(|| session.decrypt(user, MediaType::AUDIO, frame)).ok().filter(|opened| !opened.is_empty())
    }
}

/// Whether a frame is an encrypted Opus frame (the DAVE protocol, "Protocol Frame Check" and "Payload Format"). It ends with the tag, the nonce, no
/// ranges, the length of these fields, and the marker.
pub fn is_encrypted(frame: &[u8]) -> bool {
    let [.., length, first, second] = *frame else { return false };
    if [first, second] != MARK {
        return false;
    }
    let Some(start) = frame.len().checked_sub(usize::from(length)) else { return false };
    let Some(nonce) = frame.get(start + TAG..frame.len() - MARK.len() - 1) else { return false };
    // The nonce is a LEB128 number: all bytes except the last have the highest bit set.
    start > 0
        && (1..=5).contains(&nonce.len())
        && nonce.iter().rev().enumerate().all(|(at, byte)| (byte & 0x80 == 0) == (at == 0))
}

fn quietly<T>(work: impl FnOnce() -> T) -> T {
    tracing::subscriber::with_default(NoSubscriber::default(), work)
}
