use proptest::prelude::*;

use super::*;

#[test]
fn shards_of_one_bucket_are_five_seconds_apart() {
    let mut history = IdentifyHistory::default();
    let of_two = IdentifyLimit { max_concurrency: nonzero(2), ..limit_with(1_000) };

    let permissions: Vec<_> = (0..4).map(|shard| history.request(shard, &of_two, now())).collect();

    let later = Permission::At(now() + APART);
    assert_eq!(permissions, [Permission::Now, Permission::Now, later, later]);
    assert_eq!(history.request(2, &of_two, now() + APART), Permission::Now);
    assert_eq!(history.request(4, &of_two, now() + APART), Permission::At(now() + APART * 2));
}

#[test]
fn a_restart_keeps_the_count_and_the_interval() {
    let mut history = IdentifyHistory::default();
    history.request(0, &limit_with(1_000), now());

    let stored = serde_json::to_string(&history).unwrap();
    let mut after: IdentifyHistory = serde_json::from_str(&stored).unwrap();

    assert_eq!(after, history);
    assert_eq!(after.request(0, &limit_with(999), now()), Permission::At(now() + APART));
    assert_eq!(after.left(&limit_with(1_000), now()), 1_000 - 1 - RESERVE);
}

#[test]
fn discords_count_stops_before_the_token_is_reset() {
    let mut history = IdentifyHistory::default();
    let few = limit_with(RESERVE + 2);

    let permissions: Vec<_> = (0..4).map(|number| history.request(0, &few, now() + APART * number)).collect();

    let exhausted = Permission::Exhausted(few.resets_at);
    assert_eq!(permissions, [Permission::Now, Permission::Now, exhausted, exhausted]);
    assert_eq!(history.request(0, &few, few.resets_at), Permission::Now);
}

#[test]
fn our_count_applies_even_if_discord_announces_more() {
    let mut history = IdentifyHistory::default();
    let mut at = now();
    for _ in 0..MOST_A_DAY - RESERVE {
        assert_eq!(history.request(0, &limit_with(1_000_000), at), Permission::Now);
        at = at + APART;
    }

    let more_at = now() + DAY;
    assert_eq!(history.request(0, &limit_with(1_000_000), at), Permission::Exhausted(more_at));
    assert_eq!(history.left(&limit_with(1_000_000), at), 0);
    assert_eq!(history.request(0, &IdentifyLimit { resets_at: more_at, ..limit_with(1_000_000) }, more_at), Permission::Now);
}

#[test]
fn a_clock_that_was_set_back_delays_an_identify_only_briefly() {
    let mut history = IdentifyHistory::default();
    history.request(0, &limit_with(1_000), now());
    let before = now() - Duration::from_secs(3_600);

    assert_eq!(history.request(0, &limit_with(1_000), before), Permission::At(before + APART));
}

#[test]
fn every_close_code_has_a_next_step() {
    for (codes, expected) in [
        (&[4001, 4003, 4005, 4006, 4007, 4009][..], NextStep::Identify),
        (&[1000, 1001, 1002, 1005, 1006, 1011, 1012, 4000, 4002, 4008, 4015, 4900, 4999], NextStep::Resume),
        (&[4004], NextStep::Stop(CloseCode::AuthenticationFailed)),
        (&[4010], NextStep::Stop(CloseCode::InvalidShard)),
        (&[4011], NextStep::Stop(CloseCode::ShardingRequired)),
        (&[4012], NextStep::Stop(CloseCode::InvalidApiVersion)),
        (&[4013], NextStep::Stop(CloseCode::InvalidIntents)),
        (&[4014], NextStep::Stop(CloseCode::DisallowedIntents)),
    ] {
        for code in codes {
            assert_eq!(after_close(Some(*code)), expected, "{code}");
        }
    }
    assert_eq!(after_close(None), NextStep::Resume);
    assert_eq!(after_close(Some(CLOSE_TO_RESUME)), NextStep::Resume);
    assert_eq!(after_invalid_session(true), NextStep::Resume);
    assert_eq!(after_invalid_session(false), NextStep::Identify);
}

