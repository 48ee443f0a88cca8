use proptest::prelude::*;

use super::*;

const WINDOW: Duration = Duration::from_secs(600);
type Window = Sliding<600>;

/// The reference model: stores every use.
#[derive(Default)]
struct Reference(Vec<(Moment, u64)>);

impl Reference {
    fn used(&self, now: Moment, window: Duration) -> u64 {
        self.0.iter().filter(|(at, _)| !is_expired(*at, now, window)).map(|(_, amount)| amount).sum()
    }

    /// The first moment at which less than the limit is used, if nothing more is used.
    fn free_at(&self, now: Moment, most: u64) -> Moment {
        let ends = self.0.iter().map(|(at, _)| *at + WINDOW).filter(|end| *end >= now);
        ends.filter(|end| self.used(*end, WINDOW) < most).min().unwrap_or(now)
    }
}

#[test]
fn a_million_uses_need_at_most_one_entry_per_minute() {
    let mut tokens = Sliding::<86_400>::default();

    for number in 0..1_000_000_u64 {
        tokens.count(7, Moment::from_micros(number * 250_000), 2_000_000);
    }

    assert!(tokens.pieces.len() <= 1_441, "{}", tokens.pieces.len());
    assert_eq!(
        tokens.used(Moment::from_micros(1_000_000 * 250_000)),
        7 * (86_400 + 40) * 4,
        "all uses of the oldest minute count"
    );
}

#[test]
fn a_small_limit_stores_no_more_uses_than_the_limit() {
    let mut window = Window::default();
    for micros in 0..1_000 {
        window.count(1, Moment::from_micros(micros), 3);
    }

    let full = window.full(Moment::from_micros(1_000), 3, 0);

    assert_eq!(window.pieces.len(), 3);
    assert_eq!(full, Some(Some(Moment::from_micros(997) + WINDOW)));
}

#[test]
fn unused_capacity_is_freed() {
    let mut window = Sliding::<86_400>::default();
    for minute in 0..1_000 {
        window.count(1, Moment::from_micros(minute * 60_000_000), 5_000);
    }

    let is_used = window.prune(Moment::from_micros(86_400_000_000 + 999 * 60_000_000 - 1));

    assert!(is_used && window.pieces.capacity() <= 2 * SPARE_CAPACITY, "{}", window.pieces.capacity());
}

proptest! {
    #[test]
    fn a_small_limit_is_exact_to_the_microsecond(most in 0_u64..12, uses in prop::collection::vec((0_u64..200_000, 0_u64..3, 0_u64..4_000), 0..60)) {
        let (mut window, mut reference) = (Window::default(), Reference::default());
        let mut now = Moment::from_micros(1_000_000_000);

        for (gap_ms, promised, lag_ms) in uses {
            now = now + Duration::from_millis(gap_ms);
            let used = reference.used(now, WINDOW);
            prop_assert_eq!(window.full(now, most, promised).is_some(), used + promised >= most);
            if let Some(free_at) = window.full(now, most, 0) {
                prop_assert_eq!(free_at, (most > 0).then(|| reference.free_at(now, most)));
            } else {
                let at = now - Duration::from_millis(lag_ms);
                window.count(1, at, most);
                reference.0.push((at, 1));
            }
        }
    }

    #[test]
    fn a_large_limit_is_never_exceeded_and_frees_uses_less_than_a_minute_late(
        most in 1_441_u64..4_000,
        uses in prop::collection::vec((0_u64..90_000, 0_u64..500, 0_u64..4_000), 0..120),
    ) {
        let (mut window, mut reference) = (Window::default(), Reference::default());
        let mut now = Moment::from_micros(1_000_000_000);

        for (gap_ms, amount, lag_ms) in uses {
            now = now + Duration::from_millis(gap_ms);
            let full = window.full(now, most, 0);
            prop_assert!(full.is_some() || reference.used(now, WINDOW) < most, "more than the limit is allowed");
            prop_assert!(full.is_none() || reference.used(now, WINDOW + PIECE) >= most, "uses expire too late");
            prop_assert!(window.pieces.len() <= 11);
            match full {
                None => {
                    let at = now - Duration::from_millis(lag_ms);
                    window.count(amount, at, most);
                    reference.0.push((at, amount));
                }
                Some(free_at) => {
                    let free_at = free_at.expect("the limit is not zero");
                    let exact = reference.free_at(now, most);
                    prop_assert!(exact <= free_at && free_at < exact.max(now) + PIECE, "{exact:?} {free_at:?}");
                    prop_assert!(window.clone().full(free_at - Duration::from_micros(1), most, 0).is_some());
                    prop_assert_eq!(window.clone().full(free_at, most, 0), None);
                }
            }
        }
    }

    #[test]
    fn no_window_holds_more_than_its_limit(
        most in prop_oneof![1_u64..40, 1_441_u64..2_000],
        requests in prop::collection::vec((0_u64..90_000, 0_u64..400), 0..80),
    ) {
        let (mut window, mut reference) = (Window::default(), Reference::default());
        let mut now = Moment::from_micros(1_000_000_000);

        for (gap_ms, times) in requests {
            now = now + Duration::from_millis(gap_ms);
            let granted = (0..times).take_while(|_| {
                let is_free = window.full(now, most, 0).is_none();
                if is_free {
                    window.count(1, now, most);
                }
                is_free
            });
            let granted = granted.count() as u64;
            reference.0.push((now, granted));
            prop_assert!(reference.used(now, WINDOW) <= most);
        }
    }
}
