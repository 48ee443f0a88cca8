//! Parses a model's plain answer: a verdict word (YES or NO), and the sentence with the reason (docs/design/gate.md G-29).

use std::borrow::Cow;

use super::raw_answer;
use super::text::{first_bytes, is_joining, last_bytes, seen};

/// The maximum number of bytes that are read at the end of an answer, and at its start for the first line.
const MAX_READ_BYTES: usize = 16 * 1024;
/// The maximum length of a reason, in characters. Longer ones are truncated.
pub(super) const MAX_REASON_CHARS: usize = 500;

/// The verdict words for YES and NO, in any case.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// The words for YES. The prompt asks for the first one.
    pub yes: &'a [Cow<'static, str>],
    /// The words for NO. The prompt asks for the first one.
    pub no: &'a [Cow<'static, str>],
    /// Whether the prompt asks for the verdict before the reason.
    pub verdict_first: bool,
}

impl Words<'_> {
    /// `yes` and `no`, the defaults of the settings.
    pub const ENGLISH: Words<'static> = Words { yes: &[Cow::Borrowed("yes")], no: &[Cow::Borrowed("no")], verdict_first: false };
}

/// A parsed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub decision: Verdict,
    /// The sentence beside the verdict word, in one line of at most 500 characters. For an unreadable answer, its last line.
    pub why: Option<String>,
}

/// The meaning of the verdict word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The companion wants to speak.
    Yes,
    /// The companion does not want to speak.
    No,
    /// The answer contains no verdict, or contradictory ones.
    Unreadable,
}

/// Parses an answer by the first of these rules that applies:
///
/// 1. the last line is one verdict word,
/// 2. the last line begins with one,
/// 3. the last line ends with one,
/// 4. the first line is or begins with one.
///
/// If no rule applies, if a line gives the reason ("Reason: …") or if the prompt asks for the verdict first, labelled lines
/// ("Decision: NO", `<decision>NO</decision>`) count instead. If these contradict each other, the answer is unreadable.
///
/// A verdict word in quotation marks at the end of the last line, after words other than a label, counts only if no other rule
/// applies.
///
/// Lines without letters or digits do not count. Verdict words are `prompt.yes_words` and `prompt.no_words`, in any case, without
/// the punctuation, Markdown and signs around them. A line *begins* with a verdict word only if the end of the line, punctuation,
/// a spaced dash, "because" or "please" follows: "No problem, I'll answer" does not. An answer whose last line begins with one
/// verdict and ends with the other is unreadable, unless "because" or a dash follows the first. If the prompt asks for the
/// verdict before the reason ([`Words::verdict_first`]), rule 4 comes first.
///
/// The model's thoughts do not count. A thought that is closed without having been opened may be an answer that quotes the tag.
/// So if the text before it decides the opposite, the answer is unreadable.
pub fn read(text: &str, words: Words<'_>) -> Reading {
    let seen = raw_answer::decision(text);
    let reading = labelled(&seen.text, words).unwrap_or_else(|| read_visible(&seen.text, words));
    let is_contradicted = seen.unopened.is_some_and(|before| is_opposite_decided(before, reading.decision, words));
    let decision = if is_contradicted { Verdict::Unreadable } else { reading.decision };
    Reading { decision, ..reading }
}

/// The verdict at the end of a sentence.
pub(super) fn verdict_at_end(sentence: &str, words: Words<'_>) -> Verdict {
    trailing(sentence, words).map_or(Verdict::Unreadable, |(verdict, _)| verdict)
}

/// Whether a text decides the opposite, by its first sentence, by a line of one word, or as a whole.
pub(super) fn is_opposite_decided(text: &str, decision: Verdict, words: Words<'_>) -> bool {
    let opposite = match decision {
        Verdict::Yes => Verdict::No,
        Verdict::No => Verdict::Yes,
        Verdict::Unreadable => return false,
    };
    let text = text.trim();
    // A question contains no decision.
    let first = text.split_inclusive(['.', '!', '?', ';', '\n']).next().filter(|first| !first.ends_with('?'));
    let is_word = |line: &&str| line.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count() == 1;
    let last = Some(text).filter(|text| !text.ends_with('?'));
    text.lines().filter(is_word).chain(first).chain(last).any(|part| read_visible(part, words).decision == opposite)
}

