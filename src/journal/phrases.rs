//! Shortens the JSON of records: a phrase that many records have is stored as two bytes, a mark and the number of the phrase. The id of a turn, which
//! follows one of them, is stored as 18 bytes.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// The byte before the number of a phrase. UTF-8 never has it, so JSON does not either.
const MARK: u8 = 0xff;

/// Instead of the number of a phrase: the 16 bytes that follow are 32 hexadecimal digits.
const DIGITS: u8 = 0xff;

/// The phrases, one a line. Stored records name them by their numbers, so lines are only ever added at the end, and there are at most 255.
static PHRASES: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("phrases.txt").lines().collect());

static AUTOMATON: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&*PHRASES).expect("the phrases are few and short")
});

/// Appends JSON with each phrase shortened.
pub(super) fn shorten_into(value: &mut Vec<u8>, json: &[u8]) {
    let mut done = 0;
    for found in AUTOMATON.find_iter(json) {
        // Nothing within the digits of a turn's id counts.
        if found.start() < done {
            continue;
        }
        value.extend_from_slice(&json[done..found.start()]);
        value.extend([MARK, found.pattern().as_u32() as u8]);
        done = found.end();
        if let Some(number) = json.get(done..done + 32).and_then(hexadecimal) {
            value.extend([MARK, DIGITS]);
            value.extend(number.to_be_bytes());
            done += 32;
        }
    }
    value.extend_from_slice(&json[done..]);
}

/// The number of 32 digits as a turn writes them.
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.as_bytes().iter().all(is_digit))?;
    u128::from_str_radix(digits, 16).ok()
}

/// The JSON that was shortened. `None`: it names a phrase that a newer version added.
pub(super) fn expanded(shortened: &[u8]) -> Option<Vec<u8>> {
    let mut json = Vec::with_capacity(shortened.len() * 3);
    expand_into(&mut json, shortened, usize::MAX)?;
    Some(json)
}

/// Appends the JSON that was shortened, and stops once there are at least `enough` bytes. `None`: it names a phrase that a newer version added.
pub(super) fn expand_into(json: &mut Vec<u8>, mut shortened: &[u8], enough: usize) -> Option<()> {
    while let Some(mark) = shortened.iter().position(|byte| *byte == MARK) {
        json.extend_from_slice(&shortened[..mark]);
        // Without a number the value was cut off, which reading the JSON reports.
        let Some((number, rest)) = shortened[mark + 1..].split_first() else { return Some(()) };
        shortened = rest;
        if *number == DIGITS {
            let Some((digits, rest)) = shortened.split_first_chunk() else { return Some(()) };
            json.extend(format!("{:032x}", u128::from_be_bytes(*digits)).bytes());
            shortened = rest;
        } else {
            json.extend_from_slice(PHRASES.get(usize::from(*number))?.as_bytes());
        }
        if json.len() >= enough {
            return Some(());
        }
    }
    json.extend_from_slice(shortened);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(json: &str) -> Vec<u8> {
        let mut value = Vec::new();
        shorten_into(&mut value, json.as_bytes());
        value
    }

    #[test]
    fn json_is_shortened_to_less_than_half_and_expanded_again() {
        let said = r#"{"at":1796050905291091,"event":{"event":"said","message":{"from":{"id":"Ana","name":"Ana","role":"user"},"text":"It rains \"again\", says \u00e9\u00ff.","modality":"text","address":{}}}}"#;

        let value = shortened(said);

        assert!(value.len() < said.len() / 2, "{} of {} bytes", value.len(), said.len());
        assert_eq!(expanded(&value).unwrap(), said.as_bytes());
    }

    #[test]
    fn the_id_of_a_turn_takes_eighteen_bytes_and_other_ids_stay() {
        let [turn, other] = ["ff0317f512c27746ea69354b4b19bcff", "FF0317f512c27746ea69354b4b19bcff"].map(|id| {
            let json = format!(r#"{{"at":5,"handled":1,"turn":"{id}","event":{{"event":"lull_fired"}}}}"#);
            let value = shortened(&json);
            assert_eq!(expanded(&value).unwrap(), json.as_bytes(), "{id}");
            value.len()
        });

        assert_eq!(turn + 32, other + 18);
    }

    #[test]
    fn words_that_look_like_phrases_come_back_as_they_were() {
        for text in PHRASES.iter().chain(&["ÿ", "", "\u{10ffff}", "{\"at\":{\"at\":"]) {
            assert_eq!(expanded(&shortened(text)).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_number_without_a_phrase_and_a_cut_end_are_found() {
        let unknown = u8::try_from(PHRASES.len()).ok();

        assert!(unknown.is_none_or(|number| expanded(&[MARK, number]).is_none()));
        assert_eq!(expanded(&[b'{', MARK]), Some(vec![b'{']));
        assert_eq!(expanded(&[b'{', MARK, DIGITS, 1, 2]), Some(vec![b'{']));
    }

    #[test]
    fn phrases_stay_as_stored_records_name_them() {
        let sum = PHRASES.iter().take(RELEASED).flat_map(|phrase| phrase.bytes().chain([b'\n']));
        let hash = sum.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));

        assert!(PHRASES.len() < 256 && PHRASES.iter().all(|phrase| phrase.len() > 2));
        assert_eq!((PHRASES.len() >= RELEASED, hash), (true, RELEASED_HASH), "a stored phrase was changed or moved");
    }

    /// The number of phrases in released versions, and their 64-bit FNV-1a hash.
    const RELEASED: usize = 250;
    const RELEASED_HASH: u64 = 0x969d_29d1_7024_14e9;
}
