use proptest::prelude::*;

use super::*;

fn guild(name: &str) -> GuildId {
    GuildId::from(name)
}

fn drained(queue: &mut Queue) -> Vec<u64> {
    std::iter::from_fn(|| queue.pop(|_| true)).map(|call| call.0).collect()
}

/// A queue, and the questions that wait in it.
struct Pool {
    queue: Queue,
    waiting: HashMap<CallId, (Priority, GuildId)>,
}

impl Pool {
    fn new(capacity: usize) -> Self {
        Self { queue: Queue::new(capacity), waiting: HashMap::new() }
    }

    /// Pushes as the pool does, and returns the question that was shed.
    fn offer(&mut self, call: u64, priority: Priority, name: &str) -> Option<u64> {
        let (new_call, guild) = (CallId(call), guild(name));
        let shed = self.queue.question_to_shed(priority, new_call, &guild);
        if let Some((shed, (priority, guild))) = shed.and_then(|shed| Some((shed, self.waiting.remove(&shed)?))) {
            self.queue.remove(shed, priority, &guild);
        }
        if shed != Some(new_call) {
            self.queue.push(new_call, priority, &guild);
            self.waiting.insert(new_call, (priority, guild));
        }
        shed.map(|call| call.0)
    }
}

#[test]
fn more_urgent_questions_go_first_whatever_the_order_of_arrival() {
    let mut queue = Queue::new(10);
    for (call, priority) in Priority::ALL.into_iter().enumerate() {
        queue.push(CallId(call as u64), priority, &guild("home"));
    }

    let order = drained(&mut queue);

    assert_eq!(order, [5, 4, 3, 2, 1, 0]);
}

#[test]
fn a_guild_at_its_limit_is_skipped_and_keeps_its_place() {
    let mut queue = Queue::new(10);
    queue.push(CallId(1), Priority::Turn, &guild("full"));
    queue.push(CallId(2), Priority::Turn, &guild("free"));

    let first = queue.pop(|guild| guild.as_str() != "full");
    let second = queue.pop(|_| true);

    assert_eq!((first, second), (Some(CallId(2)), Some(CallId(1))));
}

#[test]
fn a_full_queue_sheds_the_oldest_lull_then_interjections() {
    let mut pool = Pool::new(4);
    for (call, priority) in [(1, Priority::Interjection), (2, Priority::Lull), (3, Priority::Lull), (4, Priority::DirectAddress)]
    {
        pool.offer(call, priority, "home");
    }

    let shed: Vec<_> = (5..9).map(|call| pool.offer(call, Priority::DirectAddress, "home")).collect();

    assert_eq!(shed, [Some(2), Some(3), Some(1), Some(8)], "the last one finds only direct addresses");
}

#[test]
fn a_guild_that_floods_with_direct_addresses_takes_no_room_from_another() {
    let mut pool = Pool::new(4);
    for call in 0..4 {
        pool.offer(call, Priority::DirectAddress, "flood");
    }

    let shed: Vec<_> = [(4, "quiet"), (5, "flood"), (6, "quiet"), (7, "quiet"), (8, "other")]
        .map(|(call, name)| pool.offer(call, Priority::DirectAddress, name))
        .into();

    assert_eq!(shed, [Some(3), Some(5), Some(2), Some(7), Some(1)], "the newest of the guild that has the most");
}

#[test]
fn a_guild_that_floods_with_lulls_sheds_its_own() {
    let mut pool = Pool::new(4);
    pool.offer(0, Priority::Lull, "quiet");
    for call in 1..4 {
        pool.offer(call, Priority::Lull, "flood");
    }

    let shed: Vec<_> = (4..7).map(|call| pool.offer(call, Priority::Lull, "flood")).collect();

    assert_eq!(shed, [Some(1), Some(2), Some(3)]);
    assert_eq!(pool.offer(7, Priority::Turn, "quiet"), Some(4), "also for a more urgent question");
}

#[test]
fn among_guilds_with_equally_many_the_oldest_question_is_shed() {
    let mut pool = Pool::new(3);
    for (call, name) in [(1, "b"), (2, "a"), (3, "c")] {
        pool.offer(call, Priority::Lull, name);
    }

    assert_eq!(pool.offer(4, Priority::Lull, "d"), Some(1));
}

#[test]
fn a_less_urgent_new_question_is_shed_by_a_full_queue() {
    let mut pool = Pool::new(1);
    pool.offer(1, Priority::Turn, "home");

    let shed = pool.offer(2, Priority::Lull, "home");

    assert_eq!(shed, Some(2));
}

#[test]
fn a_pausing_question_counts_and_is_not_asked() {
    let mut queue = Queue::new(1);
    queue.push_pausing(CallId(1), Priority::Lull, &guild("home"));

    let popped = queue.pop(|_| true);
    let shed = queue.question_to_shed(Priority::Turn, CallId(2), &guild("home"));

    assert_eq!((popped, shed), (None, Some(CallId(1))));
}

fn any_priority() -> impl Strategy<Value = Priority> {
    prop::sample::select(Priority::ALL.to_vec())
}

proptest! {
    #[test]
    fn every_question_leaves_exactly_once_and_direct_addresses_are_shed_last(
        offers in prop::collection::vec((any_priority(), 0..4_u8), 1..80),
        capacity in 1..12_usize,
    ) {
        let mut pool = Pool::new(capacity);
        let mut removed = Vec::new();

        for (call, (priority, name)) in offers.iter().enumerate() {
            let all_direct = pool.queue.waiting.keys().all(|waiting| *waiting == Priority::DirectAddress);
            let shed = pool.offer(call as u64, *priority, &name.to_string());
            if let Some(shed) = shed {
                let was_direct = offers[shed as usize].0 == Priority::DirectAddress;
                prop_assert!(!was_direct || (all_direct && *priority == Priority::DirectAddress));
                removed.push(shed);
            }
            prop_assert!(pool.queue.len() <= capacity);
        }
        removed.extend(drained(&mut pool.queue));

        removed.sort_unstable();
        prop_assert_eq!(removed, (0..offers.len() as u64).collect::<Vec<_>>());
        prop_assert!(pool.queue.is_empty());
    }

    #[test]
    fn two_guilds_that_wait_at_the_same_priority_alternate(first in 1..20_u64, second in 1..20_u64) {
        let mut queue = Queue::new(100);
        (0..first).for_each(|call| queue.push(CallId(call), Priority::Lull, &guild("a")));
        (0..second).for_each(|call| queue.push(CallId(1000 + call), Priority::Lull, &guild("b")));

        let order = drained(&mut queue);

        let alternating = 2 * first.min(second) as usize;
        prop_assert!(order[..alternating].windows(2).all(|pair| (pair[0] < 1000) != (pair[1] < 1000)));
    }
}
