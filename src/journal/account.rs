//! Adds up what a guild used, record by record: however many there are, what is kept grows only with who used what.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::{UsageRecord, Used};
use crate::domain::id::CompanionId;
use crate::domain::price::Cost;
use crate::domain::service::Service;

/// What was used in a while.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Statements that were made.
    pub statements: u64,
    /// Questions for a lull, an interjection or a turn.
    pub evaluations: u64,
    /// Questions because somebody addressed a companion.
    pub addresses: u64,
    /// What the calls to models came to, by who made them of what.
    pub by: BTreeMap<Caller, Calls>,
}

/// Who called which model, and in which role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    /// Of which kind of service.
    pub service: Service,
    /// For whom; none: for the channel itself (summaries, judgements).
    pub companion: Option<CompanionId>,
    /// `gen_ai.request.model`.
    pub model: Arc<str>,
    /// `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// `side` or `main`.
    pub role: Arc<str>,
}

/// What calls came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls made, every try counted.
    pub calls: u64,
    /// How many of them gave no answer, and told no tokens.
    pub failed: u64,
    /// How many of them have no price on record: they are in no cost.
    pub unpriced: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// What those with a price cost, by currency.
    pub costs: BTreeMap<Arc<str>, Cost>,
}

impl Account {
    /// Counts one record.
    pub fn count(&mut self, record: UsageRecord) {
        match record.used {
            Used::Statement { .. } => self.statements += 1,
            Used::Evaluation { .. } => self.evaluations += 1,
            Used::Address { .. } => self.addresses += 1,
            Used::Call { service, companion, model, provider, role, input_tokens, output_tokens, calls, failed_calls, price } => {
                let one = self.by.entry(Caller { service, companion, model, provider, role }).or_default();
                one.calls += u64::from(calls);
                one.failed += u64::from(failed_calls);
                one.input_tokens = one.input_tokens.saturating_add(input_tokens);
                one.output_tokens = one.output_tokens.saturating_add(output_tokens);
                match price {
                    Some(price) => {
                        let cost = price.of(input_tokens, output_tokens);
                        *one.costs.entry(price.currency).or_default() += cost;
                    }
                    None => one.unpriced += u64::from(calls),
                }
            }
        }
    }

    /// Whether nothing was used.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All calls together.
    pub fn calls(&self) -> Calls {
        let mut sum = Calls::default();
        for one in self.by.values() {
            sum.add(one);
        }
        sum
    }
}

impl Calls {
    /// With these, too.
    pub fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.failed += more.failed;
        self.unpriced += more.unpriced;
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        for (currency, cost) in &more.costs {
            *self.costs.entry(currency.clone()).or_default() += *cost;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::domain::moment::Moment;
    use crate::domain::price::Price;

    #[test]
    fn what_was_used_is_added_up_by_who_used_what() {
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
    fn a_call_without_a_price_has_no_cost_and_is_told_apart() {
        let account = counted([call(None, "side", 100, 10, None), call(None, "side", 1, 1, Some(&Price::free("USD")))]);

        let sum = account.calls();

        assert_eq!((sum.calls, sum.unpriced), (2, 1));
        assert_eq!(sum.costs, BTreeMap::from([("USD".into(), Cost::default())]));
        assert_eq!(counted([call(None, "side", 100, 10, None)]).calls().costs, BTreeMap::new());
    }

    #[test]
    fn currencies_are_not_mixed() {
        let (dollars, euros) = (Price::per_million(1.0, 2.0, "USD"), Price::per_million(3.0, 4.0, "EUR"));

        let costs = counted([call(None, "side", 9, 9, Some(&dollars)), call(None, "side", 9, 9, Some(&euros))]).calls().costs;

        assert_eq!(costs, BTreeMap::from([("USD".into(), dollars.of(9, 9)), ("EUR".into(), euros.of(9, 9))]));
    }

    #[test]
    fn every_try_counts_as_a_call() {
        let mut tried = call(Some("aria"), "side", 10, 2, None);
        if let Used::Call { calls, failed_calls, .. } = &mut tried {
            (*calls, *failed_calls) = (3, 2);
        }

        let sum = counted([tried]).calls();

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
