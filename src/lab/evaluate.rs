//! `tertulia-lab evaluate`: compares decisions with the behaviour of people in recorded group chat.

mod asking;
mod cap;
mod free;
mod progress;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use parking_lot::Mutex;

use self::asking::{Chat, Side, Stop};
use self::cap::Cap;
use self::progress::Progress;
use tertulia::cli::client::block_on;
use tertulia::cli::command_io::{print, print_json, run_with_settings};
use tertulia::cli::failure::Failure;
use tertulia::cli::visible;
use tertulia::evaluation::answers::{Answers, regular};
use tertulia::evaluation::comparison::compare;
use tertulia::evaluation::decisions::{Decision, decisions};
use tertulia::evaluation::excerpts::{self, Excerpt, Label};
use tertulia::evaluation::page::page;
use tertulia::evaluation::questions::Judged;
use tertulia::evaluation::report::{Report, Setting, companions, rows};
use tertulia::evaluation::{sample, shuffled};
use tertulia::settings::{self, Loaded, Overlay, Sources};

/// With two settings, the number of decisions that one is asked about before the other.
const TURN: usize = 50;

const EXAMPLES: &str = "\
Examples:
  tertulia-lab evaluate chat.jsonl.gz --baselines                  rules without a model: no calls
  tertulia-lab evaluate chat.jsonl.gz --most 500 --to trial        500 decisions; answers and report.html in trial
  tertulia-lab evaluate chat.jsonl.gz --to trial --most-cost 2     all decisions, for at most 2 units of models.currency
  tertulia-lab evaluate chat.jsonl.gz --to trial --against other   what two folders of settings decide differently
  tertulia-lab evaluate chat.jsonl.gz --free --to trial            how often the gate asks, not scored
  tertulia history export --room lobby --as chat --out lobby.jsonl && tertulia-lab evaluate lobby.jsonl

The format of files, and what the figures mean: docs/evaluate.md. Answers in the folder of --to are not asked again.

Exit codes:
  0  done
  1  failed, or not complete: a question has no answer, --most-cost was reached, the model kept failing, or Ctrl-C
  2  wrong usage, wrong settings, or a file that is no group chat";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Evaluate {
    /// Recorded group chat, .jsonl or .jsonl.gz: one excerpt a line
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// How many authors of each excerpt are the companion in turn: the most active ones
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    pub authors: usize,
    /// An author that is a program, and never the companion; may be repeated
    #[arg(long, value_name = "NAME")]
    pub bot: Vec<String>,
    /// What counts as a reply [default: what the excerpt says, else reply]
    #[arg(long, value_enum)]
    pub label: Option<Label>,
    /// Ask with the persona, chattiness and model of this companion, under the name of the author [default: a neutral persona]
    #[arg(long, value_name = "ID")]
    pub companion: Option<String>,
    /// At most this many decisions, drawn from all; with --free, authors
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub most: Option<usize>,
    /// Only measure the rules without a model; nothing is asked
    #[arg(long, conflicts_with_all = ["free", "against", "against_profile", "most_cost"])]
    pub baselines: bool,
    /// Play the messages through the gate, which decides when to ask; not scored
    #[arg(long, conflicts_with_all = ["against", "against_profile", "label", "html"])]
    pub free: bool,
    /// Keep answers in this folder, and the report except with --free; ask only what is not there
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
    /// Write the report to this HTML file [default: report.html in the folder of --to]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Stop before this run costs more, in models.currency
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    pub most_cost: Option<f64>,
    /// Compare with the settings in this folder
    #[arg(long, value_name = "OTHER_CONFIG")]
    pub against: Option<PathBuf>,
    /// Compare with this profile, of that folder or of the same one
    #[arg(long, value_name = "PROFILE")]
    pub against_profile: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "must be a whole number from 1".to_owned())
}

fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "must be an amount of money, such as 2 or 0.5".to_owned())
}

/// Runs the evaluation. Errors go to standard error.
pub fn run(sources: &Sources, options: &Evaluate) -> ExitCode {
    run_with_settings(sources, |loaded| {
        let excerpts = Arc::new(excerpts::read(&options.files).map_err(Failure::Usage)?);
        let label = options.label;
        let decisions = decisions(&excerpts, options.authors, &options.bot, label);
        if decisions.is_empty() {
            let why = "the files hold no decision: no message of somebody else is annotated, or `companions` names nobody; see docs/evaluate.md";
            return Err(Failure::Usage(why.to_owned()));
        }
        if options.baselines {
            let decisions = sample(decisions, options.most);
            return finish(options, &report(&excerpts, label, &decisions, Vec::new(), &[]), &[]);
        }
        let answers = options.to.as_deref().map_or_else(|| Ok(Answers::default()), Answers::open).map_err(Failure::Failed)?;
        let shared = Arc::new(Mutex::new(answers));
        let others = other_settings(sources, options)?;
        let sides = || [("first", loaded)].into_iter().chain(others.map(|other| ("second", other)));
        block_on(async {
            let cap = Arc::new(Cap::of(options.most_cost));
            let mut started = Vec::new();
            for (name, loaded) in sides() {
                started.push(Side::start(name, loaded, options, shared.clone(), cap.clone()).await?);
            }
            if options.free {
                return free::run(options, excerpts, &decisions, started.swap_remove(0)).await;
            }
            let decisions = sample(decisions, options.most);
            let judged = ask(&started, Chat { excerpts: &excerpts, decisions: &decisions }).await;
            let stops: Vec<_> = started.iter().filter_map(Side::stopped).collect();
            let missing = judged.iter().flatten().filter(|judged| judged.is_none()).count();
            finish(options, &report(&excerpts, label, &decisions, judged, &started), &stops)?;
            if missing == 0 {
                return Ok(());
            }
            Err(Failure::Failed(format!("{missing} questions have no answer, and are not in the figures; {}", goes_on(options))))
        })
    })
}

