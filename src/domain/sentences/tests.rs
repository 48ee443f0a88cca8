use proptest::prelude::*;

use super::*;

/// The sentences of a text that comes in one piece.
fn cut(text: &str) -> Vec<String> {
    in_pieces(&[text])
}

fn in_pieces(pieces: &[impl AsRef<str>]) -> Vec<String> {
    let mut sentences = Sentences::default();
    let mut out: Vec<_> = pieces.iter().flat_map(|piece| sentences.push(piece.as_ref())).collect();
    out.extend(sentences.finish());
    out
}

#[test]
fn a_sentence_is_whole_once_the_next_character_is_there() {
    let mut sentences = Sentences::default();

    assert_eq!(sentences.push("Well. It is 3.5"), ["Well."]);
    assert_eq!(sentences.push(" metres!"), [""; 0]);
    assert_eq!(sentences.push(" \"Really?\""), [" It is 3.5 metres!"]);
    assert_eq!(sentences.push(" Yes"), [" \"Really?\""]);
    assert_eq!(sentences.finish().as_deref(), Some(" Yes"));
}

#[test]
fn sentences_of_scripts_without_spaces_are_cut() {
    assert_eq!(cut("これは文。「本当に？」はい！"), ["これは文。", "「本当に？」", "はい！"]);
}

#[test]
fn a_long_sentence_is_cut_at_a_comma() {
    let long = format!("{}, {} end", "a".repeat(150), "b ".repeat(40).trim_end());

    let sentences = cut(&long);

    assert_eq!(sentences, [format!("{},", "a".repeat(150)), format!(" {} end", "b ".repeat(40).trim_end())]);
}

#[test]
fn a_long_sentence_without_a_comma_is_cut_at_a_word() {
    let sentences = cut(&"word ".repeat(60));

    assert_eq!(sentences[0], "word ".repeat(40).trim_end());
    assert_eq!(sentences[1], format!(" {}", "word ".repeat(20).trim_end()));
    let lengths: Vec<_> = cut(&"x".repeat(450)).iter().map(String::len).collect();
    assert_eq!(lengths, [200, 200, 50]);
    let lengths: Vec<_> = cut(&"漢字、".repeat(100)).iter().map(|sentence| sentence.chars().count()).collect();
    assert_eq!(lengths, [198, 102]);
}

fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "<",
        "Aria",
        ": ",
        "**",
        "_",
        "{",
        "}",
        "\"",
        "“",
        ".",
        "。",
        "」",
        "? ",
        " ",
        "\n\n",
        ", ",
        "é",
        "\u{301}",
        "\u{200b}",
        "some words and more ",
    ]);
    prop_oneof![3 => fixed.prop_map(str::to_owned), 1 => "[a-z ]{0,60}", 1 => any::<String>()]
}

proptest! {
    #[test]
    fn pieces_make_no_difference(pieces in prop::collection::vec(piece(), 0..20)) {
        let whole = pieces.concat();
        let chars: Vec<_> = whole.chars().map(String::from).collect();

        prop_assert_eq!(in_pieces(&pieces), cut(&whole));
        prop_assert_eq!(in_pieces(&chars), cut(&whole));
    }

    #[test]
    fn no_character_is_lost_or_said_twice(mut pieces in prop::collection::vec(piece(), 0..30)) {
        pieces.push("x".to_owned());

        prop_assert_eq!(in_pieces(&pieces).concat(), pieces.concat());
    }

    #[test]
    fn no_sentence_is_long_or_blank(pieces in prop::collection::vec(piece(), 0..30)) {
        for sentence in in_pieces(&pieces) {
            prop_assert!(sentence.trim().chars().count() <= MOST_CHARS, "{}", sentence);
            prop_assert!(!sentence.trim().is_empty());
        }
    }
}
