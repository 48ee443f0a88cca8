use proptest::prelude::*;

use super::*;

const NOW: Moment = Moment::from_micros(1_800_000_000_000_000);
const READ: &str = "GET /channels/{channel}/messages";
const TYPE: &str = "POST /channels/{channel}/typing";

#[test]
fn the_first_request_of_an_unknown_route_is_sent_alone() {
    let mut limits = Limits::default();

    assert_eq!(limits.ask(&read(1), NOW), Ask::Go);
    assert_eq!(limits.ask(&read(1), NOW), Ask::AwaitAnswer);
    assert_eq!(limits.ask(&read(2), NOW), Ask::Go);

    limits.unanswered(&read(1));
    assert_eq!(limits.ask(&read(1), NOW), Ask::Go);
}

#[test]
fn limits_of_answers_are_obeyed() {
    let mut limits = Limits::default();
    limits.ask(&read(1), NOW);
    limits.answered(&read(1), &ok("abc", 2, 4.5), NOW);

    let results: Vec<_> = (0..3).map(|_| limits.ask(&read(1), NOW)).collect();

    let reset = NOW + Duration::from_millis(4_500);
    assert_eq!(results, [Ask::Go, Ask::Go, Ask::WaitUntil(reset)]);
    assert_eq!(limits.ask(&read(2), NOW), Ask::Go);
    // Both are in flight, and a window begins with one request alone.
    assert_eq!(limits.ask(&read(1), reset), Ask::AwaitAnswer);
    limits.answered(&read(1), &ok("abc", 0, 0.1), reset);
    limits.unanswered(&read(1));
    assert_eq!([(); 2].map(|()| limits.ask(&read(1), reset)), [Ask::Go, Ask::AwaitAnswer]);
}

#[test]
fn routes_with_the_same_bucket_share_it_within_a_resource() {
    let mut limits = Limits::default();
    let typing = Route { name: TYPE, ..read(1) };
    for route in [&read(1), &typing] {
        limits.ask(route, NOW);
        limits.answered(route, &ok("abc", 1, 2.0), NOW);
    }

    assert_eq!(limits.ask(&typing, NOW), Ask::Go);
    assert_eq!(limits.ask(&read(1), NOW), Ask::WaitUntil(NOW + Duration::from_secs(2)));
    assert_eq!(limits.ask(&Route { name: TYPE, ..read(2) }, NOW), Ask::Go);
}

#[test]
fn a_renamed_bucket_delays_nothing() {
    let mut limits = Limits::default();
    limits.ask(&read(1), NOW);
    limits.answered(&read(1), &ok("abc", 4, 1.0), NOW);
    limits.ask(&read(1), NOW);
    limits.ask(&read(1), NOW);

    limits.answered(&read(1), &ok("xyz", 3, 1.0), NOW);
    limits.answered(&read(1), &ok("abc", 2, 1.0), NOW);

    assert_eq!(limits.ask(&read(1), NOW + Duration::from_secs(60)), Ask::Go);
}

#[test]
fn a_429_delays_only_what_it_concerns() {
    let in_ten = Ask::WaitUntil(NOW + Duration::from_secs(10));
    let with = |scope, bucket: Option<&str>| Answer {
        status: 429,
        scope,
        bucket: bucket.map(str::to_owned),
        retry_after_secs: Some(10.0),
        ..Answer::default()
    };
    // An answer to an interaction does not count for the bot as a whole.
    let interaction = Route { account: Account::None, ..read(3) };
    for (answer, same, other, answers) in [
        (with(Some(Scope::User), Some("abc")), in_ten, Ask::Go, Ask::Go),
        (with(Some(Scope::Shared), Some("abc")), in_ten, Ask::Go, Ask::Go),
        (with(Some(Scope::Shared), None), in_ten, Ask::Go, Ask::Go),
        (with(Some(Scope::Global), None), in_ten, in_ten, Ask::Go),
        (with(None, None), in_ten, in_ten, in_ten),
        (with(None, Some("abc")), in_ten, Ask::Go, Ask::Go),
    ] {
        let mut limits = Limits::default();
        limits.ask(&read(1), NOW);

        limits.answered(&read(1), &answer, NOW);

        assert_eq!((limits.ask(&read(1), NOW), limits.ask(&read(2), NOW)), (same, other), "{answer:?}");
        assert_eq!(limits.ask(&interaction, NOW), answers, "{answer:?}");
        assert_eq!(limits.ask(&read(1), NOW + Duration::from_secs(10)), Ask::Go, "{answer:?}");
    }
}

