use super::*;
use crate::domain::id::Ward;
use crate::domain::token_usage::TokenUsage;
use crate::ports::store::key::ChannelNo;

#[test]
fn an_event_reads_as_it_was_written() {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    let made = Event::JitterDrawn { companion: "aria".into(), next_interjection_at: 9 };
    let recorded = Recorded { seq: Seq(7), at: Moment::from_micros(5), handled: Seq(4), turn: None, event: made };

    let read = decode_event(&key, &encode_event(&recorded));

    assert_eq!(read, Ok(recorded));
}

#[test]
fn an_inbound_event_is_its_own_handled_event() {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    let recorded = Recorded { seq: Seq(7), at: Moment::from_micros(5), handled: Seq(7), turn: None, event: Event::cleared() };

    let read = decode_event(&key, &encode_event(&recorded));

    assert_eq!(read, Ok(recorded));
}

#[test]
fn an_error_code_of_an_older_version_reads_as_its_current_name() {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    let codes = [("left_alone", "circuit_open"), ("unworded", "no_prompt"), ("taken_back", "deleted"), ("timeout", "timeout")];

    for (event, (old, current)) in ["unanswered", "reply_failed"].into_iter().flat_map(|event| codes.map(|code| (event, code))) {
        let json = format!(
            r#"{{"at":5,"handled":4,"event":{{"event":"{event}","companion":"aria","ticket":1,"trigger":"lull","error":"{old}","back_off":{{"secs":10,"nanos":0}}}}}}"#
        );

        for version in [1, 2, NEWEST_VERSION] {
            let read = decode_event(&key, &[&[version], json.as_bytes()].concat()).unwrap().event;

            let (Event::Unanswered { error, .. } | Event::ReplyFailed { error, .. }) = read else { panic!("{read:?}") };
            assert_eq!(&*error, current, "{event} of version {version}");
        }
    }
}

#[test]
fn a_kind_of_event_from_a_newer_version_is_not_damage() {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    let value =
        [&[NEWEST_VERSION], &br#"{"at":5,"handled":4,"event":{"event":"floor_painted","companion":"aria"}}"#[..]].concat();

    let error = decode_event(&key, &value).unwrap_err();

    assert_eq!(error, RecordError::UnknownVariant { key });
    assert!(error.to_string().contains("start the version that wrote it") && !error.to_string().contains("floor"), "{error}");
}

#[test]
fn an_unknown_version_is_a_clear_error() {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    let mut value = encode(&PendingRecord { heard: Seq(1), due: None });
    value[0] = 9;

    let error = decode::<PendingRecord>(&key, &value).unwrap_err();

    assert_eq!(error, RecordError::UnknownVersion { key: key.clone(), found: 9, newest: NEWEST_VERSION });
    assert!(error.to_string().contains(&key.to_string()));
}

#[test]
fn a_malformed_record_is_an_error() {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));

    let empty = decode::<PendingRecord>(&key, b"");
    let cut = decode::<PendingRecord>(&key, b"\x01{\"hea");

    assert!(matches!(empty, Err(RecordError::Malformed { .. })));
    assert!(matches!(cut, Err(RecordError::Malformed { .. })));
}

#[test]
fn usage_reads_as_it_was_written() {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    let used = Used::Address { person: "ana".into(), message: Seq(3) };
    let record = UsageRecord { at: Moment::from_micros(1), channel: "console:lobby".into(), used };

    assert_eq!(decode(&key, &encode(&record)), Ok(record));
}

#[test]
fn a_call_recorded_before_prices_is_one_language_model_call_without_a_price() {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    let old = br#"{"at":5,"channel":"console:lobby","used":{"what":"call","companion":"aria","model":"m","provider":"p","role":"side","input_tokens":7,"output_tokens":2}}"#;

    let read: UsageRecord = decode(&key, &[&[1], &old[..]].concat()).unwrap();

    let Used::Call { service, calls, failed_calls, price, usage, .. } = read.used else { panic!("a call") };
    assert_eq!((service, calls, failed_calls, price, usage), (Service::LanguageModel, 1, 0, None, TokenUsage::new(7, 2)));
}

#[test]
fn a_call_reads_as_it_was_written() {
    let key = Key::event(Ward(1), ChannelNo(2), Seq(7));
    let used = Used::Call {
        service: Service::LanguageModel,
        companion: None,
        model: "m".into(),
        provider: "p".into(),
        role: "main".into(),
        usage: TokenUsage {
            cache_read_tokens: Some(5),
            cache_write_tokens: Some(0),
            reasoning_tokens: Some(1),
            ..TokenUsage::new(7, 2)
        },
        calls: 3,
        failed_calls: 2,
        price: Some(Price::per_million(0.15, 0.6, "EUR").with_cache(Some(0.015), Some(0.2))),
    };
    let record = UsageRecord { at: Moment::from_micros(1), channel: "console:lobby".into(), used };

    assert_eq!(decode(&key, &encode(&record)), Ok(record));
}
