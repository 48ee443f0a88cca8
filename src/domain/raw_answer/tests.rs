use proptest::prelude::*;

use super::words::MAX_CHARS;
use super::*;

/// What is said in a room with Ana, Bob and Bruno.
fn said(text: &str) -> Result<String, Nothing> {
    read(text).words
}

fn read(text: &str) -> Reading {
    statement(text, speakers())
}

fn speakers() -> Speakers {
    Speakers::new("Aria", ["Ana", "Bob", "Bruno", "Mira Vale", "小蝶"].map(Arc::from))
}

/// Checks what is said of each text, and what was cut out of it.
fn check(cases: &[(&str, &str, &[Trimmed])]) {
    for (text, expected, kinds) in cases {
        let reading = read(text);

        assert_eq!(reading.words.as_deref(), Ok(*expected), "{text:?}");
        assert_eq!(reading.trimmed.iter().copied().collect::<Vec<_>>(), *kinds, "{text:?}");
    }
}

/// Checks that texts stay as they are.
fn check_whole(texts: &[&str]) {
    for text in texts {
        let reading = read(text);

        assert_eq!((reading.words.as_deref(), reading.trimmed.len()), (Ok(*text), 0), "{text:?}");
    }
}

#[test]
fn thoughts_at_the_beginning_or_on_a_line_are_not_said() {
    use Trimmed::Thought;
    let marks = [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<thought>", "</thought>"),
        ("<reasoning>", "</reasoning>"),
        ("<reflection>", "</reflection>"),
        ("<antthinking>", "</antthinking>"),
        ("<seed:think>", "</seed:think>"),
        ("<THINK>", "</Think>"),
        ("< think >", "</ think >"),
        ("<think type=\"hidden\">", "</think>"),
        ("<thinking>", "</think>"),
        ("<think>", "</think/>"),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|channel>thought\n", "<channel|>"),
        ("&lt;think&gt;", "&lt;/think&gt;"),
        ("<|inner_prefix|>", "<|inner_suffix|>"),
    ];
    for (open, close) in marks {
        check(&[
            (&format!("{open}SECRET: be brief.{close}\nGood evening."), "Good evening.", &[Thought]),
            (&format!("{open}\n\n{close}\n\nGood evening."), "Good evening.", &[Thought]),
            (&format!("Well.\n{open}SECRET{close}\nGood evening."), "Well.\n\nGood evening.", &[Thought]),
            (&format!("They greet me.\n{close}\n\nGood evening."), "Good evening.", &[Thought]),
            (&format!("They greet me. So:{close}Good evening."), "Good evening.", &[Thought]),
        ]);
        assert_eq!(said(&format!("{open}never ends\n\nReally.")), Err(Nothing::Thoughts));
        let unclosed = format!("It begins so:\n{open}and goes on.");
        check_whole(&[&unclosed]);
    }
    let endless = format!("It begins so:\n<think>{}", "and goes on. ".repeat(400));
    check(&[
        (&endless, "It begins so:", &[Thought]),
        (
            "<details type=\"reasoning\" done=\"true\">\n<summary>Thought for 3 s</summary>\n> Hm.\n</details>\nHello",
            "Hello",
            &[Thought],
        ),
        ("<messages>\n{\"from\":\"Ana\",\"text\":\"Hi\"}\n</messages>\nHello", "Hello", &[Thought]),
        ("I am in.\n<your-reason-to-speak>", "I am in.", &[Thought]),
        ("<think>a</think><think>b</think>Hello", "Hello", &[Thought]),
        ("<think>They wrote `</think>` before.</think>Hello", "Hello", &[Thought]),
        ("<think>They wrote \"</think>\".</think>Hello", "Hello", &[Thought]),
        ("<think>a</think>b</think>Hello", "Hello", &[Thought]),
        ("They ask about <think> tags.\n</think>\nThese are tags.", "These are tags.", &[Thought]),
    ]);
}

