//! When a recogniser has failed that returns something, but not the words of what is said.

/// A provider that returns nothing to so many utterances in a row has failed, and so has one whose streams are cut so often in a row.
const MOST: u32 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The utterances in a row to which nothing was returned.
    unanswered: u32,
    /// The streams in a row that returned something and were cut before an utterance had words.
    cuts: u32,
}

impl Faults {
    /// A result came: whether the recogniser itself returned it, and whether it is the last one of an utterance, with words. Returns whether the
    /// recogniser has failed.
    pub const fn add_result(&mut self, is_answer: bool, is_last: bool, has_words: bool) -> bool {
        if is_answer {
            self.unanswered = 0;
        } else if is_last {
            self.unanswered += 1;
        }
        if is_last && has_words {
            self.cuts = 0;
        }
        Self::is_reached(&mut self.unanswered)
    }

    /// A stream was cut that had returned something or not. Returns whether the recogniser has failed.
    pub const fn add_cut(&mut self, has_worked: bool) -> bool {
        self.cuts += has_worked as u32;
        Self::is_reached(&mut self.cuts)
    }

    const fn is_reached(count: &mut u32) -> bool {
        let is_reached = *count >= MOST;
        if is_reached {
            *count = 0;
        }
        is_reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_utterances_in_a_row_without_an_answer_are_a_failure() {
        let mut faults = Faults::default();
        let mut lose = |is_answer| faults.add_result(is_answer, true, is_answer);

        assert_eq!(
            [lose(false), lose(false), lose(true), lose(false), lose(false), lose(false), lose(false)],
            [false, false, false, false, false, true, false]
        );
    }

    #[test]
    fn streams_that_are_cut_before_any_words_are_a_failure() {
        let mut faults = Faults::default();

        assert_eq!([faults.add_cut(true), faults.add_cut(false), faults.add_cut(true)], [false; 3]);
        assert!(!faults.add_result(true, false, true), "not the last result of an utterance");
        assert!(faults.add_cut(true));
        assert_eq!([faults.add_cut(true), faults.add_cut(true)], [false; 2]);
        faults.add_result(true, true, true);
        assert!(!faults.add_cut(true), "an utterance had words meanwhile");
    }
}
