use proptest::prelude::*;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A script of sentences, each with its audio in milliseconds. All of it was sent.
fn script(sentences: &[(&str, u64)]) -> Script {
    let mut script = Script::default();
    for (number, (text, millis)) in sentences.iter().enumerate() {
        script.sentence(*text, Vec::new());
        script.audio(number, ms(*millis));
        script.whole(number);
    }
    script
}

fn heard(mut script: Script, millis: u64) -> String {
    script.played(ms(millis));
    script.heard()
}

#[test]
fn a_word_was_heard_if_its_end_was_played() {
    // One character lasts 100 ms.
    let script = script(&[("One two.", 800), (" Three four.", 1_200)]);

    for (millis, expected) in [
        (0, ""),
        (299, ""),
        (300, "One"),
        (799, "One"),
        (800, "One two."),
        (1_399, "One two."),
        (1_400, "One two. Three"),
        (2_000, "One two. Three four."),
        (9_000, "One two. Three four."),
    ] {
        assert_eq!(heard(script.clone(), millis), expected, "{millis}");
    }
}

#[test]
fn each_character_is_a_word_in_scripts_without_spaces() {
    let script = script(&[("これは文。OK です", 1_000)]);

    assert_eq!(heard(script.clone(), 100), "こ");
    assert_eq!(heard(script.clone(), 399), "これは");
    assert_eq!(heard(script.clone(), 499), "これは", "the full stop belongs to the word before it");
    assert_eq!(heard(script.clone(), 500), "これは文。");
    assert_eq!(heard(script.clone(), 699), "これは文。");
    assert_eq!(heard(script, 700), "これは文。OK");
}

#[test]
fn times_of_words_win_over_proportions() {
    let mut script = Script::default();
    let words =
        vec![WordTime { text_end: 3, start: ms(500), end: ms(600) }, WordTime { text_end: 8, start: ms(600), end: ms(1_900) }];
    script.sentence("One two.", words);
    script.audio(0, ms(2_000));

    assert_eq!(heard(script.clone(), 599), "");
    assert_eq!(heard(script.clone(), 600), "One");
    assert_eq!(heard(script, 1_900), "One two.");
}

#[test]
fn times_that_do_not_fit_the_text_are_not_used() {
    for words in [
        vec![WordTime { text_end: 9, start: ms(0), end: ms(1) }],
        vec![WordTime { text_end: 1, start: ms(0), end: ms(1) }],
        vec![WordTime { text_end: 2, start: ms(2), end: ms(1) }],
        vec![WordTime { text_end: 4, start: ms(0), end: ms(1) }, WordTime { text_end: 2, start: ms(1), end: ms(2) }],
    ] {
        let mut script = Script::default();
        script.sentence("é one", words);
        script.audio(0, ms(500));
        script.whole(0);

        assert_eq!(heard(script, 200), "é");
    }
}

const fn word(text_end: usize, start: u64, end: u64) -> WordTime {
    WordTime { text_end, start: ms(start), end: ms(end) }
}

#[test]
fn times_of_the_next_words_may_come_while_the_sentence_plays() {
    let mut script = Script::default();
    script.sentence("One two three.", vec![word(3, 100, 300)]);
    script.audio(0, ms(1_000));
    script.played(ms(1_000));
    assert_eq!(script.heard(), "One");

    script.words(0, &[word(7, 500, 700)]);
    assert_eq!(script.heard(), "One two");
    script.words(0, &[word(14, 600, 650)]);
    script.words(1, &[word(14, 700, 900)]);
    assert_eq!(script.heard(), "One two", "these do not fit");
    script.words(0, &[word(14, 700, 900)]);
    assert_eq!(script.heard(), "One two three.");
}

#[test]
fn the_first_times_are_used_only_before_the_sentence_plays() {
    let mut script = Script::default();
    script.sentence("One two.", Vec::new());
    script.audio(0, ms(800));
    script.played(ms(300));
    script.words(0, &[word(3, 500, 600)]);
    assert_eq!(script.heard(), "One");

    script.whole(0);
    script.sentence(" Three.", Vec::new());
    script.words(1, &[word(7, 0, 100)]);
    script.audio(1, ms(700));
    script.played(ms(900));
    assert_eq!(script.heard(), "One two. Three.");
}