#[test]
fn a_statement_about_a_mark_keeps_every_word() {
    check_whole(&[
        "Some models write `<think>` before they answer, and `</think>` after it; hide both.",
        "Such a prompt ends with `<think>` so that the model begins there.",
        "Like this:\n```text\n<think>\nplan\n</think>\nanswer\n```\nThat is all.",
        "~~~\n</think>\n~~~\nThat is all.",
        "The closing tag is `</think>`; without it nothing is shown.",
        "Models write <think> first and </think> after it.",
        "The closing tag is </think>, I believe.",
        "It ends with \"</think>\" or '[/THINK]'.",
        "Use “<|im_end|>” there.",
        "ChatML closes each turn with <|im_end|>, and Llama with <|eot_id|>.",
        "A double tick ``<|im_end|> ` </think>`` holds it.",
        "1 < 2 and <b>bold</b>",
        "<thinker> is no tag",
        "I <3 you",
        "analysis paralysis, classic",
        "finally!",
        "FINALLY!",
        "[link](https://a.example) and [INSTALL] it",
        "xs |> List.map f <| y",
        "a < think > b",
        "Write <answer>5</answer> there.",
        "<think of it",
        "<details>\n<summary>The end</summary>\nHe did it.\n</details>",
        "Tom &amp; Jerry &lt;3",
    ]);
}

#[test]
fn of_channels_only_the_final_one_is_said() {
    use Trimmed::{Channel, EndOfTurn};
    check(&[
        (
            "<|channel|>analysis<|message|>SECRET: be short.<|end|><|start|>assistant<|channel|>final<|message|>Good morning.",
            "Good morning.",
            &[Channel, EndOfTurn],
        ),
        ("<|channel|>analysis<|message|>SECRET.<|end|>Good morning.", "Good morning.", &[Channel]),
        ("<|start|>assistant<|channel|>final<|message|>Good morning.<|return|>", "Good morning.", &[Channel, EndOfTurn]),
        ("<|channel|>final<|message|>Good morning.<|return|>", "Good morning.", &[Channel, EndOfTurn]),
        ("<|channel|>final <|constrain|>text<|message|>Good morning.", "Good morning.", &[Channel]),
        (
            "They greet me.<|end|><|start|>assistant<|channel|>final<|message|>Good morning.",
            "Good morning.",
            &[Channel, EndOfTurn],
        ),
        ("They greet me.<|channel|>final<|message|>Good morning.", "Good morning.", &[Channel]),
        ("analysisSECRET: short.assistantfinalGood morning.", "Good morning.", &[Channel]),
        ("analysis<|message|>SECRET.<|end|><|start|>assistant<|channel|>final<|message|>Hi.", "Hi.", &[Channel]),
        ("analysisOne.assistantcommentary to=x{}assistantanalysisTwo.assistantfinalHi.", "Hi.", &[Channel]),
        ("assistantfinalGood morning.", "Good morning.", &[Channel]),
        ("finalGood morning.", "Good morning.", &[Channel]),
    ]);
    for (text, nothing) in [
        ("<|channel|>commentary<|message|>{\"path\": \"/\"}<|end|>", Nothing::Thoughts),
        ("<|channel|>commentary to=functions.look <|constrain|>json<|message|>{\"path\": \"/\"}<|call|>", Nothing::Other),
        ("commentary to=functions.look json{\"path\": \"/\"}", Nothing::Other),
        ("<|channel|>analysis<|message|>SECRET", Nothing::Thoughts),
        ("analysisSECRET", Nothing::Thoughts),
    ] {
        assert_eq!(said(text), Err(nothing), "{text}");
    }
    check_whole(&["gpt-oss writes `<|channel|>final<|message|>` before it.", "An assistantfinal is no word."]);
}

#[test]
fn what_follows_the_end_of_the_turn_is_not_said() {
    use Trimmed::EndOfTurn;
    let ends = [
        "<|im_end|>",
        "</s>",
        "<|eot_id|>",
        "<end_of_turn>",
        "[/INST]",
        "[INST]",
        "<|endoftext|>",
        "<|end|>",
        "<turn|>",
        "<｜end▁of▁sentence｜>",
        "<|im_start|>",
        "<start_of_turn>",
        "<|user|>",
        "<｜User｜>",
        "<|start_header_id|>",
        "[|endofturn|]",
        "]~b]",
    ];
    for end in ends {
        check(&[
            (&format!("Sure.{end}"), "Sure.", &[EndOfTurn]),
            (&format!("Sure.\n{end}\nWho else?"), "Sure.", &[EndOfTurn]),
            (&format!("Sure. {end}user\nHi!{end}"), "Sure.", &[EndOfTurn]),
        ]);
    }
    check(&[
        ("<|im_start|>assistant\nSure.<|im_end|>", "Sure.", &[EndOfTurn]),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nSure.", "Sure.", &[EndOfTurn]),
        ("<start_of_turn>model\nSure.", "Sure.", &[EndOfTurn]),
        ("<|assistant|>Sure.", "Sure.", &[EndOfTurn]),
        ("[/INST] Sure.", "Sure.", &[EndOfTurn]),
        ("<s> Sure.</s>", "Sure.", &[EndOfTurn]),
    ]);
    assert_eq!(said("<|im_end|>"), Err(Nothing::Empty));
    assert_eq!(said("<|im_start|>user\nHello!"), Err(Nothing::Empty));
}

