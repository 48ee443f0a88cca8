//! Generates inputs: valid ones with changes, some made of difficult fragments, and some of random bytes.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::words::WORDS;

/// The input of a target.
#[derive(Clone)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes: {}", self.0.len(), self.0[..self.0.len().min(200)].escape_ascii())
    }
}

/// The maximum length of a changed input.
const MOST_BYTES: usize = 64 << 10;

/// One change of an input.
#[derive(Clone, Debug)]
enum Change {
    /// Replaces some bytes by a word.
    Word { at: Index, over: usize, word: Index },
    /// Replaces some bytes by others.
    Bytes { at: Index, over: usize, bytes: Vec<u8> },
    /// Repeats some bytes.
    Repeat { at: Index, length: usize, times: usize },
    /// Repeats the whole input to at least this length, so that every length limit falls inside it.
    Long { length: usize },
    /// Flips bits of one byte.
    Flip { at: Index, bits: u8 },
    /// Truncates the input.
    End { at: Index },
    /// Inserts a part of another valid input.
    Graft { at: Index, from: Index, begin: Index, length: usize },
    /// Removes, replaces or duplicates a value in the input's JSON.
    Json { node: Index, how: usize },
    /// Swaps two lines.
    Lines { one: Index, other: Index },
}

/// A strategy for inputs. Most are one of `valid` with a few changes.
pub fn inputs(valid: Vec<Vec<u8>>) -> impl Strategy<Value = Bytes> {
    let from = valid.clone();
    let changed = (any::<Index>(), prop::collection::vec(change(), 0..6)).prop_map(move |(which, changes)| {
        let mut input = if from.is_empty() { Vec::new() } else { which.get(&from).clone() };
        for change in &changes {
            change.apply(&mut input, &from);
            input.truncate(MOST_BYTES);
        }
        Bytes(input)
    });
    let assembled = prop::collection::vec(prop_oneof![3 => word(), 1 => "\\PC{0,8}".prop_map(String::into_bytes)], 0..40)
        .prop_map(|words| Bytes(words.concat()));
    let any_text = any::<String>().prop_map(|text| Bytes(text.into_bytes()));
    let any_bytes = prop::collection::vec(any::<u8>(), 0..160).prop_map(Bytes);
    prop_oneof![10 => changed, 4 => assembled, 1 => any_text, 1 => any_bytes]
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    any::<Index>().prop_map(|word| word.get(WORDS).as_bytes().to_vec())
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    let short = || prop_oneof![3 => Just(0_usize), 3 => 1..4_usize, 1 => 4..60_usize];
    prop_oneof![
        6 => (index(), short(), index()).prop_map(|(at, over, word)| Change::Word { at, over, word }),
        2 => (index(), short(), prop::collection::vec(any::<u8>(), 0..4)).prop_map(|(at, over, bytes)| Change::Bytes { at, over, bytes }),
        2 => (index(), 1..40_usize, prop_oneof![8 => 2..9_usize, 1 => 100..2_000_usize]).prop_map(|(at, length, times)| Change::Repeat { at, length, times }),
        1 => (1_000..MOST_BYTES).prop_map(|length| Change::Long { length }),
        1 => (index(), 1..=u8::MAX).prop_map(|(at, bits)| Change::Flip { at, bits }),
        1 => index().prop_map(|at| Change::End { at }),
        2 => (index(), index(), index(), 1..80_usize).prop_map(|(at, from, begin, length)| Change::Graft { at, from, begin, length }),
        6 => (index(), 0..UNUSUAL + 3).prop_map(|(node, how)| Change::Json { node, how }),
        1 => (index(), index()).prop_map(|(one, other)| Change::Lines { one, other }),
    ]
}

impl Change {
    fn apply(&self, input: &mut Vec<u8>, valid: &[Vec<u8>]) {
        let position = |at: &Index, length: usize| at.index(length + 1);
        let put = |input: &mut Vec<u8>, at: usize, over: usize, bytes: &[u8]| {
            let end = (at + over).min(input.len());
            input.splice(at..end, bytes.iter().copied());
        };
        match self {
            Self::Word { at, over, word } => {
                let at = position(at, input.len());
                put(input, at, *over, word.get(WORDS).as_bytes());
            }
            Self::Bytes { at, over, bytes } => {
                let at = position(at, input.len());
                put(input, at, *over, bytes);
            }
            Self::Repeat { at, length, times } => {
                let at = position(at, input.len());
                let some = input[at..(at + length).min(input.len())].to_vec();
                let times = (*times).min(MOST_BYTES / some.len().max(1));
                put(input, at, 0, &some.repeat(times));
            }
            Self::Long { length } => *input = input.repeat(length / input.len().max(1) + 1),
            Self::Flip { at, bits } if !input.is_empty() => *at.get_mut_of(input) ^= bits,
            Self::End { at } => input.truncate(position(at, input.len())),
            Self::Graft { at, from, begin, length } if !valid.is_empty() => {
                let from = from.get(valid);
                let begin = position(begin, from.len());
                let at = position(at, input.len());
                put(input, at, 0, &from[begin..(begin + length).min(from.len())]);
            }
            Self::Json { node, how } => change_json(input, node, *how),
            Self::Lines { one, other } => {
                let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                let (one, other) = (one.index(lines.len()), other.index(lines.len()));
                lines.swap(one, other);
                *input = lines.join(&b'\n');
            }
            Self::Flip { .. } | Self::Graft { .. } => {}
        }
    }
}

