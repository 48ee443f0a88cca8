//! Plans bursts of events that companions must acknowledge, and what people do meanwhile. The plan has its own random numbers, so that the other
//! parts of every seed's story stay the same.

use std::time::Duration;

use super::acts::{Act, PEOPLE, Say};
use super::dice::Dice;
use super::interruptions::number_of;
use super::plan::{Guild, Room, alias};

/// Adds these acts to the plan.
pub(super) fn add(acts: &mut Vec<(Duration, Act)>, guilds: &[Guild], rooms: &[Room], until: Duration, dice: &mut Dice) {
    let places: Vec<_> = (0..rooms.len()).filter(|room| !rooms[*room].is_on_platform).collect();
    if places.is_empty() || !dice.chance(0.6) {
        return;
    }
    let mut number = acts.iter().filter_map(number_of).max().unwrap_or_default();
    for _ in 0..dice.between(1, 2) {
        let room = *dice.pick(&places);
        let mut at = dice.millis(1_000, until.as_millis() as u64);
        // Most bursts use up the budget of a minute.
        let events = if dice.chance(0.7) { dice.between(3, 7) } else { 1 };
        for _ in 0..events {
            number += 1;
            acts.push((at, Act::Say(event(number, room, guilds, rooms, dice))));
            at += if dice.chance(0.3) { dice.millis(0, 200) } else { dice.millis(500, 15_000) };
            if dice.chance(0.3) {
                let meanwhile = meanwhile(&mut number, room, guilds, rooms, dice);
                acts.extend(meanwhile.into_iter().map(|(later, act)| (at + later, act)));
            }
        }
    }
    acts.sort_by_key(|(at, _)| *at);
}

/// An event that names nobody, one companion, or two.
fn event(number: usize, room: usize, guilds: &[Guild], rooms: &[Room], dice: &mut Dice) -> Say {
    let home = &rooms[room];
    let text = match dice.below(6) {
        0..3 => "a raid of 40".to_owned(),
        3 | 4 => format!("a raid for {}", some_alias(home, dice)),
        _ => format!("a raid for {} and {}", some_alias(home, dice), some_alias(home, dice)),
    };
    Say { is_event: true, has_id: true, ..say(number, room, &text, guilds, rooms, dice) }
}

/// What people do while events arrive.
fn meanwhile(number: &mut usize, room: usize, guilds: &[Guild], rooms: &[Room], dice: &mut Dice) -> Vec<(Duration, Act)> {
    let (last, home) = (*number, &rooms[room]);
    let mut said = |text: String, dice: &mut Dice| {
        *number += 1;
        vec![(Duration::ZERO, Act::Say(say(*number, room, &text, guilds, rooms, dice)))]
    };
    match dice.below(12) {
        0..4 => said(format!("{}, have you seen that?", some_alias(home, dice)), dice),
        4 | 5 => said("what a day".to_owned(), dice),
        6 | 7 => vec![(dice.millis(0, 3_000), Act::DeleteMessage(last))],
        8 => vec![(dice.millis(0, 3_000), Act::Edit(last))],
        9 => vec![(dice.millis(0, 3_000), Act::Resend(last))],
        _ => {
            let companion = Some(*dice.pick(&home.companions)).filter(|_| dice.chance(0.6));
            let pause = |paused| Act::Pause { room, companion, paused };
            vec![(Duration::ZERO, pause(true)), (dice.millis(1_000, 40_000), pause(false))]
        }
    }
}

fn say(number: usize, room: usize, text: &str, guilds: &[Guild], rooms: &[Room], dice: &mut Dice) -> Say {
    let text = format!("{} m{number}m {text}", guilds[rooms[room].guild].word);
    let (from, has_id) = (*dice.pick(&PEOPLE), dice.chance(0.8));
    Say::new(number, room, from, text, has_id)
}

fn some_alias(home: &Room, dice: &mut Dice) -> &'static str {
    alias(dice.pick::<&str>(&home.companions))
}
