//! Tells what happened to a spoken reply: who held it back, who talked into it, and what of it was heard (docs/design/voice.md ).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::sentences::{author, cut, line, listed, messages_in_words, secs};
use crate::domain::event::{Event, Recorded, Segment};
use crate::domain::id::{PersonId, Seq};
use crate::domain::message::{Author, Message};
use crate::domain::moment::Moment;
use crate::domain::voice::interruption::{Interrupted, Verdict};
use crate::domain::voice::segment::Kind;
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::StoryLine;

/// A reply that was to be spoken, as far as the record is read.
pub(super) struct SpokenReply {
    owed_at: Moment,
    /// The people who held it back.
    held_by: BTreeSet<Arc<str>>,
    /// What was said aloud since it was owed: with the number of the message, and quoted.
    said: Vec<(Seq, String)>,
    /// The words that have started to be heard.
    words: String,
    /// It was cut: what was heard of it becomes the statement.
    is_cut: bool,
}

impl SpokenReply {
    pub(super) fn new(owed: &Recorded) -> Self {
        Self { owed_at: owed.at, held_by: BTreeSet::new(), said: Vec::new(), words: String::new(), is_cut: false }
    }

    /// Whether it ended early, and the statement with what was heard follows whatever happens.
    pub(super) fn leaves_statement(&self) -> bool {
        self.is_cut && !self.words.is_empty()
    }

    /// What people said since it was owed.
    pub(super) fn hear(&mut self, recorded: &Recorded, name: &str) -> Option<StoryLine> {
        match &recorded.event {
            Event::Said { message, .. } if message.speech.is_some() && !is_redacted(message) => {
                self.said.push((recorded.seq, format!("{}: “{}”", author(message), cut(&message.text))));
                None
            }
            Event::Segment(segment) if self.is_held_by(segment) && self.held_by.insert(segment.from.id.clone()) => {
                let text = format!("{} talked before {name} began to speak, and held it back.", name_of(&segment.from));
                Some(line(recorded, "held_back", text))
            }
            _ => None,
        }
    }

    fn is_held_by(&self, segment: &Segment) -> bool {
        self.words.is_empty() && segment.ended >= self.owed_at && matches!(segment.kind, Kind::Words | Kind::Backchannel)
    }

    /// What people said meanwhile is taken in. `before` are the messages that it answered before.
    pub(super) fn extended(&mut self, messages: &[Seq], before: &[Seq], name: &str) -> String {
        let is_new = |seq: &Seq| messages.contains(seq) && !before.contains(seq);
        let quoted: Vec<_> = self.said.iter().filter(|(seq, _)| is_new(seq)).map(|(_, quoted)| quoted.clone()).collect();
        let because = if quoted.is_empty() { String::new() } else { format!(" ({})", listed(&quoted)) };
        let answers = messages_in_words(messages.len());
        format!("More was said before {name} began to speak{because}, so it begins again, and answers {answers}.")
    }

    /// A sentence is about to be heard.
    pub(super) fn started(&mut self, recorded: &Recorded, text: &str, name: &str) -> Option<StoryLine> {
        let is_first = self.words.is_empty();
        // A text that was deleted is empty.
        self.words.push_str(if text.is_empty() { " " } else { text });
        is_first.then(|| line(recorded, "speaking", format!("{name} began to speak.")))
    }

    /// Somebody talked into it, or stopped it.
    pub(super) fn interrupted(&mut self, interrupted: &Interrupted, people: &People, name: &str) -> String {
        self.is_cut |= cuts(interrupted.verdict);
        let who = interrupted.who.as_ref().map_or("Somebody", |who| people.name(who));
        let at = secs(Duration::from_millis(interrupted.at_ms));
        format!(
            "{} This was at {at} of what {name} said.{}",
            verdict_sentence(interrupted.verdict, who, name),
            drawn(interrupted)
        )
    }

