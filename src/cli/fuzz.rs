//! Fuzz targets for command lines and the times in them.

use clap::Parser;

use super::{Cli, time};
use crate::domain::moment::Moment;
use crate::fuzzing::{is_bounded, text, texts};
use crate::settings::duration::duration;

const NOW: Moment = Moment::from_micros(1_777_636_800_000_000);

pub(crate) fn command_lines() -> Vec<Vec<u8>> {
    texts(&[
        "serve --accept-loss",
        "why lobby aria --at 2h30m --json",
        "usage --last 7d --guild home",
        "usage --safety",
        "history export --as replay lobby",
        "history forget ana --guild home",
        "--config /etc/tertulia --profile production check --json",
        "replay night.toml",
        "evaluate a.jsonl b.jsonl.gz --most 5 --most-cost 0.5 --against other --to trial",
        "health --server http://127.0.0.1:1",
        "discord check",
    ])
}

pub(crate) fn arguments(bytes: &[u8]) {
    let all = text(bytes);
    let words = ["tertulia"].into_iter().chain(all.split_whitespace().take(200));

    match Cli::try_parse_from(words) {
        Ok(cli) => drop(cli.command_or_default()),
        Err(error) => {
            let message = error.to_string();
            assert!(
                !message.is_empty() && is_bounded(&message, 20_000 + 4 * all.len()),
                "the error message is empty or too long"
            );
            assert!([0, 2].contains(&error.exit_code()), "{}", error.exit_code());
        }
    }
}

pub(crate) fn times(bytes: &[u8]) {
    let text = text(bytes);

    let (moment, duration) = (time::moment(&text, NOW), duration(&text));
    assert!(
        duration.is_none() || moment.is_some_and(|moment| moment <= NOW),
        "a duration before now gives a moment in the future"
    );
    assert!(moment.is_none() || time::moment_of("--at", &text, NOW).is_ok(), "an option rejects a time");
}
