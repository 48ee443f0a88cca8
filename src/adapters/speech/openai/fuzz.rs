//! Fuzz targets for what servers with OpenAI's API send: transcripts in one piece or as events, and audio in chunks.

use super::pcm::Pcm;
use super::transcript::{Event, Partial, Transcript};
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::fuzz::{check_error, failures};
use crate::adapters::endpoint::sse::Events;
use crate::fuzzing::texts;

/// The longest text of a transcript, in bytes.
const LONGEST: usize = 8 * 1024;

pub(crate) fn transcripts() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"text":" Aria, hello.\nAre you there?","usage":{"type":"duration","seconds":3}}"#,
        r#"{"text":"Hi","segments":[{"start":0.0,"end":3.0,"avg_logprob":-0.1,"no_speech_prob":0.1},{"start":3,"end":-1e300,"avg_logprob":3,"no_speech_prob":7}]}"#,
        r#"{"error":{"message":"the key sk-0123456789abcdef is wrong","code":"invalid_api_key"}}"#,
    ])
}

pub(crate) fn streams() -> Vec<Vec<u8>> {
    texts(&[
        "data: {\"type\":\"transcript.text.delta\",\"delta\":\" Hel\"}\n\ndata: {\"type\":\"transcript.text.delta\",\"delta\":\"lo\"}\n\ndata: {\"type\":\"transcript.text.done\",\"text\":\" Hello.\"}\n\ndata: [DONE]\n\n",
        "data: {\"type\":\"transcript.text.delta\",\"delta\":7}\r\n\r\ndata: {\"error\":{\"message\":\"sk-0123456789abcdef\",\"code\":401}}\r\n\r\n",
    ])
}

pub(crate) fn audio() -> Vec<Vec<u8>> {
    let head = b"RIFF\xff\xff\xff\xffWAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0\x01\0\x01\0\xc0\x5d\0\0\x80\xbb\0\0\x02\0\x10\0data";
    let samples: Vec<u8> = (0..200).collect();
    let file = |size: u32| [head, &size.to_le_bytes()[..], &samples, b"LIST\x04\0\0\0note"].concat();
    vec![samples.clone(), file(200), file(u32::MAX), file(0), file(3), b"ID3\x04\0\0".to_vec(), b"RI".to_vec()]
}

pub(crate) fn transcript(bytes: &[u8]) {
    match Transcript::read(bytes) {
        Ok(transcript) => check(&transcript.without_echo(Some("Aria, Ben."))),
        Err(broken) => check_error(&failures().in_answer(broken), bytes),
    }
}

pub(crate) fn stream(bytes: &[u8]) {
    let (mut events, mut partial) = (Events::default(), Partial::default());
    let mut read = || {
        events.feed(bytes)?;
        while let Some(event) = events.next() {
            match partial.push_event(&event)? {
                Event::Partial(text) => assert!(!text.is_empty() && text.len() <= LONGEST, "{} bytes", text.len()),
                Event::Done(transcript) => check(&transcript),
                Event::Nothing => {}
            }
        }
        Ok::<_, Broken>(())
    };
    if let Err(broken) = read() {
        check_error(&failures().in_answer(broken), bytes);
    }
}

/// Chunks of any length have the same samples.
pub(crate) fn samples(bytes: &[u8]) {
    let at_once = fed(&[bytes]);

    for every in [1, 2, 3, 1 + bytes.len() % 7, 1 + bytes.len() % 61, bytes.len() / 2 + 1] {
        let chunks: Vec<&[u8]> = bytes.chunks(every).collect();
        assert_eq!(fed(&chunks), at_once, "in chunks of {every} bytes");
    }
    match at_once {
        Ok(samples) => assert!(2 * samples.len() <= bytes.len(), "{} samples of {} bytes", samples.len(), bytes.len()),
        Err(broken) => check_error(&failures().in_answer(broken), bytes),
    }
}

fn fed(chunks: &[&[u8]]) -> Result<Vec<i16>, Broken> {
    let mut pcm = Pcm::of(&"A long sentence. ".repeat(100), 1.0);
    chunks.iter().map(|chunk| pcm.feed(chunk)).collect::<Result<Vec<_>, _>>().map(|samples| samples.concat())
}

fn check(transcript: &Transcript) {
    let Transcript { text, no_speech, confidence } = transcript;
    assert!(text.len() <= LONGEST && text.trim() == text && !text.contains('\n'), "{text:?}");
    assert!(no_speech.is_none_or(|no_speech| (0.0..=1.0).contains(&no_speech)), "{no_speech:?}");
    assert!(confidence.is_none_or(|confidence| confidence <= 1_000), "{confidence:?}");
}