/// Asks the models of all settings about all decisions. The order is shuffled, so that a stopped run has answers for a sample. Two
/// settings take turns.
async fn ask(sides: &[Side], chat: Chat<'_>) -> Vec<Vec<Option<Judged>>> {
    let count = chat.decisions.len();
    let mut judged = vec![vec![None; count]; sides.len()];
    let mut progress = Progress::of("decisions", count * sides.len());
    let order = shuffled(count);
    'asking: for part in order.chunks(if sides.len() > 1 { TURN } else { count }) {
        for (side, judged) in sides.iter().zip(&mut judged) {
            if !side.ask_about(part, &chat, judged, &mut progress).await {
                break 'asking;
            }
            if let Some(stop) = side.stopped() {
                sides.iter().for_each(|side| side.stop(stop.clone()));
            }
        }
    }
    judged
}

/// The settings to compare with, if requested.
fn other_settings(sources: &Sources, options: &Evaluate) -> Result<Option<Loaded>, Failure> {
    let Evaluate { against, against_profile, .. } = options;
    if against.is_none() && against_profile.is_none() {
        return Ok(None);
    }
    let folder = against.clone().unwrap_or_else(|| sources.folder.clone());
    let sources = Sources { folder, folder_was_named: true, profile: against_profile.clone(), ..sources.clone() };
    let loaded = settings::load_with(&sources, &Overlay::new());
    loaded.map(Some).map_err(|problems| Failure::Usage(format!("--against: {problems}")))
}

/// Calculates the figures for the decisions that every setting answered.
fn report(
    excerpts: &[Excerpt],
    label: Option<Label>,
    decisions: &[Decision],
    judged: Vec<Vec<Option<Judged>>>,
    sides: &[Side],
) -> Report {
    let is_answered = |index: &usize| judged.iter().all(|judged| judged[*index].is_some());
    let answered: Vec<usize> = (0..decisions.len()).filter(is_answered).collect();
    let measured: Vec<&Decision> = answered.iter().map(|index| &decisions[*index]).collect();
    let mut judged: Vec<Vec<Judged>> =
        judged.iter().map(|judged| answered.iter().filter_map(|index| judged[*index].clone()).collect()).collect();
    let names: Vec<_> = sides.iter().map(|side| (side.title(sides.len() > 1), side.about())).collect();
    let rows = {
        let settings = names.iter().zip(&judged).map(|((name, about), judged)| Setting { name, about, judged });
        rows(excerpts, &measured, &settings.collect::<Vec<_>>())
    };
    let comparison = (judged.len() > 1).then(|| {
        let second = judged.swap_remove(1);
        compare(excerpts, &measured, &judged[0], &second)
    });
    let mut labels = BTreeMap::new();
    for excerpt in excerpts {
        *labels.entry(label.unwrap_or(excerpt.label)).or_default() += 1;
    }
    Report {
        excerpts: excerpts.len(),
        companions: companions(decisions),
        decisions: decisions.len(),
        measured: measured.len(),
        labels,
        rows,
        asked: names.iter().zip(sides).map(|((name, _), side)| side.asked(name)).collect(),
        comparison,
    }
}

/// Prints the report and writes its file. Fails if the run was stopped.
fn finish(options: &Evaluate, report: &Report, stops: &[Stop]) -> Result<(), Failure> {
    if options.json {
        print_json(&serde_json::to_string_pretty(report).map_err(|error| Failure::Failed(error.to_string()))?)?;
    } else {
        print(&visible::lines(report.to_string().trim_end()))?;
    }
    let html = options.html.clone().or_else(|| options.to.as_ref().map(|folder| folder.join("report.html")));
    if let Some(html) = html {
        write(&html, &page(report))?;
    }
    stopped(options, stops.first(), report.measured, report.decisions)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| regular(path))
        .and_then(|()| fs::write(path, text))
        .map_err(|error| Failure::Failed(format!("{}: cannot be written: {error}", path.display())))?;
    eprintln!("wrote {}", visible::path(path));
    Ok(())
}

/// The failure of a stopped run.
fn stopped(options: &Evaluate, stop: Option<&Stop>, done: usize, all: usize) -> Result<(), Failure> {
    let Some(stop) = stop else { return Ok(()) };
    Err(Failure::Failed(format!("stopped after {done} of {all}: {stop}; {}", goes_on(options))))
}

/// Advice on how to continue the run.
const fn goes_on(options: &Evaluate) -> &'static str {
    if options.to.is_some() {
        "the same command goes on from here"
    } else {
        "the answers are not kept; with --to FOLDER the same command goes on from where it stopped"
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::Lab;

    #[test]
    fn numbers_and_amounts_are_checked() {
        for (arguments, is_right) in [
            (&["chat.jsonl"][..], true),
            (&["a.jsonl", "b.jsonl", "--most", "5", "--most-cost", "0.5"], true),
            (&[], false),
            (&["chat.jsonl", "--most", "0"], false),
            (&["chat.jsonl", "--authors", "x"], false),
            (&["chat.jsonl", "--most-cost", "-1"], false),
            (&["chat.jsonl", "--free", "--against", "other"], false),
            (&["chat.jsonl", "--label", "turn_60s"], true),
        ] {
            let parsed = Lab::try_parse_from([&["tertulia-lab", "evaluate"], arguments].concat());

            assert_eq!(parsed.is_ok(), is_right, "{arguments:?}");
        }
    }
}
