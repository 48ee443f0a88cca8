//! Adds up a guild's usage record by record. Memory grows with the number of distinct callers, not with the number of records.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::{UsageRecord, Used};
use crate::domain::id::CompanionId;
use crate::domain::price::Cost;
use crate::domain::service::Service;

/// The usage of a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub statements: u64,
    /// The number of evaluations for a lull, an interjection or a turn.
    pub evaluations: u64,
    /// The number of evaluations because somebody addressed a companion.
    pub addresses: u64,
    pub by: BTreeMap<Caller, Calls>,
    /// What services for speech did.
    pub speech: BTreeMap<Speaker, Speech>,
}

/// Who called which service, with which model and in which role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub service: Service,
    /// The companion; none: the call was for the channel itself (summaries, judgements).
    pub companion: Option<CompanionId>,
    /// `gen_ai.request.model`.
    pub model: Arc<str>,
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// `side` or `main`.
    pub role: Arc<str>,
}

/// Which service for speech did something, and for whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speaker {
    pub service: Service,
    /// The companion that spoke; none: people were heard.
    pub companion: Option<CompanionId>,
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
}

/// Totals of speech.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speech {
    /// Milliseconds of audio that were recognised.
    pub recognised_ms: u64,
    pub characters: u64,
    /// The cost of what has a price, by currency.
    pub costs: BTreeMap<Arc<str>, Cost>,
}

/// Totals of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The number of calls, every retry counted.
    pub calls: u64,
    /// The number of those without an answer, whose tokens are unknown.
    pub failed: u64,
    /// The number of those without a price on record, which no cost includes.
    pub unpriced: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The cost of those with a price, by currency.
    pub costs: BTreeMap<Arc<str>, Cost>,
}

