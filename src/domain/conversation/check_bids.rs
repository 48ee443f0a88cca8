//! Checks that [`Bids`] and the conversation agree on the open bids after every event of a journal.

use super::super::turn::bid::{Bid, Phase};
use super::super::turn::bids::Bids;
use super::*;

/// Checks a journal in the order in which the channel handled it. `fold` applies an event to the conversation.
pub fn check_bids(record: &[Recorded], mut fold: impl FnMut(&mut Conversation, &Recorded)) {
    let (mut conversation, mut bids) = (Conversation::default(), Bids::default());
    // A journal may begin anywhere. Bids that begin later must be tracked all the same.
    let (half, mut second_half) = (record.len() / 2, Bids::default());
    let known: BTreeSet<_> = record[half..].iter().filter_map(question).collect();
    for (index, recorded) in record.iter().enumerate() {
        fold(&mut conversation, recorded);
        bids.apply(recorded);
        if index >= half {
            second_half.apply(recorded);
            let later = |bids: &Bids| {
                let later = bids.open().iter().filter(|bid| bid.question.is_some_and(|ticket| known.contains(&ticket)));
                let shown = |bid: &Bid| (bid.companion.clone(), bid.question, bid.reply, bid.phase, bid.is_late, bid.selected_at);
                later.map(shown).collect::<Vec<_>>()
            };
            assert_eq!(later(&second_half), later(&bids), "after {recorded:#?}, from the middle on");
        }
        let is_failure = matches!(recorded.event, Event::ReplyFailed { .. });
        let (expected, followed) = (of_conversation(&conversation, is_failure), of_bids(bids.open()));
        let before = &record[index.saturating_sub(12)..=index];
        assert_eq!(followed, expected, "after {recorded:#?}, which follows\n{before:#?}\n{:#?}", bids.open());
    }
}

fn question(recorded: &Recorded) -> Option<Ticket> {
    let Event::Evaluated(evaluated) = &recorded.event else { return None };
    Some(evaluated.ticket)
}

/// The open bids according to the conversation: asked, wanting to speak, held, selected, with the floor, and late. The next candidate after a failed
/// reply appears with its own reply.
fn of_conversation(conversation: &Conversation, is_failure: bool) -> BTreeSet<String> {
    let turns = conversation.turns();
    let asked = conversation.open_questions().map(|(companion, asked)| format!("{companion} asked {}", asked.ticket));
    let wishes = conversation.companions().filter(|view| view.gate.wish.is_some());
    let wants = wishes.map(|view| match turns.is_held(view.companion) {
        true => format!("{} held", view.companion),
        false => format!("{} wants", view.companion),
    });
    let selected = turns
        .selected()
        .filter(|selected| !is_failure || selected.speak_at.is_some())
        .map(|selected| format!("{} selected", selected.candidate.companion));
    let floor = turns.floor().map(|reply| {
        let OwedReply { companion, ticket, selection, .. } = reply;
        format!("{companion} owes {ticket} since {}", selection.selected_at)
    });
    let late = turns.late.iter().map(|reply| format!("{} is late with {}", reply.companion, reply.ticket));
    asked.chain(wants).chain(selected).chain(floor).chain(late).collect()
}

fn of_bids(bids: &[Bid]) -> BTreeSet<String> {
    let in_words = |bid: &Bid| {
        let Bid { companion, question, reply, phase, is_late, selected_at, .. } = bid;
        Some(match (phase, reply) {
            (Phase::Asked, _) => format!("{companion} asked {}", question.unwrap_or_default()),
            (Phase::Wants, _) => format!("{companion} wants"),
            (Phase::Held, _) => format!("{companion} held"),
            (Phase::Lost, _) => return None,
            (Phase::Selected, _) => format!("{companion} selected"),
            (_, reply) if *is_late => format!("{companion} is late with {}", reply.unwrap_or_default()),
            (_, reply) => {
                format!("{companion} owes {} since {}", reply.unwrap_or_default(), selected_at.unwrap_or_default())
            }
        })
    };
    bids.iter().filter_map(in_words).collect()
}
