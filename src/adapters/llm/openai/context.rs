//! Learns how many tokens a model reads and writes at once (its context), so that prompts and answers fit into it (docs/design/models.md M-24).

use parking_lot::Mutex;
use tokio::time::Instant;

use super::dialect::LEARNT_FOR;
use crate::ports::language_model::Identity;

/// A larger context limits no prompt of usual settings.
const MOST_LISTED: u64 = 32 * 1024;
/// Without a number in a refusal, no context is taken to be smaller.
const LEAST_GUESSED: u64 = 1_024;
/// A smaller number is no context.
const LEAST_SIZE: u64 = 256;
/// Of a shorter prompt, the tokens that a template adds are too large a part.
const LEAST_COUNTED: usize = 200;
/// The tokens that a model may count for one that we estimate, as long as it has counted none.
const USUAL_RATIO: f64 = 1.4;
/// How much more it may count the next time.
const MARGIN: f64 = 1.05;
/// A prompt that is longer than all that were answered by this factor may be the reason that nothing is answered.
const MUCH_LONGER: f64 = 1.25;
/// Servers cut no prompt to less. Some count nothing, or the same for all.
const LEAST_CUT: u64 = 512;
/// So many prompts with the same count show that prompts are cut.
const SAME_COUNTS: usize = 3;

/// The context of one model, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Context(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    size: Option<Size>,
    /// The most tokens that it counted for one that we estimate.
    ratio: Option<f64>,
    /// The longest prompt that was answered, as we estimate it.
    answered: usize,
    /// The highest count of a prompt.
    highest: u64,
    /// The estimates and the counts of the last prompts that were counted with nearly as many.
    near_highest: Vec<(usize, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Size {
    tokens: u64,
    source: Source,
    learnt: Instant,
}

/// How the size is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The endpoint refused a longer prompt.
    Refused,
    /// It answers nothing to longer prompts.
    Silent,
    /// It counts the same for prompts that grow: it cuts them.
    Counted,
    /// Its list of models has it.
    Listed,
}

impl Source {
    const fn in_words(self) -> &'static str {
        match self {
            Self::Refused => "it refused a longer prompt",
            Self::Silent => "it answers nothing to longer prompts",
            Self::Counted => "it counted no more of longer prompts",
            Self::Listed => "its list of models says so",
        }
    }
}

/// What is too long for the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooLong {
    /// The prompt fits if the answer has at most so many tokens.
    Answer(u32),
    Prompt,
}

impl Context {
    /// The estimated tokens that a prompt may have before an answer of at most so many tokens.
    pub fn prompt_room(&self, max_tokens: u32) -> Option<usize> {
        let known = self.0.lock();
        let size = known.size()?;
        Some(((size.tokens - answer_room(size.tokens, max_tokens)) as f64 / known.ratio()) as usize)
    }

    /// The most tokens of an answer after a prompt of this estimate.
    pub fn answer_limit(&self, estimate: usize, max_tokens: u32) -> u32 {
        let known = self.0.lock();
        known.size().map_or(max_tokens, |size| max_tokens.min(known.left_by(estimate, size.tokens)))
    }

    /// A request was refused in these words: with a prompt of this estimate and an answer of at most so many tokens. `None`: nothing was too long.
    pub fn refused(&self, words: &str, estimate: usize, max_tokens: u32, identity: &Identity) -> Option<TooLong> {
        let words = words.to_lowercase();
        if !is_about_context(&words) {
            return None;
        }
        let mut known = self.0.lock();
        let numbers = numbers(&words);
        let size = numbers.iter().find(|number| number.is_compared).or_else(|| numbers.iter().find(|number| number.is_size));
        let size = size.map(|number| number.value);
        if let Some(prompt) = prompt_tokens(&numbers, size, max_tokens.into()) {
            known.count(estimate, prompt);
        }
        let sent = known.counted(estimate);
        // Without numbers, or if it should have fitted: less than was sent.
        let less = sent * 3 / 4;
        let size = size.unwrap_or((less + answer_room(less, max_tokens)).max(LEAST_GUESSED)).max(LEAST_SIZE);
        known.learn(size, Source::Refused, identity);
        let left = known.left_by(estimate, size);
        if left < max_tokens && u64::from(left) >= answer_room(size, max_tokens) {
            return Some(TooLong::Answer(left));
        }
        if u64::from(left) > u64::from(max_tokens) {
            // It counts more than we know.
            known.ratio = Some(size as f64 / estimate.max(1) as f64);
        }
        Some(TooLong::Prompt)
    }

