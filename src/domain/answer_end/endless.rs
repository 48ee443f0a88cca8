//! Detects endless repetition: small models may repeat a word, a sentence or a paragraph without an end.

use std::ops::Range;

use super::is_whole;

/// The maximum size of a repeated part in bytes. Longer parts are not detected.
const LONGEST_PART: usize = 1_024;
/// The minimum number of repetitions of a part at the end of a text …
const TIMES: usize = 4;
/// … and their minimum size in bytes.
const SHORTEST: usize = 400;

/// The maximum distance, in bytes, of a counter from the beginning of its line or sentence: `Step 4:`, `**4.**`.
const MAX_BEFORE_COUNTER: usize = 24;

/// The start of the repetition at the end of a text, moved to the end of a whole sentence if there is one. Parts that differ only in a counter at the
/// beginning of a line or sentence count as repeated, too. `None`: the text does not end with a repetition.
pub fn repetition(text: &str) -> Option<usize> {
    let begin = repeated(text.as_bytes()).or_else(|| {
        let (uncounted, places) = without_counters(text)?;
        // Mere numbers are counted, not repeated.
        let begin = repeated(&uncounted)
            .filter(|begin| uncounted[begin.clone()].iter().any(|byte| !byte.is_ascii() || byte.is_ascii_alphabetic()))?;
        Some(places[begin.start]..places[begin.end])
    })?;
    let mut ends = (begin.start..=begin.end).filter(|at| text.is_char_boundary(*at));
    ends.clone().find(|at| is_whole(&text[..*at])).or_else(|| ends.next())
}

/// The first occurrence of the part that a text repeats at its end.
fn repeated(bytes: &[u8]) -> Option<Range<usize>> {
    let end: Vec<u8> = bytes.iter().rev().take(TIMES * LONGEST_PART).copied().collect();
    // The prefix function of Knuth, Morris and Pratt for `end`: for each position, the length of the longest border of the text up to it.
    let mut borders = vec![0; end.len()];
    let mut part = None;
    for at in 1..end.len() {
        let mut border = borders[at - 1];
        while border > 0 && end[at] != end[border] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(end[at] == end[border]);
        let (length, period) = (at + 1, at + 1 - borders[at]);
        if length >= SHORTEST && length >= TIMES * period && period <= LONGEST_PART {
            part = Some(period);
            break;
        }
    }
    let part = part?;
    let repeated = bytes.iter().rev().zip(bytes.iter().rev().skip(part)).take_while(|(one, other)| one == other).count();
    let begin = bytes.len() - repeated - part;
    Some(begin..begin + part)
}

/// The text with the first number of each line or sentence, if it is near its beginning, as a single zero. With the position in the text of each byte.
/// `None`: it has no such number.
fn without_counters(text: &str) -> Option<(Vec<u8>, Vec<usize>)> {
    let (mut kept, mut places) = (Vec::new(), Vec::new());
    // Where the line or sentence begins. None after its first number, which may have parts: `12:30`, `1.2`.
    let (mut begin, mut before, mut is_within, mut has_counter) = (Some(0), ' ', false, false);
    for (at, c) in text.char_indices() {
        let is_counter = c.is_numeric() && begin.is_some_and(|begin| at - begin <= MAX_BEFORE_COUNTER);
        if is_counter && !before.is_numeric() {
            (is_within, has_counter) = (true, true);
            kept.push(b'0');
            places.push(at);
        } else if !is_counter {
            kept.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            places.extend(at..at + c.len_utf8());
        }
        // The full stop after a number ends no sentence.
        if c == '\n' || matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？') && !before.is_numeric() {
            (begin, is_within) = (Some(at + c.len_utf8()), false);
        } else if is_within && !is_counter && !matches!(c, '.' | ':' | '-' | '/') {
            (begin, is_within) = (None, false);
        }
        before = c;
    }
    places.push(text.len());
    has_counter.then_some((kept, places))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_without_an_end_is_found_where_it_begins() {
        let before = "The harbour opens at six.";
        for part in [
            "\n",
            " the",
            " I am done.",
            "!",
            "\u{200b}",
            " 港は六時に開く。",
            &format!(" {}", "A long list of many things. ".repeat(9)),
        ] {
            let text = format!("{before}{}", part.repeat(800 / part.len() + 5));
            assert_eq!(repetition(&text).map(|at| &text[..at]), Some(before), "{part:?}");
        }
    }

    #[test]
    fn a_counter_makes_no_difference() {
        let before = "There are many ways.";
        let counted: [&dyn Fn(usize) -> String; 8] = [
            &|at| format!("\n{at}. I think so."),
            &|at| format!(" {at}) I think so!"),
            &|at| format!("\n\n**Step {at}:** Open the door. Then close it."),
            &|at| format!(" Attempt number {at} was wrong."),
            &|at| format!("\n- [{at:02}:{:02}] I think so.", at * 7 % 60),
            &|at| format!("\n第{at}步：打开门。"),
            &|at| format!("\n{at}. I think so. {}. You too.", at + 1),
            &|at| format!("\n{at}.\nI think so."),
        ];
        for part in counted {
            let text = (1..80).map(part).fold(before.to_owned(), |text, part| text + &part);
            for end in [text.len(), text.len() - 2] {
                let end = (0..=end).rev().find(|end| text.is_char_boundary(*end)).expect("the beginning");
                assert_eq!(repetition(&text[..end]).map(|at| &text[..at]), Some(before), "{text}");
            }
            let first = repetition(&text[before.len()..]).map(|at| text[before.len()..before.len() + at].trim());
            assert!(first.is_some_and(|first| !first.is_empty() && part(1).trim().starts_with(first)), "{first:?}");
        }
    }

    #[test]
    fn what_people_write_is_no_repetition() {
        let poem = "The tide comes in, the tide goes out,\nthe gulls are white and loud about.\n".to_owned();
        for text in [poem.repeat(3), "ha".repeat(60), "Aaaa!".to_owned() + &"a".repeat(300), "=".repeat(120), String::new()] {
            assert_eq!(repetition(&text), None, "{text}");
        }
        let list: String = (0..80).map(|number| format!("{number}. Item {number}\n")).collect();
        assert_eq!(repetition(&list), None);
        let numbers: String = (1..300).map(|number| format!("{number}\n")).collect();
        assert_eq!(repetition(&numbers), None);
        let things = ["salad", "wine", "bread", "tea", "cake", "fruit", "nuts", "rice", "beans"];
        let names = ["Ana", "Ben", "Cleo", "Dora", "Emil", "Fritz", "Greta"];
        let items: String = (1..60).map(|at| format!("{at}. {} brings {}.\n", names[at % 7], things[at / 7])).collect();
        assert_eq!(repetition(&items), None);
        let song: String =
            (1..99).rev().map(|at| format!("{at} bottles of beer, {at} bottles. Take one, {} are left.\n", at - 1)).collect();
        assert_eq!(repetition(&song), None);
    }

    proptest! {
        #[test]
        fn it_begins_within_the_text(text in "[ab1é\n]{0,40}", part in "[ab2 .港²\n]{0,9}", times in 0_usize..300) {
            let text = text + &part.repeat(times);
            if let Some(at) = repetition(&text) {
                // All but the first part are behind it.
                prop_assert!(text.is_char_boundary(at) && text.len() - at >= SHORTEST / TIMES * (TIMES - 1));
            }
        }
    }
}
