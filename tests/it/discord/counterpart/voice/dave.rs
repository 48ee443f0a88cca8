//! The delivery service of end-to-end encryption: members of the group, proposals, and the choice of commits.
//!
//! It keeps what Discord says that it keeps: the epoch, and which member is at which leaf. It knows no key of the group.
//!
//! <https://daveprotocol.com/#group-key-exchange>

mod commits;
mod transitions;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::super::Id;
use super::Voice;
use super::mls::{Package, Proposal, vector};
use super::sessions::Seat;
use transitions::Transition;

/// The newest version of the protocol.
pub const VERSION: u64 = 1;

/// The group of a call.
#[derive(Default)]
pub struct Group {
    /// The version that the call uses or goes to. 0: only transport encryption.
    pub version: u64,
    /// 0: the group is not established.
    pub epoch: u64,
    /// The members by leaf.
    leaves: Vec<Option<Id>>,
    /// The key packages with which they joined.
    packages: BTreeMap<Id, Package>,
    /// The key packages of users who wait to be added.
    pending: BTreeMap<Id, Package>,
    /// Members who must be removed.
    leaving: BTreeSet<Id>,
    /// The proposals of this epoch that are not revoked, in order.
    proposals: Vec<Proposed>,
    /// Proposals that a test injected and that no commit may reference.
    strays: Vec<Proposal>,
    transition: Option<Transition>,
    last_transition: u16,
    /// Whether proposals are being collected.
    collecting: bool,
    /// Whether the group is being created while audio flows without it, so that its first commit needs a transition.
    upgrading: bool,
}

struct Proposed {
    change: Change,
    proposal: Proposal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Add(Id),
    Remove(Id),
}

impl Group {
    /// The members of the established group.
    pub fn members(&self) -> Vec<Id> {
        self.leaves.iter().copied().flatten().collect()
    }

    /// Whether every proposal is settled and no transition is in progress.
    pub fn is_settled(&self) -> bool {
        self.transition.is_none() && !self.collecting && self.leaving.is_empty() && (self.proposals.is_empty() || self.epoch == 0)
    }

    /// The members who receive proposals and make commits.
    fn committing(&self) -> Vec<Id> {
        self.members().into_iter().filter(|user| !self.leaving.contains(user)).collect()
    }

    /// A group that is not established.
    fn reset(&mut self) {
        *self = Self { version: self.version, last_transition: self.last_transition, ..Self::default() };
    }

    fn proposes(&self, change: Change) -> bool {
        self.proposals.iter().any(|proposed| proposed.change == change)
    }
}

impl Voice {
    fn group(&mut self, channel: Id) -> &mut Group {
        self.groups.entry(channel).or_default()
    }

    /// The version of a call, when this member is in it.
    pub fn version_with(&self, channel: Id, supports: bool) -> u64 {
        let mut sessions = self.sessions.values().filter(|session| session.grant.seat.channel == channel);
        let all = supports && sessions.all(|session| session.cipher.is_none() || session.max_dave >= VERSION);
        if all { VERSION } else { 0 }
    }

    /// A member has received its session description, with this version.
    pub fn joined_group(&mut self, seat: Seat, version: u64) {
        let before = std::mem::replace(&mut self.group(seat.channel).version, version);
        if version == 0 {
            if before > 0 {
                self.downgrade(seat.channel);
            }
            return;
        }
        self.send_external_sender(seat);
        let group = self.group(seat.channel);
        if group.epoch == 0 && !group.proposals.is_empty() {
            let messages: Vec<Vec<u8>> = group.proposals.iter().map(|proposed| proposed.proposal.message.clone()).collect();
            self.send_proposals(seat, &messages);
        }
    }

    /// Op 25. Once for each session.
    fn send_external_sender(&mut self, seat: Seat) {
        let package = self.sender.package();
        let Some(session) = self.sessions.get_mut(&seat) else { return };
        if !std::mem::replace(&mut session.knows_sender, true) {
            self.send_binary(seat, 25, &package);
        }
    }

    /// Op 27, which appends.
    fn send_proposals(&mut self, seat: Seat, messages: &[Vec<u8>]) {
        if !messages.is_empty() {
            self.send_binary(seat, 27, &[&[0][..], &vector(&messages.concat())].concat());
        }
    }

    /// Op 27, which revokes.
    fn revoke_proposals(&mut self, channel: Id, references: &[Vec<u8>], about: Option<Id>) {
        let group = self.group(channel);
        let mut to = if group.epoch == 0 { self.members(channel) } else { group.committing() };
        // Nobody was sent the proposal about themselves.
        to.retain(|user| Some(*user) != about);
        let list: Vec<u8> = references.iter().flat_map(|reference| vector(reference)).collect();
        for user in to {
            self.send_binary(Seat { channel, user }, 27, &[&[1][..], &vector(&list)].concat());
        }
    }

