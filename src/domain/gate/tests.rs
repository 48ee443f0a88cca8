use super::*;

const AVERAGE: InterjectionPolicy = policy(9);

const fn policy(starting_interval: u64) -> InterjectionPolicy {
    InterjectionPolicy { voice_lull_timeout: Duration::from_secs(5), ..crate::samples::policy(starting_interval) }
}

fn waiting(trigger: Trigger, message: u64, check: Check) -> Waiting {
    Waiting { trigger, message: Seq(message), check, urgent: false }
}

#[test]
fn intervals_step_down_by_three_and_never_below_three() {
    let intervals: Vec<_> = (0..7).map(|checks| policy(15).interval(checks, 0)).collect();

    assert_eq!(intervals, [15, 12, 9, 6, 3, 3, 3]);
}

#[test]
fn jitter_never_makes_an_interval_shorter_than_three() {
    assert_eq!(policy(3).interval(0, -2), 3);
    assert_eq!(policy(3).interval(0, 2), 5);
    assert_eq!(AVERAGE.interval(1, -2), 4);
    assert_eq!(AVERAGE.interval(9, -1), 3);
}

#[test]
fn interjection_checks_follow_the_intervals_of_the_design() {
    let checks = |starting| {
        let mut gate = Gate::new(Seq::NONE);
        gate.next_interjection_at = Some(policy(starting).interval(0, 0));
        (0..5)
            .map(|_| {
                let due = gate.next_interjection_at.unwrap();
                gate.message_counter = due;
                gate.decline_interjection(gate.after_declining(policy(starting).interval(gate.check_count + 1, 0)));
                due
            })
            .collect::<Vec<_>>()
    };

    assert_eq!(checks(9)[..4], [9, 15, 18, 21]);
    assert_eq!(checks(15), [15, 27, 36, 42, 45]);
}

#[test]
fn a_burst_does_not_cause_a_check_for_each_of_its_messages() {
    let mut gate = Gate::new(Seq::NONE);
    gate.next_interjection_at = Some(9);
    gate.message_counter = 40;

    assert_eq!(gate.after_declining(6), 46);
}

#[test]
fn back_off_doubles_from_the_lull_timeout_to_ten_minutes() {
    let mut last = None;
    let pauses: Vec<_> = (0..8)
        .map(|_| {
            last = Some(AVERAGE.back_off(last));
            last.unwrap().as_secs()
        })
        .collect();

    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600]);
}

#[test]
fn back_off_is_at_least_one_second() {
    let impatient = InterjectionPolicy { text_lull_timeout: Duration::from_millis(10), ..AVERAGE };

    assert_eq!(impatient.back_off(None), Duration::from_secs(1));
}

#[test]
fn the_strongest_trigger_waits_and_a_newer_one_replaces_an_equal() {
    let mut gate = Gate::new(Seq::NONE);

    gate.fire(waiting(Trigger::Interjection, 3, Check::Counter));
    gate.fire(waiting(Trigger::Lull, 4, Check::Quiet));
    assert_eq!(gate.waiting, Some(waiting(Trigger::Interjection, 3, Check::Counter)));

    gate.fire(waiting(Trigger::Interjection, 5, Check::Counter));
    assert_eq!(gate.waiting, Some(waiting(Trigger::Interjection, 5, Check::Counter)));

    gate.fire(waiting(Trigger::DirectAddress, 6, Check::Unsettled));
    gate.fire(waiting(Trigger::Interjection, 7, Check::Counter));
    assert_eq!(gate.waiting, Some(waiting(Trigger::DirectAddress, 6, Check::Unsettled)));
}

#[test]
fn merged_triggers_need_no_check_if_either_needs_none() {
    let mut gate = Gate::new(Seq::NONE);

    gate.fire(waiting(Trigger::Lull, 4, Check::Unsettled));
    gate.fire(waiting(Trigger::Interjection, 5, Check::Counter));

    assert_eq!(gate.waiting, Some(waiting(Trigger::Interjection, 5, Check::Unsettled)));
}

