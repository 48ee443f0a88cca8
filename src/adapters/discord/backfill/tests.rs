use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::snowflake::id;
use super::*;

const HOUR: Duration = Duration::from_secs(3_600);
const LIMITS: Limits = Limits { messages: 500, age: Duration::from_secs(24 * 3_600), calls_per_second: 20, at_once: 4 };

#[test]
fn a_channel_whose_newest_message_is_known_is_not_asked_for() {
    let mut plan = Backfill::<Snowflake>::new(LIMITS);

    plan.add(behind(1, minutes_ago(5), minutes_ago(5)), now(), now());

    assert_eq!(plan.next(now()), Next::Over);
}

#[test]
fn missed_messages_are_read_and_returned_in_order() {
    let (accepted, second, third) = (minutes_ago(30), minutes_ago(20), minutes_ago(10));
    let mut plan = Backfill::new(LIMITS);
    plan.add(behind(1, third, accepted), now(), now());

    let request = plan.next(now());
    assert!(plan.is_filling(id(1)));
    plan.answered(id(1), vec![(third, third), (second, second), (accepted, accepted)], now());

    assert_eq!(request, Next::Ask(Request { channel: id(1), before: third.next(), limit: 100 }));
    assert_eq!(plan.next(now()), Next::Filled(Filled { channel: id(1), messages: vec![second, third], gap: None }));
    assert!(!plan.is_filling(id(1)));
    assert_eq!(plan.next(now()), Next::Over);
}

#[test]
fn a_refusal_ends_a_channel_and_a_failure_is_retried() {
    let mut plan = Backfill::<Snowflake>::new(LIMITS);
    plan.add(behind(1, minutes_ago(1), minutes_ago(2)), now(), now());
    plan.add(behind(2, minutes_ago(1), minutes_ago(2)), now(), now());
    let later = now() + HOUR;

    plan.next(now());
    plan.failed(id(1), Failure::Refused);
    assert!(matches!(plan.next(now()), Next::Filled(Filled { gap: Some(Gap { why: Left::Refused, .. }), .. })));

    for _ in 1..MOST_TRIES {
        assert!(matches!(plan.next(later), Next::Ask(_)));
        plan.failed(id(2), Failure::Later(later));
        assert_eq!(plan.next(now()), Next::WaitUntil(later));
    }
    plan.next(later);
    plan.failed(id(2), Failure::Later(later));
    assert!(matches!(plan.next(later), Next::Filled(Filled { gap: Some(Gap { why: Left::Unreachable, .. }), .. })));
}

#[test]
fn guilds_take_turns_and_have_one_request_in_flight() {
    let mut plan = Backfill::<Snowflake>::new(LIMITS);
    for channel in 1..=3 {
        plan.add(Behind { guild: Some(id(77)), ..behind(channel, minutes_ago(10 - channel), minutes_ago(20)) }, now(), now());
    }
    plan.add(Behind { guild: Some(id(78)), ..behind(9, minutes_ago(1), minutes_ago(20)) }, now(), now());

    let first = requested_channel(&plan.next(now()));
    let second = requested_channel(&plan.next(now()));
    let third = plan.next(now());
    plan.failed(first, Failure::Refused);
    plan.next(now());
    let fourth = requested_channel(&plan.next(now()));

    // Within a guild, the most recently used channel is first.
    assert_eq!((first, second, fourth), (id(3), id(9), id(2)));
    assert_eq!(third, Next::AwaitAnswer);
}

#[test]
fn the_number_of_partly_read_channels_is_bounded() {
    let limits = Limits { at_once: 1, calls_per_second: 100_000, ..LIMITS };
    let mut plan = Backfill::<Snowflake>::new(limits);
    let newest = minutes_ago(1);
    let page = |before: Snowflake| (1..=100).map(|back| id(before.get() - back)).map(|id| (id, id)).collect::<Vec<_>>();
    for guild in 1..=1_000 {
        plan.add(behind(guild, newest, minutes_ago(20)), now(), now());
    }

    let (mut open, mut most, mut filled) = (BTreeSet::new(), 0, 0);
    loop {
        match plan.next(now()) {
            Next::Ask(request) => {
                open.insert(request.channel);
                plan.answered(request.channel, page(request.before), now());
            }
            Next::Filled(read) => {
                open.remove(&read.channel);
                filled += 1;
            }
            Next::Over => break,
            other => panic!("{other:?}"),
        }
        most = most.max(open.len());
    }

    assert_eq!((filled, most), (1_000, MOST_OPEN));
}

#[test]
fn a_guild_that_hangs_does_not_delay_the_others() {
    let mut plan = Backfill::<Snowflake>::new(LIMITS);
    for guild in 1..=10 {
        plan.add(behind(guild, minutes_ago(1), minutes_ago(20)), now(), now());
    }
    let hanging = requested_channel(&plan.next(now()));

    let mut read = BTreeSet::new();
    for _ in 0..20 {
        if let Next::Ask(request) = plan.next(now()) {
            plan.failed(request.channel, Failure::Refused);
            read.insert(request.channel);
        }
    }

    assert_eq!(read.len(), 9);
    assert!(!read.contains(&hanging));
}

#[test]
fn a_channel_that_is_gone_is_not_read() {
    let mut plan = Backfill::<Snowflake>::new(LIMITS);
    plan.add(Behind { guild: Some(id(77)), ..behind(1, minutes_ago(1), minutes_ago(2)) }, now(), now());
    plan.next(now());

    plan.forget(|behind| behind.guild == Some(id(77)));
    plan.answered(id(1), vec![(minutes_ago(1), minutes_ago(1))], now());

    assert_eq!(plan.next(now()), Next::Over);
}

