//! How patient companions are in a channel: kept once for all channels of a guild in which it is the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::domain::gate::InterjectionPolicy;
use crate::domain::id::CompanionId;

/// How patient everyone is in a channel.
pub(super) type InterjectionPolicies = BTreeMap<CompanionId, InterjectionPolicy>;

/// Those that some channel of a guild goes by, each once.
#[derive(Debug, Default)]
pub(super) struct SharedPolicies(Mutex<Vec<Weak<InterjectionPolicies>>>);

impl SharedPolicies {
    /// These, as another channel has them if one does.
    pub(super) fn shared(&self, policies: InterjectionPolicies) -> Arc<InterjectionPolicies> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn channels_in_which_everybody_is_as_patient_share_that_as_long_as_one_of_them_is_awake() {
        let guild = SharedPolicies::default();
        let of = |starting_interval| {
            let (text_lull_timeout, voice_lull_timeout) = (Duration::from_secs(10), Duration::from_secs(5));
            InterjectionPolicies::from([(
                "aria".into(),
                InterjectionPolicy { starting_interval, text_lull_timeout, voice_lull_timeout },
            )])
        };

        let [lobby, den, attic] = [9, 9, 3].map(|starting_interval| guild.shared(of(starting_interval)));

        assert!(Arc::ptr_eq(&lobby, &den));
        assert_eq!(*attic, of(3));
        drop((lobby, den));
        assert_eq!(guild.shared(of(9)).len(), 1);
        assert_eq!(guild.0.lock().unwrap().len(), 2, "those that nobody goes by are forgotten");
    }
}
