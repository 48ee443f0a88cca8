//! Fuzzes the voice protocol: binary frames, messages, and sequences of them on one connection.

use futures_util::stream;
use parking_lot::Mutex;
use serde_json::Value;

use super::protocol::{CompanionFrame, MAX_CAPTION_CHARS, MAX_FIX_CHARS, MAX_PACKET_BYTES, MAX_SPOKEN_CHARS};
use super::*;
use crate::auth::Admission;
use crate::fuzz::with_console;
use crate::fuzzing::{is_bounded, text};

const EXAMPLES: &str = include_str!("../../../../tests/contracts/voice-protocol.json");
const MAX_TEXT_CHARS: usize = 100;
/// The longest reason of a close frame in bytes (RFC 6455, 5.5).
const MAX_REASON_BYTES: usize = 123;

/// Frames of both sides, and the longest ones.
pub fn frames() -> Vec<Vec<u8>> {
    let longest = [(1, 5), (2, 9)].map(|(kind, head)| [vec![kind], vec![7; head - 1 + MAX_PACKET_BYTES]].concat());
    let hex =
        |text: &str| (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hex")).collect();
    let examples = examples(&["microphone", "companion"]);
    examples.iter().map(|example| hex(example["frame"].as_str().expect("a frame"))).chain(longest).collect()
}

/// Messages of both sides.
pub fn messages() -> Vec<Vec<u8>> {
    examples(&["from_page", "from_server"]).iter().map(|example| example.to_string().into_bytes()).collect()
}

/// The input from a page, one frame per line. The first byte is the kind of frame.
pub fn sessions() -> Vec<Vec<u8>> {
    let told: Vec<Vec<u8>> = examples(&["from_page"]).iter().map(|message| format!("t{message}").into_bytes()).collect();
    let heard: Vec<Vec<u8>> =
        frames().into_iter().filter(|frame| frame[0] == 1).map(|frame| [b"b", &frame[..]].concat()).collect();
    let talk = [&heard[..], &told[..], &heard[..]].concat();
    vec![talk.join(&b'\n'), told.join(&b'\n'), [&heard[..1], &[b"r".to_vec(), b"p".to_vec()]].concat().join(&b'\n')]
}

fn examples(lists: &[&str]) -> Vec<Value> {
    let examples: Value = serde_json::from_str(EXAMPLES).expect("JSON");
    lists.iter().flat_map(|list| examples[*list].as_array().expect("a list").clone()).collect()
}

/// A frame is accepted if and only if encoding it again gives the same bytes.
pub fn frame(bytes: &[u8]) {
    let may_be =
        |kind: u8, head: usize| bytes.first() == Some(&kind) && (head + 1..=head + MAX_PACKET_BYTES).contains(&bytes.len());

    match MicrophoneFrame::read(bytes) {
        Ok(MicrophoneFrame { number, packet }) => {
            assert!(may_be(1, 5) && bytes.len() <= MAX_FRAME_BYTES);
            assert_eq!([&[1], &number.to_be_bytes()[..], packet].concat(), bytes);
        }
        Err(refused) => assert!(!may_be(1, 5) && is_reason(&refused.reason()), "{refused}"),
    }
    match CompanionFrame::read(bytes) {
        Ok(frame) => {
            assert!(may_be(2, 9) && bytes.len() <= MAX_FRAME_BYTES);
            assert_eq!(frame.write(), bytes);
        }
        Err(refused) => assert!(!may_be(2, 9) && is_reason(&refused.reason()), "{refused}"),
    }
}

/// An accepted message loses nothing when it is encoded, and the result is accepted again.
pub fn message(bytes: &[u8]) {
    let text = text(bytes);
    let sent: Option<Value> = serde_json::from_str(&text).ok();

    match PageMessage::read(&text, MAX_TEXT_CHARS) {
        Ok(message) => {
            assert_eq!(serde_json::to_value(&message).ok(), sent);
            let PageMessage::Say { text } = message else { return };
            assert!(!text.is_empty() && is_bounded(&text, MAX_TEXT_CHARS));
        }
        Err(refused) => assert!(is_reason(&refused.reason()), "{refused}"),
    }
    match ServerMessage::read(&text) {
        Ok(message) => {
            let written = message.clone().write();
            let again = ServerMessage::read(&written).expect("what is written can be read");
            assert_eq!(again.clone().write(), written);
            match &again {
                ServerMessage::Caption { text, .. } => assert!(is_bounded(text, MAX_CAPTION_CHARS)),
                ServerMessage::Sentence { text, .. } | ServerMessage::Cut { heard: text, .. } => {
                    assert!(is_bounded(text, MAX_SPOKEN_CHARS));
                }
                ServerMessage::Error { fix, .. } => assert!(is_bounded(fix, MAX_FIX_CHARS)),
                _ => assert_eq!(again, message),
            }
        }
        Err(refused) => assert!(is_reason(&refused.reason()), "{refused}"),
    }
}

/// Every frame before the first invalid one reaches the call, in order and unchanged. No later frame does.
pub fn session(bytes: &[u8]) {
    let frames = frames_of(bytes);
    let (mut expected, mut is_refused, mut binary, mut messages) = (Vec::new(), false, 0, 0);
    let limit = with_console(|console| console.shared.settings.max_text_chars);
    for frame in &frames {
        let taken = match frame {
            Message::Binary(frame) => {
                binary += 1;
                MicrophoneFrame::read(frame).map(|frame| Some(Taken::Heard(frame.number, frame.packet.to_vec())))
            }
            Message::Text(text) => {
                messages += 1;
                match PageMessage::read(text, limit) {
                    // A refused text does not end the connection; `words` has the rules for texts.
                    Ok(PageMessage::Say { .. }) | Err(Refused::Text { .. }) => Ok(None),
                    message => message.map(|message| Some(Taken::Told(without_position(message)))),
                }
            }
            _ => Ok(None),
        };
        // Time passes during the test, so a limit may be a little higher.
        is_refused |= taken.is_err();
        if is_refused || binary > MAX_FRAMES_PER_SECOND * 10 || messages > MAX_MESSAGES_PER_SECOND * 10 {
            break;
        }
        expected.extend(taken.ok().flatten());
    }
    let exceeds = binary > MAX_FRAMES_PER_SECOND * 10 || messages > MAX_MESSAGES_PER_SECOND * 10;

    let call = Arc::new(RecordingLine::default());
    let ending = with_console(|console| {
        console.runtime.block_on(async {
            let shared = console.shared.clone();
            let address = std::net::Ipv4Addr::LOCALHOST.into();
            let session = Session {
                caller: Caller { address, admission: Admission::Open, door: shared.door.clone() },
                room: RoomId::parse("lobby").expect("an id"),
                visit: None,
                changes: tokio::sync::watch::channel(0).1,
                outbox: Arc::new(Outbox::new(false, shared.instruments.clone())),
                line: call.clone(),
                heard_at: Mutex::new(Instant::now()),
                _slot: (shared.slots.acquire(address).expect("a slot"), None),
                console: shared,
            };
            session.receive(&mut stream::iter(frames.into_iter().map(Ok))).await
        })
    });

    let taken = std::mem::take(&mut *call.0.lock());
    assert!(taken.starts_with(&expected), "the call was told something else");
    match ending {
        Ending::Close(how, reason) => assert!(how == Close::Refused && is_reason(&reason) && (is_refused || exceeds), "{reason}"),
        Ending::Gone => assert!(!is_refused, "a frame that breaks a rule does not end the connection"),
    }
    assert!(exceeds || taken == expected, "the call was told something after the end");
}

/// The frames of an input.
fn frames_of(bytes: &[u8]) -> Vec<Message> {
    let mut frames: Vec<Message> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n').take(2_000) {
        match line.split_first() {
            Some((b'b', frame)) => frames.push(Message::Binary(Bytes::copy_from_slice(frame))),
            Some((b'p', data)) => frames.push(Message::Ping(Bytes::copy_from_slice(data))),
            Some((b'r', _)) => {
                let again = frames.last().cloned();
                frames.extend(again.into_iter().cycle().take(700));
            }
            Some((b't', words)) => frames.push(Message::Text(text(words).into_owned().into())),
            _ => frames.push(Message::Text(text(line).into_owned().into())),
        }
        if frames.len() > 3_000 {
            break;
        }
    }
    frames
}

