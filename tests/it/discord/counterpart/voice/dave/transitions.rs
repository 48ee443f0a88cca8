//! Transitions: to another epoch, and between end-to-end encryption and none.
//!
//! <https://daveprotocol.com/#protocol-version-changes>, <https://daveprotocol.com/#initial-transitory-phase>

use std::collections::BTreeSet;

use serde_json::json;

use super::super::super::Id;
use super::super::Voice;
use super::super::sessions::Seat;
use super::{Group, VERSION};

/// A change that was announced and is not yet executed.
pub struct Transition {
    id: u16,
    /// Those whom it was announced to.
    audience: Vec<Id>,
    /// Those who are not ready yet.
    waiting: BTreeSet<Id>,
}

impl Group {
    /// An id that is not 0, which stands for initialization.
    pub fn next_transition(&mut self) -> u16 {
        self.last_transition = self.last_transition.checked_add(1).unwrap_or(1);
        self.last_transition
    }
}

impl Voice {
    /// Waits for the audience of an announced transition. One with the id 0 needs no execution.
    pub fn begin_transition(&mut self, channel: Id, id: u16, audience: Vec<Id>) {
        if id == 0 {
            return self.settled(channel);
        }
        let waiting = audience.iter().copied().collect();
        self.group(channel).transition = Some(Transition { id, audience, waiting });
        self.later(self.rules.transition_timeout, move |voice| voice.execute(channel, id));
    }

    /// A member is ready (op 23).
    pub fn ready_for(&mut self, seat: Seat, id: u64) {
        let transition = self.groups.get(&seat.channel).and_then(|group| group.transition.as_ref());
        if transition.is_some_and(|transition| u64::from(transition.id) == id) {
            self.no_longer_waited_for(seat);
        }
    }

    /// Executes the transition if this member was the last one that it waited for.
    pub fn no_longer_waited_for(&mut self, seat: Seat) {
        let Some(transition) = &mut self.group(seat.channel).transition else { return };
        transition.waiting.remove(&seat.user);
        if transition.waiting.is_empty() {
            let id = transition.id;
            self.execute(seat.channel, id);
        }
    }

    /// Executes a transition (op 22).
    fn execute(&mut self, channel: Id, id: u16) {
        let Some(group) = self.groups.get_mut(&channel) else { return };
        let Some(transition) = group.transition.take_if(|transition| transition.id == id) else { return };
        group.upgrading = false;
        let is_downgrade = group.version == 0;
        for user in transition.audience {
            self.send(Seat { channel, user }, 22, json!({ "transition_id": id }));
        }
        if is_downgrade {
            self.group(channel).reset();
        }
        self.settled(channel);
    }

    /// Goes on after a change.
    fn settled(&mut self, channel: Id) {
        let group = self.group(channel);
        group.upgrading = false;
        match *group.members() {
            [sole] => self.reset_for_sole_member(channel, sole),
            _ => self.propose(channel),
        }
    }

    /// A member without end-to-end encryption has joined: the others go back to transport encryption.
    pub fn downgrade(&mut self, channel: Id) {
        let group = self.group(channel);
        group.proposals.clear();
        group.pending.clear();
        let id = group.next_transition();
        let supports = |voice: &Self, user: &Id| {
            voice.sessions.get(&Seat { channel, user: *user }).is_some_and(|session| session.max_dave >= VERSION)
        };
        let audience: Vec<Id> = self.members(channel).into_iter().filter(|user| supports(self, user)).collect();
        if audience.is_empty() {
            return self.group(channel).reset();
        }
        for user in &audience {
            self.send(Seat { channel, user: *user }, 21, json!({ "protocol_version": 0, "transition_id": id }));
        }
        self.begin_transition(channel, id, audience);
    }

    /// The last member without end-to-end encryption has left: the others begin a group.
    pub fn upgrade(&mut self, channel: Id) {
        let members = self.members(channel);
        let group = self.group(channel);
        group.version = VERSION;
        if let [sole] = *members {
            self.send_external_sender(Seat { channel, user: sole });
            return self.reset_for_sole_member(channel, sole);
        }
        self.create_anew(channel);
        self.group(channel).upgrading = true;
    }
}
