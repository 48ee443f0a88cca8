//! Learns a model's context size in tokens, so that prompts and answers fit into it (docs/design/models.md M-24).

use parking_lot::Mutex;
use tokio::time::Instant;

use super::dialect::LEARNT_FOR;
use crate::ports::language_model::Identity;

/// The largest context size that is taken from a list of models. A larger context limits no prompt of usual settings.
const MOST_LISTED: u64 = 32 * 1024;
/// The smallest context size that is assumed after a refusal without a number.
const LEAST_GUESSED: u64 = 1_024;
/// The smallest context size. Smaller numbers are ignored.
const LEAST_SIZE: u64 = 256;
/// The shortest prompt that the ratio is learnt from. In a shorter one, the tokens that a template adds are too large a part.
const LEAST_COUNTED: usize = 200;
/// The assumed ratio of counted to estimated tokens before the model has counted any.
const USUAL_RATIO: f64 = 1.4;
/// The factor by which the ratio may grow until the next prompt.
const MARGIN: f64 = 1.05;
/// A prompt that is longer by this factor than all answered ones may be the reason for an empty answer.
const MUCH_LONGER: f64 = 1.25;
/// The smallest count at which a prompt may have been truncated. Some servers report 0, or the same count for all prompts.
const LEAST_CUT: u64 = 512;
/// This many prompts with the same count show that prompts are truncated.
const SAME_COUNTS: usize = 3;

/// The context of one model, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Context(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    size: Option<Size>,
    /// The highest ratio of counted to estimated tokens.
    ratio: Option<f64>,
    /// The estimated tokens of the longest answered prompt.
    answered: usize,
    /// The prompt with the highest count: its estimate and its count.
    highest: (usize, u64),
    /// The estimates and counts of the last prompts whose count was near the highest.
    near_highest: Vec<(usize, u64)>,
    /// The same of the last prompts that are longer than that one and have a lower count. Some servers cut a long prompt to half of the context.
    below_highest: Vec<(usize, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Size {
    tokens: u64,
    source: Source,
    learnt: Instant,
}

/// The source of the known context size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The endpoint refused a longer prompt.
    Refused,
    /// The endpoint answered longer prompts with nothing.
    Silent,
    /// The endpoint reported the same count for growing prompts: it truncates them.
    Counted,
    /// The endpoint's list of models contains the size.
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

/// The part of a request that is too long for the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooLong {
    /// The answer is too long. The prompt fits if the answer has at most this many tokens.
    Answer(u32),
    Prompt,
}

impl Context {
    /// The estimated tokens that a prompt may have before an answer of at most `max_tokens` tokens.
    pub fn prompt_room(&self, max_tokens: u32) -> Option<usize> {
        let known = self.0.lock();
        let size = known.size()?;
        Some(((size.tokens - answer_room(size.tokens, max_tokens)) as f64 / known.ratio()) as usize)
    }

    /// The maximum number of tokens of an answer after a prompt with this estimate.
    pub fn answer_limit(&self, estimate: usize, max_tokens: u32) -> u32 {
        let known = self.0.lock();
        known.size().map_or(max_tokens, |size| max_tokens.min(known.left_by(estimate, size.tokens)))
    }

    /// Learns from a refusal with this text, for a prompt with this estimate and an answer of at most `max_tokens` tokens.
    /// `None`: the refusal is not about length.
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
        // If the refusal has no numbers, or if the request should have fitted, the size is less than the request's.
        let less = sent * 3 / 4;
        let size = size.unwrap_or((less + answer_room(less, max_tokens)).max(LEAST_GUESSED)).max(LEAST_SIZE);
        known.learn(size, Source::Refused, identity);
        let left = known.left_by(estimate, size);
        if left < max_tokens && u64::from(left) >= answer_room(size, max_tokens) {
            return Some(TooLong::Answer(left));
        }
        if u64::from(left) > u64::from(max_tokens) {
            // The model counts more tokens than the known ratio predicts.
            known.ratio = Some(size as f64 / estimate.max(1) as f64);
        }
        Some(TooLong::Prompt)
    }

    /// Learns from an answered prompt: its estimate and the reported token count.
    pub fn answered(&self, estimate: usize, counted: Option<u64>, identity: &Identity) {
        let mut known = self.0.lock();
        known.answered = known.answered.max(estimate);
        let Some(counted) = counted else { return };
        if let Some(size) = known.cut_size(estimate, counted) {
            known.ratio = None;
            known.learn(size, Source::Counted, identity);
        } else {
            known.count(estimate, counted);
        }
    }

    /// Learns from an empty answer to a prompt with this estimate. Returns whether the prompt may be too long.
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

    /// Learns the size from the endpoint's list of models.
    pub fn is_listed(&self, tokens: u64, identity: &Identity) {
        let mut known = self.0.lock();
        if (LEAST_SIZE..=MOST_LISTED).contains(&tokens) && known.size().is_none() {
            known.learn(tokens, Source::Listed, identity);
        }
    }

    /// A description of the known size.
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

    /// The tokens that remain for the answer after a prompt.
    fn left_by(&self, estimate: usize, size: u64) -> u32 {
        u32::try_from(size.saturating_sub(self.counted(estimate)).max(LEAST_SIZE / 4)).unwrap_or(u32::MAX)
    }

    fn count(&mut self, estimate: usize, counted: u64) {
        let ratio = counted as f64 / estimate.max(1) as f64;
        if estimate >= LEAST_COUNTED && (0.25..=4.0).contains(&ratio) {
            self.ratio = Some(self.ratio.unwrap_or_default().max(ratio));
        }
    }

    /// The size to which a server silently cuts prompts: it reports the same count for growing prompts, or exactly the same count for different ones.
    fn cut_size(&mut self, estimate: usize, counted: u64) -> Option<u64> {
        let is_near = |other: u64| counted.abs_diff(other) <= other / 100;
        let (longest, highest) = self.highest;
        let is_below = counted < highest && !is_near(highest);
        if counted < LEAST_CUT || is_below && estimate <= longest {
            return None;
        }
        if counted > highest {
            self.highest = (estimate, counted);
        }
        let near = if is_below { &mut self.below_highest } else { &mut self.near_highest };
        near.retain(|(_, before)| is_near(*before));
        if near.iter().any(|(before, _)| *before == estimate) {
            return None;
        }
        near.push((estimate, counted));
        near.drain(..near.len().checked_sub(SAME_COUNTS)?);
        let (first, is_growing) = (near[0], near.is_sorted());
        let is_less = (counted as f64) < 0.75 * estimate as f64;
        let is_same = near.iter().all(|near| near.1 == counted);
        // The added text should have increased the count. Text of few tokens may look like a truncation.
        let growth = estimate as f64 / first.0.max(1) as f64 - 1.0;
        let is_flat = counted as f64 - (first.1 as f64) < growth * first.1 as f64 / 4.0;
        let size = near.iter().map(|near| near.1).max();
        size.filter(|_| is_less && is_same || is_growing && is_flat && (is_less || growth > 0.05))
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

/// The tokens of a context that are reserved for an answer: a sixth, limited to `max_tokens`.
fn answer_room(size: u64, max_tokens: u32) -> u64 {
    (size / 6).min(max_tokens.into())
}

/// Whether a refusal says that the prompt or the answer has too many tokens for the model.
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
    /// Whether the text calls it the allowed maximum.
    is_size: bool,
    /// Whether the text compares it with another number: `5000 > 4096`.
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

/// The token count of the prompt in a refusal, for an answer of at most `max_tokens` tokens.
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