fn read_visible(answer: &str, words: Words<'_>) -> Reading {
    let tail = last_bytes(answer, MAX_READ_BYTES);
    let mut lines = tail.rsplit(LINE_ENDS).filter(has_words);
    let Some(last) = lines.next() else {
        return Reading { decision: Verdict::Unreadable, why: None };
    };
    let begun_first =
        || first_bytes(answer, MAX_READ_BYTES).split(LINE_ENDS).find(has_words).and_then(|first| leading(first, words));
    if let Some(begun) = begun_first().filter(|_| words.verdict_first) {
        let why = Some(begun.rest)
            .filter(has_words)
            .or_else(|| first_bytes(answer, MAX_READ_BYTES).split(LINE_ENDS).filter(has_words).nth(1));
        return Reading { decision: begun.verdict, why: why.and_then(sentence) };
    }
    let begins_before_the_cut = tail.len() < answer.len() && std::ptr::eq(last.as_ptr(), tail.as_ptr());

    let begun = leading(last, words).filter(|_| !begins_before_the_cut);
    if let Some(begun) = begun.as_ref().filter(|begun| !has_words(&begun.rest)) {
        return Reading { decision: begun.verdict, why: lines.next().and_then(sentence) };
    }
    let ended = trailing(last, words).filter(|(_, before)| !(begins_before_the_cut && before.is_empty()));
    let is_quoted = ended.is_some_and(|(_, before)| !is_label(before)) && ends_quoted(last);
    let (begun, ended) = match is_quoted {
        true if begun.is_some() => (begun, None),
        true if begun_first().is_some() => (None, None),
        _ => (begun, ended),
    };
    match (begun, ended) {
        (Some(begun), Some((verdict, _))) if begun.verdict != verdict && !begun.is_explained => {
            Reading { decision: Verdict::Unreadable, why: sentence(last) }
        }
        (Some(begun), _) => Reading { decision: begun.verdict, why: sentence(begun.rest) },
        (None, Some((verdict, before))) if is_label(before) => {
            Reading { decision: verdict, why: lines.next().and_then(sentence) }
        }
        (None, Some((verdict, before))) => Reading { decision: verdict, why: sentence(before) },
        (None, None) => match begun_first() {
            Some(begun) => {
                let beside = Some(begun.rest).filter(has_words).unwrap_or(last);
                Reading { decision: begun.verdict, why: sentence(beside) }
            }
            None => Reading { decision: Verdict::Unreadable, why: sentence(last) },
        },
    }
}

/// Parses an answer with labelled lines for the decision and, optionally, the reason.
fn labelled(answer: &str, words: Words<'_>) -> Option<Reading> {
    let mut lines: Vec<&str> = last_bytes(answer, MAX_READ_BYTES).split(LINE_ENDS).filter(has_words).collect();
    let is_reason =
        |line: &&str| tokens(line).next().is_some_and(|label| REASONS.iter().any(|known| label.eq_ignore_ascii_case(known)));
    let last = lines.last()?;
    let is_asked_first =
        words.verdict_first || lines.iter().any(is_reason) || read_visible(answer, words).decision == Verdict::Unreadable;
    let mut verdicts = lines.iter().enumerate().filter_map(|(at, line)| labelled_verdict(line, lines.get(at + 1), words));
    let verdict = verdicts.next().filter(|_| is_asked_first)?;
    if verdicts.any(|other| other != verdict) {
        return Some(Reading { decision: Verdict::Unreadable, why: sentence(last) });
    }
    lines.retain(|line| !tokens(line).next().is_some_and(is_label));
    let why = lines.iter().find(|line| is_reason(line)).or(lines.first());
    Some(Reading { decision: verdict, why: why.and_then(|line| sentence(line)) })
}

/// The verdict of a line with a decision label. The verdict may also be alone in the line after its label.
fn labelled_verdict(line: &str, next: Option<&&str>, words: Words<'_>) -> Option<Verdict> {
    let mut parts: Vec<&str> = tokens(line).collect();
    let label = parts.iter().take_while(|part| is_label(part)).count();
    if label == parts.len() {
        parts.extend(next.into_iter().flat_map(|next| tokens(next)));
    }
    let (verdict, rest) = parts.get(label..)?.split_first()?;
    let names = parts[..label].iter().any(|part| DECISIONS.iter().any(|known| part.eq_ignore_ascii_case(known)));
    let is_alone = rest.iter().all(|part| is_label(part));
    let (found, _) = verdict_words(words).find(|(_, word)| strip_prefix(verdict, word) == Some(""))?;
    (names && is_alone).then_some(found)
}

