use super::*;

#[test]
fn a_dispatch_is_parsed_except_for_its_data() {
    let frame = parse(r#"{"t":"MESSAGE_CREATE","s":7,"op":0,"d":{"id":1e999, "x":[ ]}}"#).unwrap();

    let Frame::Dispatch { sequence, kind, data } = frame else { panic!("{frame:?}") };
    assert_eq!((sequence, kind.as_str(), data.get()), (7, "MESSAGE_CREATE", r#"{"id":1e999, "x":[ ]}"#));
}

#[test]
fn the_other_opcodes_are_parsed() {
    assert!(matches!(parse(r#"{"op":7,"d":null}"#), Ok(Frame::Reconnect)));
    assert!(matches!(parse(r#"{"op":9,"d":true}"#), Ok(Frame::InvalidSession(true))));
    assert!(matches!(parse(r#"{"op":9,"d":{"true":1}}"#), Ok(Frame::InvalidSession(false))));
    assert!(matches!(parse(r#"{"op":9}"#), Ok(Frame::InvalidSession(false))));
    assert!(
        matches!(parse(r#"{"op":10,"d":{"heartbeat_interval":41250}}"#), Ok(Frame::Hello(Some(interval))) if interval.get() == 41_250)
    );
    assert!(matches!(parse(r#"{"op":10,"d":{"heartbeat_interval":0}}"#), Ok(Frame::Hello(None))));
    assert!(matches!(parse(r#"{"op":1,"d":null}"#), Ok(Frame::Heartbeat)));
    assert!(matches!(parse(r#"{"op":10,"d":{}}"#), Ok(Frame::Hello(None))));
    assert!(matches!(parse(r#"{"op":11}"#), Ok(Frame::HeartbeatAcknowledged)));
    assert!(matches!(parse(r#"{"op":99}"#), Ok(Frame::Other)));
}

#[test]
fn a_dispatch_may_have_no_data() {
    for text in [r#"{"op":0,"s":3,"t":"RESUMED","d":null}"#, r#"{"op":0,"s":3,"t":"RESUMED"}"#] {
        let Ok(Frame::Dispatch { data, .. }) = parse(text) else { panic!("{text}") };
        assert_eq!(data.get(), "null");
    }
}

#[test]
fn an_invalid_frame_is_an_error() {
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
        assert_eq!(parse(text).err(), Some(InvalidFrame::Malformed), "{text}");
    }
    let long = format!(r#"{{"op":0,"s":1,"t":"{}","d":{{}}}}"#, "X".repeat(LONGEST_WORD + 1));
    assert_eq!(parse(&long).err(), Some(InvalidFrame::Malformed));
    assert_eq!(parse(&" ".repeat(MAX_FRAME_BYTES + 1)).err(), Some(InvalidFrame::TooLong));
}

#[test]
fn deeply_nested_data_is_not_parsed() {
    let deep = format!(r#"{{"op":0,"s":1,"t":"X","d":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));

    assert!(matches!(parse(&deep), Ok(Frame::Dispatch { .. })));
}

#[test]
fn ready_has_the_session_the_user_and_the_application() {
    let text =
        r#"{"session_id":"abc","resume_gateway_url":"wss://us-east.discord.gg/","user":{"id":"5"},"application":{"id":"6"}}"#;

    let ready = parse_ready(&raw(text)).unwrap();

    assert_eq!((ready.session_id.as_str(), ready.resume_gateway_url.as_deref()), ("abc", Some("wss://us-east.discord.gg")));
    assert_eq!((ready.bot().user.to_string(), ready.bot().application.to_string()), ("5".to_owned(), "6".to_owned()));
    assert!(super::parse_ready(&raw(r#"{"session_id":"","user":{"id":"5"}}"#)).is_none());
    assert!(super::parse_ready(&raw(r#"{"session_id":"abc"}"#)).is_none());
}

#[test]
fn an_address_that_would_expose_the_token_is_refused() {
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

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}
