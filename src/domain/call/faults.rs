//! Detects a recogniser that has failed although it still returns results.

/// The number of consecutive unanswered utterances, or of consecutive cut streams, after which a provider counts as failed.
const MOST: u32 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The number of consecutive utterances without a result.
    unanswered: u32,
    /// The number of consecutive streams that returned results, but were cut before an utterance had words.
    cuts: u32,
}

impl Faults {
    /// Counts a result. `is_answer` says whether the recogniser itself returned it, and `is_last` whether it completes an utterance. Returns whether
    /// the recogniser has failed.
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

    /// Counts a cut stream. `has_worked` says whether the stream had returned results. Returns whether the recogniser has failed.
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
