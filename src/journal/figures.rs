//! The figures that laws require, counted by guild and month (docs/design/safety.md N-14).
//!
//! They are usage records that outlive the events that they count. So their only time is the beginning of their month, and they
//! contain no names.

use std::collections::BTreeSet;

use super::record::{UsageRecord, Used};
use crate::domain::event::{Event, MODERATED};
use crate::domain::id::{ChannelId, Seq};
use crate::domain::notice::Occasion;
use crate::ports::backend::usage::Safety;

/// The contribution of an event to the figures of its month.
pub fn figure(event: &Event) -> Option<Used> {
    match event {
        Event::Disclosed(disclosed) if !disclosed.owed.again => {
            let owed = &disclosed.owed;
            Some(Used::Notice { occasion: owed.occasion, people: owed.people.len() as u64 })
        }
        Event::ReplyFailed { error, .. } if **error == *MODERATED => Some(Used::Refusal),
        Event::Decided(decided) => decided.at_risk.map(|message| Used::Help { message: Some(message) }),
        _ => None,
    }
}

/// The figures of one guild in one month.
#[derive(Default)]
pub struct Figures {
    sums: Safety,
    /// The helped messages. It is a set, because several companions may decide about one message.
    helped: BTreeSet<(ChannelId, Seq)>,
}

impl Figures {
    pub fn count(&mut self, record: UsageRecord) {
        match record.used {
            Used::Notice { occasion, people } => {
                *match occasion {
                    Occasion::First => &mut self.sums.told.first,
                    Occasion::Day => &mut self.sums.told.day,
                    Occasion::Interval => &mut self.sums.told.interval,
                } += people;
            }
            Used::Help { message } => {
                self.sums.helped += u64::from(message.is_none_or(|message| self.helped.insert((record.channel, message))));
            }
            Used::Refusal => self.sums.refused += 1,
            _ => {}
        }
    }

    pub fn sums(self) -> Safety {
        self.sums
    }
}
