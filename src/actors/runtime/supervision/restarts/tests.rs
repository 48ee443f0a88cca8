use proptest::prelude::*;

use super::*;

#[test]
fn the_first_restart_comes_at_once_and_the_next_ones_back_off() {
    let (mut restarts, now) = died(0);

    let delays = [(); 5].map(|()| delay(restarts.died(&"a", now, 0.0), now));

    assert_eq!(delays, [0, 100, 200, 400, 500]);
}

#[test]
fn jitter_adds_up_to_half_of_the_delay() {
    let now = Instant::now();
    let second_with = |fraction| {
        let mut restarts = Restarts::new(policy());
        restarts.died(&"a", now, fraction);
        delay(restarts.died(&"a", now, fraction), now)
    };

    assert_eq!([second_with(0.0), second_with(0.5), second_with(1.0)], [100, 125, 150]);
}

#[test]
fn a_child_that_dies_too_often_in_a_row_is_escalated() {
    let (mut restarts, now) = died(5);

    let verdict = restarts.died(&"a", now, 0.0);

    assert_eq!(verdict, Verdict::Escalate(Excess::Child));
}

#[test]
fn a_child_that_loses_a_dependency_waits_longer_each_time_and_is_never_escalated() {
    let (mut restarts, now) = died(0);

    let delays = [(); 5].map(|()| (restarts.dependency_lost(&"a", now, 0.0) - now).as_millis());
    let others = (0..100).map(|child| restarts.dependency_lost(&["b", "c"][child % 2], now, 0.0)).max();
    let own = restarts.died(&"a", now, 0.0);

    assert_eq!(delays, [0, 100, 200, 400, 500]);
    assert_eq!(others, Some(now + Duration::from_millis(500)));
    assert_eq!(delay(own, now), 500, "it is the first death that counts");
}

#[test]
fn the_deaths_of_all_children_together_are_limited() {
    let mut restarts = Restarts::new(policy());
    let now = Instant::now();
    for child in 0..8 {
        assert_eq!(restarts.died(&child, now, 0.0), Verdict::RestartAt(now));
    }

    let verdict = restarts.died(&8, now, 0.0);

    assert_eq!(verdict, Verdict::Escalate(Excess::Total));
}

#[test]
fn uptime_clears_the_count() {
    let (mut restarts, now) = died(5);
    restarts.started(&"a", now);

    let later = now + policy().window;
    let verdict = restarts.died(&"a", later, 0.0);

    assert_eq!(verdict, Verdict::RestartAt(later));
}

#[test]
fn waiting_for_a_restart_does_not_count_as_uptime() {
    let (mut restarts, now) = died(5);

    let verdict = restarts.died(&"a", now + policy().window, 0.0);

    assert_eq!(verdict, Verdict::Escalate(Excess::Child));
}

#[test]
fn a_forgotten_child_is_counted_from_zero() {
    let (mut restarts, now) = died(1);
    restarts.forget(&"a");

    let verdict = restarts.died(&"a", now, 0.0);

    assert_eq!(verdict, Verdict::RestartAt(now));
}

proptest! {
    #[test]
    fn within_a_window_no_more_restarts_are_granted_than_the_total_limit(
        deaths in prop::collection::vec((0_u8..4, 0_u64..3_000, any::<bool>()), 0..200),
    ) {
        let mut restarts = Restarts::new(policy());
        let mut now = Instant::now();
        let mut granted = Vec::new();

        for (child, wait, recovers) in deaths {
            now += Duration::from_millis(wait);
            if let Verdict::RestartAt(at) = restarts.died(&child, now, 0.0) {
                prop_assert!(at >= now);
                granted.push(now);
            }
            if recovers {
                restarts.started(&child, now);
            }
        }

        for (index, first) in granted.iter().enumerate() {
            let within = granted[index..].iter().filter(|at| at.duration_since(*first) < policy().window).count();
            prop_assert!(within <= policy().total_limit as usize);
        }
    }
}

fn policy() -> RestartPolicy {
    RestartPolicy {
        first_delay: Duration::from_millis(100),
        longest_delay: Duration::from_millis(500),
        child_limit: 5,
        total_limit: 8,
        window: Duration::from_secs(60),
    }
}

/// The child `a` has just died so many times.
fn died(times: usize) -> (Restarts<&'static str>, Instant) {
    let (mut restarts, now) = (Restarts::new(policy()), Instant::now());
    for _ in 0..times {
        restarts.died(&"a", now, 0.0);
    }
    (restarts, now)
}

fn delay(verdict: Verdict, now: Instant) -> u128 {
    match verdict {
        Verdict::RestartAt(at) => at.duration_since(now).as_millis(),
        Verdict::Escalate(excess) => panic!("escalated: {excess:?}"),
    }
}
