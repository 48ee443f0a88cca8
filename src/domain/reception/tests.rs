use serde_json::{Value, json};

use super::*;
use crate::event::samples::{recorded, with};

const MINUTE: f64 = 60.0;
const NEVER: Moment = Moment::from_micros(u64::MAX);
/// The number of the statement in [`after`].
const STATEMENT: u64 = 3;

#[test]
fn each_outcome_is_found() {
    let to_ben = json!({ "address": { "others": true } });
    let cases = [
        (vec![], Reception::NothingSeen),
        (vec![says(10.0, "ana", "And at night?")], Reception::Answered),
        (vec![says(10.0, "ana", "👍🏽 !")], Reception::Reacted),
        (vec![says(10.0, "ana", ":wave: :blob_2:")], Reception::Reacted),
        (vec![reacts(10.0, "ana", false)], Reception::Reacted),
        (vec![reacts(10.0, "ana", false), says(20.0, "ana", "Yes.")], Reception::Reacted),
        (vec![with(says(10.0, "ben", "Is that so?"), json!({ "reply_to": STATEMENT }))], Reception::Replied),
        (vec![says(10.0, "ben", "Lunch?"), says(20.0, "cleo", "Yes, now.")], Reception::TalkedPast),
        (vec![to(says(10.0, "ana", "Ben, lunch?"), &to_ben)], Reception::TalkedPast),
        (vec![stops(10.0, "ben")], Reception::Stopped),
        (vec![paused(10.0, Some("aria"))], Reception::Paused),
        (vec![paused(10.0, None)], Reception::Paused),
        (vec![deleted(10.0, &[STATEMENT])], Reception::Deleted),
    ];

    for (later, expected) in cases {
        assert_eq!(after("direct_address", later.clone()), Some(expected), "{later:?}");
    }
}

#[test]
fn what_is_no_evidence_leaves_nothing_seen() {
    let quiet = [
        // The messages of only one other person may be for anybody.
        vec![says(10.0, "ben", "Lunch?"), says(20.0, "ben", "Anybody?")],
        // Another person's question to the companion is no reply.
        vec![to(says(10.0, "ben", "Aria, what time is it?"), &json!({ "address": { "companions": ["aria"] } }))],
        vec![to(stops(10.0, "ben"), &json!({ "address": { "companions": ["bruno"] } }))],
        vec![paused(10.0, Some("bruno"))],
        vec![with(paused(10.0, None), json!({ "paused": false }))],
        vec![says_as(10.0, "bruno", "companion"), says_as(11.0, "feed", "bot"), says_as(12.0, "poll", "bot")],
        vec![to(says(10.0, "ana", "Ana joined"), &json!({ "kind": "join" }))],
        vec![json!({ "event": "edited", "at": 10_000_000, "message": 1, "text": "Aria, how are you now?" })],
        vec![with(says(10.0, "ben", "Yes."), json!({ "reply_to": 1 }))],
        vec![deleted(10.0, &[1])],
        // Of somebody else, taken back, or on another message.
        vec![reacts(10.0, "ben", false)],
        vec![reacts(10.0, "ana", false), reacts(11.0, "ana", true)],
        vec![with(reacts(10.0, "ana", false), json!({ "message": 1 }))],
        // It was said before the statement, and read after a lost connection.
        vec![with(says(10.0, "ana", "Hello?"), json!({ "said_at": 500_000 }))],
    ];

    for later in quiet {
        assert_eq!(after("direct_address", later.clone()), Some(Reception::NothingSeen), "{later:?}");
    }
}

#[test]
fn of_several_outcomes_the_first_in_order_counts() {
    let mut evidence = vec![
        deleted(8.0, &[STATEMENT]),
        stops(7.0, "ben"),
        paused(6.0, None),
        with(says(5.0, "ben", "So?"), json!({ "reply_to": STATEMENT })),
        says(4.0, "ben", "Lunch?"),
        says(3.0, "cleo", "Yes."),
    ];
    let mut found = Vec::new();

    while !evidence.is_empty() {
        let later = evidence.iter().rev().cloned().chain([says(9.0, "ana", "Fine.")]);
        found.push(after("direct_address", later.collect()).unwrap());
        evidence.remove(0);
    }

    use Reception::*;
    // With the addressee's own words, talk of others is not counted against it.
    assert_eq!(found, [Deleted, Stopped, Paused, Replied, Answered, Answered]);
    assert!(Reception::ALL.is_sorted());
}

