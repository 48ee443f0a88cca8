//! Fuzz targets for hostile endpoints: streams in any chunks, whole answers, and errors.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::MAX_ANSWER_BYTES;
use super::answer::PartialAnswer;
use super::wire::{MAX_TOOL_CALLS, Piece};
use crate::adapters::endpoint::body::MAX_ERROR_BYTES;
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::fuzz::{check_error, failures};
use crate::adapters::endpoint::sse::Events;
use crate::fuzzing::{is_bounded, texts};
use crate::ports::language_model::{Answer, ModelRole, NoAnswer, Request};

pub(crate) fn streams() -> Vec<Vec<u8>> {
    texts(&[
        "data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hé\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"llo\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
        ": OPENROUTER PROCESSING\r\n\r\nevent: x\r\ndata: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}]}\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"YES\"},\"finish_reason\":\"length\"}]}\r\rdata: [DONE]",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"look\",\"arguments\":\"{\\\"a\\\"\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}},{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":\"go\",\"arguments\":\"\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
        "data: {\"error\":{\"message\":\"the key sk-0123456789abcdef is wrong\",\"code\":401}}\n\n",
        "data: {\"choices\":\r\ndata: [{\"delta\":{\"content\":\"in two lines\"}}]}\r\n\r\ndata: {\"choices\":\rdata: []}\r\r",
        "\u{feff}data: {\"choices\":[{\"delta\":null,\"message\":{\"content\":\"a\"}}]}\n\n",
    ])
}

pub(crate) fn wholes() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"id":"1","model":"m","choices":[{"message":{"role":"assistant","content":"Hello\nYES"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#,
        r#"{"choices":[{"message":{"content":null},"finish_reason":"content_filter"}]}"#,
        r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{}"}},{"function":{"name":"go","arguments":{"far":true}}}]}}]}"#,
        r#"{"error":{"message":"overloaded","type":"invalid_request_error"}}"#,
    ])
}

pub(crate) fn errors() -> Vec<Vec<u8>> {
    texts(&[
        "retry-after: 7\n\n{\"error\":{\"message\":\"too many\",\"type\":\"t\"}}",
        "retry-after: Wed, 21 Oct 2015 07:28:30 GMT\ndate: Wed, 21 Oct 2015 07:28:00 GMT\n\nplain words of sk-0123456789abcdef",
        "location: https://elsewhere/?key=sk-0123456789abcdef\n\n<html>502</html>",
        "\n\n{\"detail\":[{\"msg\":\"a\"}],\"message\":\"sk-0123456789abcdef\"}",
    ])
}

pub(crate) fn stream(bytes: &[u8]) {
    let at_once = read(&[bytes]);

    let cut = |every: usize| bytes.chunks(every.max(1)).collect::<Vec<_>>();
    for every in [1 + bytes.len() % 7, 1 + bytes.len() % 61, bytes.len() / 2 + 1] {
        let pieces = cut(every);
        // An answer that is too long may be refused a chunk earlier or later.
        if let (Ok(one), Ok(other)) = (&at_once, &read(&pieces)) {
            assert!(one == other, "in chunks of {every} bytes it is parsed differently");
        }
    }
    let events = at_once.unwrap_or_default();
    assert!(events.iter().map(Vec::len).sum::<usize>() <= bytes.len(), "the output is longer than the input");
    let mut partial = PartialAnswer::new(MAX_ANSWER_BYTES, None);
    for event in &events {
        if let Err(broken) = partial.take_event(event, false) {
            return check_error(&failures().in_answer(broken), bytes);
        }
        if partial.is_done() || partial.is_cut() {
            break;
        }
    }
    check_answer(partial.finish(&request(), 100), bytes);
}

pub(crate) fn whole(bytes: &[u8]) {
    let mut partial = PartialAnswer::new(MAX_ANSWER_BYTES, None);
    match Piece::read(bytes).and_then(|whole| partial.take_whole(whole)) {
        Ok(()) => check_answer(partial.finish(&request(), 100), bytes),
        Err(broken) => check_error(&failures().in_answer(broken), bytes),
    }
}

pub(crate) fn error(bytes: &[u8]) {
    let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
    let (head, body) = (&bytes[..end], bytes.get(end + 2..).unwrap_or_default());
    let body = &body[..body.len().min(MAX_ERROR_BYTES)];
    let mut headers = HeaderMap::new();
    for line in head.split(|byte| *byte == b'\n').take(20) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii())) {
            headers.insert(name, value);
        }
    }

    for status in [302, 400, 401, 404, 408, 429, 500, 599, 999] {
        let error = failures().of_status(StatusCode::from_u16(status).expect("a status"), &headers, body);
        check_error(&error, bytes);
        if let NoAnswer::Overloaded { retry_after: Some(wait), .. } = error {
            assert!(wait <= Duration::from_secs(600), "the wait is {wait:?}");
        }
    }
}

fn read(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, Broken> {
    let mut events = Events::default();
    let mut found = Vec::new();
    for piece in pieces {
        events.feed(piece)?;
        found.extend(std::iter::from_fn(|| events.next()));
    }
    found.extend(std::iter::from_fn(|| events.last()));
    Ok(found)
}

fn check_answer(answer: Result<Answer, Broken>, bytes: &[u8]) {
    match answer {
        Ok(answer) => {
            let called = answer.tool_calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
            let bytes = answer.text().len() + called.sum::<usize>();
            assert!(bytes <= MAX_ANSWER_BYTES, "an answer of {bytes} bytes");
            assert!(answer.tool_calls.len() <= MAX_TOOL_CALLS, "{} calls of tools", answer.tool_calls.len());
            for named in [answer.model, answer.response_id, answer.finish_reason].into_iter().flatten() {
                assert!(!named.is_empty() && is_bounded(&named, 201) && !named.chars().any(char::is_control), "{named:?}");
            }
        }
        Err(broken) => check_error(&failures().in_answer(broken), bytes),
    }
}

fn request() -> Request {
    Request::new(ModelRole::Side, "home".into(), 100)
}