#[test]
fn unexpected_answers_and_useless_pages_are_harmless() {
    let mut plan = Backfill::new(LIMITS);
    plan.add(behind(1, minutes_ago(1), minutes_ago(20)), now(), now());
    plan.answered(id(1), vec![(minutes_ago(1), ())], now());
    plan.answered(id(5), vec![(minutes_ago(1), ())], now());
    plan.failed(id(5), Failure::Refused);

    let Next::Ask(request) = plan.next(now()) else { panic!("no request") };
    plan.answered(id(1), vec![(Snowflake::MAX, ()); request.limit as usize], now());

    assert!(matches!(plan.next(now()), Next::Filled(Filled { gap: Some(Gap { why: Left::NothingShown, .. }), .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_newest_messages_within_the_limits_are_read_and_the_rest_becomes_a_gap(
        channels in prop::collection::vec((1..4_u64, prop::collection::btree_set(1..3_000_u64, 0..700), 1..3_000_u64), 1..6),
        messages in 1..600_u32,
        calls_per_second in 1..50_usize,
        at_once in 1..6_usize,
    ) {
        let limits = Limits { messages, calls_per_second, at_once, ..LIMITS };
        let channels: Vec<Channel> = channels.into_iter().zip(1..).map(|((guild, messages, accepted), number)| Channel {
            id: id(number),
            guild: id(1_000 + guild),
            messages: messages.into_iter().map(minutes_ago).collect(),
            accepted: minutes_ago(accepted),
        }).collect();

        let (filled, calls) = run(&channels, limits);

        for channel in &channels {
            let missed: Vec<_> = channel.messages.iter().copied().filter(|id| *id > channel.accepted).collect();
            let floor = Snowflake::at(now() - limits.age);
            let young: Vec<_> = missed.iter().copied().filter(|id| *id >= floor).collect();
            let expected = &young[young.len().saturating_sub(messages as usize)..];
            let found = filled.get(&channel.id);
            prop_assert_eq!(found.is_some(), !missed.is_empty());
            if let Some(found) = found {
                prop_assert_eq!(&found.messages[..], expected);
                prop_assert_eq!(found.gap.is_some(), expected.len() < missed.len());
                let before = expected.first().copied().or_else(|| missed.last().map(|newest| newest.next()));
                prop_assert!(found.gap.is_none_or(|gap| gap.after == channel.accepted && Some(gap.before) == before));
            }
        }
        // No second has more calls than allowed. No channel has more calls than its messages need.
        for window in calls.windows(calls_per_second + 1) {
            prop_assert!(window[calls_per_second].0.since(window[0].0) >= Duration::from_secs(1));
        }
        for channel in &channels {
            let count = calls.iter().filter(|(_, requested)| *requested == channel.id).count();
            prop_assert!(count <= messages as usize / 100 + 1);
        }
    }
}

struct Channel {
    id: Snowflake,
    guild: Snowflake,
    messages: BTreeSet<Snowflake>,
    accepted: Snowflake,
}

/// What was read of each channel.
type Read = BTreeMap<Snowflake, Filled<Snowflake>>;
/// The time and channel of each request.
type Calls = Vec<(Moment, Snowflake)>;

/// Runs a plan against channels that answer as Discord does. The answers arrive late and in the order of the requests.
fn run(channels: &[Channel], limits: Limits) -> (Read, Calls) {
    let mut plan = Backfill::new(limits);
    for channel in channels {
        if let Some(newest) = channel.messages.last() {
            plan.add(
                Behind { channel: channel.id, guild: Some(channel.guild), newest: *newest, accepted: channel.accepted },
                now(),
                now(),
            );
        }
    }
    let (mut filled, mut calls, mut in_flight) = (BTreeMap::new(), Vec::new(), VecDeque::new());
    let mut clock = now();
    loop {
        match plan.next(clock) {
            Next::Ask(request) => {
                calls.push((clock, request.channel));
                in_flight.push_back(request);
                assert!(in_flight.len() <= limits.at_once);
            }
            Next::Filled(channel) => {
                assert!(filled.insert(channel.channel, channel).is_none());
            }
            Next::WaitUntil(at) => {
                assert!(at > clock);
                clock = at;
            }
            Next::AwaitAnswer => {
                let request: Request = in_flight.pop_front().expect("no request is in flight");
                clock = clock + Duration::from_millis(30);
                let channel = channels.iter().find(|channel| channel.id == request.channel).expect("the channel exists");
                let page =
                    channel.messages.range(..request.before).rev().take(request.limit as usize).map(|id| (*id, *id)).collect();
                plan.answered(request.channel, page, clock);
            }
            Next::Over => return (filled, calls),
        }
    }
}

fn requested_channel<M: std::fmt::Debug>(next: &Next<M>) -> Snowflake {
    match next {
        Next::Ask(request) => request.channel,
        other => panic!("{other:?}"),
    }
}

fn behind(channel: u64, newest: Snowflake, accepted: Snowflake) -> Behind {
    Behind { channel: id(channel), guild: None, newest, accepted }
}

fn minutes_ago(minutes: u64) -> Snowflake {
    Snowflake::at(now() - Duration::from_secs(60 * minutes))
}

const fn now() -> Moment {
    Moment::from_micros(1_800_000_000_000_000)
}
