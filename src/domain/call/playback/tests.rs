use std::ops::Range;

use super::*;

const PATIENCE: Patience = Patience { first_audio: Duration::from_secs(5), more: Duration::from_secs(2) };
/// A moment in the call.
const NOW: Duration = Duration::from_secs(100);

fn playback(sentences: &[&str]) -> Playback {
    let mut playback = Playback::new("aria".into(), Ticket(7), PATIENCE);
    sentences.iter().for_each(|text| playback.add_sentence((*text).into()));
    playback.end_text();
    playback
}

/// So many frames of a sentence.
fn audio(frames: usize) -> Option<Piece> {
    Some(Piece::Audio(vec![1; frames * SPOKEN_FRAME]))
}

/// Makes the audio of sentences, so many frames of each, and puts their starts on record.
fn make(playback: &mut Playback, sentences: Range<usize>, frames: usize, now: Duration) {
    for number in sentences {
        playback.add_piece(number, audio(frames), now);
        playback.add_piece(number, None, now);
        playback.allow(number);
    }
}

fn made(playback: &mut Playback, now: Duration) -> Vec<usize> {
    playback.next_sentences(now).into_iter().map(|(number, _)| number).collect()
}

#[test]
fn two_sentences_are_made_ahead_of_the_one_that_plays() {
    let (mut playback, now) = (playback(&["One.", " Two.", " Three.", " Four."]), NOW);

    assert_eq!(made(&mut playback, now), [0, 1, 2]);
    assert_eq!(made(&mut playback, now), [] as [usize; 0]);
    make(&mut playback, 0..2, 10, now);
    playback.play(now);
    playback.packets(now + FRAME * 12);
    assert_eq!(made(&mut playback, now), [3]);
}