#[test]
fn words_without_times_share_the_rest_of_the_audio_when_it_is_complete() {
    let mut script = Script::default();
    script.sentence("One two three", vec![word(3, 0, 500)]);
    script.audio(0, ms(2_500));
    assert_eq!(heard(script.clone(), 2_000), "One");

    // 10 characters take 2 s.
    script.whole(0);
    assert_eq!(heard(script.clone(), 1_299), "One");
    assert_eq!(heard(script.clone(), 1_300), "One two");
    assert_eq!(heard(script, 2_500), "One two three");
}

#[test]
fn an_unknown_duration_is_estimated_from_the_characters() {
    let mut script = Script::default();
    script.sentence("One two three four five six.", Vec::new());
    script.audio(0, ms(400));

    // 28 characters take at least 1.867 s, so "One two" ends at 0.467 s.
    assert_eq!(heard(script.clone(), 400), "One");
    script.audio(0, ms(2_400));
    assert_eq!(heard(script, 700), "One two", "2.8 s of audio: a tenth of a second for each character");
}

#[test]
fn a_dropped_sentence_counts_with_what_was_played_of_it() {
    let mut script = Script::default();
    script.sentence("One two three four.", Vec::new());
    script.sentence(" Five.", Vec::new());
    script.audio(0, ms(600));

    assert_eq!(script.drop_stalled(), Some(0));
    script.audio(0, ms(600));
    script.audio(1, ms(600));
    script.whole(1);

    assert_eq!(script.sent(), ms(1_200));
    assert_eq!(heard(script.clone(), 1_200), "One two Five.");
    assert_eq!(script.drop_stalled(), None);
}

#[test]
fn the_position_is_at_most_what_was_sent_and_never_moves_back() {
    let mut script = script(&[("One two.", 800)]);

    assert_eq!(script.played(ms(400)), "One");
    assert_eq!(script.played(ms(200)), "");
    assert_eq!(script.position(), ms(400));
    assert_eq!(script.played(ms(5_000)), " two.");
    assert_eq!(script.position(), ms(800));
    assert!(script.is_played());
}

#[test]
fn playback_resumes_at_the_beginning_of_a_word() {
    // Words begin at 0, 400, 800 + 100 and 800 + 700.
    let script = script(&[("One two.", 800), (" Three four.", 1_200), (" Five.", 600)]);

    for (millis, expected) in [
        (0, 0),
        (200, 0),
        (300, 0),
        (699, 0),
        (700, 400),
        (900, 400),
        (1_199, 400),
        (1_200, 900),
        (1_800, 1_500),
        (2_100, 1_500),
        (2_600, 2_100),
    ] {
        let mut script = script.clone();
        script.played(ms(millis));
        assert_eq!(script.resume_from(), ms(expected), "{millis}");
    }
}

#[test]
fn playback_resumes_at_the_sentence_if_no_word_begins_early_enough() {
    let mut script = Script::default();
    script.sentence("One", vec![WordTime { text_end: 3, start: ms(250), end: ms(400) }]);
    script.audio(0, ms(500));
    script.played(ms(500));

    assert_eq!(script.resume_from(), Duration::ZERO);
    assert_eq!(script.locate(ms(499)), Some((0, ms(499))));
    assert_eq!(script.locate(ms(500)), None);
}

#[test]
fn a_sentence_without_sound_is_heard_with_the_one_before() {
    let script = script(&[("One.", 400), (" 👍", 0), (" Two.", 500)]);

    assert_eq!(heard(script.clone(), 0), "");
    assert_eq!(heard(script.clone(), 399), "");
    assert_eq!(heard(script, 400), "One. 👍");
}

