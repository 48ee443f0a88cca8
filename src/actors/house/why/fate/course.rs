//! Follows one message through the record: pure, event by event.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::decision::Decision;
use crate::domain::event::{Decided, Event, Recorded};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Role;

/// What became of the message for one companion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fate {
    /// Nothing on record settles it, as far as it was read.
    Open,
    /// It said this itself.
    Own,
    /// It settled with a NO.
    Silent(Recorded, Box<Decided>),
    /// It settled with a statement that was owed; how that ended, once it did.
    Owed { owed: Recorded, yes: Option<Seq>, ending: Option<Recorded> },
    /// It was taken back first.
    TakenBack(Recorded),
    /// What was going on was dropped first.
    Cleared(Recorded),
    /// The companion left first.
    Left(Recorded),
    /// The companion came afterwards.
    CameLater(Recorded),
}

/// The way of one message.
pub(super) struct Course {
    message: Seq,
    /// Only those who are asked for are followed.
    is_closed: bool,
    fates: BTreeMap<CompanionId, Fate>,
    /// The newest YES of each.
    yes: BTreeMap<CompanionId, Seq>,
    changes: Vec<Recorded>,
}

impl Course {
    /// Follows this message for these companions, and if they are not all (`is_one`), for whoever turns up besides.
    pub(super) fn new(message: &Recorded, companions: BTreeSet<CompanionId>, is_one: bool) -> Self {
        let own = match &message.event {
            Event::Said { message, .. } if message.from.role == Role::Companion => Some(CompanionId::from(&*message.from.id)),
            _ => None,
        };
        let fate = |id: &CompanionId| if own.as_ref() == Some(id) { Fate::Own } else { Fate::Open };
        let fates = companions.into_iter().map(|id| (id.clone(), fate(&id))).collect();
        Self { message: message.seq, is_closed: is_one, fates, yes: BTreeMap::new(), changes: Vec::new() }
    }

    pub(super) fn companions(&self) -> impl Iterator<Item = &CompanionId> {
        self.fates.keys()
    }

    pub(super) fn fate(&self, companion: &CompanionId) -> &Fate {
        self.fates.get(companion).unwrap_or(&Fate::Open)
    }

    /// The newest YES of a companion after the message.
    pub(super) fn newest_yes(&self, companion: &CompanionId) -> Option<Seq> {
        self.yes.get(companion).copied()
    }

    /// Edits of the message, and that it was taken back.
    pub(super) fn changes(&self) -> &[Recorded] {
        &self.changes
    }

    /// Whether everybody's fate is known.
    pub(super) fn is_over(&self) -> bool {
        self.fates.values().all(|fate| !matches!(fate, Fate::Open | Fate::Owed { ending: None, .. }))
    }

    /// Takes in the next event after the message.
    pub(super) fn follow(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Edited { message, .. } if *message == self.message => self.changes.push(recorded.clone()),
            Event::Deleted { messages } if messages.contains(&self.message) => {
                self.changes.push(recorded.clone());
                self.end_all(&Fate::TakenBack(recorded.clone()));
            }
            Event::Cleared => {
                self.end_all(&Fate::Cleared(recorded.clone()));
                self.end_owed(|_, _| true, recorded);
            }
            Event::Left { companion } => {
                self.end(companion, Fate::Left(recorded.clone()));
                self.end_owed(|whose, _| whose == companion, recorded);
            }
            Event::Joined { companion, .. } => self.end(companion, Fate::CameLater(recorded.clone())),
            Event::Decided(decided) => {
                for companion in &decided.companions {
                    if decided.decision == Decision::Yes {
                        self.yes.insert(companion.clone(), recorded.seq);
                    } else if decided.messages.contains(&self.message) {
                        self.settle(companion, Fate::Silent(recorded.clone(), Box::new(decided.clone())));
                    }
                }
            }
            Event::ReplyOwed { companion, messages, .. } if messages.contains(&self.message) => {
                let yes = self.yes.get(companion).copied();
                self.settle(companion, Fate::Owed { owed: recorded.clone(), yes, ending: None });
            }
            Event::Said { reply: Some(ticket), .. } | Event::ReplyFailed { ticket, .. } => {
                self.end_owed(|_, owed| owed == *ticket, recorded);
            }
            _ => {}
        }
    }

    /// What the channel made before it handled what ended the wait counts all the same.
    fn settle(&mut self, companion: &CompanionId, fate: Fate) {
        if self.is_closed && !self.fates.contains_key(companion) {
            return;
        }
        let known = self.fates.entry(companion.clone()).or_insert(Fate::Open);
        if !matches!(known, Fate::Silent(..) | Fate::Owed { .. } | Fate::Own) {
            *known = fate;
        }
    }

    fn end(&mut self, companion: &CompanionId, fate: Fate) {
        let is_new = !self.is_closed && !self.fates.contains_key(companion) && matches!(fate, Fate::Left(_));
        if is_new {
            // It was there, though it is not any more.
            self.fates.insert(companion.clone(), Fate::Open);
        }
        if let Some(known) = self.fates.get_mut(companion).filter(|known| **known == Fate::Open) {
            *known = fate;
        }
    }

    fn end_all(&mut self, fate: &Fate) {
        for known in self.fates.values_mut().filter(|known| **known == Fate::Open) {
            *known = fate.clone();
        }
    }

    fn end_owed(&mut self, is_it: impl Fn(&CompanionId, Ticket) -> bool, recorded: &Recorded) {
        for (companion, fate) in &mut self.fates {
            if let Fate::Owed { owed, ending: ending @ None, .. } = fate
                && let Event::ReplyOwed { ticket, .. } = &owed.event
                && is_it(companion, *ticket)
            {
                *ending = Some(recorded.clone());
            }
        }
    }
}

/// Whether this is a YES of this companion.
pub(super) fn is_yes(recorded: &Recorded, companion: &CompanionId) -> bool {
    matches!(&recorded.event, Event::Decided(decided) if decided.decision == Decision::Yes && decided.companions.contains(companion))
}
