use super::*;

fn zone(name: &str) -> TimeZone {
    Zone::parse(name).unwrap().time_zone().clone()
}

fn at(time: &str) -> Moment {
    Moment::from_micros(time.parse::<Timestamp>().unwrap().as_microsecond() as u64)
}

#[test]
fn a_time_is_read_in_the_zone_of_the_person_and_others_are_refused() {
    let berlin = zone("Europe/Berlin");
    let now = at("2026-11-30T12:00:00Z");
    let read = |time: &str| due(Some(time), None, now, &berlin);

    assert_eq!(read("2026-11-30T14:30:00Z"), Ok((at("2026-11-30T14:30:00Z"), Reading::Plain)));
    assert_eq!(read("2026-11-30T14:30"), Ok((at("2026-11-30T13:30:00Z"), Reading::Plain)));
    assert_eq!(read(" 2026-11-30 14:30 "), Ok((at("2026-11-30T13:30:00Z"), Reading::Plain)));
    assert_eq!(read("14:30"), Ok((at("2026-11-30T13:30:00Z"), Reading::Plain)), "today");
    assert_eq!(read("09:00"), Ok((at("2026-12-01T08:00:00Z"), Reading::Plain)), "tomorrow, because today it is over");
    assert_eq!(read("9:00"), read("09:00"));
    assert_eq!(read("2026-11-30T22:30[Asia/Tokyo]"), Ok((at("2026-11-30T13:30:00Z"), Reading::Plain)));
    assert_eq!(read("Tomorrow 14:30"), Ok((at("2026-12-01T13:30:00Z"), Reading::Plain)));
    assert_eq!(read("tomorrow 14:30"), Ok((at("2026-12-01T13:30:00Z"), Reading::Plain)));
    assert_eq!(read("2026-11-30T13:00:30"), Err(NotSet::TooSoon));
    assert_eq!(read("2026-11-29T13:00"), Err(NotSet::TooSoon));
    assert_eq!(read("2027-12-02T13:00"), Err(NotSet::TooLate));
    for text in
        ["2026-12-01T14", "20261201T1430", "14:30+09:00", "14:30[Asia/Tokyo]", "1430", "2026-12-01T14:30+09:00[Europe/Berlin]"]
    {
        assert_eq!(read(text), Err(NotSet::Unreadable), "{text}");
    }
    for text in ["", "soon", "2026-12-01", "25:00", "2026-02-30T10:00", "9999-99-99T10:00", "in 5 minutes", "0", "-1"] {
        assert_eq!(read(text), Err(NotSet::Unreadable), "{text}");
    }
}

#[test]
fn minutes_count_from_now_and_have_limits() {
    let now = at("2026-11-30T12:00:00Z");
    let read = |minutes| due(None, Some(minutes), now, &TimeZone::UTC).map(|(due, _)| due.since(now).as_secs());

    assert_eq!(read(1.0), Ok(60));
    assert_eq!(read(0.5), Err(NotSet::TooSoon));
    assert_eq!(read(2.5), Ok(150));
    assert_eq!(read(366.0 * 24.0 * 60.0), Ok(366 * 86_400));
    assert_eq!(read(366.0 * 24.0 * 60.0 + 1.0), Err(NotSet::TooLate));
    assert_eq!(read(-3.0), Err(NotSet::TooSoon));
    assert_eq!(read(f64::INFINITY), Err(NotSet::TooLate));
    assert_eq!(read(f64::NAN), Err(NotSet::Unreadable));
    assert_eq!(due(Some("14:30"), Some(1.0), now, &TimeZone::UTC), Err(NotSet::OneTime));
    assert_eq!(due(None, None, now, &TimeZone::UTC), Err(NotSet::OneTime));
}

