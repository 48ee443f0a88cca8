//! Section `voice`: rules and limits of voice calls.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Problem, duration, seconds, within};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Voice {
    /// Seconds of silence after which the words of a speaker who addressed a companion are handed over (0 to 60; docs/design/voice.md A-8). A value
    /// that is not smaller than the companions' `voice_lull_timeout` turns early hand-overs off.
    pub address_timeout_secs: f64,
    /// Seconds after a companion's answer in which the words of the answered person are handed over early (0 to 600; docs/design/voice.md A-8). 0:
    /// never.
    pub follow_up_secs: f64,
    /// Seconds without audio after which a recogniser is instructed to finish its segment (0.1 to 10; docs/design/voice.md A-13).
    pub idle_finalize_secs: f64,
    /// Seconds between a companion's selection and its spoken statement, unless a person addressed it (0 to 10; docs/design/voice.md A-64).
    pub turn_delay_secs: f64,
    /// Seconds that a question to a companion about transcribed speech may take (0.5 to 60; docs/design/voice.md A-64).
    pub decision_timeout_secs: f64,
    /// Whether a companion greets the first person who enters a call (docs/design/voice.md A-77).
    pub greeting: bool,
    /// Whether statements that answer typed messages are also spoken during a call.
    pub read_text_aloud: bool,
    /// The maximum number of characters of a statement that are spoken (50 to 10,000; docs/design/voice.md A-65).
    pub max_spoken_chars: usize,
    /// Seconds until the first audio of a sentence, after which it is dropped (1 to 60; docs/design/voice.md A-65).
    pub first_audio_timeout_secs: f64,
    /// Seconds without further audio of a sentence, after which the rest of it is dropped (0.5 to 30; docs/design/voice.md A-65).
    pub stall_timeout_secs: f64,
    /// The maximum number of calls (1 to 10,000).
    pub max_calls: usize,
    /// The maximum number of people in a call (1 to 1,000).
    pub max_people: usize,
    /// The maximum duration of a call in seconds (0 to 604,800; docs/design/voice.md A-75). 0: no limit.
    pub max_call_secs: f64,
    /// The maximum number of people in a call whose speech is recognised at the same time (1 to 1,000; docs/design/voice.md A-74).
    pub max_streams: usize,
}

seconds! {
    Voice {
        address_timeout = address_timeout_secs,
        follow_up = follow_up_secs,
        idle_finalize = idle_finalize_secs,
        turn_delay = turn_delay_secs,
        decision_timeout = decision_timeout_secs,
        first_audio_timeout = first_audio_timeout_secs,
        stall_timeout = stall_timeout_secs,
    }
}

impl Voice {
    /// `max_call_secs` as a duration. `None`: there is no limit.
    pub fn max_call(&self) -> Option<Duration> {
        (self.max_call_secs > 0.0).then(|| duration(self.max_call_secs))
    }

    pub fn check(&self) -> Result<(), Problem> {
        within("address_timeout_secs", self.address_timeout_secs, 0.0..=60.0)?;
        within("follow_up_secs", self.follow_up_secs, 0.0..=600.0)?;
        within("idle_finalize_secs", self.idle_finalize_secs, 0.1..=10.0)?;
        within("turn_delay_secs", self.turn_delay_secs, 0.0..=10.0)?;
        within("decision_timeout_secs", self.decision_timeout_secs, 0.5..=60.0)?;
        within("max_spoken_chars", self.max_spoken_chars, 50..=10_000)?;
        within("first_audio_timeout_secs", self.first_audio_timeout_secs, 1.0..=60.0)?;
        within("stall_timeout_secs", self.stall_timeout_secs, 0.5..=30.0)?;
        within("max_calls", self.max_calls, 1..=10_000)?;
        within("max_people", self.max_people, 1..=1_000)?;
        within("max_call_secs", self.max_call_secs, 0.0..=604_800.0)?;
        within("max_streams", self.max_streams, 1..=1_000)
    }
}