#[test]
fn a_waiting_trigger_is_dropped_when_its_message_settles() {
    let mut gate = Gate::new(Seq::NONE);
    gate.fire(waiting(Trigger::DirectAddress, 6, Check::Unsettled));

    gate.settle(Seq(5));
    assert!(gate.waiting.is_some());

    gate.settle(Seq(6));
    assert!(gate.waiting.is_none());
}

#[test]
fn either_of_two_merged_triggers_may_be_urgent() {
    let urgent = Waiting { urgent: true, ..waiting(Trigger::Lull, 4, Check::Quiet) };
    for (first, second) in [(urgent, waiting(Trigger::Lull, 5, Check::Quiet)), (waiting(Trigger::Lull, 3, Check::Quiet), urgent)]
    {
        let mut gate = Gate::new(Seq::NONE);
        gate.fire(first);
        gate.fire(second);

        assert!(gate.waiting.unwrap().urgent);
    }
    let mut gate = Gate::new(Seq::NONE);
    gate.fire(waiting(Trigger::Lull, 4, Check::Quiet));
    gate.fire(waiting(Trigger::Lull, 5, Check::Quiet));
    assert!(!gate.waiting.unwrap().urgent);
}

#[test]
fn an_interval_is_drawn_with_the_first_message() {
    let counted = |message_counter, next_interjection_at| {
        Gate { message_counter, next_interjection_at, ..Gate::new(Seq::NONE) }.lacks_interval()
    };

    assert_eq!([counted(0, None), counted(1, None), counted(1, Some(9)), counted(0, Some(9))], [false, true, false, false]);
}

#[test]
fn what_waits_is_rechecked_by_its_check_against_the_newest_unsettled_message() {
    // A gate whose cursor is 5 and whose interjection check is due, or not; what waits; the newest unsettled message; whether it still waits.
    let due = Gate { message_counter: 9, next_interjection_at: Some(9), ..Gate::new(Seq(5)) };
    let early = Gate { message_counter: 8, ..due.clone() };
    for (gate, trigger, message, check, newest, passes) in [
        (&due, Trigger::DirectAddress, 6, Check::Unsettled, Some(7), true),
        (&due, Trigger::DirectAddress, 5, Check::Unsettled, Some(7), false),
        (&due, Trigger::DirectAddress, 6, Check::Unsettled, None, false),
        (&due, Trigger::Interjection, 6, Check::Counter, Some(7), true),
        (&early, Trigger::Interjection, 6, Check::Counter, Some(7), false),
        (&due, Trigger::Lull, 6, Check::Quiet, Some(6), true),
        (&due, Trigger::Lull, 6, Check::Quiet, Some(7), false),
        (&due, Trigger::Silence, 5, Check::Unsettled, None, true),
    ] {
        let mut gate = gate.clone();
        gate.waiting = Some(waiting(trigger, message, check));
        gate.recheck(newest.map(Seq));

        assert_eq!(gate.waiting.is_some(), passes, "{trigger:?} {message} {check:?} {newest:?}");
    }
}

#[test]
fn the_next_check_after_a_declined_one_lies_ahead_of_the_count() {
    let after =
        |message_counter| Gate { message_counter, next_interjection_at: Some(9), ..Gate::new(Seq::NONE) }.after_declining(6);

    assert_eq!([14, 15, 16].map(after), [15, 21, 22]);
}

#[test]
fn a_companion_that_spoke_counts_and_waits_from_the_beginning() {
    let mut gate = Gate { message_counter: 9, check_count: 2, next_interjection_at: Some(9), ..Gate::new(Seq::NONE) };

    gate.reset(1, 7);

    assert_eq!((gate.message_counter, gate.check_count, gate.next_interjection_at), (1, 0, Some(7)));
}