#[test]
fn a_line_of_somebody_else_ends_the_statement() {
    use Trimmed::{OtherSpeaker, OwnName};
    for line in [
        "Ana: Great!",
        "**Ana:** Great!",
        "**Ana**: Great!",
        "*Ana:* Great!",
        "__Ana__: Great!",
        "[Ana]: Great!",
        "<Ana> Great!",
        "<Ana>: Great!",
        "Ana (she/her): Great!",
        "Ana [22:10]: Great!",
        "[22:10] Ana: Great!",
        "(22:10) <Ana> Great!",
        "22:10 Ana: Great!",
        "### Ana: Great!",
        "ana : Great!",
        "Ana：Great!",
        "Ana:\nGreat!",
        "Mira Vale: Great!",
        "小蝶：好！",
        "User: Great!",
        "Human: Great!",
        "Assistant: Great!",
        "**User:** Great!",
        "### Human: Great!",
        "user\nGreat!",
        "assistant\nGreat!",
        "{\"n\":5,\"role\":\"user\",\"from\":\"Ana\",\"text\":\"Great!\"}",
        "{\"who\":\"#4\",\"role\":\"person\",\"from:\"Ana\",\"text\":{<",
    ] {
        check(&[
            (&format!("Good idea, I am in.\n{line}"), "Good idea, I am in.", &[OtherSpeaker]),
            (&format!("Good idea, I am in.\n\n{line}\n\n**Aria:** See you."), "Good idea, I am in.", &[OtherSpeaker]),
            (&format!("Aria: Good idea, I am in.\n{line}"), "Good idea, I am in.", &[OtherSpeaker, OwnName]),
        ]);
    }
    check(&[("Good idea.\nAria: And you?", "Good idea.\nAnd you?", &[OwnName])]);
}

#[test]
fn scores_and_scenes_stay_whole() {
    check_whole(&[
        "Ana: 5\nBob: 3",
        "Ana: 5 points\nBob: 3/10\nAria: 4",
        "Ana: 12.5 kg\nBob: 80 kg",
        "The roles:\nuser\nassistant",
        "After two rounds.\n\nAna: 5\nBob: 3",
        "Here is the score:\nAna: five\nBob: three",
        "**Ana:** Where is the boat?\n**Bob:** At the pier.\n\n*They run.*",
        "Ana: Where is it?\nAria: Here.\nBob: Well done.",
        "# The pier\n\nAna: Where is the boat?\nBob: Gone.",
        "A short scene:\n\nAna: Where is the boat?\n\nBob: Gone.\n\nThe end.",
        "My list:\n- Ana: salad\n- Bob: wine\n* Bruno: bread\n1. Ana: cups",
        "They wrote\n> Ana: no\n> Bob: yes\nand left.",
        "Like this.\n```\nUser: hi\nAna: hello\n```\nDone.",
        "So Ana said: yes.\nAnastasia: no.",
        "Good idea.\nAna and Bob: come, too.\nuser: is a word.",
        "Well.\n| Ana: | 5 |\n\"Ana: yes\", she wrote.",
    ]);
}

#[test]
fn the_companions_own_name_is_not_said() {
    for name in [
        "Aria:",
        "aria :",
        "**Aria:**",
        "**Aria**:",
        "[Aria]:",
        "<Aria>",
        "<Aria>:",
        "Aria：",
        "Aria (she/her):",
        "Aria (assistant):",
        "[22:10] Aria:",
        "22:10 Aria:",
        "Aria [22:10]:",
        "Assistant:",
        "### Assistant:",
        "Aria: Aria:",
        "**Aria**\n",
        "### Aria\n",
        "assistant\n",
        "Response:",
    ] {
        check(&[
            (&format!("{name} Hello, 5 of you."), "Hello, 5 of you.", &[Trimmed::OwnName]),
            (&format!("“{name} Hello, 5 of you.”"), "Hello, 5 of you.", &[Trimmed::OwnName]),
            (&format!("{name} 5"), "5", &[Trimmed::OwnName]),
        ]);
    }
}

#[test]
fn names_are_found_without_their_decoration() {
    let speakers = Speakers::new("★ Nova Stern ★", ["🔥Ember".into()]);
    for text in ["Nova: Hello!\nEmber: Hi!", "**Nova Stern:** Hello!\n**🔥Ember:** Hi!", "★ Nova Stern ★: Hello!\nEMBER: Hi!"]
    {
        assert_eq!(statement(text, speakers.clone()).words.as_deref(), Ok("Hello!"), "{text}");
    }
}

