use proptest::prelude::*;

use super::super::statement::clean_statement;
use super::*;

/// The sentences of a text that comes in one piece.
fn cut(text: &str) -> Vec<String> {
    in_pieces(&[text])
}

fn in_pieces(pieces: &[impl AsRef<str>]) -> Vec<String> {
    let mut sentences = Sentences::new("Aria");
    let mut out: Vec<_> = pieces.iter().flat_map(|piece| sentences.push(piece.as_ref())).collect();
    out.extend(sentences.finish());
    out
}

#[test]
fn a_sentence_is_whole_once_the_next_character_is_there() {
    let mut sentences = Sentences::new("Aria");

    assert_eq!(sentences.push("Well. It is 3.5"), ["Well."]);
    assert_eq!(sentences.push(" metres!"), [""; 0]);
    assert_eq!(sentences.push(" \"Really?\""), [" It is 3.5 metres!"]);
    assert_eq!(sentences.push(" Yes"), [" \"Really?\""]);
    assert_eq!(sentences.finish(), [" Yes"]);
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

#[test]
fn thoughts_are_not_spoken() {
    assert_eq!(cut("<think>Hm. Well. </think>\nHello. <THINK>And now?</think>You!"), ["Hello.", " You!"]);
    assert_eq!(cut("a <b> <thi"), ["a <b> <thi"]);
    assert_eq!(cut("Hello. <think>never ends. Really."), ["Hello."]);
    assert_eq!(cut("<<think>x</think>y"), ["<y"]);
    // An endpoint that begins the thought itself: what was spoken cannot be taken back.
    assert_eq!(cut("What to say. Maybe </think>Aria: Hello"), ["What to say.", "Hello"]);
}

#[test]
fn the_name_before_the_words_is_not_spoken() {
    for (text, expected) in [
        ("Aria: Hello", "Hello"),
        ("  aria : Hello", "Hello"),
        ("**Aria:** Hello", "Hello"),
        ("**Aria**: **Hello**", "**Hello**"),
        ("**Aria:** **Hello**", "**Hello**"),
        ("[Aria]: Hello", "Hello"),
        ("Aria：やあ", "やあ"),
        ("“Aria: Hello!”", "“Hello!”"),
        ("Aria: \"Aria: Hello\"", "\"Hello\""),
        ("Ariadne: Hello", "Ariadne: Hello"),
        ("Aria likes it: yes", "Aria likes it: yes"),
        ("Aria", "Aria"),
        ("**Aria", "**Aria"),
    ] {
        assert_eq!(cut(text), [expected], "{text}");
    }
    assert_eq!(cut("Aria:"), [""; 0]);
    assert_eq!(cut("**Aria:**"), [""; 0]);
}

#[test]
fn json_is_not_spoken_but_its_text() {
    let mut sentences = Sentences::new("Aria");
    assert_eq!(sentences.push("<think>x</think> {\"from\":\"Aria\",\"text\":\"Aria: One. "), [""; 0]);
    assert_eq!(sentences.push("Two.\"}\n"), [""; 0]);
    assert_eq!(sentences.finish(), ["One.", " Two."]);

    assert_eq!(cut("{smiles} Hello. You!"), ["{smiles} Hello.", " You!"]);
}

#[test]
fn a_statement_is_bounded() {
    let long = cut(&"é ".repeat(100_000)).concat();

    assert!(long.chars().count() <= MAX_CHARS);
}

fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "<think>",
        "</think>",
        "<",
        "thinking>",
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
        "{\"text\":\"Aria: One. Two.\"}",
    ]);
    prop_oneof![3 => fixed.prop_map(str::to_owned), 1 => "[a-z ]{0,60}", 1 => any::<String>()]
}

/// Pieces of texts that hold neither quotation marks nor thoughts without a beginning, nor JSON.
fn plain_piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "<think>Hm. </think>",
        "<thinking>, </THINKING>",
        "< ",
        "Aria",
        ": ",
        "**",
        "_",
        "[",
        "].",
        ". ",
        "。",
        "? ",
        " ",
        "\n\n",
        ", ",
        "é",
        "、",
        "some words and more of them ",
        "it's",
    ]);
    prop_oneof![3 => fixed.prop_map(str::to_owned), 1 => "[a-z ,]{0,90}"]
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
    fn no_character_is_lost_or_said_twice(pieces in prop::collection::vec(plain_piece(), 0..30)) {
        let text = pieces.concat();

        let said = in_pieces(&pieces).concat();

        prop_assert_eq!(said, clean_statement(&text, "Aria").unwrap_or_default());
    }

    #[test]
    fn no_sentence_is_long_or_blank(pieces in prop::collection::vec(piece(), 0..30)) {
        for sentence in in_pieces(&pieces) {
            prop_assert!(sentence.trim().chars().count() <= MOST_CHARS, "{}", sentence);
            prop_assert!(!sentence.trim().is_empty());
        }
    }

    #[test]
    fn nothing_of_a_thought_is_said(before in "[a-m .]{0,20}", thought in "[n-z .<]{0,40}", after in "[a-m .]{0,20}") {
        let said = cut(&format!("{before}<think>{thought}</think>{after}")).concat();

        prop_assert!(!said.contains(|c: char| ('n'..='z').contains(&c)), "{}", said);
    }
}
