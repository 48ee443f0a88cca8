//! What happened to a spoken reply, in words.

use std::time::Duration;

use super::{cut, name_of, secs};
use crate::domain::message::Message;
use crate::domain::voice::interruption::{Interrupted, Verdict};

/// A statement that was to be spoken. `heard`: the words that had started to be heard.
pub(super) fn statement(message: &Message, heard: &str, name: &str) -> String {
    let text = cut(&message.text);
    if message.modality.is_text() {
        return format!("{name} posted it as text, because nobody could hear it: “{text}”");
    }
    let rest = message.text.strip_prefix(heard.trim()).map(str::trim);
    let rest = match rest.filter(|rest| !rest.is_empty() && message.cut.is_none()) {
        Some(rest) => {
            format!(
                " Only posted, because it was too long (voice.max_spoken_chars) or could not be spoken to its end: “{}”.",
                cut(rest)
            )
        }
        None => String::new(),
    };
    format!("{name} said aloud: “{text}”{rest}{}", cut_off(message))
}

/// Somebody talked into it, or stopped it.
pub(super) fn interrupted(interrupted: &Interrupted, by: Option<&str>, name: &str) -> String {
    let verdict = verdict_sentence(interrupted.verdict, by.unwrap_or("Somebody"), name);
    let at = secs(Duration::from_millis(interrupted.at_ms));
    format!("{verdict} This was at {at} of what {name} said.{}", drawn(interrupted))
}

/// Where a statement was cut off, by whom, and what nobody heard. Empty if it was not.
pub(crate) fn cut_off(message: &Message) -> String {
    let Some(known) = &message.cut else { return String::new() };
    let by = known.by.as_ref().map_or("It was cut off there".to_owned(), |by| format!("{} cut it off there", name_of(by)));
    match known.full.strip_prefix(message.text.trim_end()).map(str::trim).filter(|unheard| !unheard.is_empty()) {
        Some(unheard) => format!(" {by}; nobody heard the rest: “{}”.", cut(unheard)),
        None => format!(" {by}."),
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
        Verdict::Silenced => format!("The companions were muted or deafened in the call, and {name} stopped."),
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
    use crate::domain::message::{Author, Cut, Modality, Role};

    fn person(name: &str) -> Author {
        Author { id: name.into(), name: format!("{name} Doe").into(), role: Role::Person }
    }

    fn message(text: &str, modality: Modality, cut: Option<Cut>) -> Message {
        let from = Author { id: "aria".into(), name: "Aria".into(), role: Role::Companion };
        Message { cut: cut.map(Box::new), modality, ..Message::new(from, text.into()) }
    }

    #[test]
    fn an_interruption_is_told_with_its_person_place_and_draw() {
        let told_of = |by, verdict, draw| {
            interrupted(&Interrupted { who: Some("ana".into()), draw, tolerance: 0.3, verdict, at_ms: 3_200 }, by, "Aria")
        };
        let told = |verdict, draw| told_of(Some("ana Doe"), verdict, draw);

        assert_eq!(
            told(Verdict::StopWord, Some(0.62)),
            "ana Doe said a stop word (speech.words), and Aria stopped. This was at 3.2 s of what Aria said. Its draw of 0.62 is not below its \
             tolerance of 0.30: it pauses after 0.5 s of talk."
        );
        assert!(told(Verdict::NothingSaid, Some(0.1)).ends_with("is below its tolerance of 0.30: it pauses after 2 s of talk."));
        assert!(told(Verdict::StopPressed, None).ends_with("This was at 3.2 s of what Aria said."));
        let unnamed = told_of(None, Verdict::Unducked, None);
        assert!(unnamed.starts_with("Somebody talked into it"), "{unnamed}");
    }

    #[test]
    fn a_statement_is_told_as_it_was_heard() {
        let told = |said: &Message| statement(said, "Rome is old. ", "Aria");
        let cut = |by| Cut { full: "Rome is old. And large.".into(), by };

        let heard = message("Rome is", Modality::Voice, Some(cut(Some(person("ana")))));
        assert_eq!(
            told(&heard),
            "Aria said aloud: “Rome is” ana Doe cut it off there; nobody heard the rest: “old. And large.”."
        );
        assert!(cut_off(&message("Rome is", Modality::Voice, Some(cut(None)))).starts_with(" It was cut off there; nobody"));
        let long = message("Rome is old. And large.", Modality::Voice, None);
        assert!(told(&long).contains("could not be spoken to its end: “And large.”"));
        let all = message("Rome is old.", Modality::Voice, None);
        assert_eq!(told(&all), "Aria said aloud: “Rome is old.”");
        let text = message("Rome is old.", Modality::Text, None);
        assert_eq!(told(&text), "Aria posted it as text, because nobody could hear it: “Rome is old.”");
    }
}
