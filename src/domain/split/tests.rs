use proptest::prelude::*;

use super::*;

#[test]
fn a_short_text_is_one_part() {
    assert_eq!(split("hello", 2_000), ["hello"]);
    assert_eq!(split("```\ncode\n```", 2_000), ["```\ncode\n```"]);
    assert_eq!(split("", 2_000), Vec::<String>::new());
    assert_eq!(split(" \n\n ", 2_000), Vec::<String>::new());
}

#[test]
fn paragraphs_are_preferred_to_sentences_and_sentences_to_words() {
    let paragraphs = split("One two. Three four.\n\nFive six seven. Eight.", 40);
    let lines = split("One two. Three four.\nFive six seven. Eight.", 40);
    let sentences = split("One two three. Four five six. Seven eight nine ten.", 40);
    let words = split("one two three four five six seven eight nine ten", 40);

    assert_eq!(paragraphs, ["One two. Three four.", "Five six seven. Eight."]);
    assert_eq!(lines, ["One two. Three four.", "Five six seven. Eight."]);
    assert_eq!(sentences, ["One two three. Four five six.", "Seven eight nine ten."]);
    assert_eq!(words, ["one two three four five six seven eight", "nine ten"]);
}

#[test]
fn sentences_of_scripts_without_spaces_stay_whole() {
    let parts = split(&"これはとても長い文です。「本当に？」".repeat(3), 32);

    assert_eq!(parts[0], "これはとても長い文です。「本当に？」これはとても長い文です。");
    assert!(parts.iter().all(|part| part.encode_utf16().count() <= 32));
}

#[test]
fn a_code_block_is_closed_and_opened_again_with_its_language() {
    let parts = split("Look:\n```rust\nlet a = 1;\n    let b = 2;\n    let c = 3;\n```\nDone.", 40);

    assert_eq!(parts, ["Look:", "```rust\nlet a = 1;\n    let b = 2;\n```", "```rust\n    let c = 3;\n```\nDone."]);
}

#[test]
fn bold_and_italic_text_and_spoilers_are_closed_and_begun_again() {
    let spoiler = split("The end: ||the butler did it, because he was the count's lost brother.|| So sad.", 40);
    let nested = split("**All of this is bold, and __this is underlined as well__, and bold again.**", 40);
    let japanese = split(&format!("**{}**と言いました。", "これはとても長い文です。".repeat(3)), 46);
    let action = split("*She waves at the moon, and 2 * 3 ravens fly by.* Good night.", 40);
    let both = split("***All of this is bold and italic, to its very end.***", 40);

    assert_eq!(action, ["*She waves at the moon, and 2 * 3*", "*ravens fly by.* Good night."]);
    assert_eq!(both, ["***All of this is bold and italic, to***", "***its very end.***"]);
    assert_eq!(spoiler, ["The end: ||the butler did it, because||", "||he was the count's lost brother.||", "So sad."]);
    assert_eq!(nested, ["**All of this is bold, and __this is__**", "**__underlined as well__, and bold**", "**again.**"]);
    assert_eq!(japanese, [format!("**{}**", "これはとても長い文です。".repeat(3)), "と言いました。".into()]);
}

#[test]
fn marks_in_code_escaped_ones_and_single_ones_are_text() {
    for text in [
        "`a || b` or c, and then a few more words, and ||",
        r"\*\*no bold here at all, and none there",
        "2 ** 3 is eight, and so on and so forth",
        "* a bullet, and then a few more words\n* a second bullet",
        "```\n**\n``` and then a few more words, and **",
    ] {
        let rejoined = split(text, 32).join(" ");

        assert_eq!(rejoined.matches('*').count(), text.matches('*').count(), "{rejoined}");
        assert_eq!(rejoined.matches("||").count(), text.matches("||").count(), "{rejoined}");
    }
}

#[test]
fn code_that_is_never_closed_is_closed_in_every_part() {
    let parts = split(&format!("```py\n{}", "print(1)\n".repeat(20)), 60);

    assert!(parts.len() > 2);
    assert!(parts.iter().all(|part| part.starts_with("```py\nprint") && part.ends_with("\n```")), "{parts:#?}");
}

