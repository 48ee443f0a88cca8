//! Splits an answer into sentences to speak, while the model still writes it (docs/design/voice.md A-20, A-21, A-61).

use std::sync::Arc;

use super::super::sentences::Sentences;
use super::pronounced::Pronounced;
use super::spoken_text::spoken_text;
use super::unspoken::{ends_in_code, ends_in_direction};

/// An unclosed link longer than this is spoken as written.
const MOST_HELD_CHARS: usize = 200;
/// Up to this length, text without spoken words is joined to the next sentence.
const MOST_SILENT_BYTES: usize = 2_000;
/// The number of a list item has at most this many digits.
const MOST_DIGITS: usize = 3;

/// Splits a streamed answer into sentences to speak. The boundaries of the streamed pieces have no influence.
///
/// A sentence that ends inside a link is held until the link ends, because only the label of a link is spoken. The same applies inside an address, a
/// block of code or a stage direction. The number of a list item is spoken with its item, and text without spoken words is joined to the next
/// sentence.
#[derive(Clone, Debug, Default)]
pub struct SpokenSentences {
    sentences: Sentences,
    /// The text that waits: its link, address, block of code or direction is still open, it has no spoken words, or it is the number of a list item.
    held: String,
}

impl SpokenSentences {
    pub fn of(text: &str) -> Vec<Arc<str>> {
        let mut sentences = Self::default();
        let mut all = sentences.push(text);
        all.extend(sentences.finish());
        all
    }

    /// Appends a piece of the text. Returns the sentences that are now complete, each with the white space before it.
    pub fn push(&mut self, piece: &str) -> Vec<Arc<str>> {
        let sentences = self.sentences.push(piece);
        sentences.iter().filter_map(|sentence| self.take_sentence(sentence)).collect()
    }

    /// Ends the text. Returns the rest.
    pub fn finish(mut self) -> Vec<Arc<str>> {
        let last = std::mem::take(&mut self.sentences).finish();
        let mut out: Vec<_> = last.iter().filter_map(|sentence| self.take_sentence(sentence)).collect();
        out.extend(spoken(&self.held));
        out
    }

    /// Appends a sentence to the held text. Returns the text to speak unless it must still be held.
    fn take_sentence(&mut self, sentence: &str) -> Option<Arc<str>> {
        self.held.push_str(sentence);
        if has_open_link(&self.held) || has_open_address(&self.held) || ends_in_code(&self.held) || ends_in_direction(&self.held)
        {
            return None;
        }
        // The number belongs to the next sentence.
        let next = self.held.split_off(item_number(&self.held).unwrap_or(self.held.len()));
        let shown = spoken(&self.held);
        let is_short = self.held.len() <= MOST_SILENT_BYTES;
        if shown.as_ref().is_some_and(|shown| next.is_empty() && is_short && Pronounced::plain(shown).is_silent()) {
            return None;
        }
        self.held = next;
        shown
    }
}

fn has_open_address(text: &str) -> bool {
    let last = text.split(char::is_whitespace).next_back().unwrap_or_default();
    last.contains("://") && !last.ends_with(['.', '!', '?', '…', '。', '！', '？']) && last.chars().count() <= 2 * MOST_HELD_CHARS
}

/// Whether a text ends inside a link, or inside a possible link.
fn has_open_link(text: &str) -> bool {
    let Some(begin) = text.rfind('[') else { return false };
    let link = &text[begin + 1..];
    let is_open = match link.split_once(']') {
        None => true,
        Some((_, rest)) => rest.starts_with('(') && !rest.contains([')', ']']),
    };
    // Brackets that never close hold back two sentences at most.
    is_open && link.chars().count() <= MOST_HELD_CHARS && text.chars().count() <= 2 * MOST_HELD_CHARS
}

/// The byte offset of a list item's number, including the white space before it, if a text ends with such a number: "1." or "2)" on a line of its
/// own.
fn item_number(text: &str) -> Option<usize> {
    let line = text.rfind('\n').map_or(0, |end| end + 1);
    let digits = text[line..].trim().strip_suffix(['.', ')'])?;
    let is_number = (1..=MOST_DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text[..line].trim_end().len())
}