impl Account {
    pub fn count(&mut self, record: UsageRecord) {
        match record.used {
            Used::Statement { .. } => self.statements += 1,
            Used::Evaluation { .. } => self.evaluations += 1,
            Used::Address { .. } => self.addresses += 1,
            Used::Speech { service, companion, provider, amount, price } => {
                let speech = self.speech.entry(Speaker { service, companion, provider }).or_default();
                let sum = if service == Service::SpeechSynthesis { &mut speech.characters } else { &mut speech.recognised_ms };
                *sum = sum.saturating_add(amount);
                if let Some(price) = price {
                    *speech.costs.entry(price.currency.clone()).or_default() += price.of(amount);
                }
            }
            Used::Call { service, companion, model, provider, role, input_tokens, output_tokens, calls, failed_calls, price } => {
                let calls_of_caller = self.by.entry(Caller { service, companion, model, provider, role }).or_default();
                calls_of_caller.calls += u64::from(calls);
                calls_of_caller.failed += u64::from(failed_calls);
                calls_of_caller.input_tokens = calls_of_caller.input_tokens.saturating_add(input_tokens);
                calls_of_caller.output_tokens = calls_of_caller.output_tokens.saturating_add(output_tokens);
                match price {
                    Some(price) => {
                        let cost = price.of(input_tokens, output_tokens);
                        *calls_of_caller.costs.entry(price.currency).or_default() += cost;
                    }
                    None => calls_of_caller.unpriced += u64::from(calls),
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The sum of all calls.
    pub fn calls(&self) -> Calls {
        let mut sum = Calls::default();
        for calls in self.by.values() {
            sum.add(calls);
        }
        sum
    }

    /// The sum of all speech.
    pub fn speech(&self) -> Speech {
        let mut sum = Speech::default();
        for speech in self.speech.values() {
            sum.recognised_ms = sum.recognised_ms.saturating_add(speech.recognised_ms);
            sum.characters = sum.characters.saturating_add(speech.characters);
            add_costs(&mut sum.costs, &speech.costs);
        }
        sum
    }
}

impl Calls {
    /// Adds other calls.
    pub fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.failed += more.failed;
        self.unpriced += more.unpriced;
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        add_costs(&mut self.costs, &more.costs);
    }
}

/// Adds costs, each in its currency.
fn add_costs(sum: &mut BTreeMap<Arc<str>, Cost>, more: &BTreeMap<Arc<str>, Cost>) {
    for (currency, cost) in more {
        *sum.entry(currency.clone()).or_default() += *cost;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::domain::moment::Moment;
    use crate::domain::price::{Price, UnitPrice};

    #[test]
    fn usage_is_added_up_by_caller() {
        let dollars = Price::per_million(1.0, 2.0, "USD");

        let account = counted([
            call(Some("aria"), "side", 100, 10, Some(&dollars)),
            call(Some("aria"), "side", 200, 20, Some(&dollars)),
            call(Some("aria"), "main", 5, 5, Some(&dollars)),
            call(None, "side", 7, 0, Some(&dollars)),
            Used::Statement { companion: "aria".into() },
            Used::Evaluation { companion: "aria".into() },
            Used::Address { person: "ana".into(), message: crate::domain::id::Seq(1) },
        ]);

        assert_eq!((account.statements, account.evaluations, account.addresses), (1, 1, 1));
        let rows: Vec<_> = account.by.iter().map(|(caller, calls)| (caller.role.to_string(), calls.calls)).collect();
        assert_eq!(rows, [("side".to_owned(), 1), ("main".to_owned(), 1), ("side".to_owned(), 2)]);
        let sum = account.calls();
        assert_eq!((sum.calls, sum.input_tokens, sum.output_tokens), (4, 312, 35));
        assert_eq!(sum.costs["USD"], dollars.of(312, 35));
    }

    #[test]
    fn a_call_without_a_price_has_no_cost_and_is_counted_as_unpriced() {
        let account = counted([call(None, "side", 100, 10, None), call(None, "side", 1, 1, Some(&Price::free("USD")))]);

        let sum = account.calls();

        assert_eq!((sum.calls, sum.unpriced), (2, 1));
        assert_eq!(sum.costs, BTreeMap::from([("USD".into(), Cost::default())]));
        assert_eq!(counted([call(None, "side", 100, 10, None)]).calls().costs, BTreeMap::new());
    }

    #[test]
    fn speech_is_added_up_by_service_provider_and_companion() {
        let speech = |service, companion: Option<&str>, amount, price| Used::Speech {
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

        assert_eq!(account.calls(), Calls::default());
        let sums: Vec<_> = account.speech.values().map(|speech| (speech.recognised_ms, speech.characters)).collect();
        assert_eq!(sums, [(2_000, 0), (0, 100), (0, 50)]);
        let costs = BTreeMap::from([("USD".into(), dollars.of(150))]);
        assert_eq!(account.speech(), Speech { recognised_ms: 2_000, characters: 150, costs });
    }

    #[test]
    fn currencies_are_not_mixed() {
        let (dollars, euros) = (Price::per_million(1.0, 2.0, "USD"), Price::per_million(3.0, 4.0, "EUR"));

        let costs = counted([call(None, "side", 9, 9, Some(&dollars)), call(None, "side", 9, 9, Some(&euros))]).calls().costs;

        assert_eq!(costs, BTreeMap::from([("USD".into(), dollars.of(9, 9)), ("EUR".into(), euros.of(9, 9))]));
    }

    #[test]
    fn every_retry_counts_as_a_call() {
        let mut retried = call(Some("aria"), "side", 10, 2, None);
        if let Used::Call { calls, failed_calls, .. } = &mut retried {
            (*calls, *failed_calls) = (3, 2);
        }

        let sum = counted([retried]).calls();

        assert_eq!((sum.calls, sum.failed, sum.unpriced, sum.input_tokens), (3, 2, 3, 10));
    }

    pub(crate) fn call(companion: Option<&str>, role: &str, input: u64, output: u64, price: Option<&Price>) -> Used {
        Used::Call {
            service: Service::LanguageModel,
            companion: companion.map(Into::into),
            model: "m".into(),
            provider: "p".into(),
            role: role.into(),
            input_tokens: input,
            output_tokens: output,
            calls: 1,
            failed_calls: 0,
            price: price.cloned(),
        }
    }

    fn counted(used: impl IntoIterator<Item = Used>) -> Account {
        let mut account = Account::default();
        for used in used {
            account.count(UsageRecord { at: Moment::ZERO, channel: "console:lobby".into(), used });
        }
        account
    }
}
