use std::sync::LazyLock;

use proptest::prelude::*;

use super::super::incoming::tests::{accepted, message, user};
use super::super::snowflake::id;
use super::super::wire::Message;
use super::*;

const PEOPLE: [(u64, &str); 5] = [(1_001, "Ana"), (1_002, "Ana Lee"), (1_003, "Zoë 🚀"), (1_004, "Twin"), (1_005, "twin")];
static MENTIONABLES: LazyLock<Mentionables> = LazyLock::new(|| {
    let emoji = |number, name: &str, animated| Emoji { id: id(number), name: name.into(), animated };
    let emojis = [emoji(31, "wave", false), emoji(30, "wave", true), emoji(32, "cat_1", false), emoji(33, "30", false)];
    Mentionables { people: PEOPLE.map(|(user, name)| (id(user), name.into())).into(), emojis: emojis.into() }
});

#[test]
fn known_people_are_mentioned_by_their_names() {
    for (words, content, mentions) in [
        ("hi @Ana!", "hi <@1001>!", &[1_001][..]),
        ("hi @ana lee", "hi <@1002>", &[1_002]),
        ("@Ana, @Ana Lee and @ana", "<@1001>, <@1002> and <@1001>", &[1_001, 1_002]),
        ("(@zoë 🚀)", "(<@1003>)", &[1_003]),
        ("<@1001> <@!1002>", "<@1001> <@1002>", &[1_001, 1_002]),
        ("@Anatol @An mail@ana.org", "@Anatol @An mail@ana.org", &[]),
        ("@Twin", "@Twin", &[]),
        ("Ana", "Ana", &[]),
        ("`@Ana` \\@Ana https://x.org/@Ana", "`@Ana` \\@Ana https://x.org/@Ana", &[]),
        ("```\n@Ana\n```", "```\n@Ana\n```", &[]),
    ] {
        assert_eq!(render(words, &MENTIONABLES), [part(content, mentions)], "{words:?}");
    }
}

#[test]
fn nobody_else_can_be_mentioned() {
    for (words, content) in [
        ("@everyone", "@\u{200b}everyone"),
        ("a@Here!", "a@\u{200b}Here!"),
        ("@\u{200b}everyone", "@\u{200b}everyone"),
        ("`@everyone`", "`@\u{200b}everyone`"),
        ("\\@everyone", "\\@\u{200b}everyone"),
        ("<@&1001>", "<\u{200b}@&1001>"),
        ("`<@&5> <@7> a<@B>`", "`<\u{200b}@&5> <\u{200b}@7> a<@B>`"),
        ("<@7>", "<\u{200b}@7>"),
        ("<@!7>", "<\u{200b}@!7>"),
        ("@@Ana", "@<@1001>"),
    ] {
        let parts = render(words, &MENTIONABLES);

        assert_eq!(parts.len(), 1, "{words:?}");
        assert_eq!(parts[0].content, content, "{words:?}");
    }
}

#[test]
fn a_statement_mentions_everyone_once_and_not_more_than_ten() {
    let names: Vec<_> = (0..40).map(|number| format!("p{number}")).collect();
    let people = names.iter().zip(1..).map(|(name, number)| (id(number), name.as_str().into())).collect();
    let words = names.iter().map(|name| format!("@{name} ")).collect::<String>().repeat(40);

    let parts = render(&words, &Mentionables { people, ..Mentionables::default() });

    assert!(parts.len() > 2);
    let mentions: Vec<_> = parts.iter().flat_map(|part| part.mentions.iter().map(|user| user.get())).collect();
    assert_eq!(mentions, (1..=10).collect::<Vec<_>>());
    assert!(parts[0].content.contains("<@10> @p10 @p11"));
}

#[test]
fn emojis_of_the_guild_are_shown() {
    for (words, content) in [
        (":wave: hi:cat_1:", "<a:wave:30> hi<:cat_1:32>"),
        ("<:any:31>", "<:wave:31>"),
        ("<:foreign:99>", ":foreign:"),
        (":unknown: 10:30:00 ::wave::", ":unknown: 10:30:00 :<a:wave:30>:"),
        (":Wave: `:wave:`", ":Wave: `:wave:`"),
    ] {
        assert_eq!(render(words, &MENTIONABLES), [part(content, &[])], "{words:?}");
    }
}

#[test]
fn links_show_their_targets_and_headings_are_bold_lines() {
    for (words, content) in [
        ("[ok](https://evil.example)", "[ok] (https://evil.example)"),
        ("[ok](<https://evil.example>)", "[ok] (<https://evil.example>)"),
        ("a[1] (b)", "a[1] (b)"),
        ("# Title\ntext", "**Title**\ntext"),
        ("### *Title*", "*Title*"),
        ("> # Title", "> **Title**"),
        ("- ## Title", "- **Title**"),
        ("-# small", "small"),
        ("#tag # no heading", "#tag # no heading"),
        ("# `code` title", "`code` title"),
        ("```\n# kept\n```", "```\n# kept\n```"),
        ("a\u{202e}b\u{0}c\r\nd\u{2028}e", "abc\nd\ne"),
        ("  indented", "indented"),
    ] {
        assert_eq!(render(words, &MENTIONABLES), [part(content, &[])], "{words:?}");
    }
}

#[test]
fn a_part_that_begins_like_a_heading_is_escaped() {
    let words = format!("{} # not a title", "a".repeat(1_998));

    let parts = render(&words, &MENTIONABLES);

    assert_eq!(parts[1].content, "\\# not a title");
}