    /// A prompt of this estimate was answered, and counted with so many tokens.
    pub fn answered(&self, estimate: usize, counted: Option<u64>, identity: &Identity) {
        let mut known = self.0.lock();
        known.answered = known.answered.max(estimate);
        let Some(counted) = counted else { return };
        if known.is_cut(estimate, counted) {
            let highest = known.highest;
            known.ratio = None;
            known.learn(highest, Source::Counted, identity);
        } else {
            known.count(estimate, counted);
        }
    }

    /// Nothing was answered to a prompt of this estimate. Whether it may be too long.
    pub fn was_silent(&self, estimate: usize, max_tokens: u32, identity: &Identity) -> bool {
        let mut known = self.0.lock();
        if known.answered == 0 || estimate < LEAST_COUNTED || (estimate as f64) < known.answered as f64 * MUCH_LONGER {
            if known.size.is_some_and(|size| size.source == Source::Silent) {
                known.size = None;
            }
            return false;
        }
        let less = known.counted(estimate) * 3 / 4;
        known.learn(less + answer_room(less, max_tokens), Source::Silent, identity);
        true
    }

    /// The endpoint's list of models has this size.
    pub fn is_listed(&self, tokens: u64, identity: &Identity) {
        let mut known = self.0.lock();
        if (LEAST_SIZE..=MOST_LISTED).contains(&tokens) && known.size().is_none() {
            known.learn(tokens, Source::Listed, identity);
        }
    }

    /// What is known, in a sentence.
    pub fn in_words(&self) -> Option<String> {
        self.0.lock().size().map(in_words)
    }
}

impl Known {
    fn size(&self) -> Option<Size> {
        self.size.filter(|size| size.learnt.elapsed() < LEARNT_FOR)
    }

    fn ratio(&self) -> f64 {
        self.ratio.map_or(USUAL_RATIO, |ratio| ratio * MARGIN)
    }

    /// The tokens that the model is expected to count for a prompt.
    fn counted(&self, estimate: usize) -> u64 {
        (estimate as f64 * self.ratio()) as u64
    }

    /// The tokens that a prompt leaves to its answer.
    fn left_by(&self, estimate: usize, size: u64) -> u32 {
        u32::try_from(size.saturating_sub(self.counted(estimate)).max(LEAST_SIZE / 4)).unwrap_or(u32::MAX)
    }

    fn count(&mut self, estimate: usize, counted: u64) {
        let ratio = counted as f64 / estimate.max(1) as f64;
        if estimate >= LEAST_COUNTED && (0.25..=4.0).contains(&ratio) {
            self.ratio = Some(self.ratio.unwrap_or_default().max(ratio));
        }
    }

    /// Whether the model reads less than the whole of its prompts, because a server cuts them without a word: it counts the same for prompts that
    /// grow, or exactly the same for different ones.
    fn is_cut(&mut self, estimate: usize, counted: u64) -> bool {
        if counted < LEAST_CUT {
            return false;
        }
        if counted > self.highest + self.highest / 100 {
            (self.highest, self.near_highest) = (counted, Vec::new());
        }
        if counted < self.highest - self.highest / 100 || self.near_highest.iter().any(|(before, _)| *before == estimate) {
            return false;
        }
        self.highest = self.highest.max(counted);
        self.near_highest.push((estimate, counted));
        let Some(from) = self.near_highest.len().checked_sub(SAME_COUNTS) else { return false };
        self.near_highest.drain(..from);
        let (first, is_growing) = (self.near_highest[0], self.near_highest.is_sorted());
        let is_less = (counted as f64) < 0.75 * estimate as f64;
        let is_same = self.near_highest.iter().all(|near| near.1 == counted);
        // What was added should have been counted. Words of few tokens may look like a cut.
        let growth = estimate as f64 / first.0.max(1) as f64 - 1.0;
        let is_flat = counted as f64 - (first.1 as f64) < growth * first.1 as f64 / 4.0;
        is_less && is_same || is_growing && is_flat && (is_less || growth > 0.05)
    }

