//! A call with end-to-end encryption: the connection, others with keys of their own, and the delivery service.

use std::num::NonZeroU16;

use davey::{DaveSession, ProposalsOperationType};
use serde_json::json;

use super::delivery::{Delivery, split};
use super::world::{CHANNEL, OWN, World};

/// Somebody else in the call.
pub struct Member {
    pub ssrc: u32,
    pub dave: DaveSession,
    pub sequence: u16,
}

impl Member {
    /// What this member says, encrypted.
    pub fn seal(&mut self, opus: &[u8]) -> Vec<u8> {
        self.dave.encrypt_opus(opus).unwrap().into_owned()
    }

    /// What this member understands of us.
    pub fn understands(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        self.dave.decrypt(OWN, davey::MediaType::AUDIO, frame).ok()
    }
}

pub struct Call {
    pub world: World,
    pub delivery: Delivery,
    pub members: Vec<Member>,
    /// The leaves of the group, in their order.
    leaves: Vec<u64>,
    pub epoch: u64,
    transition: u16,
}

impl Call {
    /// One in which we are alone.
    pub fn alone() -> Self {
        let mut world = World::begun();
        world.open_socket();
        world.shake_hands(&["aead_aes256_gcm_rtpsize"]);
        world.describe(super::super::transport::Mode::Aes256Gcm, 1);
        Self::beginning(world)
    }

    /// The group of a connection that has sent its key package.
    pub fn beginning(mut world: World) -> Self {
        let delivery = Delivery::new(CHANNEL);
        world.tell_binary(25, &delivery.external_sender());
        world.forget();
        Self { world, delivery, members: Vec::new(), leaves: vec![OWN], epoch: 0, transition: 0 }
    }

    /// One with these people. Their streams are 100 times their ids.
    pub fn with(users: &[u64]) -> Self {
        let mut call = Self::alone();
        for user in users {
            call.join(*user);
        }
        call.world.forget();
        call
    }

    /// A member that is not in the group yet, and its key package.
    pub fn newcomer(&self, user: u64) -> (Member, Vec<u8>) {
        let mut dave = DaveSession::new(NonZeroU16::MIN, user, CHANNEL, None).unwrap();
        dave.set_external_sender(&self.delivery.external_sender()).unwrap();
        let package = dave.create_key_package().unwrap();
        (Member { ssrc: 100 * u32::try_from(user).unwrap(), dave, sequence: 0 }, package)
    }

    /// Somebody joins, and everybody follows at once.
    pub fn join(&mut self, user: u64) {
        self.prepare_join(user);
        self.execute();
    }

    /// Everybody has prepared the change, but it is not in force.
    pub fn prepare_join(&mut self, user: u64) {
        let (mut member, package) = self.newcomer(user);
        self.world.tell_numbered(11, json!({"user_ids": [user.to_string()]}));
        let list = self.delivery.add(self.epoch, &package);
        let (commit, welcome) = self.propose(&list).expect("a commit");
        self.commit(&commit);
        member.dave.process_welcome(&welcome, None).unwrap();
        member.dave.prepare_transition(self.transition, 1).unwrap();
        self.members.push(member);
        self.add_leaf(user);
    }

    /// The change is in force.
    pub fn execute(&mut self) {
        self.world.tell_numbered(22, json!({"transition_id": self.transition}));
        for member in &mut self.members {
            member.dave.execute_transition(self.transition).unwrap();
        }
    }

    /// Proposes something to everybody. Returns our commit.
    pub fn propose(&mut self, list: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        self.world.tell_binary(27, &[&[0], list].concat());
        for member in &mut self.members {
            let _ = member.dave.process_proposals(ProposalsOperationType::APPEND, list, None);
        }
        self.world.told_binary(28).pop().map(|payload| split(&payload))
    }

    /// Chooses a commit.
    pub fn commit(&mut self, commit: &[u8]) {
        self.transition += 1;
        self.epoch += 1;
        for member in &mut self.members {
            assert!(member.dave.process_commit(commit).unwrap());
            member.dave.prepare_transition(self.transition, 1).unwrap();
        }
        let message = [&self.transition.to_be_bytes()[..], commit].concat();
        self.world.tell_binary(29, &message);
    }

    /// The server cannot reach us with a commit: it sends one that is damaged. Returns our new key package.
    pub fn fail(&mut self, user: u64) -> Vec<u8> {
        let (mut member, package) = self.newcomer(user);
        self.world.tell_numbered(11, json!({"user_ids": [user.to_string()]}));
        let list = self.delivery.add(self.epoch, &package);
        let (commit, welcome) = self.propose(&list).expect("a commit");
        self.transition += 1;
        self.epoch += 1;
        for member in &mut self.members {
            assert!(member.dave.process_commit(&commit).unwrap());
            member.dave.prepare_transition(self.transition, 1).unwrap();
            member.dave.execute_transition(self.transition).unwrap();
        }
        let mut damaged = [&self.transition.to_be_bytes()[..], &commit].concat();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0xff;
        self.world.tell_binary(29, &damaged);
        member.dave.process_welcome(&welcome, None).unwrap();
        member.dave.prepare_transition(0, 1).unwrap();
        self.members.push(member);
        self.add_leaf(user);
        self.world.told_binary(26).pop().expect("a key package")
    }

    /// The server takes us out of the group and adds us again, by the commit of the first member.
    pub fn add_again(&mut self, package: &[u8]) {
        let leaf = self.leaves.iter().position(|user| *user == OWN).unwrap();
        let list = self.delivery.replace(self.epoch, u32::try_from(leaf).unwrap(), package);
        let made = self
            .members
            .iter_mut()
            .map(|member| member.dave.process_proposals(ProposalsOperationType::APPEND, &list, None).unwrap().expect("a commit"));
        let made: Vec<_> = made.collect();
        self.transition += 1;
        self.epoch += 1;
        for member in &mut self.members {
            assert!(member.dave.process_commit(&made[0].commit).unwrap());
            member.dave.prepare_transition(self.transition, 1).unwrap();
        }
        let welcome = made[0].welcome.as_ref().expect("a welcome");
        self.world.tell_binary(30, &[&self.transition.to_be_bytes()[..], welcome].concat());
        self.execute();
    }

    pub fn transition(&self) -> u16 {
        self.transition
    }

    /// A member says something: the next packet of its stream.
    pub fn say(&mut self, at: usize, opus: &[u8]) {
        let packet = self.packet(at, opus);
        self.world.hear_datagram(packet);
    }

    pub fn packet(&mut self, at: usize, opus: &[u8]) -> Vec<u8> {
        let member = &mut self.members[at];
        let frame = member.seal(opus);
        member.sequence = member.sequence.wrapping_add(1);
        let (ssrc, sequence) = (member.ssrc, member.sequence);
        self.world.packet(ssrc, sequence, &frame)
    }

    fn add_leaf(&mut self, user: u64) {
        self.leaves.push(user);
    }
}
