//! The briefs of long personas (docs/design/gate.md G-32), cached in memory for the prompts of decisions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::journal::key;
use crate::ports::store::key::Key;

/// The back-off after the first attempt without a brief. It doubles with each further one.
const FIRST_BACK_OFF: Duration = Duration::from_secs(60);
const MAX_BACK_OFF: Duration = Duration::from_secs(3_600);

/// The briefs, by the keys under which they are stored. Cheap to clone. All clones share their state.
#[derive(Clone, Default)]
pub struct Briefs(Arc<Mutex<BTreeMap<Key, Brief>>>);

enum Brief {
    Made(Arc<str>),
    /// A request to the side model is in flight. The number is that of the failed attempts before it.
    Asked(u32),
    /// The last attempt failed. The number is that of the failed attempts. The next attempt is not made before this time.
    Failed(u32, Instant),
}

/// The right to write a brief. Only one exists for a persona at a time. Dropping it without a brief counts as a failed attempt.
pub(super) struct Attempt {
    briefs: Briefs,
    pub(super) key: Key,
}

impl Briefs {
    /// The brief of a persona. None if it is not written yet.
    pub(super) fn of(&self, persona: &str) -> Option<Arc<str>> {
        match self.0.lock().get(&key::brief(persona)) {
            Some(Brief::Made(text)) => Some(text.clone()),
            _ => None,
        }
    }

    /// Begins an attempt to write a brief. `None`: the brief exists, is being written, or backs off.
    pub(super) fn begin(&self, persona: &str) -> Option<Attempt> {
        let key = key::brief(persona);
        let mut briefs = self.0.lock();
        let failures = match briefs.get(&key) {
            None => 0,
            Some(Brief::Failed(failures, until)) if Instant::now() >= *until => *failures,
            Some(_) => return None,
        };
        briefs.insert(key.clone(), Brief::Asked(failures));
        Some(Attempt { briefs: self.clone(), key })
    }

    pub(super) fn put(&self, key: Key, text: Arc<str>) {
        self.0.lock().insert(key, Brief::Made(text));
    }

    /// Removes the briefs that are not needed, except those that are being written.
    pub(super) fn retain(&self, is_needed: impl Fn(&Key) -> bool) {
        self.0.lock().retain(|key, brief| is_needed(key) || matches!(brief, Brief::Asked(_)));
    }
}

impl Attempt {
    /// Stores the written brief.
    pub(super) fn finish(self, text: Arc<str>) {
        self.briefs.put(self.key.clone(), text);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut briefs = self.briefs.0.lock();
        if let Some(Brief::Asked(failures)) = briefs.get(&self.key) {
            let failures = *failures;
            let back_off = FIRST_BACK_OFF.saturating_mul(1 << failures.min(10)).min(MAX_BACK_OFF);
            briefs.insert(self.key.clone(), Brief::Failed(failures + 1, Instant::now() + back_off));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_brief_is_attempted_by_one_at_a_time_and_after_growing_back_offs() {
        let briefs = Briefs::default();
        let attempt = briefs.begin("long").expect("nobody makes it");
        assert!(briefs.begin("long").is_none() && briefs.begin("other").is_some());

        drop(attempt);
        let mut waits = Vec::new();
        for _ in 0..8 {
            let failed_at = Instant::now();
            let attempt = loop {
                match briefs.begin("long") {
                    Some(attempt) => break attempt,
                    None => tokio::time::advance(Duration::from_secs(30)).await,
                }
            };
            waits.push(failed_at.elapsed().as_secs());
            drop(attempt);
        }

        assert_eq!(waits, [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_brief_that_is_made_is_found_by_its_persona_until_it_is_no_longer_needed() {
        let briefs = Briefs::default();
        briefs.begin("long").expect("nobody makes it").finish("short".into());

        assert_eq!((briefs.of("long").as_deref(), briefs.of("other")), (Some("short"), None));
        assert!(briefs.begin("long").is_none());
        briefs.retain(|key| *key != key::brief("long"));
        assert_eq!(briefs.of("long"), None);
    }
}