/// A mutable variant of `Index::get`.
trait GetMut {
    fn get_mut_of<'a>(&self, bytes: &'a mut [u8]) -> &'a mut u8;
}

impl GetMut for Index {
    fn get_mut_of<'a>(&self, bytes: &'a mut [u8]) -> &'a mut u8 {
        let at = self.index(bytes.len());
        &mut bytes[at]
    }
}

/// Changes the first JSON object or array in an input.
fn change_json(input: &mut Vec<u8>, node: &Index, how: usize) {
    let Some(begin) = input.iter().position(|byte| matches!(byte, b'{' | b'[')) else { return };
    let mut values = serde_json::Deserializer::from_slice(&input[begin..]).into_iter::<Value>();
    let Some(Ok(mut value)) = values.next() else { return };
    let end = begin + values.byte_offset();
    let mut left = node.index(size(&value));
    change_in(&mut value, &mut left, how);
    input.splice(begin..end, value.to_string().into_bytes());
}

/// The number of values inside a value, at least 1.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>().max(1),
        Value::Object(fields) => fields.values().map(|field| size(field) + 1).sum::<usize>().max(1),
        _ => 1,
    }
}

/// Changes the value at the offset `left`. Returns whether it is inside `value`.
fn change_in(value: &mut Value, left: &mut usize, how: usize) -> bool {
    match value {
        Value::Array(items) => {
            for at in 0..items.len() {
                if *left == 0 {
                    match how.checked_sub(UNUSUAL) {
                        Some(0) => drop(items.remove(at)),
                        Some(_) => items.push(items[at].clone()),
                        None => items[at] = unusual_for(&items[at], how),
                    }
                    return true;
                }
                *left -= 1;
                if change_in(&mut items[at], left, how) {
                    return true;
                }
            }
            false
        }
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().cloned().collect();
            for key in keys {
                if *left == 0 {
                    match how.checked_sub(UNUSUAL) {
                        Some(0) => drop(fields.remove(&key)),
                        Some(1) => drop(fields.insert(format!("{key}_"), fields[&key].clone())),
                        Some(_) => {
                            let same = fields[&key].clone();
                            fields.insert(key, Value::Array(vec![same]));
                        }
                        None => {
                            let unusual = unusual_for(&fields[&key], how);
                            fields.insert(key, unusual);
                        }
                    }
                    return true;
                }
                *left -= 1;
                if fields.get_mut(&key).is_some_and(|field| change_in(field, left, how)) {
                    return true;
                }
            }
            false
        }
        _ => false,
    }
}

/// An unusual value in place of another. For a number this is usually a number at the limit of a range.
fn unusual_for(value: &Value, which: usize) -> Value {
    let ends = [
        json!(-1),
        json!(0),
        json!(256),
        json!(65_536),
        json!(1_u64 << 31),
        json!(1_u64 << 32),
        json!(u64::MAX),
        json!(1e19),
        json!(0.5),
    ];
    match value {
        Value::Number(_) if !which.is_multiple_of(3) => ends[which % ends.len()].clone(),
        _ => unusual(which),
    }
}

/// The number of values that [`unusual`] knows.
const UNUSUAL: usize = 22;

fn unusual(which: usize) -> Value {
    match which {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0),
        4 => json!(u64::MAX),
        5 => json!(i64::MIN),
        6 => json!(1.5e300),
        7 => json!(0.5),
        8 => json!(""),
        9 => json!("18446744073709551615"),
        10 => json!("\u{202e}\u{0}\n <@1> \u{fffd}"),
        11 => json!("é".repeat(3_000)),
        12 => json!([]),
        13 => json!({}),
        14 => json!([[{ "id": "1" }], null, 7]),
        15 => json!({ "id": { "id": [] } }),
        16 => json!("</think>\nYES"),
        17 => json!(9_007_199_254_740_993_u64),
        18 => json!(1e19),
        19 => json!("a".repeat(129)),
        20 => (0..100).fold(json!(1), |inner, _| json!([inner])),
        _ => json!("aria"),
    }
}
