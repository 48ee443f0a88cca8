use std::sync::Arc;

use super::*;
use crate::voice::Counts;

fn status() -> CallStatus {
    let call = Status {
        channel: Snowflake::new(5).unwrap(),
        is_asked_for: true,
        is_connected: true,
        silence: Silence::default(),
        is_end_to_end: true,
        is_downgraded: false,
        lasted: Some(Duration::from_secs(12 * 60 + 5)),
        people: Vec::new(),
        counts: Counts { received: 1_000, missing: 12, overtaken: 2, ..Counts::default() },
        trouble: None,
    };
    let service = |provider, host: Option<&str>| SpeechService { provider, host: host.map(Arc::from) };
    let speech = Description {
        recognition: vec![service("deepgram", Some("api.deepgram.com"))],
        recognises_words: true,
        synthesis: vec![service("rehearsal", None)],
        people: Vec::new(),
        troubles: Vec::new(),
    };
    let heard = ["Ana", "B*o"].map(|name| Text::Plain(quoting::verbatim(name))).to_vec();
    CallStatus { call, room: None, speech, heard, ignored: 1, is_stage: false }
}

fn described(status: &CallStatus) -> String {
    describe(status).in_language("en-US")
}

#[test]
fn the_status_tells_who_is_heard_how_and_how_long() {
    let text = described(&status());

    assert!(text.starts_with("**In the call of <#5>** for 12 min, encrypted end to end."), "{text}");
    assert!(text.contains("Heard: Ana and B\\*o. One more is there, and is not listened to."), "{text}");
    assert!(text.contains("Ears: **deepgram** at api.deepgram.com; words are recognised."), "{text}");
    assert!(text.contains("Voices: **rehearsal** on the machine of the bot."), "{text}");
    assert!(text.contains("Packets: 1000 received, 10 lost (1.0 %)."), "{text}");
}

#[test]
fn the_status_tells_what_does_not_work() {
    let mut trouble = status();
    trouble.call.is_connected = false;
    trouble.call.trouble = Some("Discord does not let the bot in".to_owned());
    assert!(
        described(&trouble).contains("**On the way into the call of <#5>.**\n• It does not work yet"),
        "{}",
        described(&trouble)
    );

    let mut audience = status();
    (audience.call.silence.is_suppressed, audience.is_stage) = (true, true);
    assert!(described(&audience).contains("Invite to Speak."), "{}", described(&audience));
    audience.is_stage = false;
    assert!(described(&audience).contains("allow Speak."), "{}", described(&audience));
}

#[test]
fn the_status_tells_what_a_moderator_did_to_the_bot() {
    let told = |silence| {
        let mut status = status();
        status.call.silence = silence;
        described(&status)
    };

    let muted = told(Silence { is_muted: true, ..Silence::default() });
    let deafened = told(Silence { is_deafened: true, ..Silence::default() });

    assert!(muted.contains("A moderator has muted the bot") && muted.contains("answer in writing"), "{muted}");
    assert!(deafened.contains("A moderator has deafened the bot") && deafened.contains("hear nobody"), "{deafened}");
    assert!(!told(Silence::default()).contains("moderator"));
}

#[test]
fn the_status_tells_which_services_fail_and_that_the_call_was_downgraded() {
    let told = |trouble: &[Trouble]| {
        let mut status = status();
        status.speech.troubles = trouble.to_vec();
        described(&status)
    };

    let deaf = told(&[Trouble::RecognitionFailed]);
    assert!(deaf.contains("api.deepgram.com; **they fail now**, and no words are recognised"), "{deaf}");
    assert!(!deaf.contains("words are recognised."), "{deaf}");
    let mute = told(&[Trouble::SynthesisFailed]);
    assert!(mute.contains("Voices: **rehearsal** on the machine of the bot; **they fail now**"), "{mute}");
    assert!(told(&[Trouble::RecognitionUsedUp]).contains("may have recognised is used up"));
    let mut downgraded = status();
    (downgraded.call.is_end_to_end, downgraded.call.is_downgraded) = (false, true);
    let downgraded = described(&downgraded);
    assert!(downgraded.contains("not encrypted end to end.\n• Discord has downgraded the call"), "{downgraded}");
}

#[test]
fn durations_are_told_in_words() {
    let told = [59, 60, 125, 3_600, 7_325].map(|secs| duration(Duration::from_secs(secs)).in_language("en-US"));

    assert_eq!(told, ["less than a minute", "1 min", "2 min", "1 h 0 min", "2 h 2 min"]);
}
