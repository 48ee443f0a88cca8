//! Changes keys of a companion's file and keeps the rest as its author wrote it: comments, order, other keys, and the form of
//! other values.

use std::sync::Arc;

use toml_edit::{Array, DocumentMut, Item, RawString, Table, TableLike, TomlError, Value};

/// A list longer than this is written with one text per line.
const MAX_LINE_CHARS: usize = 100;

/// A new value to write.
#[derive(Clone, Debug, PartialEq)]
pub enum NewValue {
    /// A text. With line breaks it is written between `"""`.
    Text(Arc<str>),
    /// A number. Without a fraction it is written as an integer.
    Number(f64),
    Texts(Vec<Arc<str>>),
    Bool(bool),
}

/// A key, such as `name` or `voice.speed`, and its new value. `None` removes the key.
pub type KeyChange = (&'static str, Option<NewValue>);

/// Returns the text of a file with these keys changed.
///
/// # Errors
/// Returns an error if the text is not TOML, or has a value where a table should be.
pub fn edited(text: &str, changes: &[KeyChange]) -> Result<String, String> {
    if changes.is_empty() {
        return Ok(text.to_owned());
    }
    let mut document: DocumentMut = text.parse().map_err(|error: TomlError| error.message().to_owned())?;
    for (path, new) in changes {
        let orphans = match path.split_once('.') {
            None => change(document.as_table_mut(), path, new.as_ref()),
            Some((table, key)) => change_in(document.as_table_mut(), table, key, new.as_ref())?,
        };
        if !orphans.is_empty() {
            let trailing = raw(document.trailing()).to_owned();
            document.set_trailing(trailing + &orphans);
        }
    }
    let written = document.to_string();
    // The parser keeps the line endings of comments, and writes Unix line endings in values.
    Ok(if text.contains("\r\n") { written.replace("\r\n", "\n").replace('\n', "\r\n") } else { written })
}

/// Changes a key of a table in a file. Returns the comments that have lost their place.
fn change_in(file: &mut Table, table: &str, key: &str, new: Option<&NewValue>) -> Result<String, String> {
    if new.is_none() && !file.contains_key(table) {
        return Ok(String::new());
    }
    let inner = file.entry(table).or_insert_with(|| Item::Table(Table::new()));
    let is_inline = inner.is_inline_table();
    let inner = inner.as_table_like_mut().ok_or_else(|| format!("{table} is not a table"))?;
    let mut orphans = change(inner, key, new);
    if is_inline {
        inner.fmt();
    }
    if inner.is_empty() {
        let removed = file.remove(table);
        let decor = removed.as_ref().and_then(Item::as_table).map(Table::decor);
        let comments = decor.and_then(|decor| Some(comments(raw(decor.prefix()?)))).unwrap_or_default();
        orphans.insert_str(0, &comments);
    }
    Ok(orphans)
}

/// Changes a key of a table. Returns the comments of a removed key without a following key.
fn change(table: &mut dyn TableLike, key: &str, new: Option<&NewValue>) -> String {
    let Some(new) = new else { return remove(table, key) };
    let old = table.get(key).and_then(Item::as_value).cloned();
    let mut value = match new {
        NewValue::Text(text) => Value::from(&**text),
        NewValue::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => Value::from(*number as i64),
        NewValue::Number(number) => Value::from(*number),
        NewValue::Bool(value) => Value::from(*value),
        NewValue::Texts(texts) => list(texts, old.as_ref().and_then(Value::as_array)).into(),
    };
    match (table.get_mut(key), old) {
        (Some(item), Some(old)) => {
            *value.decor_mut() = old.decor().clone();
            *item = Item::Value(value);
        }
        _ => drop(table.insert(key, Item::Value(value))),
    }
    String::new()
}

/// Builds a list of texts. Texts of the old list keep their spelling, and all comments stay.
fn list(texts: &[Arc<str>], old: Option<&Array>) -> Array {
    let (mut before, last_comments) = kept(texts, old);
    let is_long = texts.iter().map(|text| text.chars().count() + 4).sum::<usize>() > MAX_LINE_CHARS
        || texts.iter().any(|text| text.contains('\n'));
    let had_lines =
        old.into_iter().flatten().any(|value| value.decor().prefix().is_some_and(|prefix| raw(prefix).contains('\n')));
    let mut list = Array::new();
    for (index, text) in texts.iter().enumerate() {
        if let Some(found) = before.iter().position(|value| value.as_str() == Some(&**text)) {
            list.push_formatted(before.remove(found));
            continue;
        }
        let mut value = Value::from(&**text);
        value.decor_mut().set_prefix(match (is_long || had_lines, index) {
            (true, _) => "\n    ",
            (false, 0) => "",
            (false, _) => " ",
        });
        list.push_formatted(value);
    }
    if is_long || had_lines {
        let trailing = old.map(|old| raw(old.trailing())).filter(|trailing| trailing.contains('\n')).unwrap_or("\n");
        list.set_trailing(last_comments + trailing);
        list.set_trailing_comma(true);
    }
    list
}

/// The values of the list that are still wanted, and the comments after them. A comment of a removed value moves to the next
/// value.
fn kept(texts: &[Arc<str>], old: Option<&Array>) -> (Vec<Value>, String) {
    let mut wanted: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let (mut kept, mut comments) = (Vec::new(), String::new());
    for value in old.into_iter().flatten() {
        let prefix = value.decor().prefix().map(raw).unwrap_or_default();
        match wanted.iter().position(|text| value.as_str() == Some(text)) {
            Some(found) => {
                wanted.remove(found);
                let mut value = value.clone();
                value.decor_mut().set_prefix(std::mem::take(&mut comments) + prefix);
                kept.push(value);
            }
            None if prefix.contains('#') => comments += prefix.trim_end(),
            None => {}
        }
    }
    (kept, comments)
}

/// Removes a key. Comments before it move to the next key. If there is none, they are returned.
fn remove(table: &mut dyn TableLike, key: &str) -> String {
    let before = table.key(key).and_then(|key| key.leaf_decor().prefix()).map(|prefix| comments(raw(prefix))).unwrap_or_default();
    let after = table.get(key).and_then(Item::as_value).and_then(|value| value.decor().suffix());
    let after = after.map(|suffix| comments(raw(suffix))).unwrap_or_default();
    let next = table.iter().map(|(key, _)| key.to_owned()).skip_while(|name| name != key).nth(1);
    if table.remove(key).is_none() {
        return String::new();
    }
    let orphans = before + &after;
    if orphans.is_empty() {
        return orphans;
    }
    match next.and_then(|next| table.get_key_value_mut(&next)) {
        Some((_, Item::Table(next))) if !next.is_dotted() => {
            let prefix = next.decor().prefix().map(|prefix| raw(prefix).to_owned()).unwrap_or_default();
            next.decor_mut().set_prefix(orphans + &prefix);
        }
        Some((mut next, Item::Value(_))) => {
            let prefix = next.leaf_decor().prefix().map(|prefix| raw(prefix).to_owned()).unwrap_or_default();
            next.leaf_decor_mut().set_prefix(orphans + &prefix);
        }
        _ => return orphans,
    }
    String::new()
}

/// The comments in the text between two values, each with its line ending.
fn comments(between: &str) -> String {
    let lines = between.lines().map(str::trim).filter(|line| line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The raw text of a document's part. An editable document always has it.
fn raw(text: &RawString) -> &str {
    text.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<NewValue> {
        Some(NewValue::Text(text.into()))
    }

    fn texts(texts: &[&str]) -> Option<NewValue> {
        Some(NewValue::Texts(texts.iter().map(|text| (*text).into()).collect()))
    }

    #[test]
    fn comments_order_and_other_keys_survive() {
        let file = "# Mira, by Ana.\n\nname = 'Mira' # as on stage\nlull = 3 # an expert's key\n# who she is\npersona = \"\"\"\nA poet.\n\"\"\"\n\n# her voice\n[voice]\nspeed = 1.5 # fast\nsounds_like = [\"mirror\"]\n";

        let edited = edited(
            file,
            &[
                ("name", text("Mirabel")),
                ("persona", text("A poet.\nShe says \"no\".\n")),
                ("voice.speed", Some(NewValue::Number(1.25))),
                ("tone", text("dry")),
                ("starts_after", Some(NewValue::Number(300.0))),
            ],
        );

        assert_eq!(
            edited.unwrap(),
            "# Mira, by Ana.\n\nname = \"Mirabel\" # as on stage\nlull = 3 # an expert's key\n# who she is\npersona = \"\"\"\nA poet.\nShe says \"no\".\n\"\"\"\ntone = \"dry\"\nstarts_after = 300\n\n# her voice\n[voice]\nspeed = 1.25 # fast\nsounds_like = [\"mirror\"]\n"
        );
    }

    #[test]
    fn nothing_to_change_leaves_every_byte() {
        for file in
            ["", "a.b = 1\r\n# x\r\n", "name='Mira'   #x\n\n\n[voice]#y\n  speed =1\n# end", "[voice]\n[model]\nmain=\"x\""]
        {
            assert_eq!(edited(file, &[]).unwrap(), file);
        }
    }

    #[test]
    fn a_removed_key_leaves_its_comments() {
        let file = "# a\nname = \"Mira\"\n# b\ntone = \"dry\" # c\n# d\n[voice]\n# e\nspeed = 2\n# f\nvoice = \"x\"\n# end\n";

        let without = |keys: &[&'static str]| edited(file, &keys.iter().map(|key| (*key, None)).collect::<Vec<_>>()).unwrap();

        assert_eq!(
            without(&["tone"]),
            "# a\nname = \"Mira\"\n# b\n# c\n# d\n[voice]\n# e\nspeed = 2\n# f\nvoice = \"x\"\n# end\n"
        );
        assert_eq!(without(&["voice.speed"]), file.replace("speed = 2\n", ""));
        let bare = without(&["name", "tone", "voice.speed", "voice.voice", "model.main"]);
        assert_eq!(bare, "# a\n# b\n# c\n# d\n# e\n# f\n# end\n".replace("# a\n# b\n# c\n# d\n# e\n# f\n# end\n", &bare));
        for comment in ["# a", "# b", "# c", "# d", "# e", "# f", "# end"] {
            assert!(bare.contains(&format!("{comment}\n")), "{comment} is lost: {bare}");
        }
        assert!(!bare.contains("voice"), "{bare}");
    }

    #[test]
    fn a_table_is_changed_in_the_form_that_it_has() {
        let speed = [("voice.speed", Some(NewValue::Number(2.0)))];

        assert_eq!(edited("voice = { voice = \"x\" }\n", &speed).unwrap(), "voice = { voice = \"x\", speed = 2 }\n");
        assert_eq!(edited("voice.voice = \"x\"\n", &speed).unwrap(), "voice.voice = \"x\"\nvoice.speed = 2\n");
        assert_eq!(edited("name = \"x\"\n", &speed).unwrap(), "name = \"x\"\n\n[voice]\nspeed = 2\n");
        assert!(edited("voice = 1\n", &speed).is_err());
    }

    #[test]
    fn a_list_keeps_what_stays_in_it() {
        let file = "aliases = [\n  'Mi', # short\n  \"Mirabel\",\n  \"Ra\",\n]\n";

        assert_eq!(
            edited(file, &[("aliases", texts(&["Mi", "Ra", "Bel"]))]).unwrap(),
            "aliases = [\n  'Mi', # short\n  \"Ra\",\n    \"Bel\",\n]\n"
        );
        assert_eq!(edited("", &[("aliases", texts(&["Mi", "Ra"]))]).unwrap(), "aliases = [\"Mi\", \"Ra\"]\n");
        assert_eq!(
            edited("", &[("greetings", texts(&["Hello,\nyou.", "Hm?"]))]).unwrap(),
            "greetings = [\n    \"\"\"\nHello,\nyou.\"\"\",\n    \"Hm?\",\n]\n"
        );
    }

    #[test]
    fn windows_line_ends_stay() {
        let file = "# x\r\nname = \"Mira\"\r\npersona = \"\"\"\r\nA\r\nB\"\"\"\r\n";

        assert_eq!(
            edited(file, &[("name", text("Bel")), ("tone", text("dry"))]).unwrap(),
            "# x\r\nname = \"Bel\"\r\npersona = \"\"\"\r\nA\r\nB\"\"\"\r\ntone = \"dry\"\r\n"
        );
    }

    #[test]
    fn any_text_comes_back_as_it_was() {
        for odd in
            ["'''\"\"\"", "\\", "a\tb", "\u{0}\u{7f}\u{1b}", "\n\n", "\r", "x\"\"\"\ny'''", "\u{feff}ß\u{1f9f6}", " ", "\\\nx"]
        {
            let file = edited("", &[("persona", text(odd)), ("greetings", texts(&[odd]))]).unwrap();
            let read: DocumentMut = file.parse().unwrap();
            assert_eq!(read["persona"].as_str(), Some(odd), "{file}");
            assert_eq!(read["greetings"][0].as_str(), Some(odd), "{file}");
        }
    }
}
