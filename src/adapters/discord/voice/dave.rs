//! End-to-end encryption: the group of those who have the keys, which keys are in force, and the frames.
//!
//! The protocol is DAVE, its implementation davey. What it logs contains keys, and it warns of every frame that a key does not open, so nothing of it
//! reaches the logs.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::time::Duration;

use davey::{DaveSession, MediaType, ProposalsOperationType};
use tracing::subscriber::NoSubscriber;

use crate::domain::moment::Moment;

/// What the Opus decoder takes for silence. It is never encrypted end to end (the DAVE protocol, "Silence Packets").
pub const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];
/// The mark at the end of an encrypted frame.
const MARK: [u8; 2] = [0xfa, 0xfa];
const TAG: usize = 8;
/// The most transitions that are prepared at once.
const MOST_PREPARED: usize = 16;
/// Frames without end-to-end encryption that were under way when it came into force are taken for this long.
const PLAIN_GRACE: Duration = Duration::from_secs(2);
/// How long a change to no end-to-end encryption may stay prepared.
const DOWNGRADE_WITHIN: Duration = Duration::from_secs(10);

/// A message could not be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// A change of the group that we propose.
pub struct Change {
    /// For those who are in the group.
    pub commit: Vec<u8>,
    /// For those whom it adds. Empty if it adds nobody.
    pub welcome: Vec<u8>,
}

/// How a frame of ours is sent.
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
    /// It may come before there is a session.
    external_sender: Option<Vec<u8>>,
    /// The version of the newest group.
    version: u16,
    /// The version that our frames have.
    in_force: u16,
    /// The version of each transition that is prepared.
    prepared: BTreeMap<u16, u16>,
    /// Those whose frames there are keys for.
    keyed: BTreeSet<u64>,
    /// Until when frames without end-to-end encryption are taken, beside those of a call without it.
    plain_until: Option<Moment>,
    downgrading_until: Option<Moment>,
}

impl Dave {
    /// A call in which the server chose this version. 0: none.
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

    /// Begins another group of this version. Returns the key package with which we ask to be added to it.
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

    /// Sets by whom proposals are signed.
    pub fn set_external_sender(&mut self, sender: &[u8]) -> Result<(), Failed> {
        self.external_sender = Some(sender.to_vec());
        let Some(session) = &mut self.session else { return Ok(()) };
        match quietly(|| session.set_external_sender(sender)) {
            // It stays the same for as long as a group lives.
            Ok(()) | Err(davey::errors::SetExternalSenderError::AlreadyInGroup) => Ok(()),
            Err(_) => Err(Failed),
        }
    }

    /// Takes changes that are proposed, or withdrawn. Returns the change that follows from all of them. `users`: those who are in the call.
    pub fn proposals(&mut self, list: &[u8], withdrawn: bool, users: &[u64]) -> Result<Option<Change>, Failed> {
        let session = self.session.as_mut().ok_or(Failed)?;
        let kind = if withdrawn { ProposalsOperationType::REVOKE } else { ProposalsOperationType::APPEND };
        let made = quietly(|| session.process_proposals(kind, list, Some(users))).map_err(|_| Failed)?;
        Ok(made.map(|made| Change { commit: made.commit, welcome: made.welcome.unwrap_or_default() }))
    }

    /// Takes the change that was chosen. Returns whether the transition is prepared; otherwise it does not concern us.
    pub fn commit(&mut self, transition: u16, commit: &[u8], now: Moment) -> Result<bool, Failed> {
        let session = self.session.as_mut().ok_or(Failed)?;
        if !quietly(|| session.process_commit(commit)).map_err(|_| Failed)? {
            return Ok(false);
        }
        self.prepare(transition, self.version, now).map(|()| true)
    }

    /// Takes the group that we are part of from now on, and prepares the transition.
    pub fn welcome(&mut self, transition: u16, welcome: &[u8], users: &[u64], now: Moment) -> Result<(), Failed> {
        let session = self.session.as_mut().ok_or(Failed)?;
        quietly(|| session.process_welcome(welcome, Some(users))).map_err(|_| Failed)?;
        self.prepare(transition, self.version, now)
    }

    /// Prepares a transition: what others send is understood from now on. Transition 0 is executed at once.
    pub fn prepare(&mut self, transition: u16, version: u16, now: Moment) -> Result<(), Failed> {
        if let Some(session) = &mut self.session {
            quietly(|| session.prepare_transition(transition, version)).map_err(|_| Failed)?;
            // Without a group there are only the keys from before.
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

    /// Executes a transition: what we send follows it from now on. One that was not prepared is ignored.
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

    /// Whether frames without end-to-end encryption are taken.
    pub fn takes_plain(&self, now: Moment) -> bool {
        let is_before = |until: Moment| now < until;
        self.in_force == 0 || self.downgrading_until.is_some_and(is_before) || self.plain_until.is_some_and(is_before)
    }

    /// Whether there are keys at all.
    pub fn has_keys(&self) -> bool {
        self.session.is_some()
    }

    /// Those whose frames there are keys for.
    pub fn keyed(&self) -> impl Iterator<Item = u64> + '_ {
        self.keyed.iter().copied()
    }

    /// Encrypts a frame of ours. Nothing if there is no key. Silence is left as it is.
    pub fn encrypt(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let session = self.session.as_mut().filter(|session| session.can_encrypt())?;
        quietly(|| session.encrypt_opus(frame)).ok().map(std::borrow::Cow::into_owned)
    }

    /// Decrypts a frame with the keys of this person.
    pub fn decrypt(&mut self, user: u64, frame: &[u8]) -> Option<Vec<u8>> {
        let session = self.session.as_mut().filter(|_| is_encrypted(frame))?;
        quietly(|| session.decrypt(user, MediaType::AUDIO, frame)).ok().filter(|opened| !opened.is_empty())
    }
}

/// Whether a frame is one of the protocol, for Opus (the DAVE protocol, "Protocol Frame Check" and "Payload Format"): the tag, the nonce, no ranges,
/// the length of these, and the mark.
pub fn is_encrypted(frame: &[u8]) -> bool {
    let [.., length, first, second] = *frame else { return false };
    if [first, second] != MARK {
        return false;
    }
    let Some(start) = frame.len().checked_sub(usize::from(length)) else { return false };
    let Some(nonce) = frame.get(start + TAG..frame.len() - MARK.len() - 1) else { return false };
    // A number in groups of seven bits: all but the last have the highest bit set.
    start > 0
        && (1..=5).contains(&nonce.len())
        && nonce.iter().rev().enumerate().all(|(at, byte)| (byte & 0x80 == 0) == (at == 0))
}

fn quietly<T>(work: impl FnOnce() -> T) -> T {
    tracing::subscriber::with_default(NoSubscriber::default(), work)
}
