//! Measures the cost of deciding: calls and tokens per hundred messages by people, with one, three and eight companions in a room. It compares
//! these ways: ours without skipping messages for others, ours, and ours with one call for a round, with the pre-gate, and with both.
//!
//! `cargo bench --bench calls` prints two Markdown tables, which are the same in every run. One is for the human side of the recorded talks. The
//! other is for generated evenings of a group chat, in the proportions measured in public ones. `-- FILE` prints one for the recorded chat of a file
//! (docs/evaluate.md). All models are the built-in rehearsal, time is
//! virtual, tokens are estimated as four characters each, and budgets do not apply.

mod cast;
mod chat;

use std::collections::BTreeMap;

use cast::{Calls, Rehearsed, cast};
use chat::saying_of;
use tertulia::domain::id::CompanionId;
use tertulia::domain::policy::gate::PreGate;
use tertulia::replay::{ReplayEvent, ReplayEventKind, Script, run_with};

/// Numbers of companions in the room.
const SIZES: [usize; 3] = [1, 3, 8];
/// Conversations whose first difference is printed, for each comparison.
const EXAMPLES: usize = 3;

/// Which companions are asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Companions with a reason of their own to speak are asked.
    WithoutSkipping,
    /// The same, except about messages for others.
    Ours,
    /// The same. One call asks all companions that are asked together.
    Together,
    /// As ours, except about messages that the pre-gate finds irrelevant.
    Skip,
    /// The same. One call asks all companions that are asked together.
    SkipTogether,
    /// The same, with a lower threshold of the pre-gate.
    SkipLessTogether,
}

/// The lower threshold, which docs/relevance.md recommends for talkative companions.
const LOWER: f64 = -3.5;

impl Way {
    const ALL: [Self; 6] =
        [Self::WithoutSkipping, Self::Ours, Self::Together, Self::Skip, Self::SkipTogether, Self::SkipLessTogether];
    /// The place of [`Self::Ours`], whose statements the other ways are compared with.
    const DEFAULT: usize = 1;

    const fn name(self) -> &'static str {
        match self {
            Self::WithoutSkipping => "who has a reason of its own",
            Self::Ours => "the same, but not about talk for others (default)",
            Self::Together => "the same, in one call for a round",
            Self::Skip => "the default, but not about what the pre-gate skips",
            Self::SkipTogether => "the same, in one call for a round",
            Self::SkipLessTogether => "the same, with a threshold of −3.5",
        }
    }
}

/// The cost of one way of deciding, and its statements.
#[derive(Default)]
struct Bill {
    people: u64,
    side: Calls,
    main: Calls,
    said: BTreeMap<ChannelRef, Said>,
}

/// The conversation's number, the number of messages by people before the statement, the speaker, and the number of its statements since the last
/// such message.
type ChannelRef = (usize, usize, CompanionId, usize);

/// A statement, and the human words before it.
#[derive(Clone)]
struct Said {
    after: String,
    /// That was a message for one person, by a mention or as a reply.
    is_for_a_person: bool,
    text: String,
}

fn main() -> anyhow::Result<()> {
    // Cargo passes `--bench`.
    if let Some(file) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) {
        println!("## {file}\n");
        return measure(|_| chat::excerpts(&file));
    }
    println!("## The human side of the recorded talks\n");
    measure(|_| chat::recorded())?;
    println!("## {} evenings of a group chat\n\n{}\n", chat::EVENINGS, chat::proportions(&chat::evenings(1)?));
    measure(chat::evenings)
}

fn measure(chats: impl Fn(usize) -> anyhow::Result<Vec<Script>>) -> anyhow::Result<()> {
    let mut differences = String::new();
    for (row, size) in SIZES.into_iter().enumerate() {
        let chats = chats(size)?;
        let bills = Way::ALL.map(|way| bill(&chats, size, way));
        let bills = bills.into_iter().collect::<anyhow::Result<Vec<Bill>>>()?;
        if row == 0 {
            print_head(bills[0].people);
        }
        for (way, bill) in Way::ALL.into_iter().zip(&bills) {
            print_row(size, way, bill, &bills);
        }
        for (from, to) in [(0, 1), (1, 2), (1, 3), (3, 4)] {
            differences += &compare(size, (Way::ALL[from], &bills[from]), (Way::ALL[to], &bills[to]));
        }
    }
    println!("\nDifferent statements:\n\n{differences}");
    Ok(())
}