    /// The statement that it became.
    pub(super) fn statement(&self, message: &Message, name: &str) -> String {
        let text = cut(&message.text);
        if message.modality.is_text() {
            return format!("{name} posted it as text, because nobody could hear it: “{text}”");
        }
        let rest = message.text.strip_prefix(self.words.trim()).map(str::trim);
        let rest = match rest.filter(|rest| !rest.is_empty() && message.cut.is_none()) {
            Some(rest) => format!(" Too long to be spoken, and only posted: “{}” (voice.max_spoken_chars).", cut(rest)),
            None => String::new(),
        };
        format!("{name} said aloud: “{text}”{rest}{}", cut_off(message))
    }
}

/// Where a statement was cut off, by whom, and what nobody heard. Empty if it was not.
pub(super) fn cut_off(message: &Message) -> String {
    let Some(known) = &message.cut else { return String::new() };
    let by = known.by.as_ref().map_or("It was cut off there".to_owned(), |by| format!("{} cut it off there", name_of(by)));
    match known.full.strip_prefix(message.text.trim_end()).map(str::trim).filter(|unheard| !unheard.is_empty()) {
        Some(unheard) => format!(" {by}; nobody heard the rest: “{}”.", cut(unheard)),
        None => format!(" {by}."),
    }
}

/// The people in a record, by id, with the newest name of each.
#[derive(Default)]
pub(super) struct People(BTreeMap<PersonId, Arc<str>>);

impl People {
    pub(super) fn note(&mut self, event: &Event) {
        let from = match event {
            Event::VoiceJoined { from } => from,
            Event::Segment(segment) => &segment.from,
            _ => return,
        };
        if !from.name.is_empty() {
            self.0.insert(PersonId::from(&*from.id), from.name.clone());
        }
    }

    fn name(&self, id: &PersonId) -> &str {
        self.0.get(id).map_or("Somebody", |name| name)
    }
}

fn name_of(person: &Author) -> &str {
    if person.name.is_empty() { "Somebody" } else { &person.name }
}

/// Whether a reply ends with this.
const fn cuts(verdict: Verdict) -> bool {
    match verdict {
        Verdict::StopWord
        | Verdict::Addressed
        | Verdict::ManyWords
        | Verdict::TookTooLong
        | Verdict::StopPressed
        | Verdict::CallEnded
        | Verdict::PlaybackLost
        | Verdict::ServerStopping
        | Verdict::Cancelled => true,
        Verdict::Unducked
        | Verdict::PlayedOut
        | Verdict::NothingSaid
        | Verdict::Backchannel
        | Verdict::FewWords
        | Verdict::Noise => false,
    }
}

fn verdict_sentence(verdict: Verdict, who: &str, name: &str) -> String {
    match verdict {
        Verdict::Unducked => format!("{who} talked into it and soon stopped: {name} spoke on, more quietly meanwhile."),
        Verdict::PlayedOut => format!("{who} talked into it, and {name} spoke more quietly to the end."),
        Verdict::NothingSaid => format!("{who} talked into it, and {name} paused; no words were heard, so it went on."),
        Verdict::Backchannel => {
            format!("{who} talked into it, and {name} paused; people only showed that they were listening, so it went on.")
        }
        Verdict::FewWords => format!(
            "{who} talked into it, and {name} paused; nobody had addressed a companion or talked for 4 s, so it went on. The words count as said."
        ),
        Verdict::Noise => {
            format!("{who} was heard, and {name} paused; after 5 s without words it went on, and the voice counts as noise.")
        }
        Verdict::StopWord => format!("{who} said a stop word (speech.words), and {name} stopped."),
        Verdict::Addressed => format!("{who} addressed a companion, and {name} stopped."),
        Verdict::ManyWords => format!("{who} talked into it, and somebody for 4 s or more, so {name} stopped."),
        Verdict::TookTooLong => {
            format!("{who} talked into it, and {name} paused; after 5 s people were still talking, so it stopped.")
        }
        Verdict::StopPressed => format!("Somebody pressed Stop, or typed a stop phrase, and {name} stopped."),
        Verdict::CallEnded => format!("The voice call ended, and {name} stopped."),
        Verdict::ServerStopping => format!("The server was stopping, and {name} stopped."),
        Verdict::PlaybackLost => format!("What {name} said was played no further for 5 s, so it stopped."),
        Verdict::Cancelled => {
            format!("{name} stopped, because the statement was not wanted any more: a clear, a pause, a leave or a deletion.")
        }
    }
}

