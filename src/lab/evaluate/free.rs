//! Free runs, in which the gate decides when a model is asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use tokio::runtime::Handle;

use super::asking::{Side, Stop};
use super::progress::Progress;
use super::{Evaluate, stopped};
use tertulia::cli::command_io::{print, print_json};
use tertulia::cli::failure::Failure;
use tertulia::cli::visible;
use tertulia::evaluation::decisions::Decision;
use tertulia::evaluation::excerpts::Excerpt;
use tertulia::evaluation::free_run::{Played, play};
use tertulia::evaluation::report::FreeReport;
use tertulia::evaluation::sample;

/// Replays each excerpt once for each author in the companion's role, and prints the counts. Unfinished runs are left out.
pub(super) async fn run(
    options: &Evaluate,
    excerpts: Arc<Vec<Excerpt>>,
    decisions: &[Decision],
    side: Side,
) -> Result<(), Failure> {
    let authors: BTreeSet<_> = decisions.iter().map(|decision| (decision.excerpt, decision.companion.clone())).collect();
    let authors = sample(authors.into_iter().collect(), options.most);
    let (side, all) = (Arc::new(side), authors.len());
    let (mut report, mut played_excerpts) = (FreeReport::default(), BTreeSet::new());
    let mut progress = Progress::of("authors", all);
    let runs = stream::iter(authors).map(|(excerpt, author)| {
        let (side, excerpts, handle) = (side.clone(), excerpts.clone(), Handle::current());
        let run = move || -> Result<Played, String> {
            let ask = |request| {
                let answer = handle.block_on(side.answer(request, false));
                answer.map(|kept| kept.answer).ok_or_else(|| "no answer".to_owned())
            };
            play(&excerpts[excerpt], &author, &side.companion, &side.settings, &mut { ask })
        };
        async move { (excerpt, tokio::task::spawn_blocking(run).await) }
    });
    let mut runs = std::pin::pin!(runs.buffer_unordered(side.concurrent));
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    while !side.is_stopped() {
        let (excerpt, outcome) = tokio::select! {
            biased;
            _ = &mut interrupt => {
                side.stop(Stop::Interrupted);
                break;
            }
            next = runs.next() => match next {
                Some(next) => next,
                None => break,
            },
        };
        let played = outcome.map_err(|error| Failure::Failed(format!("a run failed: {error}")))?.map_err(Failure::Failed)?;
        if !side.is_stopped() {
            report.played.add(&played);
            report.companions += 1;
            played_excerpts.insert(excerpt);
            progress.step(side.spent(), &side.settings.models.currency);
        }
    }
    report.excerpts = played_excerpts.len();
    report.usage = side.asked(&side.title(false));
    if options.json {
        print_json(&serde_json::to_string_pretty(&report).map_err(|error| Failure::Failed(error.to_string()))?)?;
    } else {
        print(&visible::lines(report.to_string().trim_end()))?;
    }
    stopped(options, side.stopped().as_ref(), report.companions, all)
}
