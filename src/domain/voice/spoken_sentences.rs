//! Cuts an answer into the sentences that are spoken, while a model still writes it (docs/design/voice.md ).

use std::sync::Arc;

use super::super::sentences::Sentences;
use super::spoken_text::spoken_text;

/// Cuts a growing text into what is spoken of it. It does not matter in which pieces the text comes.
#[derive(Clone, Debug)]
pub struct SpokenSentences(Sentences);

impl SpokenSentences {
    /// Before the first word of a companion with this name.
    pub fn new(companion_name: &str) -> Self {
        Self(Sentences::new(companion_name))
    }

    /// The sentences of a whole text without anything before its words.
    pub fn of(text: &str) -> Vec<Arc<str>> {
        let mut sentences = Self::new("");
        let mut all = sentences.push(text);
        all.extend(sentences.finish());
        all
    }

    /// Takes the next piece of the text. Returns the sentences that are whole now, each with the white space before it.
    pub fn push(&mut self, piece: &str) -> Vec<Arc<str>> {
        self.0.push(piece).iter().filter_map(|sentence| spoken(sentence)).collect()
    }

    /// The text has ended. Returns the rest.
    pub fn finish(self) -> Vec<Arc<str>> {
        self.0.finish().iter().filter_map(|sentence| spoken(sentence)).collect()
    }
}

/// A sentence without markup. `None`: nothing is left to say.
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

    proptest! {
        #[test]
        fn the_pieces_in_which_a_text_comes_make_no_difference(
            text in "([A-Za-z]{1,8}[ .,!*_`\n-]{1,3}){0,30}",
            cuts in prop::collection::vec(0_usize..400, 0..8),
        ) {
            let mut sentences = SpokenSentences::new("Aria");
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