/// What was drawn when somebody began to talk, and what follows from it (docs/design/voice.md ).
fn drawn(interrupted: &Interrupted) -> String {
    let Some(draw) = interrupted.draw else { return String::new() };
    let tolerance = interrupted.tolerance;
    let (is, gives_way) = if draw < tolerance { ("is", "2 s") } else { ("is not", "0.5 s") };
    format!(" Its draw of {draw:.2} {is} below its tolerance of {tolerance:.2}: it pauses after {gives_way} of talk.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::{Cut, Modality, Role};

    fn interrupted(verdict: Verdict, draw: Option<f64>) -> Interrupted {
        Interrupted { who: Some("ana".into()), draw, tolerance: 0.3, verdict, at_ms: 3_200 }
    }

    fn person(name: &str) -> Author {
        Author { id: name.into(), name: format!("{name} Doe").into(), role: Role::Person }
    }

    fn reply() -> SpokenReply {
        let event = Event::Cleared;
        SpokenReply::new(&Recorded { seq: Seq(1), at: Moment::ZERO, handled: Seq(1), turn: None, event })
    }

    fn statement(text: &str, modality: Modality, cut: Option<Cut>) -> Message {
        Message {
            asks_to_stop: false,
            speech: None,
            cut: cut.map(Box::new),
            id: None,
            from: Author { id: "aria".into(), name: "Aria".into(), role: Role::Companion },
            text: text.into(),
            modality,
            lull_endpoint: false,
            kind: None,
            address: Default::default(),
        }
    }

    #[test]
    fn an_interruption_is_told_with_its_person_place_and_draw() {
        let mut people = People::default();
        people.note(&Event::VoiceJoined { from: person("ana") });
        let told = |verdict, draw| reply().interrupted(&interrupted(verdict, draw), &people, "Aria");

        assert_eq!(
            told(Verdict::StopWord, Some(0.62)),
            "ana Doe said a stop word (speech.words), and Aria stopped. This was at 3.2 s of what Aria said. Its draw of 0.62 is not below its \
             tolerance of 0.30: it pauses after 0.5 s of talk."
        );
        assert!(told(Verdict::NothingSaid, Some(0.1)).ends_with("is below its tolerance of 0.30: it pauses after 2 s of talk."));
        assert!(told(Verdict::StopPressed, None).ends_with("This was at 3.2 s of what Aria said."));
        let unnamed = reply().interrupted(&interrupted(Verdict::Unducked, None), &People::default(), "Aria");
        assert!(unnamed.starts_with("Somebody talked into it"), "{unnamed}");
    }

    #[test]
    fn a_statement_is_told_as_it_was_heard() {
        let mut reply = reply();
        reply.words = "Rome is old. ".to_owned();
        let cut = |by| Cut { full: "Rome is old. And large.".into(), by };

        let heard = statement("Rome is", Modality::Voice, Some(cut(Some(person("ana")))));
        assert_eq!(
            reply.statement(&heard, "Aria"),
            "Aria said aloud: “Rome is” ana Doe cut it off there; nobody heard the rest: “old. And large.”."
        );
        assert!(cut_off(&statement("Rome is", Modality::Voice, Some(cut(None)))).starts_with(" It was cut off there; nobody"));
        let long = statement("Rome is old. And large.", Modality::Voice, None);
        assert!(reply.statement(&long, "Aria").contains("only posted: “And large.”"));
        let all = statement("Rome is old.", Modality::Voice, None);
        assert_eq!(reply.statement(&all, "Aria"), "Aria said aloud: “Rome is old.”");
        let text = statement("Rome is old.", Modality::Text, None);
        assert_eq!(reply.statement(&text, "Aria"), "Aria posted it as text, because nobody could hear it: “Rome is old.”");
    }
}
