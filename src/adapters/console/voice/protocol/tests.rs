//! The examples of `tests/contracts/voice-protocol.json`, which the page's side reads, too (`tests/page/voice-protocol.mjs`).

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::ports::backend::Detail;

const MAX_TEXT_CHARS: usize = 8_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Examples {
    #[serde(rename = "about")]
    _about: String,
    limits: Value,
    close: Value,
    microphone: Vec<Frame>,
    companion: Vec<Frame>,
    refused_microphone: Vec<RefusedFrame>,
    refused_companion: Vec<RefusedFrame>,
    from_page: Vec<Value>,
    refused_from_page: Vec<RefusedText>,
    from_server: Vec<Value>,
    refused_from_server: Vec<RefusedText>,
    description: Value,
}

#[derive(Deserialize)]
struct Frame {
    number: u32,
    reply: Option<u32>,
    packet: String,
    frame: String,
}

#[derive(Deserialize)]
struct RefusedFrame {
    frame: String,
    /// The number of zero bytes after it.
    #[serde(default)]
    zeros: usize,
    error: String,
}

#[derive(Deserialize)]
struct RefusedText {
    frame: String,
    error: String,
}

fn examples() -> Examples {
    serde_json::from_str(include_str!("../../../../../tests/contracts/voice-protocol.json")).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

impl RefusedFrame {
    fn bytes(&self) -> Vec<u8> {
        let mut frame = bytes(&self.frame);
        frame.resize(frame.len() + self.zeros, 0);
        frame
    }
}

#[test]
fn the_limits_and_close_codes_are_those_of_the_examples() {
    let examples = examples();

    let codes: serde_json::Map<_, _> = Close::ALL.iter().map(|close| (close.name().to_owned(), close.code().into())).collect();

    assert_eq!(Value::Object(codes), examples.close);
    assert_eq!(
        json!({
            "version": VERSION,
            "frame_ms": FRAME_MS,
            "sample_rate": SAMPLE_RATE,
            "samples_per_frame": SAMPLES_PER_FRAME,
            "packet_bytes": MAX_PACKET_BYTES,
            "frame_bytes": MAX_FRAME_BYTES,
            "unsent_frames": MAX_UNSENT_FRAMES,
        }),
        examples.limits
    );
}

#[test]
fn binary_frames_are_read_and_written_as_in_the_examples() {
    let examples = examples();

    for Frame { number, packet, frame, .. } in &examples.microphone {
        assert_eq!(MicrophoneFrame::read(&bytes(frame)), Ok(MicrophoneFrame { number: *number, packet: &bytes(packet) }));
    }
    for Frame { number, reply, packet, frame } in &examples.companion {
        let packet = bytes(packet);
        let read = CompanionFrame { number: *number, reply: reply.unwrap(), packet: &packet };
        assert_eq!(CompanionFrame::read(&bytes(frame)), Ok(read));
        assert_eq!(read.write(), bytes(frame));
    }
    assert!(!examples.microphone.is_empty() && !examples.companion.is_empty());
}

#[test]
fn other_binary_frames_are_refused_by_name() {
    let examples = examples();

    for refused in &examples.refused_microphone {
        assert_eq!(MicrophoneFrame::read(&refused.bytes()).unwrap_err().name(), refused.error, "{}", refused.frame);
    }
    for refused in &examples.refused_companion {
        assert_eq!(CompanionFrame::read(&refused.bytes()).unwrap_err().name(), refused.error, "{}", refused.frame);
    }
}

#[test]
fn the_longest_packet_fits() {
    let packet = [7; MAX_PACKET_BYTES];

    let frame = CompanionFrame { number: u32::MAX, reply: u32::MAX, packet: &packet }.write();

    assert!(frame.len() <= MAX_FRAME_BYTES);
    assert_eq!(CompanionFrame::read(&frame).unwrap().packet, packet);
}

#[test]
fn messages_of_the_page_are_those_of_the_examples() {
    for example in &examples().from_page {
        let message = PageMessage::read(&example.to_string(), MAX_TEXT_CHARS).unwrap();
        assert_eq!(serde_json::to_value(message).unwrap(), *example);
    }
}

#[test]
fn messages_of_the_server_are_those_of_the_examples() {
    for example in &examples().from_server {
        let message = ServerMessage::read(&example.to_string()).unwrap();
        let written: Value = serde_json::from_str(&message.write()).unwrap();
        assert_eq!(written, *example);
    }
}

#[test]
fn the_description_of_a_room_is_that_of_the_examples() {
    let examples = examples();

    let description: Description = serde_json::from_value(examples.description.clone()).unwrap();

    assert_eq!(serde_json::to_value(description).unwrap(), examples.description);
}

#[test]
fn other_messages_are_refused_by_name() {
    let examples = examples();

    for RefusedText { frame, error } in &examples.refused_from_page {
        assert_eq!(PageMessage::read(frame, MAX_TEXT_CHARS).unwrap_err().name(), error, "{frame}");
    }
    for RefusedText { frame, error } in &examples.refused_from_server {
        assert_eq!(ServerMessage::read(frame).unwrap_err().name(), error, "{frame}");
    }
}

#[test]
fn every_type_of_message_has_an_example() {
    let examples = examples();
    let types = |list: &[Value]| list.iter().map(|one| one["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let (from_page, from_server) = (types(&examples.from_page), types(&examples.from_server));

    // An unknown type is refused with the list of the known ones.
    let known = |error: Refused| {
        let text = error.to_string();
        let list = text.split("expected one of ").nth(1).unwrap();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };

    for name in known(PageMessage::read(r#"{"type":"?"}"#, 1).unwrap_err()) {
        assert!(from_page.contains(&name), "{name}");
    }
    for name in known(ServerMessage::read(r#"{"type":"?"}"#).unwrap_err()) {
        assert!(from_server.contains(&name), "{name}");
    }
}

#[test]
fn words_to_say_are_as_long_as_a_message_may_be() {
    let say = |chars: usize| PageMessage::read(&json!({ "type": "say", "text": "ä".repeat(chars) }).to_string(), 10);

    assert_eq!(say(10), Ok(PageMessage::Say { text: "ä".repeat(10) }));
    assert_eq!(say(11), Err(Refused::Text { field: "say.text", chars: 11, max: 10 }));
    assert_eq!(say(0).unwrap_err().to_string(), "say.text has 0 characters, from 1 to 10 are accepted; split it");
}

#[test]
fn texts_of_the_server_are_bounded() {
    let long = "ä".repeat(20_000) + "end";
    let caption = ServerMessage::Caption { user: "Ana".into(), text: long.clone(), is_final: false, kind: Kind::Words };
    let cut = ServerMessage::Cut { reply: 1, heard: long.clone() };
    let error = ServerMessage::Error { code: Trouble::SayRefused, why: Detail::from("long").why(), fix: long };

    let [caption, cut, error] = [caption, cut, error].map(|message| serde_json::from_str::<Value>(&message.write()).unwrap());

    let chars = |value: &Value| value.as_str().unwrap().chars().count();
    assert_eq!([chars(&caption["text"]), chars(&cut["heard"]), chars(&error["fix"])], [1_000, 10_000, 300]);
    assert!(caption["text"].as_str().unwrap().ends_with("end"));
}

#[test]
fn a_reason_fits_into_a_close_frame() {
    let frame = format!(r#"{{"type":"{}"}}"#, "ä".repeat(200));

    let reason = PageMessage::read(&frame, 10).unwrap_err().reason();

    assert!(reason.starts_with("not a message: unknown variant `ä") && reason.len() <= MAX_REASON_BYTES, "{reason}");
}

#[test]
fn no_change_of_an_example_panics() {
    let examples = examples();
    let texts = examples.from_page.iter().chain(&examples.from_server).map(Value::to_string);
    let frames = examples.microphone.iter().chain(&examples.companion).map(|one| bytes(&one.frame));

    for frame in texts.map(String::into_bytes).chain(frames) {
        for at in 0..frame.len() {
            for change in [0, b'"', b'}', 0x7F, 0xFF] {
                let mut changed = frame.clone();
                changed[at] = change;
                for bytes in [&changed[..], &changed[..at]] {
                    let text = String::from_utf8_lossy(bytes);
                    let read = [
                        PageMessage::read(&text, MAX_TEXT_CHARS).err(),
                        ServerMessage::read(&text).err(),
                        MicrophoneFrame::read(bytes).err(),
                        CompanionFrame::read(bytes).err(),
                    ];
                    assert!(read.iter().flatten().all(|refused| refused.reason().len() <= MAX_REASON_BYTES));
                }
            }
        }
    }
}