#[test]
fn an_outvoted_wish_waits_unless_it_has_settled_or_was_about_silence() {
    let wish = |trigger, message| Wish { trigger, message: Seq(message), upto: Seq(message), why: None, turn: None };
    for (trigger, message, waits) in
        [(Trigger::Lull, 6, true), (Trigger::Lull, 5, false), (Trigger::Lull, 4, false), (Trigger::Silence, 6, false)]
    {
        let mut gate = Gate { wish: Some(wish(trigger, message)), next_interjection_at: Some(9), ..Gate::new(Seq(5)) };
        gate.outvoted(None);

        assert_eq!((gate.waiting.is_some(), gate.wish), (waits, None), "{trigger:?} {message}");
        assert_eq!(gate.next_interjection_at, Some(9));
    }
    let mut gate = Gate { wish: Some(wish(Trigger::Lull, 6)), ..Gate::new(Seq(5)) };
    gate.fire(waiting(Trigger::DirectAddress, 7, Check::Unsettled));
    gate.outvoted(Some(12));
    assert_eq!(gate.waiting, Some(waiting(Trigger::DirectAddress, 7, Check::Unsettled)));
    assert_eq!(gate.next_interjection_at, Some(12));
}

#[test]
fn who_lost_the_floor_is_checked_one_interval_later_unless_the_check_lies_ahead() {
    let after = |next_interjection_at| Gate { message_counter: 9, next_interjection_at, ..Gate::new(Seq::NONE) }.after_losing(6);

    assert_eq!([Some(8), Some(9), Some(10), None].map(after), [Some(15), Some(15), None, None]);
}

#[test]
fn an_unanswered_question_waits_for_a_retry_unless_its_message_has_gone_or_settled() {
    let (now, pause) = (Moment::from_micros(7), Duration::from_secs(10));
    let unanswered = |trigger, message| Evaluation {
        ticket: Ticket(1),
        trigger,
        message: Seq(message),
        upto: Seq(8),
        message_count: 0,
        due_at: None,
        is_spoilt: false,
        turn: None,
    };
    for (trigger, message, is_present, waits) in [
        (Trigger::Lull, 6, true, true),
        (Trigger::Lull, 6, false, false),
        (Trigger::Lull, 5, true, false),
        (Trigger::Silence, 6, true, false),
    ] {
        let mut gate = Gate::new(Seq(5));
        gate.retry(unanswered(trigger, message), is_present, pause, now);

        let expected = waits.then(|| waiting(trigger, message, Check::Unsettled));
        assert_eq!((gate.waiting, gate.tried), (expected, Seq(8)), "{trigger:?} {message} {is_present}");
        assert_eq!(gate.back_off, Some(BackOff { pause, until: Some(now + pause) }));
    }
}

#[test]
fn an_ended_back_off_keeps_its_length_for_the_next_one() {
    let mut gate =
        Gate { back_off: Some(BackOff { pause: Duration::from_secs(10), until: Some(Moment::ZERO) }), ..Gate::new(Seq::NONE) };

    gate.end_back_off();

    assert_eq!(gate.back_off, Some(BackOff { pause: Duration::from_secs(10), until: None }));
}

#[test]
fn a_snapshot_leaves_out_what_is_usual() {
    let usual = serde_json::to_value(Gate::new(Seq(3))).unwrap();
    let unusual = Gate { turns: 2, minimum_stage: Stage::Closing, ..Gate::new(Seq(3)) };
    let unusual_written = serde_json::to_value(&unusual).unwrap();

    for key in ["turns", "minimum_stage"] {
        assert_eq!((usual.get(key), unusual_written.get(key).is_some()), (None, true), "{key}");
    }
    assert_eq!(serde_json::from_value::<Gate>(unusual_written).unwrap(), unusual);
}

#[test]
fn the_stop_phrase_of_an_older_snapshot_is_no_address() {
    let mut older = serde_json::to_value(Gate::default()).unwrap();
    older["stopped_by"] = 8.into();

    let gate: Gate = serde_json::from_value(older).unwrap();

    assert_eq!(gate.cancelled, [Seq(8)]);
}