#[test]
fn pauses_grow_to_a_minute_and_are_random() {
    let secs = |failures, jitter| pause(failures, jitter).as_secs_f64();

    assert_eq!([0, 1, 2, 3, 4, 5, 6, 99].map(|failures| secs(failures, 1.0)), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    assert_eq!([0, 1, 99, u32::MAX].map(|failures| secs(failures, 0.0)), [0.0, 1.0, 30.0, 30.0]);
    assert_eq!([secs(9, -5.0), secs(9, 7.0), secs(9, f64::NAN)], [30.0, 60.0, 45.0]);
}

#[test]
fn every_reason_to_stop_has_advice() {
    for code in [
        CloseCode::AuthenticationFailed,
        CloseCode::InvalidShard,
        CloseCode::ShardingRequired,
        CloseCode::InvalidApiVersion,
        CloseCode::InvalidIntents,
        CloseCode::DisallowedIntents,
    ] {
        assert!(advice(code).contains(": "), "{code:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Many shards that lose their sessions again and again for three days, with restarts in between.
    #[test]
    fn the_token_is_never_reset(
        shards in 1..33_u32,
        max_concurrency in 1..17_u32,
        gaps in prop::collection::vec(0..3_600_u64, 40..90),
        announces_too_many in any::<bool>(),
    ) {
        let mut history = IdentifyHistory::default();
        let mut starts: Vec<(Moment, u32)> = Vec::new();
        let mut window = (now(), 0_u32);
        let mut at = now();
        for gap in gaps {
            at = at + Duration::from_secs(gap);
            history = serde_json::from_str(&serde_json::to_string(&history).unwrap()).unwrap();
            for shard in 0..shards {
                // Discord counts for a day from the first identify. It may also announce too many.
                if at.since(window.0) >= DAY {
                    window = (at, 0);
                }
                let remaining = if announces_too_many { 5_000 } else { MOST_A_DAY - window.1 };
                let limit = IdentifyLimit {
                    remaining,
                    resets_at: window.0 + DAY,
                    max_concurrency: nonzero(max_concurrency),
                    apart: APART,
                    received_at: at,
                };
                if history.request(shard, &limit, at) == Permission::Now {
                    starts.push((at, shard));
                    window.1 += 1;
                }
            }
            prop_assert!(window.1 < MOST_A_DAY);
        }
        for (index, (at, shard)) in starts.iter().enumerate() {
            let earlier = &starts[..index];
            let in_a_day = earlier.iter().filter(|(other, _)| at.since(*other) < DAY).count();
            prop_assert!(in_a_day < (MOST_A_DAY - RESERVE) as usize);
            let same = earlier.iter().filter(|(_, other)| other % max_concurrency == shard % max_concurrency);
            prop_assert!(same.into_iter().all(|(other, _)| at.since(*other) >= Duration::from_secs(5)));
        }
    }
}

#[test]
fn failed_identifies_become_rare() {
    let pause = |failed, has_worked, left| identify_pause(failed, has_worked, left, 1.0).as_secs();
    assert_eq!([0, 1, 2, 99, u32::MAX].map(|failed| pause(failed, false, 900)), [0, 5, 10, 900, 900]);
    assert_eq!([0, 1, 2, 99, u32::MAX].map(|failed| pause(failed, true, 500)), [0, 5, 10, 60, 60]);
    assert_eq!(pause(99, true, 499), 900, "no more than half of the day's are left");
}

#[test]
fn a_day_of_failed_identifies_leaves_some_for_a_shard_that_worked_before_too() {
    for (has_worked, expected) in [(false, 195..210), (true, 600..700)] {
        let (mut history, mut at) = (IdentifyHistory::default(), now());
        let end = at + DAY;
        for failed in 0.. {
            let limit = IdentifyLimit { received_at: now(), ..limit_with(MOST_A_DAY) };
            at = at + identify_pause(failed, has_worked, history.left(&limit, at), 0.0).max(APART);
            if at >= end {
                break;
            }
            assert_eq!(history.request(0, &limit, at), Permission::Now);
        }
        assert!(expected.contains(&history.0.len()), "{}", history.0.len());
    }
}

fn limit_with(remaining: u32) -> IdentifyLimit {
    let resets_at = now() + Duration::from_secs(12 * 3_600);
    IdentifyLimit { remaining, resets_at, max_concurrency: nonzero(1), apart: APART, received_at: now() }
}

fn nonzero(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

const fn now() -> Moment {
    Moment::from_micros(1_800_000_000_000_000)
}

#[test]
fn only_a_connection_without_a_result_counts_as_a_failure() {
    let (short, quiet) = (Duration::from_millis(300), Duration::from_secs(20));

    assert!(failed_to_connect(None, false));
    assert!(failed_to_connect(Some(short), false));
    assert!(!failed_to_connect(Some(short), true));
    assert!(!failed_to_connect(Some(quiet), false));
}