#[test]
fn the_bot_and_the_address_have_separate_limits_a_second() {
    let mut limits = Limits::new(3);
    let webhook = Route { name: "POST /webhooks/{webhook}/{token}", resource: "9/x".to_owned(), account: Account::Address };

    let results: Vec<_> = (1..=4).map(|channel| limits.ask(&read(channel), NOW)).collect();

    let next = NOW + Duration::from_secs(1);
    assert_eq!(results, [Ask::Go, Ask::Go, Ask::Go, Ask::WaitUntil(next)]);
    let with = |id: &str| Route { resource: id.to_owned(), ..webhook.clone() };
    let by_webhooks: Vec<_> = ["a", "b", "c", "d"].iter().map(|id| limits.ask(&with(id), NOW)).collect();
    assert_eq!(by_webhooks, [Ask::Go, Ask::Go, Ask::Go, Ask::WaitUntil(next)]);
    assert_eq!(limits.ask(&read(4), next), Ask::Go);
}

#[test]
fn a_global_429_concerns_the_bot_or_the_address_but_not_both() {
    let in_ten = Ask::WaitUntil(NOW + Duration::from_secs(10));
    let webhook =
        |id: &str| Route { name: "POST /webhooks/{webhook}/{token}", resource: id.to_owned(), account: Account::Address };
    let too_many = Answer { status: 429, scope: Some(Scope::Global), retry_after_secs: Some(10.0), ..Answer::default() };
    for (refused, bot, address) in [(read(1), in_ten, Ask::Go), (webhook("a"), Ask::Go, in_ten)] {
        let mut limits = Limits::default();
        limits.ask(&refused, NOW);

        limits.answered(&refused, &too_many, NOW);

        assert_eq!((limits.ask(&read(2), NOW), limits.ask(&webhook("b"), NOW)), (bot, address), "{refused:?}");
    }
}

#[test]
fn invalid_requests_are_counted() {
    let mut invalid = InvalidRequests::default();
    for (status, scope, counts) in [
        (200, None, false),
        (404, None, false),
        (500, None, false),
        (401, None, true),
        (403, None, true),
        (429, Some(Scope::User), true),
        (429, Some(Scope::Global), true),
        (429, None, true),
        (429, Some(Scope::Shared), false),
    ] {
        let before = invalid.count(NOW);

        invalid.record_invalid(status, scope, NOW);

        assert_eq!(invalid.count(NOW) > before, counts, "{status} {scope:?}");
    }
}

#[test]
fn nothing_is_sent_long_before_discord_blocks_the_address() {
    let mut limits = Limits::default();
    let refused = Answer { status: 403, ..Answer::default() };
    let cautions: Vec<_> = (1..=INVALID_STOP)
        .map(|_| {
            limits.answered(&read(1), &refused, NOW);
            limits.caution(NOW)
        })
        .collect();

    let until = NOW + INVALID_WINDOW + INVALID_SPAN;
    assert_eq!(cautions.iter().filter(|caution| **caution == Caution::None).count(), 999);
    assert_eq!(cautions.iter().filter(|caution| **caution == Caution::Careful).count(), 4_000);
    assert_eq!(cautions.last(), Some(&Caution::Stop(until)));
    assert_eq!(limits.ask(&read(2), NOW), Ask::WaitUntil(until));
    assert_eq!(limits.ask(&read(2), until), Ask::Go);
}