#[test]
fn a_local_time_that_is_skipped_is_moved_and_of_two_the_first_counts() {
    let cases = [
        // (zone, now, wanted, due, reading)
        ("Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T02:30", "2027-03-28T01:30:00Z", Reading::Skipped),
        ("Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T03:30", "2027-03-28T01:30:00Z", Reading::Plain),
        ("Europe/Berlin", "2027-10-30T12:00:00Z", "2027-10-31T02:30", "2027-10-31T00:30:00Z", Reading::Twice),
        ("America/New_York", "2027-03-13T12:00:00Z", "2027-03-14T02:30", "2027-03-14T07:30:00Z", Reading::Skipped),
        ("America/New_York", "2027-11-06T12:00:00Z", "2027-11-07T01:30", "2027-11-07T05:30:00Z", Reading::Twice),
        // In the hour that comes twice, the first time may be over.
        ("America/New_York", "2027-11-07T06:10:00Z", "01:30", "2027-11-07T06:30:00Z", Reading::Plain),
        ("America/New_York", "2027-11-07T05:45:00Z", "2027-11-07T01:30", "2027-11-07T06:30:00Z", Reading::Plain),
        // At the same hour on the day after the change, not 24 hours later.
        ("Europe/Berlin", "2027-03-27T10:00:00Z", "10:30", "2027-03-28T08:30:00Z", Reading::Plain),
    ];
    for (place, now, wanted, expected, reading) in cases {
        assert_eq!(due(Some(wanted), None, at(now), &zone(place)), Ok((at(expected), reading)), "{wanted} in {place}");
    }
}

#[test]
fn a_late_one_says_when_it_was_due_in_its_zone() {
    let of = Author::of_name("ana".into());
    let reminder = Reminder {
        number: 1,
        of,
        text: "feed the cat".into(),
        due: at("2026-11-30T08:00:00Z"),
        zone: Some("Europe/Berlin".into()),
        asked: Vec::new(),
        companion: None,
    };
    let late = |now: &str| reminder.late(at(now), &TimeZone::UTC);

    assert_eq!(late("2026-11-30T08:01:59Z"), None);
    assert_eq!(late("2026-11-30T08:10:00Z").as_deref(), Some("09:00"));
    assert_eq!(late("2026-12-01T08:10:00Z").as_deref(), Some("2026-11-30 09:00"));
    assert_eq!(late("2026-11-30T07:00:00Z"), None, "a clock set back");
}

#[test]
fn a_call_of_the_tool_is_read_as_small_models_write_it() {
    let read = |json: &str| Wanted::read(&serde_json::from_str(json).unwrap());
    let set = |at: Option<&str>, in_minutes| Ok(Wanted::Set { text: "tea".into(), at: at.map(Arc::from), in_minutes });

    assert_eq!(read(r#"{"action": "set", "text": " tea ", "in_minutes": 10}"#), set(None, Some(10.0)));
    assert_eq!(read(r#"{"text": "tea", "in_minutes": "10", "at": ""}"#), set(None, Some(10.0)));
    assert_eq!(read(r#"{"action": "set", "text": "tea", "at": "14:30"}"#), set(Some("14:30"), None));
    assert_eq!(read(r#"{"action": "list"}"#), Ok(Wanted::List));
    assert_eq!(read(r#"{"action": "cancel", "number": "3"}"#), Ok(Wanted::Cancel(3)));
    for wrong in [r#"{}"#, r#"{"action": "set", "text": 7}"#, r#"{"action": "cancel"}"#, r#"{"action": "cancel", "number": -1}"#]
    {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    assert!(read(r#"{"action": "snooze"}"#).unwrap_err().contains("\"snooze\""));
    assert!(read(&format!(r#"{{"text": "{}"}}"#, "x".repeat(MOST_CHARS + 1))).is_err());
}

#[test]
fn the_messages_that_asked_are_read_as_one_number_or_a_list() {
    let of = Author::of_name("ana".into());
    let due = at("2026-11-30T08:00:00Z");
    let reminder = |asked| Reminder { number: 1, of: of.clone(), text: "tea".into(), due, zone: None, asked, companion: None };
    for (asked, written) in [(vec![Seq(7)], serde_json::json!(7)), (vec![Seq(7), Seq(9)], serde_json::json!([7, 9]))] {
        let json = serde_json::to_value(reminder(asked.clone())).unwrap();

        assert_eq!(json["asked"], written);
        assert_eq!(serde_json::from_value::<Reminder>(json).unwrap(), reminder(asked));
    }
}
