//! Reads which paths a source file names: in `use` lines, groups included, and anywhere in its code. Code for tests alone is left out.

use proc_macro2::{Ident, Punct, Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Macro, MetaList, Path, UseTree};

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
    let file = syn::parse_file(source).unwrap_or_else(|error| panic!("{}: {error}", module.join("::")));
    let mut scanner = Scanner { enclosing: module.to_vec(), scanned: Scanned::default() };
    scanner.visit_file(&file);
    scanner.scanned
}

struct Scanner {
    /// The module that the code is in, inline modules included.
    enclosing: Vec<String>,
    scanned: Scanned,
}

impl Scanner {
    fn add<'a>(&mut self, segments: impl IntoIterator<Item = &'a Ident>) {
        let (mut line, mut named) = (0, Vec::new());
        for segment in segments {
            line = segment.span().start().line;
            named.push(segment.to_string());
        }
        self.scanned.named.push(Named { line, path: resolved(named, &self.enclosing) });
    }

    fn add_use<'a>(&mut self, tree: &'a UseTree, path: &mut Vec<&'a Ident>) {
        let length = path.len();
        match tree {
            UseTree::Path(tree) => {
                path.push(&tree.ident);
                self.add_use(&tree.tree, path);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_use(tree, path)),
            UseTree::Name(name) => self.add(path.iter().copied().chain([&name.ident])),
            UseTree::Rename(name) => self.add(path.iter().copied().chain([&name.ident])),
            UseTree::Glob(_) => self.add(path.iter().copied()),
        }
        path.truncate(length);
    }

    /// Records the paths in what macros and attributes are given, which has no known syntax.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons): (Vec<Ident>, _) = (Vec::new(), 0);
        // The sign ends the last path.
        for token in tokens.into_iter().chain([TokenTree::from(Punct::new(';', Spacing::Alone))]) {
            match token {
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) if colons == 2 || path.is_empty() => {
                    path.push(ident);
                    colons = 0;
                }
                other => {
                    if path.len() > 1 {
                        self.add(&path);
                    }
                    path.clear();
                    colons = 0;
                    match other {
                        TokenTree::Ident(ident) => path.push(ident),
                        TokenTree::Group(group) => self.add_tokens(group.stream()),
                        _ => {}
                    }
                }
            }
        }
    }
}

/// Leaves out what is for tests alone.
macro_rules! without_tests {
    ($($visit:ident $node:ident),*) => {
        $(fn $visit(&mut self, node: &'ast syn::$node) {
            if !is_for_tests(&node.attrs) {
                visit::$visit(self, node);
            }
        })*
    };
}

impl<'ast> Visit<'ast> for Scanner {
    without_tests! {
        visit_item_const ItemConst, visit_item_enum ItemEnum, visit_item_fn ItemFn, visit_item_impl ItemImpl, visit_item_macro ItemMacro,
        visit_item_static ItemStatic, visit_item_struct ItemStruct, visit_item_trait ItemTrait, visit_item_type ItemType,
        visit_impl_item_const ImplItemConst, visit_impl_item_fn ImplItemFn, visit_field Field, visit_field_value FieldValue,
        visit_local Local, visit_expr_block ExprBlock, visit_expr_call ExprCall, visit_expr_method_call ExprMethodCall
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        match is_for_tests(&item.attrs) {
            true if item.content.is_none() => self.scanned.test_modules.push(item.ident.to_string()),
            true => {}
            false => {
                self.enclosing.push(item.ident.to_string());
                visit::visit_item_mod(self, item);
                self.enclosing.pop();
            }
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.add_use(&item.tree, &mut Vec::new());
            visit::visit_item_use(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        // A single word is a name in scope, which something else brought there.
        if path.segments.len() > 1 {
            self.add(path.segments.iter().map(|segment| &segment.ident));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.add_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    fn visit_meta_list(&mut self, list: &'ast MetaList) {
        self.add_tokens(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        let given = attribute.meta.require_list().map(|list| list.tokens.to_string().replace(' ', ""));
        given.is_ok_and(|given| given == "test" || given == r#"any(test,feature="samples")"#)
    };
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && is_test(attribute))
}

/// The crates besides that of all others: the module that each is, and the parts that it knows by name.
const CRATES: [(&str, &[&str]); 13] = [
    ("adapters", &["adapters", "domain", "http_client", "ports", "settings", "telemetry", "texts"]),
    ("adapters::console", &["adapters", "domain", "fuzzing", "ports", "samples", "settings", "telemetry", "texts"]),
    ("adapters::discord", &["adapters", "domain", "fuzzing", "http_client", "ports", "settings", "telemetry", "texts"]),
    (
        "adapters::store",
        &["adapters", "domain", "fuzzing", "http_client", "journal", "ports", "samples", "settings", "telemetry"],
    ),
    ("cards", &["domain", "settings"]),
    ("domain", &[]),
    ("fuzzing::inputs", &[]),
    ("http_client", &[]),
    ("journal", &["domain", "ports", "settings"]),
    ("ports", &["domain", "settings", "texts"]),
    ("settings", &["domain"]),
    ("telemetry", &["domain", "http_client", "ports", "settings"]),
    ("texts", &[]),
];

/// Where a path that begins with `crate` begins: at the module that is a crate of its own, or at the crate of all others.
fn within_crate(named: &[String], enclosing: &[String]) -> Vec<String> {
    let enclosing = format!("{}::", enclosing.join("::"));
    let own = CRATES
        .into_iter()
        .filter(|(module, _)| enclosing.starts_with(&format!("{module}::")))
        .max_by_key(|(module, _)| module.len());
    let is_another = |parts: &[&str]| named.get(1).is_some_and(|next| parts.contains(&next.as_str()));
    let module = own.filter(|(_, others)| !is_another(others)).map_or("", |(module, _)| module);
    module.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The module that a crate is.
fn module_of(name: &str) -> Option<Vec<String>> {
    let name = name.strip_prefix("tertulia_")?;
    let own = CRATES.into_iter().find(|(module, _)| module.rsplit("::").next() == Some(name));
    own.map(|(module, _)| module.split("::").map(str::to_owned).collect())
}

fn resolved(named: Vec<String>, enclosing: &[String]) -> Vec<String> {
    let mut path = match named[0].as_str() {
        "crate" => within_crate(&named, enclosing),
        "tertulia" => Vec::new(),
        "self" | "super" => enclosing.to_vec(),
        // A crate as a whole is only given another name: what is used of it is named where it is used.
        name => match module_of(name).filter(|_| named.len() > 1) {
            Some(module) => module,
            None => return named,
        },
    };
    for word in named {
        match word.as_str() {
            "crate" | "self" | "tertulia" => {}
            name if name.starts_with("tertulia_") => {}
            "super" => drop(path.pop()),
            _ => path.push(word),
        }
    }
    path.insert(0, "crate".to_owned());
    path
}
