//! Plans what else people do on a platform: whom they answer and mention, whether they opt out, and whether forgetting them also deletes
//! the answers to them. The plan has its own random numbers, so that the other parts of every seed's story stay the same.

use std::collections::BTreeMap;
use std::time::Duration;

use super::acts::{Act, PEOPLE};
use super::dice::Dice;
use super::plan::{CAST, Room};

/// Whom a message addresses, besides those whom its words name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Turn {
    pub(super) mentions: Vec<&'static str>,
    /// It mentions the account that all companions share.
    pub(super) to_all: bool,
    pub(super) answers: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    /// A message by a person or a bot.
    Message(usize),
    /// The newest post of a companion in its channel.
    Statement,
    /// A post under this companion's name that is not on record.
    Named(&'static str),
}

/// Adds these acts to the plan.
pub(super) fn add(acts: &mut Vec<(Duration, Act)>, rooms: &[Room], until: Duration, dice: &mut Dice) {
    let mut said = BTreeMap::<usize, Vec<usize>>::new();
    for (_, act) in acts.iter_mut() {
        match act {
            Act::Say(say) if rooms[say.room].is_on_platform => {
                let earlier = said.entry(say.room).or_default();
                say.turn = turn(earlier, dice);
                earlier.push(say.number);
            }
            Act::Forget { answers, .. } => *answers = dice.chance(0.6),
            _ => {}
        }
    }
    let times = |dice: &mut Dice| dice.millis(0, until.as_millis() as u64);
    for _ in 0..dice.below(5) {
        let room = dice.below(rooms.len() as u64) as usize;
        let (guild, person) = (rooms[room].guild, *dice.pick(&PEOPLE));
        match dice.below(8) {
            0..3 => {
                let at = times(dice);
                acts.push((at, Act::OptOut { guild, person, opted_out: true }));
                if dice.chance(0.5) {
                    acts.push((at + dice.millis(100, 60_000), Act::OptOut { guild, person, opted_out: false }));
                }
            }
            3 | 4 => acts.push((times(dice), Act::CaughtUp { room, read: dice.between(1, 9) as u32, has_gap: dice.chance(0.5) })),
            5 => acts.push((times(dice), Act::LoseGuild(guild))),
            _ => acts.push((times(dice), Act::Forget { guild, person, answers: true })),
        }
    }
    acts.sort_by_key(|(at, _)| *at);
}

fn turn(earlier: &[usize], dice: &mut Dice) -> Turn {
    let mut turn = Turn::default();
    match dice.below(20) {
        0..3 if !earlier.is_empty() => turn.answers = Some(Answer::Message(*dice.pick(earlier))),
        3..5 => turn.answers = Some(Answer::Statement),
        5 => turn.answers = Some(Answer::Named(dice.pick(&CAST).1)),
        6 | 7 => turn.mentions = vec![*dice.pick(&PEOPLE)],
        8 => turn.to_all = true,
        _ => {}
    }
    turn
}
