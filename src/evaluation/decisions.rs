//! Lists the decisions of an excerpt. Each annotated message by another author is one, labelled with whether the companion
//! replied to it.

use std::sync::Arc;

use serde::Serialize;

use super::cast::{authors, is_named};
use super::excerpts::{Excerpt, Label};

/// The maximum time to the next speaker that counts as a reply by `turn_60s`, in seconds.
const TURN_SECS: f64 = 60.0;

/// The relation of a message to the companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The message contains the companion's name.
    Addressed,
    /// By the reply links, the author is in a dialogue with the companion.
    Continuing,
    /// Any other message.
    Neither,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Addressed, Self::Continuing, Self::Neither];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Addressed => "addressed",
            Self::Continuing => "continuing",
            Self::Neither => "neither",
        }
    }
}

/// One decision: does the companion speak after this message?
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The index of the excerpt.
    pub excerpt: usize,
    /// The author in the companion's role.
    pub companion: Arc<str>,
    /// The index of the message.
    pub n: usize,
    pub kind: Kind,
    /// Whether the companion replied.
    pub replied: bool,
}

/// All decisions of these excerpts. `label` overrides the labels of the excerpts.
pub fn decisions(excerpts: &[Excerpt], most_authors: usize, bots: &[String], label: Option<Label>) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for (index, excerpt) in excerpts.iter().enumerate() {
        let (lower, replied_by) = (lowered(excerpt), replied_by(excerpt));
        let label = label.unwrap_or(excerpt.label);
        for companion in authors(excerpt, most_authors, bots) {
            let name = companion.to_lowercase();
            let links = Links { excerpt, replied_by: &replied_by, companion: &companion };
            for message in excerpt.messages.iter().filter(|message| message.annotated && message.from != companion) {
                let n = message.n;
                let kind = if is_named(&lower[n], &name) {
                    Kind::Addressed
                } else if links.is_in_dialogue(n) {
                    Kind::Continuing
                } else {
                    Kind::Neither
                };
                let replied = match label {
                    Label::Reply => links.is_answered(n, usize::MAX),
                    Label::Turn60s => is_next(excerpt, n, &companion),
                };
                decisions.push(Decision { excerpt: index, companion: companion.clone(), n, kind, replied });
            }
        }
    }
    decisions
}

/// The texts in lower case.
pub fn lowered(excerpt: &Excerpt) -> Vec<String> {
    excerpt.messages.iter().map(|message| message.text.to_lowercase()).collect()
}

/// For each message, the messages that link to it.
fn replied_by(excerpt: &Excerpt) -> Vec<Vec<usize>> {
    let mut replied_by = vec![Vec::new(); excerpt.messages.len()];
    for message in &excerpt.messages {
        for earlier in &message.replies_to {
            replied_by[*earlier].push(message.n);
        }
    }
    replied_by
}

/// Whether the companion speaks next within `TURN_SECS`, apart from further messages by the author of message `n`.
fn is_next(excerpt: &Excerpt, n: usize, companion: &str) -> bool {
    let message = &excerpt.messages[n];
    let next = excerpt.messages[n + 1..].iter().find(|later| later.from != message.from);
    next.is_some_and(|next| &*next.from == companion && next.t - message.t <= TURN_SECS)
}

/// The reply links of an excerpt, from the view of one companion.
struct Links<'a> {
    excerpt: &'a Excerpt,
    replied_by: &'a [Vec<usize>],
    companion: &'a str,
}

impl Links<'_> {
    fn is_by_companion(&self, n: usize) -> bool {
        &*self.excerpt.messages[n].from == self.companion
    }

    /// Whether a message of the companion with an index below `end` links to message `n`.
    fn is_answered(&self, n: usize, end: usize) -> bool {
        self.replied_by[n].iter().any(|later| *later < end && self.is_by_companion(*later))
    }

    /// Whether the dialogue of message `n` includes the companion: the message, or an earlier one by the same author that it
    /// continues, replies to the companion or was answered by it before.
    fn is_in_dialogue(&self, n: usize) -> bool {
        let author = &self.excerpt.messages[n].from;
        let (mut pending, mut seen) = (vec![n], vec![n]);
        while let Some(own) = pending.pop() {
            let earlier = &self.excerpt.messages[own].replies_to;
            if self.is_answered(own, n) || earlier.iter().any(|earlier| self.is_by_companion(*earlier)) {
                return true;
            }
            let continued = earlier.iter().filter(|earlier| self.excerpt.messages[**earlier].from == *author);
            for own in continued.copied().filter(|own| !seen.contains(own)).collect::<Vec<_>>() {
                seen.push(own);
                pending.push(own);
            }
        }
        false
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::evaluation::excerpts::Message;

    /// An excerpt from authors, texts and links, with a message every 20 seconds.
    pub(in crate::evaluation) fn excerpt(messages: &[(&str, &str, &[usize])]) -> Excerpt {
        let message = |(n, (from, text, replies_to)): (usize, &(&str, &str, &[usize]))| Message {
            n,
            t: n as f64 * 20.0,
            from: (*from).into(),
            text: (*text).into(),
            replies_to: replies_to.to_vec(),
            annotated: true,
        };
        let messages = messages.iter().enumerate().map(message).collect();
        Excerpt { id: "x".into(), messages, companions: None, label: Label::Reply }
    }

    #[test]
    fn each_message_of_somebody_else_is_a_decision_with_its_kind_and_label() {
        let excerpt = excerpt(&[
            ("bo", "my disk is full", &[]),
            ("al", "delete something", &[0]),
            ("bo", "what?", &[1]),
            ("bo", "all of it?", &[2]),
            ("cy", "al: lunch?", &[]),
            ("al", "your music", &[3]),
            ("cy", "no lunch then", &[4]),
        ]);
        let found = |label| {
            let decisions = decisions(std::slice::from_ref(&excerpt), 1, &["bo".to_owned()], label);
            decisions.iter().map(|decision| (decision.n, decision.kind, decision.replied)).collect::<Vec<_>>()
        };

        let replies = [
            (0, Kind::Neither, true),
            (2, Kind::Continuing, false),
            (3, Kind::Continuing, true),
            (4, Kind::Addressed, false),
            (6, Kind::Neither, false),
        ];
        assert_eq!(found(None), replies);
        let turns: Vec<_> = found(Some(Label::Turn60s)).iter().map(|(_, _, replied)| *replied).collect();
        assert_eq!(turns, [true, false, false, true, false]);
    }

    #[test]
    fn context_and_the_companions_own_messages_are_no_decisions() {
        let mut excerpt = excerpt(&[("al", "1", &[]), ("bo", "2", &[]), ("bo", "3", &[1]), ("al", "4", &[2])]);
        excerpt.messages[1].annotated = false;

        let decisions = decisions(&[excerpt], 1, &[], None);

        assert_eq!(decisions.iter().map(|decision| (&*decision.companion, decision.n)).collect::<Vec<_>>(), [("al", 2)]);
    }
}
