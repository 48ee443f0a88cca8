use super::*;

const AVERAGE: InterjectionPolicy = policy(9);

const fn policy(starting_interval: u64) -> InterjectionPolicy {
    InterjectionPolicy { voice_lull_timeout: Duration::from_secs(5), ..crate::domain::samples::policy(starting_interval) }
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
