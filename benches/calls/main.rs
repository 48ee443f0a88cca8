//! Measures what deciding costs: calls and tokens per hundred messages by people, with one, three and eight companions in a room,
//! decided as the seeds have it, as we do without skipping what is meant for others, and as we do.
//!
//! `cargo bench --bench calls` prints two Markdown tables, the same at every run: for the human side of the recorded talks, and for
//! evenings of a group chat made up in the proportions that were measured in public ones. All models are the built-in rehearsal, the
//! time is virtual, tokens are estimated at four characters each, and no budget stands in the way.

mod cast;
mod chat;

use std::collections::BTreeMap;

use cast::{Calls, Rehearsed, cast};
use chat::saying_of;
use tertulia::domain::id::CompanionId;
use tertulia::replay::{ReplayEvent, ReplayEventKind, Script, run_with};

/// How many companions are present.
const SIZES: [usize; 3] = [1, 3, 8];
/// Conversations whose first difference is told, for each comparison.
const EXAMPLES: usize = 3;

/// How it is decided who is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// In every round every companion present is asked (as aikyo does, docs/design/turn-taking.md T-3), and what is meant for others, too.
    Seeds,
    /// Who has a reason of its own to speak is asked.
    WithoutSkipping,
    /// The same, but not about what is meant for others.
    Ours,
}

impl Way {
    const ALL: [Self; 3] = [Self::Seeds, Self::WithoutSkipping, Self::Ours];

    const fn name(self) -> &'static str {
        match self {
            Self::Seeds => "everyone present, in every round",
            Self::WithoutSkipping => "who has a reason of its own",
            Self::Ours => "the same, but not about talk for others (default)",
        }
    }
}

/// What one way of deciding cost, and what was said.
#[derive(Default)]
struct Bill {
    people: u64,
    side: Calls,
    main: Calls,
    said: BTreeMap<ChannelRef, Said>,
}

/// Which conversation; how many messages people had said in it; who spoke then, and for which time since.
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
        let [seeds, without, ours] = bills;
        let bills = [seeds?, without?, ours?];
        if row == 0 {
            print_head(bills[0].people);
        }
        for (way, bill) in Way::ALL.into_iter().zip(&bills) {
            print_row(size, way, bill, &bills[0]);
        }
        for (from, to) in [(0, 1), (1, 2)] {
            differences += &compare(size, (Way::ALL[from], &bills[from]), (Way::ALL[to], &bills[to]));
        }
    }
    println!("\nWhat was said differently:\n\n{differences}");
    Ok(())
}

fn bill(chats: &[Script], size: usize, way: Way) -> anyhow::Result<Bill> {
    let mut bill = Bill::default();
    for (place, chat) in chats.iter().enumerate() {
        let mut script = chat.clone();
        let gate = &mut script.settings.gate;
        gate.skip_when_other_addressed = way == Way::Ours;
        gate.evaluations_per_hour = u32::MAX;
        gate.guild_evaluations_per_hour = u32::MAX;
        gate.addresses_per_minute = u32::MAX;
        gate.guild_statements_per_day = u32::MAX;
        script.companions = cast(size, &script.settings)?;
        let mut responder = Rehearsed::new(&script.companions, &script.settings, way == Way::Seeds);
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
        "| companions | who is asked | side-model calls | main-model calls | tokens to decide | tokens to speak | all tokens (first way: 100 %) |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: |");
}

fn print_row(size: usize, way: Way, bill: &Bill, seeds: &Bill) {
    let per_hundred = |count: u64| count as f64 * 100.0 / bill.people as f64;
    let thousands = |tokens: u64| format!("{:.0} k", per_hundred(tokens) / 1_000.0);
    let (side, main) = (bill.side.usage.total(), bill.main.usage.total());
    let all_of_seeds = seeds.side.usage.total() + seeds.main.usage.total();
    println!(
        "| {size} | {} | {:.0} | {:.0} | {} | {} | {:.0} % |",
        way.name(),
        per_hundred(bill.side.count),
        per_hundred(bill.main.count),
        thousands(side),
        thousands(main),
        (side + main) as f64 * 100.0 / all_of_seeds as f64
    );
}

/// What was said at a spot in one way and not in the other. What differs first in a conversation differs because of the way; much of
/// the rest differs because of that.
fn compare(size: usize, (one_way, one): (Way, &Bill), (other_way, other): (Way, &Bill)) -> String {
    let only_in = |some: &Bill, others: &Bill, when| -> Vec<(ChannelRef, Said, &'static str)> {
        let missing = some.said.iter().filter(|(channel_ref, _)| !others.said.contains_key(channel_ref));
        missing.map(|(channel_ref, said)| (channel_ref.clone(), said.clone(), when)).collect()
    };
    let before = only_in(one, other, "only before");
    let after = only_in(other, one, "only after");
    let for_a_person = |some: &[(ChannelRef, Said, &str)]| some.iter().filter(|(_, said, _)| said.is_for_a_person).count();
    let mut told = format!(
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
        told += &format!("  * after “{}”, {when}: {companion}: “{}”\n", said.after, said.text);
    }
    told
}
