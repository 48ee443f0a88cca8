//! The state that the channels of a guild share: the usage that counts against the budgets, and the interjection policies.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OnceCell;

use super::interjection_policies::SharedPolicies;
use crate::domain::budget::{Budget, Ledger};
use crate::domain::moment::Moment;

/// The time without a refusal after which a budget counts as sufficient again. When the budget is used up the next time, that is logged again.
const ENOUGH_FOR: Duration = Duration::from_secs(3_600);

/// A guild's usage and interjection policies, shared by its channels.
#[derive(Debug, Default)]
pub struct GuildBudgets {
    /// The usage that counts against the budgets.
    ledger: Mutex<Ledger>,
    /// Set once the usage from before the start is in the ledger.
    pub(super) is_loaded: OnceCell<()>,
    /// When each used-up budget of the guild last silenced a companion.
    last_refused: Mutex<BTreeMap<Budget, Moment>>,
    /// The policies are mostly the same in all channels of a guild.
    pub(super) policies: SharedPolicies,
}

impl GuildBudgets {
    /// Locks the ledger. The guard must not be held across an await.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    /// Records that this budget silenced a companion. Returns whether to log that, because the budget was sufficient for a while before.
    pub(super) fn must_log(&self, budget: Budget, now: Moment) -> bool {
        let before = self.last_refused.lock().insert(budget, now);
        before.is_none_or(|before| now.since(before) >= ENOUGH_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_up_budget_is_logged_once_until_it_was_sufficient_for_a_while() {
        let budgets = GuildBudgets::default();
        let must_log = |budget, minute: u64| budgets.must_log(budget, Moment::from_micros(minute * 60_000_000));

        let logged = [0, 1, 50, 100, 159, 219, 280].map(|minute| must_log(Budget::GuildTokens, minute));

        assert_eq!(logged, [true, false, false, false, false, true, true]);
        assert!(must_log(Budget::GuildStatements, 281), "budgets are independent");
    }
}
