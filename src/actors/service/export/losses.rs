//! What a replay script cannot tell as it was: counted, and said in words.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::decision::Reason;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::journal::redaction::is_redacted;

/// What is on record and has no place in a script.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// The first event that there is.
    first: Option<Seq>,
    pauses: usize,
    edited: BTreeSet<Seq>,
    taken_back: BTreeSet<Seq>,
    wordless: BTreeSet<Seq>,
    /// Times at which something was missing of what had been said while nobody listened.
    gaps: usize,
    /// Messages that were accepted only well after they were said.
    late: usize,
    /// How often each external companion voted.
    external: BTreeMap<CompanionId, usize>,
}

impl Losses {
    /// Whether what happened first is not kept any more.
    pub(super) fn has_no_beginning(&self) -> bool {
        self.first.is_some_and(|first| first > Seq(1))
    }

    pub(super) fn take(&mut self, recorded: &Recorded) {
        self.first.get_or_insert(recorded.seq);
        match &recorded.event {
            Event::Paused { paused: true, .. } => self.pauses += 1,
            Event::Edited { message, .. } => {
                self.edited.insert(*message);
            }
            Event::Deleted { messages } => self.taken_back.extend(messages),
            Event::CaughtUp { missed: Some(_), .. } => self.gaps += 1,
            Event::Said { message, .. } if is_redacted(message) => {
                self.wordless.insert(recorded.seq);
            }
            Event::Said { said_at: Some(_), .. } => self.late += 1,
            Event::Joined { companion, external: true } => {
                self.external.entry(companion.clone()).or_default();
            }
            Event::Decided(decided) if decided.reason == Reason::External => {
                for companion in &decided.companions {
                    *self.external.entry(companion.clone()).or_default() += 1;
                }
            }
            Event::Said { .. }
            | Event::Joined { .. }
            | Event::Left { .. }
            | Event::Paused { .. }
            | Event::Cleared
            | Event::CaughtUp { .. }
            | Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::BackOffEnded { .. }
            | Event::DeadlinesExtended { .. }
            | Event::AddressRefused { .. }
            | Event::RoundOpened(_)
            | Event::Evaluated(_)
            | Event::Decided(_)
            | Event::Unanswered { .. }
            | Event::StageChanged { .. }
            | Event::RoundClosed(_)
            | Event::RepetitionAsked { .. }
            | Event::RepetitionJudged { .. }
            | Event::ReplyOwed { .. }
            | Event::ReplyFailed { .. }
            | Event::Summarised { .. } => {}
        }
    }

    /// One sentence for each kind of them: what, how often, and what it means.
    pub(super) fn in_words(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut tell = |times: usize, one: &str, many: &str, meaning: &str| match times {
            0 => {}
            1 => notes.push(format!("1 {one}: {meaning}")),
            _ => notes.push(format!("{times} {many}: {meaning}")),
        };
        let meaning = "what was kept for long enough is deleted; counters begin at 0 in a script, and whoever lives there now is there from the start";
        tell(usize::from(self.has_no_beginning()), "beginning that is not kept", "", meaning);
        let meaning = "a script knows no pauses; whoever was paused is asked and speaks in it as ever";
        tell(self.pauses, "pause", "pauses", meaning);
        // Whose words are gone is told of below.
        let edited = self.edited.difference(&self.taken_back).count();
        tell(edited, "edited message", "edited messages", "a script has their last words from the beginning");
        let meaning = "a script takes nothing back; what still has its words is said for good, and of the rest “…” where somebody was asked about it";
        tell(self.taken_back.len(), "message taken back", "messages taken back", meaning);
        let forgotten = self.wordless.difference(&self.taken_back).count();
        tell(
            forgotten,
            "message without words",
            "messages without words",
            "a script has “…” where somebody was asked about it, and leaves the rest out",
        );
        let meaning = "what was said while nobody listened, and could not be read later, is in no script";
        tell(self.gaps, "gap", "gaps", meaning);
        let meaning = "a script hears it when it was read, and answers it as if it had just been said";
        tell(self.late, "message that was read late", "messages that were read late", meaning);
        for (companion, votes) in &self.external {
            let votes = if *votes == 1 { "1 vote".to_owned() } else { format!("{votes} votes") };
            notes.push(format!(
                "{votes} of {companion}, an external companion: a script has none; models play it, its reasons are model_yes and \
                 model_no, and where it is alone it speaks without turn_delay_secs"
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::Gap;
    use crate::domain::moment::Moment;

    #[test]
    fn what_a_script_cannot_tell_is_counted() {
        let mut losses = Losses::default();
        let events = [
            Event::Joined { companion: "aria".into(), external: false },
            Event::Joined { companion: "zed".into(), external: true },
            Event::Paused { companion: Some("aria".into()), paused: true },
            Event::Paused { companion: Some("aria".into()), paused: false },
            Event::Paused { companion: None, paused: true },
            Event::Edited { message: Seq(2), text: "better".into() },
            Event::Edited { message: Seq(2), text: "best".into() },
            Event::Edited { message: Seq(3), text: "".into() },
            Event::Deleted { messages: vec![Seq(3), Seq(4)] },
            Event::CaughtUp { read: 3, missed: None },
            Event::CaughtUp { read: 3, missed: Some(gap()) },
        ];

        for (event, seq) in events.into_iter().zip(1..) {
            losses.take(&Recorded { seq: Seq(seq), at: Moment::ZERO, handled: Seq::NONE, turn: None, event });
        }

        let notes = losses.in_words();
        let counted: Vec<_> = notes.iter().filter_map(|note| note.split_once(':')).map(|(counted, _)| counted).collect();
        let expected =
            ["2 pauses", "1 edited message", "2 messages taken back", "1 gap", "0 votes of zed, an external companion"];
        assert_eq!(counted, expected);
        assert_eq!(Losses::default().in_words(), [""; 0]);
    }

    fn gap() -> Gap {
        Gap { after: "5".into(), before: "9".into(), why: "too_many".into() }
    }
}