#[test]
fn invisible_text_makes_no_part() {
    for words in ["", " \n ", "\u{200b}", "\u{fe0f}\u{ad}", "\u{feff}"] {
        assert_eq!(render(words, &MENTIONABLES), [], "{words:?}");
    }
}

#[test]
fn no_markup_is_split() {
    for words in [":wave:".repeat(600), "x".repeat(1_990) + ":wave:", "@Ana".repeat(900), "é:cat_1:\u{fe0f}".repeat(400)] {
        let parts = render(&words, &MENTIONABLES);

        assert!(parts.len() > 1);
        for part in parts {
            let left = pieces(&part.content)
                .filter(|piece| matches!(piece, Piece::Plain(_)))
                .map(|piece| piece.text())
                .collect::<String>();
            assert!(!left.contains(['<', '>']), "{left}");
        }
    }
}

#[test]
fn a_code_block_over_two_parts_is_closed_and_opened_again() {
    let parts = render(&format!("```rust\n{}```", "let a = 1;\n".repeat(300)), &MENTIONABLES);

    assert_eq!(parts.len(), 2);
    assert!(parts.iter().all(|part| part.content.starts_with("```rust\n") && part.content.ends_with("\n```")));
}

#[test]
fn contents_are_compared_by_visible_characters() {
    assert!(is_same(" a  b\r\n<@!1>", "a b\n<@1>"));
    assert!(is_same("❤\u{fe0f}", "❤"));
    assert!(is_same("@\u{200b}everyone", "@everyone"));
    assert!(!is_same("a", "b"));
    assert!(!is_same("a", "A"));
}

proptest! {
    // The texts are long enough to be split.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_part_keeps_discords_limits(words in statements()) {
        for part in render(&words, &MENTIONABLES) {
            prop_assert!(part.content.chars().count() <= LIMIT);
            prop_assert!(part.content.chars().any(is_visible));
            prop_assert_eq!(part.content.trim(), &*part.content);
            prop_assert!(!part.content.contains(PLACEHOLDER));
            prop_assert!(part.mentions.iter().all(|user| PEOPLE.iter().any(|(person, _)| id(*person) == *user)));
            let is_written = |user: &Snowflake| part.content.contains(&format!("<@{user}>"));
            prop_assert!(part.mentions.iter().all(is_written));
            prop_assert!(!part.content.to_lowercase().contains("@everyone"), "{}", part.content);
            prop_assert!(!pieces(&part.content).any(|piece| matches!(piece, Piece::Mark(_, Mark::Role(_)))), "{}", part.content);
        }
    }

    #[test]
    fn rendering_an_incoming_text_gives_the_same_incoming_text(content in incoming_content()) {
        let first = incoming_text(&content);

        let again: Vec<_> = render(&first, &MENTIONABLES).iter().map(|part| incoming_text(&part.content)).collect();

        let again = again.join("\n");
        prop_assert_eq!(words_of(&again), words_of(&first));
    }

    #[test]
    fn a_sent_part_is_found_again(words in statements()) {
        for part in render(&words, &MENTIONABLES) {
            let read = part.content.replace(['\u{200b}', '\u{fe0f}'], "").replace("<@1001>", "<@!1001>").replace('\n', "\r\n");

            prop_assert!(is_same(&part.content, &read));
            prop_assert!(!is_same(&part.content, &(read + ".")));
        }
    }
}

/// Statements of a model, with everything that needs care.
fn statements() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("@everyone ".to_owned()),
        Just("@Ana".to_owned()),
        Just("<@&5>".to_owned()),
        Just("<@1001>".to_owned()),
        Just("<@99>".to_owned()),
        Just(":wave:".to_owned()),
        Just("[a](https://b.c)".to_owned()),
        Just("\n# ".to_owned()),
        Just("\n> ".to_owned()),
        Just("\n```\n".to_owned()),
        Just("`".to_owned()),
        Just("\u{200b}".to_owned()),
        Just("\u{fdd0}\u{fe00}".to_owned()),
        Just("<".to_owned()),
        Just("@".to_owned()),
        "[a-z]{1,12} ",
        "\\PC{0,6}",
    ];
    (prop::collection::vec(token, 0..60), 1..12_usize).prop_map(|(tokens, times)| tokens.concat().repeat(times))
}

/// Messages of people, without markup that Discord would rewrite.
fn incoming_content() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("<@1001>".to_owned()),
        Just("<@1002>".to_owned()),
        Just("<@77>".to_owned()),
        Just("<:wave:31>".to_owned()),
        Just("<:other:99>".to_owned()),
        Just("<#20>".to_owned()),
        Just("<t:5:R>".to_owned()),
        Just("@everyone".to_owned()),
        Just("`@Ana <@1>`".to_owned()),
        Just("\n```\n<@1001> @here\n```\n".to_owned()),
        Just("https://a.b/@Ana".to_owned()),
        "[a-zé]{1,9}",
    ];
    prop::collection::vec(token, 1..200).prop_map(|tokens| tokens.join(" "))
}

fn incoming_text(content: &str) -> String {
    let mentions = PEOPLE.map(|(id, name)| user(id, name)).into();
    accepted(&Message { mentions, ..message(content) }).text.to_string()
}

/// The words of a text, without the fences that close and reopen a code block.
fn words_of(text: &str) -> Vec<&str> {
    text.split_whitespace().filter(|word| *word != "```").collect()
}

fn part(content: &str, mentions: &[u64]) -> Part {
    Part { content: content.to_owned(), mentions: mentions.iter().map(|user| id(*user)).collect() }
}
