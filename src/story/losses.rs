//! Counts and describes recorded events that a replay script cannot represent.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::id::{CompanionId, Seq, Ticket};

/// The recorded events that a script cannot represent.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// The first events have expired.
    pub(super) is_truncated: bool,
    pub(super) pauses: usize,
    pub(super) edited: BTreeSet<Seq>,
    pub(super) deleted: BTreeSet<Seq>,
    /// Statements that were deleted by the button to replace an answer. A script deletes them, too.
    pub(super) replaced: BTreeSet<Seq>,
    pub(super) wordless: BTreeSet<Seq>,
    /// The number of downtimes with messages that could not be read.
    pub(super) gaps: usize,
    /// The number of messages that were accepted long after they were sent.
    pub(super) late: usize,
    /// The number of final results of speech recognition.
    pub(super) spoken: usize,
    /// The spoken replies.
    pub(super) aloud: BTreeSet<Ticket>,
    /// The number of votes of each external companion.
    pub(super) external: BTreeMap<CompanionId, usize>,
}

impl Losses {
    /// One sentence for each kind of loss: kind, number, and consequence.
    pub(super) fn in_words(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |times: usize, one: &str, many: &str, meaning: &str| match times {
            0 => {}
            1 => notes.push(format!("1 {one}: {meaning}")),
            _ => notes.push(format!("{times} {many}: {meaning}")),
        };
        let meaning =
            "the oldest events have expired; counters begin at 0 in a script, and the current members are there from the start";
        note(usize::from(self.is_truncated), "beginning that has expired", "", meaning);
        let meaning = "a script has no pauses; a paused companion is asked and speaks in it as usual";
        note(self.pauses, "pause", "pauses", meaning);
        // Deleted messages are counted below.
        let edited = self.edited.difference(&self.deleted).count();
        note(edited, "edited message", "edited messages", "a script has their last text from the start");
        let meaning = "a script deletes nothing; messages that still have their text stay, and “…” stands for others that companions were asked about";
        note(self.deleted.difference(&self.replaced).count(), "deleted message", "deleted messages", meaning);
        let forgotten = self.wordless.difference(&self.deleted).count();
        note(
            forgotten,
            "message without text",
            "messages without text",
            "a script has “…” for those that companions were asked about, and leaves the others out",
        );
        let meaning = "messages of a downtime that could not be read later are missing in a script";
        note(self.gaps, "gap", "gaps", meaning);
        let meaning = "in a script it arrives when it was read, and is answered as if it had just been said";
        note(self.late, "message that was read late", "messages that were read late", meaning);
        let meaning = "a script has its times; talk without words and partial results are not on record, so a voice lull may end at another moment";
        note(self.spoken, "piece of speech", "pieces of speech", meaning);
        let meaning = "in a script it is spoken at the usual pace, so that it may be cut elsewhere";
        note(self.aloud.len(), "spoken reply", "spoken replies", meaning);
        for (companion, votes) in &self.external {
            let votes = if *votes == 1 { "1 vote".to_owned() } else { format!("{votes} votes") };
            notes.push(format!(
                "{votes} of {companion}, an external companion: a script has no external companions; models play it, its reasons are model_yes \
                 and model_no, and it speaks without turn_delay_secs where it is alone"
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::{Event, Gap};
    use crate::samples::{person, recorded, segment};
    use crate::story::script::Script;

    #[test]
    fn what_a_script_cannot_represent_is_counted() {
        let mut script = Script::default();
        let events = [
            Event::Joined { companion: "aria".into(), external: false },
            Event::Joined { companion: "zed".into(), external: true },
            Event::Paused { companion: Some("aria".into()), paused: true },
            Event::Paused { companion: Some("aria".into()), paused: false },
            Event::Paused { companion: None, paused: true },
            Event::Edited { message: Seq(2), text: "better".into(), captions: Vec::new(), version: None },
            Event::Edited { message: Seq(2), text: "best".into(), captions: Vec::new(), version: None },
            Event::Edited { message: Seq(3), text: "".into(), captions: Vec::new(), version: None },
            Event::deleted(vec![Seq(3), Seq(4)]),
            Event::CaughtUp { read: 3, missed: None },
            Event::CaughtUp { read: 3, missed: Some(gap()) },
            Event::Segment(Box::new(segment(person("ana"), "well"))),
        ];

        for (event, seq) in events.into_iter().zip(1..) {
            script.add_event(&recorded(seq, event));
        }

        let notes = script.losses.in_words();
        let counted: Vec<_> = notes.iter().filter_map(|note| note.split_once(':')).map(|(counted, _)| counted).collect();
        let expected = [
            "2 pauses",
            "1 edited message",
            "2 deleted messages",
            "1 gap",
            "1 piece of speech",
            "0 votes of zed, an external companion",
        ];
        assert_eq!(counted, expected);
        assert_eq!(Losses::default().in_words(), [""; 0]);
    }

    fn gap() -> Gap {
        Gap { after: "5".into(), before: "9".into(), why: "too_many".into() }
    }
}
