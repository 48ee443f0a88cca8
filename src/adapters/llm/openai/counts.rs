//! Reads the token counts that an endpoint reports, in whatever shape.

use serde_json::value::RawValue;

use crate::adapters::endpoint::fields::fields;
use crate::ports::language_model::TokenUsage;

#[cfg(test)]
mod tests;

/// The counts as they were reported. Servers differ in what the count of a prompt or of an answer includes; [`Self::or`] decides that.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    prompt: Option<u64>,
    answer: Option<u64>,
    total: Option<u64>,
    /// Tokens of the prompt that were read from a cache, or written to it.
    read: Option<u64>,
    written: Option<u64>,
    thoughts: Option<u64>,
    /// Whether cached tokens have Anthropic's names, so that the count of the prompt may leave them out.
    is_like_anthropic: bool,
    /// Whether the counts have Anthropic's names only. Then the count of the prompt leaves out cached tokens.
    is_anthropic: bool,
    /// Whether the counts have Google's names. Then the count of the answer leaves out thoughts.
    is_google: bool,
}

impl Counts {
    /// Reads an object of counts. `None`: it is not an object.
    pub fn read(usage: &RawValue) -> Option<Self> {
        let [prompt, answer, total, of_prompt, of_answer] = values(
            usage,
            ["prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"],
        )?;
        // OpenAI's other protocol, and Anthropic's.
        let [input, output, of_input, of_output] =
            values(usage, ["input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"])?;
        let [google_prompt, candidates, google_total, google_cached, google_thoughts] = values(
            usage,
            ["promptTokenCount", "candidatesTokenCount", "totalTokenCount", "cachedContentTokenCount", "thoughtsTokenCount"],
        )?;
        // DeepSeek, Moonshot, Perplexity.
        let [hit, cached, reasoning] = values(usage, ["prompt_cache_hit_tokens", "cached_tokens", "reasoning_tokens"])?;
        let [beside_read, beside_written] = values(usage, ["cache_read_input_tokens", "cache_creation_input_tokens"])?;
        let of_prompt = of_prompt.or(of_input);
        let [cached_detail, written_detail, created_detail] = of_prompt
            .and_then(|details| fields(details.get(), ["cached_tokens", "cache_write_tokens", "cache_creation_tokens"]).ok())
            .unwrap_or_default();
        let [reasoning_detail] =
            of_answer.or(of_output).and_then(|details| fields(details.get(), ["reasoning_tokens"]).ok()).unwrap_or_default();
        let first = |values: &[Option<&RawValue>]| values.iter().flatten().find_map(|value| count(value));
        let is_like_anthropic = first(&[beside_read, beside_written]).is_some();
        Some(Self {
            prompt: first(&[prompt, input, google_prompt]),
            answer: first(&[answer, output, candidates]),
            total: first(&[total, google_total]),
            read: first(&[cached_detail, hit, cached, google_cached, beside_read]),
            written: first(&[written_detail, created_detail, beside_written]),
            thoughts: first(&[reasoning_detail, google_thoughts, reasoning]),
            is_like_anthropic,
            is_anthropic: is_like_anthropic && prompt.is_none() && of_prompt.is_none() && input.is_some(),
            is_google: answer.or(output).is_none() && candidates.is_some(),
        })
    }

    /// These counts, completed by earlier ones of the same answer. Some servers send them in several chunks.
    pub fn after(self, earlier: Self) -> Self {
        Self {
            prompt: self.prompt.or(earlier.prompt),
            answer: self.answer.or(earlier.answer),
            total: self.total.or(earlier.total),
            read: self.read.or(earlier.read),
            written: self.written.or(earlier.written),
            thoughts: self.thoughts.or(earlier.thoughts),
            is_like_anthropic: self.is_like_anthropic || earlier.is_like_anthropic,
            is_anthropic: self.is_anthropic || earlier.is_anthropic,
            is_google: self.is_google || earlier.is_google,
        }
    }

    /// All tokens of the prompt, if they were reported.
    pub fn prompt_tokens(self) -> Option<u64> {
        let prompt = self.prompt?;
        let cached = self.read.unwrap_or_default().saturating_add(self.written.unwrap_or_default());
        let whole = prompt.saturating_add(cached);
        // The total shows whether the count leaves them out, and so does a count that is smaller than they are.
        let is_in_total = self.answer.is_some_and(|answer| self.total == Some(whole.saturating_add(answer)));
        let leaves_out = self.is_anthropic || self.is_like_anthropic && (cached > prompt || is_in_total);
        Some(if leaves_out { whole } else { prompt })
    }

    /// The usage, with the estimate in place of missing counts.
    pub fn or(self, estimate: TokenUsage) -> TokenUsage {
        let input_tokens = self.prompt_tokens();
        let (mut output_tokens, mut reasoning_tokens) = (self.answer.unwrap_or(estimate.output_tokens), self.thoughts);
        // What only the total includes are thoughts: Google's and xAI's counts of an answer leave them out.
        let beside = input_tokens.zip(self.answer).zip(self.total);
        let beside =
            beside.and_then(|((input, answer), total)| total.checked_sub(input)?.checked_sub(answer)).unwrap_or_default();
        match self.thoughts {
            Some(thoughts) if self.is_google || beside == thoughts || thoughts > output_tokens => {
                output_tokens = output_tokens.saturating_add(thoughts);
            }
            None if beside > 0 => {
                (output_tokens, reasoning_tokens) = (output_tokens.saturating_add(beside), Some(beside));
            }
            _ => {}
        }
        TokenUsage {
            cache_read_tokens: self.read,
            cache_write_tokens: self.written,
            reasoning_tokens,
            ..TokenUsage::new(input_tokens.unwrap_or(estimate.input_tokens), output_tokens)
        }
    }
}

/// The values of these fields. `None`: it is not an object.
fn values<'a, const N: usize>(usage: &'a RawValue, names: [&str; N]) -> Option<[Option<&'a RawValue>; N]> {
    fields(usage.get(), names).ok()
}

/// Parses a count, which some servers send as a fraction or as a string.
pub(super) fn count(value: &RawValue) -> Option<u64> {
    let count: f64 = value.get().trim_matches('"').parse().ok()?;
    (count.is_finite() && count >= 0.0).then_some(count.round() as u64)
}