/// A sentence with its words' times (or none), the audio that is sent, and whether that is all.
fn sentence() -> impl Strategy<Value = (String, Vec<WordTime>, u64, u8)> {
    let text = prop_oneof!["[a-z .,]{0,20}", "[a-zあ漢 。é\u{301}]{0,10}", any::<String>()];
    let time = || prop_oneof![9 => 0_u64..3_000, 1 => Just(u64::MAX)];
    let words = prop::collection::vec((0_usize..30, time(), time()), 0..4).prop_map(|words| {
        words.into_iter().map(|(text_end, start, end)| WordTime { text_end, start: ms(start), end: ms(end) }).collect()
    });
    (text, words, 0_u64..3_000, 0_u8..3)
}

proptest! {
    #[test]
    fn heard_is_never_longer_than_played(
        sentences in prop::collection::vec(sentence(), 0..5),
        positions in prop::collection::vec(0_u64..12_000, 0..8),
    ) {
        let mut script = Script::default();
        for (number, (text, words, sent, progress)) in sentences.iter().enumerate() {
            script.sentence(text.as_str(), words.clone());
            script.audio(number, ms(*sent));
            match progress {
                0 => script.whole(number),
                1 => _ = script.drop_stalled(),
                _ => {}
            }
        }
        let mut pieces = String::new();
        for position in positions {
            pieces.push_str(&script.played(ms(position)));
            prop_assert!(script.position() <= script.sent());
            prop_assert!(script.resume_from() <= script.position());

            // Each word that was heard ends at or before the position, whole sentences included.
            let mut expected = String::new();
            for (start, sentence) in script.with_starts() {
                let within = script.played.saturating_sub(start).min(sentence.sent);
                let heard = if start <= script.played && !script.played.is_zero() { sentence.heard(within) } else { "" };
                prop_assert!(sentence.text.starts_with(heard));
                let is_all = sentence.progress == Progress::Whole && within == sentence.sent;
                let ends = sentence.words().into_iter().filter(|word| word.text_end <= heard.len()).map(|word| word.end);
                prop_assert!(is_all || ends.max().unwrap_or_default() <= within);
                expected.push_str(heard);
            }
            prop_assert_eq!(script.heard(), expected);
            prop_assert_eq!(&pieces, &script.heard());
        }
        script.played(Duration::MAX);
        prop_assert!(script.is_played());
        if sentences.iter().all(|(.., progress)| *progress == 0) && !script.sent().is_zero() {
            prop_assert_eq!(script.heard(), script.text());
        }
    }
}

#[test]
fn playback_resumes_at_no_word_whose_audio_did_not_come() {
    let mut script = Script::default();
    script.sentence("a long sentence of which little is played", Vec::new());
    script.audio(0, Duration::from_millis(500));
    script.drop_stalled();
    script.sentence(" Next", Vec::new());
    script.audio(1, Duration::from_secs(2));
    script.whole(1);
    script.played(Duration::from_millis(1_500));

    // " Next" begins after a fifth of its two seconds.
    assert_eq!(script.resume_from(), Duration::from_millis(900));
}

#[test]
fn what_was_not_heard_follows_what_was() {
    let mut script = script(&[("One two.", 800), (" Three four.", 1_200)]);
    script.sentence(" Five.", Vec::new());

    for (millis, expected) in [
        (300, " two. Three four. Five."),
        (799, " two. Three four. Five."),
        (800, " Three four. Five."),
        (1_400, " four. Five."),
        (2_000, " Five."),
    ] {
        script.played(ms(millis));
        assert_eq!(script.unheard_end(), expected, "{millis}");
        assert_eq!(script.heard() + &script.unheard_end(), script.text());
    }
}

#[test]
fn what_is_not_spoken_takes_no_time() {
    // Twenty characters of the first sentence are spoken: "Ask at a.example now".
    let (text, end) = ("*smiles* Ask at https://a.example/b?c=d&e=f&g=h now", " *waves*");
    let script = script(&[(text, 2_000), (end, 0)]);

    assert_eq!(heard(script.clone(), 299), "");
    assert_eq!(heard(script.clone(), 300), "*smiles* Ask");
    assert_eq!(heard(script.clone(), 600), "*smiles* Ask at");
    assert_eq!(heard(script.clone(), 1_600), "*smiles* Ask at https://a.example/b?c=d&e=f&g=h");
    assert_eq!(heard(script.clone(), 2_000), [text, end].concat());
    assert_eq!(script.unspoken_end(), "");
}
