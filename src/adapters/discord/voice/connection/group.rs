//! Handles messages about the DAVE group. A failure never ends the call: it is reported to the server, which adds us to the group
//! again.

use std::time::Duration;

use super::super::dave::{Change, Failed};
use super::super::events::Event;
use super::super::messages::{self, GroupTold};
use super::{Connection, Effect};
use crate::domain::moment::Moment;

/// The shortest time between two reports of a failure. Each report changes the group for all members.
const RECOVER_EVERY: Duration = Duration::from_millis(250);

impl Connection {
    pub(super) fn begin_group(&mut self, version: u16) {
        let package = self.dave.begin_group(version);
        self.send_key_package(package);
    }

    pub(super) fn follow_group(&mut self, told: GroupTold<'_>, now: Moment) {
        match told {
            GroupTold::ExternalSender(sender) => {
                let outcome = self.dave.set_external_sender(sender);
                self.count_failure(outcome);
            }
            GroupTold::Proposals { withdrawn, list } => {
                let users: Vec<u64> = self.users.iter().copied().collect();
                let made = self.dave.proposals(list, withdrawn, &users);
                if let Some(Some(Change { commit, welcome })) = self.count_failure(made) {
                    self.effects.push_back(Effect::Binary(messages::commit_welcome(&commit, &welcome)));
                }
            }
            GroupTold::Commit { transition, commit } => {
                let outcome = self.dave.commit(transition, commit, now);
                self.prepared(transition, outcome, now);
            }
            GroupTold::Welcome { transition, welcome } => {
                let users: Vec<u64> = self.users.iter().copied().collect();
                let outcome = self.dave.welcome(transition, welcome, &users, now).map(|()| true);
                self.prepared(transition, outcome, now);
            }
            GroupTold::Other => {}
        }
    }

    pub(super) fn prepare_transition(&mut self, transition: u16, version: u16, now: Moment) {
        let outcome = self.dave.prepare(transition, version, now);
        if self.count_failure(outcome).is_some() {
            self.tell_prepared(transition, now);
        }
    }

    pub(super) fn execute_transition(&mut self, transition: u16, now: Moment) {
        let outcome = self.dave.execute(transition, now);
        self.count_failure(outcome);
        self.keys_changed(now);
    }

    /// Reports a failure that was delayed by [`RECOVER_EVERY`].
    pub(super) fn recover_if_due(&mut self, now: Moment) {
        let (Some(transition), at) = self.recovery else { return };
        if at <= now {
            self.recover(transition, now);
        }
    }

    pub(super) fn tell_end_to_end(&mut self, again: bool) {
        let is_end_to_end = self.dave.is_end_to_end();
        if self.was_end_to_end.replace(is_end_to_end) != Some(is_end_to_end) || again {
            self.effects.push_back(Effect::Report(Event::EndToEnd(is_end_to_end)));
        }
    }

    fn prepared(&mut self, transition: u16, outcome: Result<bool, Failed>, now: Moment) {
        match self.count_failure(outcome) {
            Some(true) => self.tell_prepared(transition, now),
            Some(false) => {}
            None if self.recovery.1 <= now => self.recover(transition, now),
            None => self.recovery.0 = Some(transition),
        }
    }

    fn tell_prepared(&mut self, transition: u16, now: Moment) {
        if transition != 0 {
            self.effects.push_back(Effect::Text(messages::transition_ready(transition)));
        }
        self.keys_changed(now);
    }

    fn keys_changed(&mut self, now: Moment) {
        self.tell_end_to_end(false);
        let heard = self.hearing.retry_encrypted(&mut self.dave, now, &mut self.counts);
        self.report_heard(heard);
    }

    fn recover(&mut self, transition: u16, now: Moment) {
        self.recovery = (None, now + RECOVER_EVERY);
        self.counts.dave_recoveries += 1;
        self.effects.push_back(Effect::Text(messages::invalid_commit(transition)));
        let package = self.dave.begin_again();
        self.send_key_package(package);
    }

    fn send_key_package(&mut self, package: Result<Option<Vec<u8>>, Failed>) {
        if let Some(Some(package)) = self.count_failure(package) {
            self.effects.push_back(Effect::Binary(messages::key_package(&package)));
        }
    }

    fn count_failure<T>(&mut self, outcome: Result<T, Failed>) -> Option<T> {
        self.counts.dave_failures += u64::from(outcome.is_err());
        outcome.ok()
    }
}
