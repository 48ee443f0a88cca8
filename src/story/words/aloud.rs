//! Sentences about a spoken reply.

use std::time::Duration;

use super::{Told, cut, name_of, span};
use crate::domain::message::Message;
use crate::domain::voice::interruption::Interrupted;
use crate::story::Subject;
use crate::texts::Language;

/// A statement that was to be spoken. `heard` is the text whose playback started.
pub(super) fn statement(message: &Message, heard: &str, who: &Subject) -> Told {
    let text = cut(&message.text);
    if message.modality.is_text() {
        return who.sentence("why.course.said_as_text", &[("text", &text)]);
    }
    let rest = message.text.strip_prefix(heard.trim()).map(str::trim);
    let rest = rest.filter(|rest| !rest.is_empty() && message.cut.is_none());
    let written = rest.map(|rest| who.sentence("why.course.said_rest", &[("rest", &cut(rest))]));
    who.sentence("why.course.said_aloud", &[("text", &text)]).and(written).and(cut_off(message, who.language))
}

/// An interruption or a stop.
pub(super) fn interrupted(interrupted: &Interrupted, by: Option<&str>, who: &Subject) -> Told {
    let by = by.map_or_else(|| who.say("why.somebody", &[]), str::to_owned);
    let at = span(Duration::from_millis(interrupted.at_ms), who.language);
    let verdict = who.sentence(&format!("why.interrupted.{}", interrupted.verdict), &[("who", &by)]);
    verdict.and(Some(who.sentence("why.interrupted.at", &[("time", &at)])))
}

/// The position and the author of a cut, and the text that was not played. `None` if the statement was not cut off.
pub(super) fn cut_off(message: &Message, language: Language) -> Option<Told> {
    let known = message.cut.as_ref()?;
    let ended = match &known.by {
        Some(by) => Told::new(language, "why.cut.by", &[("who", &name_of(by, language))]),
        None => Told::new(language, "why.cut.unknown", &[]),
    };
    let rest = known.full.strip_prefix(message.text.trim_end()).map(str::trim).filter(|unheard| !unheard.is_empty());
    Some(ended.and(rest.map(|rest| Told::new(language, "why.cut.rest", &[("rest", &cut(rest))]))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::{Author, Cut, Modality, Role};
    use crate::domain::voice::interruption::Verdict;
    use crate::story::samples::aria;

    fn person(name: &str) -> Author {
        Author { id: name.into(), name: format!("{name} Doe").into(), role: Role::Person }
    }

    fn message(text: &str, modality: Modality, cut: Option<Cut>) -> Message {
        let from = Author { id: "aria".into(), name: "Aria".into(), role: Role::Companion };
        Message { cut: cut.map(Box::new), modality, ..Message::new(from, text.into()) }
    }

    #[test]
    fn an_interruption_is_told_with_its_person_and_place() {
        let told = |by, verdict| {
            interrupted(&Interrupted { who: Some("ana".into()), draw: None, tolerance: 0.3, verdict, at_ms: 3_200 }, by, &aria())
        };

        let stopped = told(Some("ana Doe"), Verdict::StopWord);

        assert_eq!(stopped.text, "ana Doe said a word that means stop, so Aria stopped. This was 3.2 seconds into the answer.");
        assert_eq!(stopped.setting, Some("speech.words"));
        assert!(told(None, Verdict::Unducked).text.starts_with("Somebody talked"));
    }

    #[test]
    fn a_statement_is_told_as_it_was_heard() {
        let told = |said: &Message| statement(said, "Rome is old. ", &aria()).text;
        let cut = |by| Some(Cut { full: "Rome is old. And large.".into(), by });

        for (said, expected) in [
            (
                message("Rome is", Modality::Voice, cut(Some(person("ana")))),
                "Aria said aloud: “Rome is” ana Doe interrupted there. Nobody heard the rest: “old. And large.”",
            ),
            (
                message("Rome is", Modality::Voice, cut(None)),
                "Aria said aloud: “Rome is” It ended there. Nobody heard the rest: “old. And large.”",
            ),
            (
                message("Rome is old. And large.", Modality::Voice, None),
                "Aria said aloud: “Rome is old. And large.” The rest was only written, because it was too long or could not be spoken: \
                 “And large.”",
            ),
            (message("Rome is old.", Modality::Voice, None), "Aria said aloud: “Rome is old.”"),
            (message("Rome is old.", Modality::Text, None), "Aria wrote it, because nobody could hear it: “Rome is old.”"),
        ] {
            assert_eq!(told(&said), expected);
        }
    }
}
