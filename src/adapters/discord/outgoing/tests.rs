use proptest::prelude::*;

use super::*;
use crate::adapters::discord::incoming::{Incoming, NameLookup, Origin, OwnIds, RawMessage, User, classify};

const PEOPLE: [MentionablePerson<'_>; 5] = [
    MentionablePerson { id: id(1_001), name: "Ana" },
    MentionablePerson { id: id(1_002), name: "Ana Lee" },
    MentionablePerson { id: id(1_003), name: "Zoë 🚀" },
    MentionablePerson { id: id(1_004), name: "Twin" },
    MentionablePerson { id: id(1_005), name: "twin" },
];
const EMOJIS: [Emoji<'_>; 4] = [
    Emoji { id: id(31), name: "wave", animated: false },
    Emoji { id: id(30), name: "wave", animated: true },
    Emoji { id: id(32), name: "cat_1", animated: false },
    Emoji { id: id(33), name: "30", animated: false },
];
const MENTIONABLES: Mentionables<'_> = Mentionables { people: &PEOPLE, emojis: &EMOJIS };

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
    let people: Vec<_> = names.iter().zip(1..).map(|(name, number)| MentionablePerson { id: id(number), name }).collect();
    let words = names.iter().map(|name| format!("@{name} ")).collect::<String>().repeat(40);

    let parts = render(&words, &Mentionables { people: &people, emojis: &[] });

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
            prop_assert!(part.mentions.iter().all(|user| PEOPLE.iter().any(|person| person.id == *user)));
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
    let user = |id, username| User { id, username, global_name: None, nick: None, bot: false, system: false };
    let us = OwnIds { bot: id(1), application: id(2), webhooks: &BTreeSet::new() };
    let raw = RawMessage {
        id: id(3),
        kind: 0,
        flags: 0,
        origin: Origin { author: user(id(1_001), "Ana"), webhook: None, application: None },
        content,
        mentions: PEOPLE.iter().map(|person| user(person.id, person.name)).collect(),
        attachments: Vec::new(),
        stickers: Vec::new(),
        poll: None,
        forward: None,
        answers: None,
    };
    match classify(&raw, &us, &Town) {
        Incoming::Message(inbound_message) => inbound_message.text,
        other => panic!("{other:?}"),
    }
}

struct Town;

impl NameLookup for Town {
    fn person(&self, _: Snowflake) -> Option<String> {
        Some("Eve".to_owned())
    }

    fn role(&self, _: Snowflake) -> Option<String> {
        None
    }

    fn channel(&self, _: Snowflake) -> Option<String> {
        Some("general".to_owned())
    }
}

/// The words of a text, without the fences that close and reopen a code block.
fn words_of(text: &str) -> Vec<&str> {
    text.split_whitespace().filter(|word| *word != "```").collect()
}

fn part(content: &str, mentions: &[u64]) -> Part {
    Part { content: content.to_owned(), mentions: mentions.iter().map(|user| id(*user)).collect() }
}

const fn id(id: u64) -> Snowflake {
    match Snowflake::new(id) {
        Some(id) => id,
        None => panic!("ids are not 0"),
    }
}
