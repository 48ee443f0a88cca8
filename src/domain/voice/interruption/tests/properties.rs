use proptest::prelude::*;

use super::*;
use crate::voice::heard::WordTime;

/// One input, and how much later than the one before it happens, in milliseconds. Times in it hold how long ago something was.
fn step() -> impl Strategy<Value = (u64, Input)> {
    let gap = prop_oneof![4 => 0_u64..200, 2 => 0_u64..1_500, 1 => Just(0), 1 => 0_u64..30_000];
    (gap, prop_oneof![4 => talk(), 2 => recognised(), 4 => sound(), 1 => event()])
}

fn user() -> impl Strategy<Value = PersonId> {
    prop::sample::select(vec!["ana", "bob"]).prop_map(PersonId::from)
}

fn ago() -> impl Strategy<Value = Moment> {
    (0_u64..700).prop_map(|millis| Moment::from_micros(millis * 1_000))
}

fn talk() -> impl Strategy<Value = Input> {
    (user(), ago(), 0_u64..600, 0_u8..6).prop_map(|(user, ago, length, which)| match which {
        0 | 1 => Input::Started { user, started: ago },
        2 => Input::Ended { user, ended: ago },
        _ => Input::Voiced { user, from: Moment::from_micros(ago.as_micros() + length * 1_000), to: ago },
    })
}

fn recognised() -> impl Strategy<Value = Input> {
    let texts = prop::sample::select(vec!["", "mhm", "nice weather", "stop", "aria", "wait aria"]);
    (user(), texts, any::<bool>(), ago()).prop_map(|(user, text, is_final, ago)| {
        match words(user.as_str(), text, 0.0, is_final) {
            Input::Words { user, is_final, words, .. } => Input::Words { user, started: ago, is_final, words },
            other => other,
        }
    })
}

fn sound() -> impl Strategy<Value = Input> {
    (0_usize..4, 0_u64..2_000, 0_u8..10).prop_map(|(sentence, millis, which)| {
        let length = Duration::from_millis(millis);
        match which {
            0 | 1 => Input::Sentence { text: " Some words of it.".into(), words: Vec::new() },
            2 | 3 => Input::Audio { sentence, length },
            4 if millis % 2 == 0 => Input::Whole { sentence },
            4 => {
                let word = WordTime { text_end: length.subsec_millis() as usize / 100, start: length, end: length * 2 };
                Input::WordTimes { sentence, words: vec![word] }
            }
            5 | 6 => Input::FirstAudio,
            7 => Input::Finished,
            _ => Input::Played { position: length * 3 },
        }
    })
}

fn event() -> impl Strategy<Value = Input> {
    (user(), 0_u8..16).prop_map(|(user, which)| match which {
        0..=2 => Input::Noise { user },
        3..=5 => Input::PersonGone { user },
        6..=9 => Input::Stall,
        10 => Input::StopPressed,
        11 => Input::Cancelled,
        12 => Input::ShutDown,
        13 => Input::Silenced,
        14 => Input::PlayerRestarted,
        _ => Input::CallEnded,
    })
}

fn timed(mut input: Input, now: Moment) -> Input {
    let ago = |time: &mut Moment| *time = now - time.since(Moment::ZERO);
    match &mut input {
        Input::Started { started: time, .. } | Input::Ended { ended: time, .. } | Input::Words { started: time, .. } => ago(time),
        Input::Voiced { from, to, .. } => {
            ago(from);
            ago(to);
        }
        _ => {}
    }
    input
}

fn machine(talkers: usize) -> SpokenReply {
    let talkers = ["ana", "bob"].into_iter().take(talkers).map(PersonId::from);
    SpokenReply::new("aria".into(), 0.5, ANSWER, PlayedWords::default(), talkers, Moment::ZERO)
}

/// What a player does with the effects.
#[derive(Debug, Default, PartialEq)]
enum Player {
    #[default]
    Silent,
    Full,
    Quiet,
    Paused,
    Stopped,
}

