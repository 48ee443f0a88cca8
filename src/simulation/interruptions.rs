//! Plans what people do while a companion writes: they say more, address another companion, ask it to stop, or edit or delete the message that it
//! answers. The plan has its own random numbers, so that the other parts of every seed's story stay the same.

use std::time::Duration;

use serde_json::{Value, json};

use super::acts::{Act, PEOPLE, Say};
use super::dice::Dice;
use super::plan::{CAST, Guild, Room, alias};

/// The maximum number of interrupted messages.
const MOST: usize = 7;
/// The end of every stop phrase, after the mark of its message. The whole phrase is short enough for the settings.
const STOP: &str = "stop";

/// Adds these acts to the plan. Returns the stop phrases. Each contains the mark that identifies its message.
pub(super) fn add(acts: &mut Vec<(Duration, Act)>, guilds: &[Guild], rooms: &[Room], dice: &mut Dice) -> Vec<String> {
    let said = |(at, act): &(Duration, Act)| match act {
        Act::Say(say) if !say.is_by_bot && !say.is_deadly && say.late_by == 0 => Some((*at, say.clone())),
        _ => None,
    };
    let all: Vec<(Duration, Say)> = acts.iter().filter_map(said).collect();
    let mut number = all.iter().map(|(_, say)| say.number).chain(acts.iter().filter_map(number_of)).max().unwrap_or_default();
    let (mut phrases, mut interrupted) = (Vec::new(), 0);
    for (at, say) in all {
        // An addressed companion usually answers.
        let share = if say.text.contains(", what of it?") { 0.6 } else { 0.1 };
        if interrupted == MOST || !dice.chance(share) {
            continue;
        }
        interrupted += 1;
        let (mut at, times) = (at, if dice.chance(0.25) { dice.between(2, 4) } else { 1 });
        for _ in 0..times {
            at += match dice.below(4) {
                0 | 1 => dice.millis(100, 2_500),
                2 => dice.millis(2_500, 8_000),
                _ => dice.millis(8_000, 60_000),
            };
            number += 1;
            acts.push((at, interruption(&say, number, guilds, rooms, &mut phrases, dice)));
        }
    }
    acts.sort_by_key(|(at, _)| *at);
    phrases
}

pub(super) fn number_of((_, act): &(Duration, Act)) -> Option<usize> {
    match act {
        Act::Say(say) => Some(say.number),
        _ => None,
    }
}

fn interruption(say: &Say, number: usize, guilds: &[Guild], rooms: &[Room], phrases: &mut Vec<String>, dice: &mut Dice) -> Act {
    let home = &rooms[say.room];
    let mark = format!("{} m{number}m", guilds[home.guild].word);
    let named = CAST.iter().find(|(_, alias)| say.text.contains(alias)).map_or("ari", |(_, alias)| *alias);
    let other = alias(dice.pick::<&str>(&home.companions));
    let mut from = say.from;
    let text = match dice.below(18) {
        0..3 => format!("{mark} I mean the other one"),
        3..5 => format!("{mark} {named}, and that?"),
        5..8 => format!("{mark} {other}, and you?"),
        8..10 => {
            from = dice.pick::<&str>(&PEOPLE);
            format!("{mark} {other}, what is new?")
        }
        10..14 => {
            phrases.push(format!("{mark} {STOP}"));
            format!("{mark} {STOP}!")
        }
        14 => {
            phrases.push(format!("{mark} {STOP}"));
            format!("{mark} {named}, {STOP}")
        }
        15 => format!("{mark} {named}, {STOP}! I mean the film"),
        16 => return Act::Edit(say.number),
        _ => return Act::DeleteMessage(say.number),
    };
    let has_id = home.is_on_platform || dice.chance(0.8);
    Act::Say(Say::new(number, say.room, from, text, has_id))
}

/// Adds the stop phrases to the settings of a process.
pub(super) fn add_phrases(settings: &mut Value, phrases: &[String]) {
    settings["reply"]["stop_phrases"] = json!({ "sim": phrases });
}