/// The labels of a decision, and those of a reason.
const DECISIONS: [&str; 3] = ["answer", "decision", "verdict"];
const REASONS: [&str; 4] = ["reason", "reasoning", "explanation", "why"];

/// The words of a line, without the characters around them.
fn tokens(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

const LINE_ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

fn has_words(line: &&str) -> bool {
    line.contains(char::is_alphanumeric)
}

/// The verdict at the beginning of a line.
struct Begun<'a> {
    verdict: Verdict,
    /// "because" or a dash follows: the rest of the line explains the verdict.
    is_explained: bool,
    /// The text after the verdict word.
    rest: &'a str,
}

fn leading<'a>(line: &'a str, words: Words<'_>) -> Option<Begun<'a>> {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    verdict_words(words).find_map(|(verdict, word)| begun(verdict, strip_prefix(line, word)?))
}

/// A line that begins with a verdict word. `None` if the text after the word shows that it is not a verdict.
fn begun(verdict: Verdict, rest: &str) -> Option<Begun<'_>> {
    let spaced = rest.trim_start();
    let has_space = spaced.len() < rest.len();
    let is_dash = spaced.starts_with(['—', '–'])
        || has_space && spaced.strip_prefix('-').is_some_and(|after| after.is_empty() || after.starts_with(char::is_whitespace));
    let follows = |word| strip_prefix(spaced, word).is_some_and(|after| !after.starts_with(char::is_alphanumeric));
    let is_explained = is_dash || has_space && follows("because");
    let is_punctuated = spaced.starts_with(ENDS_CLAUSE) || rest.starts_with(CLOSES);
    let counts = !has_words(&rest) || is_explained || is_punctuated || has_space && follows("please");
    counts.then_some(Begun { verdict, is_explained, rest })
}

/// Punctuation that may follow a verdict word, also after a space.
const ENDS_CLAUSE: [char; 14] = ['.', ',', ';', ':', '!', '?', '…', '(', '。', '，', '、', '！', '？', '：'];
/// Closing characters that may follow a verdict word.
const CLOSES: [char; 9] = ['*', '`', ')', ']', '}', '"', '”', '»', '」'];

/// The verdict at the end of a line, and the text before it.
fn trailing<'a>(line: &'a str, words: Words<'_>) -> Option<(Verdict, &'a str)> {
    let line = line.trim_end_matches(|c: char| !c.is_alphanumeric());
    let (before, word) = line.rfind(separates).map_or(("", line), |at| line.split_at(at));
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let (verdict, _) = verdict_words(words).find(|(_, verdict)| strip_prefix(word, verdict) == Some(""))?;
    Some((verdict, before))
}

/// Quotation marks.
const QUOTES: [char; 11] = ['"', '“', '”', '„', '«', '»', '「', '」', '\'', '‘', '’'];

/// Whether the last word of a line ends a quotation that begins after other words.
fn ends_quoted(line: &str) -> bool {
    let end = line.trim_end_matches(|c: char| !c.is_alphanumeric());
    // An apostrophe is within a word.
    let opens = |(at, _): &(usize, &str)| !end[..*at].ends_with(char::is_alphanumeric);
    let opened = end.rmatch_indices(QUOTES).find(opens);
    line[end.len()..].contains(QUOTES) && opened.is_some_and(|(at, _)| has_words(&&end[..at]))
}

fn verdict_words<'a>(words: Words<'a>) -> impl Iterator<Item = (Verdict, &'a str)> {
    let yes = words.yes.iter().map(|word| (Verdict::Yes, &**word));
    yes.chain(words.no.iter().map(|word| (Verdict::No, &**word)))
}

/// The text after a word at the start of a text, in any case. `None` if the text does not begin with the word.
fn strip_prefix<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for expected in word.chars() {
        let found = rest.next()?;
        if found != expected && !found.to_lowercase().eq(expected.to_lowercase()) {
            return None;
        }
    }
    Some(rest.as_str())
}

/// Whether a character separates words even without white space.
fn separates(c: char) -> bool {
    c.is_whitespace() || matches!(c, ':' | ';' | ',' | '=' | '—' | '–' | '…' | '→' | '：' | '，' | '。')
}

