//! Counts the consecutive statements of companions.

use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::message::{Message, Role};
use crate::domain::turn::bid::{Ending, What};
use crate::domain::turn::bids::Bids;

/// The number of statements before a decision by the rules of the loop guard, and whether there were more. A statement that was
/// already in progress when a person spoke does not count.
pub(super) fn in_a_row(before: &[Recorded]) -> (u64, bool) {
    let (mut bids, mut newest_human) = (Bids::default(), Seq::NONE);
    let (mut said, mut counted, mut replacing) = (0_u64, 0_u64, None);
    for recorded in before {
        let is_human = |message: &Message| message.from.role == Role::Person && !message.is_event() && !message.passes_no_row();
        if matches!(&recorded.event, Event::Said { message, .. } if is_human(message)) {
            (said, counted, newest_human) = (0, 0, recorded.seq);
        }
        if let Event::ReplyOwed { ticket, again: Some(_), .. } = &recorded.event {
            replacing = Some(*ticket);
        } else if matches!(&recorded.event, Event::Said { reply: Some(ticket), .. } if replacing == Some(*ticket)) {
            // A replaced statement does not count.
            (said, counted) = (said.saturating_sub(1), counted.saturating_sub(1));
        }
        for change in bids.apply(recorded).iter().filter(|change| change.what == What::Ended(Ending::Posted)) {
            said += 1;
            counted += u64::from(change.bid.selected_at.is_none_or(|at| at >= newest_human));
        }
    }
    (counted, said > counted)
}