fn is_reason(reason: &str) -> bool {
    !reason.is_empty() && reason.len() <= MAX_REASON_BYTES
}

/// The calls that the line receives.
#[derive(Clone, Debug, PartialEq)]
enum Taken {
    Heard(u32, Vec<u8>),
    Told(PageMessage),
}

/// Positions are rounded on the way.
fn without_position(message: PageMessage) -> PageMessage {
    match message {
        PageMessage::Played { reply, .. } => PageMessage::Played { reply, samples: 0 },
        message => message,
    }
}

/// Records all calls except those with text to speak.
#[derive(Default)]
struct RecordingLine(Mutex<Vec<Taken>>);

impl Line for RecordingLine {
    fn push_packet(&self, number: u32, packet: &[u8]) {
        self.0.lock().push(Taken::Heard(number, packet.to_vec()));
    }

    fn report(&self, action: PersonAction) {
        let message = match action {
            PersonAction::Muted(on) => PageMessage::Mute { on },
            PersonAction::Ignored(on) => PageMessage::Ignore { on },
            PersonAction::Played { reply, .. } => PageMessage::Played { reply, samples: 0 },
            PersonAction::Stop { reply } => PageMessage::Stop { reply },
            PersonAction::Say(text) => return assert!(!text.trim().is_empty()),
            PersonAction::Leave => PageMessage::Leave {},
            PersonAction::Silenced(_) => unreachable!("no page says that"),
        };
        self.0.lock().push(Taken::Told(message));
    }
}
