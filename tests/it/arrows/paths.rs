//! Reads which paths a source file names: in `use` lines, groups included, and anywhere in its code.
//!
//! This is not a parser of Rust. Comments and literals are blanked out, code for tests alone is left out, and paths are read from the remaining
//! words and signs.

/// A path that a source file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The line, from 1.
    pub line: usize,
    /// The segments. `crate`, `self` and `super` are resolved; such a path begins with `crate`.
    pub path: Vec<String>,
}

/// What a source file refers to.
#[derive(Debug, Default)]
pub struct Scanned {
    pub named: Vec<Named>,
    /// The modules with files of their own that it declares for tests alone.
    pub test_modules: Vec<String>,
}

/// Reads the source of the module `module` (without `crate`).
pub fn scan(source: &str, module: &[String]) -> Scanned {
    let tokens = without_tests(tokens(&blanked(source)));
    let mut scanned = Scanned { named: Vec::new(), test_modules: tokens.test_modules };
    let tokens = tokens.remaining;
    let mut inline = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inline.pop_if(|(_, begin): &mut (String, usize)| *begin == depth);
            }
            "mod" if text(&tokens, at + 2) == "{" => inline.push((text(&tokens, at + 1).to_owned(), depth)),
            word if is_word(word) && text(&tokens, at + 1) == "::" => {
                let enclosing = module.iter().chain(inline.iter().map(|(name, _)| name)).cloned().collect::<Vec<_>>();
                let mut found = Vec::new();
                at = read_tree(&tokens, at, &[], &mut found);
                scanned.named.extend(found.into_iter().map(|named| resolved(named, &enclosing)));
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    scanned
}

struct Token {
    line: usize,
    text: String,
}

struct WithoutTests {
    remaining: Vec<Token>,
    test_modules: Vec<String>,
}

/// Reads a path or a tree of paths. Returns the index of the token after it.
fn read_tree(tokens: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Named>) -> usize {
    let mut path = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    loop {
        match text(tokens, at) {
            "{" if path.len() > prefix.len() || !prefix.is_empty() => {
                at += 1;
                while at < tokens.len() && text(tokens, at) != "}" {
                    let next = read_tree(tokens, at, &path, found);
                    at = match text(tokens, next) {
                        "as" => next + 2,
                        "," => next + 1,
                        _ => next.max(at + 1),
                    };
                }
                return at + 1;
            }
            word if is_word(word) => {
                path.push(word.to_owned());
                at += 1;
            }
            "*" if path.len() == prefix.len() => at += 1,
            _ => break,
        }
        // After `::` comes a word or a group; `::<` ends the path.
        let continues = text(tokens, at) == "::" && (is_word(text(tokens, at + 1)) || matches!(text(tokens, at + 1), "{" | "*"));
        if !continues {
            break;
        }
        at += 1;
        if text(tokens, at) == "*" {
            at += 1;
            break;
        }
    }
    if path.len() > prefix.len() || !prefix.is_empty() {
        found.push(Named { line, path });
    }
    at
}

fn resolved(named: Named, enclosing: &[String]) -> Named {
    let first = named.path[0].as_str();
    if !matches!(first, "crate" | "self" | "super" | "tertulia") {
        return named;
    }
    let mut base = if matches!(first, "self" | "super") { enclosing.to_vec() } else { Vec::new() };
    let mut rest = named.path.as_slice();
    while let Some((word, others)) = rest.split_first() {
        match word.as_str() {
            "crate" | "self" | "tertulia" => {}
            "super" => {
                base.pop();
            }
            _ => break,
        }
        rest = others;
    }
    let path = std::iter::once("crate".to_owned()).chain(base).chain(rest.iter().cloned()).collect();
    Named { path, ..named }
}

/// Leaves out every item under `#[cfg(test)]`.
fn without_tests(tokens: Vec<Token>) -> WithoutTests {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut out = WithoutTests { remaining: Vec::new(), test_modules: Vec::new() };
    let mut tokens = std::collections::VecDeque::from(tokens);
    while !tokens.is_empty() {
        if tokens.len() < MARK.len() || !MARK.iter().zip(&tokens).all(|(mark, token)| token.text == *mark) {
            out.remaining.extend(tokens.pop_front());
            continue;
        }
        tokens.drain(..MARK.len());
        let mut depth = 0_usize;
        let mut last = String::new();
        while let Some(token) = tokens.pop_front() {
            match token.text.as_str() {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                ";" if depth == 0 => break,
                _ => {}
            }
            if last == "mod" && tokens.front().is_some_and(|next| next.text == ";") {
                out.test_modules.push(token.text.clone());
            }
            last = token.text;
            if depth == 0 && last == "}" {
                break;
            }
        }
    }
    out
}

fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (line, mut rest) in source.lines().enumerate() {
        while let Some(c) = rest.chars().next() {
            let length = match c {
                c if is_letter(c) => rest.find(|c| !is_letter(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            if !c.is_whitespace() {
                tokens.push(Token { line: line + 1, text: rest[..length].to_owned() });
            }
            rest = &rest[length..];
        }
    }
    tokens
}

/// Replaces comments and quoted text by spaces. Lines keep their numbers.
fn blanked(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let after_letter = out.chars().next_back().is_some_and(is_letter);
        let length = skipped(rest, after_letter);
        if length == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    out
}

/// The length of the comment, string or character that the rest begins with, or 0.
fn skipped(rest: &str, after_letter: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    if rest.starts_with('r') && !after_letter {
        let signs = rest[1..].find(|c| c != '#').unwrap_or(0);
        if rest[1 + signs..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(signs));
            let begin = 2 + signs;
            return rest[begin..].find(&close).map_or(rest.len(), |end| begin + end + close.len());
        }
    }
    if rest.starts_with('\'') {
        let mut chars = rest.chars().skip(1);
        let (first, second) = (chars.next(), chars.next());
        // Otherwise it is a lifetime.
        if first == Some('\\') || second == Some('\'') {
            return quoted(rest, '\'');
        }
    }
    0
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| &token.text)
}

fn is_word(text: &str) -> bool {
    text.chars().next().is_some_and(is_letter) && !matches!(text, "as" | "use" | "mod")
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
