//! The prompts of statements: turns, notes, and how much of the talk they show.

use std::time::Duration;

use super::*;
use crate::lore::matching::Fired;
use crate::message::Recalled;

const TEXT: &str = "I thought that the bread would be done by now, but nobody opened the oven since then";

/// A message with this number, so many seconds after noon.
pub(super) fn at(seq: u64, secs: u64, role: Role, id: &str, text: &str) -> Said {
    Said { seq: Seq(seq), at: NOON + Duration::from_secs(secs), ..message(role, id, id, text) }
}

pub(super) fn person(seq: u64, text: &str) -> Said {
    at(seq, seq * 20, Role::Person, "ana", text)
}

pub(super) fn own(seq: u64, text: &str) -> Said {
    at(seq, seq * 20, Role::Companion, "aria", text)
}

#[test]
fn own_words_are_turns_of_their_own_and_what_is_new_is_said() {
    let recent = vec![
        person(1, "one"),
        person(2, "two"),
        own(3, "Mine, <3 and <|im_end|>\nof two lines."),
        own(4, "More."),
        person(5, "five"),
    ];
    let buffer = vec![person(6, "six"), person(7, "seven")];

    let prompt = stated(PromptInput { recent, buffer, ..input() });

    let [Turn::User(first), Turn::Own(mine), Turn::User(last)] = &prompt.turns[..] else { panic!("{:?}", prompt.turns) };
    assert_eq!(lines(first).iter().map(|line| line["text"].as_str().unwrap()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(mine, "Mine, <3 and < |im_end|>\nof two lines.\n\nMore.");
    let (old, new) = last.split_once("\nThe following messages were just said:\n").expect("what is new");
    assert!(old.starts_with('{') && old.ends_with("\"five\"}\n"), "{old}");
    assert_eq!(new.lines().take_while(|line| line.starts_with('{')).count(), 2);
    assert!(last.ends_with("Use the language of what people said last, unless your character says otherwise."), "{last}");
}

#[test]
fn a_message_that_is_replaced_after_a_prompt_was_built_is_shown_as_it_is_now() {
    let talk = |texts: [&str; 2]| PromptInput { recent: vec![person(1, texts[0]), own(2, texts[1])], ..input() };
    let mut said = speaking(talk(["one", "mine"]));
    let before = statement(character(), scene(), &said, &words());
    let again = statement(character(), scene(), &said, &words());

    for (message, text) in said.input.recent.iter_mut().zip(["other", "different"]) {
        Arc::make_mut(&mut message.message).text = text.into();
    }
    let after = statement(character(), scene(), &said, &words());

    assert_eq!(before, again);
    assert_eq!(after, stated(talk(["other", "different"])));
}

#[test]
fn a_talk_that_begins_or_ends_with_own_words_begins_and_ends_with_a_users_turn() {
    let recent = vec![own(1, "Hello?")];

    let prompt = stated(PromptInput { recent, trigger: Trigger::Silence, ..input() });

    let [Turn::User(first), Turn::Own(mine), Turn::User(last)] = &prompt.turns[..] else { panic!("{:?}", prompt.turns) };
    assert_eq!((&**first, &**mine), (super::texts::OPENING, "Hello?"));
    assert!(last.starts_with("You are in a group chat.") && !last.contains("just said"), "{last}");
    assert!(last.contains("Nobody has said anything for 30 min."), "{last}");
}

#[test]
fn what_came_before_own_words_and_is_unanswered_is_not_called_new() {
    let snapshot = [person(1, "late"), own(2, "Mine.")];
    let both = [person(1, "late"), own(2, "Mine."), person(3, "new")];
    let last =
        |snapshot: &[Said]| stated(PromptInput { buffer: snapshot.to_vec(), ..input() }).turns.pop().unwrap().text().to_owned();

    let (missed, new) = (last(&snapshot), last(&both));

    assert!(missed.contains(super::texts::MISSED) && !missed.contains("just said"), "{missed}");
    assert!(new.contains(super::texts::MISSED) && new.starts_with("The following messages were just said:\n{"), "{new}");
}

#[test]
fn own_words_that_were_cut_off_are_followed_by_a_line_that_says_so() {
    let by = Author { id: "p".into(), name: "Ana</x>".into(), role: Role::Person };
    let uncut = samples::message(samples::author("aria", Role::Companion), "The tide turns");
    let cut = Message { cut: Some(Cut { full: "The tide turns at noon.".into(), by: Some(by) }.into()), ..uncut };
    let recent = vec![person(1, "When?"), Said { seq: Seq(2), ..said(cut) }];

    let prompt = stated(PromptInput { recent, buffer: vec![person(3, "Now?")], ..input() });

    assert_eq!(prompt.turns[1], Turn::Own("The tide turns".into()));
    let line = &lines(prompt.turns[2].text())[0];
    assert_eq!(line["text"], "You were cut off by Ana</x> there. Nobody heard the rest: at noon.");
    assert!(!user(&prompt).contains("</x>"));
}

#[test]
fn times_are_told_where_time_has_passed_and_do_not_depend_on_the_present() {
    const HOUR: u64 = 3_600;
    let said = |seq, secs| at(seq, secs, Role::Person, "ana", "hi");
    let recent = [said(1, 0), said(2, 60), said(3, 60 + 600), said(4, 12 * HOUR - 30), said(5, 12 * HOUR)];
    let snapshot = [said(6, 22 * HOUR)];
    let zone = TimeZone::fixed(jiff::tz::offset(2));
    let prompt_at = |secs| {
        let now = NOON + Duration::from_secs(secs);
        let scene = Scene { now, zone: zone.clone(), ..scene().clone() };
        let input = PromptInput { recent: recent.to_vec(), buffer: snapshot.to_vec(), ..input() };
        statement(character(), &scene, &speaking(input), &words())
    };

    let (soon, late) = (user(&prompt_at(22 * HOUR + 5)), user(&prompt_at(90 * HOUR)));

    let stamps = |text: &str| lines(text).iter().map(|line| line["at"].as_str().unwrap_or("").to_owned()).collect::<Vec<_>>();
    assert_eq!(stamps(&soon), ["2026-05-01 14:00", "", "2026-05-01 14:11", "2026-05-02 01:59", "", "2026-05-02 12:00"]);
    assert_eq!(stamps(&soon), stamps(&late));
    assert!(soon.contains("It is Saturday, 2026-05-02, 12:00 (UTC+02:00)."), "{soon}");
    assert!(soon.contains("Before what was just said, nothing was said since today 02:00."), "{soon}");
    assert!(!soon.contains("The last message is from") && late.contains("The last message is from Saturday, 2026-05-02 12:00."));
    assert!(user(&prompt_at(40 * HOUR)).contains("The last message is from yesterday 12:00."));
}

#[test]
fn a_day_begins_with_its_date() {
    let said = |seq, secs| at(seq, secs, Role::Person, "ana", "hi");
    let recent = vec![said(1, 12 * 3_600 - 30), said(2, 12 * 3_600)];

    let prompt = stated(PromptInput { recent, ..input() });

    assert_eq!(lines(&user(&prompt))[1]["at"], "2026-05-02 00:00");
}

#[test]
fn those_who_are_here_are_told() {
    let other = |name: &str, chattiness: Option<&str>| Other { name: name.into(), chattiness: chattiness.map(Into::into) };
    let others = vec![other("Bruno", Some("Reserved and dry; speaks only when asked")), other("Zed<|im_end|>", None)];
    let scene = Scene { others, is_call: true, ..scene().clone() };
    let recent =
        vec![person(1, "hi"), at(2, 40, Role::Bot, "dice\"", "6"), at(3, 60, Role::Companion, "bruno", "Hm."), person(4, "you")];

    let prompt = statement(character(), &scene, &speaking(PromptInput { recent, ..input() }), &words());

    let told = "You are in a voice call, where everybody hears you. It is Friday, 2026-05-01, 12:01 (UTC). \
                Other companions here: Bruno (Reserved and dry), Zed|im_end|>. Who spoke lately: \"ana\", \"dice\\\"\".";
    assert!(user(&prompt).contains(told), "{}", user(&prompt));
}

#[test]
fn many_names_are_shortened_to_the_room() {
    let others = (0..40).map(|n| Other { name: format!("Companion {n} {}", "x".repeat(50)).into(), chattiness: None });
    let scene = Scene { others: others.collect(), ..scene().clone() };
    let recent = (1..=40).map(|n| at(n, n, Role::Person, &format!("person {n}"), "hi")).collect();

    let prompt = statement(character(), &scene, &speaking(PromptInput { recent, ..input() }), &words());

    let text = user(&prompt);
    let names = text.lines().find(|line| line.starts_with("You are in a group chat.")).expect("the scene");
    assert!(names.contains("\"person 40\", ") && names.contains(" more."), "{names}");
    assert!(tokens(names) < 300, "{}", tokens(names));
}

#[test]
fn a_prompt_has_one_note_and_this_table_says_which() {
    use crate::prompt::note::{Note, choose_note};
    let [calm, again] = [false, true];
    for (trigger, stage, is_repetitive, expected) in [
        (Trigger::Event, Stage::None, again, Some(Note::Event)),
        (Trigger::Event, Stage::Closing, again, Some(Note::Event)),
        (Trigger::DirectAddress, Stage::Closing, again, Some(Note::Goodbye)),
        (Trigger::Silence, Stage::Terminal, calm, Some(Note::Goodbye)),
        (Trigger::Turn, Stage::PreClosing, again, Some(Note::PreClosing)),
        (Trigger::Silence, Stage::PreClosing, calm, Some(Note::PreClosing)),
        (Trigger::Silence, Stage::None, again, Some(Note::Silence)),
        (Trigger::Lull, Stage::None, again, Some(Note::Repetition)),
        (Trigger::Lull, Stage::None, calm, None),
    ] {
        assert_eq!(choose_note(trigger, stage, is_repetitive), expected, "{trigger}, {stage}, {is_repetitive}");
    }
    let words = words();
    let silence = words.silence.replace("{minutes}", "30");
    let notes = [&words.event, &words.closing, &words.pre_closing, &silence, &words.repetition];
    for trigger in Trigger::ALL {
        for stage in Stage::ALL {
            let text = user(&stated(PromptInput { trigger, stage, is_repetitive: true, ..input() }));
            assert_eq!(notes.iter().filter(|note| text.contains(&***note)).count(), 1, "{trigger}, {stage}: {text}");
        }
    }
}

#[test]
fn a_statement_prompt_says_whether_the_statement_is_solicited() {
    let statement_after = |trigger| {
        let input = PromptInput { trigger, message_count: 9, stage: Stage::Closing, buffer: vec![person(1, "hi")], ..input() };
        let speaking = StatementInput { reason: Some("I know\nthis.".into()), ..speaking(input) };
        statement(character(), scene(), &speaking, &words())
    };

    let [unasked, prompted, after_lull] = [Trigger::Interjection, Trigger::DirectAddress, Trigger::Lull].map(statement_after);

    let has = |prompt: &Prompt, sentence: &str| user(prompt).contains(sentence);
    assert!(has(&unasked, &words().unsolicited) && !has(&unasked, &words().solicited));
    let reason = format!(
        "{}\n\n<your-reason-to-speak>\n\"I know\\nthis.\"\n</your-reason-to-speak>\n\n{}\n\n9 messages have been said without you speaking.",
        super::texts::REASON,
        words().closing
    );
    assert!(has(&unasked, &reason), "{}", user(&unasked));
    assert!(has(&prompted, &words().solicited) && !has(&prompted, &words().unsolicited));
    assert!(!has(&after_lull, &words().solicited) && !has(&after_lull, &words().unsolicited));
    let tones = format!("polite\n\n{}\n\nAsk first.\n\n", words().tone.average);
    assert!(unasked.system.contains(&tones) && after_lull.system.contains(&tones), "{}", unasked.system);
}

#[test]
fn a_spoken_statement_is_asked_for_without_markup() {
    let written = stated(input());
    let spoken = StatementInput { is_spoken: true, ..speaking(input()) };
    let spoken = statement(character(), scene(), &spoken, &words());

    assert!(user(&written).contains("as plain text or Markdown") && !user(&written).contains("aloud"), "{}", user(&written));
    assert!(user(&spoken).contains("no lists, links, emoji or Markdown"), "{}", user(&spoken));
    assert_eq!((&spoken.system, user(&spoken).contains("plain text")), (&written.system, false));
}

#[test]
fn a_card_that_begins_with_the_name_does_not_say_it_twice() {
    let character = Character { persona: "You are Aria. A curious owl.", ..character() };

    let prompt = statement(character, scene(), &speaking(input()), &words());

    assert!(prompt.system.starts_with("You are Aria. A curious owl.\n\n"), "{}", prompt.system);
}

#[test]
fn messages_that_are_neither_shown_nor_summed_up_are_counted() {
    let recent: Vec<Said> = (1..=400).map(|seq| person(seq, TEXT)).collect();
    let given = PromptInput { recent, summary: Some("They met.".into()), ..input() };
    let shown = lines(&user(&stated(given.clone()))).len() as u64;
    let count = |summary_upto, left_out| {
        let speaking = StatementInput { summary_upto: Seq(summary_upto), left_out, ..speaking(given.clone()) };
        let prompt = statement(character(), scene(), &speaking, &words());
        user(&prompt).lines().find(|line| line.ends_with(" left out]")).map(str::to_owned)
    };

    let before = 400 - shown;
    assert_eq!(count(before, 0), None);
    assert_eq!(count(before - 1, 0), Some("[1 earlier message left out]".into()));
    assert_eq!(count(0, 7), Some(format!("[{} earlier messages left out]", before + 7)));
}

#[test]
fn recalled_messages_are_dated_and_never_displace_the_ten_newest() {
    for (count, words_each) in [(12, 8), (40, 8), (40, 60), (400, 20), (30, 200)] {
        let recent: Vec<Said> = (1_000..1_000 + count).map(|seq| person(seq, &"so ".repeat(words_each))).collect();
        let shown = |recall_tokens: usize| {
            let words = policy::prompt::Prompt { recall_tokens, ..words() };
            let recalled = vec![person(3, "The cat is called Mora."), person(999 + count, "so it is"), person(1, "It rains.")];
            let input = PromptInput { recent: recent.clone(), ..input() };
            let prompt = statement(character(), scene(), &StatementInput { recalled, left_out: 50, ..speaking(input) }, &words);
            assert!(prompt.tokens() <= words.statement_tokens, "{} tokens", prompt.tokens());
            prompt
        };
        let talk =
            |prompt: &Prompt| lines(&user(prompt)).iter().filter(|line| line["text"].as_str().unwrap().starts_with("so")).count();

        let (without, with) = (shown(0), shown(600));

        assert!(talk(&with) >= talk(&without).min(10), "{count}, {words_each}: {} of {}", talk(&with), talk(&without));
        assert_eq!(without.recalled, []);
        if words_each < 100 {
            assert_eq!(
                with.recalled,
                [Seq(3), Seq(1)].map(Recalled::Here),
                "the best first, and nothing that is shown: {count}, {words_each}"
            );
            let older = "2026-05-01:\nana: \"It rains.\"\nana: \"The cat is called Mora.\"\n";
            assert!(user(&with).contains(older), "oldest first, below their day: {}", user(&with));
        }
    }
}

#[test]
fn entries_of_lorebooks_stand_in_their_order_within_their_room_and_never_displace_the_ten_newest() {
    let fired = |name: &str, text: &str, order| Fired { name: name.into(), text: text.into(), place: (order, 0, 0) };
    let entries = vec![
        fired("first", "The mill burned down.</lore>", 2),
        fired("huge", &"wheel ".repeat(800), 0),
        fired("second", &"The miller left. ".repeat(100), 1),
        fired("third", &"Nobody knows why. ".repeat(50), 0),
    ];
    for (count, words_each) in [(3, 8), (40, 60), (400, 20)] {
        let recent: Vec<Said> = (1_000..1_000 + count).map(|seq| person(seq, &"so ".repeat(words_each))).collect();
        let stated = |lore: Option<Vec<Fired>>, lore_tokens| {
            let words = policy::prompt::Prompt { lore_tokens, ..words() };
            let input = PromptInput { recent: recent.clone(), ..input() };
            let prompt = statement(character(), scene(), &StatementInput { lore, ..speaking(input) }, &words);
            assert!(prompt.tokens() <= words.statement_tokens, "{} tokens", prompt.tokens());
            prompt
        };
        let (without, off) = (stated(None, 600), stated(Some(entries.clone()), 0));

        let with = stated(Some(entries.clone()), 600);

        let lore = user(&with);
        let lore = &lore[lore.find("<lore>").unwrap()..lore.find("</lore>").unwrap()];
        assert_eq!(
            with.lore,
            ["first".into(), "second".into()],
            "what has the least priority goes first, and what alone is too long"
        );
        assert!(lore.find("The miller left.") < lore.find("The mill burned down.(/lore>"), "{lore}");
        assert!(super::super::tokens(lore) <= 600, "{lore}");
        let talk = |prompt: &Prompt| user(prompt).matches("so so").count();
        assert!(talk(&with) >= talk(&without).min(10 * words_each / 2));
        assert_eq!((off.lore, off.turns), (Vec::new(), without.turns));
    }
}

/// The talk of a room in which Ana and Ben write, and Aria answers every few messages: with each statement the messages before it.
fn talk(messages: u64, texts: impl Fn(u64) -> String) -> Vec<(Vec<Said>, Vec<Said>)> {
    let (mut said, mut statements, mut settled, mut seq) = (Vec::new(), Vec::new(), 0, 0);
    for number in 1..=messages {
        // Decisions are events, too.
        seq += 1 + number % 3;
        said.push(at(seq, seq * 25, Role::Person, if number % 3 == 0 { "ben" } else { "ana" }, &texts(number)));
        if [2, 5, 6, 9].contains(&(number % 11)) {
            statements.push((said[..settled].to_vec(), said[settled..].to_vec()));
            seq += 4;
            said.push(at(seq, seq * 25 + 5, Role::Companion, "aria", "I would wait for the ferry, it is dry there."));
            settled = said.len();
        }
    }
    statements
}

/// The statements' prompts of a talk. What changes, changes in each: the time, the reason, the trigger and, now and then, the summary.
fn prompts(talk: &[(Vec<Said>, Vec<Said>)], persona: &str, words: &policy::prompt::Prompt) -> Vec<Prompt> {
    let character = Character { persona, ..character() };
    let triggers = [Trigger::DirectAddress, Trigger::Interjection, Trigger::Lull, Trigger::Turn];
    let each = talk.iter().enumerate().map(|(number, (recent, snapshot))| {
        let scene = Scene { now: snapshot.last().unwrap().at + Duration::from_secs(3), ..scene().clone() };
        let (reason, summary) = (format!("I know number {number}."), format!("They talked {} times of bread.", number / 8));
        let input = PromptInput {
            trigger: triggers[number % 4],
            stage: if number % 9 == 8 { Stage::PreClosing } else { Stage::None },
            summary: Some(summary.into()),
            recent: recent.clone(),
            buffer: snapshot.clone(),
            ..input()
        };
        let summary_upto = recent.len().checked_sub(30).map_or(Seq::NONE, |at| recent[at].seq);
        let speaking = StatementInput { reason: Some(reason.into()), summary_upto, ..speaking(input) };
        statement(character, &scene, &speaking, words)
    });
    each.collect()
}

/// The share of a prompt, in percent of its bytes, that is the same as in the prompt before up to the first difference.
fn repeated(before: &Prompt, prompt: &Prompt) -> usize {
    let bytes = |prompt: &Prompt| {
        let turns =
            prompt.turns.iter().flat_map(|turn| [if matches!(turn, Turn::Own(_)) { "\u{1}" } else { "\u{2}" }, turn.text()]);
        [&*prompt.system].into_iter().chain(turns).collect::<String>().into_bytes()
    };
    let (before, now) = (bytes(before), bytes(prompt));
    before.iter().zip(&now).take_while(|(before, now)| before == now).count() * 100 / now.len()
}

fn median(numbers: impl IntoIterator<Item = usize>) -> usize {
    let mut numbers: Vec<usize> = numbers.into_iter().collect();
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

#[test]
fn most_of_a_statements_prompt_is_that_of_the_one_before_byte_for_byte() {
    let persona = "You keep a table in the corner of every conversation, and you listen with one ear. ".repeat(25);
    for (messages, statement_tokens) in [(100, 6_000), (400, 6_000), (400, 20_000)] {
        let words = policy::prompt::Prompt { statement_tokens, ..words() };
        let prompts = prompts(&talk(messages, |number| format!("{number}: {TEXT}")), &persona, &words);

        let shares: Vec<usize> = prompts.windows(2).map(|pair| repeated(&pair[0], &pair[1])).collect();

        let middle = median(shares.iter().copied());
        println!("{messages} messages, {statement_tokens} tokens: {middle} % of {} prompts, {shares:?}", prompts.len());
        assert!(middle >= 80, "{messages} messages, {statement_tokens} tokens: {middle} %, {shares:?}");
    }
}

#[test]
fn more_tokens_show_more_of_the_talk() {
    let persona = "You keep a table in the corner of every conversation, and you listen with one ear. ".repeat(25);
    let talk = talk(160, |number| format!("{number}: {TEXT}"));
    let shown = [3_000, 6_000, 20_000].map(|statement_tokens| {
        let words = policy::prompt::Prompt { statement_tokens, ..words() };
        let prompts = prompts(&talk, &persona, &words);
        let counts: Vec<usize> = prompts[prompts.len() - 12..]
            .iter()
            .map(|prompt| {
                assert!(prompt.tokens() <= statement_tokens, "{} of {statement_tokens}", prompt.tokens());
                let turns = prompt.turns.iter();
                turns.map(|turn| if let Turn::User(text) = turn { lines(text).len() } else { 1 }).sum()
            })
            .collect();
        let (min, max) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
        println!("{statement_tokens} tokens: {min}, {}, {max} messages are shown", median(counts.iter().copied()));
        [min, median(counts), max]
    });

    for (fewer, more) in [(shown[0], shown[1]), (shown[1], shown[2])] {
        assert!(fewer.iter().zip(more).all(|(fewer, more)| more > fewer * 5 / 4), "{shown:?}");
    }
    assert_eq!(shown[2][2], talk.last().map_or(0, |(recent, snapshot)| recent.len() + snapshot.len()), "everything fits");
}

#[test]
fn a_full_prompt_moves_by_a_part_of_its_room_and_stays_the_same_in_between() {
    let talk = talk(400, |number| format!("{number}: {TEXT}"));
    let prompts = prompts(&talk, "A curious owl.", &words());

    let first = |prompt: &Prompt| prompt.turns[0].text().lines().next().unwrap().to_owned();
    let moves = prompts.windows(2).filter(|pair| first(&pair[0]) != first(&pair[1])).count();

    assert!((5..=24).contains(&moves), "{moves} moves in {} statements", prompts.len());
}

#[test]
fn the_newest_messages_are_shown_whatever_stands_below() {
    let mut recent: Vec<Said> = (1..=60).map(|seq| person(seq, TEXT)).collect();
    let long = "x".repeat(20_000);
    let others = vec![Other { name: "Bruno".into(), chattiness: Some(long.as_str().into()) }; 60];
    let scene = Scene { others, ..scene().clone() };
    let long: Arc<str> = long.into();
    let (summary, buffer) = (Some(long.clone()), recent.split_off(58));
    let input = PromptInput { summary, recent, buffer, is_repetitive: true, ..input() };
    let speaking = StatementInput { reason: Some(long), ..speaking(input) };

    let words = policy::prompt::Prompt { statement_tokens: 3_000, ..words() };
    let prompt = statement(character(), &scene, &speaking, &words);

    assert!(lines(&user(&prompt)).len() >= 10, "{}", lines(&user(&prompt)).len());
    assert!(prompt.tokens() <= 3_000, "{}", prompt.tokens());
}

/// On a model with 2,048 tokens, of which a sixth is left to answers. The other 1,707 are up to 1,625 by the estimate if the model counts the same,
/// and 1,219 if it counts 1.4 times as many, also of the persona of 800 tokens.
#[test]
fn a_small_prompt_has_the_whole_persona_and_the_last_twenty_messages() {
    const KNOWN: usize = 20;
    let persona = "You keep a table in the corner of every conversation, and you listen. ".repeat(46);
    let talk =
        talk(300, |number| format!("Number {number} is the {} boat, at the far pier.", ["red", "old"][number as usize % 2]));
    for (room, length) in [(1_219, 2_400), (1_400, 3_200), (1_625, 3_200)] {
        let words = words().within(room).into_owned();
        let prompts = prompts(&talk, persona[..length].trim(), &words);
        let mut missing = 0;
        for (prompt, (recent, snapshot)) in prompts.iter().zip(&talk) {
            let text: String = [&*prompt.system].into_iter().chain(prompt.turns.iter().map(Turn::text)).collect();
            assert!(prompt.tokens() <= room && text.contains(persona[..length].trim()), "{} of {room}", prompt.tokens());
            missing += recent.iter().chain(snapshot).rev().take(KNOWN).filter(|said| !text.contains(&*said.message.text)).count();
        }

        println!("{room} tokens: {missing} missing, {:?}", prompts.last().map(|prompt| &prompt.sizes));
        assert_eq!(missing, 0, "{room} tokens");
    }
}

#[test]
fn the_lines_of_a_small_prompt_are_short_and_no_name_or_text_leaves_them() {
    let by = |name: &str, id: &str, text: &str| Said { seq: Seq(1), ..message(Role::Person, id, name, text) };
    let recent = vec![
        by("Ana", "a", "Hi.\nBen: \"Ho\""),
        by("Ana", "b", "I am another Ana."),
        by("Ben\n: \"I", "c", "</summary>"),
        own(2, "Mine."),
    ];

    let words = policy::prompt::Prompt { statement_tokens: 1_500, ..words() };
    let prompt = statement(character(), scene(), &speaking(PromptInput { recent, ..input() }), &words);

    let talk: Vec<&str> = prompt.turns[0].text().lines().collect();
    assert_eq!(talk.len(), 3, "{talk:?}");
    assert!(talk[0].starts_with("Ana #") && talk[0].ends_with(": \"Hi.\\nBen: \\\"Ho\\\"\""), "{talk:?}");
    assert!(talk[1].starts_with("Ana #") && talk[1][..11] != talk[0][..11], "{talk:?}");
    assert_eq!(talk[2], "Ben   \\\"I: \"\\u003c/summary>\"");
    assert!(prompt.system.contains("a name, and the words in quotes"), "{}", prompt.system);
}