fn bill(chats: &[Script], size: usize, way: Way) -> anyhow::Result<Bill> {
    let mut bill = Bill::default();
    for (place, chat) in chats.iter().enumerate() {
        let mut script = chat.clone();
        let gate = &mut script.settings.gate;
        gate.skip_when_other_addressed = way != Way::WithoutSkipping;
        if matches!(way, Way::Skip | Way::SkipTogether | Way::SkipLessTogether) {
            gate.pre_gate = PreGate::Skip;
        }
        if way == Way::SkipLessTogether {
            gate.pre_gate_threshold = LOWER;
        }
        gate.evaluations_per_hour = u32::MAX;
        gate.guild_evaluations_per_hour = u32::MAX;
        gate.addresses_per_minute = u32::MAX;
        gate.guild_statements_per_day = u32::MAX;
        script.companions = cast(size, &script.settings)?;
        let asks_together = matches!(way, Way::Together | Way::SkipTogether | Way::SkipLessTogether);
        let mut responder = Rehearsed::new(&script.companions, &script.settings, asks_together);
        let happenings = run_with(&script, &mut responder)?;
        bill.people += script.events.iter().filter_map(saying_of).count() as u64;
        bill.side += responder.side;
        bill.main += responder.main;
        note_statements(place, &script, &happenings, &mut bill.said);
    }
    Ok(bill)
}

fn note_statements(chat: usize, script: &Script, happenings: &[ReplayEvent], said: &mut BTreeMap<ChannelRef, Said>) {
    let mut events: Vec<_> = script.events.iter().collect();
    events.sort_by_key(|event| (event.at, &event.channel));
    let mut human = events.into_iter().filter_map(saying_of);
    let (mut people, mut after, mut is_for_a_person, mut is_statement) = (0, String::new(), false, false);
    for happening in happenings {
        match &happening.kind {
            ReplayEventKind::Statement { companion, text } => {
                is_statement = true;
                let earlier = said.keys().filter(|(c, p, who, _)| (*c, *p, who) == (chat, people, companion)).count();
                let words = Said { after: after.clone(), is_for_a_person, text: text.clone() };
                said.insert((chat, people, companion.clone(), earlier), words);
            }
            ReplayEventKind::Message { .. } if is_statement => is_statement = false,
            ReplayEventKind::Message { from, text, .. } => {
                people += 1;
                let to = human.next().and_then(|(_, saying)| saying.mentions.first().or(saying.reply_to.as_ref()));
                is_for_a_person = to.is_some();
                after = format!("{from}{}: {text}", to.map(|person| format!(" to {person}")).unwrap_or_default());
            }
            _ => {}
        }
    }
}

fn print_head(people: u64) {
    println!("Per 100 messages by people ({people} were played):\n");
    println!(
        "| companions | who is asked | side-model calls | main-model calls | tokens to decide | tokens to speak | all tokens (first way: 100 %) \
         | statements of the default that are kept |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
}

fn print_row(size: usize, way: Way, bill: &Bill, bills: &[Bill]) {
    let per_hundred = |count: u64| count as f64 * 100.0 / bill.people as f64;
    let thousands = |tokens: u64| format!("{:.0} k", per_hundred(tokens) / 1_000.0);
    let (side, main) = (bill.side.usage.total(), bill.main.usage.total());
    let (first, default) = (&bills[0], &bills[Way::DEFAULT]);
    let kept = default.said.keys().filter(|statement| bill.said.contains_key(statement)).count();
    let all_of_first = first.side.usage.total() + first.main.usage.total();
    println!(
        "| {size} | {} | {:.0} | {:.0} | {} | {} | {:.0} % | {:.0} % |",
        way.name(),
        per_hundred(bill.side.count),
        per_hundred(bill.main.count),
        thousands(side),
        thousands(main),
        (side + main) as f64 * 100.0 / all_of_first as f64,
        kept as f64 * 100.0 / default.said.len() as f64
    );
}

/// The statements that occur in one way and not in the other. The first difference of a conversation is caused by the way; later ones often follow
/// from it.
fn compare(size: usize, (one_way, one): (Way, &Bill), (other_way, other): (Way, &Bill)) -> String {
    let only_in = |some: &Bill, others: &Bill, when| -> Vec<(ChannelRef, Said, &'static str)> {
        let missing = some.said.iter().filter(|(channel_ref, _)| !others.said.contains_key(channel_ref));
        missing.map(|(channel_ref, said)| (channel_ref.clone(), said.clone(), when)).collect()
    };
    let before = only_in(one, other, "only before");
    let after = only_in(other, one, "only after");
    let for_a_person = |some: &[(ChannelRef, Said, &str)]| some.iter().filter(|(_, said, _)| said.is_for_a_person).count();
    let mut text = format!(
        "* {size} present, from \"{}\" to \"{}\": {} statements by the same companion after the same message; {} only before, {} of them \
         after a message for one person; {} only after, {} of them after such a message.\n",
        one_way.name(),
        other_way.name(),
        one.said.len() - before.len(),
        before.len(),
        for_a_person(&before),
        after.len(),
        for_a_person(&after),
    );
    let mut first = BTreeMap::new();
    let mut differing: Vec<_> = before.into_iter().chain(after).collect();
    differing.sort_by(|(channel_ref, ..), (other, ..)| channel_ref.cmp(other));
    for (channel_ref, said, when) in differing {
        first.entry(channel_ref.0).or_insert((channel_ref.2, said, when));
    }
    for (companion, said, when) in first.into_values().take(EXAMPLES) {
        text += &format!("  * after “{}”, {when}: {companion}: “{}”\n", said.after, said.text);
    }
    text
}
