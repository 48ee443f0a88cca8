//! Adds up a guild's usage record by record. Memory grows with the number of distinct callers, not with the number of records.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::{UsageRecord, Used as Record};
use crate::domain::id::CompanionId;
use crate::domain::service::Service;
use crate::ports::backend::usage::{Calls, Costs, Speech, SpeechBy, ToolCalls, ToolsBy, UsageBy, Used};

/// Companion, model, provider and role. Calls without a companion were for the channel itself (summaries, judgements), or for the
/// votes of several companions.
type Caller = (Option<CompanionId>, Arc<str>, Arc<str>, Arc<str>);

/// The usage of a span of time.
#[derive(Clone, Debug)]
pub struct Account {
    /// The currency of every `cost`.
    currency: Arc<str>,
    pub used: Used,
    calls: BTreeMap<Caller, Calls>,
    /// The use of speech services, by service, companion and provider. Entries without a companion are speech recognition.
    speech: BTreeMap<(Service, Option<CompanionId>, Arc<str>), Speech>,
    tools: BTreeMap<(CompanionId, Arc<str>), ToolCalls>,
}

impl Account {
    pub fn new(currency: &str) -> Self {
        let (calls, speech, tools) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { currency: currency.into(), used: Used::default(), calls, speech, tools }
    }

    pub fn count(&mut self, record: UsageRecord) {
        match record.used {
            Record::Statement { .. } => self.used.statements += 1,
            Record::Evaluation { .. } => self.used.evaluations += 1,
            Record::Address { .. } => self.used.addresses += 1,
            Record::Notice { .. } | Record::Help { .. } | Record::Refusal => {}
            Record::ToolCall { companion, tool, price } => {
                let mut calls = ToolCalls { calls: 1, costs: Costs::default() };
                if let Some(price) = price {
                    calls.costs.count(&self.currency, &price.currency, price.of(1));
                }
                self.used.tools += calls.clone();
                *self.tools.entry((companion, tool)).or_default() += calls;
            }
            Record::Speech { service, companion, provider, amount, price } => {
                let mut speech = Speech::default();
                let sum = if service == Service::SpeechSynthesis { &mut speech.characters } else { &mut speech.recognised_ms };
                *sum = amount;
                if let Some(price) = price {
                    speech.costs.count(&self.currency, &price.currency, price.of(amount));
                }
                self.used.speech += speech.clone();
                *self.speech.entry((service, companion, provider)).or_default() += speech;
            }
            Record::Call { companion, model, provider, role, usage, calls, failed_calls, price, .. } => {
                let (all, failed_calls) = (u64::from(calls), u64::from(failed_calls));
                let mut calls = Calls { calls: all, failed_calls, usage, ..Calls::default() };
                match price {
                    Some(price) => calls.costs.count(&self.currency, &price.currency, price.of(usage)),
                    None => calls.unpriced_calls = all,
                }
                self.used.calls += calls.clone();
                *self.calls.entry((companion, model, provider, role)).or_default() += calls;
            }
        }
    }

    pub fn calls_by(&self) -> Vec<UsageBy> {
        let by = self.calls.clone().into_iter();
        by.map(|((companion, model, provider, role), calls)| UsageBy { companion, model, provider, role, calls }).collect()
    }

    pub fn speech_by(&self) -> Vec<SpeechBy> {
        let by = self.speech.clone().into_iter();
        by.map(|((service, companion, provider), speech)| SpeechBy { service, companion, provider, speech }).collect()
    }

