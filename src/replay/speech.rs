//! People's speech and other actions in the voice call of a script.

use serde::Deserialize;

use super::script::{Action, ScriptedEvent};
use crate::domain::moment::Moment;
use crate::domain::voice::said::{Said, Sound};

/// A person's action in the voice call.
#[derive(Clone, Debug)]
pub struct VoiceAction {
    /// The person's id, which is also the name.
    pub from: String,
    pub what: VoiceEvent,
}

/// The kind of an action in the voice call.
#[derive(Clone, Debug)]
pub enum VoiceEvent {
    /// The person enters the call.
    Join,
    /// The person leaves the call.
    Leave,
    /// The person is muted.
    Mute,
    /// The first voiced hop.
    Start,
    /// The end of the last voiced hop.
    End,
    /// The recogniser has words that may still change.
    Partial(String),
    /// The recogniser returns a final result. The text is empty if it has no words.
    Final {
        text: String,
        /// The start of the first voiced hop. `None`: the time of `speech: "start"`.
        started: Option<Moment>,
        /// The end of the last voiced hop. `None`: the time of `speech: "end"`, else now.
        ended: Option<Moment>,
    },
}

/// The key `voice` in a script.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ParsedVoice {
    Join,
    Leave,
    Mute,
}

/// The key `speech` in a script.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ParsedSpeech {
    Start,
    End,
}

/// The speech keys of an event in a script.
#[derive(Debug)]
pub(super) struct ParsedVoiceEvent {
    pub(super) voice: Option<ParsedVoice>,
    pub(super) speech: Option<ParsedSpeech>,
    pub(super) partial: Option<String>,
    pub(super) last: Option<String>,
    pub(super) say: Option<String>,
    pub(super) started: Option<Moment>,
    pub(super) ended: Option<Moment>,
}

impl ParsedVoiceEvent {
    /// Whether any of the keys is present.
    pub(super) const fn is_given(&self) -> bool {
        self.voice.is_some() || self.speech.is_some() || self.partial.is_some() || self.last.is_some() || self.say.is_some()
    }

    /// The resulting events, in order; `say` results in several. The error is a sentence without its subject.
    pub(super) fn events(self, at: Moment, channel: &str, from: Option<String>) -> Result<Vec<ScriptedEvent>, String> {
        let from = from.ok_or("something in a voice call needs `from`")?;
        if self.last.is_none() && (self.started.is_some() || self.ended.is_some()) {
            return Err("only `final` has `started` and `ended`".into());
        }
        let (started, ended) = (self.started, self.ended);
        if started.zip(ended).is_some_and(|(started, ended)| ended < started) || ended.is_some_and(|ended| ended > at) {
            return Err("`started` must not be after `ended`, and `ended` not after `at`".into());
        }
        let what = match (self.voice, self.speech, self.partial, self.last, self.say) {
            (Some(ParsedVoice::Join), None, None, None, None) => vec![(at, VoiceEvent::Join)],
            (Some(ParsedVoice::Leave), None, None, None, None) => vec![(at, VoiceEvent::Leave)],
            (Some(ParsedVoice::Mute), None, None, None, None) => vec![(at, VoiceEvent::Mute)],
            (None, Some(ParsedSpeech::Start), None, None, None) => vec![(at, VoiceEvent::Start)],
            (None, Some(ParsedSpeech::End), None, None, None) => vec![(at, VoiceEvent::End)],
            (None, None, Some(partial), None, None) => vec![(at, VoiceEvent::Partial(partial))],
            (None, None, None, Some(text), None) => vec![(at, VoiceEvent::Final { text, started, ended })],
            (None, None, None, None, Some(text)) => said(at, &Said::new(&text).map_err(|error| format!("`say` has {error}"))?),
            _ => return Err("needs exactly one of `voice`, `speech`, `partial`, `final`, `say`".into()),
        };
        let event = |(at, what)| {
            let action = Action::Voice(VoiceAction { from: from.clone(), what });
            ScriptedEvent { at, channel: channel.to_owned(), action }
        };
        Ok(what.into_iter().map(event).collect())
    }
}

/// The events of the call for an utterance with this text.
fn said(at: Moment, said: &Said) -> Vec<(Moment, VoiceEvent)> {
    let (started, ended) = (Some(at), Some(at + said.duration()));
    let event = |sound| match sound {
        Sound::Start => VoiceEvent::Start,
        Sound::Partial(text) => VoiceEvent::Partial(text.to_owned()),
        Sound::End => VoiceEvent::End,
        Sound::Final(text) => VoiceEvent::Final { text: text.to_owned(), started, ended },
    };
    said.sounds().map(|(after, sound)| (at + after, event(sound))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;

    fn error_of(happens: &str) -> String {
        let event = format!(r#"{{ "at": 5.0, "channel": "1", {happens} }}"#);
        let script = format!(r#"{{ "companions": [ {{ "id": "aria" }} ], "events": [ {event} ] }}"#);
        Script::from_json(&script).unwrap_err().to_string()
    }

    #[test]
    fn an_error_names_the_key_and_what_it_may_be() {
        for (happens, key, way_out) in [
            (r#""from": "Bob", "speech": "begin""#, "events[0].speech", "expected `start` or `end`"),
            (r#""from": "Bob", "voice": "quit""#, "events[0].voice", "expected one of `join`, `leave`, `mute`"),
            (r#""from": "Bob", "partial": 5"#, "events[0].partial", "must be a text"),
            (r#""from": "Bob", "final": ["so"]"#, "events[0].final", "must be a text"),
            (r#""from": "Bob", "say": true"#, "events[0].say", "must be a text"),
            (r#""from": "Bob", "final": "so", "started": "now""#, "events[0].started", "must be"),
            (r#""from": "Bob", "final": "so", "ended": -1.0"#, "events[0].ended", ""),
            (r#""say": "so""#, "events[0]", "needs `from`"),
            (
                r#""from": "Bob", "say": "so", "final": "so""#,
                "events[0]",
                "exactly one of `voice`, `speech`, `partial`, `final`, `say`",
            ),
            (r#""from": "Bob", "say": "so", "text": "so""#, "events[0]", "needs exactly one thing that happens"),
            (r#""from": "Bob", "say": "so", "ended": 1.0"#, "events[0]", "only `final` has `started` and `ended`"),
            (r#""from": "Bob", "final": "so", "ended": 6.0"#, "events[0]", "`ended` not after `at`"),
            (r#""from": "Bob", "final": "so", "started": 4.0, "ended": 3.0"#, "events[0]", "`started` must not be after `ended`"),
        ] {
            let error = error_of(happens);

            assert!(error.contains(key) && error.contains(way_out), "{happens}: {error}");
        }
    }
}
