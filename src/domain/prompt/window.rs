//! Chooses the first message of the talk in a statement's prompt.
//!
//! A prompt that begins with the same message as the previous prompt repeats that prompt byte for byte, so endpoints need not read this part again.
//! If the beginning moved with every message, only the instructions would be the same. So it moves seldom, by up to a quarter of the room at a time.
//! It depends only on the messages, so it is the same after a restart.

use crate::id::Seq;

/// The index of the first message to show. `numbers` are the numbers of the newest messages that fit into the room with these weights. `before` is
/// the number of the message before them, which does not fit. Messages from index `keep` on are always shown.
pub(super) fn first_shown(before: Option<Seq>, numbers: &[Seq], weights: &[usize], room: usize, keep: usize) -> usize {
    let Some(before) = before else { return 0 };
    let mut last = 0;
    let mut left: usize = weights.iter().sum();
    while last + 1 < numbers.len() && last < keep && left - weights[last] >= room - room / 4 {
        left -= weights[last];
        last += 1;
    }
    let Some(latest) = numbers.get(last) else { return 0 };
    let begin = roundest(before.0, latest.0);
    numbers.iter().position(|number| number.0 >= begin).unwrap_or(last)
}

/// The number in the range after `low` and up to `high` that is divisible by the highest power of two. While the range moves up, the result stays the
/// same until it leaves the range or a number with a higher power enters. It never decreases.
fn roundest(low: u64, high: u64) -> u64 {
    let mut roundest = high;
    while roundest != 0 && roundest & (roundest - 1) > low {
        roundest &= roundest - 1;
    }
    roundest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roundest_number_of_a_range_is_found() {
        let cases = [(0, 1, 1), (0, 7, 4), (4, 7, 6), (4, 5, 5), (7, 40, 32), (32, 40, 40), (32, 63, 48), (15, 16, 16)];

        for (low, high, expected) in cases {
            assert_eq!(roundest(low, high), expected, "after {low}, up to {high}");
        }
    }

    #[test]
    fn the_beginning_moves_seldom_and_never_back_and_at_least_three_quarters_of_the_room_are_used() {
        for (step, weight) in [(1, 100), (3, 100), (7, 60), (4, 331)] {
            let room = 10_000;
            let (mut begins, mut moved) = (Vec::new(), 0);
            for said in 1..2_000_u64 {
                let fitting = (room as u64 / weight).min(said);
                let numbers: Vec<Seq> = (said - fitting + 1..=said).map(|number| Seq(number * step)).collect();
                let weights = vec![weight as usize; numbers.len()];
                let before = (fitting < said).then(|| Seq((said - fitting) * step));

                let first = first_shown(before, &numbers, &weights, room, numbers.len());

                let used: usize = weights[first..].iter().sum();
                assert!(before.is_none() || used >= room * 3 / 4 - weight as usize, "{used} of {room}");
                let begin = numbers[first];
                assert!(begins.last().is_none_or(|before| *before <= begin), "it went back");
                moved += usize::from(begins.last().is_some_and(|before| *before != begin));
                begins.push(begin);
            }
            let quarters = 2_000 * weight as usize / (room / 4);
            assert!(moved <= quarters * 2 + 2, "{moved} moves for {quarters} quarters of the room");
        }
    }

    #[test]
    fn new_messages_are_not_left_out_to_move_further() {
        let numbers: Vec<Seq> = (13..=24).map(Seq).collect();

        let free = first_shown(Some(Seq(12)), &numbers, &[100; 12], 1_200, 12);
        let kept = first_shown(Some(Seq(12)), &numbers, &[100; 12], 1_200, 0);

        assert_eq!((free, kept), (3, 0), "it would begin with 16");
    }
}
