use proptest::prelude::*;

use super::*;

#[test]
fn shards_of_one_bucket_are_five_seconds_apart() {
    let mut spent = Spent::default();
    let of_two = Announced { max_concurrency: nonzero(2), ..announced(1_000) };

    let asked: Vec<_> = (0..4).map(|shard| spent.ask(shard, &of_two, now())).collect();

    let later = Leave::At(now() + APART);
    assert_eq!(asked, [Leave::Now, Leave::Now, later, later]);
    assert_eq!(spent.ask(2, &of_two, now() + APART), Leave::Now);
    assert_eq!(spent.ask(4, &of_two, now() + APART), Leave::At(now() + APART * 2));
}

#[test]
fn a_restart_forgets_neither_the_count_nor_the_pause() {
    let mut spent = Spent::default();
    spent.ask(0, &announced(1_000), now());

    let stored = serde_json::to_string(&spent).unwrap();
    let mut after: Spent = serde_json::from_str(&stored).unwrap();

    assert_eq!(after, spent);
    assert_eq!(after.ask(0, &announced(999), now()), Leave::At(now() + APART));
    assert_eq!(after.left(&announced(1_000), now()), 1_000 - 1 - RESERVE);
}

#[test]
fn discords_count_stops_before_the_token_is_reset() {
    let mut spent = Spent::default();
    let few = announced(RESERVE + 2);

    let asked: Vec<_> = (0..4).map(|number| spent.ask(0, &few, now() + APART * number)).collect();

    let exhausted = Leave::Exhausted(few.resets_at);
    assert_eq!(asked, [Leave::Now, Leave::Now, exhausted, exhausted]);
    assert_eq!(spent.ask(0, &few, few.resets_at), Leave::Now);
}

#[test]
fn our_count_stops_even_if_discord_tells_of_more() {
    let mut spent = Spent::default();
    let mut at = now();
    for _ in 0..MOST_A_DAY - RESERVE {
        assert_eq!(spent.ask(0, &announced(1_000_000), at), Leave::Now);
        at = at + APART;
    }

    let more_at = now() + DAY;
    assert_eq!(spent.ask(0, &announced(1_000_000), at), Leave::Exhausted(more_at));
    assert_eq!(spent.left(&announced(1_000_000), at), 0);
    assert_eq!(spent.ask(0, &Announced { resets_at: more_at, ..announced(1_000_000) }, more_at), Leave::Now);
}

#[test]
fn a_clock_that_was_set_back_holds_nobody_up_for_long() {
    let mut spent = Spent::default();
    spent.ask(0, &announced(1_000), now());
    let before = now() - Duration::from_secs(3_600);

    assert_eq!(spent.ask(0, &announced(1_000), before), Leave::At(before + APART));
}

#[test]
fn every_close_code_is_answered() {
    for (codes, expected) in [
        (&[4001, 4003, 4005, 4006, 4007, 4009][..], Return::Identify),
        (&[1000, 1001, 1002, 1005, 1006, 1011, 1012, 4000, 4002, 4008, 4015, 4900, 4999], Return::Resume),
        (&[4004], Return::Stop(Stopped::BadToken)),
        (&[4010], Return::Stop(Stopped::BadShard)),
        (&[4011], Return::Stop(Stopped::TooFewShards)),
        (&[4012], Return::Stop(Stopped::OldVersion)),
        (&[4013], Return::Stop(Stopped::BadIntents)),
        (&[4014], Return::Stop(Stopped::ForbiddenIntents)),
    ] {
        for code in codes {
            assert_eq!(after_close(Some(*code)), expected, "{code}");
        }
    }
    assert_eq!(after_close(None), Return::Resume);
    assert_eq!(after_close(Some(CLOSE_TO_RESUME)), Return::Resume);
    assert_eq!(after_invalid_session(true), Return::Resume);
    assert_eq!(after_invalid_session(false), Return::Identify);
}

#[test]
fn pauses_grow_to_a_minute_and_differ_by_chance() {
    let secs = |failures, jitter| pause(failures, jitter).as_secs_f64();

    assert_eq!([0, 1, 2, 3, 4, 5, 6, 99].map(|failures| secs(failures, 1.0)), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    assert_eq!([0, 1, 99, u32::MAX].map(|failures| secs(failures, 0.0)), [0.0, 1.0, 30.0, 30.0]);
    assert_eq!([secs(9, -5.0), secs(9, 7.0), secs(9, f64::NAN)], [30.0, 60.0, 45.0]);
}

#[test]
fn who_stops_says_what_to_do() {
    for stopped in [
        Stopped::BadToken,
        Stopped::BadShard,
        Stopped::TooFewShards,
        Stopped::OldVersion,
        Stopped::BadIntents,
        Stopped::ForbiddenIntents,
    ] {
        assert!(stopped.told().contains(": "), "{stopped:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Many shards that lose their sessions over and over for three days, with restarts between.
    #[test]
    fn whatever_happens_the_token_is_not_reset(
        shards in 1..33_u32,
        max_concurrency in 1..17_u32,
        gaps in prop::collection::vec(0..3_600_u64, 40..90),
        lies in any::<bool>(),
    ) {
        let mut spent = Spent::default();
        let mut starts: Vec<(Moment, u32)> = Vec::new();
        let mut window = (now(), 0_u32);
        let mut at = now();
        for gap in gaps {
            at = at + Duration::from_secs(gap);
            spent = serde_json::from_str(&serde_json::to_string(&spent).unwrap()).unwrap();
            for shard in 0..shards {
                // Discord counts from the first identify on for a day; it may also tell of more than there are.
                if at.since(window.0) >= DAY {
                    window = (at, 0);
                }
                let remaining = if lies { 5_000 } else { MOST_A_DAY - window.1 };
                let announced = Announced {
                    remaining,
                    resets_at: window.0 + DAY,
                    max_concurrency: nonzero(max_concurrency),
                    apart: APART,
                    told_at: at,
                };
                if spent.ask(shard, &announced, at) == Leave::Now {
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
fn identifies_in_vain_become_rare() {
    assert_eq!(identify_pause(0, 1.0), Duration::ZERO);
    assert_eq!(identify_pause(1, 1.0), Duration::from_secs(5));
    assert_eq!(identify_pause(u32::MAX, 1.0), Duration::from_secs(900));

    let mut at = Duration::ZERO;
    let identifies = (0..).map(|in_vain| {
        at += identify_pause(in_vain, 0.0);
        at
    });
    let a_day = identifies.take_while(|at| *at < DAY).count();

    assert!(a_day < 210, "{a_day}");
}

fn announced(remaining: u32) -> Announced {
    let resets_at = now() + Duration::from_secs(12 * 3_600);
    Announced { remaining, resets_at, max_concurrency: nonzero(1), apart: APART, told_at: now() }
}

fn nonzero(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

const fn now() -> Moment {
    Moment::from_micros(1_800_000_000_000_000)
}

#[test]
fn only_a_connection_that_brought_nothing_counts_as_a_failure_to_connect() {
    let (short, quiet) = (Duration::from_millis(300), Duration::from_secs(20));

    assert!(failed_to_connect(None, false));
    assert!(failed_to_connect(Some(short), false));
    assert!(!failed_to_connect(Some(short), true));
    assert!(!failed_to_connect(Some(quiet), false));
}
