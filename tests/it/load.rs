//! The parts of the load generator that can be wrong without being noticed. Its own binary has no tests.

#[path = "../../benches/load/chatter.rs"]
mod chatter;
#[path = "../../benches/load/figures.rs"]
#[expect(dead_code, reason = "the benchmark uses more of it")]
mod figures;
#[path = "../../benches/load/pace.rs"]
#[expect(dead_code, reason = "the benchmark uses more of it")]
mod pace;

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::time::Duration;

use tokio::sync::Notify;

use chatter::{Chatter, Message};
use figures::{Figures, Spread};
use pace::{Outcome, Pace, Recent, Target, apply};

#[test]
fn messages_have_the_intended_proportions() {
    let mut chatter = Chatter::new(1, 10, vec!["Aria".to_owned()]);

    let messages: Vec<_> = (0..10_000).map(|_| chatter.next()).collect();

    let share = |is: &dyn Fn(&Message) -> bool| messages.iter().filter(|message| is(message)).count() as f64 / 10_000.0;
    assert!((0.08..0.12).contains(&share(&|message| message.text.starts_with("Aria, "))));
    assert!((0.15..0.25).contains(&share(&|message| message.mention.is_some())));
    let length = messages.iter().map(|message| message.text.len()).sum::<usize>() / messages.len();
    assert!((60..100).contains(&length), "{length}");
    assert!((0..10).all(|room| messages.iter().any(|message| message.room == room)));
}

#[test]
fn quantiles_are_interpolated_within_their_buckets() {
    let spread = Figures::read(TEXT).spread("took_seconds", "outcome=\"posted\"");

    let near = |part: f64, expected: f64| assert!((spread.quantile(part).unwrap() - expected).abs() < 1e-9);
    near(0.25, 0.05);
    near(0.5, 0.1);
    near(0.7, 0.15);
    assert_eq!(spread.quantile(0.99), None);
    assert_eq!(spread.mean(), Some(0.12));
    assert_eq!(Spread::default().quantile(0.5), None);
}

#[tokio::test]
async fn messages_are_sent_on_time_while_an_earlier_one_waits_for_its_answer() {
    let slow = Slow { total: 50, received: Cell::new(0), received_all: Notify::new() };
    let mut chatter = Chatter::new(1, 1, Vec::new());

    let result = apply(&slow, &mut chatter, Pace::Rate(1_000.0), Duration::from_millis(50), &Recent::default()).await;

    assert_eq!((result.said, result.accepted, result.failed), (50, 50, 0));
    // The first message was due at the start.
    assert!(result.times.max() >= 49_000, "{}", result.times.max());
}

#[tokio::test]
async fn flat_out_keeps_at_most_the_given_number_in_flight() {
    struct Narrow(Cell<usize>, Cell<usize>);
    impl Target for Narrow {
        async fn send(&self, _: Message) -> Outcome {
            self.0.set(self.0.get() + 1);
            self.1.set(self.1.get().max(self.0.get()));
            tokio::task::yield_now().await;
            self.0.set(self.0.get() - 1);
            Outcome::Refused
        }
    }
    let narrow = Narrow(Cell::new(0), Cell::new(0));
    let width = NonZeroUsize::new(3).expect("3 is not 0");
    let mut chatter = Chatter::new(1, 1, Vec::new());

    let result = apply(&narrow, &mut chatter, Pace::FlatOut(width), Duration::from_millis(5), &Recent::default()).await;

    assert_eq!((narrow.1.get(), result.refused), (3, result.said));
}

const TEXT: &str = "\
took_seconds_bucket{outcome=\"posted\",le=\"0.1\"} 50
took_seconds_bucket{outcome=\"posted\",le=\"0.2\"} 90
took_seconds_bucket{outcome=\"posted\",le=\"+Inf\"} 100
took_seconds_count{outcome=\"posted\"} 100
took_seconds_sum{outcome=\"posted\"} 12
";

/// Accepts the first message only once it has received the last one.
struct Slow {
    total: u64,
    received: Cell<u64>,
    received_all: Notify,
}

impl Target for Slow {
    async fn send(&self, _: Message) -> Outcome {
        self.received.set(self.received.get() + 1);
        match self.received.get() {
            1 => self.received_all.notified().await,
            received if received == self.total => self.received_all.notify_one(),
            _ => {}
        }
        Outcome::Accepted
    }
}
