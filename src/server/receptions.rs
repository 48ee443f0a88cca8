//! Counts for the metrics how people received the statements of the last 24 hours. The counts are derived from the record again and again, so they
//! are right after a restart, and erased messages no longer count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::actors::runtime::hub::Hub;
use crate::domain::id::CompanionId;
use crate::domain::reception::Reception;
use crate::domain::trigger::Trigger;
use crate::ports::backend::record_service::RecordService;
use crate::ports::backend::usage::{ReceptionQuery, Receptions};
use crate::telemetry::instruments::Instruments;

/// The pause between two counts. It is longer if counting takes long, so that counting takes at most a hundredth of the time.
const PAUSE: Duration = Duration::from_secs(5);
const SHARE: u32 = 100;
/// The same while nothing is recorded. Only the ends of watches and of the 24 hours change the counts then.
const QUIET_PAUSE: Duration = Duration::from_secs(60);
const QUIET_SHARE: u32 = 1_000;
/// The label of statements whose model is not known.
const UNKNOWN: &str = "unknown";

type Series = (CompanionId, Trigger, Arc<str>, Reception);

/// The series of the metric. Dropping it sets them to zero, because the next one does not know them.
struct Shown {
    instruments: Instruments,
    series: BTreeMap<Series, u64>,
}

/// Counts until it is dropped.
pub(super) async fn keep_counting(records: Arc<dyn RecordService>, hub: Hub, instruments: Instruments) {
    let mut shown = Shown { instruments, series: BTreeMap::new() };
    loop {
        let (began, recorded) = (Instant::now(), hub.recorded());
        match records.receptions(ReceptionQuery::default()).await {
            Ok(receptions) => shown.show(receptions),
            // The store reports its failures itself.
            Err(error) => tracing::debug!(?error, "the reception of statements cannot be counted"),
        }
        let took = began.elapsed();
        sleep(PAUSE.max(took * SHARE)).await;
        while hub.recorded() == recorded && began.elapsed() < QUIET_PAUSE.max(took * QUIET_SHARE) {
            sleep(PAUSE).await;
        }
    }
}

impl Shown {
    fn show(&mut self, receptions: Receptions) {
        self.series.values_mut().for_each(|count| *count = 0);
        for by in receptions.guilds.into_iter().flat_map(|guild| guild.by) {
            let model = by.model.unwrap_or_else(|| UNKNOWN.into());
            for (reception, count) in by.received {
                *self.series.entry((by.companion.clone(), by.trigger, model.clone(), reception)).or_default() += count;
            }
        }
        for ((companion, trigger, model, reception), count) in &self.series {
            let labels = [companion.as_str(), trigger.as_str(), model, reception.as_str()].map(str::to_owned);
            self.instruments.statements_received.set(*count, labels);
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.show(Receptions { from: Default::default(), to: Default::default(), guilds: Vec::new() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::backend::usage::{GuildReceptions, ReceptionBy};
    use crate::telemetry::metrics::Metrics;

    #[test]
    fn the_metric_follows_the_record_over_all_guilds_and_ends_at_zero() {
        let metrics = Metrics::local();
        let mut shown = Shown { instruments: metrics.instruments(), series: BTreeMap::new() };
        let total = |reception| metrics.total("tertulia_statements_received", &[("statement_reception", reception)]);

        shown.show(of(["home", "club"], Some("m"), [(Reception::Answered, 2), (Reception::Stopped, 1)].into()));
        let both = [total("answered"), total("stopped")];
        let labels = [("companion_id", "aria"), ("decision_trigger", "lull"), ("gen_ai_request_model", "m")];
        let labelled = metrics.total("tertulia_statements_received", &labels);
        shown.show(of(["home"; 1], None, [(Reception::Answered, 1)].into()));
        let erased = [total("answered"), total("stopped")];
        let unknown = metrics.total("tertulia_statements_received", &[("gen_ai_request_model", "unknown")]);
        drop(shown);

        assert_eq!((both, labelled), ([4.0, 2.0], 6.0));
        assert_eq!((erased, unknown), ([1.0, 0.0], 1.0));
        assert_eq!(total("answered"), 0.0);
    }

    fn of<const N: usize>(guilds: [&str; N], model: Option<&str>, received: BTreeMap<Reception, u64>) -> Receptions {
        let by = |day: &str| ReceptionBy {
            day: day.into(),
            companion: "aria".into(),
            trigger: Trigger::Lull,
            model: model.map(Into::into),
            received: received.clone(),
        };
        let guilds = guilds.map(|guild| GuildReceptions { guild: guild.into(), by: vec![by("2026-05-01")], incomplete: false });
        Receptions { from: Default::default(), to: Default::default(), guilds: guilds.into() }
    }
}