#[test]
fn one_long_line_of_code_is_split_inside_its_fences() {
    let parts = split(&format!("```\n{}\n```", "x".repeat(100)), 40);

    assert!(parts.iter().all(|part| part.starts_with("```\nx") && part.ends_with("x\n```") && part.len() <= 40), "{parts:#?}");
    assert_eq!(parts.concat().matches('x').count(), 100);
}

#[test]
fn a_grapheme_cluster_stays_whole() {
    for whole in ["👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u{301}", "❤\u{fe0f}"] {
        let parts = split(&whole.repeat(40), 33);

        assert!(parts.iter().all(|part| part.replace(whole, "").is_empty()), "{parts:?}");
    }
}

#[test]
fn a_long_grapheme_cluster_is_split() {
    let parts = split(&format!("a{}", "\u{301}".repeat(100)), 40);

    assert!(parts.iter().all(|part| part.encode_utf16().count() <= 40));
    assert_eq!(parts.concat().chars().count(), 101);
}

proptest! {
    #[test]
    fn no_word_is_lost_or_changed(words in prop::collection::vec(word(), 0..80), limit in 32_usize..200) {
        let text = words.concat();

        let parts = split(&text, limit);

        let rejoined: Vec<&str> = parts.iter().flat_map(|part| part.split_whitespace()).collect();
        prop_assert_eq!(rejoined, text.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn no_part_exceeds_the_limit_or_is_empty(pieces in prop::collection::vec(piece(), 0..60), limit in 0_usize..200) {
        for part in split(&pieces.concat(), limit) {
            prop_assert!(part.encode_utf16().count() <= limit.max(MIN_LIMIT), "{:?}", part);
            prop_assert!(!part.trim().is_empty());
        }
    }

    #[test]
    fn every_part_closes_the_code_that_it_opens(lines in prop::collection::vec(line(), 0..60), limit in 60_usize..200) {
        let mut text = lines.join("\n");
        if lines.iter().filter(|line| line.starts_with("```")).count() % 2 == 1 {
            text.push_str("\n```");
        }

        for part in split(&text, limit) {
            prop_assert_eq!(part.lines().filter(|line| line.starts_with("```")).count() % 2, 0, "{:?}", part);
        }
    }

    #[test]
    fn every_part_closes_what_it_marks(pieces in prop::collection::vec(word(), 0..60), marks in prop::collection::vec(any::<prop::sample::Index>(), 6), limit in 48_usize..200) {
        let mut pieces = pieces;
        for (pair, mark) in marks.chunks(2).zip(["**", "||", "*"]).filter(|_| !pieces.is_empty()).collect::<Vec<_>>() {
            let [from, to] = [pair[0].index(pieces.len()), pair[1].index(pieces.len())];
            let (from, to) = (from.min(to), from.max(to));
            pieces[to] = format!("{}{mark} ", pieces[to].trim_end());
            pieces[from] = format!("{mark}{}", pieces[from]);
        }

        for part in split(&pieces.concat(), limit) {
            prop_assert!(part.matches('*').count() % 2 == 0 && part.matches("||").count() % 2 == 0, "{:?}", part);
        }
    }

    #[test]
    fn any_text_is_split_without_panic(text in any::<String>(), limit in 0_usize..100) {
        split(&text, limit);
    }
}

fn word() -> impl Strategy<Value = String> {
    ("[a-zäé]{1,12}[.!?]?", "[ \n]{1,3}").prop_map(|(word, space)| word + &space)
}

fn line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "```",
        "some words here. And more!",
        "    indented",
        "",
        "x",
        "a long line of many words that goes on and on",
    ])
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "```",
        "```rust\n",
        "\n```\n",
        "\n",
        "\n\n",
        " ",
        "words and words. ",
        "x",
        "👨‍👩‍👧‍👦",
        "🇩🇪",
        "é",
        "アリア。",
        "\u{301}",
        "`",
        "````",
        "**",
        "*",
        "||",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ])
}
