//! Commits: which one wins an epoch, and what it changes.
//!
//! <https://daveprotocol.com/#voice-gateway-commit-validity>, <https://daveprotocol.com/#commit-ordering>

use std::collections::BTreeSet;

use super::super::super::Id;
use super::super::Voice;
use super::super::mls::{Commit, Package, Welcome};
use super::super::sessions::Seat;
use super::{Change, Group};

/// What a valid commit does.
struct Winner<'a> {
    commit: Commit<'a>,
    changes: Vec<Change>,
    /// For each new member its part of the welcome.
    welcomes: Vec<(Id, Vec<u8>)>,
}

impl Voice {
    /// A member sent a commit (op 28). The first valid one of an epoch is broadcast.
    pub fn received_commit(&mut self, seat: Seat, payload: &[u8]) {
        if let Ok(winner) = self.group(seat.channel).judge(seat, payload) {
            self.announce(seat, winner);
        }
    }

    fn announce(&mut self, seat: Seat, winner: Winner<'_>) {
        let channel = seat.channel;
        let group = self.group(channel);
        let existing = if group.epoch == 0 { vec![seat.user] } else { group.committing() };
        let initial = group.epoch == 0;
        let needs_transition = !initial || group.upgrading;
        group.apply(seat.user, &winner.changes);
        let epoch = group.epoch;
        let transition = if needs_transition { group.next_transition() } else { 0 };
        self.journal.commits.push((channel, seat.user, epoch));
        for user in &existing {
            let to = Seat { channel, user: *user };
            let spoiled = spoil(&mut self.faults.garbled_commits, to, winner.commit.message);
            self.send_binary(to, 29, &[&transition.to_be_bytes()[..], &spoiled].concat());
        }
        for (user, welcome) in &winner.welcomes {
            let to = Seat { channel, user: *user };
            self.send_binary(to, 30, &[&transition.to_be_bytes()[..], welcome].concat());
        }
        let audience = existing.into_iter().chain(winner.welcomes.into_iter().map(|(user, _)| user)).collect();
        self.begin_transition(channel, transition, audience);
    }
}

/// A message, garbled if that was asked for this member.
fn spoil(garbled: &mut Vec<Seat>, to: Seat, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    if let Some(at) = garbled.iter().position(|other| *other == to) {
        garbled.remove(at);
        if let Some(last) = message.last_mut() {
            *last ^= 1;
        }
    }
    message
}

impl Group {
    /// # Errors
    ///
    /// Why the commit is not broadcast.
    fn judge<'a>(&self, seat: Seat, payload: &'a [u8]) -> Result<Winner<'a>, &'static str> {
        let commit = Commit::read(payload).ok_or("no commit")?;
        if self.version == 0 {
            return Err("the call has no group");
        }
        if commit.group != seat.channel.0.to_be_bytes() {
            return Err("another group");
        }
        if commit.epoch != self.epoch {
            return Err("another epoch");
        }
        let user = seat.user;
        let leaf = commit.leaf as usize;
        let is_theirs = if self.epoch == 0 { leaf == 0 } else { self.leaves.get(leaf) == Some(&Some(user)) };
        if !is_theirs || self.leaving.contains(&user) {
            return Err("not from a member");
        }
        let own: Option<&Package> = if self.epoch == 0 { self.pending.get(&user) } else { self.packages.get(&user) };
        if own.is_some_and(|own| !commit.keeps_identity(user, own)) {
            return Err("it changes the identity of its author");
        }
        let expected = self.proposals.iter().filter(|proposed| self.epoch > 0 || proposed.change != Change::Add(user));
        let expected: BTreeSet<&[u8]> = expected.map(|proposed| proposed.proposal.reference.as_slice()).collect();
        let referenced: BTreeSet<&[u8]> = commit.references.iter().copied().collect();
        if commit.has_own_proposals || referenced.len() != commit.references.len() {
            return Err("it has proposals of its own");
        }
        if expected.is_empty() || expected != referenced {
            return Err("it does not reference all proposals");
        }
        let change = |reference: &&[u8]| {
            self.proposals.iter().find(|proposed| proposed.proposal.reference == *reference).map(|proposed| proposed.change)
        };
        let changes: Vec<Change> = commit.references.iter().filter_map(change).collect();
        let welcomes = self.welcomes(commit.welcome, &changes)?;
        Ok(Winner { commit, changes, welcomes })
    }

    /// The parts of a welcome: one for each new member.
    fn welcomes(&self, welcome: &[u8], changes: &[Change]) -> Result<Vec<(Id, Vec<u8>)>, &'static str> {
        let added = changes.iter().filter_map(|change| match change {
            Change::Add(user) => Some(*user),
            Change::Remove(_) => None,
        });
        let added: Vec<Id> = added.collect();
        if added.is_empty() {
            return if welcome.is_empty() { Ok(Vec::new()) } else { Err("a welcome for nobody") };
        }
        let welcome = Welcome::read(welcome).ok_or("no welcome")?;
        if welcome.targets() != added.len() {
            return Err("a welcome for others");
        }
        let part = |user: Id| Some((user, welcome.only_for(self.pending.get(&user)?.reference())?));
        added.into_iter().map(|user| part(user).ok_or("a welcome for others")).collect()
    }

    /// Begins the next epoch. Removals come first, then each new member takes the leftmost free leaf.
    ///
    /// <https://www.rfc-editor.org/rfc/rfc9420.html#section-12.3>
    fn apply(&mut self, author: Id, changes: &[Change]) {
        if self.epoch == 0 {
            self.leaves = vec![Some(author)];
            if let Some(package) = self.pending.remove(&author) {
                self.packages.insert(author, package);
            }
        }
        for change in changes {
            if let Change::Remove(user) = change {
                self.leaving.remove(user);
                self.packages.remove(user);
                let leaf = self.leaves.iter_mut().find(|leaf| **leaf == Some(*user));
                *leaf.expect("a removed user was a member") = None;
            }
        }
        for change in changes {
            if let Change::Add(user) = change {
                if let Some(package) = self.pending.remove(user) {
                    self.packages.insert(*user, package);
                }
                match self.leaves.iter_mut().find(|leaf| leaf.is_none()) {
                    Some(free) => *free = Some(*user),
                    None => self.leaves.push(Some(*user)),
                }
            }
        }
        self.epoch += 1;
        self.proposals.clear();
        self.strays.clear();
    }
}