    /// A member sent a key package (op 26).
    ///
    /// # Errors
    ///
    /// The key package is refused.
    pub fn received_package(&mut self, seat: Seat, payload: &[u8]) -> Result<(), &'static str> {
        let package = self.sender.read_package(payload, seat.user)?;
        let group = self.group(seat.channel);
        if group.version == 0 {
            return Ok(());
        }
        if group.members().contains(&seat.user) {
            group.leaving.insert(seat.user);
        }
        group.pending.insert(seat.user, package);
        self.withdraw(seat);
        self.propose(seat.channel);
        Ok(())
    }

    /// Revokes the proposal to add a user, if there is one.
    fn withdraw(&mut self, seat: Seat) {
        let group = self.group(seat.channel);
        let add = group.proposals.iter().position(|proposed| proposed.change == Change::Add(seat.user));
        if let Some(add) = add {
            let reference = group.proposals.remove(add).proposal.reference;
            self.revoke_proposals(seat.channel, &[reference], Some(seat.user));
        }
    }

    /// A member reports that it could not process a commit or a welcome (op 31). It is removed, and added again with its next key package.
    ///
    /// <https://daveprotocol.com/#recovery-from-invalid-commit-or-welcome>
    pub fn reported_invalid(&mut self, seat: Seat, transition: u64) {
        self.journal.reported.push((seat.user, transition));
        let group = self.group(seat.channel);
        if group.members().contains(&seat.user) {
            group.leaving.insert(seat.user);
            group.pending.remove(&seat.user);
            self.no_longer_waited_for(seat);
            self.propose(seat.channel);
        }
    }

    /// A session ended.
    pub fn left_group(&mut self, seat: Seat) {
        let channel = seat.channel;
        let remaining = self.members(channel);
        if remaining.is_empty() {
            self.groups.remove(&channel);
            return;
        }
        let version = self.version_with(channel, true);
        let group = self.group(channel);
        group.pending.remove(&seat.user);
        if group.version < version {
            return self.upgrade(channel);
        }
        let was_member = group.members().contains(&seat.user);
        if was_member {
            group.leaving.insert(seat.user);
        }
        if let (true, [sole]) = (version > 0 && was_member, &*group.committing()) {
            return self.reset_for_sole_member(channel, *sole);
        }
        self.withdraw(seat);
        self.no_longer_waited_for(seat);
        self.propose(channel);
    }

    /// One member remains, who must not keep control of the group: a new one begins.
    ///
    /// <https://daveprotocol.com/#sole-member-reset>
    fn reset_for_sole_member(&mut self, channel: Id, user: Id) {
        let group = self.group(channel);
        let mut pending = std::mem::take(&mut group.pending);
        pending.remove(&user);
        group.reset();
        group.pending = pending;
        let (seat, version) = (Seat { channel, user }, group.version);
        self.send(seat, 24, json!({ "protocol_version": version, "epoch": 1 }));
        self.send(seat, 21, json!({ "protocol_version": version, "transition_id": 0 }));
        self.propose(channel);
    }

    /// Proposes what changes, now or after a while.
    fn propose(&mut self, channel: Id) {
        let delay = self.rules.proposal_delay;
        if delay.is_zero() {
            return self.propose_now(channel);
        }
        if !std::mem::replace(&mut self.group(channel).collecting, true) {
            self.later(delay, move |voice| {
                if let Some(group) = voice.groups.get_mut(&channel) {
                    group.collecting = false;
                    voice.propose_now(channel);
                }
            });
        }
    }

    /// Proposes every change that is wanted and not yet proposed, unless a transition is in progress.
    fn propose_now(&mut self, channel: Id) {
        let Some(group) = self.groups.get(&channel).filter(|group| group.version > 0 && group.transition.is_none()) else {
            return;
        };
        let committing = if group.epoch == 0 { self.members(channel) } else { group.committing() };
        if group.epoch > 0 && committing.is_empty() {
            return self.create_anew(channel);
        }
        let mut wanted = Vec::new();
        for (leaf, user) in group.leaves.iter().enumerate() {
            if let Some(user) = user.filter(|user| group.leaving.contains(user) && !group.proposes(Change::Remove(*user))) {
                let proposal = self.sender.remove(channel, group.epoch, leaf as u32);
                wanted.push(Proposed { change: Change::Remove(user), proposal });
            }
        }
        for (user, package) in &group.pending {
            if !group.proposes(Change::Add(*user)) {
                let proposal = self.sender.add(channel, group.epoch, package);
                wanted.push(Proposed { change: Change::Add(*user), proposal });
            }
        }
        for user in committing {
            // Before the group is established, nobody is proposed to themselves.
            let for_them = wanted.iter().filter(|proposed| proposed.change != Change::Add(user));
            let messages: Vec<Vec<u8>> = for_them.map(|proposed| proposed.proposal.message.clone()).collect();
            self.send_proposals(Seat { channel, user }, &messages);
        }
        self.group(channel).proposals.extend(wanted);
    }

    /// Begins a new group with all members of the call.
    fn create_anew(&mut self, channel: Id) {
        let group = self.group(channel);
        let version = group.version;
        group.reset();
        for user in self.members(channel) {
            self.send(Seat { channel, user }, 24, json!({ "protocol_version": version, "epoch": 1 }));
            self.send_external_sender(Seat { channel, user });
        }
    }
}
