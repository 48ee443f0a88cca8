use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const PEOPLE: [&str; 3] = ["ana", "bob", "cem"];

/// One input, and how much later than the one before it happens, in milliseconds.
fn step() -> impl Strategy<Value = (u64, Input)> {
    let gap = prop_oneof![3 => 0_u64..700, 1 => Just(0), 1 => 0_u64..40_000];
    (gap, input())
}

fn user() -> impl Strategy<Value = PersonId> {
    prop::sample::select(PEOPLE.to_vec()).prop_map(PersonId::from)
}

/// Times are relative to the input's: they are set when it is used.
fn input() -> impl Strategy<Value = Input> {
    let kind = prop::sample::select(vec![Kind::Words, Kind::Words, Kind::Words, Kind::Backchannel, Kind::Noise, Kind::Echo]);
    let segment = (kind, any::<bool>(), any::<bool>(), 0_u64..5_000, 0_u64..3_000);
    let simple = (user(), 0_u8..13).prop_map(|(user, which)| match which {
        0 => Input::Joined { user },
        1 => Input::Left { user },
        2 => Input::SocketLost { user },
        3 => Input::Muted { user },
        4 => Input::OptedOut { user },
        5 => Input::OptedIn { user },
        6 => Input::RecogniserStarted { user },
        7 => Input::Partial { user },
        8 => Input::Finalized { user },
        9 => Input::LeftUnsettled,
        10 => Input::CallEnded,
        _ => Input::Replied { companion: "aria".into(), people: [user].into(), last_frame: Moment::ZERO },
    });
    let talk = (user(), any::<bool>(), 0_u64..400).prop_map(|(user, is_onset, ago)| {
        let ago = Moment::from_micros(ago * 1_000);
        if is_onset { Input::Started { user, started: ago } } else { Input::Ended { user, ended: ago } }
    });
    let words = (user(), any::<bool>(), prop::option::weighted(0.8, segment)).prop_map(|(user, is_last, segment)| {
        let segment = segment.map(|(kind, is_address, is_typed, ago, length)| Segment {
            seq: Seq(0),
            from: user.clone(),
            text: "words".into(),
            started: Moment::from_micros((ago + length) * 1_000),
            ended: Moment::from_micros(ago * 1_000),
            addressed: if is_address { vec!["aria".into()] } else { Vec::new() },
            kind,
            is_typed,
        });
        Input::Final { user, is_last, segment }
    });
    prop_oneof![1 => simple, 3 => talk, 3 => words]
}

/// Sets the times of an input, which hold how long ago something was, and the number of its segment.
fn timed(mut input: Input, now: Moment, seq: Seq) -> Input {
    let ago = |time: &mut Moment| *time = now - time.since(Moment::ZERO);
    match &mut input {
        Input::Started { started: time, .. } | Input::Ended { ended: time, .. } | Input::Replied { last_frame: time, .. } => {
            ago(time)
        }
        Input::Final { segment: Some(segment), .. } => {
            ago(&mut segment.started);
            ago(&mut segment.ended);
            segment.seq = seq;
        }
        _ => {}
    }
    input
}

fn policy() -> impl Strategy<Value = Policy> {
    let companions = prop::collection::btree_map(prop::sample::select(vec!["aria", "mira"]), 0_u64..8_000, 0..3);
    (companions, 0_u64..6_000, 0_u64..12_000).prop_map(|(companions, address, follow_up)| Policy {
        companions: companions.into_iter().map(|(id, timeout)| (id.into(), Duration::from_millis(timeout))).collect(),
        default_timeout: secs(5.0),
        address_timeout: Duration::from_millis(address),
        follow_up: Duration::from_millis(follow_up),
    })
}

/// What the test knows about each segment that may become a message.
#[derive(Default)]
struct Ledger {
    open: BTreeMap<Seq, PersonId>,
}