#[test]
fn packets_are_sent_in_time_and_somewhat_ahead() {
    let (mut playback, now) = (playback(&["One.", " Two."]), NOW);
    playback.add_piece(0, audio(20), now);
    playback.add_piece(0, None, now);
    playback.play(now);

    assert_eq!(playback.packets(now), [], "its start is not on record");
    playback.allow(0);
    let first = playback.packets(now);
    assert_eq!(first.iter().map(|next| next.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(first[0].begins, Some((Duration::ZERO, "One.".into())));
    assert!(first[1..].iter().all(|next| next.begins.is_none()));
    assert_eq!(playback.packets(now + Duration::from_millis(19)), []);
    assert_eq!(playback.due(), Some(now + FRAME));
    assert_eq!(playback.packets(now + FRAME * 3).len(), 3);
    assert_eq!((playback.position(), playback.due()), (FRAME * 8, Some(now + FRAME * 4)));
}

#[test]
fn audio_that_is_late_is_not_made_up_for() {
    let (mut playback, now) = (playback(&["One."]), NOW);
    playback.add_piece(0, audio(5), now);
    playback.allow(0);
    playback.play(now);
    assert_eq!(playback.packets(now).len(), 5);

    assert_eq!(playback.packets(now + Duration::from_secs(1)), []);
    playback.add_piece(0, audio(50), now);
    assert_eq!(playback.packets(now + Duration::from_secs(1)).len(), 5);
}

#[test]
fn a_resume_goes_back_to_the_beginning_of_a_packet() {
    let (mut playback, now) = (playback(&["One."]), NOW);
    playback.add_piece(0, audio(50), now);
    playback.allow(0);
    playback.play(now);
    playback.packets(now + FRAME * 20);
    playback.pause();
    assert_eq!(playback.packets(now + FRAME * 30), []);

    assert_eq!(playback.resume(Duration::from_millis(115), now + FRAME * 30), Duration::from_millis(100));
    let packets = playback.packets(now + FRAME * 30);
    assert_eq!(packets.iter().map(|next| next.number).collect::<Vec<_>>(), [25, 26, 27, 28, 29]);
    assert_eq!(playback.position(), Duration::from_millis(200));
}

#[test]
fn a_sentence_begins_once_also_if_playback_resumes_before_it() {
    let (mut playback, now) = (playback(&["One.", " Two."]), NOW);
    make(&mut playback, 0..2, 10, now);
    playback.play(now);
    let begun = |packets: Vec<Next>| packets.into_iter().filter_map(|next| next.begins).map(|(from, _)| from).collect::<Vec<_>>();
    assert_eq!(begun(playback.packets(now + FRAME * 10)), [Duration::ZERO, FRAME * 10]);

    playback.pause();
    assert_eq!(playback.resume(FRAME * 8, now + FRAME * 30), FRAME * 8);

    assert!(begun(playback.packets(now + FRAME * 40)).is_empty());
    assert_eq!(playback.position(), FRAME * 20);
}

#[test]
fn the_channel_is_told_of_audio_once_it_plays_and_of_one_sentence_ahead() {
    let (mut playback, now) = (playback(&["One.", " Two.", " Three."]), NOW);
    for number in 0..3 {
        playback.add_piece(number, audio(10), now);
        playback.add_piece(number, None, now);
    }

    let first = [interruption::Input::Sentence { text: "One.".into(), words: Vec::new() }, interruption::Input::FirstAudio];
    assert_eq!(playback.progress(now), first);
    assert_eq!(playback.progress(now), []);
    playback.play(now);
    let expected = [
        interruption::Input::Audio { sentence: 0, length: FRAME * 10 },
        interruption::Input::Whole { sentence: 0 },
        interruption::Input::Sentence { text: " Two.".into(), words: Vec::new() },
        interruption::Input::Audio { sentence: 1, length: FRAME * 10 },
        interruption::Input::Whole { sentence: 1 },
    ];
    assert_eq!(playback.progress(now), expected);
    playback.allow(0);
    playback.allow(1);
    playback.packets(now + FRAME * 10);
    let expected = [
        interruption::Input::Sentence { text: " Three.".into(), words: Vec::new() },
        interruption::Input::Audio { sentence: 2, length: FRAME * 10 },
        interruption::Input::Whole { sentence: 2 },
        interruption::Input::Finished,
    ];
    assert_eq!(playback.progress(now), expected);
}

#[test]
fn audio_that_does_not_come_stalls_and_is_dropped() {
    let (mut playback, now) = (playback(&["One.", " Two."]), NOW);
    made(&mut playback, now);
    assert_eq!(playback.progress(now + Duration::from_secs(4)), []);

    let late = now + Duration::from_secs(5);
    assert_eq!(
        playback.progress(late),
        [interruption::Input::Sentence { text: "One.".into(), words: Vec::new() }, interruption::Input::Stall]
    );
    assert_eq!(playback.progress(late), []);
    playback.drop_rest(0);
    playback.add_piece(1, audio(3), late);
    assert_eq!(
        playback.progress(late),
        [interruption::Input::Sentence { text: " Two.".into(), words: Vec::new() }, interruption::Input::FirstAudio]
    );
    playback.play(late);
    assert_eq!(playback.progress(late), [interruption::Input::Audio { sentence: 1, length: FRAME * 3 }]);
    let later = late + Duration::from_secs(2);
    assert_eq!(playback.progress(later), [interruption::Input::Stall]);
    playback.drop_rest(1);
    assert_eq!(playback.progress(later), [interruption::Input::Finished]);
}

#[test]
fn a_reply_without_audio_is_finished_at_once() {
    let (mut playback, now) = (playback(&["One."]), NOW);
    playback.add_piece(0, None, now);

    let expected = [
        interruption::Input::Sentence { text: "One.".into(), words: Vec::new() },
        interruption::Input::Whole { sentence: 0 },
        interruption::Input::Finished,
    ];
    assert_eq!(playback.progress(now), expected);
}

#[test]
fn nobody_has_heard_more_than_was_sent() {
    let (mut playback, now) = (playback(&["One two."]), NOW);
    make(&mut playback, 0..1, 50, now);
    playback.play(now);
    playback.progress(now);
    playback.packets(now);

    let (position, words) = playback.heard_up_to(Duration::from_secs(60));
    assert_eq!(position, FRAME * 5);
    assert!(words.len() < "One two.".len(), "{words}");
}

#[test]
fn the_audio_of_earlier_sentences_is_let_go() {
    let (mut playback, now) = (playback(&["One.", " Two.", " Three.", " Four."]), NOW);
    make(&mut playback, 0..4, 10, now);
    playback.play(now);
    playback.progress(now);
    playback.packets(now + FRAME * 20);
    playback.progress(now);
    playback.heard_up_to(FRAME * 35);
    playback.packets(now + FRAME * 40);
    playback.heard_up_to(FRAME * 35);
    playback.packets(now + FRAME * 40);

    let kept: Vec<_> = playback.sentences.iter().map(|sentence| sentence.samples.len() / SPOKEN_FRAME).collect();
    assert_eq!(kept, [0, 0, 10, 10]);
    assert_eq!(playback.resume(FRAME * 25, now), FRAME * 25);
}

#[test]
fn times_of_words_that_come_later_are_told_before_their_audio() {
    let (mut playback, now) = (playback(&["One two."]), NOW);
    let word = |text_end, frame| WordTime { text_end, start: FRAME * frame, end: FRAME * (frame + 5) };
    playback.add_piece(0, Some(Piece::Words(vec![word(3, 0)])), now);
    playback.add_piece(0, audio(5), now);
    playback.allow(0);
    playback.play(now);

    let first = playback.progress(now);
    playback.add_piece(0, Some(Piece::Words(vec![word(8, 5)])), now);
    playback.add_piece(0, audio(5), now);
    let later = playback.progress(now);
    playback.packets(now + FRAME * 10);

    assert_eq!(
        first,
        [
            interruption::Input::Sentence { text: "One two.".into(), words: vec![word(3, 0)] },
            interruption::Input::FirstAudio,
            interruption::Input::Audio { sentence: 0, length: FRAME * 5 }
        ]
    );
    assert_eq!(
        later,
        [
            interruption::Input::WordTimes { sentence: 0, words: vec![word(8, 5)] },
            interruption::Input::Audio { sentence: 0, length: FRAME * 5 }
        ]
    );
    assert_eq!(playback.heard_up_to(FRAME * 5).1, "One");
    assert_eq!(playback.heard_up_to(FRAME * 10).1, " two.");
}

#[test]
fn a_sentence_that_is_read_far_enough_ahead_stalls_only_once_it_was_played_on() {
    let (mut playback, now) = (playback(&["One."]), NOW);
    let is_stalling = |playback: &mut Playback, now| playback.progress(now).contains(&interruption::Input::Stall);
    made(&mut playback, now);
    playback.add_piece(0, audio(510), now);
    playback.allow(0);
    playback.play(now);
    playback.progress(now);
    playback.packets(now);
    playback.pause();
    assert_eq!((playback.played_of(0), playback.played_of(1)), (5 * SPOKEN_FRAME, 0));

    let later = now + Duration::from_secs(60);
    assert!(!is_stalling(&mut playback, later), "nobody has asked for more of it");
    playback.play(later);
    playback.packets(later + Duration::from_secs(1));
    assert!(!is_stalling(&mut playback, later + Duration::from_millis(1_999)));
    assert!(is_stalling(&mut playback, later + Duration::from_secs(2)));
}
