//! The interjection policies of a channel. Channels of a guild with equal policies share one copy in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::domain::gate::InterjectionPolicy;
use crate::domain::id::CompanionId;

/// The interjection policy of each companion in a channel.
pub(super) type InterjectionPolicies = BTreeMap<CompanionId, InterjectionPolicy>;

/// The distinct policies that the channels of a guild use.
#[derive(Debug, Default)]
pub(super) struct SharedPolicies(Mutex<Vec<Weak<InterjectionPolicies>>>);

impl SharedPolicies {
    /// The shared copy of these policies.
    pub(super) fn shared(&self, policies: InterjectionPolicies) -> Arc<InterjectionPolicies> {
        let mut known = self.0.lock();
        known.retain(|known| known.strong_count() > 0);
        if let Some(same) = known.iter().filter_map(Weak::upgrade).find(|known| **known == policies) {
            return same;
        }
        let new = Arc::new(policies);
        known.push(Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn channels_with_equal_policies_share_them_while_one_of_the_channels_runs() {
        let guild = SharedPolicies::default();
        let policies = |starting_interval| {
            let (text_lull_timeout, voice_lull_timeout) = (Duration::from_secs(10), Duration::from_secs(5));
            InterjectionPolicies::from([(
                "aria".into(),
                InterjectionPolicy {
                    level: crate::settings::companion::Interjection::Average,
                    starting_interval,
                    text_lull_timeout,
                    voice_lull_timeout,
                    quiet_hours: [crate::domain::policy::quiet_hours::QuietHours::Never; 2],
                    starts_after: None,
                    max_turns: None,
                    repetition: true,
                },
            )])
        };

        let [lobby, den, attic] = [9, 9, 3].map(|starting_interval| guild.shared(policies(starting_interval)));

        assert!(Arc::ptr_eq(&lobby, &den));
        assert_eq!(*attic, policies(3));
        drop((lobby, den));
        assert_eq!(guild.shared(policies(9)).len(), 1);
        assert_eq!(guild.0.lock().len(), 2, "policies that no channel uses are dropped");
    }
}