impl Ledger {
    fn note(&mut self, effects: &[Effect]) -> Result<(), TestCaseError> {
        for effect in effects {
            match effect {
                Effect::HandOver(hand_over) => {
                    prop_assert!(!hand_over.messages.is_empty());
                    for (seq, from) in
                        hand_over.messages.iter().flat_map(|one| one.segments.iter().map(move |seq| (seq, &one.from)))
                    {
                        let noted = self.open.remove(seq);
                        prop_assert_eq!(noted.as_ref(), Some(from), "handed over twice, or by another person");
                    }
                    let followed = hand_over.messages.windows(2).all(|pair| pair[0].from != pair[1].from);
                    prop_assert!(followed, "two messages of one run");
                    prop_assert!(hand_over.messages.is_sorted_by_key(|message| message.started));
                }
                Effect::Redact { user } => self.open.retain(|_, from| from != user),
                _ => {}
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn nothing_said_is_lost_and_no_state_waits_without_a_deadline(
        steps in prop::collection::vec(step(), 0..60),
        policies in prop::collection::vec(policy(), 1..4),
    ) {
        let (mut utterances, mut ledger, mut now) = (Utterances::default(), Ledger::default(), Moment::ZERO);
        let mut ignored = BTreeSet::new();
        for user in PEOPLE {
            utterances.handle(now, Input::Joined { user: user.into() }, &policies[0]);
        }
        for (number, (gap, input)) in steps.into_iter().enumerate() {
            // Companions come and go now and then.
            let policy = &policies[number / 16 % policies.len()];
            now = now + Duration::from_millis(gap);
            let seq = Seq(number as u64 + 1);
            let input = timed(input, now, seq);
            match &input {
                Input::OptedOut { user } => _ = ignored.insert(user.clone()),
                Input::OptedIn { user } => _ = ignored.remove(user),
                _ => {}
            }
            if let Input::Final { segment: Some(segment), .. } = &input
                && segment.kind.is_message()
                && !ignored.contains(&segment.from)
            {
                ledger.open.insert(seq, segment.from.clone());
            }
            ledger.note(&utterances.handle(now, input, policy))?;
            ledger.note(&utterances.wake(now, policy))?;

            let deadline = utterances.deadline(policy);
            prop_assert!(deadline.as_ref().is_none_or(|deadline| deadline.at > now), "{:?} was not handled", deadline);
            if utterances.holds_text_lull() {
                prop_assert!(deadline.is_some(), "{:?}", utterances);
            }
            prop_assert_eq!(utterances.buffered().len(), ledger.open.len());
        }
        let policy = &policies[0];
        let mut wakes = 0;
        while let Some(deadline) = utterances.deadline(policy) {
            ledger.note(&utterances.wake(deadline.at, policy))?;
            wakes += 1;
            prop_assert!(wakes < 100, "it never ends: {:?}", utterances);
        }
        prop_assert!(ledger.open.is_empty(), "never handed over: {:?}", ledger.open);
        prop_assert!(!utterances.somebody_talks());
    }

    #[test]
    fn it_makes_no_difference_how_late_a_deadline_is_noticed(
        steps in prop::collection::vec(step(), 0..40),
        policy in policy(),
    ) {
        let (mut prompt, mut late) = (Utterances::default(), Utterances::default());
        let (mut effects, mut late_effects, mut now) = (Vec::new(), Vec::new(), Moment::ZERO);
        for (number, (gap, input)) in steps.into_iter().enumerate() {
            now = now + Duration::from_millis(gap);
            while let Some(deadline) = prompt.deadline(&policy).filter(|deadline| deadline.at < now) {
                effects.extend(prompt.wake(deadline.at, &policy));
            }
            let input = timed(input, now, Seq(number as u64 + 1));
            effects.extend(prompt.handle(now, input.clone(), &policy));
            late_effects.extend(late.handle(now, input, &policy));
            prop_assert_eq!(&prompt, &late);
        }
        prop_assert_eq!(effects, late_effects);
    }

    #[test]
    fn the_state_can_be_stored(steps in prop::collection::vec(step(), 0..40), policy in policy()) {
        let (mut utterances, mut now) = (Utterances::default(), Moment::ZERO);
        for (number, (gap, input)) in steps.into_iter().enumerate() {
            now = now + Duration::from_millis(gap);
            utterances.handle(now, timed(input, now, Seq(number as u64 + 1)), &policy);
        }

        let stored = serde_json::to_string(&utterances).expect("it can be written");

        prop_assert_eq!(serde_json::from_str::<Utterances>(&stored).expect("it can be read"), utterances);
    }
}