/// Whether the text before the decision in its line is only a label.
fn is_label(before: &str) -> bool {
    let words: Vec<&str> = tokens(before).collect();
    words.len() <= 2
        && words.iter().all(|word| {
            ["final", "my", "the", "answer", "decision", "verdict", "a", "line", "2", "so"]
                .iter()
                .any(|label| word.eq_ignore_ascii_case(label))
        })
}

/// A line for a record: no control or direction characters, one space between words, no Markdown around it.
pub(super) fn sentence(line: &str) -> Option<String> {
    let mut kept = String::new();
    let mut length = 0;
    for c in seen(line.trim_matches(|c: char| c.is_whitespace() || "*_`#>\"“”-:→".contains(c))) {
        let c = if c.is_whitespace() || c.is_control() { ' ' } else { c };
        if c == ' ' && (kept.ends_with(' ') || kept.is_empty()) {
            continue;
        }
        if length == MAX_REASON_CHARS {
            // A joiner at the end would join nothing.
            kept.truncate(kept.trim_end_matches(is_joining).len());
            break;
        }
        kept.push(c);
        length += 1;
    }
    kept.truncate(kept.trim_end().len());
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Reading {
        super::read(text, Words::ENGLISH)
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        use Verdict::{No, Unreadable, Yes};

        for (text, expected) in [
            ("They asked me.\nYES", Yes),
            ("not mine\nNO", No),
            ("yes", Yes),
            ("No.", No),
            ("**YES**", Yes),
            ("`no`", No),
            ("Answer: YES!", Yes),
            ("**Answer:**NO", No),
            ("Decision:YES", Yes),
            ("I will stay out of it — NO", No),
            ("out of it—NO", No),
            ("YES 👍", Yes),
            ("YES 👍🏽\u{fe0f}", Yes),
            ("why\nYES\n\n  \n", Yes),
            ("```\nwhy\nNO\n```", No),
            ("why\r\nNO\r\n", No),
            ("YES\nNO", No),
            ("NO\nYES", Yes),
            ("> *no*", No),
            ("(yes)", Yes),
            ("Answer YES or NO", No),
            ("<think>I say NO</think>\nYES", Yes),
            ("<think>I say\nNO", Unreadable),
            ("YES\nbecause I like it", Yes),
            ("YES - because they asked me", Yes),
            ("Yes please", Yes),
            ("Yes, I'd love to!", Yes),
            ("No need to hold back.\nYES", Yes),
            ("NO because YES would be rude", No),
            ("NO — saying YES", No),
            ("No, well, YES", Unreadable),
            ("Yes. Or no.", Unreadable),
            ("No problem, I'll answer", Unreadable),
            ("No idea, honestly.", Unreadable),
            ("No-one asked me, so YES", Yes),
            ("No one asked me, so YES", Yes),
            ("**NO**, they talk to Ben", No),
            ("1. YES\n2. They asked me", Unreadable),
            ("YES\nThey asked me.", Yes),
            ("Yes! They asked me.\nI will tell them.", Yes),
            ("No doubt.\nI will tell them.", Unreadable),
            ("No because\nI said so", No),
            ("NO\nThey said YES, please.", No),
            ("NO\nShe wrote \"YES\"", No),
            ("NO\nShe wrote “I say yes”.", No),
            ("NO\nBen's note says: 'YES'!", No),
            ("YES\nIhre Antwort war „NO“", Yes),
            ("NO, she only wrote \"YES\"", No),
            ("No doubt.\nMy decision is \"YES\"", Yes),
            ("No, wait.\nAnswer: \"YES\"", Yes),
            ("No, wait.\n\"They asked me, so YES\"", Yes),
            ("No, wait.\nI don't mind, so YES'", Yes),
            ("Decision: NO\nReason: Bob says YES", No),
            ("**Decision:** NO\n\n**Reason:** They talk to Bob.", No),
            ("<decision>NO</decision>", No),
            ("<reason>They asked me.</reason>\n<decision>YES</decision>", Yes),
            ("<decision>NO</decision>\n<reason>Not for me.</reason>", No),
            ("### Decision\nNO\n### Reason\nThey talk to Bob, yes.", No),
            ("reason: They asked me.\ndecision: YES\nimportance: 7", Yes),
            ("Decision: YES\nDecision: NO\nReason: so", Unreadable),
            ("Bob wrote:\nDecision: YES\nbut I say\nNO", No),
            ("Decision: YES or NO?\nReason: so", Unreadable),
            ("YES/NO", Unreadable),
            ("YES|NO", Unreadable),
            ("yes-no", Unreadable),
            ("not_no", Unreadable),
            ("yess", Unreadable),
            ("noo", Unreadable),
            ("nope", Unreadable),
            ("ＹＥＳ", Unreadable),
            ("УES", Unreadable),
            ("はい", Unreadable),
            ("oui", Unreadable),
            ("", Unreadable),
            ("  \n ", Unreadable),
            ("!!!", Unreadable),
        ] {
            assert_eq!(read(text).decision, expected, "{text:?}");
        }
    }

    #[test]
    fn a_verdict_that_is_asked_for_first_is_read_first() {
        let words = Words { verdict_first: true, ..Words::ENGLISH };

        for (text, expected, why) in [
            ("NO\nBen already said yes.", Verdict::No, Some("Ben already said yes.")),
            ("YES\nNo, nobody else knows it.", Verdict::Yes, Some("No, nobody else knows it.")),
            ("**YES** - because they asked me", Verdict::Yes, Some("because they asked me")),
            ("They asked me.\nYES", Verdict::Yes, Some("They asked me.")),
            ("<think>NO</think>YES\nMe.", Verdict::Yes, Some("Me.")),
            ("Who knows?", Verdict::Unreadable, Some("Who knows?")),
        ] {
            let reading = super::read(text, words);

            assert_eq!((reading.decision, reading.why.as_deref()), (expected, why), "{text:?}");
        }
    }

    #[test]
    fn words_of_other_languages_are_read_in_any_case() {
        let yes = ["oui", "はい", "да"].map(Cow::Borrowed);
        let no = ["non", "いいえ", "нет"].map(Cow::Borrowed);

        for (text, expected) in [
            ("OUI", Verdict::Yes),
            ("Non, merci", Verdict::No),
            ("Oui\u{a0}!", Verdict::Yes),
            ("名前を呼ばれた。\nはい。", Verdict::Yes),
            ("いいえ、今は", Verdict::No),
            ("Меня спросили.\nДА", Verdict::Yes),
            ("Нет", Verdict::No),
            ("YES", Verdict::Unreadable),
            ("Nonsense", Verdict::Unreadable),
        ] {
            assert_eq!(super::read(text, Words { yes: &yes, no: &no, verdict_first: false }).decision, expected, "{text:?}");
        }
    }

    #[test]
    fn the_sentence_beside_it_is_the_reason() {
        for (text, expected) in [
            ("They asked me.\nYES", Some("They asked me.")),
            ("first\n\n*Not  mine.*\n\n**NO**", Some("Not mine.")),
            ("Not mine.\nAnswer: NO", Some("Not mine.")),
            ("Not mine. NO", Some("Not mine.")),
            ("a\u{202e}b\u{7}c\u{200b}\td\nNO", Some("ab c d")),
            ("NO", None),
            ("YES - because they asked me", Some("because they asked me")),
            ("YES\nThey asked me.", Some("They asked me.")),
            ("Yes! They asked me.\nI will tell them.", Some("! They asked me.")),
            ("so what", Some("so what")),
            ("", None),
        ] {
            assert_eq!(read(text).why.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn endless_answers_are_bounded() {
        let long = format!("{}\nNO", "why ".repeat(1_000_000));
        let thoughtful = "</think>".repeat(100_000);
        let wordy = "a".repeat(1_000_000);
        let straddling = format!("kno{}", "!".repeat(MAX_READ_BYTES - 2));

        assert_eq!(read(&long).decision, Verdict::No);
        assert_eq!(read(&thoughtful).decision, Verdict::Unreadable);
        assert!(read(&long).why.is_some_and(|why| why.chars().count() <= MAX_REASON_CHARS));
        assert_eq!(read(&wordy).why.map(|why| why.len()), Some(MAX_REASON_CHARS));
        assert_eq!(read(&straddling).decision, Verdict::Unreadable);
    }

    proptest! {
        #[test]
        fn no_answer_panics(text in any::<String>(), noise in "[\\PC\n]{0,60}") {
            read(&text);
            read(&noise);
        }

        #[test]
        fn whatever_comes_before_the_last_line_does_not_decide(text in "[^<>]*", yes in any::<bool>()) {
            let answer = format!("{text}\n{}", if yes { "YES" } else { "NO" });

            prop_assert_eq!(read(&answer).decision, if yes { Verdict::Yes } else { Verdict::No });
        }
    }
}
