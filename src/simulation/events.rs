//! Bursts of events that companions must acknowledge, what people do meanwhile, and kills between events or silences and their effects. It has random
//! numbers of its own, so that the other parts of every seed's story stay the same.

use std::time::Duration;

use super::acts::{Act, PEOPLE, Say};
use super::dice::Dice;
use super::interruptions::number_of;
use super::manners::Turn;
use super::plan::{CAST, FloorEvent, Guild, Room, Strike, Target, When};

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
        // With most bursts, the budget of a minute is used up.
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
        3 | 4 => format!("a raid for {}", alias(home, dice)),
        _ => format!("a raid for {} and {}", alias(home, dice), alias(home, dice)),
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
        0..4 => said(format!("{}, have you seen that?", alias(home, dice)), dice),
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
    Say {
        number,
        room,
        from,
        text,
        has_id,
        is_by_bot: false,
        turn: Turn::default(),
        late_by: 0,
        is_deadly: false,
        is_event: false,
    }
}

fn alias(home: &Room, dice: &mut Dice) -> &'static str {
    let id = *dice.pick(&home.companions);
    CAST.iter().find(|(companion, _)| *companion == id).map_or("ari", |(_, alias)| *alias)
}

/// Kills between an event or a silence and its effects.
pub(super) fn strikes(dice: &mut Dice) -> Vec<Strike> {
    let strike = |_| {
        let target = match dice.below(10) {
            0..4 => Target::Channel(0),
            4..7 => Target::Process,
            7 => Target::ReplyOrDelivery(0),
            8 => Target::Switchboard,
            _ => Target::Guild(0),
        };
        let when = When::Floor(*dice.pick(&FloorEvent::OF_EVENTS), dice.between(1, 3));
        Strike { when, steps: *dice.pick(&[0, 0, 1, 2, 4, 8, 16, 24]), target }
    };
    (0..2).map(strike).collect()
}