impl Player {
    /// Returns how many interruptions began.
    fn follow(&mut self, effects: &[Effect]) -> Result<usize, TestCaseError> {
        let mut begun = 0;
        for effect in effects {
            let (expected, next) = match effect {
                Effect::Speak => (&[Self::Silent][..], Self::Full),
                Effect::Duck => (&[Self::Full][..], Self::Quiet),
                Effect::Unduck => (&[Self::Quiet][..], Self::Full),
                Effect::Pause => (&[Self::Full, Self::Quiet][..], Self::Paused),
                Effect::Resume { .. } => (&[Self::Paused][..], Self::Full),
                Effect::Extend => (&[Self::Silent][..], Self::Silent),
                Effect::Ended(_) => (&[Self::Silent, Self::Full, Self::Quiet, Self::Paused][..], Self::Stopped),
                Effect::Finalize { .. } | Effect::SentenceDropped { .. } | Effect::Interrupted(_) => continue,
            };
            prop_assert!(expected.contains(self), "{:?} while {:?}", effect, self);
            begun += usize::from(*self == Self::Full && matches!(next, Self::Quiet | Self::Paused));
            *self = next;
        }
        Ok(begun)
    }
}

proptest! {
    #[test]
    fn a_reply_always_waits_for_something_and_always_ends(steps in prop::collection::vec(step(), 0..80), talkers in 0_usize..3) {
        let (mut machine, mut player, mut now) = (machine(talkers), Player::default(), Moment::ZERO);
        let (mut extensions, mut draws, mut interruptions) = (0, 0, 0);
        for (gap, input) in steps {
            now = now + Duration::from_millis(gap);
            let before = machine.script().position();
            let mut effects = machine.handle(now, timed(input, now), &mut || {
                draws += 1;
                Some(0.5)
            });
            effects.extend(machine.wake(now));
            interruptions += player.follow(&effects)?;
            prop_assert_eq!(draws, interruptions, "each interruption draws once");
            extensions += effects.iter().filter(|effect| **effect == Effect::Extend).count();

            let is_due = machine.deadline().is_some_and(|deadline| deadline.at <= now);
            prop_assert!(!is_due, "{:?} was not handled", machine.deadline());
            prop_assert_eq!(machine.deadline().is_none(), machine.outcome().is_some());
            prop_assert_eq!(player == Player::Stopped, machine.outcome().is_some());
            // Heard is never longer than played, and played never longer than sent.
            let script = machine.script();
            prop_assert!(script.position() >= before || extensions > 0);
            prop_assert!(script.position() <= script.sent());
            prop_assert!(!script.position().is_zero() || machine.heard().is_empty());
            prop_assert!(script.text().len() >= machine.heard().len());
            prop_assert!(!machine.is_preparing() || machine.heard().is_empty());
        }
        prop_assert!(extensions <= 1);
        let mut wakes = 0;
        while let Some(deadline) = machine.deadline() {
            player.follow(&machine.wake(deadline.at))?;
            wakes += 1;
            prop_assert!(wakes < 20, "it never ends: {:?}", machine);
        }
    }

    #[test]
    fn it_makes_no_difference_how_late_a_deadline_is_noticed(steps in prop::collection::vec(step(), 0..60), draw in 0.0_f64..1.0) {
        let (mut prompt, mut late) = (machine(1), machine(1));
        let (mut effects, mut late_effects, mut now) = (Vec::new(), Vec::new(), Moment::ZERO);
        for (gap, input) in steps {
            now = now + Duration::from_millis(gap);
            while let Some(deadline) = prompt.deadline().filter(|deadline| deadline.at < now) {
                effects.extend(prompt.wake(deadline.at));
            }
            let input = timed(input, now);
            effects.extend(prompt.handle(now, input.clone(), &mut || Some(draw)));
            late_effects.extend(late.handle(now, input, &mut || Some(draw)));
            prop_assert_eq!(&prompt, &late);
        }
        prop_assert_eq!(effects, late_effects);
    }

    #[test]
    fn the_state_can_be_stored(steps in prop::collection::vec(step(), 0..40)) {
        let (mut machine, mut now) = (machine(1), Moment::ZERO);
        for (gap, input) in steps {
            now = now + Duration::from_millis(gap);
            machine.handle(now, timed(input, now), &mut || Some(0.5));
        }

        let stored = serde_json::to_string(&machine).expect("it can be written");

        prop_assert_eq!(serde_json::from_str::<SpokenReply>(&stored).expect("it can be read"), machine);
    }
}