#[test]
fn the_addressees_next_words_end_the_watch() {
    let end = [says(10.0, "ana", "Thanks."), stops(11.0, "ana"), paused(12.0, None)];
    let first_elsewhere =
        [to(says(10.0, "ana", "Ben?"), &json!({ "address": { "others": true } })), says(11.0, "ana", "Thanks.")];

    assert_eq!(after("direct_address", end.to_vec()), Some(Reception::Answered));
    assert_eq!(after("direct_address", first_elsewhere.to_vec()), Some(Reception::TalkedPast));
    let too_late = [says(10.0, "ana", "Thanks."), deleted(20.0 * MINUTE, &[STATEMENT])];
    assert_eq!(after("direct_address", too_late.to_vec()), Some(Reception::Deleted), "a deletion counts no matter when");
}

#[test]
fn a_statement_to_nobody_in_particular_is_received_by_whoever_talks_to_the_companion() {
    let to_aria = json!({ "address": { "companions": ["aria"] } });
    let cases = [
        (vec![says(10.0, "ana", "Lunch?")], Reception::NothingSeen),
        (vec![says(10.0, "ana", "Lunch?"), says(20.0, "ben", "Yes.")], Reception::TalkedPast),
        (vec![says(10.0, "ana", "Lunch?"), says(20.0, "ben", "🍜")], Reception::TalkedPast),
        (vec![says(10.0, "ben", "😂"), says(20.0, "ana", "Lunch?")], Reception::Reacted),
        (vec![says(10.0, "ana", "Lunch?"), to(says(20.0, "ben", "Aria, no!"), &to_aria)], Reception::Replied),
    ];

    for (later, expected) in cases {
        for trigger in ["interjection", "turn", "silence"] {
            let heard = [&[says(-20.0, "ben", "Hm.")], later.as_slice()].concat();
            assert_eq!(after(trigger, heard), Some(expected), "{trigger}: {later:?}");
        }
    }
    assert_eq!(after("interjection", vec![says(10.0, "ana", "Yes.")]), Some(Reception::Answered), "Ana alone talks here");
    assert_eq!(after("lull", vec![says(-9.0, "ben", "Hm."), says(10.0, "ana", "Yes.")]), Some(Reception::Answered));
}

#[test]
fn each_of_several_statements_in_a_row_has_its_own_outcome() {
    let mut events = vec![asks(0.0), owed(1, "direct_address", Some(1)), statement(2.0, 1)];
    events.extend([owed(2, "direct_address", Some(1)), statement(5.0, 2)]);
    events.push(with(says(10.0, "ben", "The second?"), json!({ "reply_to": 5 })));
    events.push(owed(3, "direct_address", Some(1)));
    events.push(statement(300.0, 3));

    let found = receptions(&numbered(events), NEVER);

    let found: Vec<_> = found.iter().map(|one| (one.seq.0, one.reception)).collect();
    assert_eq!(found, [(3, Reception::NothingSeen), (5, Reception::Replied), (8, Reception::NothingSeen)]);
}

#[test]
fn a_statement_counts_once_its_watch_is_over() {
    let events = numbered(vec![asks(0.0), owed(1, "lull", Some(1)), statement(2.0, 1)]);
    let end = events[2].at + SHORTEST;

    assert_eq!(receptions(&events, end), []);
    assert_eq!(receptions(&events, end + Duration::from_micros(1)).len(), 1);
    let answered = [events, vec![recorded(4, says(3.0, "ana", "Yes."))]].concat();
    assert_eq!(receptions(&answered, answered[3].at).len(), 1, "the addressee has answered");
}

