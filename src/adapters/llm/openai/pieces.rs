//! Removes repetition from streams: some servers send the whole text so far in each chunk, or the whole text again at the end.

/// The minimum length of repeated text in bytes. A shorter repetition may be intended: "haha".
const SHORTEST: usize = 8;

/// The state of one stream.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    count: usize,
    last: String,
    /// Whether each chunk so far began with the previous one, and continued it. False from a third chunk shorter than `SHORTEST` on.
    grows: bool,
}

/// The effect of a chunk on the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Added {
    More(String),
    /// The text so far was wrong. This text replaces it.
    Instead(String),
}

impl Pieces {
    /// Determines what the next chunk adds to the text so far. `is_last`: the chunk contains the finish reason.
    pub fn add(&mut self, so_far: &str, piece: String, is_last: bool) -> Added {
        if piece.is_empty() || is_last && piece.len() >= SHORTEST && piece == so_far {
            return Added::More(String::new());
        }
        self.count += 1;
        let goes_on = piece.len() > self.last.len() && piece.starts_with(&self.last);
        self.grows = self.count == 1 || self.grows && goes_on;
        let before = std::mem::replace(&mut self.last, piece.clone());
        match self.count {
            _ if !self.grows => Added::More(piece),
            1 | 2 => Added::More(piece),
            // By now the text so far consists of the first two chunks, one after the other.
            3 if piece.len() >= SHORTEST => Added::Instead(piece),
            3 => {
                self.grows = false;
                Added::More(piece)
            }
            _ => Added::More(piece[before.len()..].to_owned()),
        }
    }

    /// The text at the end of the stream. `None`: the text so far is correct.
    pub fn at_end(&self, so_far: &str) -> Option<&str> {
        let is_long = self.last.len() >= SHORTEST;
        let before = so_far.strip_suffix(self.last.as_str())?;
        // The second of two chunks begins with the first, or the last chunk repeats all chunks before it.
        let repeats = is_long && before.len() >= SHORTEST && (self.grows && self.count == 2 || before == self.last);
        repeats.then_some(&self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sent: &[&str]) -> String {
        let (mut pieces, mut text) = (Pieces::default(), String::new());
        for (at, piece) in sent.iter().enumerate() {
            match pieces.add(&text, (*piece).to_owned(), at + 1 == sent.len()) {
                Added::More(more) => text.push_str(&more),
                Added::Instead(whole) => text = whole,
            }
        }
        pieces.at_end(&text).map(str::to_owned).unwrap_or(text)
    }

    #[test]
    fn the_text_so_far_and_the_whole_text_once_more_are_no_new_words() {
        for (sent, expected) in [
            (&["See you ", "at the ", "pier."][..], "See you at the pier."),
            (&["See you", "See you at the", "See you at the pier.", "See you at the pier. Bye."], "See you at the pier. Bye."),
            (&["S", "See", "See you at", "See you at the pier."], "See you at the pier."),
            (&["See you at", "See you at the pier."], "See you at the pier."),
            (&["See you ", "at the pier.", "See you at the pier."], "See you at the pier."),
            (&["ha", "haha", "hahaha", " ha"], "hahahahahaha ha"),
            (&["No, ", "no, ", "no, ", "no."], "No, no, no, no."),
            (&["ha", "ha"], "haha"),
            (&["See you at the pier."], "See you at the pier."),
            (&["", "See", "", " you"], "See you"),
        ] {
            assert_eq!(text(sent), expected, "{sent:?}");
        }
    }
}