    pub fn tools_by(&self) -> Vec<ToolsBy> {
        let by = self.tools.clone().into_iter();
        by.map(|((companion, tool), calls)| ToolsBy { companion, tool, calls }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moment::Moment;
    use crate::domain::price::{Cost, Price, UnitPrice};
    use crate::domain::token_usage::TokenUsage;

    #[test]
    fn usage_is_added_up_by_caller() {
        let dollars = Price::per_million(1.0, 2.0, "USD");

        let account = counted([
            call(Some("aria"), "side", 100, 10, Some(&dollars)),
            call(Some("aria"), "side", 200, 20, Some(&dollars)),
            call(Some("aria"), "main", 5, 5, Some(&dollars)),
            call(None, "side", 7, 0, Some(&dollars)),
            Record::Statement { companion: "aria".into() },
            Record::Evaluation { companion: "aria".into() },
            Record::Address { person: "ana".into(), message: crate::domain::id::Seq(1) },
        ]);

        let sum = &account.used;
        assert_eq!((sum.statements, sum.evaluations, sum.addresses), (1, 1, 1));
        let rows: Vec<_> = account.calls_by().iter().map(|by| (by.role.to_string(), by.calls.calls)).collect();
        assert_eq!(rows, [("side".to_owned(), 1), ("main".to_owned(), 1), ("side".to_owned(), 2)]);
        let sum = &sum.calls;
        assert_eq!((sum.calls, sum.usage.input_tokens, sum.usage.output_tokens), (4, 312, 35));
        assert_eq!(sum.costs.cost, Some(dollars.of(TokenUsage::new(312, 35))));
    }

    #[test]
    fn a_call_without_a_price_has_no_cost_and_is_counted_as_unpriced() {
        let account = counted([call(None, "side", 100, 10, None), call(None, "side", 1, 1, Some(&Price::free("USD")))]);

        let sum = account.used.calls;

        assert_eq!((sum.calls, sum.unpriced_calls), (2, 1));
        assert_eq!(sum.costs.cost, Some(Cost::default()));
        assert_eq!(counted([call(None, "side", 100, 10, None)]).used.calls.costs, Costs::default());
    }

    #[test]
    fn speech_is_added_up_by_service_provider_and_companion() {
        let speech = |service, companion: Option<&str>, amount, price| Record::Speech {
            service,
            companion: companion.map(Into::into),
            provider: "p".into(),
            amount,
            price,
        };
        let (heard, spoken) = (Service::SpeechRecognition, Service::SpeechSynthesis);
        let dollars = UnitPrice::per_million_characters(10.0, "USD");

        let account = counted([
            speech(heard, None, 1_500, None),
            speech(heard, None, 500, None),
            speech(spoken, Some("aria"), 100, Some(dollars.clone())),
            speech(spoken, Some("bruno"), 50, Some(dollars.clone())),
        ]);

        assert_eq!(account.used.calls, Calls::default());
        let sums: Vec<_> = account.speech.values().map(|speech| (speech.recognised_ms, speech.characters)).collect();
        assert_eq!(sums, [(2_000, 0), (0, 100), (0, 50)]);
        let costs = Costs { cost: Some(dollars.of(150)), ..Costs::default() };
        assert_eq!(account.used.speech, Speech { recognised_ms: 2_000, characters: 150, costs });
    }

    #[test]
    fn currencies_are_not_mixed() {
        let (dollars, euros) = (Price::per_million(1.0, 2.0, "USD"), Price::per_million(3.0, 4.0, "EUR"));

        let account = counted([call(None, "side", 9, 9, Some(&dollars)), call(None, "side", 9, 9, Some(&euros))]);

        let costs = Costs {
            cost: Some(dollars.of(TokenUsage::new(9, 9))),
            other_costs: [("EUR".into(), euros.of(TokenUsage::new(9, 9)))].into(),
        };
        assert_eq!(account.used.calls.costs, costs);
    }

    #[test]
    fn cached_tokens_cost_their_own_price_at_that_time_and_are_added_up() {
        let dollars = Price::per_million(1.0, 2.0, "USD").with_cache(Some(0.1), None);
        let mut cached = call(None, "main", 1_000, 10, Some(&dollars));
        if let Record::Call { usage, .. } = &mut cached {
            usage.cache_read_tokens = Some(900);
        }

        let sum = counted([call(None, "main", 1_000, 10, Some(&dollars)), cached]).used.calls;

        assert_eq!((sum.usage.input_tokens, sum.usage.cache_read_tokens), (2_000, Some(900)));
        assert_eq!(sum.usage.cached_share(), Some(0.45));
        assert_eq!(sum.costs.cost.map(Cost::as_units), Some(0.001_23));
    }

    #[test]
    fn every_retry_counts_as_a_call() {
        let mut retried = call(Some("aria"), "side", 10, 2, None);
        if let Record::Call { calls, failed_calls, .. } = &mut retried {
            (*calls, *failed_calls) = (3, 2);
        }

        let sum = counted([retried]).used.calls;

        assert_eq!((sum.calls, sum.failed_calls, sum.unpriced_calls, sum.usage.input_tokens), (3, 2, 3, 10));
    }

    fn call(companion: Option<&str>, role: &str, input: u64, output: u64, price: Option<&Price>) -> Record {
        Record::Call {
            service: Service::LanguageModel,
            companion: companion.map(Into::into),
            model: "m".into(),
            provider: "p".into(),
            role: role.into(),
            usage: TokenUsage::new(input, output),
            calls: 1,
            failed_calls: 0,
            price: price.cloned(),
        }
    }

    fn counted(used: impl IntoIterator<Item = Record>) -> Account {
        let mut account = Account::new("USD");
        for used in used {
            account.count(UsageRecord { at: Moment::ZERO, channel: "console:lobby".into(), used });
        }
        account
    }
}