#[test]
fn a_wait_is_bounded() {
    for (secs, expected) in [
        (Some(1.5), Duration::from_millis(1_500)),
        (Some(0.0), Duration::ZERO),
        (None, DEFAULT_WAIT),
        (Some(-1.0), DEFAULT_WAIT),
        (Some(f64::NAN), DEFAULT_WAIT),
        (Some(f64::INFINITY), LONGEST_WAIT),
        (Some(1e300), LONGEST_WAIT),
        (Some(1e9), LONGEST_WAIT),
    ] {
        assert_eq!(wait(secs), expected, "{secs:?}");
    }
}

#[test]
fn idle_buckets_are_dropped() {
    let mut limits = Limits::new(usize::MAX);
    for channel in 1..=20_000 {
        limits.ask(&read(channel), NOW);
        limits.answered(&read(channel), &ok("abc", 4, 0.0), NOW);
    }

    assert!(limits.buckets.len() <= MANY_BUCKETS && limits.names.len() <= MANY_BUCKETS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A server that counts as documented, answers that arrive late and out of order, and requests as early as permitted.
    #[test]
    fn a_server_that_counts_as_documented_never_refuses(
        limit in 1..6_u32,
        window_ms in 100..5_000_u64,
        // For each step: which of three channels sends a request, and how late its answer is.
        steps in prop::collection::vec((1..4_u64, 0..400_u64), 1..200),
    ) {
        let mut limits = Limits::new(20);
        let mut server = Server { limit, window: Duration::from_millis(window_ms), windows: BTreeMap::new(), second: VecDeque::new() };
        let mut in_flight: Vec<(Moment, u64, Answer)> = Vec::new();
        let mut clock = NOW;
        for (channel, late_ms) in steps {
            loop {
                in_flight.sort_by_key(|(at, ..)| *at);
                while in_flight.first().is_some_and(|(at, ..)| *at <= clock) {
                    let (_, channel, answer) = in_flight.remove(0);
                    limits.answered(&read(channel), &answer, clock);
                }
                match limits.ask(&read(channel), clock) {
                    Ask::Go => break,
                    Ask::WaitUntil(at) => {
                        prop_assert!(at > clock);
                        clock = in_flight.first().map_or(at, |(answer, ..)| at.min(*answer));
                    }
                    Ask::AwaitAnswer => clock = in_flight.first().map(|(at, ..)| *at).expect("no answer is in flight"),
                }
            }
            let answer = server.serve(channel, clock);
            prop_assert_eq!(answer.status, 200);
            in_flight.push((clock + Duration::from_millis(late_ms), channel, answer));
        }
    }
}

/// The counting of Discord.
struct Server {
    limit: u32,
    window: Duration,
    /// For each channel, the end of its window and the remaining requests.
    windows: BTreeMap<u64, (Moment, u32)>,
    second: VecDeque<Moment>,
}

impl Server {
    fn serve(&mut self, channel: u64, now: Moment) -> Answer {
        while self.second.front().is_some_and(|at| now.since(*at) >= Duration::from_secs(1)) {
            self.second.pop_front();
        }
        self.second.push_back(now);
        let window = self.windows.entry(channel).or_insert((Moment::ZERO, 0));
        if window.0 <= now {
            *window = (now + self.window, self.limit);
        }
        if window.1 == 0 || self.second.len() > 20 {
            return Answer { status: 429, ..Answer::default() };
        }
        window.1 -= 1;
        ok("abc", window.1, window.0.since(now).as_secs_f64())
    }
}

fn read(channel: u64) -> Route {
    Route { name: READ, resource: channel.to_string(), account: Account::Bot }
}

fn ok(bucket: &str, remaining: u32, reset_after_secs: f64) -> Answer {
    Answer {
        status: 200,
        bucket: Some(bucket.to_owned()),
        remaining: Some(remaining),
        reset_after_secs: Some(reset_after_secs),
        ..Answer::default()
    }
}