#[test]
fn words_are_taken_out_of_a_form_where_they_are_unmistakable() {
    use Trimmed::{Decision, Form, OwnName, ToolCall};
    let vote = r#"{"reason": "They asked.", "decision": "YES", "importance": 8, "selected": true, "closing": "none"}"#;
    check(&[
        (r#"{"text": "Hello Ana!"}"#, "Hello Ana!", &[Form]),
        (r#"{"reply": "Hello Ana!"}"#, "Hello Ana!", &[Form]),
        (r#"{"reply": {"text": "Hello Ana!"}}"#, "Hello Ana!", &[Form]),
        (r#"[{"text": "Hello Ana!"}]"#, "Hello Ana!", &[Form]),
        ("```json\n{\"text\": \"Hello Ana!\"}\n```", "Hello Ana!", &[Form]),
        ("Here is my reply:\n{\"text\": \"Hello Ana!\"}", "Hello Ana!", &[Form]),
        ("Sure! Here's the JSON:\n\n```json\n{\"text\": \"Hello Ana!\"}\n```", "Hello Ana!", &[Form]),
        (r#"{"n":3,"role":"you","from":"Aria","text":"Aria: Hello Ana!"}"#, "Hello Ana!", &[OwnName, Form]),
        (
            "{\"from\":\"Aria\",\"text\":\"Hello\"}\n{\"from\":\"Aria\",\"text\":\"Ana!\"}\n{\"from\":\"Ana\",\"text\":\"Hi\"}",
            "Hello\nAna!",
            &[Form],
        ),
        ("{\"from\":\"Ana\",\"text\":\"Hi\"}\n{\"from\":\"Aria\",\"text\":\"Hello Ana!\"}", "Hello Ana!", &[Form]),
        ("<think>Hm.</think>\n<answer>Hello Ana!</answer>", "Hello Ana!", &[Trimmed::Thought, Form]),
        (r#"{"text": "Hello Ana! I"#, "Hello Ana! I", &[Form]),
        (&format!("{vote}\n\nHello Ana!"), "Hello Ana!", &[Decision]),
        ("YES\nHello Ana!", "Hello Ana!", &[Decision]),
        (&format!("Hello Ana!\n\n{vote}"), "Hello Ana!", &[Decision]),
        (&format!("Hello Ana!\n```json\n{vote}\n```"), "Hello Ana!", &[Decision]),
        ("<tool_call>{\"name\":\"x\"}</tool_call>\nHello Ana!", "Hello Ana!", &[ToolCall]),
        ("Hello Ana!\n<tool_call>\n{\"name\":\"x\"}\n</tool_call>", "Hello Ana!", &[ToolCall]),
        ("Hello Ana![TOOL_CALLS][{\"name\":\"x\"}]", "Hello Ana!", &[ToolCall]),
    ]);
}

#[test]
fn a_form_without_words_is_no_statement() {
    let vote = r#"{"reason": "Nothing to add.", "decision": "NO", "importance": 2, "selected": false, "closing": "none"}"#;
    for (text, kind) in [
        (vote, Trimmed::Decision),
        (&format!("```json\n{vote}\n```"), Trimmed::Decision),
        (&format!("Here is my answer:\n{vote}"), Trimmed::Decision),
        ("{\"decision\": \"YE", Trimmed::Decision),
        ("{\"reason\": \"x\"}", Trimmed::Decision),
        ("NO\nNothing to add.", Trimmed::Decision),
        (r#"{"name": "look", "arguments": {"path": "/"}}"#, Trimmed::ToolCall),
        (r#"{"tool_calls": [{"function": {"name": "look"}}]}"#, Trimmed::ToolCall),
        (r#"<tool_call>{"name":"x"}</tool_call>"#, Trimmed::ToolCall),
        ("<function=look><parameter=path>/</parameter></function>", Trimmed::ToolCall),
        ("<|tool_call>call:look{}<tool_call|>", Trimmed::ToolCall),
        ("<|python_tag|>look()", Trimmed::ToolCall),
        ("```tool_code\nlook()\n```", Trimmed::ToolCall),
        ("{reason: 'x', decision: 'NO'}", Trimmed::Decision),
        ("{\"from\":\"Ana\",\"text\":\"Hi\"}\n{\"from\":\"Bob\",\"text\":\"Ho\"}", Trimmed::OtherSpeaker),
        ("{}", Trimmed::Form),
    ] {
        let reading = read(text);

        assert!(reading.words.is_err_and(Nothing::is_to_repeat) && reading.trimmed.contains(&kind), "{text}");
    }
    check_whole(&[
        r#"{"x":1}"#,
        "{not json",
        "{smiles} Hello. You!",
        "Here is an example:\n```json\n{\"text\": \"hi\"}\n```\nIt has one field.",
        "A vote looks so:\n```json\n{\"decision\": \"YES\", \"reason\": \"so\"}\n```",
        "```rust\nfn main() {}\n```",
        "[1, 2",
        "```\n{\"x\": 1}\n```",
        "Here is the thing: I like it.",
        "Answer:\nit is five.",
    ]);
}

#[test]
fn words_that_say_that_nothing_is_said_are_no_statement() {
    for text in [
        "NO_REPLY",
        "`NO_REPLY`",
        "[no response]",
        "(No response needed.)",
        "(silence)",
        "[SILENCE]",
        "*stays silent*",
        "*Aria stays silent.*",
        "<no_response>",
        "…",
        "...",
        "NO",
        "YES",
        "**NO**",
        "Aria: [silence]",
    ] {
        assert_eq!(said(text), Err(Nothing::Silence), "{text}");
    }
    check_whole(&[
        "No.",
        "Yes",
        "No",
        "NO!",
        "No response.",
        "*smiles*",
        "*stays silent for a while, then nods*",
        "?",
        "(silence is golden)",
        "- a\n- b",
        "Silence!",
    ]);
    check(&[("I am done.\n\nNO_REPLY", "I am done.", &[Trimmed::Silence])]);
}

#[test]
fn quotation_marks_around_the_whole_are_not_said() {
    check(&[("\"Hello!\"", "Hello!", &[]), ("“Hello!”\n", "Hello!", &[]), ("「やあ」", "やあ", &[])]);
    check_whole(&["\"Hello\" and \"bye\"", "'tis so", "\"", "\"Hello", "“Hello,” she says."]);
    assert_eq!(said("\"\""), Err(Nothing::Empty));
}

#[test]
fn a_reader_that_knows_of_thoughts_shows_nothing_before_they_end() {
    let mut reader = Reader::new(speakers(), true);
    reader.feed("They ask.\nAna: hi\n");
    assert_eq!((reader.words(), reader.is_over()), ("", false));
    reader.feed("</think>Hel");
    assert_eq!((reader.words(), reader.is_over()), ("Hel", false));
    reader.feed("lo\nAna: hi there");
    assert_eq!((reader.words(), reader.is_over()), ("Hello", true));

    let mut plain = Reader::new(speakers(), true);
    plain.feed("Hello");
    assert_eq!(plain.finish().words.as_deref(), Ok("Hello"));
}

#[test]
fn a_statement_is_bounded_and_visible() {
    let long = said(&"é ".repeat(100_000)).unwrap();
    assert!(long.chars().count() <= MAX_CHARS);
    assert_eq!(said("a\u{0}b\r\nc\td").as_deref(), Ok("ab\nc\td"));
    assert_eq!(said("Aria: \u{200b}\u{200d}\n\u{fe0f}\u{2800}"), Err(Nothing::Empty));
}

#[test]
fn decisions_keep_marks_in_objects_and_lose_thoughts_anywhere() {
    let seen = decision("Well <think>NO</think>[THINK]NO[/THINK] {\"reason\":\"</think> <|im_end|>\"} YES<|im_end|>NO");
    assert_eq!((&*seen.text, seen.unopened), ("Well  {\"reason\":\"</think> <|im_end|>\"} YES", None));

    let seen =
        decision("<|channel|>analysis<|message|>NO<|end|><|start|>assistant<|channel|>final<|message|>{\"decision\":\"YES\"}");
    assert_eq!((&*seen.text, seen.unopened), ("{\"decision\":\"YES\"}", None));

    assert_eq!(decision("I say NO.</think>YES").unopened, Some("I say NO."));
}

#[test]
fn every_documented_answer_is_said_as_documented() {
    let page = include_str!("../../../docs/models.md");
    let (_, section) = page.split_once("\n## Answers that are statements\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("the next section");
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| `")).collect();

    assert!(rows.len() >= 15);
    for row in rows {
        let [_, answer, said, cut, _] = row
            .replace("\\|", "\u{1}")
            .split('|')
            .map(|cell| cell.trim().replace('\u{1}', "|").replace("\\n", "\n"))
            .collect::<Vec<_>>()
            .try_into()
            .expect("three columns");
        let reading = read(answer.trim_matches('`'));
        let words = reading.words.map_or_else(|nothing| format!("nothing: {}", nothing.code()), |words| format!("“{words}”"));
        let kinds = reading.trimmed.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ");

        assert_eq!((words, if kinds.is_empty() { "nothing" } else { &*kinds }), (said, &*cut), "{row}");
    }
}

/// Pieces of answers that are difficult to take apart.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "<think>",
        "</think>",
        "<thinking ",
        "a=\"b\">",
        "< / think >",
        "[THINK]",
        "[/THINK]",
        "◁think▷",
        "◁/think▷",
        "<",
        ">",
        "[",
        "]",
        "<|channel|>",
        "analysis",
        "final",
        "<|message|>",
        "<|end|>",
        "<|start|>",
        "assistant",
        "assistantfinal",
        "commentary to=",
        "<|im_end|>",
        "</s>",
        "<s>",
        "[/INST]",
        "<|im_start|>",
        "<tool_call>",
        "</tool_call>",
        "`",
        "``",
        "```",
        "```json\n",
        "~~~",
        "Aria",
        "Ana",
        "Bob",
        "User",
        ":",
        ": ",
        "**",
        "_",
        "(",
        ")",
        "[22:10] ",
        "5",
        "\n",
        "\n\n",
        "{",
        "}",
        "\"",
        "“",
        "”",
        "'",
        ",",
        ".",
        " ",
        "é",
        "\u{200b}",
        "\u{fe0f}",
        "{\"text\":\"Hello. You!\"}",
        "{\"decision\":\"YES\",\"reason\":\"\"}",
        "{\"from\":\"Ana\",\"text\":\"x\"}",
        "Here is my reply:",
        "YES",
        "NO",
        "NO_REPLY",
        "silence",
        "*stays silent*",
        "...",
        "some words",
        "Hello",
        "# ",
        "- ",
        "> ",
    ]);
    prop_oneof![6 => fixed.prop_map(str::to_owned), 1 => "[a-zA-Z ]{0,20}", 1 => any::<String>()]
}

proptest! {
    #[test]
    fn pieces_make_no_difference_and_what_was_shown_stays(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        let whole = read(&text);
        let chars: Vec<String> = text.chars().map(String::from).collect();

        for pieces in [&pieces, &chars] {
            let mut reader = Reader::new(speakers(), false);
            let (mut shown, mut restarts) = (String::new(), 0);
            for piece in pieces {
                reader.feed(piece);
                if reader.restarts() > restarts {
                    (shown, restarts) = (String::new(), reader.restarts());
                }
                prop_assert!(reader.words().starts_with(&shown), "{shown:?} became {:?}", reader.words());
                shown = reader.words().to_owned();
            }
            let read = reader.finish();
            let words = read.words.clone().unwrap_or_default();
            let is_taken_back = read.began_in_thought || read.trimmed.contains(&Trimmed::Channel);
            prop_assert!(words.starts_with(&shown) || is_taken_back, "{shown:?} became {words:?}");
            prop_assert_eq!(&read, &whole);
        }
    }

    #[test]
    fn nothing_of_a_thought_is_shown(before in "[a-m .]{0,20}\n", thought in "[n-z .<\n]{0,40}", after in "[a-m .]{0,20}") {
        for before in ["", &*before] {
            let words = said(&format!("{before}<think>{thought}</think>{after}")).unwrap_or_default();

            prop_assert!(!words.contains(|c: char| ('n'..='z').contains(&c)), "{}", words);
        }
    }
}

#[test]
fn pieces_that_end_within_a_word_or_white_space_make_no_difference() {
    let call = ["<|message|>", "<tool_call>"].concat();
    for pieces in [["\n", " ", &call], ["Aria", ":", &call], ["Aria", ":", "assistantfinal"]] {
        let mut reader = Reader::new(speakers(), false);
        pieces.iter().for_each(|piece| reader.feed(piece));

        assert_eq!(reader.finish(), read(&pieces.concat()), "{pieces:?}");
    }
}

/// Splits that other programs' bug reports say leaked a thought or lost the answer.
#[test]
fn reported_splits_of_tags_lose_nothing() {
    let cases: [(&[&str], &str); 4] = [
        (&["<think>secret</thi", "nk>Answer."], "Answer."),
        (&["<think>abc", "def</th", "ink> answer"], "answer"),
        (&["<thin", "k>weig", "hing ", "it</t", "hink>", "Answe", "r."], "Answer."),
        (&["<Direct", " answer without thinking"], "<Direct answer without thinking"),
    ];
    for (pieces, words) in cases {
        let mut reader = Reader::new(speakers(), false);
        pieces.iter().for_each(|piece| reader.feed(piece));

        assert_eq!(reader.finish().words.as_deref(), Ok(words), "{pieces:?}");
    }
}

#[test]
fn answers_of_weak_templates_are_read_as_they_are_meant() {
    use Trimmed::{Decision, EndOfTurn, Form, OtherSpeaker, OwnName, Thought};
    check(&[
        ("{\"text\":\"<think>Hm.</think>Hi.\"}", "Hi.", &[Form]),
        ("Aria: <think>Hm.</think>Hi.", "Hi.", &[Thought, OwnName]),
        ("**Aria:** <think>Hm.</think> Hi.", "Hi.", &[Thought, OwnName]),
        ("{\"role\":\"assistant\",\"content\":\"Hi.\"}", "Hi.", &[Form]),
        ("{\"speaker\":\"Aria\",\"message\":\"Hi.\"}", "Hi.", &[Form]),
        ("Hello.<|eos|>", "Hello.", &[EndOfTurn]),
        ("Hello.<|im_end", "Hello.", &[EndOfTurn]),
        ("<|message|>Hi.<|end|>", "Hi.", &[EndOfTurn]),
        ("I will say \"Hi!\"</think>\"Hi Ana!\"", "Hi Ana!", &[Thought]),
        ("so i greet them. </think> hey there", "hey there", &[Thought]),
        ("<your-reason-to-speak>\n\"They asked.\"\n</your-reason-to-speak>\n\nHi.", "Hi.", &[Thought]),
        ("{\"decision\":\"YES\"}\n42 is the answer.", "42 is the answer.", &[Decision]),
        ("Of course!\n\nAna: Thank you!", "Of course!", &[OtherSpeaker]),
        ("Of course!\n\nAna: Thank you!\nAria: Welcome.", "Of course!", &[OtherSpeaker]),
    ]);
    check_whole(&[
        "analysisの結果は明日です。",
        "```json\n{\"text\":\"hi\"}\n```\nThat has one field.",
        "The result is final.\nAna: 5 out of 10\nBob: 3 out of 10",
        "The tags: <think> and </think> stand around thoughts.",
    ]);
    for line in [
        "{\"role\":\"person\",\"from\":\"Ana\"}\n{'text'=hi",
        "{\"who\":\"#rznjl\",\"role=\"\"person\"\"authors=[",
        "{\"at\":\"2026-11-26 02:03\", \"who\": \"#a",
    ] {
        assert_eq!(said(line), Err(Nothing::Other), "{line}");
    }
    check_whole(&["{\"role\":\"wizard\",\"level\":3}"]);
    assert_eq!(["[PASS]", "*skip*"].map(said), [Err(Nothing::Silence), Err(Nothing::Silence)]);
    // In one piece or in many, a turn that ended has ended.
    assert!(read("</think>[/THINK]\n <|message|>").is_over);
    assert!(read("Bye.<|im_end|>\n<|im_start|>user\nand").is_over && !read("Bye, and").is_over);
}

mod copies {
    use super::*;

    const FRAME: &str =
        "How to read the conversation: each line is one message, as a JSON object. Take all of them as talk only.";

    fn read(answer: &str) -> Reading {
        let frame = [FRAME, "Ana has just spoken.", "It is Friday, 2026-05-01, 12:00 (UTC). Who spoke lately: \"Ana\", \"Ben\"."];
        let messages = [
            "We went along the shore and counted boats.",
            "Good morning!",
            "今日は海の方へ長い散歩に行きました。",
            "ありがとうございます",
        ];
        let reason = Some("They asked me about the old harbour.");
        let known = Known::new(frame.into_iter(), reason, messages.into_iter().map(Into::into));
        let whole = statement(answer, Speakers::new("Aria", []).knowing(known.clone()));
        for size in [1, 3, 7] {
            let mut reader = Reader::new(Speakers::new("Aria", []).knowing(known.clone()), false);
            let chars: Vec<char> = answer.chars().collect();
            chars.chunks(size).for_each(|piece| reader.feed(&piece.iter().collect::<String>()));
            assert_eq!(reader.finish(), whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn what_stands_in_the_prompt_is_not_said() {
        for (answer, words) in [
            ("How to read the conversation: each line is one message, as a JSON object. Hello Ana!", "Hello Ana!"),
            ("They asked me about the old harbour. It is lovely at night.", "It is lovely at night."),
            ("We went along the shore and counted boats.\nYes, at six.", "Yes, at six."),
            ("Hello Ana!\nThey asked me about the old harbour.", "Hello Ana!"),
            // In another dress.
            ("\"They asked me about the old harbour\" Hello Ana!", "Hello Ana!"),
            ("**They asked me about the old harbour:** Hello Ana!", "Hello Ana!"),
            ("they asked me about the old harbour. Hello Ana!", "Hello Ana!"),
            ("Ana has just spoken.\nHello Ana!", "Hello Ana!"),
            ("今日は海の方へ長い散歩に行きました\nHello Ana!", "Hello Ana!"),
            // With other parts that differ from prompt to prompt.
            ("It is Friday, 2026-05-01, 12:01 (UTC). Hello Ana!", "Hello Ana!"),
            ("Who spoke lately: \"Cleo\", \"Ben\". Hello Ana!", "Hello Ana!"),
            ("Who spoke lately: \"Cleo\"\nHello Ana!", "Hello Ana!"),
            // Within a longer sentence, or as a list item.
            ("Hello Ana, take all of them as talk only, and see you.", "Hello Ana, and see you."),
            ("Hello Ana (each line is one message, as a JSON object)!", "Hello Ana"),
            ("Hello Ana — as a rule, take all of them as talk only; see you.", "Hello Ana — as a rule, see you."),
            ("Hello Ana!\n- Ana has just spoken.\n2. **Take all of them as talk only.**\n- Bye.", "Hello Ana!\n- Bye."),
            // No empty lines remain.
            ("Hello Ana!\n\nAna has just spoken.\n\nBye.", "Hello Ana!\n\nBye."),
            ("Hello Ana!\n\nAna has just spoken.\n\n\nTake all of them as talk only.\nBye.", "Hello Ana!\n\n\nBye."),
            ("Hello Ana!\nAna has just spoken.\n\nBye.", "Hello Ana!\n\nBye."),
            ("Hello Ana! Ana has just spoken. Bye.", "Hello Ana! Bye."),
            ("Hello Ana!\n\nAna has just spoken.", "Hello Ana!"),
        ] {
            let reading = read(answer);

            assert_eq!(reading.words.as_deref(), Ok(words), "{answer}");
            assert!(reading.trimmed.contains(&Trimmed::Prompt));
        }
        assert_eq!(read(FRAME).words, Err(Nothing::Other));
    }

    #[test]
    fn short_words_and_words_of_others_within_a_line_are_said() {
        for answer in [
            "Good morning!",
            "ありがとうございます",
            "You said: “We went along the shore and counted boats.” I like that.",
            "You said that today: “We went along the shore and counted boats.”",
            "You told me. We went along the shore and counted boats.",
            "We went along the shore and counted boats. So did I.",
            "They asked me about the old harbours.",
            "Well, they asked me about the old harbour, so I know.",
            "Take it all, as talk only.",
            "I know that Ana has just spoken, too.",
            "1. One\n2. Two\n\n- Three",
        ] {
            assert_eq!(read(answer).words.as_deref(), Ok(answer));
        }
    }

    #[test]
    fn citations_and_undecoded_tokens_are_removed() {
        for (answer, words) in [
            ("It opens at six \u{e200}cite\u{e202}turn0search1\u{e201}.", "It opens at six ."),
            ("It opens at six【4:0†source】.", "It opens at six."),
            ("She said 【hello】 to all.", "She said 【hello】 to all."),
            ("Hello<unk> there<0x0A>Ana", "Hello there\nAna"),
            ("Hello\u{2581}there,\u{2581}Ana", "Hello there, Ana"),
            ("HelloĠthere.ĊAna", "Hello there.\nAna"),
            ("Ġorġ lives in il-Ġimgħa.", "Ġorġ lives in il-Ġimgħa."),
            ("▁▂▃ is a chart, and 2 <unk", "▁▂▃ is a chart, and 2 <unk"),
        ] {
            assert_eq!(read(answer).words.as_deref(), Ok(words), "{answer}");
        }
    }

    #[test]
    fn calls_of_tools_by_any_name_are_not_said() {
        for call in [
            "<minimax:tool_call>\n<invoke name=\"x\"></invoke>\n</minimax:tool_call>",
            "<x-tool_calls>{}</x-tool_calls>",
            "<\u{ff5c}DSML\u{ff5c}function_calls>a</\u{ff5c}DSML\u{ff5c}function_calls>",
        ] {
            assert_eq!(read(call).words, Err(Nothing::Other), "{call}");
        }
    }
}
