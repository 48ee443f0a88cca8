//! Typed texts that count as speech ("say it aloud"). A text gets the timing of speech, and is then processed like speech.

use std::time::Duration;

use tokio::time::Instant;

use super::call_handle::CallHandle;
use crate::actors::runtime::owned_task::OwnedTask;
use crate::domain::call::Input;
use crate::domain::id::PersonId;
use crate::domain::moment::Moment;
use crate::domain::voice::said::{Said, Sound, TYPED};
use crate::domain::voice::speech::{Pulse, Stretch};
use crate::ports::speech_recognition::Segment;

const VOICED_EVERY: Duration = Duration::from_millis(100);

/// Says a text as a person in the call. The person counts as talking until the text ends or the returned value is dropped. If the person leaves, the
/// words so far are recorded. After an opt-out, nothing is recorded.
pub fn say_typed_text(hearing: CallHandle, user: PersonId, said: Said) -> OwnedTask {
    let task = tokio::spawn(async move {
        say(&hearing, &user, &said).await;
        hearing.report(Input::SaidAll { user });
    });
    task.into()
}

async fn say(hearing: &CallHandle, user: &PersonId, said: &Said) {
    let begun = Instant::now();
    let started = hearing.context().clock.now();
    let (mut until, mut so_far) = (started, "");
    for (after, sound) in said.sounds() {
        voice_until(hearing, user, begun, started, &mut until, after).await;
        let at = started + after;
        if hearing.is_opted_out(user) {
            return;
        }
        if hearing.call.read(|call| call.person(user).is_none()) {
            return record(hearing, user, started, at, so_far).await;
        }
        match sound {
            Sound::Start => pulse(hearing, user, Pulse::Started { started, until: at }),
            Sound::Partial(text) => {
                so_far = text;
                hearing.partial(user, &text.into(), started);
            }
            Sound::End => {
                pulse(hearing, user, Pulse::Ended(Stretch { started, ended: at, voiced: at.since(started) }));
                until = Moment::from_micros(u64::MAX);
            }
            Sound::Final(text) => return record(hearing, user, started, started + said.duration(), text).await,
        }
    }
}

fn pulse(hearing: &CallHandle, user: &PersonId, pulse: Pulse) {
    hearing.report(Input::Pulse { user: user.clone(), pulse });
}

/// Waits, and reports voice meanwhile.
async fn voice_until(
    hearing: &CallHandle,
    user: &PersonId,
    begun: Instant,
    started: Moment,
    until: &mut Moment,
    after: Duration,
) {
    while *until < started + after {
        let to = (*until + VOICED_EVERY).min(started + after);
        tokio::time::sleep_until(begun + to.since(started)).await;
        pulse(hearing, user, Pulse::Voiced { from: *until, to });
        *until = to;
    }
    tokio::time::sleep_until(begun + after).await;
}

async fn record(hearing: &CallHandle, user: &PersonId, started: Moment, ended: Moment, text: &str) {
    let segment = Segment {
        id: format!("say-{}", started.as_micros()).into(),
        text: text.into(),
        is_verbatim: true,
        started,
        ended,
        voiced: Some(ended.since(started)),
        no_speech: None,
        confidence: None,
        is_last: true,
        is_answer: true,
    };
    if let Err(error) = hearing.recognised(user, TYPED, &segment).await {
        tracing::error!(%error, "what a person said could not be put on record");
    }
}
