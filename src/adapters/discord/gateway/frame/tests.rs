use proptest::prelude::*;

use super::*;

#[test]
fn a_dispatch_is_taken_apart_and_its_data_left_alone() {
    let read = read(r#"{"t":"MESSAGE_CREATE","s":7,"op":0,"d":{"id":1e999, "x":[ ]}}"#).unwrap();

    let Frame::Dispatch { sequence, kind, data } = read else { panic!("{read:?}") };
    assert_eq!((sequence, kind.as_str(), data.get()), (7, "MESSAGE_CREATE", r#"{"id":1e999, "x":[ ]}"#));
}

#[test]
fn what_steers_the_connection_is_told_apart() {
    assert!(matches!(read(r#"{"op":7,"d":null}"#), Ok(Frame::Reconnect)));
    assert!(matches!(read(r#"{"op":9,"d":true}"#), Ok(Frame::InvalidSession(true))));
    assert!(matches!(read(r#"{"op":9,"d":{"true":1}}"#), Ok(Frame::InvalidSession(false))));
    assert!(matches!(read(r#"{"op":9}"#), Ok(Frame::InvalidSession(false))));
    assert!(
        matches!(read(r#"{"op":10,"d":{"heartbeat_interval":41250}}"#), Ok(Frame::Hello(Some(interval))) if interval.get() == 41_250)
    );
    assert!(matches!(read(r#"{"op":10,"d":{"heartbeat_interval":0}}"#), Ok(Frame::Hello(None))));
    assert!(matches!(read(r#"{"op":1,"d":null}"#), Ok(Frame::Heartbeat)));
    assert!(matches!(read(r#"{"op":10,"d":{}}"#), Ok(Frame::Hello(None))));
    assert!(matches!(read(r#"{"op":11}"#), Ok(Frame::HeartbeatAcknowledged)));
    assert!(matches!(read(r#"{"op":99}"#), Ok(Frame::Other)));
}

#[test]
fn a_dispatch_may_tell_nothing() {
    for text in [r#"{"op":0,"s":3,"t":"RESUMED","d":null}"#, r#"{"op":0,"s":3,"t":"RESUMED"}"#] {
        let Ok(Frame::Dispatch { data, .. }) = read(text) else { panic!("{text}") };
        assert_eq!(data.get(), "null");
    }
}

#[test]
fn what_is_no_frame_is_refused() {
    for text in [
        "",
        "null",
        "[]",
        "{",
        r#"{"op":"0"}"#,
        r#"{"op":-1}"#,
        r#"{"op":0}"#,
        r#"{"op":0,"s":1,"t":"","d":{}}"#,
        r#"{"op":0,"s":"1","t":"X","d":{}}"#,
        r#"{"op":0,"s":99999999999999999999999,"t":"X","d":{}}"#,
        r#"{"op":0,"s":1,"t":"X","d":{"a":}}"#,
    ] {
        assert_eq!(read(text).err(), Some(Unreadable::Malformed), "{text}");
    }
    let long = format!(r#"{{"op":0,"s":1,"t":"{}","d":{{}}}}"#, "X".repeat(LONGEST_WORD + 1));
    assert_eq!(read(&long).err(), Some(Unreadable::Malformed));
    assert_eq!(read(&" ".repeat(MAX_FRAME_BYTES + 1)).err(), Some(Unreadable::TooLong));
}

#[test]
fn deep_nesting_is_carried_along_unread() {
    let deep = format!(r#"{{"op":0,"s":1,"t":"X","d":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));

    assert!(matches!(read(&deep), Ok(Frame::Dispatch { .. })));
}

#[test]
fn ready_tells_the_session_and_who_we_are() {
    let told =
        r#"{"session_id":"abc","resume_gateway_url":"wss://us-east.discord.gg/","user":{"id":"5"},"application":{"id":"6"}}"#;

    let ready = ready(&raw(told)).unwrap();

    assert_eq!((ready.session.as_str(), ready.resume_url.as_deref()), ("abc", Some("wss://us-east.discord.gg")));
    assert_eq!((ready.user.to_string(), ready.application.to_string()), ("5".to_owned(), "6".to_owned()));
    assert!(super::ready(&raw(r#"{"session_id":"","user":{"id":"5"}}"#)).is_none());
    assert!(super::ready(&raw(r#"{"session_id":"abc"}"#)).is_none());
}

#[test]
fn an_address_that_would_tell_the_token_to_everybody_is_none() {
    for (text, expected) in [
        ("wss://gateway.discord.gg", Some("wss://gateway.discord.gg")),
        ("ws://127.0.0.1:99/resume/", Some("ws://127.0.0.1:99/resume")),
        ("ws://gateway.discord.gg", None),
        ("https://gateway.discord.gg", None),
        ("wss://gateway.discord.gg/?v=6", None),
        ("wss://me@gateway.discord.gg", None),
        ("wss://", None),
        ("gateway", None),
        ("", None),
    ] {
        assert_eq!(address(text).as_deref(), expected, "{text}");
    }
    assert_eq!(address(&format!("wss://a.example/{}", "x".repeat(LONGEST_ADDRESS))), None);
}

proptest! {
    #[test]
    fn no_text_makes_reading_fail_but_by_an_error(text in any::<String>(), cut in 0_usize..80) {
        let whole = format!(r#"{{"op":0,"s":1,"t":"READY","d":{{"session_id":{text:?},"user":{{"id":"5"}}}}}}"#);
        let end = (0..=cut.min(whole.len())).rev().find(|end| whole.is_char_boundary(*end)).unwrap_or(0);

        for text in [&text, &whole, &whole[..end]] {
            if let Ok(Frame::Dispatch { data, .. }) = read(text) {
                let _ = ready(&data);
            }
            let _ = address(text);
        }
    }
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}
