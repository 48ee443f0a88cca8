//! Detects endless repetition: small models may repeat a word, a sentence or a paragraph without an end.

use super::is_whole;

/// The maximum size of a repeated part in bytes. Longer parts are not detected.
const LONGEST_PART: usize = 1_024;
/// The minimum number of repetitions of a part at the end of a text …
const TIMES: usize = 4;
/// … and their minimum size in bytes.
const SHORTEST: usize = 400;

/// The start of the repetition at the end of a text, moved to the end of a whole sentence if there is one. `None`: the text does not end with a
/// repetition.
pub fn repetition(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
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
    let mut ends = (begin..=begin + part).filter(|at| text.is_char_boundary(*at));
    ends.clone().find(|at| is_whole(&text[..*at])).or_else(|| ends.next())
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
    fn what_people_write_is_no_repetition() {
        let poem = "The tide comes in, the tide goes out,\nthe gulls are white and loud about.\n".to_owned();
        for text in [poem.repeat(3), "ha".repeat(60), "Aaaa!".to_owned() + &"a".repeat(300), "=".repeat(120), String::new()] {
            assert_eq!(repetition(&text), None, "{text}");
        }
        let list: String = (0..80).map(|number| format!("{number}. Item {number}\n")).collect();
        assert_eq!(repetition(&list), None);
    }

    proptest! {
        #[test]
        fn it_begins_within_the_text(text in "[ab é]{0,40}", part in "[ab港]{0,9}", times in 0_usize..300) {
            let text = text + &part.repeat(times);
            if let Some(at) = repetition(&text) {
                prop_assert!(text.is_char_boundary(at) && text.len() - at >= SHORTEST);
            }
        }
    }
}