#[test]
fn the_watch_lasts_three_median_gaps_within_its_limits() {
    let answered_after = |gaps: &[f64], secs: f64| {
        let mut at = 0.0;
        let mut events: Vec<_> = gaps
            .iter()
            .map(|gap| {
                at += gap;
                says(at, "ana", "Hm.")
            })
            .collect();
        let asked = events.len() as u64;
        events.extend([owed(1, "direct_address", Some(asked)), statement(at, 1), says(at + secs, "ana", "Yes.")]);
        receptions(&numbered(events), NEVER)[0].reception == Reception::Answered
    };
    let minutes = |minutes: f64, count: usize| vec![minutes * MINUTE; count];
    let day = LONGEST.as_secs_f64();

    assert_eq!([120.0, 120.1].map(|secs| answered_after(&minutes(0.1, 9), secs)), [true, false]);
    assert_eq!([15.0, 15.1].map(|late| answered_after(&minutes(5.0, 9), late * MINUTE)), [true, false]);
    assert_eq!([day, day + 1.0].map(|secs| answered_after(&minutes(900.0, 9), secs)), [true, false]);
    // One night does not change the median, and messages from long ago do not count.
    let night = [minutes(5.0, 9), minutes(700.0, 1), minutes(5.0, 9)].concat();
    assert_eq!([15.0, 15.1].map(|late| answered_after(&night, late * MINUTE)), [true, false]);
    let faster = [minutes(60.0, 200), minutes(1.0, REMEMBERED)].concat();
    assert_eq!([3.0, 3.1].map(|late| answered_after(&faster, late * MINUTE)), [true, false]);
    assert!(answered_after(&minutes(1.0, 1), 119.0), "there is no gap yet");
}

#[test]
fn an_interrupted_spoken_reply_was_stopped_if_a_person_cut_it() {
    for verdict in Verdict::ALL {
        let cut = json!({ "event": "interrupted", "at": 1_500_000, "companion": "aria", "ticket": 1, "tolerance": 0.5, "verdict": verdict, "at_ms": 9 });
        let events = vec![asks(0.0), owed(1, "direct_address", Some(1)), cut, statement(2.0, 1)];

        let found = receptions(&numbered(events), NEVER)[0].reception;

        use Verdict::*;
        let is_cut = matches!(verdict, StopWord | Addressed | ManyWords | TookTooLong | StopPressed);
        assert_eq!(found == Reception::Stopped, is_cut, "{verdict}");
    }
    let mhm = json!({ "speech": { "started": 0, "ended": 1, "provider": "p", "segments": [9], "handed_over": "lull_ended", "is_backchannel": true } });
    assert_eq!(after("direct_address", vec![to(says(9.0, "ana", "mhm"), &mhm)]), Some(Reception::Reacted));
}

#[test]
fn an_erased_person_leaves_no_evidence() {
    let erased = |at| says_as(at, "", "user");
    let answered = [asks(0.0), owed(1, "direct_address", Some(1)), statement(2.0, 1), says(9.0, "ana", "Yes.")];
    let [_, owed, said, _] = answered.clone();
    let gone = with(said.clone(), json!({ "message": with(said["message"].clone(), json!({ "text": "" })) }));

    let kept = receptions(&numbered(vec![erased(0.0), owed.clone(), said, erased(9.0)]), NEVER);
    let with_answers = receptions(&numbered(vec![erased(0.0), owed.clone(), gone.clone(), erased(9.0)]), NEVER);
    let by_moderator = receptions(&numbered(vec![asks(0.0), owed.clone(), gone.clone()]), NEVER);
    // It answered Ben as well, whose message led to it.
    let of_two = with(owed, json!({ "messages": [1, 2], "message": 2 }));
    let with_one_of_two = receptions(&numbered(vec![erased(0.0), says(1.0, "ben", "Aria?"), of_two, gone]), NEVER);

    assert_eq!(receptions(&numbered(answered.to_vec()), NEVER)[0].reception, Reception::Answered);
    assert_eq!(kept.iter().map(|one| one.reception).collect::<Vec<_>>(), [Reception::NothingSeen]);
    assert_eq!((with_answers, with_one_of_two), (vec![], vec![]), "it was erased with its question");
    assert_eq!(by_moderator[0].reception, Reception::Deleted);
}