    fn learn(&mut self, tokens: u64, source: Source, identity: &Identity) {
        let size = Size { tokens, source, learnt: Instant::now() };
        if self.size().is_none_or(|known| known.tokens != tokens) {
            let Identity { endpoint, model, .. } = identity;
            tracing::warn!(%endpoint, %model, "{}", in_words(size));
        }
        self.size = Some(size);
    }
}

fn in_words(Size { tokens, source, .. }: Size) -> String {
    format!(
        "prompts are made to fit into {tokens} tokens, because the endpoint reads no more at once ({}); a larger context there (of Ollama: \
         num_ctx) lets companions remember more, and smaller prompt.statement_tokens and prompt.decision_tokens leave more to answers",
        source.in_words()
    )
}

/// The tokens of a context that are kept for an answer: a sixth, if it may have so many.
fn answer_room(size: u64, max_tokens: u32) -> u64 {
    (size / 6).min(max_tokens.into())
}

/// Whether a refusal says that prompt or answer have too many tokens for the model.
fn is_about_context(words: &str) -> bool {
    const KNOWN: [&str; 27] = [
        "cannot truncate to",
        "context length",
        "context size",
        "context window",
        "context limit",
        "context_length",
        "context_size",
        "context_window",
        "maximum context",
        "n_ctx",
        "prompt is too long",
        "prompt too long",
        "input is too long",
        "too many tokens",
        "prompt length",
        "input length",
        "model length",
        "token limit",
        "input token count",
        "prompt token count",
        "token count exceeds",
        "prompt exceeds",
        "exceeds max length",
        "`inputs`",
        "string_above_max_length",
        "reduce the length of the",
        "tokens to keep",
    ];
    KNOWN.iter().any(|known| words.contains(known)) || words.contains("request too large") && words.contains("tokens per minute")
}

/// A number in a refusal.
struct Number {
    value: u64,
    /// Whether it is called the most that is allowed.
    is_size: bool,
    /// Whether what was sent is compared to it: `5000 > 4096`.
    is_compared: bool,
}

fn numbers(words: &str) -> Vec<Number> {
    const BEFORE: [&str; 18] = [
        "truncate to",
        "context length",
        "context size",
        "context window",
        "context limit",
        "maximum",
        "max length",
        "n_ctx",
        "<=",
        "> ",
        "less than",
        "at most",
        "cannot exceed",
        "limit",
        "should be",
        "allowed",
        "available context",
        "only",
    ];
    let mut numbers: Vec<Number> = Vec::new();
    let (mut at, mut since) = (0, 0);
    while let Some(begin) = words[at..].find(|c: char| c.is_ascii_digit()).map(|found| at + found) {
        let end = words[begin..]
            .find(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '_'))
            .map_or(words.len(), |found| begin + found);
        let digits: String = words[begin..end].chars().filter(char::is_ascii_digit).collect();
        at = end;
        let Some(value) = digits.parse().ok().filter(|value| *value >= LEAST_SIZE) else { continue };
        let before = &words[since..begin];
        let near = before.char_indices().rev().nth(31).map_or(before, |(from, _)| &before[from..]);
        let after = words[end..].trim_start();
        if near.contains("n_keep") && !near.contains("n_ctx") {
            numbers.push(Number { value, is_size: false, is_compared: false });
            since = end;
            continue;
        }
        if ["code\":", "status\":", "code:", "status:", "code", "status"].iter().any(|known| near.trim_end().ends_with(known)) {
            continue;
        }
        let is_size = BEFORE.iter().any(|known| near.contains(known)) || after.starts_with("maximum");
        let is_compared = near.ends_with("> ") || near.ends_with(">= n_ctx: ");
        numbers.push(Number { value, is_size, is_compared });
        since = end;
    }
    numbers
}

/// The tokens that a refusal counts for the prompt, if its answer may have so many.
fn prompt_tokens(numbers: &[Number], size: Option<u64>, max_tokens: u64) -> Option<u64> {
    let others: Vec<u64> = numbers
        .iter()
        .filter(|number| Some(number.value) != size && number.value != max_tokens)
        .map(|number| number.value)
        .collect();
    let is_sum = |number: &&u64| numbers.iter().any(|sum| sum.value == **number + max_tokens);
    others.iter().find(is_sum).or(others.iter().max()).copied()
}

#[cfg(test)]
mod tests;