/// Removes the markup of a sentence. `None` if nothing is left to say.
fn spoken(sentence: &str) -> Option<Arc<str>> {
    let gap = &sentence[..sentence.len() - sentence.trim_start().len()];
    let words = spoken_text(sentence);
    (!words.is_empty()).then(|| format!("{gap}{words}").into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sentences_are_spoken_without_their_markup_and_are_the_text_together() {
        let text = "**Yes.** I _like_ it.\n\n- Oars, and\n- a [boat](https://boats.example/). \u{1f600}";

        let sentences = SpokenSentences::of(text);

        assert_eq!(sentences.concat(), "Yes. I like it.\n\nOars, and\na boat.");
        assert_eq!(&*sentences[0], "Yes.");
    }

    #[test]
    fn brackets_that_never_close_do_not_hold_back_a_whole_text() {
        let sentences = SpokenSentences::of(&"[Never closed. ".repeat(50));

        assert!(sentences.iter().all(|sentence| sentence.chars().count() <= 3 * MOST_HELD_CHARS), "{sentences:?}");
        assert!(sentences.len() > 1);
    }

    #[test]
    fn a_number_is_spoken_with_its_item() {
        for (text, expected) in [
            ("I like:\n1. black\n2. green", &["I like:", "\n1. black", "\n2. green"][..]),
            ("1. Black tea.\n2. Green tea.\n\nThat is all.", &["1. Black tea.", "\n2. Green tea.", "\n\nThat is all."]),
            ("- a\n  10. ten", &["a", "\n  10. ten"]),
            ("It was 1999. Then it rained.", &["It was 1999.", " Then it rained."]),
            ("We met in\n1999. Then it rained.", &["We met in\n1999.", " Then it rained."]),
            ("3.", &["3."]),
        ] {
            assert_eq!(SpokenSentences::of(text).iter().map(|sentence| &**sentence).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_spoken_as_written_stays_whole_and_goes_with_a_sentence() {
        let code = format!("```rust\n{}```", "let x = \"One. Two.\"; // and more\n".repeat(20));
        let address = format!("https://a.example/{}", "b/".repeat(150));
        for (text, expected) in [
            ("*sighs deeply* I do not know. Ask Bruno.", &["*sighs deeply* I do not know.", " Ask Bruno."][..]),
            ("*Looks up. Sighs.* Oh. *waves* Bye.", &["*Looks up. Sighs.* Oh.", " *waves* Bye."]),
            ("*nods.* Yes. *waves.*", &["*nods.* Yes.", " *waves.*"]),
            ("*smiles*", &["*smiles*"]),
            (
                &format!("Well. Try this:\n{code}\nIt counts. Really."),
                &["Well.", &format!(" Try this:\n{code}\nIt counts."), " Really."],
            ),
            (&format!("Look.\n{code}"), &["Look.", &format!("\n{code}")]),
            (&format!("See {address} or not. Well."), &["See", &format!(" {address} or not."), " Well."]),
            ("See https://a.example/b. Or not.", &["See https://a.example/b.", " Or not."]),
            ("... Well. ?! Yes.", &["... Well.", " ?! Yes."]),
        ] {
            assert_eq!(SpokenSentences::of(text).iter().map(|sentence| &**sentence).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn a_sentence_within_a_link_waits_for_its_end() {
        for (text, expected) in [
            ("Ask [Dr. Smith](https://smith.example/) today. Or not.", &["Ask Dr. Smith today.", " Or not."][..]),
            ("[See here. Now](https://a.example) and go.", &["See here. Now and go."]),
            ("See [it](https://a.example \"A. B.\") now.", &["See it", " now."]),
            ("He wrote [sic]. Then [a. b] came.", &["He wrote [sic].", " Then [a. b] came."]),
            ("Open [and. never closed.", &["Open [and. never closed."]),
        ] {
            assert_eq!(SpokenSentences::of(text).iter().map(|sentence| &**sentence).collect::<Vec<_>>(), expected, "{text}");
        }
        let endless = format!("[{}", "Never closed at all. ".repeat(30));
        assert!(SpokenSentences::of(&endless).len() > 10);
    }

    proptest! {
        #[test]
        fn the_pieces_in_which_a_text_comes_make_no_difference(
            text in "([A-Za-z1-9]{1,8}[ .,!*_`\n\\[\\]()-]{1,3}|\\]\\(https://a\\.b\\)| \\*[a-z.]{1,9}\\* |\n```[a-z]?\n){0,30}",
            cuts in prop::collection::vec(0_usize..400, 0..8),
        ) {
            let mut sentences = SpokenSentences::default();
            let (mut streamed, mut rest, mut at) = (Vec::new(), &*text, 0);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut % (text.len() + 1)).collect();
            cuts.sort_unstable();
            for cut in cuts {
                let (piece, later) = rest.split_at(cut - at);
                streamed.extend(sentences.push(piece));
                (rest, at) = (later, cut);
            }
            streamed.extend(sentences.push(rest));
            streamed.extend(sentences.finish());

            prop_assert_eq!(streamed, SpokenSentences::of(&text));
        }
    }
}