#[test]
fn a_replanned_reply_keeps_its_trigger_and_a_reply_without_a_beginning_is_left_out() {
    let again = json!({ "event": "replanned", "companion": "aria", "ticket": 1, "next": 2, "trigger": "direct_address", "messages": [1], "upto": 1 });
    let events = vec![asks(0.0), owed(1, "direct_address", Some(1)), again, statement(2.0, 2), says(9.0, "ana", "Yes.")];

    let found = receptions(&numbered(events.clone()), NEVER);
    let headless = receptions(&numbered(events[3..].to_vec()), NEVER);

    let expected = Received {
        seq: Seq(4),
        at: Moment::from_micros(2_000_000),
        companion: "aria".into(),
        trigger: Trigger::DirectAddress,
        reception: Reception::Answered,
    };
    assert_eq!((found, headless), (vec![expected], vec![]));
}

/// The reception of Aria's statement at second 2, after Ana's message at second 0 led to it with this trigger. Events with a negative time precede
/// Ana's message.
fn after(trigger: &str, heard: Vec<Value>) -> Option<Reception> {
    let (before, later): (Vec<_>, Vec<_>) = heard.into_iter().partition(|event| event["at"].as_i64() < Some(0));
    let mut events = numbered([vec![asks(0.0), owed(1, trigger, Some(1)), statement(2.0, 1)], later].concat());
    // They have numbers of their own, because the other events refer to each other.
    let hour = Duration::from_secs(3_600);
    events.iter_mut().for_each(|event| event.at = event.at + hour);
    let earlier = before.into_iter().map(|event| {
        let micros = 3_600_000_000 + event["at"].as_i64().unwrap();
        recorded(1_000, with(event, json!({ "at": micros })))
    });
    let found = receptions(&earlier.chain(events).collect::<Vec<_>>(), NEVER);
    found.into_iter().find(|one| one.seq == Seq(STATEMENT)).map(|one| one.reception)
}

fn numbered(events: Vec<Value>) -> Vec<Recorded> {
    (1..).zip(events).map(|(seq, event)| recorded(seq, event)).collect()
}

fn micros(secs: f64) -> i64 {
    (secs * 1e6).round() as i64
}

fn said(at: f64, by: &str, role: &str, text: &str) -> Value {
    let message = json!({ "from": { "id": by, "name": by, "role": role }, "text": text });
    json!({ "event": "said", "at": micros(at), "message": message })
}

fn says(at: f64, by: &str, text: &str) -> Value {
    said(at, by, "user", text)
}

/// A message with some words, or an erased one if the author is empty.
fn says_as(at: f64, by: &str, role: &str) -> Value {
    said(at, by, role, if by.is_empty() { "" } else { "Some words." })
}

/// The event with more fields of its message.
fn to(event: Value, more: &Value) -> Value {
    let message = with(event["message"].clone(), more.clone());
    with(event, json!({ "message": message }))
}

fn asks(at: f64) -> Value {
    to(says(at, "ana", "Aria, how are you?"), &json!({ "address": { "companions": ["aria"] } }))
}

fn stops(at: f64, by: &str) -> Value {
    to(says(at, by, "stop"), &json!({ "asks_to_stop": true }))
}

fn statement(at: f64, ticket: u64) -> Value {
    with(said(at, "aria", "companion", "Well."), json!({ "reply": ticket }))
}

fn owed(ticket: u64, trigger: &str, message: Option<u64>) -> Value {
    let owed = json!({ "event": "reply_owed", "companion": "aria", "ticket": ticket, "messages": [], "upto": 0, "next_interjection_at": 9 });
    with(owed, json!({ "trigger": trigger, "message": message }))
}

fn paused(at: f64, companion: Option<&str>) -> Value {
    json!({ "event": "paused", "at": micros(at), "companion": companion, "paused": true })
}

fn reacts(at: f64, by: &str, removed: bool) -> Value {
    let reaction = json!({ "event": "reacted", "message": STATEMENT, "by": by, "emoji": "\u{1f44d}", "removed": removed });
    with(reaction, json!({ "at": (at * 1e6) as u64 }))
}

fn deleted(at: f64, messages: &[u64]) -> Value {
    json!({ "event": "deleted", "at": micros(at), "messages": messages })
}
