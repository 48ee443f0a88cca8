use proptest::prelude::*;

use super::*;

/// The pulses that scores lead to, hop after hop from moment zero.
fn pulses(speech: &mut Speech, scores: &[f32]) -> Vec<Pulse> {
    let start = speech.heard_until;
    scores.iter().zip(0_u32..).filter_map(|(score, hop)| speech.hop(start + HOP * hop, *score)).collect()
}

fn at(hops: u32) -> Moment {
    Moment::ZERO + HOP * hops
}

#[test]
fn speech_begins_with_the_first_of_three_voiced_hops() {
    let mut speech = Speech::default();

    let found = pulses(&mut speech, &[0.1, 0.5, 0.9, 0.2, 0.6, 0.7, 0.5, 0.8]);

    let started = Pulse::Started { started: at(4), until: at(7) };
    assert_eq!(found, [started, Pulse::Voiced { from: at(7), to: at(8) }]);
    assert!(speech.is_talking());
}

#[test]
fn speech_ends_at_its_last_voiced_hop_once_the_hangover_is_over() {
    let mut speech = Speech::default();
    pulses(&mut speech, &[1.0; 4]);

    assert_eq!(pulses(&mut speech, &[0.0; 18]), []);
    assert_eq!(speech.deadline(), Some(at(4) + HANGOVER));
    assert_eq!(pulses(&mut speech, &[0.0]), [Pulse::Ended(Stretch { started: at(0), ended: at(4), voiced: HOP * 4 })]);
    assert_eq!(speech.deadline(), None);
}

#[test]
fn a_voiced_hop_within_the_hangover_continues_the_speech() {
    let mut speech = Speech::default();
    pulses(&mut speech, &[1.0; 4]);
    pulses(&mut speech, &[0.0; 18]);

    assert_eq!(pulses(&mut speech, &[1.0]), [Pulse::Voiced { from: at(22), to: at(23) }]);
    assert_eq!(speech.stop(), Some(Pulse::Ended(Stretch { started: at(0), ended: at(23), voiced: HOP * 5 })));
}

#[test]
fn speech_ends_without_audio_too() {
    let mut speech = Speech::default();
    pulses(&mut speech, &[1.0; 3]);

    assert_eq!(speech.wake(at(3) + HANGOVER - Duration::from_micros(1)), None);
    assert_eq!(speech.wake(at(3) + HANGOVER), Some(Pulse::Ended(Stretch { started: at(0), ended: at(3), voiced: HOP * 3 })));
}

#[test]
fn a_gap_is_silence() {
    let mut speech = Speech::default();
    speech.hop(at(0), 1.0);
    speech.hop(at(1), 1.0);

    assert_eq!(speech.hop(at(3), 1.0), None);
    assert_eq!(speech.hop(at(4), 1.0), None);
    assert_eq!(speech.hop(at(5), 1.0), Some(Pulse::Started { started: at(3), until: at(6) }));
    assert_eq!(speech.hop(at(50), 1.0), Some(Pulse::Ended(Stretch { started: at(3), ended: at(6), voiced: HOP * 3 })));
    // An old hop, as after reordering, changes nothing.
    assert_eq!(speech.hop(at(10), 1.0), None);
}

#[test]
fn long_speech_is_cut_without_a_new_onset() {
    let mut speech = Speech::new(Some(LONGEST_CUT));

    let found = pulses(&mut speech, &[1.0; 1_000]);

    let cuts: Vec<_> = found.iter().filter(|pulse| matches!(pulse, Pulse::Cut(_))).collect();
    assert_eq!(cuts, [&Pulse::Cut(Stretch { started: at(0), ended: at(937), voiced: HOP * 937 })]);
    assert_eq!(speech.stop(), Some(Pulse::Ended(Stretch { started: at(937), ended: at(1_000), voiced: HOP * 63 })));
}

proptest! {
    #[test]
    fn pulses_alternate_and_no_speech_lasts_without_a_deadline(
        hops in prop::collection::vec((0_u64..400_000, prop::sample::select(vec![0.0_f32, 0.49, 0.5, 1.0, f32::NAN])), 0..300),
        is_cut in any::<bool>(),
    ) {
        let mut speech = Speech::new(is_cut.then_some(Duration::from_millis(200)));
        let (mut now, mut is_talking) = (0, false);
        for (gap, score) in hops {
            now += if gap < 300_000 { 16_000 } else { gap };
            match speech.hop(Moment::from_micros(now), score) {
                Some(Pulse::Started { started, until }) => {
                    prop_assert!(!is_talking && until.since(started) == HOP * 3);
                    is_talking = true;
                }
                Some(Pulse::Voiced { .. }) => prop_assert!(is_talking),
                Some(Pulse::Cut(stretch)) => prop_assert!(is_talking && stretch.voiced <= stretch.ended.since(stretch.started)),
                Some(Pulse::Ended(stretch)) => {
                    prop_assert!(is_talking && stretch.voiced <= stretch.ended.since(stretch.started));
                    is_talking = false;
                }
                None => {}
            }
            prop_assert_eq!(speech.is_talking(), is_talking);
            prop_assert_eq!(speech.deadline().is_some(), is_talking);
        }
    }
}
